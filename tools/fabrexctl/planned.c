// SPDX-License-Identifier: GPL-2.0-only
/*
 * One plan: the library's functions in the order in which they need each
 * other. A fabric without rings is no error, one without an optimum is.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/draw.h"
#include "plan/nccl.h"
#include "planned.h"
#include "source.h"

double planned_gbps(struct plan_ratio r)
{
	return plan_ratio_value(r) / 1000;
}

double planned_ring_algbw(const struct planned *p)
{
	return planned_gbps(p->rings.busbw) /
	       plan_ratio_value(plan_busbw_factor(p->collective,
						  p->graph->nranks));
}

static int find_rings(struct ctl *c, const char *name, struct planned *p)
{
	struct plan_error e = { 0 };
	double begin = now();
	int r = plan_rings(p->graph, p->collective, p->root, NULL, &p->rings,
			   &e);

	p->rings_ms = (now() - begin) * 1e3;
	p->has_rings = !r;
	if (r && r != -EINVAL)
		return source_error(c, name, &e);
	if (r)
		snprintf(p->no_rings, sizeof(p->no_rings), "%s", e.text);
	return 0;
}

int planned_make(struct ctl *c, const char *name, const struct plan_graph *g,
		 enum plan_collective collective, uint32_t root,
		 struct planned *p)
{
	struct plan_error e = { 0 };
	double begin = now();

	*p = (struct planned){ .graph = g, .collective = collective,
			       .root = root };
	if (plan_optimum(g, collective, root, &p->optimum, &e))
		return source_error(c, name, &e);
	p->planning_ms = (now() - begin) * 1e3;
	return find_rings(c, name, p);
}

static int play(const struct planned *p, const struct plan_schedule *s,
		struct plan_played *out, struct plan_error *e)
{
	const struct plan_timing timing = plan_timing_default();
	struct plan_job job = { .schedule = s, .bytes = p->size };

	return plan_simulate(p->graph, &job, 1, &timing, out, NULL, e);
}

int planned_predict(struct ctl *c, const char *name, uint64_t size,
		    struct planned *p)
{
	struct plan_error e = { 0 };
	double begin = now();
	int r;

	p->size = size;
	r = play(p, p->optimum.schedule, &p->optimal_played, &e);
	if (!r && p->has_rings)
		r = play(p, p->rings.schedule, &p->ring_played, &e);
	p->predicting_ms = (now() - begin) * 1e3;
	p->played = !r;
	if (r && r != -E2BIG)
		return source_error(c, name, &e);
	if (r)
		snprintf(p->not_played, sizeof(p->not_played), "%s", e.text);
	return 0;
}

void planned_free(struct planned *p)
{
	plan_optimum_free(&p->optimum);
	if (p->has_rings)
		plan_rings_free(&p->rings);
	memset(p, 0, sizeof(*p));
}

char *planned_nccl_rings(const struct planned *p, bool *by_dev)
{
	char *text = NULL;
	size_t len;
	FILE *f;

	if (!p->has_rings)
		return NULL;
	f = open_memstream(&text, &len);
	if (f) {
		plan_nccl_rings_write(p->graph, &p->rings, f, by_dev);
		fclose(f);
		text[strcspn(text, "\n")] = '\0';
	}
	return text;
}

char *planned_words(const struct planned *p)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (f) {
		plan_bound_explain(p->graph, p->collective, &p->optimum.bound,
				   f);
		fclose(f);
	}
	return text;
}
