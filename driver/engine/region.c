// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory regions: creation, look-up by key, access. Called by port.c for the
 * core, and by op.c and agent.c for every part of an operation.
 *
 * Whoever has got a region is inside its gate, for one part: so destruction and
 * invalidation wait for a copy of a few pages at most, or until a DMA engine
 * that does not end its own has been stopped.
 */
#include <linux/crc32c.h>
#include <linux/highmem.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include <linux/fabrex_ring.h>

#include "key.h"
#include "region.h"

/**
 * engine_region_create() - reserve a number and a key
 * @engine: engine
 * @params: region
 * @number: result
 * @key:    result
 *
 * Context: Process; sleeps.
 * Return: 0; -ENOSPC if there are too many; -ENOMEM
 */
int engine_region_create(struct fabrex_engine *engine,
			 const struct fabrex_mr_params *params, u32 *number,
			 u64 *key)
{
	struct engine_region *region;
	int ret;

	region = kzalloc(sizeof(*region), GFP_KERNEL_ACCOUNT);
	if (!region)
		return -ENOMEM;
	region->engine = engine;
	region->pd = params->pd;
	region->access = params->access;
	region->length = params->length;
	memcpy(region->peers, params->peers, sizeof(region->peers));
	ret = xa_alloc_cyclic(&engine->regions, number, NULL,
			      XA_LIMIT(0, ENGINE_MAX_REGIONS - 1),
			      &engine->next_region, GFP_KERNEL_ACCOUNT);
	if (ret < 0) {
		kfree(region);
		return ret == -EBUSY ? -ENOSPC : ret;
	}
	region->key = engine_key_new(*number);
	*key = region->key;
	/* Its place exists, so this cannot fail. */
	xa_store(&engine->regions, *number, region, GFP_KERNEL_ACCOUNT);
	return 0;
}

/* All pages of the memory of a process, in order. */
static int engine_region_fill(struct engine_region *region,
			      const struct fabrex_mr_memory *memory)
{
	u64 pos = 0, i = 0, off;
	struct scatterlist *sg;
	int n;

	if (!PAGE_ALIGNED(memory->from) || !PAGE_ALIGNED(memory->to))
		return -EINVAL;
	region->first = memory->offset;
	region->npages = (memory->to - memory->from) >> PAGE_SHIFT;
	region->pages = kvcalloc(region->npages, sizeof(*region->pages),
				 GFP_KERNEL_ACCOUNT);
	if (!region->pages)
		return -ENOMEM;
	for_each_sgtable_sg(memory->sgt, sg, n) {
		for (off = 0; off < sg->length; off += PAGE_SIZE, pos += PAGE_SIZE)
			if (pos >= memory->from && pos < memory->to)
				region->pages[i++] = pfn_to_page(
					page_to_pfn(sg_page(sg)) +
					(off >> PAGE_SHIFT));
	}
	return 0;
}

/**
 * engine_region_supply() - supply the memory of a region, which becomes valid
 * @engine: engine
 * @number: of the region
 * @memory: of a process: whole pages, pinned; or of an exporter, mapped for the
 *          device of the channel
 *
 * Context: Process; sleeps.
 * Return: 0; -ENOENT if there is no such region; -EBUSY if it is valid; -EINVAL
 * if these are not whole pages; -ENOMEM
 */
int engine_region_supply(struct fabrex_engine *engine, u32 number,
			 const struct fabrex_mr_memory *memory)
{
	struct engine_region *region = xa_load(&engine->regions, number);
	int ret;

	if (!region)
		return -ENOENT;
	if (region->valid)
		return -EBUSY;
	region->far = memory->dev;
	ret = region->far ? engine_device_fill(region, memory) :
			    engine_region_fill(region, memory);
	if (ret)
		return ret;
	region->valid = true;
	engine_gate_open(&region->gate);
	return 0;
}

static void engine_region_empty(struct engine_region *region)
{
	if (region->valid)
		engine_gate_close(&region->gate);
	region->valid = false;
	if (!IS_ERR_OR_NULL(region->link))
		region->linker->ops->unlink(region->linker, region->link);
	region->link = NULL;
	kvfree(region->pages);
	region->pages = NULL;
	kvfree(region->bus);
	region->bus = NULL;
}

/**
 * engine_region_invalidate() - forget the memory of a region, but not its key
 * @engine: engine
 * @number: of the region
 *
 * When this returns, no access is in progress and none can start before
 * engine_region_supply().
 *
 * Context: Process; sleeps, for as long as a part is being copied, but
 * allocates nothing.
 * Return: 0
 */
int engine_region_invalidate(struct fabrex_engine *engine, u32 number)
{
	struct engine_region *region = xa_load(&engine->regions, number);

	if (region)
		engine_region_empty(region);
	return 0;
}

/**
 * engine_region_destroy() - destroy a region
 * @engine: engine
 * @number: of the region
 *
 * When this returns, no access is in progress and none can start, also not by a
 * peer to which it was linked.
 *
 * Context: Process; sleeps, for as long as a part is being copied.
 * Return: 0; -ENOENT if there is no such region
 */
int engine_region_destroy(struct fabrex_engine *engine, u32 number)
{
	struct engine_region *region = xa_erase(&engine->regions, number);

	if (!region)
		return -ENOENT;
	engine_region_empty(region);
	kfree_rcu(region, rcu);
	return 0;
}

/**
 * engine_region_get() - look up a valid region by its key
 * @engine: engine
 * @key:    of whatever origin
 *
 * All bits are compared at once: nothing but whether they match can be learnt.
 *
 * Context: Any.
 * Return: the region, to be put soon; NULL if there is none
 */
struct engine_region *engine_region_get(struct fabrex_engine *engine, u64 key)
{
	struct engine_region *region;

	rcu_read_lock();
	region = xa_load(&engine->regions, engine_key_number(key));
	if (region && (region->key != key || !engine_gate_enter(&region->gate)))
		region = NULL;
	rcu_read_unlock();
	return region;
}

/**
 * engine_region_put() - let go of a region
 * @region: from engine_region_get()
 *
 * Context: Any.
 */
void engine_region_put(struct engine_region *region)
{
	engine_gate_leave(&region->gate);
}

/**
 * engine_region_exists() - is there such a region, though maybe not a valid one
 * @engine: engine
 * @key:    of whatever origin
 *
 * Context: Any.
 * Return: whether there is
 */
bool engine_region_exists(struct fabrex_engine *engine, u64 key)
{
	struct engine_region *region;
	bool exists;

	rcu_read_lock();
	region = xa_load(&engine->regions, engine_key_number(key));
	exists = region && region->key == key;
	rcu_read_unlock();
	return exists;
}

/**
 * engine_region_link() - let a peer store to a region by itself
 * @region: from engine_region_get(); the peer may write to all of it
 * @wire:   to the peer
 *
 * One peer only, the first that asks and for which there is room.
 *
 * Context: The thread that serves the peer; sleeps.
 * Return: whether this peer can
 */
bool engine_region_link(struct engine_region *region, struct fabrex_wire *wire)
{
	if (!wire->ops || !wire->ops->link || region->far ||
	    region->length > U32_MAX)
		return false;
	if (!cmpxchg(&region->linker, NULL, wire)) {
		region->link = wire->ops->link(wire, region->key, region->pages,
					       region->npages, &region->where);
		if (!region->link)
			smp_store_release(&region->linker, NULL);
	}
	return engine_region_linked(region, wire);
}

/**
 * engine_region_linked() - can a peer store to a region by itself?
 * @region: from engine_region_get()
 * @wire:   to the peer
 *
 * Context: The thread that serves the peer.
 * Return: whether it can
 */
bool engine_region_linked(const struct engine_region *region,
			  const struct fabrex_wire *wire)
{
	return READ_ONCE(region->linker) == wire &&
	       !IS_ERR_OR_NULL(region->link);
}

/**
 * engine_region_far() - do processors not reach this region, valid or not?
 * @engine: engine
 * @key:    of whatever origin
 *
 * Context: Any.
 * Return: whether it is
 */
bool engine_region_far(struct fabrex_engine *engine, u64 key)
{
	struct engine_region *region;
	bool far;

	rcu_read_lock();
	region = xa_load(&engine->regions, engine_key_number(key));
	far = region && region->key == key && READ_ONCE(region->far);
	rcu_read_unlock();
	return far;
}

/**
 * engine_region_each() - do something with each piece of a range
 * @region: from engine_region_get()
 * @offset: of the range, which the caller has checked
 * @bytes:  of it
 * @fn:     gets the address of a piece, its place in the range, and its length;
 *          must neither sleep nor, in a far region, change it
 * @ctx:    for @fn
 *
 * Context: Process; sleeps, if it is a far one.
 * Return: 0; %ENGINE_NO_MEMORY; or the first result of @fn that is not 0
 */
u8 engine_region_each(struct engine_region *region, u64 offset, u32 bytes,
		      engine_piece_fn fn, void *ctx)
{
	u64 pos = region->first + offset;
	u32 at = 0, n;
	void *va;
	u8 ret;

	if (region->far)
		return engine_device_load(region, offset, bytes, fn, ctx);
	for (; at < bytes; at += n, pos += n) {
		n = min_t(u32, bytes - at, PAGE_SIZE - offset_in_page(pos));
		va = kmap_local_page(region->pages[pos >> PAGE_SHIFT]);
		ret = fn(ctx, va + offset_in_page(pos), at, n);
		kunmap_local(va);
		if (ret)
			return ret;
	}
	return 0;
}

/* Eight bytes that are aligned at both ends are never seen torn. */
static void engine_copy(void *to, const void *from, u32 bytes)
{
	if (bytes == 8 && IS_ALIGNED((unsigned long)to, 8) &&
	    IS_ALIGNED((unsigned long)from, 8))
		WRITE_ONCE(*(u64 *)to, READ_ONCE(*(const u64 *)from));
	else
		memcpy(to, from, bytes);
}

static u8 engine_piece_read(void *ctx, void *va, u32 at, u32 bytes)
{
	engine_copy(ctx + at, va, bytes);
	return 0;
}

static u8 engine_piece_write(void *ctx, void *va, u32 at, u32 bytes)
{
	engine_copy(va, ctx + at, bytes);
	return 0;
}

static u8 engine_piece_crc(void *ctx, void *va, u32 at, u32 bytes)
{
	u32 *crc = ctx;

	*crc = crc32c(*crc, va, bytes);
	return 0;
}

/**
 * engine_region_read() - copy out of a region
 * @region: from engine_region_get()
 * @offset: of the range, which the caller has checked
 * @to:     where to
 * @bytes:  of it
 *
 * Context: As engine_region_each().
 * Return: 0 or %ENGINE_NO_MEMORY
 */
u8 engine_region_read(struct engine_region *region, u64 offset, void *to,
		      u32 bytes)
{
	return engine_region_each(region, offset, bytes, engine_piece_read, to);
}

/**
 * engine_region_write() - copy into a region
 * @region: from engine_region_get()
 * @offset: of the range, which the caller has checked
 * @from:   where from
 * @bytes:  of it
 *
 * Context: As engine_region_each().
 * Return: 0 or %ENGINE_NO_MEMORY
 */
u8 engine_region_write(struct engine_region *region, u64 offset,
		       const void *from, u32 bytes)
{
	if (region->far)
		return engine_device_store(region, offset, from, bytes);
	return engine_region_each(region, offset, bytes, engine_piece_write,
				  (void *)from);
}

/**
 * engine_region_crc() - compute the CRC32C of what is stored in a region
 * @region: from engine_region_get()
 * @offset: of the range, which the caller has checked
 * @bytes:  of it
 * @crc:    state before it, not inverted; result: after it
 *
 * Context: As engine_region_each().
 * Return: 0 or %ENGINE_NO_MEMORY
 */
u8 engine_region_crc(struct engine_region *region, u64 offset, u32 bytes,
		     u32 *crc)
{
	return engine_region_each(region, offset, bytes, engine_piece_crc, crc);
}

/**
 * engine_region_atomic() - perform an atomic operation
 * @region:  from engine_region_get(), not a far one
 * @offset:  of the word, which the caller has checked: aligned in memory
 * @opcode:  FABREX_OP_FETCH_ADD or FABREX_OP_CMP_SWAP
 * @operand: addend or new value
 * @compare: expected value
 *
 * Atomic for processors, too, also in the processes that map the memory.
 *
 * Context: Any.
 * Return: the old value
 */
u64 engine_region_atomic(struct engine_region *region, u64 offset, u8 opcode,
			 u64 operand, u64 compare)
{
	u64 pos = region->first + offset, old, now;
	void *va = kmap_local_page(region->pages[pos >> PAGE_SHIFT]);
	__le64 *word = va + offset_in_page(pos);
	__le64 was = READ_ONCE(*word), is;

	do {
		is = was;
		old = le64_to_cpu(is);
		now = operand;
		if (opcode == FABREX_OP_FETCH_ADD)
			now = old + operand;
		else if (old != compare)
			now = old;
		was = cmpxchg(word, is, cpu_to_le64(now));
	} while (was != is);
	kunmap_local(va);
	return old;
}
