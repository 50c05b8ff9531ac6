/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Graphs nobody thought of. Called by tests. */
#ifndef PLAN_TESTS_RANDOM_H
#define PLAN_TESTS_RANDOM_H

#include "plan/plan.h"

/* splitmix64: the same numbers everywhere. */
uint64_t random_next(uint64_t *state);
uint32_t random_below(uint64_t *state, uint32_t n);

/*
 * 2 to @gpus GPUs and up to @switches switches, joined; one in three has links
 * of the same capacity both ways, one in three arcs of any capacity between
 * GPUs and closed ways through switches, one in three boxes of GPUs behind
 * switches. plan_graph_check() passes.
 */
struct plan_graph *random_graph(uint64_t seed, uint32_t gpus,
				uint32_t switches);

#endif
