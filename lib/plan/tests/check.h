/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The planner's results, looked at by code that shares nothing with what made
 * them but the structures. Every function returns true, or false and one
 * sentence in @why (at least CHECK_WHY bytes).
 */
#ifndef PLAN_TESTS_CHECK_H
#define PLAN_TESTS_CHECK_H

#include "plan/optimum.h"

#define CHECK_WHY 256

/*
 * Chunk by chunk with sets of ranks in place of bytes: every shard reaches
 * every rank that needs it, reduced once with every part; routes are ways over
 * edges that exist, through no GPU. @algbw: the rate that the flows allow, as
 * this computes it from them.
 */
bool check_schedule(const struct plan_graph *g, const struct plan_schedule *s,
		    struct plan_ratio *algbw, char *why);
/* A bound follows from its certificate: set, edges, sum, quotient. */
bool check_bound(const struct plan_graph *g, enum plan_collective c,
		 uint32_t root, const struct plan_bound *b, char *why);
/* All of an optimum; what is said to be proved is. */
bool check_optimum(const struct plan_graph *g, enum plan_collective c,
		   uint32_t root, const struct plan_optimum *o, char *why);

#endif
