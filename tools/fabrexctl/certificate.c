// SPDX-License-Identifier: GPL-2.0-only
/*
 * Records of plans. The keys are an interface: fabrexctl-plan-collective(8)
 * documents them.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "certificate.h"
#include "json.h"

void rec_exact(json_object *o, const char *key, struct plan_ratio r)
{
	char text[48];

	if (r.den == 1)
		snprintf(text, sizeof(text), "%" PRIu64, r.num);
	else
		snprintf(text, sizeof(text), "%" PRIu64 "/%" PRIu64, r.num,
			 r.den);
	rec_str(o, key, text);
}

static void rec_gbps(json_object *o, const char *key, struct plan_ratio r)
{
	rec_double(o, key, planned_gbps(r), 3);
}

static void add_name(json_object *list, const char *name)
{
	json_object_array_add(list, json_object_new_string(name));
}

json_object *json_ranks(const struct plan_graph *g)
{
	json_object *list = json_object_new_array();
	uint32_t i;

	for (i = 0; i < g->nranks; i++)
		add_name(list, g->nodes[g->gpus[i]].name);
	return list;
}

json_object *json_warnings(const struct plan_graph *g)
{
	json_object *list = json_object_new_array();
	uint32_t i;

	for (i = 0; i < g->nwarnings; i++)
		add_name(list, g->warnings[i]);
	return list;
}

static json_object *json_edge(const struct plan_graph *g, uint32_t edge)
{
	const struct plan_edge *e = &g->edges[edge];
	json_object *o = json_object_new_object();

	rec_str(o, "from", g->nodes[e->from].name);
	rec_str(o, "to", g->nodes[e->to].name);
	rec_str(o, "kind", plan_link_kind_name(e->kind));
	rec_double(o, "gbps", e->capacity / 1e3, 3);
	return o;
}

json_object *json_cut(const struct plan_graph *g, const struct plan_cut *cut)
{
	json_object *o = json_object_new_object();
	json_object *ranks = json_object_new_array();
	json_object *nodes = json_object_new_array();
	json_object *edges = json_object_new_array();
	uint32_t i;

	for (i = 0; i < g->nnodes; i++) {
		if (!cut->inside[i])
			continue;
		add_name(nodes, g->nodes[i].name);
		if (g->nodes[i].rank != PLAN_NONE)
			json_object_array_add(ranks, json_object_new_int64(
					      g->nodes[i].rank));
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
	const struct plan_bound *b = &p->optimum.bound;
	const struct plan_cut *cut = &b->cut;
	double sum = cut->capacity / 1e3, algbw = planned_gbps(b->algbw);

	if (p->collective == PLAN_ALL_GATHER ||
	    p->collective == PLAN_REDUCE_SCATTER)
		return xasprintf("%u of %u shards cross %u edges of %.10g GB/s "
				 "in all: algbw <= %.10g * %u / %u = %.10g",
				 cut->ninside, p->graph->nranks, cut->nedges,
				 sum, sum, p->graph->nranks, cut->ninside,
				 algbw);
	return xasprintf("everything crosses %u edges of %.10g GB/s in all: "
			 "algbw <= %.10g", cut->nedges, sum, algbw);
}

static char *partition_arithmetic(const struct planned *p)
{
	const struct plan_bound *b = &p->optimum.bound;
	double sum = 0;
	uint32_t i;

	for (i = 0; i < b->nparts; i++)
		sum += b->parts[i].capacity / 1e3;
	return xasprintf("%u parts receive at least 2 * (%u - 1) times the "
			 "size over edges of %.10g GB/s in all: algbw <= %.10g "
			 "/ %u = %.10g", b->nparts, b->nparts, sum, sum,
			 2 * (b->nparts - 1), planned_gbps(b->algbw));
}

/* Edges that are alike are counted: "4 x 27 GB/s cable". */
static void print_edges(FILE *f, const struct plan_graph *g,
			const struct plan_cut *cut)
{
	bool *told = xcalloc(cut->nedges, sizeof(*told));
	unsigned int kinds = 0;
	uint32_t i, k, n;

	for (i = 0; i < cut->nedges && kinds < 4; i++) {
		const struct plan_edge *e = &g->edges[cut->edges[i]];

		if (told[i])
			continue;
		for (k = i, n = 0; k < cut->nedges; k++) {
			const struct plan_edge *o = &g->edges[cut->edges[k]];

			if (o->kind != e->kind || o->capacity != e->capacity)
				continue;
			told[k] = true;
			n++;
		}
		fprintf(f, "%s%u x %.10g GB/s %s", kinds ? " + " : "", n,
			e->capacity / 1e3, plan_link_kind_name(e->kind));
		kinds++;
	}
	for (n = 0; i < cut->nedges; i++)
		n += !told[i];
	if (n)
		fprintf(f, " + %u others", n);
	free(told);
}

static bool leads_out(const struct plan_graph *g, const struct plan_cut *cut)
{
	return cut->nedges && cut->inside[g->edges[cut->edges[0]].from];
}

char *certificate_limit(const struct planned *p)
{
	const struct plan_bound *b = &p->optimum.bound;
	const struct plan_graph *g = p->graph;
	char *text = NULL;
	double sum = 0;
	uint32_t i;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (b->kind == PLAN_BOUND_CUT) {
		fprintf(f, "%u of %u GPUs, ", b->cut.ninside, g->nranks);
		print_edges(f, g, &b->cut);
		fprintf(f, " %s: %.10g GB/s", leads_out(g, &b->cut) ? "out" :
			"in", b->cut.capacity / 1e3);
	} else {
		for (i = 0; i < b->nparts; i++)
			sum += b->parts[i].capacity / 1e3;
		fprintf(f, "%u parts, %.10g GB/s into them; the first has %u "
			"of %u GPUs, ", b->nparts, sum, b->parts[0].ninside,
			g->nranks);
		print_edges(f, g, &b->parts[0]);
	}
	fclose(f);
	return text;
}

/* One object for both kinds: its parts are one cut, or all parts. */
static json_object *json_certificate(const struct planned *p)
{
	const struct plan_bound *b = &p->optimum.bound;
	bool one = b->kind == PLAN_BOUND_CUT;
	json_object *o = json_object_new_object();
	json_object *parts = json_object_new_array();
	const struct plan_cut *first = one ? &b->cut : b->parts;
	char *sum = one ? cut_arithmetic(p) : partition_arithmetic(p);
	double capacity = 0;
	uint32_t i;

	for (i = 0; i < (one ? 1 : b->nparts); i++) {
		const struct plan_cut *cut = one ? &b->cut : &b->parts[i];

		json_object_array_add(parts, json_cut(p->graph, cut));
		capacity += cut->capacity / 1e3;
	}
	rec_str(o, "kind", one ? "cut" : "partition");
	rec_str(o, "direction", leads_out(p->graph, first) ? "out" : "in");
	rec_put(o, "parts", parts);
	rec_double(o, "capacity_gbps", capacity, 3);
	rec_str(o, "arithmetic", sum);
	free(sum);
	return o;
}

json_object *json_bound(const struct planned *p)
{
	const struct plan_bound *b = &p->optimum.bound;
	json_object *o = json_object_new_object();
	char *words = planned_words(p);

	rec_gbps(o, "busbw_gbps", b->busbw);
	rec_gbps(o, "algbw_gbps", b->algbw);
	rec_exact(o, "busbw_exact", b->busbw);
	rec_exact(o, "algbw_exact", b->algbw);
	rec_put(o, "cut", json_certificate(p));
	rec_str(o, "words", words);
	free(words);
	return o;
}

static void rec_played(json_object *o, const char *key, bool there, double v,
		       int digits)
{
	if (there)
		rec_double(o, key, v, digits);
	else
		rec_put(o, key, NULL);
}

json_object *json_optimal(const struct planned *p)
{
	const struct plan_optimum *opt = &p->optimum;
	json_object *o = json_object_new_object();

	rec_gbps(o, "busbw_gbps", opt->busbw);
	rec_gbps(o, "algbw_gbps", opt->algbw);
	rec_exact(o, "busbw_exact", opt->busbw);
	rec_exact(o, "algbw_exact", opt->algbw);
	rec_int(o, "k", (int64_t)opt->k);
	rec_bool(o, "proved", opt->proved);
	rec_int(o, "chunks", (int64_t)opt->schedule->nchunks);
	rec_int(o, "transfers", (int64_t)opt->schedule->ntransfers);
	rec_played(o, "predicted_busbw_gbps", p->played,
		   p->optimal_played.busbw, 3);
	rec_played(o, "predicted_seconds", p->played,
		   p->optimal_played.seconds, 9);
	return o;
}

static json_object *json_orders(const struct plan_rings *rings, uint32_t n)
{
	json_object *list = json_object_new_array();
	uint32_t i, k;

	for (i = 0; i < rings->nrings; i++) {
		json_object *one = json_object_new_array();

		for (k = 0; k < n; k++)
			json_object_array_add(one, json_object_new_int64(
					      rings->order[i * n + k]));
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
	char *words = planned_nccl_rings(p, NULL);

	rec_int(o, "rings", p->has_rings ? p->rings.nrings : 0);
	rec_bool(o, "proved", p->has_rings && p->rings.proved);
	rec_str(o, "why_none", p->no_rings);
	if (!p->has_rings) {
		rec_nothing(o, numbers);
		return o;
	}
	rec_gbps(o, "busbw_gbps", p->rings.busbw);
	rec_exact(o, "busbw_exact", p->rings.busbw);
	rec_double(o, "algbw_gbps", planned_ring_algbw(p), 3);
	rec_gbps(o, "bound_gbps", p->rings.bound);
	rec_exact(o, "bound_exact", p->rings.bound);
	rec_put(o, "cut", json_cut(p->graph, &p->rings.cut));
	rec_put(o, "orders", json_orders(&p->rings, p->graph->nranks));
	rec_str(o, "nccl_rings", words);
	rec_played(o, "predicted_busbw_gbps", p->played, p->ring_played.busbw, 3);
	rec_played(o, "predicted_seconds", p->played, p->ring_played.seconds, 9);
	free(words);
	return o;
}

json_object *json_predicted(const struct planned *p)
{
	bool there = p->played && p->has_rings;
	json_object *o = json_object_new_object();

	rec_int(o, "size", (int64_t)p->size);
	rec_str(o, "schedule", "rings");
	rec_played(o, "busbw_gbps", there, p->ring_played.busbw, 3);
	rec_played(o, "algbw_gbps", there, p->ring_played.algbw, 3);
	rec_played(o, "seconds", there, p->ring_played.seconds, 9);
	rec_str(o, "why_none", p->has_rings ? p->not_played : p->no_rings);
	return o;
}
