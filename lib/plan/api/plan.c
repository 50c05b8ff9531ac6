// SPDX-License-Identifier: LGPL-2.1-or-later
/* Plans of the public API: bounds, optimal trees, rings, and what they say. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/api/api.h"
#include "plan/nccl.h"

_Static_assert((int)FABREX_PLAN_REDUCE == (int)PLAN_COLLECTIVES - 1 &&
	       (int)FABREX_PLAN_ALL_REDUCE == (int)PLAN_ALL_REDUCE &&
	       (int)FABREX_PLAN_BOUND_CUT == (int)PLAN_BOUND_CUT &&
	       (int)FABREX_PLAN_BOUND_PARTITION == (int)PLAN_BOUND_PARTITION,
	       "numbers are the same");

EXPORT const char *fabrex_plan_collective_str(int collective)
{
	return collective > 0 && collective < PLAN_COLLECTIVES ?
	       plan_collective_name(collective) : "unknown";
}

EXPORT int fabrex_plan_collective_parse(const char *word)
{
	return plan_collective_parse(word);
}

EXPORT int fabrex_plan_ratio_compare(struct fabrex_plan_ratio a,
				     struct fabrex_plan_ratio b)
{
	return plan_ratio_compare((struct plan_ratio){ a.num, a.den },
				  (struct plan_ratio){ b.num, b.den });
}

EXPORT double fabrex_plan_ratio_value(struct fabrex_plan_ratio ratio)
{
	return plan_ratio_value((struct plan_ratio){ ratio.num, ratio.den });
}

/* ---- making them ---------------------------------------------------------- */

/* The graph as it is now, if there can be a plan for it. */
static int begin(const struct fabrex_plan_graph *graph, int collective,
		 uint32_t root, enum fabrex_plan_kind kind,
		 struct fabrex_plan **out)
{
	struct fabrex_plan *p;
	int err = fabrex_plan_graph_check(graph);

	if (err)
		return err;
	if (collective <= 0 || collective >= PLAN_COLLECTIVES)
		return api_fail(EINVAL, "there is no collective %d; use enum fabrex_plan_collective",
				collective);
	p = calloc(1, sizeof(*p));
	if (p)
		p->graph = plan_graph_copy(graph->graph);
	if (!p || !p->graph) {
		free(p);
		return api_fail(ENOMEM, "out of memory");
	}
	p->kind = kind;
	p->collective = collective;
	p->root = root;
	*out = p;
	return 0;
}

static const struct plan_bound *bound_of(const struct fabrex_plan *p)
{
	return &p->optimum.bound;
}

static uint32_t parts_of(const struct fabrex_plan *p)
{
	if (p->kind == FABREX_PLAN_RINGS ||
	    bound_of(p)->kind == PLAN_BOUND_CUT)
		return 1;
	return bound_of(p)->nparts;
}

const struct plan_cut *api_cut(const struct fabrex_plan *p, uint32_t part)
{
	if (p->kind == FABREX_PLAN_RINGS)
		return &p->rings.cut;
	return bound_of(p)->kind == PLAN_BOUND_CUT ? &bound_of(p)->cut
						   : &bound_of(p)->parts[part];
}

const struct plan_schedule *api_schedule(const struct fabrex_plan *p)
{
	return p->kind == FABREX_PLAN_RINGS ? p->rings.schedule
					    : p->optimum.schedule;
}

static uint32_t *list_nodes(const struct plan_graph *g,
			    const struct plan_cut *cut)
{
	uint32_t *nodes = malloc((g->nnodes + 1) * sizeof(*nodes)), i, n = 0;

	for (i = 0; nodes && i < g->nnodes; i++)
		if (cut->inside[i])
			nodes[n++] = i;
	return nodes;
}

/* The result of the planner as the caller gets it; @p is freed on failure. */
static int finish(struct fabrex_plan *p, int err, const struct plan_error *e,
		  struct fabrex_plan **out)
{
	uint32_t i, n;

	if (err) {
		p->kind = FABREX_PLAN_NO_SCHEDULE;	/* nothing was made */
		err = api_error(err, e);
	} else {
		n = parts_of(p);
		p->nodes = calloc(n + 1, sizeof(*p->nodes));
		for (i = 0; p->nodes && i < n; i++) {
			p->nodes[i] = list_nodes(p->graph, api_cut(p, i));
			if (!p->nodes[i])
				break;
		}
		if (!p->nodes || i < n)
			err = api_fail(ENOMEM, "out of memory");
	}
	if (err)
		fabrex_plan_free(p);
	else
		*out = p;
	return err;
}

EXPORT int fabrex_plan_bound(const struct fabrex_plan_graph *graph,
			     int collective, uint32_t root,
			     struct fabrex_plan **plan)
{
	struct plan_error e = { 0 };
	struct fabrex_plan *p;
	int err = begin(graph, collective, root, FABREX_PLAN_NO_SCHEDULE, &p);

	if (err)
		return err;
	err = plan_bound(p->graph, collective, root, &p->optimum.bound, &e);
	return finish(p, err, &e, plan);
}

EXPORT int fabrex_plan_optimal(const struct fabrex_plan_graph *graph,
			       int collective, uint32_t root,
			       struct fabrex_plan **plan)
{
	struct plan_error e = { 0 };
	struct fabrex_plan *p;
	int err = begin(graph, collective, root, FABREX_PLAN_TREES, &p);

	if (err)
		return err;
	err = plan_optimum(p->graph, collective, root, &p->optimum, &e);
	return finish(p, err, &e, plan);
}

EXPORT int fabrex_plan_rings(const struct fabrex_plan_graph *graph,
			     int collective, uint32_t root,
			     const struct fabrex_plan_ring_attr *attr,
			     size_t size, struct fabrex_plan **plan)
{
	struct fabrex_plan_ring_attr a = { 0 };
	struct plan_error e = { 0 };
	struct fabrex_plan *p;
	int err = attr ? api_copy_in("ring attributes", &a, sizeof(a), attr,
				     size) : 0;

	if (!err && a.reserved)
		err = api_fail(EINVAL, "ring attributes: a reserved field is not 0; clear the structure");
	if (!err)
		err = begin(graph, collective, root, FABREX_PLAN_RINGS, &p);
	if (err)
		return err;
	err = plan_rings(p->graph, collective, root,
			 &(struct plan_ring_options){
				.rings = a.rings, .seconds = a.seconds,
				.seed = a.seed,
			 }, &p->rings, &e);
	return finish(p, err, &e, plan);
}

/* Rings of the text, as ranks. */
static int read_rings(const struct plan_graph *g, const char *text,
		      size_t length, const char *name, uint32_t **order,
		      uint32_t *n, struct plan_error *e)
{
	size_t start = 0;
	char *copy;
	int err;

	while (start < length && text[start] &&
	       strchr(" \t\r\n\f\v\xef\xbb\xbf", text[start]))
		start++;
	if (start < length && text[start] == '<')
		return plan_nccl_graph_read(g, text, length, name, order, n, e);
	copy = strndup(text, length);
	if (!copy)
		return plan_fail(e, ENOMEM, "out of memory");
	err = plan_nccl_rings_parse(copy, g->nranks, order, n, e);
	free(copy);
	return err;
}

EXPORT int fabrex_plan_rings_parse(const struct fabrex_plan_graph *graph,
				   int collective, uint32_t root,
				   const char *text, size_t length,
				   const char *name, struct fabrex_plan **plan)
{
	struct plan_error e = { 0 };
	struct fabrex_plan *p;
	uint32_t *order = NULL, n = 0;
	int err = begin(graph, collective, root, FABREX_PLAN_RINGS, &p);

	if (err)
		return err;
	err = read_rings(p->graph, text, length, name, &order, &n, &e);
	if (!err)
		err = plan_rings_given(p->graph, collective, root, order, n,
				       &p->rings, &e);
	free(order);
	return finish(p, err, &e, plan);
}

EXPORT void fabrex_plan_free(struct fabrex_plan *plan)
{
	uint32_t i;

	if (!plan)
		return;
	for (i = 0; plan->nodes && i < parts_of(plan); i++)
		free(plan->nodes[i]);
	free(plan->nodes);
	plan_optimum_free(&plan->optimum);
	plan_rings_free(&plan->rings);
	plan_graph_free(plan->graph);
	free(plan);
}

/* ---- what they say -------------------------------------------------------- */

static struct fabrex_plan_ratio exact(struct plan_ratio r)
{
	return r.den ? (struct fabrex_plan_ratio){ r.num, r.den }
		     : (struct fabrex_plan_ratio){ 0, 1 };
}

/* Rounded to whole MB/s if it has no other room. */
static struct fabrex_plan_ratio algbw_of(const struct fabrex_plan *p,
					 struct plan_ratio busbw)
{
	struct plan_ratio f = plan_busbw_factor(p->collective,
						p->graph->nranks), r;

	if (plan_ratio_multiply(busbw, (struct plan_ratio){ f.den, f.num }, &r))
		r = (struct plan_ratio){
			(uint64_t)(plan_ratio_value(busbw) /
				   plan_ratio_value(f)), 1
		};
	return exact(r);
}

static void describe_rings(const struct fabrex_plan *p,
			   struct fabrex_plan_attr *a)
{
	bool by_dev = false;

	a->algbw = algbw_of(p, p->rings.busbw);
	a->busbw = exact(p->rings.busbw);
	a->bound_algbw = algbw_of(p, p->rings.bound);
	a->bound_busbw = exact(p->rings.bound);
	a->proved = p->rings.proved;
	a->bound_kind = FABREX_PLAN_BOUND_CUT;
	a->rings = p->rings.nrings;
	plan_nccl_rings_by_dev(p->graph, &by_dev);
	a->nccl_dev = by_dev;
}

EXPORT int fabrex_plan_query(const struct fabrex_plan *plan,
			     struct fabrex_plan_attr *attr, size_t size)
{
	const struct plan_optimum *o = &plan->optimum;
	const struct plan_schedule *s = api_schedule(plan);
	struct fabrex_plan_attr a = {
		.kind = plan->kind, .collective = plan->collective,
		.root = plan->root, .ranks = plan->graph->nranks,
		.parts = parts_of(plan),
		.chunks = s ? s->nchunks : 0,
		.transfers = s ? s->ntransfers : 0,
	};

	if (plan->kind == FABREX_PLAN_RINGS) {
		describe_rings(plan, &a);
	} else {
		a.algbw = exact(o->algbw);
		a.busbw = exact(o->busbw);
		a.bound_algbw = exact(o->bound.algbw);
		a.bound_busbw = exact(o->bound.busbw);
		a.proved = o->proved;
		a.bound_kind = o->bound.kind;
		a.trees = o->k;
	}
	api_copy_out(attr, size, &a, sizeof(a));
	return 0;
}

static bool leads_in(const struct plan_graph *g, const struct plan_cut *c)
{
	return c->nedges && !c->inside[g->edges[c->edges[0]].from];
}

EXPORT int fabrex_plan_part_query(const struct fabrex_plan *plan,
				  uint32_t index,
				  struct fabrex_plan_part *part, size_t size)
{
	struct fabrex_plan_part v;
	const struct plan_cut *c;
	uint32_t i, n = 0;

	if (index >= parts_of(plan))
		return api_fail(ENOENT, "%s: the bound has no part %u; it has %u, counted from 0",
				plan->graph->name, index, parts_of(plan));
	c = api_cut(plan, index);
	for (i = 0; i < plan->graph->nnodes; i++)
		n += c->inside[i];
	v = (struct fabrex_plan_part){
		.nodes = plan->nodes[index], .nnodes = n,
		.edges = c->edges, .nedges = c->nedges,
		.ranks = c->ninside, .capacity = c->capacity,
		.inward = leads_in(plan->graph, c),
	};
	api_copy_out(part, size, &v, sizeof(v));
	return 0;
}

EXPORT const uint32_t *fabrex_plan_ring(const struct fabrex_plan *plan,
					uint32_t index)
{
	if (plan->kind != FABREX_PLAN_RINGS || index >= plan->rings.nrings)
		return NULL;
	return plan->rings.order + (size_t)index * plan->graph->nranks;
}
