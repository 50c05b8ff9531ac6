// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The ranks whose parts a value consists of, and how it was computed. Called by
 * check.c and explain.c. At most twice as many sets as ranks are in use.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "schedule/check.h"

int fxi_sets_make(struct sets *sets, uint32_t ranks, uint32_t reductions)
{
	uint32_t n = 2 * ranks + 2;

	sets->width = (ranks + 63) / 64;
	sets->mask = 15;
	while (sets->mask < 2 * reductions)
		sets->mask = sets->mask * 2 + 1;
	sets->words = malloc((size_t)n * sets->width * sizeof(*sets->words));
	sets->references = malloc(n * sizeof(*sets->references));
	sets->unused = malloc(n * sizeof(*sets->unused));
	sets->nodes = calloc((size_t)sets->mask + 1, sizeof(*sets->nodes));
	if (sets->words && sets->references && sets->unused && sets->nodes)
		return 0;
	return fxi_error(ENOMEM, "no memory to check the schedule");
}

void fxi_sets_free(struct sets *sets)
{
	free(sets->words);
	free(sets->references);
	free(sets->unused);
	free(sets->nodes);
}

void fxi_sets_clear(struct sets *sets, uint32_t ranks)
{
	sets->nunused = 0;
	sets->next = 0;
	sets->epoch++;
	sets->nnodes = ranks;
}

static uint64_t *words(const struct sets *sets, const struct value *v)
{
	return sets->words + (size_t)v->set * sets->width;
}

bool fxi_set_has(const struct sets *sets, const struct value *v, uint32_t rank)
{
	if (v->set == NOTHING)
		return v->count && v->lowest == rank;
	return words(sets, v)[rank / 64] >> rank % 64 & 1;
}

uint32_t fxi_set_common(const struct sets *sets, const struct value *a,
			const struct value *b)
{
	uint64_t both;
	uint32_t i;

	if (a->set == NOTHING)
		return fxi_set_has(sets, b, a->lowest) ? a->lowest : NOTHING;
	if (b->set == NOTHING)
		return fxi_set_has(sets, a, b->lowest) ? b->lowest : NOTHING;
	for (i = 0; i < sets->width; i++) {
		both = words(sets, a)[i] & words(sets, b)[i];
		if (both)
			return i * 64 + (uint32_t)__builtin_ctzll(both);
	}
	return NOTHING;
}

bool fxi_set_within(const struct sets *sets, const struct value *a,
		    const struct value *b)
{
	uint32_t i;

	if (a->count > b->count)
		return false;
	if (a->set == NOTHING)
		return fxi_set_has(sets, b, a->lowest);
	for (i = 0; i < sets->width; i++)
		if (words(sets, a)[i] & ~words(sets, b)[i])
			return false;
	return true;
}

void fxi_value_take(struct sets *sets, const struct value *v)
{
	if (v->set != NOTHING)
		sets->references[v->set]++;
}

void fxi_value_drop(struct sets *sets, const struct value *v)
{
	if (v->set != NOTHING && !--sets->references[v->set])
		sets->unused[sets->nunused++] = v->set;
}

static void add(struct sets *sets, struct value *into, const struct value *v)
{
	uint32_t i;

	if (v->set == NOTHING) {
		words(sets, into)[v->lowest / 64] |= 1ull << v->lowest % 64;
		return;
	}
	for (i = 0; i < sets->width; i++)
		words(sets, into)[i] |= words(sets, v)[i];
}

/* Makes the set one that no other value refers to. */
static void own(struct sets *sets, struct value *v)
{
	struct value old = *v;

	if (v->set != NOTHING && sets->references[v->set] == 1)
		return;
	v->set = sets->nunused ? sets->unused[--sets->nunused] :
				 sets->next++;
	sets->references[v->set] = 1;
	memset(words(sets, v), 0, sets->width * sizeof(uint64_t));
	add(sets, v, &old);
	fxi_value_drop(sets, &old);
}

/* The same two operands give the same node, in one chunk. */
static uint32_t node_of(struct sets *sets, uint32_t a, uint32_t b)
{
	uint64_t hash = ((uint64_t)a << 32 | b) * 0x9e3779b97f4a7c15u;
	uint32_t i = (uint32_t)(hash >> 32) & sets->mask;
	struct pair_node *n;

	for (;; i = (i + 1) & sets->mask) {
		n = &sets->nodes[i];
		if (n->epoch != sets->epoch)
			break;
		if (n->a == a && n->b == b)
			return n->node;
	}
	*n = (struct pair_node){ a, b, sets->nnodes++, sets->epoch };
	return n->node;
}

void fxi_value_reduce(struct sets *sets, struct value *into,
		      const struct value *v, bool swap)
{
	own(sets, into);
	add(sets, into, v);
	into->count += v->count;
	if (v->lowest < into->lowest)
		into->lowest = v->lowest;
	into->node = swap ? node_of(sets, v->node, into->node) :
			    node_of(sets, into->node, v->node);
}
