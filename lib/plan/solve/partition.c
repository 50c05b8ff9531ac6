// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The bound of an all-reduce by a partition whose parts all have to exchange
 * data, and the partition that makes it least. Called by bound.c.
 *
 * in(X) is the least capacity into a set that has exactly the ranks X;
 * switches are put where that is so, and as few as possible, so that parts
 * are disjoint. The value of a partition is sum in(X) / 2(r - 1). Newton's method
 * finds the least: for C and r of the best so far, look for a partition with
 * sum ((r - 1) in(X) - C) < -C. Those sums are least where a greedy algorithm
 * says, as in() is submodular (Edmonds' polymatroids; Cunningham, "Optimal
 * attack and reinforcement of a network", 1985).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/solve/flow.h"
#include "plan/solve/partition.h"

#define INFINITE	(FLOW_MOST / 2)

struct parts {
	const struct plan_graph *g;
	struct flow flow;	/* nodes, source, sink */
	uint32_t source, sink;
	int64_t *capacity;	/* of halves */
	int64_t *left;
	uint64_t sum;		/* of all capacities */
	bool *seen;
	uint32_t *part;		/* of each rank, while looking */
	int64_t *gain;		/* x of the greedy algorithm */
	uint32_t *best;		/* part of each rank, from 0 */
	uint32_t nbest;
	uint64_t inbound;	/* sum of in() of the best */
};

static void parts_clear(struct parts *p)
{
	flow_clear(&p->flow);
	free(p->capacity);
	free(p->left);
	free(p->seen);
	free(p->part);
	free(p->gain);
	free(p->best);
}

static bool idle(const struct plan_node *n)
{
	return n->kind == PLAN_GPU && n->rank == PLAN_NONE;
}

static int parts_pairs(struct parts *p)
{
	const struct plan_graph *g = p->g;
	uint32_t i;

	for (i = 0; i < g->nedges; i++)
		if (!idle(&g->nodes[g->edges[i].from]) &&
		    !idle(&g->nodes[g->edges[i].to]) &&
		    flow_pair(&p->flow, g->edges[i].from, g->edges[i].to) < 0)
			return -ENOMEM;
	for (i = 0; i < g->nranks; i++)
		if (flow_pair(&p->flow, p->source, g->gpus[i]) < 0 ||
		    flow_pair(&p->flow, g->gpus[i], p->sink) < 0)
			return -ENOMEM;
	return 0;
}

static int parts_init(struct parts *p, const struct plan_graph *g)
{
	uint32_t i, h;

	*p = (struct parts){ .g = g, .source = g->nnodes };
	p->sink = p->source + 1;
	p->part = calloc(g->nranks, sizeof(*p->part));
	p->best = calloc(g->nranks, sizeof(*p->best));
	p->gain = calloc(g->nranks, sizeof(*p->gain));
	p->seen = calloc(g->nnodes + 2, sizeof(*p->seen));
	if (!p->part || !p->best || !p->gain || !p->seen ||
	    flow_init(&p->flow, g->nnodes + 2) || parts_pairs(p))
		return -ENOMEM;
	p->capacity = calloc(p->flow.nhalves, sizeof(*p->capacity));
	p->left = calloc(p->flow.nhalves, sizeof(*p->left));
	if (!p->capacity || !p->left)
		return -ENOMEM;
	for (i = 0; i < g->nedges; i++) {
		const struct plan_edge *d = &g->edges[i];

		h = flow_find(&p->flow, d->from, d->to);
		if (h == PLAN_NONE)
			continue;
		p->capacity[h] += (int64_t)d->capacity;
		p->sum += d->capacity;
	}
	return 0;
}

static void set_pair(struct parts *p, uint32_t a, uint32_t b, int64_t to)
{
	p->left[flow_find(&p->flow, a, b)] = to;
}

/* in() of the ranks of @part; @seen has its nodes if @where. */
static uint64_t part_in(struct parts *p, const uint32_t *parts, uint32_t part,
			bool where)
{
	const struct plan_graph *g = p->g;
	uint32_t i;
	int64_t sum;

	memcpy(p->left, p->capacity, p->flow.nhalves * sizeof(*p->left));
	for (i = 0; i < g->nranks; i++)
		if (parts[i] == part)
			set_pair(p, g->gpus[i], p->sink, INFINITE);
		else
			set_pair(p, p->source, g->gpus[i], INFINITE);
	sum = flow_push(&p->flow, p->left, p->source, p->sink, FLOW_MOST);
	if (where)
		flow_reach(&p->flow, p->left, p->sink, true, p->seen);
	return (uint64_t)sum;
}

/* Number @part from 0, in order of the ranks; how many there are. */
static uint32_t number(struct parts *p)
{
	uint32_t n = p->g->nranks, i, k, found = 0;
	uint32_t *first = p->part;

	for (i = 0; i < n; i++) {
		for (k = 0; k < i && first[k] != first[i]; k++)
			;
		p->best[i] = k < i ? p->best[k] : found++;
	}
	return found;
}

/* Is @part better than the best? Then it is that; @best is lost otherwise. */
static bool better(struct parts *p)
{
	uint32_t n = p->g->nranks, r = number(p), i;
	uint64_t sum = 0;

	memcpy(p->part, p->best, n * sizeof(*p->part));
	for (i = 0; i < r && r > 1; i++)
		sum += part_in(p, p->part, i, false);
	if (r < 2 || (p->nbest &&
		      (unsigned __int128)sum * (p->nbest - 1) >=
		      (unsigned __int128)p->inbound * (r - 1)))
		return false;
	p->nbest = r;
	p->inbound = sum;
	return true;
}

/* Compare @part with the best, and keep the better one. */
static int keep(struct parts *p, bool *improved)
{
	uint32_t n = p->g->nranks;
	uint32_t *old = malloc(n * sizeof(*old));

	if (!old)
		return -ENOMEM;
	memcpy(old, p->best, n * sizeof(*old));
	*improved = better(p);
	if (!*improved)
		memcpy(p->best, old, n * sizeof(*old));
	free(old);
	return 0;
}

static int natural(struct parts *p)
{
	const struct plan_graph *g = p->g;
	bool improved;
	uint32_t i;
	int err;

	for (i = 0; i < g->nranks; i++) {
		uint32_t box = g->nodes[g->gpus[i]].box;

		p->part[i] = box < g->nboxes ? box : g->nboxes + i;
	}
	err = keep(p, &improved);
	for (i = 0; i < g->nranks; i++)
		p->part[i] = i;
	return err ? err : keep(p, &improved);
}

/*
 * One rank more: @gain[j] is the least (r - 1) in(X) - C - gain(X - j) of all X
 * with rank j and none after it; the parts that meet X become one.
 */
static void greedy_step(struct parts *p, uint32_t j)
{
	const struct plan_graph *g = p->g;
	int64_t positive = 0, factor = p->nbest - 1;
	uint32_t i, k, old;

	for (i = 0; i < p->flow.nhalves; i++)
		p->left[i] = p->capacity[i] * factor;
	for (i = 0; i < g->nranks; i++) {
		if (i > j)
			set_pair(p, p->source, g->gpus[i], INFINITE);
		else if (i == j)
			set_pair(p, g->gpus[i], p->sink, INFINITE);
		else if (p->gain[i] < 0)
			set_pair(p, p->source, g->gpus[i], -p->gain[i]);
		else
			set_pair(p, g->gpus[i], p->sink, p->gain[i]);
		if (i < j && p->gain[i] > 0)
			positive += p->gain[i];
	}
	p->gain[j] = flow_push(&p->flow, p->left, p->source, p->sink,
			       FLOW_MOST) - positive - (int64_t)p->inbound;
	flow_reach(&p->flow, p->left, p->sink, true, p->seen);
	p->part[j] = j;
	for (i = 0; i < j; i++) {
		if (!p->seen[g->gpus[i]] || p->part[i] == j)
			continue;
		for (old = p->part[i], k = 0; k < j; k++)
			if (p->part[k] == old)
				p->part[k] = j;
	}
}

/*
 * Every |gain| is at most (r - 1) times all capacities, and their sum that
 * times the ranks.
 */
static bool fits(const struct parts *p)
{
	return (unsigned __int128)p->sum * p->nbest * (p->g->nranks + 1) <
		INFINITE / 2;
}

static int improve(struct parts *p)
{
	bool improved = true;
	uint32_t j;
	int err = 0;

	while (!err && improved) {
		if (!fits(p))
			return -EOVERFLOW;
		for (j = 0; j < p->g->nranks; j++)
			greedy_step(p, j);
		err = keep(p, &improved);
	}
	return err;
}

static int tell(struct parts *p, struct plan_bound *out)
{
	struct plan_bound b = { .kind = PLAN_BOUND_PARTITION };
	int err = 0;

	b.parts = calloc(p->nbest, sizeof(*b.parts));
	if (!b.parts)
		return -ENOMEM;
	for (; !err && b.nparts < p->nbest; b.nparts++) {
		part_in(p, p->best, b.nparts, true);
		err = plan_cut_make(p->g, p->seen, true, &b.parts[b.nparts]);
	}
	b.algbw = plan_ratio(p->inbound, 2 * (uint64_t)(p->nbest - 1));
	if (err)
		plan_bound_free(&b);
	else
		*out = b;
	return err;
}

/* The best partition; -EOVERFLOW: of those that are natural. */
static int search(struct parts *p, const struct plan_graph *g)
{
	int err = parts_init(p, g);

	if (!err)
		err = natural(p);
	return err ? err : improve(p);
}

int plan_partition(const struct plan_graph *g, struct plan_bound *b,
		   struct plan_error *e)
{
	struct parts p;
	int err = search(&p, g);

	if (!err || err == -EOVERFLOW)
		err = tell(&p, b);
	parts_clear(&p);
	return err ? plan_fail(e, -err, "out of memory") : 0;
}

int plan_partition_needs(const struct plan_graph *g, int64_t *needs,
			 uint32_t *factor, struct plan_error *e)
{
	struct parts p;
	uint32_t i;
	int err = search(&p, g);

	for (i = 0; !err && i < g->nranks; i++)
		needs[i] = -p.gain[i];
	*factor = p.nbest - 1;
	parts_clear(&p);
	return err ? plan_fail(e, -err, err == -EOVERFLOW ?
			       "capacities are too large for 64 bits; round them" :
			       "out of memory") : 0;
}
