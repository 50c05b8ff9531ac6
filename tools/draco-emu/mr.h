/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory regions of one port: page lists behind unguessable keys.
 *
 * Locks: none. The port's own work is the only one to create, fill and destroy
 * regions; everybody else looks keys up with mr_get(), which enters the
 * region's gate, and reads the other fields only until mr_put(). Callers of
 * mr_get() are inside the gate of the port that owns the table.
 */
#ifndef EMU_MR_H
#define EMU_MR_H

#include <stddef.h>

#include <draco/regs.h>

#include "gate.h"
#include "key.h"

#define MR_MAX_PAGES	(1u << 20)	/* of one region */
#define MR_ALL_PAGES	(1u << 22)	/* of all regions of a port */

struct mr {
	struct gate gate;	/* open: valid */
	uint32_t pd;
	uint32_t access;
	uint32_t page_shift;
	_Atomic uint64_t key;	/* 0: none. Anybody may look */
	uint64_t length;
	uint64_t first;
	uint64_t npages;
	uint64_t given;
	uint64_t *pages;
	uint64_t peers[4];
	bool used;
	bool dying;		/* to be destroyed once it is drained */
};

struct mr_table {
	struct mr *mrs;
	uint32_t max;
	uint32_t index_mask;	/* of a key */
	uint32_t *free;
	uint32_t nfree;
	uint64_t pages;		/* held by all of them */
	void (*drained)(void *arg); /* a closing region has no access left */
	/* a region is complete and will be valid next */
	void (*granted)(void *arg, const struct mr *mr);
	void *arg;
};

int mr_table_init(struct mr_table *t, uint32_t max,
		  void (*drained)(void *arg), void *arg);
void mr_table_free(struct mr_table *t);
/* Forget all regions; nobody is inside the port's gate. */
void mr_table_clear(struct mr_table *t);

static inline void mr_put(struct mr_table *t, struct mr *mr)
{
	if (gate_leave(&mr->gate))
		t->drained(t->arg);
}

/* The valid region with this key, held, or NULL. Any thread. */
static inline struct mr *mr_get(struct mr_table *t, uint64_t key)
{
	uint32_t index = key & t->index_mask;
	struct mr *mr;

	if (index >= t->max)
		return NULL;
	mr = &t->mrs[index];
	if (!gate_enter(&mr->gate))
		return NULL;
	if (mr->key == key)
		return mr;
	/* A stale key met a new region that may be closing just now. */
	mr_put(t, mr);
	return NULL;
}

/* There is such a region, though perhaps not a valid one. Any thread. */
static inline bool mr_exists(struct mr_table *t, uint64_t key)
{
	uint32_t index = key & t->index_mask;

	return key && index < t->max && t->mrs[index].key == key;
}

/* Bytes at @offset .. are within the region, without wrap-around. */
static inline bool mr_covers(const struct mr *mr, uint64_t offset,
			     uint64_t length)
{
	return offset <= mr->length && length <= mr->length - offset;
}

static inline bool mr_open_to(const struct mr *mr, unsigned int peer)
{
	return peer < 256 && mr->peers[peer / 64] >> (peer % 64) & 1;
}

/*
 * Bus address of byte @offset and how many bytes, up to @max, follow at
 * consecutive addresses. The range must be covered.
 */
uint64_t mr_run(const struct mr *mr, uint64_t offset, uint64_t max,
		uint64_t *addr);

/* The rest: the port's own work. Status DRACO_SC_*. */
unsigned int mr_create(struct mr_table *t, const struct draco_mr_create *c,
		       uint32_t *index, uint64_t *key);
unsigned int mr_add_pages(struct mr_table *t, uint32_t index, uint64_t first,
			  uint64_t shift, const uint64_t *pages, size_t n);
struct mr *mr_find(struct mr_table *t, uint32_t index);
/* After its gate has drained: all pages to be given again; or gone. */
void mr_forget_pages(struct mr *mr);
void mr_destroy(struct mr_table *t, struct mr *mr);

#endif
