// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The best all-reduce where links are alike both ways. Called by optimum.c.
 *
 * If a tree is used in one direction to reduce and in the other to copy, it
 * takes the same of both directions of its links: so it is undirected trees that
 * have to be packed. They are trees from one root after each link's capacity
 * 2u (both directions) is divided among its directions, such that switches
 * stay balanced and in'(X) >= C' for all sets X without the root. u + f one way
 * and u - f the other, with a flow f, makes in'(X) = in(X) + what f brings into
 * X. So it is enough to find a flow that brings needs(X) >= C' - in(X), and the
 * least needs of that kind can be brought if no partition forbids it (Frank,
 * "On the orientation of graphs", 1980; Tutte and Nash-Williams, 1961). All
 * numbers are times f = r - 1 of the best partition, so they are integers.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/solve/flow.h"
#include "plan/solve/partition.h"
#include "plan/solve/solve.h"

struct orient {
	const struct plan_graph *g;
	struct plan_net *net;
	struct flow flow;	/* nodes, source, sink */
	int64_t *left;
	int64_t *needs;		/* of each rank */
	uint32_t factor;
};

static bool symmetric(const struct plan_graph *g)
{
	uint32_t i, twin;

	for (i = 0; i < g->nedges; i++) {
		twin = g->edges[i].twin;
		if (twin == PLAN_NONE ||
		    g->edges[twin].capacity != g->edges[i].capacity)
			return false;
	}
	return true;
}

static int add_links(struct orient *o)
{
	const struct plan_net *net = o->net;
	uint32_t i;

	for (i = 0; i < net->narcs; i++)
		if (net->arcs[i].capacity &&
		    flow_pair(&o->flow, net->arcs[i].from,
			      net->arcs[i].to) < 0)
			return -ENOMEM;
	for (i = 0; i < o->g->nranks; i++)
		if (flow_pair(&o->flow, net->nnodes, o->g->gpus[i]) < 0 ||
		    flow_pair(&o->flow, o->g->gpus[i], net->nnodes + 1) < 0)
			return -ENOMEM;
	o->left = calloc(o->flow.nhalves, sizeof(*o->left));
	if (!o->left)
		return -ENOMEM;
	for (i = 0; i < net->narcs; i++)
		if (net->arcs[i].capacity)
			o->left[flow_find(&o->flow, net->arcs[i].from,
					  net->arcs[i].to)] +=
				(int64_t)net->arcs[i].capacity * o->factor;
	return 0;
}

/* The flow that brings every rank what it needs; the last one has the rest. */
static int bring(struct orient *o)
{
	uint32_t source = o->net->nnodes, i, n = o->g->nranks, h;
	int64_t rest = 0, sum = 0;

	for (i = 0; i + 1 < n; i++)
		rest -= o->needs[i];
	o->needs[n - 1] = rest;
	for (i = 0; i < n; i++) {
		if (o->needs[i] > 0) {
			h = flow_find(&o->flow, o->g->gpus[i], source + 1);
			o->left[h] = o->needs[i];
			sum += o->needs[i];
		} else {
			h = flow_find(&o->flow, source, o->g->gpus[i]);
			o->left[h] = -o->needs[i];
		}
	}
	return flow_push(&o->flow, o->left, source, source + 1, sum) == sum ?
		0 : -EIO;
}

/*
 * What has flowed through a pair is what its other half can take more: that is
 * what this direction gets. Of parallel links the first gets most.
 */
static void divide(struct orient *o)
{
	const struct plan_graph *g = o->g;
	uint32_t i, twin, h;
	int64_t both, here;

	for (i = 0; i < g->nedges; i++) {
		struct plan_arc *arc = &o->net->arcs[i];

		twin = g->edges[i].twin;
		if (twin < i || !arc->capacity)
			continue;
		h = flow_find(&o->flow, arc->from, arc->to);
		both = 2 * (int64_t)arc->capacity * o->factor;
		here = o->left[h ^ 1] < both ? o->left[h ^ 1] : both;
		o->left[h ^ 1] -= here;
		o->left[h] -= both - here;
		arc->capacity = (uint64_t)here;
		o->net->arcs[twin].capacity = (uint64_t)(both - here);
	}
}

static int orient(struct orient *o, struct plan_error *e)
{
	int err = plan_partition_needs(o->g, o->needs, &o->factor, e);

	if (err)
		return err;
	err = flow_init(&o->flow, o->net->nnodes + 2);
	if (!err)
		err = add_links(o);
	if (err)
		return plan_fail(e, ENOMEM, "out of memory");
	if (bring(o))
		return plan_fail(e, EIO, "links cannot be divided among their directions; this is a mistake of the planner");
	divide(o);
	return 0;
}

int plan_net_orient(const struct plan_graph *g, struct plan_net **out,
		    struct plan_error *e)
{
	struct orient o = { .g = g };
	int err;

	if (!symmetric(g))
		return plan_fail(e, EAGAIN, "%s: links are not the same both ways",
				 g->name);
	o.needs = calloc(g->nranks, sizeof(*o.needs));
	if (!o.needs)
		return plan_fail(e, ENOMEM, "out of memory");
	err = plan_net_from_graph(g, g->nranks - 1, false, &o.net, e);
	if (!err)
		err = orient(&o, e);
	if (err)
		plan_net_free(o.net);
	else
		*out = o.net;
	flow_clear(&o.flow);
	free(o.left);
	free(o.needs);
	return err;
}
