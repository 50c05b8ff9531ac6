/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Several jobs on one fabric: each with ranks of its own, all at once.
 * Called by collective.c and predict.c.
 */
#ifndef CTL_JOBS_H
#define CTL_JOBS_H

#include <json-c/json.h>

#include "planned.h"

struct job {
	struct fabrex_plan_graph *graph;	/* its GPUs are the only ranks */
	struct planned planned;
	struct fabrex_plan_time alone;
};

struct jobs {
	struct job *v;
	uint32_t n;
	bool *taken;		/* ranks that a job has */
};

/* Ranks of each, as in "0-7;8-15". To be freed in any case. */
int jobs_parse(struct ctl *c, const char *name, const struct fabrex_plan_graph *g,
	       const char *words, struct jobs *jobs);
void jobs_free(struct jobs *jobs);

/**
 * jobs_predict() - plan for each job by itself, simulate all of them at once
 * @words: ranks of each, as in "0-7;8-15"
 * @out:   an array of records, to be put
 */
int jobs_predict(struct ctl *c, const char *name, const struct fabrex_plan_graph *g,
		 int collective, uint64_t size,
		 const char *words, json_object **out);
void jobs_print(FILE *f, json_object *jobs, bool color);

#endif
