/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What planning makes of one fabric and one collective: bound, optimum, rings,
 * and how long they take. Called by collective.c, compare.c, predict.c and
 * topology.c; certificate.c makes records of it.
 */
#ifndef CTL_PLANNED_H
#define CTL_PLANNED_H

#include <fabrex/plan.h>

#include "ctl.h"

struct planned {
	const struct fabrex_plan_graph *graph;
	int collective;
	uint32_t root;
	struct fabrex_plan *optimal;
	struct fabrex_plan *rings;	/* NULL: there are none */
	struct fabrex_plan_attr optimum, ring;	/* of these */
	char no_rings[512];	/* why there are none */
	uint64_t size;		/* of the predictions */
	bool predicted;		/* they were made; else: why not */
	char not_predicted[512];
	struct fabrex_plan_time optimal_time, ring_time;
	double planning_ms;	/* bound and optimum */
	double rings_ms, predicting_ms;
};

/* @name: of the fabric, for messages. @p is to be freed in any case. */
int planned_make(struct ctl *c, const char *name,
		 const struct fabrex_plan_graph *g, int collective,
		 uint32_t root, struct planned *p);
/* Simulate both schedules at this size. What is too large for that is no error. */
int planned_predict(struct ctl *c, const char *name, uint64_t size,
		    struct planned *p);
void planned_free(struct planned *p);
/* "2 3 0 1|..." to be freed; NULL if there are no rings. */
char *planned_nccl_rings(const struct planned *p);
/* The bound's certificate in words, to be freed. */
char *planned_words(const struct planned *p);
/* GB/s of an exact number of MB/s. */
double planned_gbps(struct fabrex_plan_ratio r);

#endif
