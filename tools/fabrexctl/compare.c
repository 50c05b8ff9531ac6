// SPDX-License-Identifier: GPL-2.0-only
/*
 * "topology compare": wirings in the order of what they can do, and what limits
 * each of them.
 */
#include <stdlib.h>
#include <string.h>

#include "certificate.h"
#include "compare.h"
#include "json.h"
#include "source.h"
#include "table.h"

/* One wiring: what it is ordered by, and its record. */
struct wiring {
	const char *name;
	struct plan_ratio optimal, ring;
	double predicted;
	json_object *record;
};

/* In the place of the null that keeps the order of the keys. */
static void set_double(json_object *o, const char *key, double v)
{
	char text[64];

	snprintf(text, sizeof(text), "%.3f", v);
	json_object_object_add(o, key, json_object_new_double_s(v, text));
}

static json_object *record(const char *name, const struct planned *p)
{
	json_object *o = json_object_new_object();
	char *words = certificate_limit(p);

	rec_str(o, "source", name);
	rec_str(o, "fabric", p->graph->name);
	rec_int(o, "gpus", p->graph->nranks);
	rec_double(o, "bound_busbw_gbps", planned_gbps(p->optimum.bound.busbw),
		   3);
	rec_double(o, "optimal_busbw_gbps", planned_gbps(p->optimum.busbw), 3);
	rec_bool(o, "optimal_proved", p->optimum.proved);
	rec_put(o, "ring_busbw_gbps", NULL);
	rec_bool(o, "ring_proved", p->has_rings && p->rings.proved);
	rec_put(o, "predicted_busbw_gbps", NULL);
	rec_put(o, "predicted_optimal_busbw_gbps", NULL);
	rec_str(o, "limit", words);
	rec_put(o, "warnings", json_warnings(p->graph));
	free(words);
	if (p->has_rings)
		set_double(o, "ring_busbw_gbps", planned_gbps(p->rings.busbw));
	if (p->played)
		set_double(o, "predicted_optimal_busbw_gbps",
			   p->optimal_played.busbw);
	if (p->played && p->has_rings)
		set_double(o, "predicted_busbw_gbps", p->ring_played.busbw);
	return o;
}

static int judge(struct ctl *c, const char *name,
		 enum plan_collective collective, uint64_t size,
		 struct wiring *w)
{
	struct plan_graph *g = NULL;
	struct planned p = { 0 };
	uint32_t root = 0;
	int r = source_plannable(c, name, &g);

	if (!r)
		r = source_root(c, g, collective, &root);
	if (!r)
		r = planned_make(c, name, g, collective, root, &p);
	if (!r)
		r = planned_predict(c, name, size, &p);
	if (!r)
		*w = (struct wiring){
			.name = name, .optimal = p.optimum.busbw,
			.ring = p.has_rings ? p.rings.busbw
					    : plan_ratio(0, 1),
			.predicted = p.ring_played.busbw,
			.record = record(name, &p),
		};
	planned_free(&p);
	plan_graph_free(g);
	return r;
}

/* Best first: optimum, rings, prediction; then by name. */
static int by_speed(const void *a, const void *b)
{
	const struct wiring *x = a, *y = b;
	int order = plan_ratio_compare(y->optimal, x->optimal);

	if (!order)
		order = plan_ratio_compare(y->ring, x->ring);
	if (!order && x->predicted != y->predicted)
		order = x->predicted < y->predicted ? 1 : -1;
	return order ? order : strcmp(x->name, y->name);
}

static void print(struct ctl *c, json_object *rows,
		  enum plan_collective collective, uint64_t size)
{
	static const struct column columns[] = {
		{ "FABRIC", "fabric", F_TEXT, false },
		{ "GPUS", "gpus", F_NUMBER, false },
		{ "BOUND", "bound_busbw_gbps", F_NUMBER, false },
		{ "OPTIMAL", "optimal_busbw_gbps", F_NUMBER, false },
		{ "RINGS", "ring_busbw_gbps", F_NUMBER, false },
		{ "PREDICTED: OPTIMAL", "predicted_optimal_busbw_gbps",
		  F_NUMBER, false },
		{ "RINGS", "predicted_busbw_gbps", F_NUMBER, false },
		{ NULL, NULL, F_TEXT, false }
	};
	size_t i, n = json_object_array_length(rows);
	char text[32];

	format_size(text, sizeof(text), (double)size);
	fprintf(c->out, "%s, busbw in GB/s, predictions for %s\n\n",
		plan_collective_name(collective), text);
	table_print(c->out, rows, columns, true, c->color);
	fputc('\n', c->out);
	for (i = 0; i < n; i++) {
		json_object *o = json_object_array_get_idx(rows, i);

		fprintf(c->out, "%s: %s\n", rec_get_str(o, "fabric"),
			rec_get_str(o, "limit"));
	}
}

int topology_compare(struct ctl *c, int argc, char **argv)
{
	enum plan_collective collective;
	json_object *rows;
	struct wiring *w;
	uint64_t size;
	int i, n = 0, r;

	if (!argc)
		return err_usage(&c->err, NULL, "topology compare: name the "
				 "files; see \"fabrexctl help topology\"");
	r = source_collective(c, &collective);
	if (!r)
		r = source_size(c, &size);
	if (r)
		return r;
	w = xcalloc((size_t)argc, sizeof(*w));
	for (i = 0; i < argc && !r; i++) {
		r = judge(c, argv[i], collective, size, &w[i]);
		n += !r;
	}
	qsort(w, (size_t)n, sizeof(*w), by_speed);
	rows = json_object_new_array();
	for (i = 0; i < n; i++)
		json_object_array_add(rows, w[i].record);
	free(w);
	c->doc = json_object_new_object();
	rec_str(c->doc, "collective", plan_collective_name(collective));
	rec_int(c->doc, "size", (int64_t)size);
	rec_put(c->doc, "wirings", rows);
	if (!r)
		print(c, rows, collective, size);
	return r;
}
