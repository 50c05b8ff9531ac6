/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The all-reduce's own bound. For bound.c and orient.c only. */
#ifndef LIB_PLAN_PARTITION_H
#define LIB_PLAN_PARTITION_H

#include "plan/optimum.h"

/* partition.c: the best partition (optimum.h): all but busbw of @b. */
int plan_partition(const struct plan_graph *g, struct plan_bound *b,
		   struct plan_error *e);
/*
 * What the greedy algorithm finds for the best value C / 2f, f = *factor: needs
 * of ranks with sum(needs[X]) >= C - f in(X) for each set X of ranks, as small as
 * can be for ranks 0 to n - 2 together (X without the last rank).
 */
int plan_partition_needs(const struct plan_graph *g, int64_t *needs,
			 uint32_t *factor, struct plan_error *e);
/*
 * bound.c: the cut around a set of nodes; capacity and edges out of it, or
 * (@in) into it.
 */
int plan_cut_make(const struct plan_graph *g, const bool *inside, bool in,
		  struct plan_cut *out);
/* bound.c: the least cut between any two ranks, all but busbw of @b. */
int plan_least_cut(const struct plan_graph *g, struct plan_bound *b,
		   struct plan_error *e);

#endif
