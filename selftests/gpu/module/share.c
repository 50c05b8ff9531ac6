// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffers of which several open files have handles. Called by file.c. Whoever
 * knows the name of a buffer can open it: it is as hard to guess as a key.
 */
#include <linux/random.h>

#include "drv.h"

/**
 * dgpu_bo_name() - name under which other files open a buffer
 * @bo:    buffer
 * @users: its handles
 *
 * Return: the name, not 0
 */
u64 dgpu_bo_name(struct dgpu_bo *bo, u32 *users)
{
	u64 name;

	mutex_lock(&bo->dg->lock);
	while (!bo->name)
		bo->name = get_random_u64();
	name = bo->name;
	*users = bo->users;
	mutex_unlock(&bo->dg->lock);
	return name;
}

/**
 * dgpu_bo_open() - one more handle of a buffer
 * @dg:   GPU
 * @name: of the buffer
 *
 * Return: the buffer, referenced, and with a user more; or NULL
 */
struct dgpu_bo *dgpu_bo_open(struct dgpu *dg, u64 name)
{
	struct dgpu_bo *bo, *found = NULL;

	mutex_lock(&dg->lock);
	list_for_each_entry(bo, &dg->buffers, list) {
		if (!name || bo->name != name || !bo->users)
			continue;
		bo->users++;
		dgpu_bo_get(bo);
		found = bo;
		break;
	}
	mutex_unlock(&dg->lock);
	return found;
}

/**
 * dgpu_bo_leave() - a handle goes
 * @bo: buffer, the caller has erased its handle
 *
 * With the last one goes the memory.
 */
void dgpu_bo_leave(struct dgpu_bo *bo)
{
	bool last;

	mutex_lock(&bo->dg->lock);
	last = !--bo->users;
	mutex_unlock(&bo->dg->lock);
	if (last)
		dgpu_bo_orphan(bo);
	else
		dgpu_bo_put(bo);
}
