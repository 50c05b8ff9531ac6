// SPDX-License-Identifier: GPL-2.0-only
/*
 * Moving buffers, as evictions do: to another place in VRAM, to system memory
 * and back. Called by file.c and job.c.
 */
#include <linux/sched/signal.h>

#include "drv.h"

#define MOVE_TRIES	50
#define MOVE_WAIT	(HZ / 10)

static struct dgpu_store *dgpu_store_for(struct dgpu_bo *bo, u32 place)
{
	if (place == DGPU_PLACE_SYSTEM)
		return dgpu_store_system(bo->length);
	return dgpu_store_vram(bo->dg, bo->length, bo->align,
			       bo->flags & DGPU_ALLOC_SCATTER);
}

/* Nobody accesses the memory on return, until the lock is released. */
static int dgpu_bo_quiesce(struct dgpu_bo *bo)
{
	long ret;

	dgpu_bo_zap(bo);
	dgpu_bo_notify(bo);
	ret = dma_resv_wait_timeout(&bo->resv, DMA_RESV_USAGE_BOOKKEEP, true,
				    MAX_SCHEDULE_TIMEOUT);
	if (ret < 0)
		return ret;
	return bo->mapped ? -EBUSY : 0;
}

/**
 * dgpu_bo_move_locked() - to another place
 * @bo:    buffer, its reservation held
 * @place: DGPU_PLACE_*
 *
 * Return: 0; -EBUSY if it is pinned, or if an importer has not yet given its
 * mapping back; -ENODEV if it is revoked; -ENOSPC, -ENOMEM: no room;
 * -ERESTARTSYS. It is where it was then
 */
int dgpu_bo_move_locked(struct dgpu_bo *bo, u32 place)
{
	struct dgpu_store *store;
	int ret;

	if (bo->revoked)
		return -ENODEV;
	if (bo->pins)
		return -EBUSY;
	store = dgpu_store_for(bo, place);
	if (IS_ERR(store))
		return PTR_ERR(store);
	ret = dgpu_bo_quiesce(bo);
	if (!ret)
		ret = dgpu_store_copy(bo->dg, store, bo->store, bo->length);
	if (!ret) {
		swap(store, bo->store);
		bo->moves++;
	}
	dgpu_store_free(bo->dg, store, bo->length);
	return ret;
}

/**
 * dgpu_bo_move() - to another place
 * @bo:    buffer
 * @place: DGPU_PLACE_*
 *
 * Waits for importers that give their mappings back a little later.
 *
 * Return: as dgpu_bo_move_locked()
 */
int dgpu_bo_move(struct dgpu_bo *bo, u32 place)
{
	bool pinned;
	int tries, ret;

	for (tries = 0; tries < MOVE_TRIES; tries++) {
		ret = dma_resv_lock_interruptible(&bo->resv, NULL);
		if (ret)
			return ret;
		ret = dgpu_bo_move_locked(bo, place);
		pinned = bo->pins;
		dma_resv_unlock(&bo->resv);
		if (ret != -EBUSY || pinned)
			return ret;
		wait_event_interruptible_timeout(bo->idle,
						 !READ_ONCE(bo->mapped),
						 MOVE_WAIT);
		if (signal_pending(current))
			return -ERESTARTSYS;
	}
	return ret;
}
