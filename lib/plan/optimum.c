// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Optimal schedules: turns the solver's trees into chunks and transfers of each
 * collective and rates them by the flows that result. Called by api/plan.c.
 */
#include <errno.h>
#include <stdlib.h>

#include "plan/optimum.h"
#include "plan/solve/solve.h"

/* Trees of one direction; edges of @links are those of the graph. */
struct half {
	bool reversed;		/* trees lead to their roots */
	bool twins;		/* they are made of the edges' other directions */
	const struct plan_solution *s;
	int64_t *routes;	/* of each path, -1: none yet */
};

struct build {
	const struct plan_graph *g;
	struct plan_schedule *schedule;
	struct plan_error *e;
};

/* ---- trees -------------------------------------------------------------- */

/* Fewer are planned for in milliseconds without a look at their boxes. */
#define MANY_RANKS	24
/*
 * With more roots the general way takes minutes: rather a schedule that is not
 * proved.
 */
#define MOST_RANKS	128
/* And where there is a schedule already, more are not worth seconds. */
#define MOST_IMPROVED	48

static uint32_t roots(const struct plan_net *net)
{
	uint32_t i, n = 0;

	for (i = 0; i < net->nnodes; i++)
		n += net->weight[i] != 0;
	return n;
}

static int solve_boxes(const struct plan_graph *g, struct plan_net *net,
		       struct plan_solution *s, struct plan_error *e)
{
	uint32_t *box, i;
	int err;

	if (g->nranks < MANY_RANKS)
		return -EAGAIN;
	box = malloc((g->nnodes + 1) * sizeof(*box));
	if (!box)
		return plan_fail(e, ENOMEM, "out of memory");
	for (i = 0; i < g->nnodes; i++)
		box[i] = g->nodes[i].box;
	err = plan_boxes(net, box, s, e);
	if (err == -EAGAIN && g->nranks > MOST_RANKS && roots(net) > 1)
		err = plan_boxes_near(net, box, s, e);
	free(box);
	return err;
}

/* Box by box, or as a whole if there are no more than @most ranks. */
static int solve_net(const struct plan_graph *g, struct plan_net *net,
		     uint32_t most, struct plan_solution *s,
		     struct plan_error *e)
{
	int err = solve_boxes(g, net, s, e);

	if (err != -EAGAIN || g->nranks > most)
		return err;
	*e = (struct plan_error){ 0 };
	return plan_net_forest(net, s, e);
}

static int solve(const struct plan_graph *g, uint32_t root, bool reversed,
		 struct plan_solution *s, struct plan_error *e)
{
	struct plan_net *net;
	int err = plan_net_from_graph(g, root, reversed, &net, e);

	if (err)
		return err;
	err = solve_net(g, net, PLAN_GPUS, s, e);
	plan_net_free(net);
	return err;
}

/* Does every edge have another direction as wide? */
static bool symmetric(const struct plan_graph *g)
{
	uint32_t i;

	for (i = 0; i < g->nedges; i++)
		if (g->edges[i].twin == PLAN_NONE ||
		    g->edges[g->edges[i].twin].capacity != g->edges[i].capacity)
			return false;
	return true;
}

/* ---- routes and transfers ------------------------------------------------ */

static int64_t add_route(struct build *b, const struct half *h, uint32_t path)
{
	const struct plan_links *l = h->s->links;
	const struct plan_path *p = &l->paths[path];
	uint32_t *edges = malloc((p->narcs + 1) * sizeof(*edges)), i, edge;
	int64_t route;

	if (!edges)
		return -ENOMEM;
	for (i = 0; i < p->narcs; i++) {
		edge = l->path_arcs[p->first + (h->reversed ?
						p->narcs - 1 - i : i)];
		edges[i] = h->twins ? b->g->edges[edge].twin : edge;
	}
	route = plan_schedule_route(b->schedule, b->g, edges, p->narcs);
	free(edges);
	return route;
}

static int add_hop(struct build *b, const struct half *h, uint32_t path,
		   bool reduce)
{
	if (h->routes[path] < 0)
		h->routes[path] = add_route(b, h, path);
	if (h->routes[path] < 0)
		return (int)h->routes[path];
	return plan_schedule_transfer(b->schedule, (uint32_t)h->routes[path],
				      reduce);
}

/* Down a tree as copies from its root, or up, reducing, leaves first. */
static int add_tree(struct build *b, const struct half *h,
		    const struct plan_tree *t)
{
	const struct plan_forest *f = h->s->forest;
	uint32_t i, n = f->nhops;
	int err = 0;

	for (i = 0; !err && i < n; i++)
		err = add_hop(b, h, f->hops[t->first + (h->reversed ?
							n - 1 - i : i)],
			      h->reversed);
	return err;
}

static uint32_t shard_of(const struct build *b, const struct plan_tree *t)
{
	return b->schedule->nshards == 1 ? 0 : b->g->nodes[t->root].rank;
}

/* Each tree a chunk. */
static int add_half(struct build *b, const struct half *h)
{
	const struct plan_forest *f = h->s->forest;
	uint64_t i;
	int err = 0;

	for (i = 0; !err && i < f->ntrees; i++) {
		err = plan_schedule_chunk(b->schedule,
					  shard_of(b, &f->trees[i]),
					  (uint32_t)i, f->trees[i].weight);
		if (!err)
			err = add_tree(b, h, &f->trees[i]);
	}
	return err;
}

/*
 * Up one tree and down another of the same root: trees of both halves side by
 * side, a chunk for each piece between two ends of weights.
 */
static int add_both(struct build *b, const struct half *up,
		    const struct half *down)
{
	const struct plan_forest *f = up->s->forest, *t = down->s->forest;
	uint64_t d = plan_gcd(up->s->k, down->s->k), i = 0, k = 0;
	uint64_t rest_up = 0, rest_down = 0, piece;
	int err = 0;

	while (!err && (rest_up || i < f->ntrees)) {
		if (!rest_up && __builtin_mul_overflow(f->trees[i++].weight,
						       down->s->k / d,
						       &rest_up))
			return -EOVERFLOW;
		if (!rest_down && __builtin_mul_overflow(t->trees[k++].weight,
							 up->s->k / d,
							 &rest_down))
			return -EOVERFLOW;
		piece = rest_up < rest_down ? rest_up : rest_down;
		err = plan_schedule_chunk(b->schedule, 0,
					  (uint32_t)b->schedule->nchunks,
					  piece);
		if (!err)
			err = add_tree(b, up, &f->trees[i - 1]);
		if (!err)
			err = add_tree(b, down, &t->trees[k - 1]);
		rest_up -= piece;
		rest_down -= piece;
	}
	return err;
}

static int half_init(struct half *h, const struct plan_solution *s,
		     bool reversed, bool twins)
{
	uint32_t i;

	*h = (struct half){ reversed, twins, s, NULL };
	h->routes = malloc((s->links->npaths + 1) * sizeof(*h->routes));
	if (!h->routes)
		return -ENOMEM;
	for (i = 0; i < s->links->npaths; i++)
		h->routes[i] = -1;
	return 0;
}

/* ---- collectives --------------------------------------------------------- */

static int one_way(struct build *b, uint32_t root, bool reversed, uint64_t *k)
{
	struct plan_solution s = { 0 };
	struct half h = { 0 };
	int err = solve(b->g, root, reversed, &s, b->e);

	if (!err) {
		*k = s.k;
		err = half_init(&h, &s, reversed, false);
	}
	if (!err)
		err = add_half(b, &h);
	free(h.routes);
	plan_solution_clear(&s);
	return err;
}

/* In a graph that is its own reverse, each tree serves both ways. */
static int two_ways(struct build *b, uint64_t *k)
{
	struct plan_solution s[2] = { 0 };
	struct half up = { 0 }, down = { 0 };
	bool same = symmetric(b->g);
	int err = solve(b->g, PLAN_NONE, false, &s[0], b->e);

	if (!err && !same)
		err = solve(b->g, PLAN_NONE, true, &s[1], b->e);
	if (!err)
		err = half_init(&down, &s[0], false, false);
	if (!err)
		err = half_init(&up, same ? &s[0] : &s[1], true, same);
	if (!err) {
		*k = s[0].k;
		err = add_both(b, &up, &down);
	}
	free(up.routes);
	free(down.routes);
	plan_solution_clear(&s[0]);
	plan_solution_clear(&s[1]);
	return err;
}

/* Each tree up and down again, where links are divided among directions. */
static int there_and_back(struct build *b, uint64_t *k)
{
	struct plan_solution s = { 0 };
	struct half up = { 0 }, down = { 0 };
	struct plan_net *net = NULL;
	int err = plan_net_orient(b->g, &net, b->e);

	if (!err)
		err = solve_net(b->g, net, MOST_IMPROVED, &s, b->e);
	if (!err)
		err = half_init(&down, &s, false, false);
	if (!err)
		err = half_init(&up, &s, true, true);
	if (!err) {
		*k = s.k;
		err = add_both(b, &up, &down);
	}
	free(up.routes);
	free(down.routes);
	plan_solution_clear(&s);
	plan_net_free(net);
	return err;
}

static int build(struct build *b, uint32_t root, uint64_t *k)
{
	switch (b->schedule->collective) {
	case PLAN_ALL_GATHER:
		return one_way(b, PLAN_NONE, false, k);
	case PLAN_REDUCE_SCATTER:
		return one_way(b, PLAN_NONE, true, k);
	case PLAN_BROADCAST:
		return one_way(b, root, false, k);
	case PLAN_REDUCE:
		return one_way(b, root, true, k);
	default:
		return two_ways(b, k);
	}
}

static int judge(const struct plan_graph *g, struct plan_optimum *o)
{
	int err = plan_schedule_finish(o->schedule);

	if (!err)
		err = plan_schedule_rate(o->schedule, g, &o->algbw, NULL);
	if (!err)
		err = plan_ratio_multiply(o->algbw,
			plan_busbw_factor(o->schedule->collective, g->nranks),
			&o->busbw);
	o->proved = !err && !plan_ratio_compare(o->algbw, o->bound.algbw);
	return err;
}

/*
 * An all-reduce that is slower than its bound as a reduce-scatter and an
 * all-gather may do better as trees from one root. If that fails, or is not
 * faster, @o is as it was.
 */
static int improve(const struct plan_graph *g, struct plan_optimum *o)
{
	struct plan_error why = { 0 };
	struct plan_optimum other = { .bound = o->bound };
	struct build b = { .g = g, .e = &why };
	int err;

	b.schedule = other.schedule =
		plan_schedule_new(PLAN_ALL_REDUCE, g->nranks, 0);
	if (!b.schedule)
		return -ENOMEM;
	err = there_and_back(&b, &other.k);
	if (!err)
		err = judge(g, &other);
	if (err || plan_ratio_compare(other.algbw, o->algbw) <= 0) {
		plan_schedule_free(other.schedule);
		return err == -ENOMEM ? err : 0;
	}
	plan_schedule_free(o->schedule);
	*o = other;
	return 0;
}

void plan_optimum_free(struct plan_optimum *o)
{
	plan_bound_free(&o->bound);
	plan_schedule_free(o->schedule);
	*o = (struct plan_optimum){ 0 };
}

int plan_optimum(const struct plan_graph *g, enum plan_collective c,
		 uint32_t root, struct plan_optimum *o, struct plan_error *e)
{
	struct plan_error why = { 0 };
	struct plan_optimum found = { 0 };
	struct build b = { .g = g, .e = &why };
	int err = plan_bound(g, c, root, &found.bound, e);

	if (err)
		return err;
	b.schedule = found.schedule = plan_schedule_new(c, g->nranks, root);
	err = b.schedule ? build(&b, root, &found.k) : -ENOMEM;
	if (!err)
		err = judge(g, &found);
	if (!err && c == PLAN_ALL_REDUCE && !found.proved)
		err = improve(g, &found);
	if (err) {
		plan_optimum_free(&found);
		if (why.code == -err)
			return plan_fail(e, why.code, "%s", why.text);
		return plan_fail(e, -err, "%s: %s", g->name, err == -EOVERFLOW ?
				 "capacities are too unlike each other for 64 bits; round them" :
				 "out of memory");
	}
	*o = found;
	return 0;
}
