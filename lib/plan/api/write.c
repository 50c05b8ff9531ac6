// SPDX-License-Identifier: LGPL-2.1-or-later
/* Graphs and plans of the public API as files and texts, and NCCL's files judged. */
#include <errno.h>
#include <string.h>

#include "plan/api/api.h"
#include "plan/draw.h"
#include "plan/nccl.h"
#include "plan/read.h"

static int wrong_format(const char *what, int format)
{
	return api_fail(ENOTSUP, "%s cannot be written in format %d; fabrex_plan_write(3) lists the formats of each",
			what, format);
}

static int written(const char *name, FILE *f, int err, struct plan_error *e)
{
	if (!err && ferror(f))
		err = plan_fail(e, EIO, "%s could not be written; is there room left",
				name);
	return err ? api_error(err, e) : 0;
}

EXPORT int fabrex_plan_graph_write(const struct fabrex_plan_graph *graph,
				   int format, FILE *f)
{
	const struct plan_graph *g = graph->graph;
	struct plan_error e = { 0 };
	int err;

	switch (format) {
	case FABREX_PLAN_GRAPH:
		err = plan_graphfile_write(g, f, &e);
		break;
	case FABREX_PLAN_NCCL:
		err = plan_nccl_write(g, PLAN_NCCL, f, &e);
		break;
	case FABREX_PLAN_RCCL:
		err = plan_nccl_write(g, PLAN_RCCL, f, &e);
		break;
	case FABREX_PLAN_SVG:
		err = plan_draw(g, NULL, NULL, f, &e);
		break;
	default:
		return wrong_format("a graph", format);
	}
	return written(g->name, f, err, &e);
}

static int write_rings(const struct fabrex_plan *p, int format, FILE *f,
		       struct plan_error *e)
{
	if (format == FABREX_PLAN_NCCL_RINGS)
		return plan_nccl_rings_write(p->graph, &p->rings, f, NULL);
	return plan_nccl_graph_write(p->graph, &p->rings,
				     format == FABREX_PLAN_NCCL ? PLAN_NCCL
								: PLAN_RCCL,
				     f, e);
}

EXPORT int fabrex_plan_write(const struct fabrex_plan *plan, int format,
			     FILE *f)
{
	const struct plan_schedule *s = api_schedule(plan);
	bool rings = plan->kind == FABREX_PLAN_RINGS;
	struct plan_error e = { 0 };
	int err;

	if ((format == FABREX_PLAN_NCCL || format == FABREX_PLAN_RCCL ||
	     format == FABREX_PLAN_NCCL_RINGS) && rings)
		err = write_rings(plan, format, f, &e);
	else if (format == FABREX_PLAN_SCHEDULE && s)
		err = plan_schedule_write(plan->graph, s, f, &e);
	else if (format == FABREX_PLAN_EXPLANATION && !rings)
		err = plan_bound_explain(plan->graph, plan->collective,
					 &plan->optimum.bound, f);
	else if (format == FABREX_PLAN_SVG)
		err = plan_draw(plan->graph, s, api_cut(plan, 0), f, &e);
	else
		return wrong_format(rings ? "a plan of rings" :
				    s ? "a plan of trees" : "a bound", format);
	return written(plan->graph->name, f, err, &e);
}

/* Is <graphs> the first element? Comments and the prolog are skipped. */
static bool is_graph_xml(const char *text, size_t length)
{
	const char *p = text, *end = text + length, *close;

	while (p < end && (p = memchr(p, '<', (size_t)(end - p)))) {
		close = end - p > 4 && !memcmp(p, "<!--", 4) ? "-->" : ">";
		if (*close == '>' && p + 1 < end && p[1] != '!' && p[1] != '?')
			return end - p > 7 && !memcmp(p, "<graphs", 7);
		p = memmem(p, (size_t)(end - p), close, strlen(close));
		if (!p)
			break;
	}
	return false;
}

EXPORT int fabrex_plan_nccl_check(const char *text, size_t length,
				  const char *name)
{
	struct plan_error e = { 0 };
	int err = is_graph_xml(text, length) ?
		  plan_nccl_graph_validate(text, length, name, &e) :
		  plan_nccl_validate(text, length, name, &e);

	return err ? api_error(err, &e) : 0;
}
