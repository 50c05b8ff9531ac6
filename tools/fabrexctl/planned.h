/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What planning makes of one fabric and one collective: bound, optimum, rings,
 * and how long they take. Called by collective.c, compare.c, predict.c and
 * topology.c; certificate.c makes records of it.
 */
#ifndef CTL_PLANNED_H
#define CTL_PLANNED_H

#include "ctl.h"
#include "plan/optimum.h"
#include "plan/simulate.h"

struct planned {
	const struct plan_graph *graph;
	enum plan_collective collective;
	uint32_t root;
	struct plan_optimum optimum;	/* with the bound */
	struct plan_rings rings;
	bool has_rings;
	char no_rings[512];	/* why there are none */
	uint64_t size;		/* of the predictions */
	bool played;		/* they were made; else: why not */
	char not_played[512];
	struct plan_played optimal_played, ring_played;
	double planning_ms;	/* bound and optimum */
	double rings_ms, predicting_ms;
};

/* @name: of the fabric, for messages. @p is to be freed in any case. */
int planned_make(struct ctl *c, const char *name, const struct plan_graph *g,
		 enum plan_collective collective, uint32_t root,
		 struct planned *p);
/* Play both schedules at this size. What is too large to play is no error. */
int planned_predict(struct ctl *c, const char *name, uint64_t size,
		    struct planned *p);
void planned_free(struct planned *p);
/*
 * "2 3 0 1|..." to be freed; NULL if there are no rings. *by_dev as with
 * plan_nccl_rings_write(); it may be NULL.
 */
char *planned_nccl_rings(const struct planned *p, bool *by_dev);
/* The bound's certificate in words, to be freed. */
char *planned_words(const struct planned *p);
/* GB/s of an exact number of MB/s. */
double planned_gbps(struct plan_ratio r);
/* Likewise, of the rings. */
double planned_ring_algbw(const struct planned *p);

#endif
