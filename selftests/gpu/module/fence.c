// SPDX-License-Identifier: GPL-2.0-only
/* Fences of jobs. Called by job.c and engine.c. */
#include <linux/slab.h>

#include "drv.h"

/* The lock lives as long as the fence, which may outlive the GPU. */
struct dgpu_fence {
	struct dma_fence base;
	spinlock_t lock;
};

static const char *dgpu_fence_driver(struct dma_fence *fence)
{
	return KBUILD_MODNAME;
}

static const char *dgpu_fence_timeline(struct dma_fence *fence)
{
	return "engine";
}

/* Somebody may hold one, in a sync_file for example, when all files and
 * dma-bufs are gone. Before 7.2 it calls us even then.
 */
static void __maybe_unused dgpu_fence_release(struct dma_fence *fence)
{
	dma_fence_free(fence);
	module_put(THIS_MODULE);
}

static const struct dma_fence_ops dgpu_fence_ops = {
	.get_driver_name = dgpu_fence_driver,
	.get_timeline_name = dgpu_fence_timeline,
#if FABREX_FENCE_HOLDS_MODULE
	.release = dgpu_fence_release,
#endif
};

/**
 * dgpu_fence_alloc() - memory for a fence
 *
 * Return: to be given to dgpu_fence_init() or dgpu_fence_discard(), or NULL
 */
struct dma_fence *dgpu_fence_alloc(void)
{
	struct dgpu_fence *fence;

	BUILD_BUG_ON(offsetof(struct dgpu_fence, base));
	fence = kzalloc(sizeof(*fence), GFP_KERNEL_ACCOUNT);
	if (!fence)
		return NULL;
	spin_lock_init(&fence->lock);
	return &fence->base;
}

/**
 * dgpu_fence_init() - from now on it is one
 * @fence:   of dgpu_fence_alloc()
 * @context: of the engine
 * @seq:     in order
 */
void dgpu_fence_init(struct dma_fence *fence, u64 context, u64 seq)
{
	struct dgpu_fence *df = container_of(fence, struct dgpu_fence, base);

	if (FABREX_FENCE_HOLDS_MODULE)
		__module_get(THIS_MODULE);
	dma_fence_init(fence, &dgpu_fence_ops, &df->lock, context, seq);
}

/**
 * dgpu_fence_discard() - it has not become one
 * @fence: of dgpu_fence_alloc(), or NULL
 */
void dgpu_fence_discard(struct dma_fence *fence)
{
	if (fence)
		kfree(container_of(fence, struct dgpu_fence, base));
}
