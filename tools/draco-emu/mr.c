// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory regions: creation, pages, destruction. Called by admin_mr.c and, for
 * mr_run(), by the DMA engine and windows.
 */
#include "mr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NOT_GIVEN	UINT64_MAX	/* no page begins there */
#define ACCESS_ALL	(DRACO_ACCESS_LOCAL_WRITE | DRACO_ACCESS_REMOTE_READ | \
			 DRACO_ACCESS_REMOTE_WRITE | DRACO_ACCESS_REMOTE_ATOMIC)

int mr_table_init(struct mr_table *t, uint32_t max,
		  void (*drained)(void *arg), void *arg)
{
	t->mrs = calloc(max, sizeof(*t->mrs));
	t->free = calloc(max, sizeof(*t->free));
	if (!t->mrs || !t->free) {
		mr_table_free(t);
		return -ENOMEM;
	}
	t->max = max;
	t->index_mask = key_index_mask(max);
	t->nfree = max;
	t->pages = 0;
	t->drained = drained;
	t->arg = arg;
	for (uint32_t i = 0; i < max; i++)
		t->free[i] = max - 1 - i;
	return 0;
}

void mr_table_clear(struct mr_table *t)
{
	for (uint32_t i = 0; t->nfree < t->max && i < t->max; i++) {
		struct mr *mr = &t->mrs[i];

		gate_close(&mr->gate);
		if (mr->used)
			mr_destroy(t, mr);
	}
}

void mr_table_free(struct mr_table *t)
{
	if (t->mrs)
		mr_table_clear(t);
	free(t->mrs);
	free(t->free);
	t->mrs = NULL;
	t->free = NULL;
	t->max = 0;
}

uint64_t mr_run(const struct mr *mr, uint64_t offset, uint64_t max,
		uint64_t *addr)
{
	uint64_t size = 1ull << mr->page_shift;
	uint64_t pos = mr->first + offset;
	uint64_t page = pos >> mr->page_shift;
	uint64_t in = pos & (size - 1);
	uint64_t len = size - in;

	*addr = mr->pages[page] + in;
	while (len < max && page + 1 < mr->npages &&
	       mr->pages[page + 1] == mr->pages[page] + size) {
		len += size;
		page++;
	}
	return len < max ? len : max;
}

static bool valid_params(const struct draco_mr_create *c)
{
	uint64_t size, end;

	if (c->__rsvd || !c->length || c->page_shift < 12 ||
	    c->page_shift > 30 || c->access & ~ACCESS_ALL)
		return false;
	size = 1ull << c->page_shift;
	if (c->first >= size || !c->npages || c->npages > MR_MAX_PAGES)
		return false;
	if (__builtin_add_overflow(c->first, c->length, &end))
		return false;
	/* Exactly as many pages as the bytes need. */
	return end > (c->npages - 1) << c->page_shift &&
	       end <= c->npages << c->page_shift;
}

void mr_forget_pages(struct mr *mr)
{
	memset(mr->pages, 0xff, mr->npages * sizeof(*mr->pages));
	mr->given = 0;
}

static void fill(struct mr *mr, const struct draco_mr_create *c, uint64_t key)
{
	mr->pd = c->pd;
	mr->access = c->access;
	mr->page_shift = c->page_shift;
	mr->key = key;
	mr->length = c->length;
	mr->first = c->first;
	mr->npages = c->npages;
	memcpy(mr->peers, c->peers, sizeof(mr->peers));
	mr->used = true;
	mr_forget_pages(mr);
}

unsigned int mr_create(struct mr_table *t, const struct draco_mr_create *c,
		       uint32_t *index, uint64_t *key)
{
	struct mr *mr;

	if (!valid_params(c))
		return DRACO_SC_BAD_FIELD;
	if (!t->nfree || c->npages > MR_ALL_PAGES - t->pages)
		return DRACO_SC_NO_RESOURCE;
	*index = t->free[t->nfree - 1];
	mr = &t->mrs[*index];
	if (!key_new(*index, t->max, key))
		return DRACO_SC_INTERNAL;
	mr->pages = malloc(c->npages * sizeof(*mr->pages));
	if (!mr->pages)
		return DRACO_SC_NO_RESOURCE;
	t->nfree--;
	t->pages += c->npages;
	fill(mr, c, *key);
	return DRACO_SC_OK;
}

struct mr *mr_find(struct mr_table *t, uint32_t index)
{
	struct mr *mr = index < t->max ? &t->mrs[index] : NULL;

	return mr && mr->used && !mr->dying ? mr : NULL;
}

/* Every page is given exactly once, or none of these is stored. */
static bool store_pages(struct mr *mr, uint64_t first, const uint64_t *pages,
			size_t n)
{
	uint64_t size = 1ull << mr->page_shift;
	size_t i;

	for (i = 0; i < n; i++) {
		if (pages[i] & (size - 1) || pages[i] > UINT64_MAX - size ||
		    mr->pages[first + i] != NOT_GIVEN)
			break;
		mr->pages[first + i] = pages[i];
	}
	if (i == n)
		return true;
	while (i--)
		mr->pages[first + i] = NOT_GIVEN;
	return false;
}

/* The memory was moved: it is now cut into pages of another size. */
static unsigned int cut_anew(struct mr_table *t, struct mr *mr, uint64_t shift)
{
	uint64_t *pages, npages;

	if (mr->given || shift < 12 || shift > 30 || mr->first >> shift)
		return DRACO_SC_BAD_FIELD;
	npages = ((mr->first + mr->length - 1) >> shift) + 1;
	if (npages > MR_MAX_PAGES ||
	    npages > MR_ALL_PAGES - (t->pages - mr->npages))
		return DRACO_SC_NO_RESOURCE;
	pages = malloc(npages * sizeof(*pages));
	if (!pages)
		return DRACO_SC_NO_RESOURCE;
	free(mr->pages);
	t->pages += npages - mr->npages;
	mr->pages = pages;
	mr->npages = npages;
	mr->page_shift = shift;
	mr_forget_pages(mr);
	return DRACO_SC_OK;
}

unsigned int mr_add_pages(struct mr_table *t, uint32_t index, uint64_t first,
			  uint64_t shift, const uint64_t *pages, size_t n)
{
	struct mr *mr = mr_find(t, index);
	unsigned int status;

	if (!mr)
		return DRACO_SC_BAD_ID;
	/* Valid, or still being invalidated. */
	if (!gate_is_drained(&mr->gate))
		return DRACO_SC_BUSY;
	if (shift && shift != mr->page_shift) {
		status = cut_anew(t, mr, shift);
		if (status)
			return status;
	}
	if (first >= mr->npages || n > mr->npages - first)
		return DRACO_SC_BAD_FIELD;
	if (!store_pages(mr, first, pages, n))
		return DRACO_SC_BAD_FIELD;
	mr->given += n;
	if (mr->given < mr->npages)
		return DRACO_SC_OK;
	if (t->granted)
		t->granted(t->arg, mr);
	gate_open(&mr->gate);
	return DRACO_SC_OK;
}

void mr_destroy(struct mr_table *t, struct mr *mr)
{
	t->pages -= mr->npages;
	free(mr->pages);
	mr->pages = NULL;
	mr->used = false;
	mr->dying = false;
	mr->key = 0;
	t->free[t->nfree++] = mr - t->mrs;
}
