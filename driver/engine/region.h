/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory regions behind keys, and access to their memory: by the processor, or
 * by a DMA channel of the backend. For agent.c, op.c and port.c.
 */
#ifndef _ENGINE_REGION_H
#define _ENGINE_REGION_H

#include "engine.h"

/**
 * struct engine_region - a region
 * @gate:   open while it is valid
 * @rcu:    freed after those that look keys up
 * @engine: engine
 * @key:    64 bits, of which the low ones are the number
 * @pd:     protection domain
 * @access: FABREX_ACCESS_*
 * @length: in bytes
 * @first:  offset of byte 0 in the first page
 * @peers:  bit mask of those who may access it
 * @valid:  memory is supplied
 * @far:    processors do not reach it: it has @bus, otherwise @pages
 * @npages: of @pages
 * @pages:  pinned by the core
 * @bus:    bus addresses of pages, for the channel
 * @shift:  log2 of the size of these
 * @align:  what a channel can store is a multiple of this, at a multiple of it
 * @linker: the wire that has been asked to link them, or NULL
 * @link:   from its ->link(); NULL or an ERR_PTR if they are not linked
 * @where:  likewise
 */
struct engine_region {
	struct engine_gate gate;
	struct rcu_head rcu;
	struct fabrex_engine *engine;
	u64 key;
	u32 pd;
	u32 access;
	u64 length;
	u64 first;
	u64 peers[FABREX_MAX_PEERS / 64];
	bool valid;
	bool far;
	u64 npages;
	struct page **pages;
	dma_addr_t *bus;
	u32 shift;
	u32 align;
	struct fabrex_wire *linker;
	void *link;
	u64 where;
};

/* What is done with an extent of a region that is at bus address @addr. */
typedef u8 (*engine_extent_fn)(void *ctx, dma_addr_t addr, u32 at, u32 bytes);

int engine_region_create(struct fabrex_engine *engine,
			 const struct fabrex_mr_params *params, u32 *number,
			 u64 *key);
int engine_region_supply(struct fabrex_engine *engine, u32 number,
			 const struct fabrex_mr_memory *memory);
int engine_region_invalidate(struct fabrex_engine *engine, u32 number);
int engine_region_destroy(struct fabrex_engine *engine, u32 number);

struct engine_region *engine_region_get(struct fabrex_engine *engine, u64 key);
void engine_region_put(struct engine_region *region);
bool engine_region_exists(struct fabrex_engine *engine, u64 key);
bool engine_region_far(struct fabrex_engine *engine, u64 key);

bool engine_region_link(struct engine_region *region,
			struct fabrex_wire *wire);
bool engine_region_linked(const struct engine_region *region,
			  const struct fabrex_wire *wire);

u8 engine_region_each(struct engine_region *region, u64 offset, u32 bytes,
		      engine_piece_fn fn, void *ctx);
u8 engine_region_read(struct engine_region *region, u64 offset, void *to,
		      u32 bytes);
u8 engine_region_write(struct engine_region *region, u64 offset,
		       const void *from, u32 bytes);
u8 engine_region_crc(struct engine_region *region, u64 offset, u32 bytes,
		     u32 *crc);
u64 engine_region_atomic(struct engine_region *region, u64 offset, u8 opcode,
			 u64 operand, u64 compare);

/* device.c */
int engine_device_fill(struct engine_region *region,
		       const struct fabrex_mr_memory *memory);
u8 engine_device_each(struct engine_region *region, u64 offset, u32 bytes,
		      engine_extent_fn fn, void *ctx);
u8 engine_device_load(struct engine_region *region, u64 offset, u32 bytes,
		      engine_piece_fn fn, void *ctx);
u8 engine_device_store(struct engine_region *region, u64 offset,
		       const void *from, u32 bytes);
bool engine_device_suits(const struct engine_region *region, u64 offset,
			 u64 bytes);

#endif
