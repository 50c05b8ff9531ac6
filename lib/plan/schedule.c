// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Schedules in memory: chunks, transfers, routes, and the load they put on links.
 * Called by what creates schedules and by what simulates, draws or writes them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"
#include "plan/util.h"

/* Routes by their edges: open addressing, at most half full. */
struct plan_schedule_private {
	uint32_t nslots;
	uint32_t *slots;	/* route + 1; 0: empty */
	uint64_t route_room, edge_room, chunk_room, transfer_room;
};

static const char *const names[PLAN_COLLECTIVES] = {
	[PLAN_ALL_GATHER] = "all-gather",
	[PLAN_REDUCE_SCATTER] = "reduce-scatter",
	[PLAN_ALL_REDUCE] = "all-reduce",
	[PLAN_BROADCAST] = "broadcast",
	[PLAN_REDUCE] = "reduce",
};

const char *plan_collective_name(enum plan_collective c)
{
	return c > 0 && c < PLAN_COLLECTIVES ? names[c] : "?";
}

enum plan_collective plan_collective_parse(const char *word)
{
	return plan_word_parse(names, PLAN_COLLECTIVES, word);
}

struct plan_ratio plan_busbw_factor(enum plan_collective c, uint32_t nranks)
{
	switch (c) {
	case PLAN_ALL_REDUCE:
		return plan_ratio(2 * ((uint64_t)nranks - 1), nranks);
	case PLAN_ALL_GATHER:
	case PLAN_REDUCE_SCATTER:
		return plan_ratio((uint64_t)nranks - 1, nranks);
	default:
		return plan_ratio(1, 1);
	}
}

struct plan_schedule *plan_schedule_new(enum plan_collective c, uint32_t nranks,
					uint32_t root)
{
	struct plan_schedule *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->private = calloc(1, sizeof(*s->private));
	if (!s->private) {
		free(s);
		return NULL;
	}
	s->collective = c;
	s->nranks = nranks;
	s->root = c == PLAN_BROADCAST || c == PLAN_REDUCE ? root : 0;
	s->nshards = c == PLAN_ALL_GATHER || c == PLAN_REDUCE_SCATTER ?
		     nranks : 1;
	return s;
}

void plan_schedule_free(struct plan_schedule *s)
{
	if (!s)
		return;
	free(s->private->slots);
	free(s->private);
	free(s->routes);
	free(s->route_edges);
	free(s->chunks);
	free(s->transfers);
	free(s);
}

static uint32_t *slot_of(const struct plan_schedule *s, const uint32_t *edges,
			 uint32_t n)
{
	uint32_t mask = s->private->nslots - 1, h = 2166136261u, i;
	uint32_t *slots = s->private->slots;

	for (i = 0; i < n; i++)
		h = (h ^ edges[i]) * 16777619u;
	for (h ^= h >> 15; slots[h & mask]; h++) {
		const struct plan_route *r = &s->routes[slots[h & mask] - 1];

		if (r->nedges == n && !memcmp(s->route_edges + r->first, edges,
					      n * sizeof(*edges)))
			break;
	}
	return &slots[h & mask];
}

static int rehash(struct plan_schedule *s)
{
	struct plan_schedule_private *p = s->private;
	uint32_t n = p->nslots ? 2 * p->nslots : 64, i;
	uint32_t *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	free(p->slots);
	p->slots = slots;
	p->nslots = n;
	for (i = 0; i < s->nroutes; i++)
		*slot_of(s, s->route_edges + s->routes[i].first,
			 s->routes[i].nedges) = i + 1;
	return 0;
}

/* From one rank's GPU to another's, with no GPU inside. */
static bool good_route(const struct plan_graph *g, const uint32_t *edges,
		       uint32_t n)
{
	const struct plan_node *a, *b;
	uint32_t i;

	if (!n || edges[0] >= g->nedges)
		return false;
	for (i = 1; i < n; i++)
		if (edges[i] >= g->nedges ||
		    g->edges[edges[i]].from != g->edges[edges[i - 1]].to ||
		    g->nodes[g->edges[edges[i]].from].kind == PLAN_GPU)
			return false;
	a = &g->nodes[g->edges[edges[0]].from];
	b = &g->nodes[g->edges[edges[n - 1]].to];
	return a->rank != PLAN_NONE && b->rank != PLAN_NONE &&
	       a->rank != b->rank;
}

int64_t plan_schedule_route(struct plan_schedule *s,
			    const struct plan_graph *g, const uint32_t *edges,
			    uint32_t n)
{
	struct plan_schedule_private *p = s->private;
	uint32_t *slot;

	if (!good_route(g, edges, n))
		return -EINVAL;
	if ((2 * (s->nroutes + 1) > p->nslots && rehash(s)) ||
	    plan_grow(&s->routes, s->nroutes, 1, &p->route_room,
		 sizeof(*s->routes)) ||
	    plan_grow(&s->route_edges, s->nroute_edges, n, &p->edge_room,
		 sizeof(*s->route_edges)))
		return -ENOMEM;
	slot = slot_of(s, edges, n);
	if (*slot)
		return *slot - 1;
	s->routes[s->nroutes] = (struct plan_route){
		.from = g->nodes[g->edges[edges[0]].from].rank,
		.to = g->nodes[g->edges[edges[n - 1]].to].rank,
		.first = (uint32_t)s->nroute_edges, .nedges = n,
	};
	memcpy(s->route_edges + s->nroute_edges, edges, n * sizeof(*edges));
	s->nroute_edges += n;
	*slot = (uint32_t)++s->nroutes;
	return (int64_t)s->nroutes - 1;
}

int plan_schedule_chunk(struct plan_schedule *s, uint32_t shard, uint32_t tree,
			uint64_t weight)
{
	if (shard >= s->nshards || !weight)
		return -EINVAL;
	if (plan_grow(&s->chunks, s->nchunks, 1, &s->private->chunk_room,
		 sizeof(*s->chunks)))
		return -ENOMEM;
	s->chunks[s->nchunks++] = (struct plan_chunk){
		.shard = shard, .tree = tree, .weight = weight,
		.first = s->ntransfers,
	};
	return 0;
}

int plan_schedule_transfer(struct plan_schedule *s, uint32_t route, bool reduce)
{
	if (!s->nchunks || route >= s->nroutes)
		return -EINVAL;
	if (plan_grow(&s->transfers, s->ntransfers, 1, &s->private->transfer_room,
		 sizeof(*s->transfers)))
		return -ENOMEM;
	s->transfers[s->ntransfers++] = (struct plan_transfer){
		.route = route & 0x7fffffff, .reduce = reduce,
	};
	s->chunks[s->nchunks - 1].ntransfers++;
	return 0;
}

static int by_shard(const void *a, const void *b)
{
	const struct plan_chunk *x = a, *y = b;

	if (x->shard != y->shard)
		return x->shard < y->shard ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

/* Multiply weights so that each shard's sum is the least common multiple. */
static int even_out(struct plan_schedule *s, uint64_t *sums)
{
	uint64_t all = 1, i, common = 0;

	for (i = 0; i < s->nshards; i++)
		if (!sums[i])
			return -EINVAL;
		else if (__builtin_mul_overflow(all / plan_gcd(all, sums[i]),
						sums[i], &all))
			return -EOVERFLOW;
	for (i = 0; i < s->nchunks; i++) {
		struct plan_chunk *c = &s->chunks[i];

		c->weight *= all / sums[c->shard];
		common = plan_gcd(common, c->weight);
	}
	for (i = 0; i < s->nchunks; i++)
		s->chunks[i].weight /= common;
	s->shard_weight = all / common;
	return 0;
}

int plan_schedule_finish(struct plan_schedule *s)
{
	uint64_t *sums = calloc(s->nshards, sizeof(*sums)), i;
	int err = 0;

	if (!sums)
		return -ENOMEM;
	if (s->nchunks)
		qsort(s->chunks, s->nchunks, sizeof(*s->chunks), by_shard);
	for (i = 0; i < s->nchunks; i++)
		if (__builtin_add_overflow(sums[s->chunks[i].shard],
					   s->chunks[i].weight,
					   &sums[s->chunks[i].shard]))
			err = -EOVERFLOW;
	if (!err)
		err = even_out(s, sums);
	free(sums);
	return err;
}

int plan_schedule_loads(const struct plan_schedule *s,
			const struct plan_graph *g, uint64_t *loads)
{
	uint64_t *weights = calloc(s->nroutes + 1, sizeof(*weights)), i, k;
	uint32_t at;
	int err = 0;

	if (!weights)
		return -ENOMEM;
	for (i = 0; i < s->nchunks; i++)
		for (k = 0; k < s->chunks[i].ntransfers; k++) {
			at = s->transfers[s->chunks[i].first + k].route;
			if (__builtin_add_overflow(weights[at],
						   s->chunks[i].weight,
						   &weights[at]))
				err = -EOVERFLOW;
		}
	memset(loads, 0, g->nedges * sizeof(*loads));
	for (i = 0; i < s->nroutes; i++)
		for (k = 0; k < s->routes[i].nedges; k++) {
			at = s->route_edges[s->routes[i].first + k];
			if (__builtin_add_overflow(loads[at], weights[i],
						   &loads[at]))
				err = -EOVERFLOW;
		}
	free(weights);
	return err;
}

int plan_schedule_rate(const struct plan_schedule *s,
		       const struct plan_graph *g, struct plan_ratio *algbw,
		       uint32_t *edge)
{
	uint64_t *loads = calloc(g->nedges + 1, sizeof(*loads));
	struct plan_ratio best = { 0, 1 }, r;
	uint32_t i, at = PLAN_NONE;
	uint64_t all;
	int err;

	if (!loads)
		return -ENOMEM;
	err = plan_schedule_loads(s, g, loads);
	for (i = 0; !err && i < g->nedges; i++) {
		if (!loads[i])
			continue;
		r = plan_ratio(g->edges[i].capacity, loads[i]);
		if (at == PLAN_NONE || plan_ratio_compare(r, best) < 0) {
			best = r;
			at = i;
		}
	}
	free(loads);
	if (!err && at == PLAN_NONE)
		err = -EINVAL;
	if (!err && __builtin_mul_overflow(s->shard_weight, s->nshards, &all))
		err = -EOVERFLOW;
	if (!err)
		err = plan_ratio_multiply(best, plan_ratio(all, 1), algbw);
	if (!err && edge)
		*edge = at;
	return err;
}
