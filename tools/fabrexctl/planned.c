// SPDX-License-Identifier: GPL-2.0-only
/*
 * One plan: the planner's functions in the order in which they need each other.
 * A fabric without rings is no error, one without an optimum is.
 */
#include <stdlib.h>
#include <string.h>

#include "graph.h"
#include "planned.h"
#include "source.h"

double planned_gbps(struct fabrex_plan_ratio r)
{
	return fabrex_plan_ratio_value(r) / 1000;
}

static int find_rings(struct ctl *c, const char *name, struct planned *p)
{
	double begin = now();
	int r = fabrex_plan_rings(p->graph, p->collective, p->root, NULL, 0,
				  &p->rings);

	p->rings_ms = (now() - begin) * 1e3;
	if (!r)
		p->ring = plan_attr(p->rings);
	else if (r == -EINVAL)
		snprintf(p->no_rings, sizeof(p->no_rings), "%s",
			 fabrex_plan_strerror_last());
	else
		return source_error(c, name, r);
	return 0;
}

int planned_make(struct ctl *c, const char *name,
		 const struct fabrex_plan_graph *g, int collective,
		 uint32_t root, struct planned *p)
{
	double begin = now();
	int r;

	*p = (struct planned){ .graph = g, .collective = collective,
			       .root = root };
	r = fabrex_plan_optimal(g, collective, root, &p->optimal);
	if (r)
		return source_error(c, name, r);
	p->planning_ms = (now() - begin) * 1e3;
	p->optimum = plan_attr(p->optimal);
	return find_rings(c, name, p);
}

static int simulate(const struct planned *p, const struct fabrex_plan *plan,
		    struct fabrex_plan_time *out)
{
	const struct fabrex_plan_job job = { .plan = plan, .bytes = p->size };

	return fabrex_plan_simulate(p->graph, &job, sizeof(job), 1, NULL, 0,
				    out, sizeof(*out));
}

int planned_predict(struct ctl *c, const char *name, uint64_t size,
		    struct planned *p)
{
	double begin = now();
	int r;

	p->size = size;
	r = simulate(p, p->optimal, &p->optimal_time);
	if (!r && p->rings)
		r = simulate(p, p->rings, &p->ring_time);
	p->predicting_ms = (now() - begin) * 1e3;
	p->predicted = !r;
	if (r && r != -E2BIG)
		return source_error(c, name, r);
	if (r)
		snprintf(p->not_predicted, sizeof(p->not_predicted), "%s",
			 fabrex_plan_strerror_last());
	return 0;
}

void planned_free(struct planned *p)
{
	fabrex_plan_free(p->optimal);
	fabrex_plan_free(p->rings);
	memset(p, 0, sizeof(*p));
}

char *planned_nccl_rings(const struct planned *p)
{
	char *text;
	int err;

	if (!p->rings)
		return NULL;
	text = xchecked(plan_text(p->rings, FABREX_PLAN_NCCL_RINGS, NULL,
				  &err));
	text[strcspn(text, "\n")] = '\0';
	return text;
}

char *planned_words(const struct planned *p)
{
	int err;

	return xchecked(plan_text(p->optimal, FABREX_PLAN_EXPLANATION, NULL,
				  &err));
}
