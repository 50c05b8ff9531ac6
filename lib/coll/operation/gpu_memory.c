// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Memory of operations on GPUs: slots that are on offer to other ranks, and
 * scratch. Called by gpu.c, and before operations begin by progress.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/debug.h"
#include "coll/device/device.h"
#include "coll/operation/gpu.h"
#include "coll/operation/gpu_state.h"

#define BLOCK	(2u << 20)	/* a block of its own, which a handle is of */

void fxi_gpu_free_outgrown(struct gpu *gpu)
{
	struct outgrown *o;

	while ((o = gpu->outgrown)) {
		gpu->outgrown = o->next;
		fxi_device_free(gpu->device, o->memory);
		free(o);
	}
}

void fxi_gpu_free_slots(struct gpu *gpu)
{
	uint32_t i;

	for (i = 0; i < LINK_ENTRANCES; i++)
		fabrex_mr_deregister(gpu->mrs[i]);
	fxi_device_free(gpu->device, gpu->slots);
}

/* ---- slots ------------------------------------------------------------- */

/*
 * For the fabric, for processes of this host, or for both. Of whole blocks of
 * the runtime, as those who open it see all of its block.
 */
static int slots_make(struct fabrex_comm *comm, struct gpu *gpu)
{
	uint64_t bytes = fxi_link_device_bytes(comm);
	int ret, unshared;

	ret = fxi_device_alloc(gpu->device, (bytes + BLOCK - 1) / BLOCK * BLOCK,
			       &gpu->slots);
	if (ret)
		return ret;
	unshared = fxi_device_share(gpu->device, gpu->slots, gpu->handle);
	gpu->shared = !unshared;
	ret = fxi_link_device_register(comm, gpu->slots, bytes, gpu->mrs);
	if (!ret || !unshared)
		return 0;
	fxi_device_free(gpu->device, gpu->slots);
	gpu->slots = NULL;
	return ret;
}

static void say_slots(const struct fabrex_comm *comm, const struct gpu *gpu)
{
	fxi_debug(FXI_DEBUG_MEMORY, comm->rank, "%s device %d %s%s",
		  fxi_gpu_kind(gpu->kind), gpu->number,
		  gpu->no_slots ?
		  "has no slots for other ranks, which send to host memory: " :
		  !gpu->mrs[0] ?
		  "has slots for ranks of this host only, and others send to host memory: " :
		  "has slots for other ranks",
		  gpu->mrs[0] ? "" : fabrex_strerror_last());
}

/* Slots on the GPU, unless there are some, or cannot be any. */
void fxi_gpu_make_slots(const struct fabrex_coll *coll)
{
	struct fabrex_comm *comm = coll->comm;
	struct gpu *gpu = coll->gpu, made = { .device = gpu->device };

	if (comm->size == 1 || comm->slots_gpu || gpu->slots || gpu->no_slots)
		return;
	gpu_outside(coll);
	made.no_slots = slots_make(comm, &made);
	gpu_inside(coll);
	if (gpu->slots || gpu->no_slots) {	/* meanwhile */
		gpu_outside(coll);
		fxi_gpu_free_slots(&made);
		gpu_inside(coll);
		return;
	}
	gpu->no_slots = made.no_slots;
	gpu->slots = made.slots;
	gpu->shared = made.shared;
	memcpy(gpu->mrs, made.mrs, sizeof(gpu->mrs));
	memcpy(gpu->handle, made.handle, sizeof(gpu->handle));
	say_slots(comm, gpu);
}

/* One offer for each communicator, of the first GPU that can be reached. */
int fxi_coll_offer_slots(struct fabrex_coll *coll)
{
	struct fabrex_comm *comm = coll->comm;
	struct device_offer offer = { .kind = 0 };
	struct gpu *gpu = coll->gpu;

	if (comm->size == 1 || comm->slots_gpu || !fxi_coll_on_gpu(coll))
		return 0;
	fxi_gpu_make_slots(coll);
	if (gpu->no_slots)
		return 0;
	comm->slots_gpu = gpu;
	if (gpu->shared) {
		offer.kind = gpu->kind;
		memcpy(offer.handle, gpu->handle, sizeof(offer.handle));
	}
	memcpy(offer.pci, gpu->pci, sizeof(offer.pci));
	return fxi_link_offer(comm, &offer, gpu->mrs, gpu->slots);
}

/* ---- scratch ----------------------------------------------------------- */

/* An operation that has begun may still use what is outgrown. */
static int grow_scratch(const struct fabrex_coll *coll, uint64_t least)
{
	uint64_t bytes = least;
	struct gpu *gpu = coll->gpu;
	struct outgrown *o;
	void *memory;
	int ret;

	if (bytes < 2 * gpu->scratch_size)
		bytes = 2 * gpu->scratch_size;
	o = malloc(sizeof(*o));
	if (!o)
		return fxi_error(ENOMEM, "%s: out of memory",
				 fxi_kind_name(coll->what.kind));
	gpu_outside(coll);
	ret = fxi_device_alloc(gpu->device, bytes, &memory);
	if (ret && bytes > least) {
		bytes = least;
		ret = fxi_device_alloc(gpu->device, bytes, &memory);
	}
	gpu_inside(coll);
	if (ret) {
		free(o);
		return ret;
	}
	if (gpu->scratch_size >= bytes) {	/* meanwhile */
		o->memory = memory;
		o->next = gpu->outgrown;
		gpu->outgrown = o;
		return 0;
	}
	if (gpu->scratch) {
		o->memory = gpu->scratch;
		o->next = gpu->outgrown;
		gpu->outgrown = o;
	} else {
		free(o);
	}
	gpu->scratch = memory;
	gpu->scratch_size = bytes;
	return 0;
}

int fxi_coll_scratch_gpu(const struct fabrex_coll *coll, uint64_t bytes,
			 void **memory)
{
	int ret = 0;

	if (coll->gpu->scratch_size < bytes)
		ret = grow_scratch(coll, bytes);
	*memory = coll->gpu->scratch;
	return ret;
}
