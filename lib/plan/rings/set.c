// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A set of rings, the load it puts on links, and changes, which are evaluated
 * before they are applied. Called by search.c and rings.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/rings/set.h"

int plan_ringset_init(struct plan_ringset *s, struct plan_ring_paths *paths,
		      uint32_t nrings, enum plan_collective c, uint32_t root)
{
	uint32_t n = paths->g->nranks, edges = paths->g->nedges, i;

	*s = (struct plan_ringset){
		.paths = paths, .n = n, .nrings = nrings, .random = 1,
		.skip_to = c == PLAN_BROADCAST ? root : PLAN_NONE,
		.skip_from = c == PLAN_REDUCE ? root : PLAN_NONE,
	};
	s->order = calloc((size_t)nrings * n, sizeof(*s->order));
	s->path = calloc((size_t)nrings * n, sizeof(*s->path));
	s->place = calloc((size_t)nrings * n, sizeof(*s->place));
	s->link = calloc(edges, sizeof(*s->link));
	s->load = calloc(edges, sizeof(*s->load));
	s->slot = calloc(edges, sizeof(*s->slot));
	s->old = calloc(n + 4, sizeof(*s->old));
	s->fresh = calloc(n + 4, sizeof(*s->fresh));
	if (!s->order || !s->path || !s->place || !s->link || !s->load ||
	    !s->slot || !s->old || !s->fresh) {
		plan_ringset_free(s);
		return -ENOMEM;
	}
	for (i = 0; i < edges; i++)
		s->link[i] = i;
	return 0;
}

void plan_ringset_free(struct plan_ringset *s)
{
	free(s->order);
	free(s->path);
	free(s->place);
	free(s->link);
	free(s->load);
	free(s->slot);
	free(s->old);
	free(s->fresh);
	*s = (struct plan_ringset){ 0 };
}

void plan_ringset_copy(struct plan_ringset *to, const struct plan_ringset *from)
{
	size_t hops = (size_t)from->nrings * from->n;
	uint32_t edges = from->paths->g->nedges;

	memcpy(to->order, from->order, hops * sizeof(*to->order));
	memcpy(to->path, from->path, hops * sizeof(*to->path));
	memcpy(to->place, from->place, hops * sizeof(*to->place));
	memcpy(to->load, from->load, edges * sizeof(*to->load));
	memcpy(to->slot, from->slot, edges * sizeof(*to->slot));
	to->excess = from->excess;
	to->missing = from->missing;
}

void plan_ringset_aim(struct plan_ringset *s, struct plan_ratio rate)
{
	const struct plan_graph *g = s->paths->g;
	unsigned __int128 slots;
	uint32_t i;

	for (i = 0; i < g->nedges; i++) {
		slots = (unsigned __int128)g->edges[i].capacity * rate.den /
			rate.num;
		s->slot[i] = slots > UINT32_MAX ? UINT32_MAX : (uint32_t)slots;
		s->load[i] = 0;
	}
	s->excess = s->missing = 0;
}

/* xorshift64* (Vigna 2016) */
uint32_t plan_ringset_random(struct plan_ringset *s, uint32_t below)
{
	s->random ^= s->random >> 12;
	s->random ^= s->random << 25;
	s->random ^= s->random >> 27;
	return (uint32_t)(((s->random * 2685821657736338717ull) >> 32) *
			  below >> 32);
}

static bool skipped(const struct plan_ringset *s, uint32_t from, uint32_t to)
{
	return from == s->skip_from || to == s->skip_to;
}

uint64_t plan_ringset_cost(struct plan_ringset *s, uint32_t from, uint32_t to,
			   uint32_t *path)
{
	struct plan_ring_path w;
	uint64_t best = UINT64_MAX, cost;
	uint32_t i, k, e;

	*path = 0;
	if (skipped(s, from, to))
		return 0;
	w = plan_ring_paths_of(s->paths, from, to);
	s->work += (uint64_t)w.count * w.length + 1;
	if (!w.count)
		return (uint64_t)PLAN_MISSING << 32;
	for (i = 0; i < w.count; i++) {
		for (cost = 0, k = 0; k < w.length; k++) {
			e = s->link[w.edges[i * w.length + k]];
			if (s->load[e] >= s->slot[e])
				cost += 1ull << 32;
			cost += 1024ull * s->load[e] / ((uint64_t)s->slot[e] + 1)
				+ 1;
		}
		if (cost < best) {
			best = cost;
			*path = i;
		}
	}
	return best;
}

void plan_ringset_add(struct plan_ringset *s, uint32_t from, uint32_t to,
		      uint32_t path)
{
	struct plan_ring_path w;
	uint32_t k, e;

	if (skipped(s, from, to))
		return;
	w = plan_ring_paths_of(s->paths, from, to);
	if (!w.count) {
		s->excess += PLAN_MISSING;
		s->missing++;
	} else {
		for (k = 0; k < w.length; k++) {
			e = s->link[w.edges[path * w.length + k]];
			if (s->load[e]++ >= s->slot[e])
				s->excess++;
		}
	}
	s->work += w.length + 1;
}

static void take(struct plan_ringset *s, uint32_t from, uint32_t to,
		 uint32_t path)
{
	struct plan_ring_path w;
	uint32_t k, e;

	if (skipped(s, from, to))
		return;
	w = plan_ring_paths_of(s->paths, from, to);
	if (!w.count) {
		s->excess -= PLAN_MISSING;
		s->missing--;
	} else {
		for (k = 0; k < w.length; k++) {
			e = s->link[w.edges[path * w.length + k]];
			if (s->load[e]-- > s->slot[e])
				s->excess--;
		}
	}
	s->work += w.length + 1;
}

static uint32_t *ring_of(const struct plan_ringset *s, uint32_t r)
{
	return s->order + (size_t)r * s->n;
}

static uint32_t next(const struct plan_ringset *s, uint32_t at)
{
	return at + 1 == s->n ? 0 : at + 1;
}

void plan_ringset_enter(struct plan_ringset *s, uint32_t r)
{
	uint32_t *o = ring_of(s, r), *path = s->path + (size_t)r * s->n, i;

	for (i = 0; i < s->n; i++) {
		s->place[(size_t)r * s->n + o[i]] = i;
		plan_ringset_cost(s, o[i], o[next(s, i)], &path[i]);
		plan_ringset_add(s, o[i], o[next(s, i)], path[i]);
	}
}

bool plan_ringset_over(struct plan_ringset *s, uint32_t r, uint32_t at)
{
	uint32_t *o = ring_of(s, r), path = s->path[(size_t)r * s->n + at], k, e;
	struct plan_ring_path w;

	if (skipped(s, o[at], o[next(s, at)]))
		return false;
	w = plan_ring_paths_of(s->paths, o[at], o[next(s, at)]);
	s->work += w.length + 1;
	for (k = 0; k < w.length && w.count; k++) {
		e = s->link[w.edges[path * w.length + k]];
		if (s->load[e] > s->slot[e])
			return true;
	}
	return !w.count;
}

/* ---- changes ------------------------------------------------------------ */

static void drop(struct plan_ringset *s, uint32_t at)
{
	s->old[s->nold++] = at;
}

static void put(struct plan_ringset *s, uint32_t from, uint32_t to, uint32_t at)
{
	s->fresh[s->nfresh++] = (struct plan_hop){ from, to, at, 0 };
}

static void list_swap(struct plan_ringset *s, const uint32_t *o, uint32_t a,
		      uint32_t b)
{
	uint32_t before_a = a ? a - 1 : s->n - 1, x;

	if (!a && b == s->n - 1) {	/* neighbours, the other path round */
		x = a;
		a = b;
		b = x;
		before_a = a - 1;
	}
	drop(s, before_a);
	drop(s, a);
	drop(s, b);
	put(s, o[before_a], o[b], before_a);
	put(s, o[a], o[next(s, b)], b);
	if (next(s, a) == b) {
		put(s, o[b], o[a], a);
		return;
	}
	drop(s, b - 1);
	put(s, o[b], o[next(s, a)], a);
	put(s, o[b - 1], o[a], b - 1);
}

static void list_reverse(struct plan_ringset *s, const uint32_t *o, uint32_t a,
			 uint32_t b)
{
	uint32_t i;

	drop(s, a);
	for (i = a + 1; i < b && !s->mirrored; i++)
		drop(s, i);
	drop(s, b);
	put(s, o[a], o[b], a);
	for (i = a + 1; i < b && !s->mirrored; i++)
		put(s, o[b + a + 1 - i], o[b + a - i], i);
	put(s, o[a + 1], o[next(s, b)], b);
}

/* The hops that @c takes away, and those that come. */
static void list(struct plan_ringset *s, uint32_t r, struct plan_change c)
{
	const uint32_t *o = ring_of(s, r);

	s->nold = s->nfresh = 0;
	switch (c.kind) {
	case PLAN_REROUTE:
		drop(s, c.a);
		put(s, o[c.a], o[next(s, c.a)], c.a);
		break;
	case PLAN_SWAP:
		list_swap(s, o, c.a, c.b);
		break;
	case PLAN_EXCHANGE:
		drop(s, c.a);
		drop(s, c.b);
		drop(s, c.c);
		put(s, o[c.a], o[c.b + 1], c.a);
		put(s, o[c.c], o[c.a + 1], c.a + c.c - c.b);
		put(s, o[c.b], o[next(s, c.c)], c.c);
		break;
	case PLAN_REVERSE:
		list_reverse(s, o, c.a, c.b);
		break;
	}
}

static void renew(struct plan_ringset *s, uint32_t r)
{
	uint32_t *o = ring_of(s, r), *path = s->path + (size_t)r * s->n, i, at;

	for (i = 0; i < s->nold; i++) {
		at = s->old[i];
		take(s, o[at], o[next(s, at)], path[at]);
	}
	for (i = 0; i < s->nfresh; i++) {
		struct plan_hop *h = &s->fresh[i];

		plan_ringset_cost(s, h->from, h->to, &h->path);
		plan_ringset_add(s, h->from, h->to, h->path);
	}
}

int64_t plan_ringset_try(struct plan_ringset *s, uint32_t r,
			 struct plan_change change)
{
	uint32_t *o = ring_of(s, r), *path = s->path + (size_t)r * s->n, i, at;
	int64_t before = (int64_t)s->excess, after;

	list(s, r, change);
	renew(s, r);
	after = (int64_t)s->excess;
	for (i = 0; i < s->nfresh; i++)
		take(s, s->fresh[i].from, s->fresh[i].to, s->fresh[i].path);
	for (i = 0; i < s->nold; i++) {
		at = s->old[i];
		plan_ringset_add(s, o[at], o[next(s, at)], path[at]);
	}
	return after - before;
}

static void reverse(uint32_t *p, uint32_t first, uint32_t last)
{
	uint32_t x;

	for (; first < last; first++, last--) {
		x = p[first];
		p[first] = p[last];
		p[last] = x;
	}
}

/* a+1..b and b+1..c change places: reverse both, then all. */
static void rotate(uint32_t *p, struct plan_change c)
{
	reverse(p, c.a + 1, c.b);
	reverse(p, c.b + 1, c.c);
	reverse(p, c.a + 1, c.c);
}

void plan_ringset_apply(struct plan_ringset *s, uint32_t r,
			struct plan_change c)
{
	uint32_t *o = ring_of(s, r), *path = s->path + (size_t)r * s->n, i, x;
	uint32_t first = c.a, last = c.a;

	list(s, r, c);
	renew(s, r);
	if (c.kind == PLAN_EXCHANGE) {
		rotate(o, c);
		rotate(path, c);
		last = c.c;
	} else if (c.kind == PLAN_SWAP) {
		x = o[c.a];
		o[c.a] = o[c.b];
		o[c.b] = x;
		s->place[(size_t)r * s->n + o[c.b]] = c.b;
	} else if (c.kind == PLAN_REVERSE) {
		reverse(o, c.a + 1, c.b);
		reverse(path, c.a + 1, c.b - 1);
		last = c.b;
	}
	for (i = first; i <= last; i++)
		s->place[(size_t)r * s->n + o[i]] = i;
	for (i = 0; i < s->nfresh; i++)
		path[s->fresh[i].at] = s->fresh[i].path;
}

void plan_ringset_mirror(struct plan_ringset *s)
{
	const struct plan_graph *g = s->paths->g;
	uint32_t i;

	s->mirrored = true;
	for (i = 0; i < g->nedges; i++)
		if (g->edges[i].twin < i)
			s->link[i] = g->edges[i].twin;
}

int plan_ringset_unfold(struct plan_ringset *s, enum plan_collective c,
			uint32_t root)
{
	struct plan_ringset t;
	uint32_t r, i, n = s->n;

	if (plan_ringset_init(&t, s->paths, 2 * s->nrings, c, root))
		return -ENOMEM;
	memcpy(t.slot, s->slot, s->paths->g->nedges * sizeof(*t.slot));
	for (r = 0; r < t.nrings; r++) {
		uint32_t *o = ring_of(&t, r), *path = t.path + (size_t)r * n;

		memcpy(o, ring_of(s, r / 2), n * sizeof(*o));
		memcpy(path, s->path + (size_t)(r / 2) * n, n * sizeof(*path));
		if (r & 1) {
			reverse(o, 0, n - 1);
			reverse(path, 0, n - 2);
		}
		for (i = 0; i < n; i++) {
			t.place[(size_t)r * n + o[i]] = i;
			plan_ringset_add(&t, o[i], o[next(&t, i)], path[i]);
		}
	}
	t.work = s->work;
	t.random = s->random;
	plan_ringset_free(s);
	*s = t;
	return 0;
}

struct plan_ratio plan_ringset_rate(const struct plan_ringset *s)
{
	const struct plan_graph *g = s->paths->g;
	struct plan_ratio best = { 0, 1 }, r;
	uint32_t i;

	for (i = 0; i < g->nedges; i++) {
		if (!s->load[i])
			continue;
		r = plan_ratio(g->edges[i].capacity * s->nrings, s->load[i]);
		if (!best.num || plan_ratio_compare(r, best) < 0)
			best = r;
	}
	return best;
}

bool plan_ringset_hop(struct plan_ringset *s, uint32_t from, uint32_t to)
{
	return skipped(s, from, to) || plan_ring_paths_of(s->paths, from, to).count;
}

bool plan_ringset_missing(struct plan_ringset *s, uint32_t *from, uint32_t *to)
{
	uint32_t r, i, *o;

	for (r = 0; r < s->nrings; r++)
		for (o = ring_of(s, r), i = 0; i < s->n; i++) {
			*from = o[i];
			*to = o[next(s, i)];
			if (!plan_ringset_hop(s, *from, *to))
				return true;
		}
	return false;
}
