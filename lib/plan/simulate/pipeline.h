/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Schedules prepared for the simulator: what each transfer waits for, which
 * channel it takes, and how many pieces it has. For simulate.c alone.
 *
 * A value is what a rank has of a chunk between two sends: the writes that it
 * takes to be whole, the sends that wait for it, and the value that comes
 * after it. So a chunk of t transfers has at most t values and one for each
 * rank, however many writes and sends meet at one rank.
 */
#ifndef LIB_PLAN_PIPELINE_H
#define LIB_PLAN_PIPELINE_H

#include "plan/simulate.h"
#include "plan/simulate/sharing.h"

#define PIPELINE_NONE	(~0u)

struct value {
	uint32_t chunk;
	uint32_t first_send;	/* a transfer; PIPELINE_NONE: nobody waits */
	uint32_t last_send;
	uint32_t after;		/* the rank's next value, if any */
	uint32_t waits;		/* writes, and the value before if it matters */
	uint32_t lacks;		/* in pipeline.lacks: of piece 0 */
};

struct hop {			/* a transfer */
	uint32_t channel;
	uint32_t makes;		/* value that it writes */
	uint32_t next_send;	/* of the same value */
	bool reduce;
};

struct part {			/* a chunk */
	uint32_t job;
	uint32_t pieces;
	double bytes;		/* of one piece */
	double cost;		/* s, of its sender */
};

/* Pieces that wait at a channel, first come first served. */
struct queued {
	uint32_t hop, piece, next;
};

struct channel {
	uint32_t classes[2];	/* of flows: copies, reductions */
	double latency;		/* s, of the route */
	uint32_t head, tail;	/* of queued; PIPELINE_NONE: empty */
	uint32_t flying;	/* pieces begun and not yet arrived */
	uint32_t hop, piece;	/* being sent */
	bool busy;
};

struct pipeline {
	uint32_t nvalues, nhops, nparts, nchannels, nlacks;
	struct value *values;
	struct hop *hops;
	struct part *parts;
	struct channel *channels;
	uint32_t *lacks;	/* of each value and piece: what has not come */
	uint32_t *begin;	/* of each job, and one more: first part's value */
	uint64_t npieces;	/* transfers times pieces */
	uint64_t asked;		/* the same with pieces as asked for */
	uint64_t piece_bytes;	/* largest, as it had to be */
};

/*
 * Pieces of up to @largest bytes, timing->piece_bytes or more; larger ones if
 * there are too many, each of which costs as much as those that were asked for
 * and that it stands for. Classes are made in @f, for links g->edges and behind them one for each node
 * that reduces. 0 or a negative errno, with a reason.
 */
int pipeline_make(struct pipeline *p, struct sharing *f,
		  const struct plan_graph *g, const struct plan_job *jobs,
		  uint32_t n, const struct plan_timing *timing,
		  uint64_t largest, struct plan_error *e);
/* All of a job's pieces have arrived: as before its first one. */
void pipeline_again(struct pipeline *p, uint32_t job);
void pipeline_free(struct pipeline *p);

#endif
