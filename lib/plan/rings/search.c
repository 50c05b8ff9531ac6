// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Searches for rings: starts from one that passes through each box once, then
 * repairs one by one the hops that overload a link. Called by rings.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/rings/set.h"

#define TRIES	24u	/* changes of each kind for one hop */
#define NEAR	24u	/* in long rings mostly with positions so near */
#define RESTART	100u	/* sweeps without gain, then from the start */

int plan_crowds_init(struct plan_crowds *c, const struct plan_graph *g)
{
	uint32_t *number = calloc((size_t)g->nboxes + 1, sizeof(*number)), i, b;

	*c = (struct plan_crowds){ 0 };
	c->first = calloc((size_t)g->nranks + 2, sizeof(*c->first));
	c->ranks = calloc(g->nranks, sizeof(*c->ranks));
	c->of = calloc(g->nranks, sizeof(*c->of));
	if (!number || !c->first || !c->ranks || !c->of) {
		free(number);
		plan_crowds_free(c);
		return -ENOMEM;
	}
	for (i = 0; i < g->nranks; i++) {
		b = g->nodes[g->gpus[i]].box;
		if (b == PLAN_NONE || !number[b])
			c->of[i] = c->n++;
		else
			c->of[i] = number[b] - 1;
		if (b != PLAN_NONE)
			number[b] = c->of[i] + 1;
		c->first[c->of[i] + 2]++;
	}
	for (i = 2; i < c->n + 2; i++)
		c->first[i] += c->first[i - 1];
	for (i = 0; i < g->nranks; i++)
		c->ranks[c->first[c->of[i] + 1]++] = i;
	free(number);
	return 0;
}

void plan_crowds_free(struct plan_crowds *c)
{
	free(c->first);
	free(c->ranks);
	free(c->of);
	*c = (struct plan_crowds){ 0 };
}

static uint32_t crowd_size(const struct plan_crowds *c, uint32_t b)
{
	return c->first[b + 1] - c->first[b];
}

/* ---- the start ---------------------------------------------------------- */

struct gate {
	uint32_t from, to, path;
	uint64_t cost;
};

struct maker {
	struct plan_ringset *s;
	const struct plan_crowds *c;
	bool *used;		/* boxes */
	bool *seen;		/* ranks */
	uint32_t *order;	/* of the ring that is being made */
	uint32_t norder;
};

/*
 * The cheapest hop from box @a to box @b, not out of @entry, not into @exit.
 * @quick: from each rank only to those that stand at its place.
 */
static struct gate gate_between(struct maker *m, uint32_t a, uint32_t b,
				uint32_t entry, uint32_t exit, bool quick)
{
	const struct plan_crowds *c = m->c;
	struct gate best = { .cost = UINT64_MAX }, g;
	uint32_t na = crowd_size(c, a), nb = crowd_size(c, b), i, j, ties = 0;

	for (i = 0; i < na; i++)
		for (j = quick ? i % nb : 0; j < nb; j += quick ? nb : 1) {
			g.from = c->ranks[c->first[a] + i];
			g.to = c->ranks[c->first[b] + j];
			if ((g.from == entry && na > 1) ||
			    (g.to == exit && nb > 1))
				continue;
			g.cost = plan_ringset_cost(m->s, g.from, g.to, &g.path);
			if (g.cost < best.cost)
				ties = 0;
			if (g.cost < best.cost ||
			    (g.cost == best.cost &&
			     !plan_ringset_random(m->s, ++ties + 1)))
				best = g;
		}
	return best;
}

/* The next box: the one to which a hop costs least. */
static struct gate gate_out(struct maker *m, uint32_t a, uint32_t entry)
{
	struct gate best = { .cost = UINT64_MAX }, g;
	uint32_t b, at = PLAN_NONE, ties = 0;

	for (b = 0; b < m->c->n; b++) {
		if (m->used[b])
			continue;
		g = gate_between(m, a, b, entry, PLAN_NONE, true);
		if (g.cost < best.cost)
			ties = 0;
		if (at == PLAN_NONE || g.cost < best.cost ||
		    (g.cost == best.cost &&
		     !plan_ringset_random(m->s, ++ties + 1))) {
			best = g;
			at = b;
		}
	}
	return gate_between(m, a, at, entry, PLAN_NONE, false);
}

/* Go on to @to. */
static void walk(struct maker *m, uint32_t to, uint32_t path)
{
	if (m->norder)
		plan_ringset_add(m->s, m->order[m->norder - 1], to, path);
	m->seen[to] = true;
	m->order[m->norder++] = to;
}

/* Through all other ranks of box @b to @exit, from where the ring is. */
static void walk_box(struct maker *m, uint32_t b, uint32_t exit)
{
	const struct plan_crowds *c = m->c;
	uint32_t left = 0, from, i, at, path, best_path;

	for (i = c->first[b]; i < c->first[b + 1]; i++)
		left += !m->seen[c->ranks[i]];
	for (; left; left--) {
		uint64_t best = UINT64_MAX, cost;
		uint32_t ties = 0;

		from = m->order[m->norder - 1];
		at = best_path = 0;
		for (i = c->first[b]; i < c->first[b + 1]; i++) {
			uint32_t to = c->ranks[i];

			if (m->seen[to] || (to == exit && left > 1))
				continue;
			cost = plan_ringset_cost(m->s, from, to, &path);
			if (cost < best)
				ties = 0;
			if (cost < best ||
			    (cost == best &&
			     !plan_ringset_random(m->s, ++ties + 1))) {
				best = cost;
				at = to;
				best_path = path;
			}
		}
		walk(m, at, best_path);
	}
}

/*
 * One ring, from the rank where it leaves the first box to where it comes back
 * to that. Before a box is walked through, it has to be known where to leave.
 */
static void make_ring(struct maker *m, uint32_t r)
{
	struct gate g;
	uint32_t k, b, path, begin;

	memset(m->used, 0, m->c->n * sizeof(*m->used));
	memset(m->seen, 0, m->s->n * sizeof(*m->seen));
	m->order = m->s->order + (size_t)r * m->s->n;
	m->norder = 0;
	m->used[0] = true;
	for (k = 1, b = 0; k < m->c->n; k++, b = m->c->of[g.to]) {
		g = gate_out(m, b, k > 1 ? m->order[m->norder - 1] : PLAN_NONE);
		if (k == 1)
			walk(m, g.from, 0);
		else
			walk_box(m, b, g.from);
		walk(m, g.to, g.path);
		m->used[m->c->of[g.to]] = true;
	}
	if (b) {
		g = gate_between(m, b, 0, m->order[m->norder - 1], m->order[0],
				 false);
		walk_box(m, b, g.from);
		if (crowd_size(m->c, 0) > 1)
			walk(m, g.to, g.path);
	} else {
		walk(m, plan_ringset_random(m->s, m->s->n), 0);
	}
	walk_box(m, 0, PLAN_NONE);
	begin = m->order[0];
	plan_ringset_cost(m->s, m->order[m->norder - 1], begin, &path);
	plan_ringset_add(m->s, m->order[m->norder - 1], begin, path);
}

/*
 * Where each rank reaches each other alike: the zigzag 0, 1, -1, 2, -2 ... of
 * all ranks but one, that one last, turned by 1 for each ring. Walecki's
 * decomposition of a complete graph (Lucas, "Recreations mathematiques", 1883),
 * for an even number of ranks of the doubled one.
 */
static void make_zigzag(struct plan_ringset *s, uint32_t r)
{
	uint32_t n = s->n - 1, turn = s->mirrored ? r : r / 2, i, at;
	uint32_t *o = s->order + (size_t)r * s->n;

	for (i = 0; i < n; i++) {
		at = (turn + (i & 1 ? (i + 1) / 2 : n - i / 2)) % n;
		o[!s->mirrored && (r & 1) ? n - 1 - i : i] = at;
	}
	o[n] = n;
}

static void clear(struct plan_ringset *s)
{
	memset(s->load, 0, s->paths->g->nedges * sizeof(*s->load));
	s->excess = s->missing = 0;
}

/* Ways are chosen once more when all of the ring is known. */
static int make_all(struct plan_ringset *s, const struct plan_crowds *c,
		    bool again)
{
	struct maker m = { .s = s, .c = c };
	uint32_t r;

	m.used = calloc(c->n, sizeof(*m.used));
	m.seen = calloc(s->n, sizeof(*m.seen));
	if (!m.used || !m.seen) {
		free(m.used);
		free(m.seen);
		return -ENOMEM;
	}
	clear(s);
	for (r = 0; r < s->nrings; r++)
		if (c->n == 1 && !s->paths->sparse && !again)
			make_zigzag(s, r);
		else
			make_ring(&m, r);
	free(m.used);
	free(m.seen);
	clear(s);
	for (r = 0; r < s->nrings; r++)
		plan_ringset_enter(s, r);
	return s->paths->failed ? -ENOMEM : 0;
}

/* ---- repair ------------------------------------------------------------- */

struct choice {
	struct plan_change change;
	int64_t gain;		/* of excess: less is better */
	uint32_t ties;
};

static void consider(struct plan_ringset *s, uint32_t r, struct choice *best,
		     struct plan_change c)
{
	int64_t gain = plan_ringset_try(s, r, c);

	if (gain < best->gain)
		best->ties = 0;
	if (gain < best->gain ||
	    (gain == best->gain &&
	     !plan_ringset_random(s, ++best->ties + 1))) {
		best->gain = gain;
		best->change = c;
	}
}

/*
 * Some other position: any, in long rings mostly a near one. Where few pairs
 * have routes: of one that has a route from here.
 */
static uint32_t other(struct plan_ringset *s, uint32_t r, uint32_t at)
{
	const struct plan_ring_paths *w = s->paths;
	uint32_t step, rank, peer;

	if (w->sparse && plan_ringset_random(s, 8)) {
		step = plan_ringset_random(s, 2);
		rank = s->order[(size_t)r * s->n + (at + step) % s->n];
		peer = w->peers[w->peer_first[rank] +
				plan_ringset_random(s, w->peer_first[rank + 1] -
						    w->peer_first[rank])];
		return (s->place[(size_t)r * s->n + peer] + s->n - step) %
		       s->n;
	}
	if (s->n > 2 * NEAR && plan_ringset_random(s, 8)) {
		step = 1 + plan_ringset_random(s, 2 * NEAR);
		return (at + s->n - NEAR + step - (step <= NEAR)) % s->n;
	}
	step = 1 + plan_ringset_random(s, s->n - 1);
	return (at + step) % s->n;
}

static void order_two(uint32_t *a, uint32_t *b)
{
	uint32_t x = *a;

	if (*a > *b) {
		*a = *b;
		*b = x;
	}
}

static struct plan_change two(enum plan_change_kind kind, uint32_t a,
			      uint32_t b)
{
	order_two(&a, &b);
	return (struct plan_change){ kind, a, b, 0 };
}

static struct plan_change three(uint32_t a, uint32_t b, uint32_t c)
{
	order_two(&a, &b);
	order_two(&b, &c);
	order_two(&a, &b);
	return (struct plan_change){ PLAN_EXCHANGE, a, b, c };
}

/* The best of what can be done about hop @at of ring @r. */
static struct choice choose(struct plan_ringset *s, uint32_t r, uint32_t at)
{
	struct choice best = { .gain = INT64_MAX };
	uint32_t i, b, c, next = (at + 1) % s->n;

	consider(s, r, &best, (struct plan_change){ .kind = PLAN_REROUTE,
						    .a = at });
	if (s->n < 3)
		return best;
	for (i = 0; i < TRIES && best.gain > -1; i++) {
		b = other(s, r, at);
		c = other(s, r, i & 1 ? b : at);
		if (b != at && c != at && b != c)
			consider(s, r, &best, three(at, b, c));
		b = other(s, r, i & 1 ? next : at);
		if (b != (i & 1 ? next : at))
			consider(s, r, &best,
				 two(PLAN_SWAP, i & 1 ? next : at, b));
		b = other(s, r, at);
		if (b != at && ((i & 3) == 0 || s->mirrored))
			consider(s, r, &best, two(PLAN_REVERSE, at, b));
	}
	return best;
}

/* Hops that are over, of all rings. Returns how many; in @hops. */
static uint32_t gather(struct plan_ringset *s, uint32_t *hops)
{
	uint32_t r, i, n = 0, k, x;

	for (r = 0; r < s->nrings; r++)
		for (i = 0; i < s->n; i++)
			if (plan_ringset_over(s, r, i))
				hops[n++] = r * s->n + i;
	for (i = n; i > 1; i--) {
		k = plan_ringset_random(s, i);
		x = hops[i - 1];
		hops[i - 1] = hops[k];
		hops[k] = x;
	}
	return n;
}

/* Once through all hops that are over. */
static void sweep(struct plan_ringset *s, uint32_t *hops, uint64_t until)
{
	uint32_t n = gather(s, hops), i, r, at;
	struct choice best;

	for (i = 0; i < n && s->excess && s->work < until; i++) {
		r = hops[i] / s->n;
		at = hops[i] % s->n;
		if (!plan_ringset_over(s, r, at))
			continue;
		best = choose(s, r, at);
		/* sideways always, uphill now and then */
		if (best.gain <= 0 || !plan_ringset_random(s, 64))
			plan_ringset_apply(s, r, best.change);
	}
}

/* Rings that can be, before such as have little excess. */
static bool is_better(const struct plan_ringset *s,
		      const struct plan_ringset *than)
{
	return s->missing != than->missing ? s->missing < than->missing :
					     s->excess < than->excess;
}

int plan_ringsearch(struct plan_ringset *s, const struct plan_crowds *c,
		    uint64_t limit, bool (*enough)(void *), void *arg)
{
	struct plan_ringset best;
	uint64_t until = s->work + limit, since = 0;
	uint32_t *hops = calloc((size_t)s->nrings * s->n, sizeof(*hops));
	int err = plan_ringset_init(&best, s->paths, s->nrings, 0, 0);

	if (!err)
		err = hops ? make_all(s, c, false) : -ENOMEM;
	best.mirrored = s->mirrored;
	if (!err)
		plan_ringset_copy(&best, s);
	while (!err && best.excess && s->work < until && !enough(arg)) {
		if (++since > RESTART) {
			err = make_all(s, c, true);
			since = 0;
		}
		sweep(s, hops, until);
		if (is_better(s, &best)) {
			plan_ringset_copy(&best, s);
			since = 0;
		}
		if (s->paths->failed)
			err = -ENOMEM;
	}
	if (!err)
		plan_ringset_copy(s, &best);
	plan_ringset_free(&best);
	free(hops);
	return err;
}
