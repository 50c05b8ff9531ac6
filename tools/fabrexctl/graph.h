/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The planner's objects by value, and its texts in memory: libfabrex-plan has
 * queries and streams. Called by all that plan or show plans.
 */
#ifndef CTL_GRAPH_H
#define CTL_GRAPH_H

#include <fabrex/plan.h>

struct fabrex_plan_graph_attr graph_attr(const struct fabrex_plan_graph *g);
/* Indices are valid ones. */
struct fabrex_plan_node graph_node(const struct fabrex_plan_graph *g,
				   uint32_t node);
/* The GPU of a rank. */
struct fabrex_plan_node graph_rank(const struct fabrex_plan_graph *g,
				   uint32_t rank);
struct fabrex_plan_edge graph_edge(const struct fabrex_plan_graph *g,
				   uint32_t edge);
struct fabrex_plan_attr plan_attr(const struct fabrex_plan *plan);
struct fabrex_plan_part plan_part(const struct fabrex_plan *plan,
				  uint32_t index);
void graph_warn(struct fabrex_plan_graph *g, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * In one of enum fabrex_plan_format, to be freed; @len may be NULL. NULL:
 * fabrex_plan_strerror_last() says why, and *err is the negative errno.
 */
char *graph_text(const struct fabrex_plan_graph *g, int format, size_t *len,
		 int *err);
char *plan_text(const struct fabrex_plan *plan, int format, size_t *len,
		int *err);

#endif
