// SPDX-License-Identifier: LGPL-2.1-or-later
/* The independent checker of plans. Called by tests. */
#include <stdlib.h>
#include <string.h>

#include "check.h"

#define NO(...) (snprintf(why, CHECK_WHY, __VA_ARGS__), false)

/* What every rank has of one chunk: whose parts are in it. */
struct holdings {
	uint32_t n, words;
	uint64_t *parts;	/* of rank r: words from r * words */
};

static uint64_t *of(const struct holdings *h, uint32_t rank)
{
	return h->parts + (size_t)rank * h->words;
}

static uint32_t count(const uint64_t *set, uint32_t words)
{
	uint32_t i, n = 0;

	for (i = 0; i < words; i++)
		n += (uint32_t)__builtin_popcountll(set[i]);
	return n;
}

/* At the start; in a gather only the source has anything. */
static void begin(struct holdings *h, const struct plan_schedule *s,
		  uint32_t shard)
{
	bool one = s->collective == PLAN_ALL_GATHER ||
		   s->collective == PLAN_BROADCAST;
	uint32_t source = s->collective == PLAN_BROADCAST ? s->root : shard, r;

	memset(h->parts, 0, (size_t)h->n * h->words * sizeof(*h->parts));
	for (r = 0; r < h->n; r++)
		if (!one || r == source)
			of(h, r)[r / 64] |= 1ull << (r % 64);
}

static bool transfer(struct holdings *h, const struct plan_route *way,
		     bool reduce, bool sums, char *why)
{
	uint64_t *from = of(h, way->from), *to = of(h, way->to);
	uint32_t i;

	if (!count(from, h->words))
		return NO("rank %u sends to %u what it does not have",
			  way->from, way->to);
	if (!reduce) {
		if (!sums && count(to, h->words))
			return NO("rank %u gets twice the same, from %u",
				  way->to, way->from);
		if (sums && count(from, h->words) != h->n)
			return NO("rank %u copies an unfinished sum to %u",
				  way->from, way->to);
		memcpy(to, from, h->words * sizeof(*to));
		return true;
	}
	for (i = 0; i < h->words; i++) {
		if (from[i] & to[i])
			return NO("a part arrives twice at rank %u from %u",
				  way->to, way->from);
		to[i] |= from[i];
	}
	return true;
}

static bool end(const struct holdings *h, const struct plan_schedule *s,
		uint32_t shard, char *why)
{
	bool gathers = s->collective == PLAN_ALL_GATHER ||
		       s->collective == PLAN_BROADCAST;
	uint32_t want = gathers ? 1 : h->n, r;

	for (r = 0; r < h->n; r++) {
		if (s->collective == PLAN_REDUCE_SCATTER && r != shard)
			continue;
		if (s->collective == PLAN_REDUCE && r != s->root)
			continue;
		if (count(of(h, r), h->words) != want)
			return NO("rank %u ends with %u of %u parts of shard %u",
				  r, count(of(h, r), h->words), want, shard);
	}
	return true;
}

static bool check_chunk(const struct plan_schedule *s, struct holdings *h,
			const struct plan_chunk *c, char *why)
{
	bool sums = s->collective != PLAN_ALL_GATHER &&
		    s->collective != PLAN_BROADCAST;
	uint64_t i;

	begin(h, s, c->shard);
	for (i = c->first; i < c->first + c->ntransfers; i++)
		if (s->transfers[i].route >= s->nroutes)
			return NO("transfer %llu has no route",
				  (unsigned long long)i);
		else if (!transfer(h, &s->routes[s->transfers[i].route],
				   s->transfers[i].reduce, sums, why))
			return false;
	return end(h, s, c->shard, why);
}

static bool check_routes(const struct plan_graph *g,
			 const struct plan_schedule *s, char *why)
{
	uint64_t i;
	uint32_t k, at;

	for (i = 0; i < s->nroutes; i++) {
		const struct plan_route *w = &s->routes[i];

		if (w->from >= g->nranks || w->to >= g->nranks || !w->nedges ||
		    w->first + w->nedges > s->nroute_edges)
			return NO("route %llu is no route",
				  (unsigned long long)i);
		at = g->gpus[w->from];
		for (k = 0; k < w->nedges; k++) {
			uint32_t d = s->route_edges[w->first + k];

			if (d >= g->nedges || g->edges[d].from != at)
				return NO("route %llu is broken at hop %u",
					  (unsigned long long)i, k);
			if (k && g->nodes[at].kind == PLAN_GPU)
				return NO("route %llu goes through %s",
					  (unsigned long long)i,
					  g->nodes[at].name);
			at = g->edges[d].to;
		}
		if (at != g->gpus[w->to])
			return NO("route %llu ends elsewhere",
				  (unsigned long long)i);
	}
	return true;
}

static bool check_weights(const struct plan_schedule *s, char *why)
{
	uint64_t *sums = calloc(s->nshards, sizeof(*sums)), i;
	bool good = sums != NULL;

	for (i = 0; good && i < s->nchunks; i++)
		if (s->chunks[i].shard >= s->nshards || !s->chunks[i].weight)
			good = NO("chunk %llu has no shard or no weight",
				  (unsigned long long)i);
		else
			sums[s->chunks[i].shard] += s->chunks[i].weight;
	for (i = 0; good && i < s->nshards; i++)
		if (sums[i] != s->shard_weight)
			good = NO("shard %llu weighs %llu of %llu",
				  (unsigned long long)i,
				  (unsigned long long)sums[i],
				  (unsigned long long)s->shard_weight);
	free(sums);
	return good;
}

static unsigned __int128 gcd(unsigned __int128 a, unsigned __int128 b)
{
	while (b) {
		unsigned __int128 r = a % b;

		a = b;
		b = r;
	}
	return a;
}

/* Of each edge, in parts of shard_weight * nshards. */
static bool loads_of(const struct plan_schedule *s, uint64_t *loads,
		     char *why)
{
	uint64_t i, t;
	uint32_t k;

	for (i = 0; i < s->nchunks; i++)
		for (t = 0; t < s->chunks[i].ntransfers; t++) {
			const struct plan_route *w = &s->routes[
				s->transfers[s->chunks[i].first + t].route];

			for (k = 0; k < w->nedges; k++) {
				uint64_t *l = loads +
					s->route_edges[w->first + k];

				if (__builtin_add_overflow(*l,
						s->chunks[i].weight, l))
					return NO("a load does not fit");
			}
		}
	return true;
}

/* Least capacity over load. */
static bool rate(const struct plan_graph *g, const struct plan_schedule *s,
		 struct plan_ratio *algbw, char *why)
{
	uint64_t *loads = calloc(g->nedges + 1, sizeof(*loads));
	unsigned __int128 num = 0, den = 0, d;
	uint32_t i;

	if (!loads)
		return NO("out of memory");
	if (!loads_of(s, loads, why)) {
		free(loads);
		return false;
	}
	for (i = 0; i < g->nedges; i++)
		if (loads[i] && (!den || g->edges[i].capacity * den <
					 num * loads[i])) {
			num = g->edges[i].capacity;
			den = loads[i];
		}
	free(loads);
	if (!den)
		return NO("nothing is sent");
	num *= (unsigned __int128)s->shard_weight * s->nshards;
	d = gcd(num, den);
	*algbw = (struct plan_ratio){ (uint64_t)(num / d),
				      (uint64_t)(den / d) };
	return num / d >> 64 ? NO("the rate does not fit") : true;
}

bool check_schedule(const struct plan_graph *g, const struct plan_schedule *s,
		    struct plan_ratio *algbw, char *why)
{
	struct holdings h = { s->nranks, (s->nranks + 63) / 64, NULL };
	bool good = true;
	uint64_t i;

	if (s->nranks != g->nranks)
		return NO("%u ranks for %u GPUs", s->nranks, g->nranks);
	if (!check_weights(s, why) || !check_routes(g, s, why))
		return false;
	h.parts = malloc((size_t)h.n * h.words * sizeof(*h.parts));
	if (!h.parts)
		return NO("out of memory");
	for (i = 0; good && i < s->nchunks; i++)
		good = check_chunk(s, &h, &s->chunks[i], why);
	free(h.parts);
	return good && rate(g, s, algbw, why);
}

/* ---- bounds ------------------------------------------------------------- */

/* No rank: it passes nothing on, so its edges help nobody. */
static bool idle(const struct plan_graph *g, uint32_t node)
{
	return g->nodes[node].kind == PLAN_GPU &&
	       g->nodes[node].rank == PLAN_NONE;
}

/* Sum and number of the edges out of, or into, a cut; are they listed? */
static bool check_cut(const struct plan_graph *g, const struct plan_cut *c,
		      bool into, char *why)
{
	uint64_t capacity = 0;
	uint32_t i, n = 0, ranks = 0;

	for (i = 0; i < g->nedges; i++) {
		const struct plan_edge *d = &g->edges[i];

		if (c->inside[into ? d->to : d->from] &&
		    !c->inside[into ? d->from : d->to] &&
		    !idle(g, d->from) && !idle(g, d->to)) {
			capacity += d->capacity;
			n++;
		}
	}
	for (i = 0; i < g->nranks; i++)
		ranks += c->inside[g->gpus[i]];
	if (ranks != c->ninside || !ranks)
		return NO("%u ranks are inside, not %u", ranks, c->ninside);
	if (capacity != c->capacity || n != c->nedges)
		return NO("%u edges with %llu MB/s bound the cut, not %u with %llu",
			  n, (unsigned long long)capacity, c->nedges,
			  (unsigned long long)c->capacity);
	for (i = 0; i < c->nedges; i++) {
		const struct plan_edge *d = &g->edges[c->edges[i]];

		if (!c->inside[into ? d->to : d->from] ||
		    c->inside[into ? d->from : d->to] ||
		    (i && c->edges[i] <= c->edges[i - 1]))
			return NO("edge %u does not bound the cut, or is named twice",
				  c->edges[i]);
	}
	return true;
}

/* What a cut lets through, in the direction that @c uses it. */
static struct plan_ratio through(const struct plan_graph *g,
				 enum plan_collective c,
				 const struct plan_cut *cut)
{
	if (c == PLAN_ALL_GATHER || c == PLAN_REDUCE_SCATTER)
		return plan_ratio(cut->capacity * g->nranks, cut->ninside);
	return plan_ratio(cut->capacity, 1);
}

static bool check_parts(const struct plan_graph *g, const struct plan_bound *b,
			struct plan_ratio *r, char *why)
{
	uint8_t *owner = calloc(g->nnodes, 1);
	uint64_t capacity = 0;
	uint32_t i, k;
	bool good = owner != NULL;

	for (i = 0; good && i < b->nparts; i++) {
		good = check_cut(g, &b->parts[i], true, why);
		capacity += b->parts[i].capacity;
		for (k = 0; good && k < g->nnodes; k++)
			if (b->parts[i].inside[k] && owner[k]++)
				good = NO("%s is in two parts",
					  g->nodes[k].name);
	}
	for (k = 0; good && k < g->nranks; k++)
		if (!owner[g->gpus[k]])
			good = NO("%s is in no part",
				  g->nodes[g->gpus[k]].name);
	free(owner);
	if (good && b->nparts < 2)
		good = NO("a partition with %u parts", b->nparts);
	if (good)
		*r = plan_ratio(capacity, 2 * ((uint64_t)b->nparts - 1));
	return good;
}

bool check_bound(const struct plan_graph *g, enum plan_collective c,
		 uint32_t root, const struct plan_bound *b, char *why)
{
	bool into = c == PLAN_REDUCE_SCATTER || c == PLAN_REDUCE;
	struct plan_ratio r, busbw;

	if (b->kind == PLAN_BOUND_PARTITION) {
		if (c != PLAN_ALL_REDUCE)
			return NO("a partition bounds all-reduce only");
		if (!check_parts(g, b, &r, why))
			return false;
	} else {
		if (!check_cut(g, &b->cut, into, why))
			return false;
		if (b->cut.ninside == g->nranks)
			return NO("all ranks are inside");
		if ((c == PLAN_BROADCAST || c == PLAN_REDUCE) &&
		    !b->cut.inside[g->gpus[root]])
			return NO("the root is outside");
		r = through(g, c, &b->cut);
	}
	if (plan_ratio_compare(r, b->algbw))
		return NO("the certificate gives %llu/%llu, the bound is %llu/%llu",
			  (unsigned long long)r.num, (unsigned long long)r.den,
			  (unsigned long long)b->algbw.num,
			  (unsigned long long)b->algbw.den);
	if (plan_ratio_multiply(r, plan_busbw_factor(c, g->nranks), &busbw) ||
	    plan_ratio_compare(busbw, b->busbw))
		return NO("busbw does not follow from algbw");
	return true;
}

bool check_optimum(const struct plan_graph *g, enum plan_collective c,
		   uint32_t root, const struct plan_optimum *o, char *why)
{
	struct plan_ratio r, busbw;

	if (!check_bound(g, c, root, &o->bound, why) ||
	    !check_schedule(g, o->schedule, &r, why))
		return false;
	if (o->schedule->collective != c)
		return NO("it is another collective's schedule");
	if (plan_ratio_compare(r, o->algbw))
		return NO("its flows give %llu/%llu, it claims %llu/%llu",
			  (unsigned long long)r.num, (unsigned long long)r.den,
			  (unsigned long long)o->algbw.num,
			  (unsigned long long)o->algbw.den);
	if (plan_ratio_multiply(r, plan_busbw_factor(c, g->nranks), &busbw) ||
	    plan_ratio_compare(busbw, o->busbw))
		return NO("busbw does not follow from algbw");
	if (plan_ratio_compare(r, o->bound.algbw) > 0)
		return NO("it is faster than its bound");
	if (o->proved != !plan_ratio_compare(r, o->bound.algbw))
		return NO("proved is %d", o->proved);
	return true;
}
