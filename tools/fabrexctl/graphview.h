/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A graph as records, and as tables for people. Called by topology.c and
 * collective.c.
 */
#ifndef CTL_GRAPHVIEW_H
#define CTL_GRAPHVIEW_H

#include <fabrex/plan.h>
#include <json-c/json.h>


/*
 * What makes up a fabric: name, gpus, boxes, ranks, elements, links, meshes,
 * warnings. Links of a mesh are in links as well.
 */
json_object *json_graph(const struct fabrex_plan_graph *g);
/* Tables of such a record; all links with @wide, else meshes summed up. */
void graph_print(FILE *f, json_object *graph, bool wide, bool color);
/* "16 GPUs in 2 boxes" */
void graph_count(const struct fabrex_plan_graph *g, char *buf, size_t len);

#endif
