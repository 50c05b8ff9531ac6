// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory mapped for DMA: whether the device can access it directly, and its
 * division into pages. Called by pin.c, dmabuf.c and mr.c, and by backends.
 */
#include <linux/dma-mapping.h>
#include <linux/sched.h>

#include "memory.h"

/**
 * fabrex_coherent() - check that the device accesses the memory itself
 * @dev: that does the DMA
 * @sgt: mapped for it
 *
 * Nothing synchronises accesses of user space with those of the device.
 *
 * Context: Any.
 * Return: false if DMA is bounced or not coherent
 */
bool fabrex_coherent(struct device *dev, const struct sg_table *sgt)
{
	struct scatterlist *sg;
	int i;

	for_each_sgtable_dma_sg(sgt, sg, i)
		if (fabrex_dma_need_sync(dev, sg_dma_address(sg)))
			return false;
	return true;
}

/**
 * fabrex_memory_complete() - check that there is enough memory for a region
 * @memory: of the region
 *
 * Context: Any.
 * Return: true if so
 */
bool fabrex_memory_complete(const struct fabrex_mr_memory *memory)
{
	struct scatterlist *sg;
	u64 length = 0;
	int i;

	if (memory->dev) {
		for_each_sgtable_dma_sg(memory->sgt, sg, i)
			length += sg_dma_len(sg);
	} else {
		for_each_sgtable_sg(memory->sgt, sg, i)
			length += sg->length;
	}
	return length >= memory->to;
}

static void fabrex_pages_rewind(struct fabrex_pages *pages)
{
	pages->sg = pages->memory->sgt->sgl;
	pages->left = pages->memory->sgt->nents;
	pages->pos = 0;
	pages->done = 0;
	pages->off = 0;
}

/* Length of the current extent's part that belongs to the memory; 0 if none
 * does.
 */
static u64 fabrex_pages_part(const struct fabrex_pages *pages, u64 *addr)
{
	u64 length, off;

	length = fabrex_layout_clip(pages->pos, sg_dma_len(pages->sg),
				    pages->memory->from, pages->memory->to,
				    &off);
	*addr = sg_dma_address(pages->sg) + off;
	return length;
}

static void fabrex_pages_advance(struct fabrex_pages *pages, u64 length)
{
	pages->done += length;
	pages->pos += sg_dma_len(pages->sg);
	pages->off = 0;
	pages->sg = sg_next(pages->sg);
	pages->left--;
}

/**
 * fabrex_pages_begin() - begin to divide memory into pages
 * @pages:  iterator; page size, number of pages and offset are set
 * @memory: must not change before the last fabrex_pages_next()
 *
 * Context: Any.
 */
void fabrex_pages_begin(struct fabrex_pages *pages,
			const struct fabrex_mr_memory *memory)
{
	struct fabrex_layout layout = {};
	u64 addr, length;

	pages->memory = memory;
	fabrex_pages_rewind(pages);
	while (pages->left) {
		length = fabrex_pages_part(pages, &addr);
		if (length)
			fabrex_layout_add(&layout, addr, length);
		fabrex_pages_advance(pages, length);
	}
	fabrex_pages_rewind(pages);
	pages->shift = fabrex_layout_shift(&layout);
	pages->count = layout.length >> pages->shift;
	pages->first = memory->offset;
}
FABREX_EXPORT(fabrex_pages_begin);

/**
 * fabrex_pages_next() - get the next page
 * @pages: from fabrex_pages_begin()
 * @addr:  result: its DMA address
 *
 * Context: Process; sleeps.
 * Return: false after the last one
 */
bool fabrex_pages_next(struct fabrex_pages *pages, u64 *addr)
{
	u64 length;

	while (pages->left) {
		length = fabrex_pages_part(pages, addr);
		if (fabrex_layout_page(length, pages->done, pages->shift,
				       &pages->off)) {
			*addr += pages->off;
			pages->off += 1ull << pages->shift;
			return true;
		}
		fabrex_pages_advance(pages, length);
		cond_resched();
	}
	return false;
}
FABREX_EXPORT(fabrex_pages_next);
