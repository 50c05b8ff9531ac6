/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Page lists of regions, rings of queues: arithmetic without side effects. For
 * pages.c, queue.c and map.c, and for the tests in user space.
 */
#ifndef _FABREX_LAYOUT_H
#define _FABREX_LAYOUT_H

#include <linux/types.h>
#include <linux/fabrex.h>

#define FABREX_PAGE_SHIFT_MIN	12
#define FABREX_PAGE_SHIFT_MAX	30

/**
 * struct fabrex_layout - how a region of memory is cut into pages
 * @end:    bus address at which the extent before ended
 * @bits:   all addresses at which runs of memory begin or end, or'ed
 * @length: bytes so far
 */
struct fabrex_layout {
	u64 end;
	u64 bits;
	u64 length;
};

void fabrex_layout_add(struct fabrex_layout *layout, u64 addr, u64 length);
u32 fabrex_layout_shift(const struct fabrex_layout *layout);
bool fabrex_layout_page(u64 length, u64 pos, u32 shift, u64 *off);
u64 fabrex_layout_clip(u64 pos, u64 length, u64 from, u64 to, u64 *off);

/* The parts of a queue's memory. */
enum fabrex_part {
	FABREX_PART_CTRL,
	FABREX_PART_SQ,
	FABREX_PART_CQ,
	FABREX_PART_RQ,
	FABREX_PARTS
};

/**
 * struct fabrex_geometry - sizes of a queue's rings
 * @size:   bytes of each part, multiple of the page size; 0: not there
 * @offset: where it is in the mapping
 * @total:  bytes of all
 */
struct fabrex_geometry {
	u32 size[FABREX_PARTS];
	u32 offset[FABREX_PARTS];
	u64 total;
};

/**
 * struct fabrex_queue_limits - of a port
 * @max_sq:   entries
 * @max_cq:   entries
 * @max_rq:   cells
 * @max_cell: bytes
 * @page_size: of the machine, a power of two of at least FABREX_PAGE_SIZE
 */
struct fabrex_queue_limits {
	u32 max_sq;
	u32 max_cq;
	u32 max_rq;
	u32 max_cell;
	u32 page_size;
};

int fabrex_geometry_init(struct fabrex_geometry *geo,
			 const struct fabrex_queue_limits *limits,
			 const struct fabrex_queue_create *cmd);

#endif
