// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Packing spanning trees into a network without switches. Called by net.c's
 * plan_net_forest() and by boxes.c.
 *
 * Trees alike grow together: a "class" has the nodes T that it spans so far
 * and a weight m, how many trees it is. R(v) are trees not begun yet. All can
 * be completed if, and only if, for every set X of nodes
 *
 *	in(X) >= R(V - X) + sum of m of the classes with no node in X
 *
 * (Berczi, Frank, 2009). Growing a class over link a -> b by w trees keeps that
 * true if w <= in(X) - R(V - X) - (other classes that miss X) for all X with b
 * inside, a outside: one maximum flow from a and all roots to b. If w < m, the
 * class is two from here on: one goes on, one waits. Those that wait are
 * parts of one another, so there are fewer of them than nodes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/solve/flow.h"
#include "plan/solve/solve.h"
#include "plan/util.h"

/* Trees that are alike so far; one for each number of nodes may wait. */
struct class {
	uint64_t weight;	/* 0: none waits here */
	uint32_t first;		/* nodes from here on are its hub's own */
};

/*
 * A flow from the source to one node that has all of R and of what waits. It
 * is kept from one question to the next, as little changes between them.
 */
struct kept {
	uint32_t n;		/* halves */
	int64_t *flow;		/* of each half, of its twin the negative */
};

struct pack {
	const struct plan_net *net;
	const struct plan_links *l;
	struct flow flow;	/* nodes, the source, hubs of waiting classes */
	uint32_t source, n;	/* n: terminals */
	int64_t *base, *left;	/* what halves carry; what a flow leaves */
	uint32_t *half;		/* of each link */
	uint32_t *half_root;	/* of each node: from the source */
	uint32_t *begin;	/* of each node: its first link; one more */
	struct kept *kept;	/* of each node: the flow to it */
	uint64_t roots;		/* sum of R */
	uint64_t waiting;	/* sum of m of those that wait */
	/* The class that grows: nodes in their order, the link to each. */
	uint32_t root, size;
	uint64_t weight;
	uint32_t *nodes, *by;
	bool *has;		/* of each node */
	uint64_t *most;		/* of each link: it will not take more trees */
	struct class *wait;	/* by size */
	uint64_t *path_left;	/* of each path */
	uint32_t *path_at;	/* of each link: the first path with some left */
	struct plan_forest *f;
	uint64_t tree_room, hop_room, nhops;
	uint32_t group;
};

static void pack_clear(struct pack *p)
{
	uint32_t i;

	for (i = 0; p->kept && i < p->net->nnodes; i++)
		free(p->kept[i].flow);
	free(p->kept);
	flow_clear(&p->flow);
	free(p->base);
	free(p->left);
	free(p->half);
	free(p->half_root);
	free(p->begin);
	free(p->nodes);
	free(p->by);
	free(p->has);
	free(p->most);
	free(p->wait);
	free(p->path_left);
	free(p->path_at);
}

static uint32_t hub(const struct pack *p, uint32_t size)
{
	return p->source + size;
}

/* ---- set up ------------------------------------------------------------- */

static int pack_alloc(struct pack *p)
{
	uint32_t nodes = p->net->nnodes, links = p->l->nlinks;

	p->half = calloc(links + 1, sizeof(*p->half));
	p->half_root = calloc(nodes + 1, sizeof(*p->half_root));
	p->begin = calloc(nodes + 2, sizeof(*p->begin));
	p->nodes = calloc(nodes + 1, sizeof(*p->nodes));
	p->by = calloc(nodes + 1, sizeof(*p->by));
	p->has = calloc(nodes + 1, sizeof(*p->has));
	p->most = calloc(links + 1, sizeof(*p->most));
	p->wait = calloc(nodes + 2, sizeof(*p->wait));
	p->path_left = calloc(p->l->npaths + 1, sizeof(*p->path_left));
	p->path_at = calloc(links + 1, sizeof(*p->path_at));
	p->kept = calloc(nodes + 1, sizeof(*p->kept));
	p->f = calloc(1, sizeof(*p->f));
	return p->kept && p->half && p->half_root && p->begin && p->nodes && p->by &&
	       p->has && p->most && p->wait && p->path_left && p->path_at &&
	       p->f ? 0 : -ENOMEM;
}

/* All halves that are ever needed, hubs' excepted; where links begin. */
static int pack_shape(struct pack *p)
{
	uint32_t i, v;
	int64_t h;

	for (i = 0; i < p->l->nlinks; i++) {
		h = flow_pair(&p->flow, p->l->links[i].from,
			      p->l->links[i].to);
		if (h < 0)
			return (int)h;
		p->half[i] = (uint32_t)h;
	}
	for (v = 0; v < p->net->nnodes; v++) {
		if (!p->net->terminal[v])
			continue;
		h = flow_pair(&p->flow, p->source, v);
		if (h < 0)
			return (int)h;
		p->half_root[v] = (uint32_t)h;
		p->n++;
	}
	for (i = 0; i < p->l->nlinks; i++)
		p->begin[p->l->links[i].from + 1]++;
	for (v = 0; v < p->net->nnodes; v++)
		p->begin[v + 1] += p->begin[v];
	return 0;
}

/* Halves may have become more. */
static int pack_room(struct pack *p, uint32_t before)
{
	int64_t *base, *left;

	base = realloc(p->base, (p->flow.nhalves + 1) * sizeof(*base));
	if (!base)
		return -ENOMEM;
	p->base = base;
	memset(base + before, 0, (p->flow.nhalves - before) * sizeof(*base));
	left = realloc(p->left, (p->flow.nhalves + 1) * sizeof(*left));
	if (!left)
		return -ENOMEM;
	p->left = left;
	return 0;
}

static int pack_capacities(struct pack *p, uint64_t k)
{
	unsigned __int128 sum = 0, links = 0;
	uint32_t i;

	for (i = 0; i < p->l->nlinks; i++)
		links += p->l->links[i].capacity;
	for (i = 0; i < p->net->nnodes; i++)
		sum += (unsigned __int128)k * p->net->weight[i];
	if (links > FLOW_MOST || sum > FLOW_MOST)
		return -EOVERFLOW;
	p->roots = (uint64_t)sum;
	for (i = 0; i < p->l->nlinks; i++) {
		p->base[p->half[i]] += (int64_t)p->l->links[i].capacity;
		p->path_at[i] = p->l->links[i].first_path;
	}
	for (i = 0; i < p->net->nnodes; i++)
		if (p->net->weight[i])
			p->base[p->half_root[i]] =
				(int64_t)(k * p->net->weight[i]);
	for (i = 0; i < p->l->npaths; i++)
		p->path_left[i] = p->l->paths[i].weight;
	return 0;
}

static int pack_init(struct pack *p, const struct plan_net *net,
		     const struct plan_links *l, uint64_t k)
{
	int err;

	*p = (struct pack){ .net = net, .l = l, .source = net->nnodes };
	err = pack_alloc(p);
	if (!err)
		err = flow_init(&p->flow, 2 * net->nnodes + 2);
	if (!err)
		err = pack_shape(p);
	if (!err)
		err = pack_room(p, 0);
	return err ? err : pack_capacities(p, k);
}

/* ---- classes that wait -------------------------------------------------- */

/*
 * A class that waits can use what enters any node of its own. As those that
 * wait are parts of one another, its hub leads to the next smaller one's, and
 * to the nodes that that one does not have.
 */
static int hub_arcs(struct pack *p, uint32_t size, uint32_t first, bool on)
{
	uint32_t i, before = p->flow.nhalves, smaller = first;
	int64_t h;

	for (i = first; i < size; i++)
		if (flow_pair(&p->flow, hub(p, size), p->nodes[i]) < 0)
			return -ENOMEM;
	if (smaller &&
	    flow_pair(&p->flow, hub(p, size), hub(p, smaller)) < 0)
		return -ENOMEM;
	if (flow_pair(&p->flow, p->source, hub(p, size)) < 0)
		return -ENOMEM;
	if (p->flow.nhalves > before && pack_room(p, before))
		return -ENOMEM;
	for (i = first; i < size; i++) {
		h = flow_find(&p->flow, hub(p, size), p->nodes[i]);
		p->base[h] = on ? FLOW_MOST : 0;
	}
	if (smaller) {
		h = flow_find(&p->flow, hub(p, size), hub(p, smaller));
		p->base[h] = on ? FLOW_MOST : 0;
	}
	h = flow_find(&p->flow, p->source, hub(p, size));
	p->base[h] = on ? (int64_t)p->wait[size].weight : 0;
	return 0;
}

/* The largest class that waits and has fewer nodes than @size; 0: none. */
static uint32_t below(const struct pack *p, uint32_t size)
{
	while (size > 1 && !p->wait[size - 1].weight)
		size--;
	return size > 1 ? size - 1 : 0;
}

/* @rest of the class that grows stays as it is and waits. */
static int put_off(struct pack *p, uint64_t rest)
{
	uint32_t size = p->size;

	p->weight -= rest;
	if (size == 1) {	/* not begun, that is */
		p->base[p->half_root[p->root]] += (int64_t)rest;
		p->roots += rest;
		return 0;
	}
	p->wait[size] = (struct class){ rest, below(p, size) };
	p->waiting += rest;
	return hub_arcs(p, size, p->wait[size].first, true);
}

/* Go on with the largest that waits. Return: is there one? */
static int resume(struct pack *p, bool *some)
{
	uint32_t size = below(p, p->n + 1), i;
	int err;

	*some = size != 0;
	if (!size)
		return 0;
	err = hub_arcs(p, size, p->wait[size].first, false);
	if (err)
		return err;
	p->weight = p->wait[size].weight;
	p->waiting -= p->weight;
	p->wait[size].weight = 0;
	for (i = size; i < p->size; i++)
		p->has[p->nodes[i]] = false;
	p->size = size;
	memset(p->most, 0xff, p->l->nlinks * sizeof(*p->most));
	return 0;
}

/* ---- growing ------------------------------------------------------------ */

/* What the flow that is kept leaves of capacities as they are now. */
static void load(struct pack *p, uint32_t to)
{
	const struct kept *k = &p->kept[to];
	uint32_t h;

	for (h = 0; h < k->n; h++)
		p->left[h] = p->base[h] - k->flow[h];
	for (; h < p->flow.nhalves; h++)
		p->left[h] = p->base[h];
}

static int save(struct pack *p, uint32_t to)
{
	struct kept *k = &p->kept[to];
	uint32_t h, n = p->flow.nhalves;
	int64_t *flow;

	if (n > k->n) {
		flow = realloc(k->flow, n * sizeof(*flow));
		if (!flow)
			return -ENOMEM;
		k->flow = flow;
		k->n = n;
	}
	for (h = 0; h < n; h++)
		k->flow[h] = p->base[h] - p->left[h];
	return 0;
}

/*
 * Where capacity has gone that the flow to @to used: around it if possible,
 * otherwise there is less of a flow. Return: did anything change? *lost: the
 * rest of the flow makes no sense.
 */
static bool mend(struct pack *p, uint32_t to, bool *lost)
{
	bool changed = false;
	uint32_t h, from, head;
	int64_t over;

	for (h = 0; h < p->flow.nhalves; h++) {
		over = -p->left[h];
		if (over <= 0)
			continue;
		changed = true;
		from = p->flow.head[h ^ 1];
		head = p->flow.head[h];
		p->left[h] = 0;
		p->left[h ^ 1] -= over;
		over -= flow_push(&p->flow, p->left, from, head, over);
		if (over && from != p->source &&
		    flow_push(&p->flow, p->left, from, p->source, over) != over)
			*lost = true;
		if (over && head != to &&
		    flow_push(&p->flow, p->left, to, head, over) != over)
			*lost = true;
	}
	return changed;
}

/* What the source does not send yet in the flow that is loaded. */
static int64_t unsent(const struct pack *p)
{
	const struct flow_near *near = &p->flow.near[p->source];
	int64_t sum = 0;
	uint32_t i;

	for (i = 0; i < near->n; i++)
		sum += p->left[near->halves[i]];
	return sum;
}

/* All of R and of what waits to @to: in p->left. */
static int bring(struct pack *p, uint32_t to)
{
	bool changed, lost = false;
	int64_t more;

	load(p, to);
	changed = mend(p, to, &lost);
	if (lost) {
		p->kept[to].n = 0;
		load(p, to);
	}
	more = unsent(p);
	if (more && flow_push(&p->flow, p->left, p->source, to, more) != more)
		return -EINVAL;
	return more || changed ? save(p, to) : 0;
}

/*
 * How many of the class's trees link @i can take, @want at most. -EINVAL: not
 * even those that are begun can be completed.
 */
static int room_for(struct pack *p, uint32_t i, uint64_t want, uint64_t *out)
{
	const struct plan_link *link = &p->l->links[i];
	int err = bring(p, link->to);

	if (!err)
		*out = (uint64_t)flow_push(&p->flow, p->left, link->from,
					   link->to, (int64_t)want);
	return err;
}

/* No more than this, whatever the flow says. */
static uint64_t at_most(const struct pack *p, uint32_t i)
{
	uint64_t want = (uint64_t)p->base[p->half[i]];

	if (p->has[p->l->links[i].to])
		return 0;
	if (want > p->weight)
		want = p->weight;
	return want < p->most[i] ? want : p->most[i];
}

/*
 * Look at the links that may take more than *@best_weight and @least or more,
 * from the nodes that the class reached first, until one takes all.
 */
static int look(struct pack *p, uint64_t least, uint32_t *best,
		uint64_t *best_weight)
{
	uint32_t i, k, end;
	uint64_t want;
	int err;

	for (k = 0; k < p->size; k++) {
		end = p->begin[p->nodes[k] + 1];
		for (i = p->begin[p->nodes[k]]; i < end; i++) {
			want = at_most(p, i);
			if (want <= *best_weight || want < least)
				continue;
			err = room_for(p, i, want, &p->most[i]);
			if (err)
				return err;
			if (p->most[i] <= *best_weight)
				continue;
			*best_weight = p->most[i];
			*best = i;
			if (p->most[i] == p->weight)
				return 0;
		}
	}
	return 0;
}

/*
 * The link that the class grows by: the first that takes all; otherwise the
 * one that takes most. What a link could take becomes less only while a class
 * grows (no slack of a cut ever grows, and cuts join those that matter), so
 * what a flow said once is a bound from then on.
 */
static int choose(struct pack *p, uint32_t *best, uint64_t *weight)
{
	int err;

	*weight = 0;
	err = look(p, p->weight, best, weight);
	if (!err && *weight < p->weight)
		err = look(p, 1, best, weight);
	if (err)
		return err;
	return *weight ? 0 : -EINVAL;
}

/* Steps since the last time. */
static int spend(struct pack *p)
{
	uint64_t *patience = p->net->patience;

	if (patience && p->flow.work > *patience) {
		*patience = 0;
		return -ETIME;
	}
	if (patience)
		*patience -= p->flow.work;
	p->flow.work = 0;
	return 0;
}

static int grow_class(struct pack *p)
{
	uint64_t weight;
	uint32_t link = 0;
	int err = spend(p);

	if (!err)
		err = choose(p, &link, &weight);
	if (!err && weight < p->weight)
		err = put_off(p, p->weight - weight);
	if (err)
		return err;
	p->base[p->half[link]] -= (int64_t)weight;
	p->by[p->size] = link;
	p->nodes[p->size++] = p->l->links[link].to;
	p->has[p->l->links[link].to] = true;
	return 0;
}

/* ---- trees -------------------------------------------------------------- */

/* A path of each link, with all of the trees that the lightest can take. */
static int write_tree(struct pack *p, uint64_t *left)
{
	struct plan_forest *f = p->f;
	uint64_t w = *left;
	uint32_t i, path;

	if (plan_grow(&f->trees, f->ntrees, 1, &p->tree_room, sizeof(*f->trees)) ||
	    plan_grow(&f->hops, p->nhops, p->n, &p->hop_room, sizeof(*f->hops)))
		return -ENOMEM;
	for (i = 1; i < p->size; i++) {
		path = p->path_at[p->by[i]];
		while (!p->path_left[path])
			path = ++p->path_at[p->by[i]];
		if (p->path_left[path] < w)
			w = p->path_left[path];
	}
	f->trees[f->ntrees++] = (struct plan_tree){
		.root = p->root, .group = p->group, .weight = w,
		.first = p->nhops,
	};
	for (i = 1; i < p->size; i++) {
		path = p->path_at[p->by[i]];
		p->path_left[path] -= w;
		f->hops[p->nhops++] = path;
	}
	*left -= w;
	return 0;
}

static int complete(struct pack *p)
{
	uint64_t left;
	int err = 0;

	while (!err && p->size < p->n)
		err = grow_class(p);
	left = p->weight;
	while (!err && left)
		err = write_tree(p, &left);
	p->group++;
	return err;
}

/* All trees of one root. */
static int pack_root(struct pack *p, uint32_t root)
{
	bool more = true;
	int err = 0;

	p->root = root;
	p->group = 0;
	while (!err && p->base[p->half_root[root]]) {
		p->weight = (uint64_t)p->base[p->half_root[root]];
		p->base[p->half_root[root]] = 0;
		p->roots -= p->weight;
		memset(p->has, 0, p->net->nnodes * sizeof(*p->has));
		memset(p->most, 0xff, p->l->nlinks * sizeof(*p->most));
		p->nodes[0] = root;
		p->has[root] = true;
		p->size = 1;
		do {
			err = complete(p);
			if (!err)
				err = resume(p, &more);
		} while (!err && more);
	}
	return err;
}

static int pack_fail(int err, struct plan_error *e)
{
	if (err == -EINVAL)
		return plan_fail(e, EINVAL, "more trees are asked of a network than it has room for");
	if (err == -EOVERFLOW)
		return plan_fail(e, EOVERFLOW, "capacities are too large, or too unlike each other, for 64 bits; round them");
	return plan_fail(e, -err, "out of memory");
}

int plan_net_pack(const struct plan_net *net, const struct plan_links *l,
		  uint64_t k, struct plan_forest **out, struct plan_error *e)
{
	struct pack p;
	uint32_t v;
	int err = pack_init(&p, net, l, k);

	for (v = 0; !err && v < net->nnodes; v++)
		if (net->weight[v])
			err = pack_root(&p, v);
	if (!err) {
		p.f->nhops = p.n - 1;
		*out = p.f;
	} else {
		plan_forest_free(p.f);
		pack_fail(err, e);
	}
	pack_clear(&p);
	return err;
}
