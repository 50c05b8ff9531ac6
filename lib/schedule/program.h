/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What one rank has to do in a schedule. program.c derives it, whoever executes
 * the schedule follows it; docs/schedule.md proves that this cannot deadlock.
 */
#ifndef LIB_SCHEDULE_PROGRAM_H
#define LIB_SCHEDULE_PROGRAM_H

#include "schedule/schedule.h"

/* Receives, and sends, that one pass over memory may combine. */
#define PROGRAM_RUN	62u

enum act_flags {
	ACT_SEND = 1,		/* else it receives */
	ACT_REDUCE = 2,		/* into what this rank has */
	ACT_FULL = 4,		/* and the reduction is complete then */
	ACT_SWAP = 8,		/* what arrives is the left operand */
	ACT_FRESH = 16,		/* what this rank has is still where the
				 * caller put it
				 */
	ACT_KEEP = 32,		/* the result is needed once it is sent on */
	ACT_LATE = 64,		/* not at the same time as the one before */
	ACT_FIRST = 128,	/* first receive of its part */
	ACT_ANYTIME = 256,	/* the receiver can take it at once, whatever
				 * else it has received and sent
				 */
};

/* This rank's end of one transfer. */
struct act {
	uint32_t transfer;	/* its number in the schedule */
	uint32_t part;		/* index in parts */
	uint32_t stage;		/* rounds that it lags: see lanes */
	uint32_t need, needs;	/* acts [need, need + needs) come before it */
	uint16_t peer;
	uint16_t flags;
	/*
	 * A run: receives and then sends of a part that one pass over memory
	 * can combine. From a receive on, how many are left of both.
	 */
	uint16_t receives, sends;
};

/* A chunk that concerns this rank. Its acts are consecutive. */
struct local_part {
	uint32_t chunk, shard;
	uint32_t first, n;	/* acts */
	uint32_t stages;	/* from its first act to its last */
	bool begins, ends;	/* in the caller's send, recv */
	bool writes;		/* it is received */
};

/*
 * All transfers to, or from, one other rank, in the order that is the same at
 * both: round r of act i has number r + stage, and those of the same number are
 * in the order of the lane.
 */
struct lane {
	uint32_t first, n;	/* in lane_acts */
	uint32_t low, high;	/* least and greatest stage */
	uint16_t peer;
	bool sends;
};

struct program {
	struct program *next;
	uint32_t rank;
	uint32_t nacts, nparts, nlanes;
	struct act *acts;
	struct local_part *parts;
	struct lane *lanes;
	uint32_t *lane_acts;
	uint32_t *lane_of;	/* by act */
	uint32_t *by_transfer;	/* acts, in the order of their transfers */
};

/*
 * The program of @rank, derived when it is first asked for and kept with the
 * schedule. NULL: no memory. Any thread may call it.
 */
const struct program *fxi_program(const struct fabrex_schedule *schedule,
				  uint32_t rank);
/* This rank's act of a transfer; NULL: it takes no part in it. */
const struct act *fxi_program_act(const struct program *p, uint32_t transfer);
/* All programs of a schedule, when it is freed. */
void fxi_programs_free(struct program *programs);
/* In the child of a fork. */
void fxi_programs_forked(void);

#endif
