/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the bytes of the test run times are: VRAM of a modelled GPU or a file
 * in memory. Called by gpu.c.
 */
#ifndef RUNTIME_STORE_H
#define RUNTIME_STORE_H

#include "gpu.h"

/* Pages for an allocation whose size is known, and a view. False: errno. */
bool store_open(struct gpu_memory *m);
void store_close(struct gpu_memory *m);

/* CRC32C of VRAM by its GPU's engine. */
bool store_checksum(const struct gpu_memory *m, size_t offset, size_t length,
		    uint32_t *crc);
/* Is the GPU still there, as its engine knows? */
bool store_answers(const struct gpu_memory *m);
/* To another place, see gpu_move(). */
bool store_move(const struct gpu_memory *m, bool to_host);
/* How another process finds the pages. */
struct store_name {
	uint64_t key;		/* the same each time, and never used again */
	int32_t pid, fd;	/* file in memory, of that process */
	uint32_t index;		/* else N of /dev/dgpu<N> */
	uint32_t mesh;		/* of that GPU, or 0 */
};

bool store_share(const struct gpu_memory *m, struct store_name *name);
/* Pages of another process, for an entry whose size is known, and a view. */
bool store_attach(struct gpu_memory *m, const struct store_name *name);
/* Does another process that lives have them open? */
bool store_is_attached(const struct gpu_memory *m);
/* The mesh that a GPU is in; 0: none. */
uint32_t store_mesh(int gpu);

/* A mesh joins the two GPUs: the engine of one reaches the other's memory. */
bool store_joined(int gpu, int peer);
/*
 * Over that, between pages of different GPUs; @write: by the engine of @from's.
 * Only for VRAM of modelled GPUs.
 */
bool store_copy_peer(const struct gpu_memory *to, size_t to_offset,
		     const struct gpu_memory *from, size_t from_offset,
		     size_t length, bool write);

#endif
