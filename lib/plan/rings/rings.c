// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The best set of rings: how many, at which rate, and whether a better one is
 * possible. Called by api/plan.c; set.h has the search.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plan/optimum.h"
#include "plan/rings/set.h"
#include "plan/solve/partition.h"

#define RINGS_MOST	32u	/* that are tried; */
#define RINGS_LARGE	16u	/* with more ranks than */
#define LARGE		64u	/* this */
#define RINGS_GIVEN	1024u	/* that are judged */
#define FEW		4u	/* numbers of rings that are tried first */
#define WORK_OF_RANK	300000u	/* edges touched: 2 to 8 ms; */
#define WORK_OF_SECOND	3e7	/* so that a time given is well used */
#define DAY		86400.0
#define WORK_LEAST	1000000u	/* in all, at least */
#define WORK_MOST	100000000u	/* and at most */

void plan_rings_free(struct plan_rings *r)
{
	free(r->order);
	plan_cut_free(&r->cut);
	plan_schedule_free(r->schedule);
	*r = (struct plan_rings){ 0 };
}

/* ---- the bound ---------------------------------------------------------- */

/*
 * Chains from the root cross cuts that have it inside, chains to the root
 * those that have it outside, rings all.
 */
static int bound_of(const struct plan_graph *g, enum plan_collective c,
		    uint32_t root, struct plan_cut *cut, struct plan_error *e)
{
	bool rooted = c == PLAN_BROADCAST || c == PLAN_REDUCE;
	struct plan_bound b = { 0 };
	uint32_t i;
	int err = rooted ? plan_bound(g, c, root, &b, e) :
			   plan_least_cut(g, &b, e);

	if (err)
		return err;
	*cut = b.cut;
	b.cut = (struct plan_cut){ 0 };
	plan_bound_free(&b);
	if (c == PLAN_REDUCE) {	/* that of the reversed graph: into it */
		for (i = 0; i < g->nnodes; i++)
			cut->inside[i] = !cut->inside[i];
		cut->ninside = g->nranks - cut->ninside;
	}
	return 0;
}

/*
 * The greatest rate of @k equal rings that the cut lets through: of each link
 * only whole rings count.
 */
static struct plan_ratio cut_rate(const struct plan_graph *g,
				  const struct plan_cut *cut, uint32_t k)
{
	struct plan_ratio rate = plan_ratio(cut->capacity, k), next, r;
	uint64_t rings, hops;
	uint32_t i;

	for (; rate.num; rate = next) {
		next = plan_ratio(0, 1);
		for (rings = 0, i = 0; i < cut->nedges; i++) {
			uint64_t capacity = g->edges[cut->edges[i]].capacity;

			hops = (uint64_t)((unsigned __int128)capacity *
					  rate.den / rate.num);
			rings += hops;
			r = plan_ratio(capacity, hops + 1);
			if (plan_ratio_compare(r, next) > 0)
				next = r;
		}
		if (rings >= k)
			break;
	}
	return rate;
}

/* ---- the schedule ------------------------------------------------------- */

/* Ring r, from rank 0; the schedule's route of the hop out of each place. */
struct tour {
	const uint32_t *order;
	uint32_t *route;
	uint32_t n;
};

/* @hops hops of the ring, the first from place @at. */
static int add_hops(struct plan_schedule *s, const struct tour *t, uint32_t at,
		    uint32_t hops, bool reduce)
{
	int err = 0;

	for (; hops && !err; hops--, at = (at + 1) % t->n)
		err = plan_schedule_transfer(s, t->route[at], reduce);
	return err;
}

static int add_ring(struct plan_schedule *s, const struct tour *t, uint32_t r)
{
	enum plan_collective c = s->collective;
	bool rooted = c == PLAN_BROADCAST || c == PLAN_REDUCE;
	uint32_t i, hops = t->n - 1;
	int err = 0;

	for (i = 0; i < t->n && !err; i++) {
		if (rooted && t->order[i] != s->root)
			continue;
		err = plan_schedule_chunk(s, s->nshards > 1 ? t->order[i] : 0,
					  r, 1);
		if (!err && c != PLAN_ALL_GATHER && c != PLAN_BROADCAST)
			err = add_hops(s, t, (i + 1) % t->n, hops, true);
		if (!err && c != PLAN_REDUCE_SCATTER && c != PLAN_REDUCE)
			err = add_hops(s, t, i, hops, false);
	}
	return err;
}

static int route_ring(struct plan_schedule *s, struct plan_ringset *set,
		      uint32_t r, struct tour *t)
{
	uint32_t i, from, to, path;
	struct plan_ring_path w;
	int64_t route;

	for (i = 0; i < t->n; i++) {
		from = t->order[i];
		to = t->order[(i + 1) % t->n];
		t->route[i] = 0;
		if (from == set->skip_from || to == set->skip_to)
			continue;
		w = plan_ring_paths_of(set->paths, from, to);
		path = set->path[(size_t)r * t->n + i];
		route = w.count ? plan_schedule_route(s, set->paths->g, w.edges +
						      path * w.length, w.length)
				: -ENOMEM;
		if (route < 0)
			return (int)route;
		t->route[i] = (uint32_t)route;
	}
	return 0;
}

static int schedule_of(struct plan_ringset *set, enum plan_collective c,
		       uint32_t root, struct plan_schedule **out)
{
	struct plan_schedule *s = plan_schedule_new(c, set->n, root);
	struct tour t = { .n = set->n };
	uint32_t r;
	int err = s ? 0 : -ENOMEM;

	t.route = calloc(set->n, sizeof(*t.route));
	if (!t.route)
		err = -ENOMEM;
	for (r = 0; r < set->nrings && !err; r++) {
		t.order = set->order + (size_t)r * set->n;
		err = route_ring(s, set, r, &t);
		if (!err)
			err = add_ring(s, &t, r);
	}
	if (!err)
		err = plan_schedule_finish(s);
	free(t.route);
	if (err)
		plan_schedule_free(s);
	else
		*out = s;
	return err;
}

/* ---- looking ------------------------------------------------------------ */

struct hunt {
	const struct plan_graph *g;
	enum plan_collective c;
	uint32_t root;
	struct plan_ring_paths paths;
	struct plan_crowds crowds;
	struct plan_cut cut;
	struct plan_ringset best;	/* nrings 0: none yet */
	struct plan_ratio rate;		/* of best */
	uint32_t most;			/* rings */
	bool *home;			/* of each box: ranks are in it */
	uint32_t uplinks;		/* of the box that has fewest */
	struct plan_ratio above[RINGS_MOST + 1];	/* not known whether
						 * k rings reach it
						 */
	bool tried[RINGS_MOST + 1];
	uint64_t seed, work, limit;
	double deadline;		/* 0: none */
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static bool late(void *arg)
{
	struct hunt *h = arg;

	return h->deadline > 0 && now() >= h->deadline;
}

/* @wide: at the same rate, more rings are better. */
static void keep(struct hunt *h, struct plan_ringset *s, bool wide)
{
	uint32_t from, to;
	struct plan_ratio rate = plan_ringset_rate(s);
	int better = plan_ratio_compare(rate, h->rate);

	if (!plan_ringset_missing(s, &from, &to) &&
	    (better > 0 || !h->best.nrings ||
	     (!better && (s->nrings < h->best.nrings) != wide))) {
		plan_ringset_free(&h->best);
		h->best = *s;
		h->rate = rate;
		*s = (struct plan_ringset){ 0 };
	}
	plan_ringset_free(s);
}

/* Look for @k rings of @rate together; @mirrored: and their reverses. */
static int attempt_as(struct hunt *h, uint32_t k, struct plan_ratio rate,
		      uint64_t limit, bool mirrored, bool *reached)
{
	struct plan_ratio each;
	struct plan_ringset s;
	int err = plan_ratio_multiply(rate, plan_ratio(1, k), &each);

	if (!err)
		err = plan_ringset_init(&s, &h->paths, mirrored ? k / 2 : k,
					mirrored ? PLAN_ALL_GATHER : h->c,
					h->root);
	if (err)
		return err;
	s.random = (h->seed++ + 1) * 0x9e3779b97f4a7c15ull | 1;
	if (mirrored)
		plan_ringset_mirror(&s);
	plan_ringset_aim(&s, each);
	err = plan_ringsearch(&s, &h->crowds, limit, late, h);
	h->work += s.work;
	*reached = !err && !s.excess;
	if (!err && mirrored)
		err = plan_ringset_unfold(&s, h->c, h->root);
	if (err)
		plan_ringset_free(&s);
	else
		keep(h, &s, false);
	return err;
}

/*
 * Rings with their reverses are found sooner, but there may be others only, or
 * chains where there are no rings.
 */
static int attempt(struct hunt *h, uint32_t k, struct plan_ratio rate,
		   uint64_t limit, bool *reached)
{
	int err;

	*reached = false;
	if (h->paths.symmetric && k % 2 == 0 && h->g->nranks > 2) {
		err = attempt_as(h, k, rate, limit / 2, true, reached);
		if (err || *reached)
			return err;
		limit /= 2;
	}
	return attempt_as(h, k, rate, limit, false, reached);
}

/* The number of rings of which most can be hoped for, the fewest of these. */
static uint32_t choose(const struct hunt *h)
{
	uint32_t k, best = 0;

	for (k = 1; k <= h->most; k++)
		if (plan_ratio_compare(h->above[k], h->rate) > 0 &&
		    (!best ||
		     plan_ratio_compare(h->above[k], h->above[best]) > 0))
			best = k;
	return best;
}

/* What to try next: all that is possible at first, then half of the rest. */
static struct plan_ratio aim(struct hunt *h, uint32_t k)
{
	double low = plan_ratio_value(h->rate);
	double high = plan_ratio_value(h->above[k]);

	if (!h->tried[k])
		return h->above[k];
	return plan_ratio((uint64_t)((low + high) / 2 * 1024) + 1, 1024);
}

/*
 * All that is possible, with the few least numbers of rings for which it is:
 * a little work for each, then more, as one of them may be hopeless.
 */
static int look_for_all(struct hunt *h)
{
	uint32_t k, top = choose(h), share, tries;
	struct plan_ratio all = h->above[top];
	bool reached = false;
	int err = 0;

	for (share = 128; share >= 8 && !reached && !err; share /= 4)
		for (tries = 0, k = top; k <= h->most && tries < FEW &&
		     !reached && !err && (!h->work || !late(h)); k++) {
			if (plan_ratio_compare(h->above[k], all))
				continue;
			err = attempt(h, k, all, h->limit / share, &reached);
			h->tried[k] = true;
			tries++;
		}
	return err;
}

static int look(struct hunt *h)
{
	struct plan_ratio rate, top;
	uint32_t k, tries = 0;
	bool reached;
	int err = look_for_all(h);

	while (!err && (k = choose(h)) && h->work < h->limit && !late(h)) {
		rate = aim(h, k);
		if (plan_ratio_compare(rate, h->above[k]) > 0)
			rate = h->above[k];
		err = attempt(h, k, rate, h->limit / (8 + 4 * tries++),
			      &reached);
		h->tried[k] = true;
		if (!reached)
			h->above[k] = rate;
		/* a thousandth is not worth the time */
		top = h->above[k];
		if (!err && h->rate.num && plan_ratio_value(top) <
		    plan_ratio_value(h->rate) * 1.001)
			h->above[k] = h->rate;
	}
	return err;
}

/* Fewer rings for the same rate. */
static int reduce(struct hunt *h)
{
	uint32_t k;
	bool reached = false;
	int err = 0;

	for (k = 1; k < h->best.nrings && !err && !late(h); k++)
		if (plan_ratio_compare(plan_ratio(h->cut.capacity, 1),
				       h->rate) > 0)
			err = attempt(h, k, h->rate, h->limit / 32, &reached);
	return err;
}

/* Does the edge join a box of ranks to what is outside? */
static bool is_uplink(const struct hunt *h, uint32_t edge)
{
	const struct plan_edge *d = &h->g->edges[edge];
	uint32_t a = h->g->nodes[d->from].box, b = h->g->nodes[d->to].box;

	return a != b && ((a != PLAN_NONE && h->home[a]) ||
			  (b != PLAN_NONE && h->home[b]));
}

/* Links out of the box that has fewest; 0: all ranks are in one box. */
static int count_uplinks(struct hunt *h)
{
	const struct plan_graph *g = h->g;
	uint32_t *out = calloc((size_t)g->nboxes + 1, sizeof(*out)), i, box;

	h->home = calloc((size_t)g->nboxes + 1, sizeof(*h->home));
	if (!out || !h->home) {
		free(out);
		return -ENOMEM;
	}
	for (i = 0; i < g->nranks; i++)
		if (g->nodes[g->gpus[i]].box != PLAN_NONE)
			h->home[g->nodes[g->gpus[i]].box] = true;
	for (i = 0; i < g->nedges; i++) {
		box = g->nodes[g->edges[i].from].box;
		if (box != PLAN_NONE && is_uplink(h, i))
			out[box]++;
	}
	h->uplinks = h->crowds.n > 1 ? UINT32_MAX : 0;
	for (i = 0; i < g->nranks; i++) {
		box = g->nodes[g->gpus[i]].box;
		if (box == PLAN_NONE)
			h->uplinks = 0;
		else if (out[box] < h->uplinks)
			h->uplinks = out[box];
	}
	free(out);
	return 0;
}

/*
 * Where all rings share a narrow link behind the uplinks, one ring would do.
 * Then as many as there are uplinks, each over its own: what one ring leaves of
 * the narrow link while it waits for itself, others use.
 */
static int widen(struct hunt *h)
{
	const struct plan_graph *g = h->g;
	struct plan_ratio each;
	struct plan_ringset s;
	uint32_t k = h->uplinks, i;
	int err;

	if (k <= h->best.nrings || k > h->most)
		return 0;
	err = plan_ratio_multiply(h->rate, plan_ratio(1, k), &each);
	if (!err)
		err = plan_ringset_init(&s, &h->paths, k, h->c, h->root);
	if (err)
		return err;
	plan_ringset_aim(&s, each);
	for (i = 0; i < g->nedges; i++)
		if (is_uplink(h, i) && s.slot[i] > 1)
			s.slot[i] = 1;
	err = plan_ringsearch(&s, &h->crowds, h->limit / 16, late, h);
	if (err)
		plan_ringset_free(&s);
	else
		keep(h, &s, true);
	return err;
}

static void turn(uint32_t *p, uint32_t n, uint32_t by, uint32_t *copy)
{
	memcpy(copy, p, n * sizeof(*p));
	memcpy(p, copy + by, (n - by) * sizeof(*p));
	memcpy(p + (n - by), copy, by * sizeof(*p));
}

/* Each ring from rank 0, and rings in order. */
static int straighten(struct plan_ringset *s)
{
	uint32_t *copy = calloc(s->n, sizeof(*copy)), r, by;

	if (!copy)
		return -ENOMEM;
	for (r = 0; r < s->nrings; r++) {
		uint32_t *o = s->order + (size_t)r * s->n;

		for (by = 0; o[by]; by++)
			;
		turn(o, s->n, by, copy);
		turn(s->path + (size_t)r * s->n, s->n, by, copy);
	}
	free(copy);
	return 0;
}

/* Fill in @r from the best rings. */
static int report(struct hunt *h, struct plan_rings *r)
{
	struct plan_rings out = { .nrings = h->best.nrings };
	struct plan_ratio algbw;
	int err = straighten(&h->best);

	if (!err)
		err = schedule_of(&h->best, h->c, h->root, &out.schedule);
	if (!err)
		err = plan_schedule_rate(out.schedule, h->g, &algbw, NULL);
	if (!err)
		err = plan_ratio_multiply(algbw,
					  plan_busbw_factor(h->c,
							    h->g->nranks),
					  &out.busbw);
	if (err) {
		plan_schedule_free(out.schedule);
		return err;
	}
	out.order = h->best.order;
	h->best.order = NULL;
	out.cut = h->cut;
	h->cut = (struct plan_cut){ 0 };
	out.bound = plan_ratio(out.cut.capacity, 1);
	out.proved = !plan_ratio_compare(out.bound, out.busbw);
	*r = out;
	return 0;
}

static int begin(struct hunt *h, const struct plan_graph *g,
		 enum plan_collective c, uint32_t root, struct plan_error *e)
{
	uint32_t u, v;
	int err;

	*h = (struct hunt){ .g = g, .c = c, .root = root, .rate = { 0, 1 } };
	if (c < PLAN_ALL_GATHER || c >= PLAN_COLLECTIVES)
		return plan_fail(e, EINVAL, "%d is no collective", (int)c);
	if ((c == PLAN_BROADCAST || c == PLAN_REDUCE) && root >= g->nranks)
		return plan_fail(e, EINVAL, "there is no rank %u to be the root; ranks are 0 to %u",
				 root, g->nranks - 1);
	err = bound_of(g, c, root, &h->cut, e);
	if (err)
		return err;
	if (plan_ring_paths_init(&h->paths, g) || plan_crowds_init(&h->crowds, g))
		return plan_fail(e, ENOMEM, "out of memory");
	if (plan_ring_paths_peers(&h->paths))
		return plan_fail(e, ENOMEM, "out of memory");
	for (u = 0; u < g->nranks && g->nranks <= 256; u++)
		for (v = 0; v < g->nranks && !h->paths.turnovers; v++)
			if (u != v)
				plan_ring_paths_of(&h->paths, u, v);
	return 0;
}

static void end(struct hunt *h)
{
	plan_ring_paths_free(&h->paths);
	plan_crowds_free(&h->crowds);
	plan_cut_free(&h->cut);
	plan_ringset_free(&h->best);
	free(h->home);
}

/* What keeps rings from being there, said of a GPU if one is to blame. */
static int no_ring(struct hunt *h, bool proved, struct plan_error *e)
{
	const struct plan_ring_paths *w = &h->paths;
	const struct plan_graph *g = h->g;
	uint32_t u;

	for (u = 0; w->sparse && w->symmetric && u < g->nranks; u++)
		if (w->peer_first[u + 1] - w->peer_first[u] == 1)
			return plan_fail(e, EINVAL, "no ring leads through %s: it has routes to %s alone, as routes pass through no other GPU; give it a link to a second one",
					 g->nodes[g->gpus[u]].name,
					 g->nodes[g->gpus[w->peers[
					 w->peer_first[u]]]].name);
	return plan_fail(e, EINVAL, proved ? "there is no ring through all %u GPUs of %s: routes pass through no other GPU; add links, or use trees" :
			 "no ring through all %u GPUs of %s was found: routes pass through no other GPU; look longer, add links, or use trees",
			 g->nranks, g->name);
}

/* One ring by all means, when the search has found none. */
static int insist(struct hunt *h, struct plan_error *e)
{
	struct plan_ringset s;
	int err = plan_ringset_init(&s, &h->paths, 1, h->c, h->root);

	if (!err)
		err = plan_hamilton(&s, s.order);
	if (!err) {
		plan_ringset_aim(&s, plan_ratio(h->cut.capacity, 1));
		plan_ringset_enter(&s, 0);
		keep(h, &s, false);
		return 0;
	}
	plan_ringset_free(&s);
	return err == -ENOMEM ? plan_fail(e, ENOMEM, "out of memory") :
				no_ring(h, err == -ENOENT, e);
}

static int hunt(struct hunt *h, const struct plan_ring_options *o,
		struct plan_error *e)
{
	uint32_t k;
	int err;

	h->most = h->g->nranks > LARGE ? RINGS_LARGE : RINGS_MOST;
	if (o && o->rings && o->rings < h->most)
		h->most = o->rings;
	h->seed = o ? o->seed * 1000 : 0;
	h->limit = (uint64_t)h->g->nranks * WORK_OF_RANK;
	if (h->limit < WORK_LEAST)
		h->limit = WORK_LEAST;
	if (h->limit > WORK_MOST)
		h->limit = WORK_MOST;
	if (o && o->seconds > 0) {
		h->deadline = now() + o->seconds;
		h->limit = (uint64_t)(fmin(o->seconds, DAY) * WORK_OF_SECOND);
	}
	for (k = 1; k <= h->most; k++)
		if (plan_ratio_multiply(cut_rate(h->g, &h->cut, k),
					plan_ratio(k, 1), &h->above[k]))
			return plan_fail(e, EOVERFLOW, "capacities are too large");
	err = count_uplinks(h);
	if (!err)
		err = look(h);
	if (!err && !h->best.nrings)
		return insist(h, e);
	if (!err)
		err = reduce(h);
	if (!err)
		err = widen(h);
	return err ? plan_fail(e, -err, err == -ENOMEM ? "out of memory" :
			       "numbers of the rings do not fit") : 0;
}

static int finish(struct hunt *h, struct plan_rings *r, struct plan_error *e)
{
	int err = report(h, r);

	return err ? plan_fail(e, -err, err == -ENOMEM ? "out of memory" :
			       "numbers of the rings do not fit") : 0;
}

int plan_rings(const struct plan_graph *g, enum plan_collective c,
	       uint32_t root, const struct plan_ring_options *options,
	       struct plan_rings *r, struct plan_error *e)
{
	struct hunt h;
	int err = begin(&h, g, c, root, e);

	if (!err)
		err = hunt(&h, options, e);
	if (!err)
		err = finish(&h, r, e);
	end(&h);
	return err;
}

/* ---- rings of somebody else --------------------------------------------- */

static int check_ring(const struct plan_graph *g, const uint32_t *order,
		      uint32_t ring, uint32_t *times, struct plan_error *e)
{
	uint32_t i;

	memset(times, 0, g->nranks * sizeof(*times));
	for (i = 0; i < g->nranks; i++) {
		if (order[i] >= g->nranks)
			return plan_fail(e, EINVAL, "ring %u: there is no rank %u; ranks are 0 to %u",
					 ring, order[i], g->nranks - 1);
		if (times[order[i]]++)
			return plan_fail(e, EINVAL, "ring %u visits rank %u (%s) twice; each rank is there once",
					 ring, order[i],
					 g->nodes[g->gpus[order[i]]].name);
	}
	return 0;
}

static int check_given(struct hunt *h, const uint32_t *order, uint32_t nrings,
		       struct plan_error *e)
{
	uint32_t *times = calloc(h->g->nranks, sizeof(*times)), r;
	int err = 0;

	if (!times)
		return plan_fail(e, ENOMEM, "out of memory");
	if (!nrings || nrings > RINGS_GIVEN)
		err = plan_fail(e, EINVAL, "%u rings; 1 to %u can be judged",
				nrings, RINGS_GIVEN);
	for (r = 0; r < nrings && !err; r++)
		err = check_ring(h->g, order + (size_t)r * h->g->nranks, r,
				 times, e);
	free(times);
	return err;
}

/* Hops choose among parallel routes until no change helps. */
static void settle(struct hunt *h, struct plan_ringset *s)
{
	uint32_t r, i;
	bool better = true;

	for (r = 0; r < s->nrings; r++)
		plan_ringset_enter(s, r);
	while (better && s->excess) {
		better = false;
		for (r = 0; r < s->nrings; r++)
			for (i = 0; i < s->n; i++) {
				struct plan_change c = {
					.kind = PLAN_REROUTE, .a = i,
				};

				if (plan_ringset_try(s, r, c) >= 0)
					continue;
				plan_ringset_apply(s, r, c);
				better = true;
			}
	}
	h->rate = plan_ringset_rate(s);
}

static int judge(struct hunt *h, const uint32_t *order, uint32_t nrings,
		 struct plan_error *e)
{
	struct plan_ringset *s = &h->best;
	uint32_t from, to;

	if (plan_ringset_init(s, &h->paths, nrings, h->c, h->root))
		return plan_fail(e, ENOMEM, "out of memory");
	memcpy(s->order, order, (size_t)nrings * s->n * sizeof(*order));
	if (plan_ringset_missing(s, &from, &to))
		return plan_fail(e, h->paths.failed ? ENOMEM : EINVAL, "no route from rank %u (%s) to rank %u (%s) but through another GPU; let a ring go where links are",
				 from, h->g->nodes[h->g->gpus[from]].name, to,
				 h->g->nodes[h->g->gpus[to]].name);
	plan_ringset_aim(s, cut_rate(h->g, &h->cut, nrings));
	settle(h, s);
	return 0;
}

int plan_rings_given(const struct plan_graph *g, enum plan_collective c,
		     uint32_t root, const uint32_t *order, uint32_t nrings,
		     struct plan_rings *r, struct plan_error *e)
{
	struct hunt h;
	int err = begin(&h, g, c, root, e);

	if (!err)
		err = check_given(&h, order, nrings, e);
	if (!err)
		err = judge(&h, order, nrings, e);
	if (!err)
		err = finish(&h, r, e);
	end(&h);
	return err;
}
