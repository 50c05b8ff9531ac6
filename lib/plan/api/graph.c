// SPDX-License-Identifier: LGPL-2.1-or-later
/* Graphs of the public API: from files, by calls, and what is in them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/api/api.h"
#include "plan/read.h"
#include "topology/visible.h"

_Static_assert((int)FABREX_PLAN_NET == (int)PLAN_NODE_KINDS - 1 &&
	       (int)FABREX_PLAN_NTB == (int)PLAN_NTB &&
	       (int)FABREX_PLAN_OTHER == (int)PLAN_LINK_KINDS - 1 &&
	       (int)FABREX_PLAN_NVLINK == (int)PLAN_NVLINK &&
	       FABREX_PLAN_NONE == PLAN_NONE, "numbers are the same");

/* ---- handles ------------------------------------------------------------ */

int api_graph(struct plan_graph *g, const struct plan_error *e,
	      struct fabrex_plan_graph **out)
{
	struct fabrex_plan_graph *graph;
	uint32_t i;

	if (!g)
		return api_error(-ENOMEM, e);
	graph = malloc(sizeof(*graph));
	if (!graph) {
		plan_graph_free(g);
		return api_fail(ENOMEM, "out of memory");
	}
	/* What comes from files goes to terminals, too. */
	visible(g->name);
	for (i = 0; i < g->nwarnings; i++)
		visible(g->warnings[i]);
	graph->graph = g;
	*out = graph;
	return 0;
}

int api_select(const struct fabrex_plan_select *select, size_t size,
	       struct fabrex_plan_select *out)
{
	int err;

	*out = (struct fabrex_plan_select){ 0 };
	if (!select)
		return 0;
	err = api_copy_in("select", out, sizeof(*out), select, size);
	if (!err && (out->reserved[0] || out->reserved[1]))
		err = api_fail(EINVAL, "select: reserved fields are not 0; clear the structure");
	return err;
}

/* ---- from files --------------------------------------------------------- */

EXPORT int fabrex_plan_graph_read(const char *path,
				  const struct fabrex_plan_select *select,
				  size_t size, struct fabrex_plan_graph **graph)
{
	struct plan_error e = { 0 };
	struct fabrex_plan_select s;
	int err = api_select(select, size, &s);

	if (err)
		return err;
	return api_graph(plan_graph_read(path, &(struct plan_select){
				s.host, s.devices }, &e), &e, graph);
}

EXPORT int fabrex_plan_graph_parse(const char *text, size_t length,
				   const char *name,
				   const struct fabrex_plan_select *select,
				   size_t size,
				   struct fabrex_plan_graph **graph)
{
	struct plan_error e = { 0 };
	struct fabrex_plan_select s;
	int err = api_select(select, size, &s);

	if (err)
		return err;
	return api_graph(plan_graph_parse(text, length, name,
					  &(struct plan_select){
				s.host, s.devices }, &e), &e, graph);
}

EXPORT int fabrex_plan_graph_copy(const struct fabrex_plan_graph *graph,
				  struct fabrex_plan_graph **copy)
{
	const struct plan_error none = { 0 };

	return api_graph(plan_graph_copy(graph->graph), &none, copy);
}

EXPORT void fabrex_plan_graph_free(struct fabrex_plan_graph *graph)
{
	if (graph)
		plan_graph_free(graph->graph);
	free(graph);
}

EXPORT int fabrex_plan_graph_select(struct fabrex_plan_graph *graph,
				    const struct fabrex_plan_select *select,
				    size_t size)
{
	struct plan_error e = { 0 };
	struct fabrex_plan_select s;
	int err = api_select(select, size, &s);

	if (err)
		return err;
	err = plan_graph_select(graph->graph,
				&(struct plan_select){ s.host, s.devices }, &e);
	return err ? api_error(err, &e) : 0;
}

EXPORT int fabrex_plan_graph_ranks(struct fabrex_plan_graph *graph,
				   const uint32_t *nodes, uint32_t n)
{
	struct plan_error e = { 0 };
	int err = plan_graph_ranks(graph->graph, nodes, n, &e);

	return err ? api_error(err, &e) : 0;
}

EXPORT int fabrex_plan_graph_check(const struct fabrex_plan_graph *graph)
{
	struct plan_error e = { 0 };
	int err = plan_graph_check(graph->graph, &e);

	return err ? api_error(err, &e) : 0;
}

/* ---- what is in it ------------------------------------------------------ */

EXPORT int fabrex_plan_graph_query(const struct fabrex_plan_graph *graph,
				   struct fabrex_plan_graph_attr *attr,
				   size_t size)
{
	const struct plan_graph *g = graph->graph;
	const struct fabrex_plan_graph_attr a = {
		.name = g->name, .nodes = g->nnodes, .edges = g->nedges,
		.ranks = g->nranks, .boxes = g->nboxes,
		.warnings = g->nwarnings,
	};

	api_copy_out(attr, size, &a, sizeof(a));
	return 0;
}

static int no_node(const struct plan_graph *g, uint32_t node, int code)
{
	return api_fail(code, "%s has no node %u; it has %u, counted from 0",
			g->name, node, g->nnodes);
}

EXPORT int fabrex_plan_node_query(const struct fabrex_plan_graph *graph,
				  uint32_t node, struct fabrex_plan_node *out,
				  size_t size)
{
	const struct plan_graph *g = graph->graph;
	const struct plan_node *n;
	struct fabrex_plan_node v;

	if (node >= g->nnodes)
		return no_node(g, node, ENOENT);
	n = &g->nodes[node];
	v = (struct fabrex_plan_node){
		.name = n->name, .kind = n->kind, .rank = n->rank,
		.box = n->box, .up = n->up, .line = n->line,
	};
	api_copy_out(out, size, &v, sizeof(v));
	return 0;
}

EXPORT int fabrex_plan_edge_query(const struct fabrex_plan_graph *graph,
				  uint32_t edge, struct fabrex_plan_edge *out,
				  size_t size)
{
	const struct plan_graph *g = graph->graph;
	const struct plan_edge *e;
	struct fabrex_plan_edge v;

	if (edge >= g->nedges)
		return api_fail(ENOENT, "%s has no edge %u; it has %u, counted from 0",
				g->name, edge, g->nedges);
	e = &g->edges[edge];
	v = (struct fabrex_plan_edge){
		.capacity = e->capacity, .from = e->from, .to = e->to,
		.kind = e->kind, .latency = e->latency, .reverse = e->twin,
		.line = e->line,
	};
	api_copy_out(out, size, &v, sizeof(v));
	return 0;
}

EXPORT uint32_t fabrex_plan_rank_node(const struct fabrex_plan_graph *graph,
				      uint32_t rank)
{
	return rank < graph->graph->nranks ? graph->graph->gpus[rank]
					   : FABREX_PLAN_NONE;
}

EXPORT uint32_t fabrex_plan_node_find(const struct fabrex_plan_graph *graph,
				      const char *name)
{
	return plan_graph_find(graph->graph, name);
}

EXPORT const char *fabrex_plan_node_get(const struct fabrex_plan_graph *graph,
					uint32_t node, const char *key)
{
	if (node >= graph->graph->nnodes)
		return NULL;
	return plan_node_get(graph->graph, node, key);
}

EXPORT const char *
fabrex_plan_graph_warning(const struct fabrex_plan_graph *graph, uint32_t index)
{
	return index < graph->graph->nwarnings ? graph->graph->warnings[index]
					       : NULL;
}

EXPORT const char *fabrex_plan_node_kind_str(int kind)
{
	return kind > 0 && kind < PLAN_NODE_KINDS ? plan_node_kind_name(kind)
						  : "unknown";
}

EXPORT const char *fabrex_plan_link_kind_str(int kind)
{
	return kind > 0 && kind < PLAN_LINK_KINDS ? plan_link_kind_name(kind)
						  : "unknown";
}

/* ---- by calls ----------------------------------------------------------- */

EXPORT int fabrex_plan_graph_create(const char *name,
				    struct fabrex_plan_graph **graph)
{
	const struct plan_error none = { 0 };

	if (!*name || strlen(name) >= PLAN_NAME)
		return api_fail(EINVAL, "\"%.80s\" names no graph; give 1 to %u characters",
				name, PLAN_NAME - 1);
	return api_graph(plan_graph_new(name), &none, graph);
}

EXPORT int fabrex_plan_node_add(struct fabrex_plan_graph *graph, int kind,
				const char *name, uint32_t box, uint32_t up)
{
	struct plan_graph *g = graph->graph;
	struct plan_error e = { 0 };
	int64_t n;

	if (kind <= 0 || kind >= PLAN_NODE_KINDS)
		return api_fail(EINVAL, "%.80s: there is no kind %d of nodes; use enum fabrex_plan_node_kind",
				name, kind);
	if (box != FABREX_PLAN_NONE && box >= PLAN_NODES)
		return api_fail(EINVAL, "%.80s: box %u; number boxes from 0 to %u",
				name, box, PLAN_NODES - 1);
	if (up != FABREX_PLAN_NONE && up >= g->nnodes)
		return no_node(g, up, EINVAL);
	n = plan_graph_add_node(g, kind, name, box, &e);
	if (n < 0)
		return api_error((int)n, &e);
	g->nodes[n].up = up;
	return (int)n;
}

EXPORT int fabrex_plan_link_add(struct fabrex_plan_graph *graph, uint32_t a,
				uint32_t b, uint64_t capacity,
				uint32_t latency, int kind)
{
	struct plan_graph *g = graph->graph;
	struct plan_error e = { 0 };
	int64_t n;

	if (kind <= 0 || kind >= PLAN_LINK_KINDS)
		return api_fail(EINVAL, "%s: there is no kind %d of links; use enum fabrex_plan_link_kind",
				g->name, kind);
	if (a >= g->nnodes || b >= g->nnodes)
		return no_node(g, a >= g->nnodes ? a : b, EINVAL);
	n = plan_graph_add_link(g, a, b, capacity,
				latency ? latency : plan_link_latency(kind),
				kind, &e);
	return n < 0 ? api_error((int)n, &e) : (int)n;
}

EXPORT int fabrex_plan_node_set(struct fabrex_plan_graph *graph, uint32_t node,
				const char *key, const char *value)
{
	int err;

	if (node >= graph->graph->nnodes)
		return no_node(graph->graph, node, EINVAL);
	err = plan_node_set(graph->graph, node, key, value);
	return err ? api_fail(-err, "%s: attribute %.80s: %s",
			      graph->graph->nodes[node].name, key,
			      strerrordesc_np(-err)) : 0;
}

EXPORT int fabrex_plan_graph_warn(struct fabrex_plan_graph *graph,
				  const char *text)
{
	struct plan_graph *g = graph->graph;

	if (plan_graph_warn(g, "%s", text))
		return api_fail(ENOMEM, "out of memory");
	visible(g->warnings[g->nwarnings - 1]);
	return 0;
}
