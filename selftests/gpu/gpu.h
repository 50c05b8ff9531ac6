/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Thin layer over /dev/dgpu<N> and over dma-bufs of any kind, for the programs
 * of this directory. Functions return 0, or what they are asked for, or a
 * negative errno.
 */
#ifndef SELFTEST_GPU_H
#define SELFTEST_GPU_H

#include "raw.h"
#include "dgpu.h"

struct gpu {
	int fd;
	struct dgpu_info info;	/* as it was when opened */
};

struct gpu_buf {
	struct gpu *gpu;
	uint32_t handle;
	uint64_t length;
	uint64_t mmap;
};

/* The first /dev/dgpu<N> with N >= from; -ENOENT if there is none. */
int gpu_open(struct gpu *gpu, unsigned int from);
int gpu_info(struct gpu *gpu, struct dgpu_info *info);
int gpu_alloc(struct gpu *gpu, uint64_t length, uint32_t flags,
	      struct gpu_buf *buf);
int gpu_free(struct gpu_buf *buf);
int gpu_revoke(struct gpu_buf *buf);
int gpu_move(struct gpu_buf *buf, uint32_t place);
int gpu_state(struct gpu_buf *buf, struct dgpu_buffer *state);
/* Some importer has it mapped and did not ask for a pin, but it is pinned: the
 * kernel was built without DMABUF_MOVE_NOTIFY.
 */
bool gpu_stuck(struct gpu_buf *buf);
/* A dma-buf of part of it; length 0: to its end. */
int gpu_export(struct gpu_buf *buf, uint64_t offset, uint64_t length,
	       uint32_t flags);
/* Its name for other files of the GPU, and how many handles it has. */
int gpu_share(struct gpu_buf *buf, uint64_t *name, uint32_t *users);
/* Another handle of it, in another file of the GPU. */
int gpu_share_open(struct gpu *gpu, uint64_t name, struct gpu_buf *buf);
/* Mapped whole, read and write; MAP_FAILED. */
void *gpu_mmap(struct gpu_buf *buf);

/* Engine. */
int gpu_submit(struct gpu *gpu, struct dgpu_cmd *cmd, unsigned int count,
	       uint32_t flags, uint32_t delay_ms, uint64_t *seq);
int gpu_wait(struct gpu *gpu, uint64_t seq, unsigned int timeout_ms);
int gpu_fill(struct gpu_buf *buf, uint64_t offset, uint64_t length,
	     uint64_t pattern);
int gpu_copy(struct gpu_buf *dst, uint64_t to, struct gpu_buf *src,
	     uint64_t from, uint64_t length);
/* Over the mesh, by the engine of @own's GPU. */
int gpu_peer(struct gpu_buf *own, struct gpu_buf *peer, uint64_t length,
	     uint32_t flags);
int gpu_crc(struct gpu_buf *buf, uint64_t offset, uint64_t length,
	    uint32_t *crc);
/* Bytes that differ everywhere, made on the GPU: 4 KiB from the CPU, doubled
 * by the engine and added up so that no two pages are equal.
 */
int gpu_pattern(struct gpu_buf *buf, uint64_t length, uint32_t seed);

/* Pages as a dma-buf of udmabuf; *addr, if wanted, is where they are mapped. */
int udma_create(uint64_t length, void **addr);

/* Register part of a dma-buf; flags: FABREX_MR_PIN, FABREX_MR_WATCH. */
int gpu_mr(int port, int dmabuf, uint64_t offset, uint64_t length,
	   uint32_t access, uint32_t flags, uint32_t watch, struct raw_mr *mr);

#endif
