// SPDX-License-Identifier: LGPL-2.1-or-later
/* Every cut of a small graph. Called by tests. */
#include <stdlib.h>

#include "brute.h"

/* Capacity out of each set of nodes, sets as bits. */
static uint64_t out_of(const struct plan_graph *g, uint32_t set)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < g->nedges; i++)
		if ((set >> g->edges[i].from & 1) &&
		    !(set >> g->edges[i].to & 1))
			sum += g->edges[i].capacity;
	return sum;
}

static uint32_t ranks_in(const struct plan_graph *g, uint32_t set)
{
	uint32_t i, n = 0;

	for (i = 0; i < g->nranks; i++)
		n += set >> g->gpus[i] & 1;
	return n;
}

static struct plan_ratio allowed(const struct plan_graph *g,
				 enum plan_collective c, uint32_t set,
				 uint32_t inside)
{
	uint64_t capacity = out_of(g, set);

	if (c == PLAN_ALL_GATHER)
		return plan_ratio(capacity * g->nranks, inside);
	if (c == PLAN_REDUCE_SCATTER)
		return plan_ratio(capacity * g->nranks, g->nranks - inside);
	return plan_ratio(capacity, 1);
}

struct plan_ratio brute_bound(const struct plan_graph *g,
			      enum plan_collective c, uint32_t root)
{
	struct plan_ratio best = { 0, 1 }, r;
	uint32_t set, inside;
	bool have = false;

	for (set = 1; set < 1u << g->nnodes; set++) {
		inside = ranks_in(g, set);
		if (!inside || inside == g->nranks)
			continue;
		if (c == PLAN_BROADCAST && !(set >> g->gpus[root] & 1))
			continue;
		if (c == PLAN_REDUCE && (set >> g->gpus[root] & 1))
			continue;
		r = allowed(g, c, set, inside);
		if (!have || plan_ratio_compare(r, best) < 0)
			best = r;
		have = true;
	}
	return best;
}
