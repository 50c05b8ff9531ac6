// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory that processors do not reach: a dma-buf's, as of a GPU. It is named by
 * bus addresses, and a DMA channel of the backend copies from and to it. Called
 * by region.c, part.c, answer.c and agent.c.
 */
#include <linux/slab.h>

#include "region.h"

/**
 * engine_device_fill() - note where the memory of a region is
 * @region: region, without memory
 * @memory: mapped for the device of the channel
 *
 * Context: Process; sleeps.
 * Return: 0 or -ENOMEM
 */
int engine_device_fill(struct engine_region *region,
		       const struct fabrex_mr_memory *memory)
{
	struct fabrex_pages pages;
	u64 i, addr;

	fabrex_pages_begin(&pages, memory);
	region->bus = kvcalloc(pages.count, sizeof(*region->bus),
			       GFP_KERNEL_ACCOUNT);
	if (!region->bus)
		return -ENOMEM;
	for (i = 0; i < pages.count && fabrex_pages_next(&pages, &addr); i++)
		region->bus[i] = addr;
	region->shift = pages.shift;
	region->first = pages.first;
	region->align = region->engine->channel->align(region->engine);
	return 0;
}

/**
 * engine_device_each() - do something with each extent of a range
 * @region: from engine_region_get(), a far one
 * @offset: of the range, which the caller has checked
 * @bytes:  of it
 * @fn:     gets the bus address of an extent, its place in the range, and its
 *          length
 * @ctx:    for @fn
 *
 * Context: Process.
 * Return: 0, or the first result of @fn that is not 0
 */
u8 engine_device_each(struct engine_region *region, u64 offset, u32 bytes,
		      engine_extent_fn fn, void *ctx)
{
	u64 pos = region->first + offset, page = 1ull << region->shift, in;
	u32 at = 0, n;
	u8 ret;

	for (; at < bytes; at += n, pos += n) {
		in = pos & (page - 1);
		n = min_t(u64, bytes - at, page - in);
		ret = fn(ctx, region->bus[pos >> region->shift] + in, at, n);
		if (ret)
			return ret;
	}
	return 0;
}

/**
 * struct engine_load - a range that is loaded
 * @region: region
 * @fn:     gets it, piece by piece
 * @ctx:    for @fn
 */
struct engine_load {
	struct engine_region *region;
	engine_piece_fn fn;
	void *ctx;
};

static u8 engine_extent_load(void *ctx, dma_addr_t addr, u32 at, u32 bytes)
{
	struct engine_load *load = ctx;
	struct fabrex_engine *engine = load->region->engine;

	return engine->channel->load(engine, addr, at, bytes, load->fn,
				     load->ctx);
}

/**
 * engine_device_load() - as engine_region_each(), of what was loaded from there
 * @region: from engine_region_get(), a far one
 * @offset: of the range, which the caller has checked
 * @bytes:  of it
 * @fn:     must not change what it gets
 * @ctx:    for @fn
 *
 * Context: Process; sleeps.
 * Return: 0; %ENGINE_NO_MEMORY; or the first result of @fn that is not 0
 */
u8 engine_device_load(struct engine_region *region, u64 offset, u32 bytes,
		      engine_piece_fn fn, void *ctx)
{
	struct engine_load load = { .region = region, .fn = fn, .ctx = ctx };

	return engine_device_each(region, offset, bytes, engine_extent_load,
				  &load);
}

/**
 * struct engine_store - bytes that are stored
 * @region: region
 * @from:   where from
 */
struct engine_store {
	struct engine_region *region;
	const void *from;
};

static u8 engine_extent_store(void *ctx, dma_addr_t addr, u32 at, u32 bytes)
{
	struct engine_store *store = ctx;
	struct fabrex_engine *engine = store->region->engine;

	return engine->channel->store(engine, addr, store->from + at, bytes) ?
	       0 : ENGINE_NO_MEMORY;
}

/**
 * engine_device_store() - store into a region
 * @region: from engine_region_get(), a far one
 * @offset: of the range, which the caller has checked
 * @from:   where from
 * @bytes:  of it
 *
 * Context: Process; sleeps.
 * Return: 0, and all has arrived; or %ENGINE_NO_MEMORY
 */
u8 engine_device_store(struct engine_region *region, u64 offset,
		       const void *from, u32 bytes)
{
	struct engine_store store = { .region = region, .from = from };

	return engine_device_each(region, offset, bytes, engine_extent_store,
				  &store);
}

/**
 * engine_device_suits() - can a channel store there?
 * @region: from engine_region_get(), of whatever kind
 * @offset: of the range
 * @bytes:  of it
 *
 * A channel that stores whole words only would have to read what is beside the
 * range and store it again, and so undo what somebody else stores there
 * meanwhile.
 *
 * Context: Any.
 * Return: whether it can
 */
bool engine_device_suits(const struct engine_region *region, u64 offset,
			 u64 bytes)
{
	return !region->far || !bytes ||
	       IS_ALIGNED((region->first + offset) | bytes, region->align);
}
