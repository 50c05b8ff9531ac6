/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a communicator has on a GPU: for gpu.c and gpu_memory.c only.
 */
#ifndef LIB_COLL_GPU_STATE_H
#define LIB_COLL_GPU_STATE_H

#include "coll/link/link.h"
#include "coll/operation/operation.h"

#define SEEN	8u

/*
 * Scratch memory that was too small: freeing it would wait for all streams of
 * the device, and so for what is enqueued behind this operation.
 */
struct outgrown {
	struct outgrown *next;
	void *memory;
};

/* A GPU that buffers of this communicator were on. */
struct gpu {
	struct gpu *next;
	uint32_t kind;
	int32_t number;
	char pci[16];
	struct device *device;		/* NULL: only its runtime can copy */
	bool reduces;			/* its runtime has a compiler, too */
	void *sum, *operand;		/* of one slot each */
	void *wide;			/* a slot of 16-bit floats as FLOAT32 */
	void *slots;			/* on offer to the other ranks */
	struct fabrex_mr *mrs[LINK_ENTRANCES]; /* of slots, or NULL */
	uint8_t handle[LINK_HANDLE];	/* of slots, if @shared */
	bool shared;			/* others can open the slots */
	bool no_slots;			/* tried in vain */
	void *scratch;
	uint64_t scratch_size;
	struct outgrown *outgrown;	/* earlier scratch memory */
	uint64_t seen[SEEN];		/* ids of the last allocations */
	uint32_t turn;
};

/* While something is made: others may advance the communicator. */
static inline void gpu_outside(const struct fabrex_coll *coll)
{
	if (coll->door)
		coll->door->leave(coll->comm);
}

static inline void gpu_inside(const struct fabrex_coll *coll)
{
	if (coll->door)
		coll->door->enter(coll->comm);
}

/* For messages. */
static inline const char *fxi_gpu_kind(uint32_t kind)
{
	return kind == FABREX_MEMORY_HIP ? "HIP" :
	       kind == FABREX_MEMORY_CUDA ? "CUDA" : kind ? "device" : "host";
}

/* ---- gpu_memory.c ------------------------------------------------------ */

/* Slots on the GPU, unless there are some, or cannot be any. */
void fxi_gpu_make_slots(const struct fabrex_coll *coll);
/* Nothing uses them any more. */
void fxi_gpu_free_outgrown(struct gpu *gpu);
void fxi_gpu_free_slots(struct gpu *gpu);

#endif
