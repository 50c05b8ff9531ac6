/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Maximum flows on one changing network: many flows, one shape. A pair of nodes
 * has two halves, 2i and 2i + 1, one for each direction; a flow is an array of
 * what each half can still take. For the solver's files only (solve.h).
 */
#ifndef LIB_PLAN_FLOW_H
#define LIB_PLAN_FLOW_H

#include <stdbool.h>
#include <stdint.h>

/* Sums of capacities stay below, so that differences fit, too. */
#define FLOW_MOST	(INT64_MAX / 4)

struct flow {
	uint32_t nnodes, nhalves, room;
	uint32_t *head;			/* where a half leads; tail: head[h ^ 1] */
	struct flow_near {
		uint32_t n, room;
		uint32_t *halves;	/* that leave the node */
	} *near;
	/* of flow_push() */
	uint64_t work;			/* halves that were looked at */
	uint32_t *level, *cursor, *queue, *path;
};

int flow_init(struct flow *f, uint32_t nnodes);
void flow_clear(struct flow *f);
/* The half from @a to @b, or PLAN_NONE. */
uint32_t flow_find(const struct flow *f, uint32_t a, uint32_t b);
/* The same, which is made if it is not there; -ENOMEM. */
int64_t flow_pair(struct flow *f, uint32_t a, uint32_t b);
/*
 * Send up to @limit from @from to @to through what @left allows, and take it
 * from there. Return: how much it was; less than @limit is the maximum.
 */
int64_t flow_push(struct flow *f, int64_t *left, uint32_t from, uint32_t to,
		  int64_t limit);
/* What can still be reached from @from, or (@back) can reach it. */
void flow_reach(struct flow *f, const int64_t *left, uint32_t from, bool back,
		bool *seen);

#endif
