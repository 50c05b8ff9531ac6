// SPDX-License-Identifier: GPL-2.0-only
/*
 * What drivers of real GPUs do before the machine sleeps: VRAM loses its power,
 * so all of it moves to system memory, in a PM notifier while processes still
 * run, and what is there again by then in .prepare(). It comes back when an
 * importer maps it. Called by the PM core and by export.c.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/suspend.h>

#include "drv.h"

/* For tests, in /sys/module/draco_gpu/parameters. */
static unsigned int dgpu_early, dgpu_late, dgpu_back, dgpu_back_early;
module_param_named(evicted_early, dgpu_early, uint, 0444);
MODULE_PARM_DESC(evicted_early, "buffers moved out by the PM notifier");
module_param_named(evicted_late, dgpu_late, uint, 0444);
MODULE_PARM_DESC(evicted_late, "buffers moved out by .prepare()");
module_param_named(brought_back, dgpu_back, uint, 0444);
MODULE_PARM_DESC(brought_back, "evicted buffers that an importer had moved back");
module_param_named(brought_back_early, dgpu_back_early, uint, 0444);
MODULE_PARM_DESC(brought_back_early, "of those, before the PM notifier was called again");
static bool dgpu_emptied;
module_param_named(emptied, dgpu_emptied, bool, 0444);
MODULE_PARM_DESC(emptied, "between the two calls of the PM notifier");
/* An importer that brings buffers straight back does so meanwhile. */
static unsigned int dgpu_evict_ms = 300;
module_param_named(evict_ms, dgpu_evict_ms, uint, 0644);
MODULE_PARM_DESC(evict_ms, "how long an eviction of everything takes at least");

static struct dgpu_bo *dgpu_next_resident(struct dgpu *dg)
{
	struct dgpu_bo *bo, *found = NULL;

	mutex_lock(&dg->lock);
	list_for_each_entry(bo, &dg->buffers, list) {
		if (bo->round == dg->round || !kref_get_unless_zero(&bo->ref))
			continue;
		bo->round = dg->round;
		found = bo;
		break;
	}
	mutex_unlock(&dg->lock);
	return found;
}

/* Returns whether it was there; what is pinned stays. */
static bool dgpu_evict(struct dgpu_bo *bo)
{
	bool there;

	dma_resv_lock(&bo->resv, NULL);
	there = !bo->revoked && !bo->pins &&
		bo->store->place == DGPU_PLACE_VRAM;
	dma_resv_unlock(&bo->resv);
	if (!there || dgpu_bo_move(bo, DGPU_PLACE_SYSTEM))
		return false;
	dma_resv_lock(&bo->resv, NULL);
	bo->evicted = !bo->revoked && bo->store->place == DGPU_PLACE_SYSTEM;
	dma_resv_unlock(&bo->resv);
	return true;
}

static unsigned int dgpu_evict_all(struct dgpu *dg)
{
	struct dgpu_bo *bo;
	unsigned int n = 0;

	mutex_lock(&dg->lock);
	dg->round++;
	mutex_unlock(&dg->lock);
	while ((bo = dgpu_next_resident(dg))) {
		n += dgpu_evict(bo);
		dgpu_bo_put(bo);
	}
	msleep(dgpu_evict_ms);
	return n;
}

/**
 * dgpu_bo_bring_back() - an importer wants to map it: back to VRAM with it
 * @bo: buffer, its reservation held
 *
 * Return: 0; as dgpu_bo_move_locked()
 */
int dgpu_bo_bring_back(struct dgpu_bo *bo)
{
	int ret;

	if (!bo->evicted)
		return 0;
	WARN(READ_ONCE(bo->dg->asleep),
	     "an importer brings a buffer back to VRAM, which loses its power\n");
	ret = dgpu_bo_move_locked(bo, DGPU_PLACE_VRAM);
	if (ret)
		return ret;
	bo->evicted = false;
	dgpu_back++;
	dgpu_back_early += READ_ONCE(dgpu_emptied);
	return 0;
}

static int dgpu_prepare(struct device *dev)
{
	struct dgpu *dg = dev_get_drvdata(dev);

	dgpu_late += dgpu_evict_all(dg);
	WRITE_ONCE(dg->asleep, true);
	msleep(dgpu_evict_ms);
	return 0;
}

static void dgpu_complete(struct device *dev)
{
	struct dgpu *dg = dev_get_drvdata(dev);

	WRITE_ONCE(dg->asleep, false);
}

const struct dev_pm_ops dgpu_pm_ops = {
	.prepare = dgpu_prepare,
	.complete = dgpu_complete,
};

static void dgpu_empty(void)
{
	struct dgpu *dg;
	int next = 0;

	WRITE_ONCE(dgpu_emptied, true);
	while ((dg = dgpu_get_next(next))) {
		dgpu_early += dgpu_evict_all(dg);
		next = dg->index + 1;
		put_device(&dg->dev);
	}
}

/* Some need their memory to themselves until they are called again. */
static int dgpu_notify(struct notifier_block *nb, unsigned long action,
		       void *data)
{
	switch (action) {
	case PM_SUSPEND_PREPARE:
	case PM_HIBERNATION_PREPARE:
		dgpu_empty();
		return NOTIFY_OK;
	case PM_POST_SUSPEND:
	case PM_POST_HIBERNATION:
		msleep(dgpu_evict_ms);
		WRITE_ONCE(dgpu_emptied, false);
		return NOTIFY_OK;
	}
	return NOTIFY_DONE;
}

static struct notifier_block dgpu_notifier = { .notifier_call = dgpu_notify };

/**
 * dgpu_sleep_init() - for the module
 *
 * Return: 0 or an errno
 */
int dgpu_sleep_init(void)
{
	return register_pm_notifier(&dgpu_notifier);
}

/**
 * dgpu_sleep_exit() - for the module
 */
void dgpu_sleep_exit(void)
{
	unregister_pm_notifier(&dgpu_notifier);
}
