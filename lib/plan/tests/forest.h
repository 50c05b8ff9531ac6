/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the solver finds, as a schedule for the checker. Called by tests. */
#ifndef PLAN_TESTS_FOREST_H
#define PLAN_TESTS_FOREST_H

#include "plan/solve/solve.h"

/* Each node's box, as plan_boxes() takes it; to be freed. */
uint32_t *boxes_of(const struct plan_graph *g);
/*
 * Trees over @g's own edges: of all roots (all-gather), or of @root
 * (broadcast). NULL: out of memory, or a path is no route.
 */
struct plan_schedule *forest_schedule(const struct plan_graph *g,
				      enum plan_collective c, uint32_t root,
				      const struct plan_solution *s);

#endif
