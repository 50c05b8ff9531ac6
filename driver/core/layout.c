// SPDX-License-Identifier: GPL-2.0-only
/*
 * Page lists of regions, rings of queues: arithmetic without side effects.
 * Called by mr.c and queue.c and, in user space, by driver/tests.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/string.h>

#include "layout.h"

/**
 * fabrex_layout_add() - add the next extent of a region
 * @layout: zeroed at first
 * @addr:   bus address, multiple of 4096
 * @length: in bytes, likewise
 *
 * Adjacent extents are merged.
 *
 * Context: Any.
 */
void fabrex_layout_add(struct fabrex_layout *layout, u64 addr, u64 length)
{
	if (!layout->length || layout->end != addr)
		layout->bits |= layout->end | addr;
	layout->end = addr + length;
	layout->length += length;
}

/**
 * fabrex_layout_shift() - get the largest page size for a region
 * @layout: contains all extents
 *
 * Every page lies within the region, so that a page list names no other memory.
 *
 * Context: Any.
 * Return: log2 of it, FABREX_PAGE_SHIFT_MIN .. FABREX_PAGE_SHIFT_MAX
 */
u32 fabrex_layout_shift(const struct fabrex_layout *layout)
{
	u64 bits = layout->bits | layout->end |
		   (1ull << FABREX_PAGE_SHIFT_MAX);
	u32 shift = FABREX_PAGE_SHIFT_MIN;

	while (!(bits & (1ull << shift)))
		shift++;
	return shift;
}

/**
 * fabrex_layout_page() - find the next page that begins in an extent
 * @length: of the extent, in bytes
 * @pos:    position of the extent in the region
 * @shift:  from fabrex_layout_shift()
 * @off:    in: offset in the extent to search from; out: offset of the page
 *
 * Context: Any.
 * Return: true if there is one
 */
bool fabrex_layout_page(u64 length, u64 pos, u32 shift, u64 *off)
{
	u64 mask = (1ull << shift) - 1;
	u64 at = (pos + *off + mask) & ~mask;

	*off = at - pos;
	return *off < length;
}

/**
 * fabrex_layout_clip() - intersect an extent with a range
 * @pos:    position of the extent
 * @length: of the extent, in bytes
 * @from:   start of the range
 * @to:     end of the range
 * @off:    out: offset in the extent at which the intersection begins
 *
 * Context: Any.
 * Return: length of the intersection, 0 if it is empty
 */
u64 fabrex_layout_clip(u64 pos, u64 length, u64 from, u64 to, u64 *off)
{
	u64 first = max_t(u64, pos, from), last = min_t(u64, pos + length, to);

	*off = first - pos;
	return first < last ? last - first : 0;
}

static bool entries_ok(u32 n, u32 min, u32 max)
{
	return is_power_of_2(n) && n >= min && n <= max;
}

static bool receive_ok(const struct fabrex_queue_limits *limits,
		       const struct fabrex_queue_create *cmd)
{
	if (!cmd->rq_entries)
		return !cmd->cell_size;
	return entries_ok(cmd->rq_entries, 1,
			  min_t(u32, limits->max_rq, FABREX_RQ_MAX)) &&
	       entries_ok(cmd->cell_size, FABREX_CELL_MIN,
			  min_t(u32, limits->max_cell, FABREX_CELL_MAX));
}

/* Each part begins on a page of its own, because
 * pages are mapped as a whole.
 */
static u32 page_round(const struct fabrex_queue_limits *limits, u32 bytes)
{
	return (bytes + limits->page_size - 1) & ~(limits->page_size - 1);
}

/**
 * fabrex_geometry_init() - validate the sizes of a queue and lay out its rings
 * @geo:    result
 * @limits: of the port
 * @cmd:    request
 *
 * Context: Any.
 * Return: 0; -EINVAL if a number exceeds its limit or is inconsistent
 */
int fabrex_geometry_init(struct fabrex_geometry *geo,
			 const struct fabrex_queue_limits *limits,
			 const struct fabrex_queue_create *cmd)
{
	int i;

	memset(geo, 0, sizeof(*geo));
	if (!entries_ok(cmd->sq_entries, FABREX_SQ_MIN,
			min_t(u32, limits->max_sq, FABREX_SQ_MAX)))
		return -EINVAL;
	if (!receive_ok(limits, cmd))
		return -EINVAL;
	if (!entries_ok(cmd->cq_entries, cmd->sq_entries + cmd->rq_entries,
			min_t(u32, limits->max_cq, FABREX_CQ_MAX)))
		return -EINVAL;
	geo->size[FABREX_PART_CTRL] = page_round(limits, FABREX_PAGE_SIZE);
	geo->size[FABREX_PART_SQ] =
		page_round(limits, cmd->sq_entries * sizeof(struct fabrex_sqe));
	geo->size[FABREX_PART_CQ] =
		page_round(limits, cmd->cq_entries * sizeof(struct fabrex_cqe));
	geo->size[FABREX_PART_RQ] =
		page_round(limits, cmd->rq_entries * cmd->cell_size);
	for (i = 0; i < FABREX_PARTS; i++) {
		if (geo->size[i])
			geo->offset[i] = geo->total;
		geo->total += geo->size[i];
	}
	return 0;
}
