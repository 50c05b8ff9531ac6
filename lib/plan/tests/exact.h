/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Optima of random graphs against brute force. Called by tests. */
#ifndef PLAN_TESTS_EXACT_H
#define PLAN_TESTS_EXACT_H

#include <stdint.h>

/*
 * @count graphs from @seed on, every collective on each: a point for each
 * collective, and what went wrong with which seed.
 */
void exact_run(uint64_t seed, uint32_t count, uint32_t gpus,
	       uint32_t switches);

#endif
