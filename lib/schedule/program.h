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
	ACT_FULL = 4,		/* and that is the last of it */
	ACT_SWAP = 8,		/* what arrives is the left operand */
	ACT_FRESH = 16,		/* what this rank has is still where the
				 * caller put it
				 */
	ACT_KEEP = 32,		/* the result is needed once it is sent on */
	ACT_LATE = 64,		/* not to be expected with the one before */
	ACT_FIRST = 128,	/* first receive of its part */
};

/* This rank's end of one transfer. */
struct act {
	uint32_t transfer;	/* its number in the schedule */
	uint32_t part;		/* chunk, as numbered here */
	uint32_t stage;		/* rounds that it is behind: see lanes */
	uint32_t need, needs;	/* acts [need, need + needs) come before it */
	uint16_t peer;
	uint16_t flags;
	/*
	 * A run is as many receives and then sends of a part as can be one
	 * pass over memory: from a receive on, those left of both.
	 */
	uint16_t receives, sends;
};

/* A chunk that has to do with this rank. Its acts are in a row. */
struct local_part {
	uint32_t chunk, shard;
	uint32_t first, n;	/* acts */
	uint32_t stages;	/* from its first act to its last */
	bool begins, ends;	/* in the caller's send, recv */
	bool writes;		/* it is received */
};

/*
 * All transfers to, or from, one other rank, in the order that is the same at
 * both: act i in its round r is at r + stage, and those of one number in the
 * order of the lane.
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
};

/*
 * That of @rank, made when it is first asked for and kept with the schedule.
 * NULL: no memory. Any thread.
 */
const struct program *fxi_program(const struct fabrex_schedule *schedule,
				  uint32_t rank);
/* With the schedule: all its programs. */
void fxi_programs_free(struct program *programs);
/* In the child of a fork. */
void fxi_programs_forked(void);

#endif
