/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The proof that a schedule is right, by symbolic execution of one chunk after
 * the other. For check.c, which executes, set.c, which keeps what values
 * consist of, and explain.c, which words the errors; nobody else includes it.
 */
#ifndef LIB_SCHEDULE_CHECK_H
#define LIB_SCHEDULE_CHECK_H

#include "schedule/schedule.h"

#define NOTHING		UINT32_MAX

/*
 * A value of a chunk. @node: how it was computed; equal nodes are equal bit for
 * bit. A rank's own part has the node of its number, any other is the reduction
 * of two.
 */
struct value {
	uint32_t node;		/* NOTHING: it holds nothing */
	uint32_t set;		/* of more than one rank; else NOTHING */
	uint32_t lowest;	/* rank in it */
	uint32_t count;		/* ranks in it */
};

/* Sets of ranks, with reference counts; and nodes by what they reduce. */
struct sets {
	uint64_t *words;
	uint32_t *references;
	uint32_t *unused;
	uint32_t nunused, next;	/* sets from next on are unused, too */
	uint32_t width;		/* words of a set */
	struct pair_node { uint32_t a, b, node, epoch; } *nodes;
	uint32_t mask;		/* of the table of nodes */
	uint32_t epoch, nnodes;
};

int fxi_sets_make(struct sets *sets, uint32_t ranks, uint32_t reductions);
void fxi_sets_free(struct sets *sets);
/* Forget everything, for another chunk. */
void fxi_sets_clear(struct sets *sets, uint32_t ranks);
bool fxi_set_has(const struct sets *sets, const struct value *v,
		 uint32_t rank);
/* A rank that is in both; NOTHING if there is none. */
uint32_t fxi_set_common(const struct sets *sets, const struct value *a,
			const struct value *b);
/* All of @a is in @b. */
bool fxi_set_within(const struct sets *sets, const struct value *a,
		    const struct value *b);
void fxi_value_take(struct sets *sets, const struct value *v);
void fxi_value_drop(struct sets *sets, const struct value *v);
/*
 * *into becomes the reduction of both, which have nothing in common; the left
 * operand is *into, or with @swap the other.
 */
void fxi_value_reduce(struct sets *sets, struct value *into,
		      const struct value *v, bool swap);

/* One rank, while a chunk is executed. */
struct holder {
	uint32_t epoch;		/* what follows is of this chunk */
	struct value value;
	uint32_t got;		/* transfer that wrote it; NOTHING: the start */
	uint32_t written, read;	/* levels */
	uint32_t ripe;		/* level from which what it last got can be sent
				 */
	uint32_t group;		/* in which it last got something */
	bool used;		/* what it got was sent or reduced into */
};

struct checker {
	struct fabrex_schedule *schedule;
	uint32_t *order;	/* transfers, by chunk */
	uint32_t *first;	/* of a chunk in order; nchunks + 1 */
	uint32_t chunk, shard, epoch;
	bool brackets;		/* the group has more than one transfer */
	struct holder *holders;
	struct value *sent;	/* of the transfers of a group */
	uint32_t sent_room;
	struct sets sets;
};

/*
 * Error messages. @t: number of the transfer that is wrong. All return the
 * negative errno.
 */
int fxi_explain_empty(struct checker *c, uint32_t t);
int fxi_explain_twice(struct checker *c, uint32_t t, uint32_t rank);
int fxi_explain_race(struct checker *c, uint32_t t, uint32_t other);
int fxi_explain_known(struct checker *c, uint32_t t);
int fxi_explain_overwritten(struct checker *c, uint32_t t);
int fxi_explain_unused(struct checker *c, uint32_t t);
int fxi_explain_missing(struct checker *c, uint32_t rank);
int fxi_explain_order(struct checker *c, uint32_t rank, uint32_t other);

#endif
