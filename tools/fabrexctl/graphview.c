// SPDX-License-Identifier: GPL-2.0-only
/*
 * A graph for people: boxes, elements, links, ranks. The keys are an interface:
 * fabrexctl-topology(8) documents them.
 */
#include <stdlib.h>
#include <string.h>

#include "certificate.h"
#include "graph.h"
#include "graphview.h"
#include "json.h"
#include "table.h"

/* What is looked up for each element: names and ranks of boxes. */
struct view {
	const struct fabrex_plan_graph *g;
	struct fabrex_plan_graph_attr attr;
	char **boxes;			/* NULL: nothing is in it */
	uint32_t *elements, *ranks;	/* of each box */
};

/* ---- boxes --------------------------------------------------------------- */

/* What the names of all elements of a box begin with, up to "." or ":". */
static void name_boxes(struct view *v)
{
	bool *mixed = xcalloc(v->attr.boxes, sizeof(*mixed));
	uint32_t i;

	for (i = 0; i < v->attr.nodes; i++) {
		const struct fabrex_plan_node n = graph_node(v->g, i);
		int len = (int)strcspn(n.name, ".:");
		char **box;

		if (n.box >= v->attr.boxes)
			continue;
		box = &v->boxes[n.box];
		if (!*box)
			*box = xasprintf("%.*s", len, n.name);
		else if (strlen(*box) != (size_t)len ||
			 strncmp(*box, n.name, (size_t)len))
			mixed[n.box] = true;
	}
	for (i = 0; i < v->attr.boxes; i++)
		if (mixed[i]) {
			free(v->boxes[i]);
			v->boxes[i] = xasprintf("box%u", i);
		}
	free(mixed);
}

static void view_make(struct view *v, const struct fabrex_plan_graph *g)
{
	uint32_t i;

	v->g = g;
	v->attr = graph_attr(g);
	v->boxes = xcalloc(v->attr.boxes, sizeof(*v->boxes));
	v->elements = xcalloc(v->attr.boxes, sizeof(*v->elements));
	v->ranks = xcalloc(v->attr.boxes, sizeof(*v->ranks));
	for (i = 0; i < v->attr.nodes; i++) {
		const struct fabrex_plan_node n = graph_node(g, i);

		if (n.box >= v->attr.boxes)
			continue;
		v->elements[n.box]++;
		v->ranks[n.box] += n.rank != FABREX_PLAN_NONE;
	}
	name_boxes(v);
}

static void view_free(struct view *v)
{
	uint32_t i;

	for (i = 0; i < v->attr.boxes; i++)
		free(v->boxes[i]);
	free(v->boxes);
	free(v->elements);
	free(v->ranks);
}

void graph_count(const struct fabrex_plan_graph *g, char *buf, size_t len)
{
	struct view v;
	uint32_t boxes = 0, i;

	view_make(&v, g);
	for (i = 0; i < v.attr.boxes; i++)
		boxes += v.ranks[i] > 0;
	view_free(&v);
	snprintf(buf, len, "%u GPU%s in %u box%s", v.attr.ranks,
		 v.attr.ranks == 1 ? "" : "s", boxes, boxes == 1 ? "" : "es");
}

static void rec_box(json_object *o, const struct view *v, uint32_t box)
{
	rec_str(o, "box", box < v->attr.boxes ? v->boxes[box] : NULL);
}

static json_object *json_boxes(const struct view *v)
{
	json_object *list = json_object_new_array();
	uint32_t i;

	for (i = 0; i < v->attr.boxes; i++) {
		json_object *o;

		if (!v->elements[i])
			continue;
		o = json_object_new_object();
		rec_box(o, v, i);
		rec_int(o, "elements", v->elements[i]);
		rec_int(o, "ranks", v->ranks[i]);
		json_object_array_add(list, o);
	}
	return list;
}

/* ---- elements and links -------------------------------------------------- */

static json_object *json_element(const struct view *v, uint32_t i)
{
	const struct fabrex_plan_graph *g = v->g;
	const struct fabrex_plan_node n = graph_node(g, i);
	json_object *o = json_object_new_object();

	rec_str(o, "name", n.name);
	rec_str(o, "kind", fabrex_plan_node_kind_str(n.kind));
	rec_box(o, v, n.box);
	rec_put(o, "rank", n.rank == FABREX_PLAN_NONE ? NULL :
		json_object_new_int64(n.rank));
	rec_str(o, "up", n.up == FABREX_PLAN_NONE ? NULL :
		graph_node(g, n.up).name);
	rec_str(o, "pci_name", fabrex_plan_node_get(g, i, "pci.busid"));
	rec_put(o, "line", n.line ? json_object_new_int64(n.line) : NULL);
	return o;
}

/* Between two GPUs of one box. */
static bool in_mesh(const struct fabrex_plan_graph *g,
		    const struct fabrex_plan_edge *e)
{
	const struct fabrex_plan_node a = graph_node(g, e->from);
	const struct fabrex_plan_node b = graph_node(g, e->to);

	return a.kind == FABREX_PLAN_GPU && b.kind == FABREX_PLAN_GPU &&
	       a.box == b.box && a.box != FABREX_PLAN_NONE;
}

/* Both directions are one record. */
static json_object *json_link(const struct fabrex_plan_graph *g, uint32_t i)
{
	const struct fabrex_plan_edge e = graph_edge(g, i);
	struct fabrex_plan_edge back = { 0 };
	json_object *o = json_object_new_object();

	if (e.reverse != FABREX_PLAN_NONE)
		back = graph_edge(g, e.reverse);
	rec_str(o, "a", graph_node(g, e.from).name);
	rec_str(o, "b", graph_node(g, e.to).name);
	rec_str(o, "kind", fabrex_plan_link_kind_str(e.kind));
	rec_double(o, "gbps", e.capacity / 1e3, 3);
	rec_double(o, "back_gbps", back.capacity / 1e3, 3);
	rec_int(o, "latency_ns", e.latency);
	rec_bool(o, "in_mesh", in_mesh(g, &e));
	rec_put(o, "line", e.line ? json_object_new_int64(e.line) : NULL);
	return o;
}

/* A directed link between GPUs, for sorting. */
struct mesh_link {
	uint32_t box;
	uint32_t kind;
	uint64_t capacity;
};

static int by_box(const void *a, const void *b)
{
	const struct mesh_link *x = a, *y = b;

	if (x->box != y->box)
		return x->box < y->box ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->capacity < y->capacity ? -1 : x->capacity > y->capacity;
}

/* Those that are alike are one record. */
static json_object *json_meshes(const struct view *v)
{
	struct mesh_link *links = xcalloc(v->attr.edges, sizeof(*links));
	json_object *list = json_object_new_array();
	uint32_t n = 0, i, k;

	for (i = 0; i < v->attr.edges; i++) {
		const struct fabrex_plan_edge e = graph_edge(v->g, i);

		if (in_mesh(v->g, &e))
			links[n++] = (struct mesh_link){
				graph_node(v->g, e.from).box, e.kind,
				e.capacity
			};
	}
	if (n)
		qsort(links, n, sizeof(*links), by_box);
	for (i = 0; i < n; i = k) {
		json_object *o = json_object_new_object();

		for (k = i; k < n && !by_box(&links[i], &links[k]); k++)
			;
		rec_box(o, v, links[i].box);
		rec_str(o, "kind", fabrex_plan_link_kind_str(links[i].kind));
		rec_int(o, "directed_links", k - i);
		rec_double(o, "gbps", links[i].capacity / 1e3, 3);
		json_object_array_add(list, o);
	}
	free(links);
	return list;
}

json_object *json_graph(const struct fabrex_plan_graph *g)
{
	json_object *o = json_object_new_object();
	json_object *elements = json_object_new_array();
	json_object *links = json_object_new_array();
	struct view v;
	uint32_t i;

	view_make(&v, g);
	for (i = 0; i < v.attr.nodes; i++)
		json_object_array_add(elements, json_element(&v, i));
	for (i = 0; i < v.attr.edges; i++) {
		const uint32_t reverse = graph_edge(g, i).reverse;

		if (reverse == FABREX_PLAN_NONE || reverse > i)
			json_object_array_add(links, json_link(g, i));
	}
	rec_str(o, "fabric", v.attr.name);
	rec_put(o, "ranks", json_ranks(g));
	rec_put(o, "boxes", json_boxes(&v));
	rec_put(o, "elements", elements);
	rec_put(o, "links", links);
	rec_put(o, "meshes", json_meshes(&v));
	rec_put(o, "warnings", json_warnings(g));
	view_free(&v);
	return o;
}

/* ---- tables -------------------------------------------------------------- */

static const struct column box_columns[] = {
	{ "BOX", "box", F_TEXT, false },
	{ "ELEMENTS", "elements", F_NUMBER, false },
	{ "RANKS", "ranks", F_NUMBER, false },
	{ NULL, NULL, F_TEXT, false }
};

static const struct column element_columns[] = {
	{ "ELEMENT", "name", F_TEXT, false },
	{ "KIND", "kind", F_TEXT, false },
	{ "BOX", "box", F_TEXT, false },
	{ "RANK", "rank", F_NUMBER, false },
	{ "UP", "up", F_TEXT, false },
	{ "PCI", "pci_name", F_TEXT, true },
	{ "LINE", "line", F_NUMBER, true },
	{ NULL, NULL, F_TEXT, false }
};

static const struct column link_columns[] = {
	{ "LINK", "a", F_TEXT, false },
	{ "TO", "b", F_TEXT, false },
	{ "KIND", "kind", F_TEXT, false },
	{ "GB/S", "gbps", F_NUMBER, false },
	{ "BACK", "back_gbps", F_NUMBER, false },
	{ "NS", "latency_ns", F_NUMBER, true },
	{ "LINE", "line", F_NUMBER, true },
	{ NULL, NULL, F_TEXT, false }
};

static const struct column mesh_columns[] = {
	{ "MESH", "box", F_TEXT, false },
	{ "KIND", "kind", F_TEXT, false },
	{ "LINKS", "directed_links", F_NUMBER, false },
	{ "GB/S", "gbps", F_NUMBER, false },
	{ NULL, NULL, F_TEXT, false }
};

static json_object *part(json_object *graph, const char *key)
{
	json_object *v = NULL;

	json_object_object_get_ex(graph, key, &v);
	return v;
}

static void print_part(FILE *f, json_object *rows, const struct column *columns,
		       bool wide, bool color)
{
	if (!json_object_array_length(rows))
		return;
	fputc('\n', f);
	table_print(f, rows, columns, wide, color);
}

/* Without those that the table of meshes sums up. */
static json_object *other_links(json_object *graph)
{
	json_object *all = part(graph, "links");
	json_object *rest = json_object_new_array();
	size_t i, n = json_object_array_length(all);

	for (i = 0; i < n; i++) {
		json_object *l = json_object_array_get_idx(all, i);

		if (!rec_get_flag(l, "in_mesh"))
			json_object_array_add(rest, json_object_get(l));
	}
	return rest;
}

void graph_print(FILE *f, json_object *graph, bool wide, bool color)
{
	json_object *links = wide ? json_object_get(part(graph, "links"))
				  : other_links(graph);
	json_object *warnings = part(graph, "warnings");
	size_t i, n = json_object_array_length(warnings);

	print_part(f, part(graph, "boxes"), box_columns, wide, color);
	print_part(f, part(graph, "elements"), element_columns, wide, color);
	print_part(f, links, link_columns, wide, color);
	if (!wide)
		print_part(f, part(graph, "meshes"), mesh_columns, wide, color);
	json_object_put(links);
	for (i = 0; i < n; i++)
		fprintf(f, "%s! %s\n", i ? "" : "\n", json_object_get_string(
			json_object_array_get_idx(warnings, i)));
}
