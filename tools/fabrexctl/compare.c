// SPDX-License-Identifier: GPL-2.0-only
/*
 * "topology compare": wirings in the order of what they can do, and what limits
 * each of them.
 */
#include <stdlib.h>
#include <string.h>

#include "certificate.h"
#include "compare.h"
#include "graph.h"
#include "json.h"
#include "source.h"
#include "table.h"
#include "topology/visible.h"

/* One wiring: what it is ordered by, and its record. */
struct wiring {
	const char *name;
	bool failed;
	struct fabrex_plan_ratio optimal, ring;
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
	rec_str(o, "fabric", graph_attr(p->graph).name);
	rec_int(o, "gpus", p->optimum.ranks);
	rec_double(o, "bound_busbw_gbps", planned_gbps(p->optimum.bound_busbw),
		   3);
	rec_double(o, "optimal_busbw_gbps", planned_gbps(p->optimum.busbw), 3);
	rec_bool(o, "optimal_proved", p->optimum.proved);
	rec_put(o, "ring_busbw_gbps", NULL);
	rec_bool(o, "ring_proved", p->ring.proved);
	rec_put(o, "predicted_busbw_gbps", NULL);
	rec_put(o, "predicted_optimal_busbw_gbps", NULL);
	rec_str(o, "limit", words);
	rec_put(o, "warnings", json_warnings(p->graph));
	rec_put(o, "error", NULL);
	free(words);
	if (p->rings)
		set_double(o, "ring_busbw_gbps", planned_gbps(p->ring.busbw));
	if (p->predicted)
		set_double(o, "predicted_optimal_busbw_gbps",
			   p->optimal_time.busbw);
	if (p->predicted && p->rings)
		set_double(o, "predicted_busbw_gbps", p->ring_time.busbw);
	return o;
}

/* The same keys, of a file that nothing can be said of. */
static json_object *failure(const char *name, const char *message)
{
	static const char *const keys[] = {
		"fabric", "gpus", "bound_busbw_gbps", "optimal_busbw_gbps",
		"optimal_proved", "ring_busbw_gbps", "ring_proved",
		"predicted_busbw_gbps", "predicted_optimal_busbw_gbps",
		"limit",
	};
	json_object *o = json_object_new_object();
	size_t i;

	rec_str(o, "source", name);
	for (i = 0; i < ARRAY_SIZE(keys); i++)
		rec_put(o, keys[i], NULL);
	rec_put(o, "warnings", json_object_new_array());
	rec_str(o, "error", message);
	return o;
}

static int judge(struct ctl *c, const char *name,
		 int collective, uint64_t size,
		 struct wiring *w)
{
	struct fabrex_plan_graph *g = NULL;
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
			.ring = p.rings ? p.ring.busbw
					: (struct fabrex_plan_ratio){ 0, 1 },
			.predicted = p.ring_time.busbw,
			.record = record(name, &p),
		};
	planned_free(&p);
	fabrex_plan_graph_free(g);
	return r;
}

/* Best first: optimum, rings, prediction; then by name. Failures are last. */
static int by_speed(const void *a, const void *b)
{
	const struct wiring *x = a, *y = b;
	int order;

	if (x->failed || y->failed)
		return x->failed != y->failed ? x->failed - y->failed :
		       strcmp(x->name, y->name);
	order = fabrex_plan_ratio_compare(y->optimal, x->optimal);
	if (!order)
		order = fabrex_plan_ratio_compare(y->ring, x->ring);
	if (!order && x->predicted != y->predicted)
		order = x->predicted < y->predicted ? 1 : -1;
	return order ? order : strcmp(x->name, y->name);
}

static void print(struct ctl *c, json_object *rows,
		  int collective, uint64_t size)
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
	json_object *good = json_object_new_array();
	char text[32];

	for (i = 0; i < n; i++) {
		json_object *o = json_object_array_get_idx(rows, i);

		if (!rec_get_str(o, "error"))
			json_object_array_add(good, json_object_get(o));
	}
	format_size(text, sizeof(text), (double)size);
	fprintf(c->out, "%s, busbw in GB/s, predictions for %s\n\n",
		fabrex_plan_collective_str(collective), text);
	table_print(c->out, good, columns, true, c->color);
	json_object_put(good);
	fputc('\n', c->out);
	for (i = 0; i < n; i++) {
		json_object *o = json_object_array_get_idx(rows, i);
		const char *error = rec_get_str(o, "error");

		if (error)
			fprintf(c->out, "! %s\n", error);
		else
			fprintf(c->out, "%s: %s\n", rec_get_str(o, "fabric"),
				rec_get_str(o, "limit"));
	}
}

/*
 * A file that is bad is a row that says so. What is wrong with the command line
 * is wrong for all of them. Return: how many failed, or a negative errno.
 */
static int judge_all(struct ctl *c, char **names, int n,
		     int collective, uint64_t size,
		     struct wiring *w)
{
	int i, failed = 0;

	for (i = 0; i < n; i++) {
		if (!judge(c, names[i], collective, size, &w[i]))
			continue;
		if (c->err.usage)
			return -c->err.code;
		visible(c->err.message);
		w[i] = (struct wiring){
			.name = names[i], .failed = true,
			.record = failure(names[i], c->err.message),
		};
		if (!failed++)
			c->exit_code = err_exit_code(&c->err);
		err_clear(&c->err);
	}
	return failed;
}

int topology_compare(struct ctl *c, int argc, char **argv)
{
	int collective;
	json_object *rows;
	struct wiring *w;
	uint64_t size;
	int i, r;

	if (!argc)
		return err_usage(&c->err, NULL, "topology compare: name the "
				 "files; see \"fabrexctl help topology\"");
	r = source_collective(c, &collective);
	if (!r)
		r = source_size(c, &size);
	if (r)
		return r;
	w = xcalloc((size_t)argc, sizeof(*w));
	r = judge_all(c, argv, argc, collective, size, w);
	if (r >= 0)
		qsort(w, (size_t)argc, sizeof(*w), by_speed);
	rows = json_object_new_array();
	for (i = 0; i < argc; i++)
		if (w[i].record)
			json_object_array_add(rows, w[i].record);
	free(w);
	c->doc = json_object_new_object();
	rec_str(c->doc, "collective", fabrex_plan_collective_str(collective));
	rec_int(c->doc, "size", (int64_t)size);
	rec_put(c->doc, "wirings", rows);
	if (r < 0)
		return r;
	print(c, rows, collective, size);
	return 0;
}
