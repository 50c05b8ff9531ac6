// SPDX-License-Identifier: GPL-2.0-only
/* See graph.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "graph.h"
#include "util.h"

struct fabrex_plan_graph_attr graph_attr(const struct fabrex_plan_graph *g)
{
	struct fabrex_plan_graph_attr a = { 0 };

	fabrex_plan_graph_query(g, &a, sizeof(a));
	return a;
}

struct fabrex_plan_node graph_node(const struct fabrex_plan_graph *g,
				   uint32_t node)
{
	struct fabrex_plan_node n = { 0 };

	fabrex_plan_node_query(g, node, &n, sizeof(n));
	return n;
}

struct fabrex_plan_node graph_rank(const struct fabrex_plan_graph *g,
				   uint32_t rank)
{
	return graph_node(g, fabrex_plan_rank_node(g, rank));
}

struct fabrex_plan_edge graph_edge(const struct fabrex_plan_graph *g,
				   uint32_t edge)
{
	struct fabrex_plan_edge e = { 0 };

	fabrex_plan_edge_query(g, edge, &e, sizeof(e));
	return e;
}

struct fabrex_plan_attr plan_attr(const struct fabrex_plan *plan)
{
	struct fabrex_plan_attr a = { 0 };

	fabrex_plan_query(plan, &a, sizeof(a));
	return a;
}

struct fabrex_plan_part plan_part(const struct fabrex_plan *plan,
				  uint32_t index)
{
	struct fabrex_plan_part p = { 0 };

	fabrex_plan_part_query(plan, index, &p, sizeof(p));
	return p;
}

void graph_warn(struct fabrex_plan_graph *g, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fabrex_plan_graph_warn(g, text);
}

static char *text_of(const struct fabrex_plan_graph *g,
		     const struct fabrex_plan *plan, int format, size_t *len,
		     int *err)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = xchecked(open_memstream(&text, &n));

	*err = g ? fabrex_plan_graph_write(g, format, f)
		 : fabrex_plan_write(plan, format, f);
	xchecked(fclose(f) ? NULL : text);
	if (*err) {
		free(text);
		return NULL;
	}
	if (len)
		*len = n;
	return text;
}

char *graph_text(const struct fabrex_plan_graph *g, int format, size_t *len,
		 int *err)
{
	return text_of(g, NULL, format, len, err);
}

char *plan_text(const struct fabrex_plan *plan, int format, size_t *len,
		int *err)
{
	return text_of(NULL, plan, format, len, err);
}
