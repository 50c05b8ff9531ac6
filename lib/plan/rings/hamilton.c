// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Decides whether any ring exists, exactly and for few ranks, over all sets of
 * them (Held, Karp, "A dynamic programming approach to sequencing problems",
 * 1962). Called by rings.c if the search has found none.
 */
#include <errno.h>
#include <stdlib.h>

#include "plan/rings/set.h"

/* To where each rank has a hop; ranks 1 on are bits 0 on. */
static void list_hops(struct plan_ringset *s, uint32_t *to)
{
	uint32_t u, v;

	for (u = 0; u < s->n; u++)
		for (to[u] = 0, v = 1; v < s->n; v++)
			if (u != v && plan_ringset_hop(s, u, v))
				to[u] |= 1u << (v - 1);
}

/* Of each set: the ranks at which a path from rank 0 through it can end. */
static void fill(const uint32_t *to, uint32_t n, uint32_t *ends)
{
	uint32_t set, left, v, all = (1u << (n - 1)) - 1;

	for (v = 0; v < n - 1; v++)
		if (to[0] & 1u << v)
			ends[1u << v] = 1u << v;
	for (set = 1; set <= all; set++)
		for (left = ends[set]; left; left &= left - 1) {
			uint32_t on = to[__builtin_ctz(left) + 1] & all & ~set;

			for (; on; on &= on - 1)
				ends[set | (on & -on)] |= on & -on;
		}
}

/* From the last rank back to the first. */
static bool walk_back(struct plan_ringset *s, const uint32_t *to,
		      const uint32_t *ends, uint32_t *order)
{
	uint32_t set = (1u << (s->n - 1)) - 1, at = 0, i, before;

	for (i = s->n - 1; i; i--) {
		before = ends[set];
		while (before && !(i == s->n - 1 ?
				   plan_ringset_hop(s, (uint32_t)
						    __builtin_ctz(before) + 1,
						    0) :
				   to[__builtin_ctz(before) + 1] >> (at - 1) & 1))
			before &= before - 1;
		if (!before)
			return false;
		at = (uint32_t)__builtin_ctz(before) + 1;
		order[i] = at;
		set &= ~(1u << (at - 1));
	}
	order[0] = 0;
	return true;
}

int plan_hamilton(struct plan_ringset *s, uint32_t *order)
{
	uint32_t to[PLAN_HAMILTON], *ends;
	int err = 0;

	if (s->n > PLAN_HAMILTON)
		return -E2BIG;
	ends = calloc((size_t)1 << (s->n - 1), sizeof(*ends));
	if (!ends)
		return -ENOMEM;
	list_hops(s, to);
	fill(to, s->n, ends);
	if (!walk_back(s, to, ends, order))
		err = -ENOENT;
	free(ends);
	return err;
}
