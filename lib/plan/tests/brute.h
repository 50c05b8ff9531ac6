/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Bounds by trying every cut there is: graphs with at most 20 nodes. Shares
 * nothing with the planner but the graph.
 */
#ifndef PLAN_TESTS_BRUTE_H
#define PLAN_TESTS_BRUTE_H

#include "plan/plan.h"

/* Greatest algbw that all cuts allow; for all-reduce, plain cuts only. */
struct plan_ratio brute_bound(const struct plan_graph *g,
			      enum plan_collective c, uint32_t root);

#endif
