// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Upper bounds with certificates that can be checked by hand. solve/cut.c finds
 * the cuts; this file chooses the one that is easiest to read and expresses it in
 * nodes and edges of the graph. Called by optimum.c and api/plan.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/optimum.h"
#include "plan/solve/partition.h"
#include "plan/solve/solve.h"

void plan_cut_free(struct plan_cut *c)
{
	free(c->inside);
	free(c->edges);
	*c = (struct plan_cut){ 0 };
}

void plan_bound_free(struct plan_bound *b)
{
	uint32_t i;

	plan_cut_free(&b->cut);
	for (i = 0; i < b->nparts; i++)
		plan_cut_free(&b->parts[i]);
	free(b->parts);
	*b = (struct plan_bound){ 0 };
}

static bool idle(const struct plan_graph *g, uint32_t node)
{
	return g->nodes[node].kind == PLAN_GPU &&
		g->nodes[node].rank == PLAN_NONE;
}

/*
 * Does an edge lead out of the set (@in: into it)? Those of GPUs that are no
 * ranks do not count: they pass nothing on.
 */
static bool crosses(const struct plan_graph *g, uint32_t edge,
		    const bool *inside, bool in)
{
	const struct plan_edge *d = &g->edges[edge];

	if (inside[d->from] == inside[d->to] || inside[d->to] != in)
		return false;
	return !idle(g, d->from) && !idle(g, d->to);
}

int plan_cut_make(const struct plan_graph *g, const bool *inside, bool in,
		  struct plan_cut *out)
{
	struct plan_cut c = { 0 };
	uint32_t i;

	c.inside = calloc(g->nnodes + 1, sizeof(*c.inside));
	if (!c.inside)
		return -ENOMEM;
	memcpy(c.inside, inside, g->nnodes * sizeof(*inside));
	for (i = 0; i < g->nedges; i++)
		c.nedges += crosses(g, i, c.inside, in);
	c.edges = calloc(c.nedges + 1, sizeof(*c.edges));
	if (!c.edges)
		goto fail;
	for (c.nedges = 0, i = 0; i < g->nedges; i++) {
		if (!crosses(g, i, c.inside, in))
			continue;
		c.capacity += g->edges[i].capacity;
		c.edges[c.nedges++] = i;
	}
	for (i = 0; i < g->nranks; i++)
		c.ninside += c.inside[g->gpus[i]];
	*out = c;
	return 0;
fail:
	plan_cut_free(&c);
	return -ENOMEM;
}

/* ---- the cut that people like best -------------------------------------- */

struct choice {
	const struct plan_graph *g;
	bool in;		/* the network is the reversed graph */
	bool any;
	uint32_t edges, split, ninside;	/* of the best so far */
	bool *inside;
	uint8_t *sides;		/* of each box: 1 some inside, 2 some outside */
};

/* Boxes that have GPUs on both sides. */
static uint32_t split_boxes(struct choice *c, const bool *inside)
{
	const struct plan_graph *g = c->g;
	uint32_t i, n = 0;

	memset(c->sides, 0, g->nboxes);
	for (i = 0; i < g->nranks; i++) {
		uint32_t box = g->nodes[g->gpus[i]].box;

		if (box < g->nboxes)
			c->sides[box] |= inside[g->gpus[i]] ? 1 : 2;
	}
	for (i = 0; i < g->nboxes; i++)
		n += c->sides[i] == 3;
	return n;
}

/* Fewest edges, then fewest boxes cut in two, then fewest ranks inside. */
static void consider(void *arg, uint32_t out, const bool *inside)
{
	struct choice *c = arg;
	const struct plan_graph *g = c->g;
	uint32_t edges = 0, ninside = 0, split, i;

	(void)out;
	for (i = 0; i < g->nedges; i++)
		edges += crosses(g, i, inside, c->in);
	if (c->any && edges > c->edges)
		return;
	for (i = 0; i < g->nranks; i++)
		ninside += inside[g->gpus[i]];
	split = split_boxes(c, inside);
	if (c->any && edges == c->edges &&
	    (split > c->split || (split == c->split && ninside >= c->ninside)))
		return;
	c->any = true;
	c->edges = edges;
	c->split = split;
	c->ninside = ninside;
	memcpy(c->inside, inside, g->nnodes * sizeof(*inside));
}

static int choose(const struct plan_graph *g, const struct plan_net *net,
		  bool in, struct plan_ratio *x, struct plan_cut *out,
		  struct plan_error *e)
{
	struct choice c = { .g = g, .in = in };
	bool *first = calloc(g->nnodes + 1, sizeof(*first));
	int err = -ENOMEM;

	c.inside = calloc(g->nnodes + 1, sizeof(*c.inside));
	c.sides = calloc(g->nboxes + 1, sizeof(*c.sides));
	if (!first || !c.inside || !c.sides)
		goto out;
	err = plan_net_cut(net, x, first, e);
	if (err)
		goto out;
	consider(&c, 0, first);
	err = plan_net_tight(net, *x, consider, &c, e);
	if (!err)
		err = plan_cut_make(g, c.inside, in, out);
out:
	free(first);
	free(c.inside);
	free(c.sides);
	return err == -ENOMEM ? plan_fail(e, ENOMEM, "out of memory") : err;
}

/* The least cut of the graph (@in: of the reversed one). */
static int least_cut(const struct plan_graph *g, uint32_t root, bool in,
		     struct plan_ratio *x, struct plan_cut *cut,
		     struct plan_error *e)
{
	struct plan_net *net;
	int err = plan_net_from_graph(g, root, in, &net, e);

	if (err)
		return err;
	err = choose(g, net, in, x, cut, e);
	plan_net_free(net);
	return err;
}

/* ---- collectives -------------------------------------------------------- */

/*
 * A set that has some ranks, but not all, has rank 0 inside, or outside. No
 * all-reduce is faster than what leaves it, and no rings.
 */
int plan_least_cut(const struct plan_graph *g, struct plan_bound *b,
		   struct plan_error *e)
{
	struct plan_ratio x, y;
	struct plan_cut cut;
	uint32_t i;
	int err = least_cut(g, 0, false, &x, &b->cut, e);

	b->kind = PLAN_BOUND_CUT;
	b->algbw = x;
	if (err)
		return err;
	err = least_cut(g, 0, true, &y, &cut, e);
	if (err || plan_ratio_compare(y, x) >= 0) {
		if (!err)
			plan_cut_free(&cut);
		return err;
	}
	plan_cut_free(&b->cut);
	for (i = 0; i < g->nnodes; i++)
		cut.inside[i] = !cut.inside[i];
	cut.ninside = g->nranks - cut.ninside;
	b->cut = cut;
	b->algbw = y;
	return 0;
}

static int all_reduce(const struct plan_graph *g, struct plan_bound *b,
		      struct plan_error *e)
{
	struct plan_bound parts = { 0 };
	int err = plan_least_cut(g, b, e);

	if (!err)
		err = plan_partition(g, &parts, e);
	if (!err && plan_ratio_compare(parts.algbw, b->algbw) <= 0) {
		plan_bound_free(b);
		*b = parts;
	} else {
		plan_bound_free(&parts);
	}
	return err;
}

/* Shards of x bytes a second each. */
static int shards(const struct plan_graph *g, bool in, struct plan_bound *b,
		  struct plan_error *e)
{
	int err = least_cut(g, PLAN_NONE, in, &b->algbw, &b->cut, e);

	b->kind = PLAN_BOUND_CUT;
	if (!err && plan_ratio_multiply(b->algbw, plan_ratio(g->nranks, 1),
					&b->algbw))
		err = plan_fail(e, EOVERFLOW, "%s: capacities are too large for 64 bits; round them",
				g->name);
	return err;
}

static int bound(const struct plan_graph *g, enum plan_collective c,
		 uint32_t root, struct plan_bound *b, struct plan_error *e)
{
	b->kind = PLAN_BOUND_CUT;
	switch (c) {
	case PLAN_ALL_GATHER:
	case PLAN_REDUCE_SCATTER:
		return shards(g, c == PLAN_REDUCE_SCATTER, b, e);
	case PLAN_BROADCAST:
	case PLAN_REDUCE:
		return least_cut(g, root, c == PLAN_REDUCE, &b->algbw, &b->cut,
				 e);
	case PLAN_ALL_REDUCE:
		return all_reduce(g, b, e);
	default:
		return plan_fail(e, EINVAL, "there is no collective %d", c);
	}
}

int plan_bound(const struct plan_graph *g, enum plan_collective c,
	       uint32_t root, struct plan_bound *b, struct plan_error *e)
{
	struct plan_bound found = { 0 };
	int err = plan_graph_check(g, e);

	if (err)
		return err;
	if ((c == PLAN_BROADCAST || c == PLAN_REDUCE) && root >= g->nranks)
		return plan_fail(e, EINVAL, "root %u: %s has ranks 0 to %u",
				 root, g->name, g->nranks - 1);
	err = bound(g, c, root, &found, e);
	if (!err && plan_ratio_multiply(found.algbw,
					plan_busbw_factor(c, g->nranks),
					&found.busbw))
		err = plan_fail(e, EOVERFLOW, "%s: capacities are too large for 64 bits; round them",
				g->name);
	if (err)
		plan_bound_free(&found);
	else
		*b = found;
	return err;
}
