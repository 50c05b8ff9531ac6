// SPDX-License-Identifier: GPL-2.0-only
/*
 * Records of plans. The keys are an interface: fabrexctl-plan-collective(8)
 * documents them.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "certificate.h"
#include "graph.h"
#include "json.h"

void rec_exact(json_object *o, const char *key, struct fabrex_plan_ratio r)
{
	char text[48];

	if (r.den == 1)
		snprintf(text, sizeof(text), "%" PRIu64, r.num);
	else
		snprintf(text, sizeof(text), "%" PRIu64 "/%" PRIu64, r.num,
			 r.den);
	rec_str(o, key, text);
}

static void rec_gbps(json_object *o, const char *key,
		     struct fabrex_plan_ratio r)
{
	rec_double(o, key, planned_gbps(r), 3);
}

static void add_name(json_object *list, const char *name)
{
	json_object_array_add(list, json_object_new_string(name));
}

json_object *json_ranks(const struct fabrex_plan_graph *g)
{
	json_object *list = json_object_new_array();
	uint32_t i, n = graph_attr(g).ranks;

	for (i = 0; i < n; i++)
		add_name(list, graph_rank(g, i).name);
	return list;
}

json_object *json_warnings(const struct fabrex_plan_graph *g)
{
	json_object *list = json_object_new_array();
	uint32_t i, n = graph_attr(g).warnings;

	for (i = 0; i < n; i++)
		add_name(list, fabrex_plan_graph_warning(g, i));
	return list;
}

static json_object *json_edge(const struct fabrex_plan_graph *g, uint32_t edge)
{
	const struct fabrex_plan_edge e = graph_edge(g, edge);
	json_object *o = json_object_new_object();

	rec_str(o, "from", graph_node(g, e.from).name);
	rec_str(o, "to", graph_node(g, e.to).name);
	rec_str(o, "kind", fabrex_plan_link_kind_str(e.kind));
	rec_double(o, "gbps", e.capacity / 1e3, 3);
	return o;
}

json_object *json_cut(const struct fabrex_plan_graph *g,
		      const struct fabrex_plan_part *cut)
{
	json_object *o = json_object_new_object();
	json_object *ranks = json_object_new_array();
	json_object *nodes = json_object_new_array();
	json_object *edges = json_object_new_array();
	uint32_t i;

	for (i = 0; i < cut->nnodes; i++) {
		const struct fabrex_plan_node n = graph_node(g, cut->nodes[i]);

		add_name(nodes, n.name);
		if (n.rank != FABREX_PLAN_NONE)
			json_object_array_add(ranks,
					      json_object_new_int64(n.rank));
	}
	for (i = 0; i < cut->nedges; i++)
		json_object_array_add(edges, json_edge(g, cut->edges[i]));
	rec_put(o, "ranks", ranks);
	rec_put(o, "inside", nodes);
	rec_put(o, "edges", edges);
	rec_double(o, "capacity_gbps", cut->capacity / 1e3, 3);
	return o;
}

/* What is divided by what; capacities in GB/s. */
static char *cut_arithmetic(const struct planned *p)
{
	const struct fabrex_plan_part cut = plan_part(p->optimal, 0);
	double sum = cut.capacity / 1e3;
	double algbw = planned_gbps(p->optimum.bound_algbw);

	if (p->collective == FABREX_PLAN_ALL_GATHER ||
	    p->collective == FABREX_PLAN_REDUCE_SCATTER)
		return xasprintf("%u of %u shards cross %u edges of %.10g GB/s "
				 "in all: algbw <= %.10g * %u / %u = %.10g",
				 cut.ranks, p->optimum.ranks, cut.nedges,
				 sum, sum, p->optimum.ranks, cut.ranks,
				 algbw);
	return xasprintf("everything crosses %u edges of %.10g GB/s in all: "
			 "algbw <= %.10g", cut.nedges, sum, algbw);
}

/* GB/s into all parts of a partition. */
static double parts_capacity(const struct planned *p)
{
	double sum = 0;
	uint32_t i;

	for (i = 0; i < p->optimum.parts; i++)
		sum += plan_part(p->optimal, i).capacity / 1e3;
	return sum;
}

static char *partition_arithmetic(const struct planned *p)
{
	const uint32_t n = p->optimum.parts;
	double sum = parts_capacity(p);

	return xasprintf("%u parts receive at least 2 * (%u - 1) times the "
			 "size over edges of %.10g GB/s in all: algbw <= %.10g "
			 "/ %u = %.10g", n, n, sum, sum, 2 * (n - 1),
			 planned_gbps(p->optimum.bound_algbw));
}

/* Edges that are alike are counted: "4 x 27 GB/s cable". */
static void print_edges(FILE *f, const struct fabrex_plan_graph *g,
			const struct fabrex_plan_part *cut)
{
	bool *told = xcalloc(cut->nedges, sizeof(*told));
	unsigned int kinds = 0;
	uint32_t i, k, n;

	for (i = 0; i < cut->nedges && kinds < 4; i++) {
		const struct fabrex_plan_edge e = graph_edge(g, cut->edges[i]);

		if (told[i])
			continue;
		for (k = i, n = 0; k < cut->nedges; k++) {
			const struct fabrex_plan_edge o =
				graph_edge(g, cut->edges[k]);

			if (o.kind != e.kind || o.capacity != e.capacity)
				continue;
			told[k] = true;
			n++;
		}
		fprintf(f, "%s%u x %.10g GB/s %s", kinds ? " + " : "", n,
			e.capacity / 1e3, fabrex_plan_link_kind_str(e.kind));
		kinds++;
	}
	for (n = 0; i < cut->nedges; i++)
		n += !told[i];
	if (n)
		fprintf(f, " + %u others", n);
	free(told);
}

static bool leads_out(const struct fabrex_plan_part *cut)
{
	return cut->nedges && !cut->inward;
}

char *certificate_limit(const struct planned *p)
{
	const struct fabrex_plan_part first = plan_part(p->optimal, 0);
	const struct fabrex_plan_attr *o = &p->optimum;
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (o->bound_kind == FABREX_PLAN_BOUND_CUT) {
		fprintf(f, "%u of %u GPUs, ", first.ranks, o->ranks);
		print_edges(f, p->graph, &first);
		fprintf(f, " %s: %.10g GB/s", leads_out(&first) ? "out" : "in",
			first.capacity / 1e3);
	} else {
		fprintf(f, "%u parts, %.10g GB/s into them; the first has %u "
			"of %u GPUs, ", o->parts, parts_capacity(p),
			first.ranks, o->ranks);
		print_edges(f, p->graph, &first);
	}
	fclose(f);
	return text;
}

/* One object for both kinds: its parts are one cut, or all parts. */
static json_object *json_certificate(const struct planned *p)
{
	bool one = p->optimum.bound_kind == FABREX_PLAN_BOUND_CUT;
	const struct fabrex_plan_part first = plan_part(p->optimal, 0);
	json_object *o = json_object_new_object();
	json_object *parts = json_object_new_array();
	char *sum = one ? cut_arithmetic(p) : partition_arithmetic(p);
	uint32_t i;

	for (i = 0; i < p->optimum.parts; i++) {
		const struct fabrex_plan_part cut = plan_part(p->optimal, i);

		json_object_array_add(parts, json_cut(p->graph, &cut));
	}
	rec_str(o, "kind", one ? "cut" : "partition");
	rec_str(o, "direction", leads_out(&first) ? "out" : "in");
	rec_put(o, "parts", parts);
	rec_double(o, "capacity_gbps", parts_capacity(p), 3);
	rec_str(o, "arithmetic", sum);
	free(sum);
	return o;
}

json_object *json_bound(const struct planned *p)
{
	json_object *o = json_object_new_object();
	char *words = planned_words(p);

	rec_gbps(o, "busbw_gbps", p->optimum.bound_busbw);
	rec_gbps(o, "algbw_gbps", p->optimum.bound_algbw);
	rec_exact(o, "busbw_exact", p->optimum.bound_busbw);
	rec_exact(o, "algbw_exact", p->optimum.bound_algbw);
	rec_put(o, "cut", json_certificate(p));
	rec_str(o, "words", words);
	free(words);
	return o;
}

static void rec_predicted(json_object *o, const char *key, bool there, double v,
		       int digits)
{
	if (there)
		rec_double(o, key, v, digits);
	else
		rec_put(o, key, NULL);
}

json_object *json_optimal(const struct planned *p)
{
	const struct fabrex_plan_attr *opt = &p->optimum;
	json_object *o = json_object_new_object();

	rec_gbps(o, "busbw_gbps", opt->busbw);
	rec_gbps(o, "algbw_gbps", opt->algbw);
	rec_exact(o, "busbw_exact", opt->busbw);
	rec_exact(o, "algbw_exact", opt->algbw);
	rec_int(o, "k", (int64_t)opt->trees);
	rec_bool(o, "proved", opt->proved);
	rec_int(o, "chunks", (int64_t)opt->chunks);
	rec_int(o, "transfers", (int64_t)opt->transfers);
	rec_predicted(o, "predicted_busbw_gbps", p->predicted,
		   p->optimal_time.busbw, 3);
	rec_predicted(o, "predicted_seconds", p->predicted,
		   p->optimal_time.seconds, 9);
	return o;
}

static json_object *json_orders(const struct planned *p)
{
	json_object *list = json_object_new_array();
	uint32_t i, k;

	for (i = 0; i < p->ring.rings; i++) {
		const uint32_t *order = fabrex_plan_ring(p->rings, i);
		json_object *one = json_object_new_array();

		for (k = 0; k < p->ring.ranks; k++)
			json_object_array_add(one,
					      json_object_new_int64(order[k]));
		json_object_array_add(list, one);
	}
	return list;
}

static void rec_nothing(json_object *o, const char *const *keys)
{
	for (; *keys; keys++)
		rec_put(o, *keys, NULL);
}

json_object *json_ring(const struct planned *p)
{
	static const char *const numbers[] = {
		"busbw_gbps", "busbw_exact", "algbw_gbps", "bound_gbps",
		"bound_exact",
		"cut", "orders", "nccl_rings", "predicted_busbw_gbps",
		"predicted_seconds", NULL
	};
	json_object *o = json_object_new_object();
	struct fabrex_plan_part cut;
	char *words;

	rec_int(o, "rings", p->ring.rings);
	rec_bool(o, "proved", p->ring.proved);
	rec_str(o, "why_none", p->no_rings);
	if (!p->rings) {
		rec_nothing(o, numbers);
		return o;
	}
	cut = plan_part(p->rings, 0);
	words = planned_nccl_rings(p);
	rec_gbps(o, "busbw_gbps", p->ring.busbw);
	rec_exact(o, "busbw_exact", p->ring.busbw);
	rec_gbps(o, "algbw_gbps", p->ring.algbw);
	rec_gbps(o, "bound_gbps", p->ring.bound_busbw);
	rec_exact(o, "bound_exact", p->ring.bound_busbw);
	rec_put(o, "cut", json_cut(p->graph, &cut));
	rec_put(o, "orders", json_orders(p));
	rec_str(o, "nccl_rings", words);
	rec_predicted(o, "predicted_busbw_gbps", p->predicted, p->ring_time.busbw, 3);
	rec_predicted(o, "predicted_seconds", p->predicted, p->ring_time.seconds, 9);
	free(words);
	return o;
}

json_object *json_predicted(const struct planned *p)
{
	bool there = p->predicted && p->rings;
	json_object *o = json_object_new_object();

	rec_int(o, "size", (int64_t)p->size);
	rec_str(o, "schedule", "rings");
	rec_predicted(o, "busbw_gbps", there, p->ring_time.busbw, 3);
	rec_predicted(o, "algbw_gbps", there, p->ring_time.algbw, 3);
	rec_predicted(o, "seconds", there, p->ring_time.seconds, 9);
	rec_str(o, "why_none", p->rings ? p->not_predicted : p->no_rings);
	return o;
}
