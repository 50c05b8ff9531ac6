/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Operations without end on one queue, in a thread of their own, and what
 * became of them. Used by the puppet of this directory.
 */
#ifndef SELFTEST_STORM_H
#define SELFTEST_STORM_H

#include "raw.h"

#define STORM_STATUS	32

struct storm_count {
	uint64_t status[STORM_STATUS];	/* completions by FABREX_WC_* */
	uint64_t relapses;	/* OK after a failure */
	uint64_t lost;		/* posted, and never completed */
};

/* Repeat an operation, so many at a time, until storm_stop(). */
int storm_start(unsigned int n, struct raw_queue *queue,
		const struct fabrex_sqe *sqe, unsigned int depth);
/* OK completions so far, and failures. */
void storm_look(unsigned int n, uint64_t *good, uint64_t *bad);
/* Ends when all that was posted has completed, or did not in time. */
int storm_stop(unsigned int n, struct storm_count *count);

#endif
