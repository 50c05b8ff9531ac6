/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The engine of a modelled GPU (docs/gpu.md): registers, command ring, and a
 * thread that exists while the engine is enabled. For endpoint.c.
 *
 * Locks: gpu.life is held while the thread is started or ended, or the GPU
 * takes its seat, and never by the thread; gpu.lock is a leaf for its sleep.
 * The registers that the host writes belong to the function's thread.
 */
#ifndef EMU_GPU_H
#define EMU_GPU_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gpu;
struct seat;

/**
 * struct gpu_desc - what the engine works on
 * @name: for log messages
 * @vram: its memory, @size bytes of @fd (-1: no file); both stay the caller's
 *        and must outlast gpu_kill()
 * @link: NULL, or whether the GPU can be reached
 * @seat: NULL, or its place in a mesh
 * @host: that it is bound to
 * @instance: of the binding
 */
struct gpu_desc {
	const char *name;
	void *vram;
	uint64_t size;
	int fd;
	const atomic_bool *link;
	struct seat *seat;
	unsigned int host;
	uint32_t instance;
};

/* NULL: no memory. */
struct gpu *gpu_create(const struct gpu_desc *d);
/* Into its seat: from now on, peers may access VRAM until gpu_kill(). */
void gpu_join(struct gpu *g);
void gpu_destroy(struct gpu *g);

/* Function's thread: 32-bit registers from DRACO_GPU_CTRL on. */
uint32_t gpu_read(struct gpu *g, uint64_t offset);
void gpu_write(struct gpu *g, uint64_t offset, uint32_t v);

/* Function's thread: engine stopped, registers as after power-on. */
void gpu_reset(struct gpu *g);

/*
 * The engine ends for good; neither it nor that of a peer in the mesh touches
 * VRAM any more when this returns. Any thread, also while others use the GPU.
 */
void gpu_kill(struct gpu *g);

#endif
