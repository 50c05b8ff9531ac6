// SPDX-License-Identifier: LGPL-2.1-or-later
/* The all-reduce's bound against every cut and every partition there is. */
#include <stdlib.h>

#include "brute.h"
#include "check.h"
#include "plan/optimum.h"
#include "random.h"
#include "tests/tap.h"

#define GRAPHS		200u
#define MOST_GPUS	6u

struct every {
	const struct plan_graph *g;
	uint64_t in[1u << MOST_GPUS];	/* of each set of ranks */
	uint32_t part[MOST_GPUS];
	struct plan_ratio best;
	bool any;
};

/* Least capacity into each set of ranks, wherever the switches are. */
static void all_sets(struct every *v)
{
	const struct plan_graph *g = v->g;
	uint32_t set, ranks, i;
	uint64_t sum;

	memset(v->in, 0xff, sizeof(v->in));
	for (set = 0; set < 1u << g->nnodes; set++) {
		for (ranks = 0, i = 0; i < g->nranks; i++)
			ranks |= (set >> g->gpus[i] & 1) << i;
		for (sum = 0, i = 0; i < g->nedges; i++)
			if (!(set >> g->edges[i].from & 1) &&
			    (set >> g->edges[i].to & 1))
				sum += g->edges[i].capacity;
		if (sum < v->in[ranks])
			v->in[ranks] = sum;
	}
}

/* Ranks from @i on into one of the @n parts, or one more. */
static void all_partitions(struct every *v, uint32_t i, uint32_t n)
{
	uint32_t p, k, set;
	uint64_t sum = 0;

	if (i < v->g->nranks) {
		for (p = 0; p <= n; p++) {
			v->part[i] = p;
			all_partitions(v, i + 1, p == n ? n + 1 : n);
		}
		return;
	}
	if (n < 2)
		return;
	for (p = 0; p < n; p++) {
		for (set = 0, k = 0; k < i; k++)
			set |= (uint32_t)(v->part[k] == p) << k;
		sum += v->in[set];
	}
	if (!v->any || plan_ratio_compare(plan_ratio(sum, 2 * (n - 1)),
					  v->best) < 0)
		v->best = plan_ratio(sum, 2 * (n - 1));
	v->any = true;
}

/* Parts have no node in common, and all ranks; their edges add up. */
static bool certified(const struct plan_graph *g, const struct plan_bound *b)
{
	uint32_t ranks = 0, i, k, n;
	uint64_t sum = 0;

	for (i = 0; i < g->nnodes; i++) {
		for (n = 0, k = 0; k < b->nparts; k++)
			n += b->parts[k].inside[i];
		if (n > 1)
			return false;
		ranks += n && g->nodes[i].rank != PLAN_NONE;
	}
	for (k = 0; k < b->nparts; k++)
		for (i = 0; i < b->parts[k].nedges; i++)
			sum += g->edges[b->parts[k].edges[i]].capacity;
	return ranks == g->nranks && b->nparts > 1 &&
		!plan_ratio_compare(b->algbw, plan_ratio(sum, 2 *
				    (uint64_t)(b->nparts - 1)));
}

static bool agrees(uint64_t seed, uint32_t *parts)
{
	struct plan_graph *g = random_graph(seed, MOST_GPUS, 4);
	static struct every v;
	struct plan_error e = { .text = "" };
	struct plan_ratio cut = brute_bound(g, PLAN_ALL_REDUCE, 0);
	struct plan_bound b;
	bool good;

	v = (struct every){ .g = g };
	all_sets(&v);
	all_partitions(&v, 0, 0);
	if (plan_ratio_compare(cut, v.best) < 0)
		v.best = cut;
	good = !plan_bound(g, PLAN_ALL_REDUCE, 0, &b, &e);
	if (good) {
		good = !plan_ratio_compare(b.algbw, v.best) &&
			(b.kind == PLAN_BOUND_CUT || certified(g, &b));
		*parts += b.kind == PLAN_BOUND_PARTITION;
	}
	if (!good)
		printf("# seed %llu: %llu/%llu, brute force %llu/%llu %s\n",
		       (unsigned long long)seed,
		       (unsigned long long)b.algbw.num,
		       (unsigned long long)b.algbw.den,
		       (unsigned long long)v.best.num,
		       (unsigned long long)v.best.den, e.text);
	plan_bound_free(&b);
	plan_graph_free(g);
	return good;
}

static bool alike(const struct plan_graph *g)
{
	uint32_t i;

	for (i = 0; i < g->nedges; i++)
		if (g->edges[i].twin == PLAN_NONE ||
		    g->edges[g->edges[i].twin].capacity != g->edges[i].capacity)
			return false;
	return true;
}

/* Where links are alike both ways, the bound is always reached. */
static bool reached(uint64_t seed, uint32_t *graphs)
{
	struct plan_graph *g = random_graph(seed, 2 * MOST_GPUS, 6);
	struct plan_error e = { .text = "" };
	struct plan_optimum o = { .proved = true };
	char why[CHECK_WHY] = "";
	bool good = true;

	if (alike(g)) {
		++*graphs;
		good = !plan_optimum(g, PLAN_ALL_REDUCE, 0, &o, &e) &&
			check_optimum(g, PLAN_ALL_REDUCE, 0, &o, why) &&
			o.proved;
		if (!good)
			printf("# seed %llu: %s %s\n",
			       (unsigned long long)seed, e.text, why);
		plan_optimum_free(&o);
	}
	plan_graph_free(g);
	return good;
}

int main(void)
{
	uint32_t i, good = 0, parts = 0, graphs = 0;

	for (i = 0; i < GRAPHS; i++)
		good += agrees(1000 + i, &parts);
	ok(good == GRAPHS, "%u of %u all-reduce bounds are the least of all cuts and partitions",
	   good, GRAPHS);
	ok(parts > GRAPHS / 10 && parts < GRAPHS, "%u of them are partitions",
	   parts);
	for (good = 0, i = 0; i < 3 * GRAPHS; i++)
		good += reached(5000 + i, &graphs);
	ok(good == 3 * GRAPHS && graphs > GRAPHS / 2,
	   "all-reduces of %u graphs that are alike both ways reach it",
	   graphs);
	return tap_done();
}
