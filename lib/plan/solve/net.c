// SPDX-License-Identifier: LGPL-2.1-or-later
/* The solver's networks as containers. Called by the files of solve/. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/solve/solve.h"

struct plan_net *plan_net_new(uint32_t nnodes)
{
	struct plan_net *net = calloc(1, sizeof(*net));

	if (!net)
		return NULL;
	net->nnodes = nnodes;
	net->terminal = calloc(nnodes + 1, sizeof(*net->terminal));
	net->weight = calloc(nnodes + 1, sizeof(*net->weight));
	if (net->terminal && net->weight)
		return net;
	plan_net_free(net);
	return NULL;
}

void plan_net_free(struct plan_net *net)
{
	if (!net)
		return;
	free(net->arcs);
	free(net->terminal);
	free(net->weight);
	free(net);
}

struct plan_net *plan_net_copy(const struct plan_net *net)
{
	struct plan_net *c = plan_net_new(net->nnodes);

	if (!c)
		return NULL;
	memcpy(c->terminal, net->terminal,
	       net->nnodes * sizeof(*c->terminal));
	memcpy(c->weight, net->weight, net->nnodes * sizeof(*c->weight));
	if (!net->narcs)
		return c;
	c->arcs = malloc(net->narcs * sizeof(*c->arcs));
	if (!c->arcs) {
		plan_net_free(c);
		return NULL;
	}
	memcpy(c->arcs, net->arcs, net->narcs * sizeof(*c->arcs));
	c->narcs = c->arc_room = net->narcs;
	return c;
}

int64_t plan_net_arc(struct plan_net *net, uint32_t from, uint32_t to,
		     uint64_t capacity)
{
	uint32_t more = net->arc_room ? 2 * net->arc_room : 64;
	struct plan_arc *p;

	if (from >= net->nnodes || to >= net->nnodes || from == to ||
	    net->narcs == UINT32_MAX / 4)
		return -EINVAL;
	if (net->narcs == net->arc_room) {
		p = realloc(net->arcs, more * sizeof(*p));
		if (!p)
			return -ENOMEM;
		net->arcs = p;
		net->arc_room = more;
	}
	net->arcs[net->narcs] = (struct plan_arc){ from, to, capacity };
	return net->narcs++;
}

void plan_net_terminal(struct plan_net *net, uint32_t node, uint64_t weight)
{
	net->terminal[node] = true;
	net->weight[node] = weight;
}

static bool idle(const struct plan_node *n)
{
	return n->kind == PLAN_GPU && n->rank == PLAN_NONE;
}

static int add_edges(struct plan_net *net, const struct plan_graph *g,
		     bool reversed)
{
	uint32_t i;

	for (i = 0; i < g->nedges; i++) {
		const struct plan_edge *d = &g->edges[i];
		bool none = idle(&g->nodes[d->from]) || idle(&g->nodes[d->to]);

		if (plan_net_arc(net, reversed ? d->to : d->from,
				 reversed ? d->from : d->to,
				 none ? 0 : d->capacity) < 0)
			return -ENOMEM;
	}
	return 0;
}

int plan_net_from_graph(const struct plan_graph *g, uint32_t root,
			bool reversed, struct plan_net **out,
			struct plan_error *e)
{
	struct plan_net *net = plan_net_new(g->nnodes);
	uint32_t i;
	int err;

	if (!net)
		return plan_fail(e, ENOMEM, "out of memory");
	for (i = 0; i < g->nranks; i++)
		plan_net_terminal(net, g->gpus[i],
				  root == PLAN_NONE || root == i);
	err = add_edges(net, g, reversed);
	if (err) {
		plan_net_free(net);
		return plan_fail(e, ENOMEM, "out of memory");
	}
	*out = net;
	return 0;
}

/*
 * 1 / x = p / q in lowest terms. U = p / d for the greatest d that divides q
 * and all capacities: then k = x U = q / d.
 */
int plan_net_scale(struct plan_net *net, struct plan_ratio x, uint64_t *k,
		   struct plan_error *e)
{
	uint64_t d, c;
	uint32_t i;

	x = plan_ratio(x.num, x.den);
	if (!x.num)
		return plan_fail(e, EINVAL, "nothing can be sent in this network");
	d = x.num;
	for (i = 0; i < net->narcs; i++)
		d = plan_gcd(d, net->arcs[i].capacity);
	for (i = 0; i < net->narcs; i++)
		if (__builtin_mul_overflow(net->arcs[i].capacity / d, x.den,
					   &c))
			return plan_fail(e, EOVERFLOW, "capacities are too unlike each other for 64 bits; round them");
	for (i = 0; i < net->narcs; i++)
		net->arcs[i].capacity = net->arcs[i].capacity / d * x.den;
	*k = x.num / d;
	return 0;
}

void plan_links_free(struct plan_links *l)
{
	if (!l)
		return;
	free(l->links);
	free(l->paths);
	free(l->path_arcs);
	free(l);
}

void plan_forest_free(struct plan_forest *f)
{
	if (!f)
		return;
	free(f->trees);
	free(f->hops);
	free(f);
}

void plan_solution_clear(struct plan_solution *s)
{
	plan_links_free(s->links);
	plan_forest_free(s->forest);
	*s = (struct plan_solution){ 0 };
}

int plan_net_forest(struct plan_net *net, struct plan_solution *s,
		    struct plan_error *e)
{
	struct plan_solution found = { 0 };
	int err;

	err = plan_net_cut(net, &found.x, NULL, e);
	if (!err)
		err = plan_net_scale(net, found.x, &found.k, e);
	if (!err)
		err = plan_net_split(net, found.k, &found.links, e);
	if (!err)
		err = plan_net_pack(net, found.links, found.k, &found.forest,
				    e);
	if (err)
		plan_solution_clear(&found);
	else
		*s = found;
	return err;
}
