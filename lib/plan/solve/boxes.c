// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Solves large networks box by box: trees over boxes, and in each box trees over
 * its GPUs, which plans for a thousand GPUs in the time of some dozens. Called by
 * coarse.c, which decides what the boxes are.
 *
 * Every tree enters a box once and then reaches all of its GPUs inside. Both
 * networks, of the boxes and inside each box, are the whole one with parts
 * made one node, so their cuts are cuts of the whole: what the whole can do,
 * each part can. Parts do not see how the others share out what crosses
 * between them, so an optimum may be missed; that is detected and reported.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/solve/boxes.h"

/* ---- networks of parts -------------------------------------------------- */

static int count_nodes(struct plan_boxed *b)
{
	uint32_t i;

	for (i = 0; i < b->net->nnodes; i++) {
		struct plan_box *x;

		if (b->box_of[i] == PLAN_NONE)
			continue;
		x = &b->boxes[b->box_of[i]];
		b->local[i] = x->nnodes++;
		x->nterminals += b->net->terminal[i];
	}
	for (i = 0; i < b->nboxes; i++) {
		struct plan_box *x = &b->boxes[i];

		x->world = x->nnodes;
		x->nodes = malloc(x->nnodes * sizeof(*x->nodes));
		x->inflow = calloc(x->nnodes, sizeof(*x->inflow));
		x->outflow = calloc(x->nnodes, sizeof(*x->outflow));
		x->net = plan_net_new(x->nnodes + 1);
		if (!x->nodes || !x->inflow || !x->outflow || !x->net)
			return -ENOMEM;
	}
	return 0;
}

static void set_terminals(struct plan_boxed *b)
{
	const struct plan_net *net = b->net;
	uint64_t all = 0, inside;
	uint32_t i, k;

	for (i = 0; i < net->nnodes; i++) {
		all += net->weight[i];
		if (b->box_of[i] != PLAN_NONE)
			b->boxes[b->box_of[i]].nodes[b->local[i]] = i;
	}
	for (i = 0; i < b->nboxes; i++) {
		struct plan_box *x = &b->boxes[i];

		inside = 0;
		for (k = 0; k < x->nnodes; k++) {
			if (!net->terminal[x->nodes[k]])
				continue;
			plan_net_terminal(x->net, k, net->weight[x->nodes[k]]);
			inside += net->weight[x->nodes[k]];
		}
		plan_net_terminal(x->net, x->world, all - inside);
	}
}

/* An arc of the whole as one of @x; the other end may be the world. */
static int box_arc(struct plan_boxed *b, struct plan_box *x, uint32_t arc)
{
	const struct plan_arc *a = &b->net->arcs[arc];
	uint32_t self = (uint32_t)(x - b->boxes);
	int64_t n;

	n = plan_net_arc(x->net,
			 b->box_of[a->from] == self ? b->local[a->from] :
			 x->world,
			 b->box_of[a->to] == self ? b->local[a->to] : x->world,
			 a->capacity);
	if (n < 0)
		return (int)n;
	x->arcs[n] = arc;
	return 0;
}

static int alloc_arcs(struct plan_boxed *b)
{
	uint32_t *n = calloc(b->nboxes, sizeof(*n)), i, from, to;
	int err = n ? 0 : -ENOMEM;

	for (i = 0; !err && i < b->net->narcs; i++) {
		from = b->box_of[b->net->arcs[i].from];
		to = b->box_of[b->net->arcs[i].to];
		if (from != PLAN_NONE)
			n[from]++;
		if (to != PLAN_NONE && to != from)
			n[to]++;
	}
	for (i = 0; !err && i < b->nboxes; i++) {
		b->boxes[i].arcs = malloc((n[i] + 1) * sizeof(uint32_t));
		if (!b->boxes[i].arcs)
			err = -ENOMEM;
	}
	free(n);
	return err;
}

static int add_arcs(struct plan_boxed *b)
{
	uint32_t i, from, to;
	int err = alloc_arcs(b);

	for (i = 0; !err && i < b->net->narcs; i++) {
		if (!b->net->arcs[i].capacity)
			continue;
		from = b->box_of[b->net->arcs[i].from];
		to = b->box_of[b->net->arcs[i].to];
		if (from != PLAN_NONE)
			err = box_arc(b, &b->boxes[from], i);
		if (!err && to != PLAN_NONE && to != from)
			err = box_arc(b, &b->boxes[to], i);
	}
	return err;
}

static bool same_net(const struct plan_net *a, const struct plan_net *b)
{
	uint32_t i;

	if (a->nnodes != b->nnodes || a->narcs != b->narcs ||
	    memcmp(a->weight, b->weight, a->nnodes * sizeof(*a->weight)) ||
	    memcmp(a->terminal, b->terminal, a->nnodes * sizeof(*a->terminal)))
		return false;
	for (i = 0; i < a->narcs; i++)
		if (a->arcs[i].from != b->arcs[i].from ||
		    a->arcs[i].to != b->arcs[i].to ||
		    a->arcs[i].capacity != b->arcs[i].capacity)
			return false;
	return true;
}

/* Most boxes of a fabric are alike, and are then solved once. */
static void find_alike(struct plan_boxed *b)
{
	uint32_t i, k;

	for (i = 0; i < b->nboxes; i++) {
		for (k = 0; k < i; k++)
			if (b->boxes[k].alike == k &&
			    same_net(b->boxes[k].net, b->boxes[i].net))
				break;
		b->boxes[i].alike = k;
	}
}

/* Boxes made one node each, and what is between them. */
static int make_trunk(struct plan_boxed *b)
{
	const struct plan_net *net = b->net;
	uint32_t i, n = b->nboxes;
	int64_t arc;

	for (i = 0; i < net->nnodes; i++)
		b->trunk_node[i] = b->box_of[i] == PLAN_NONE ? n++ :
				   b->box_of[i];
	b->trunk = plan_net_new(n);
	if (!b->trunk)
		return -ENOMEM;
	for (i = 0; i < b->nboxes; i++) {
		const struct plan_box *x = &b->boxes[i];
		uint64_t weight = 0;
		uint32_t k;

		for (k = 0; k < x->nnodes; k++)
			weight += net->weight[x->nodes[k]];
		plan_net_terminal(b->trunk, i, weight);
	}
	for (i = 0; i < net->narcs; i++) {
		uint32_t from = b->trunk_node[net->arcs[i].from];
		uint32_t to = b->trunk_node[net->arcs[i].to];

		if (from == to || !net->arcs[i].capacity)
			continue;
		arc = plan_net_arc(b->trunk, from, to, net->arcs[i].capacity);
		if (arc < 0)
			return (int)arc;
		b->trunk_arcs[arc] = i;
	}
	return 0;
}

static void clear_box(struct plan_boxed *b, uint32_t i)
{
	struct plan_box *x = &b->boxes[i];

	free(x->nodes);
	free(x->arcs);
	free(x->share);
	free(x->inflow);
	free(x->outflow);
	plan_net_free(x->net);
	if (x->alike == i)
		plan_links_free(x->links);
	if (x->twin == i)
		plan_forest_free(x->forest);
}

static void boxed_clear(struct plan_boxed *b)
{
	uint32_t i;

	for (i = 0; b->boxes && i < b->nboxes; i++)
		clear_box(b, i);
	free(b->boxes);
	free(b->box_of);
	free(b->local);
	free(b->trunk_node);
	free(b->trunk_arcs);
	free(b->used);
	plan_net_free(b->trunk);
	plan_links_free(b->links);
	plan_forest_free(b->forest);
}

static int boxed_make(struct plan_boxed *b, const struct plan_net *net,
		      const uint32_t *box)
{
	uint32_t i;
	int err, n;

	*b = (struct plan_boxed){ .net = net };
	b->box_of = malloc((net->nnodes + 1) * sizeof(*b->box_of));
	b->local = calloc(net->nnodes + 1, sizeof(*b->local));
	b->trunk_node = malloc((net->nnodes + 1) * sizeof(*b->trunk_node));
	b->trunk_arcs = malloc((net->narcs + 1) * sizeof(*b->trunk_arcs));
	b->used = calloc(net->narcs + 1, sizeof(*b->used));
	if (!b->box_of || !b->local || !b->trunk_node || !b->trunk_arcs ||
	    !b->used)
		return -ENOMEM;
	n = plan_parts(net, box, b->box_of);
	if (n < 0)
		return n;
	b->nboxes = (uint32_t)n;
	b->boxes = calloc(b->nboxes + 1, sizeof(*b->boxes));
	if (!b->boxes)
		return -ENOMEM;
	for (i = 0; i < b->nboxes; i++)
		b->boxes[i].alike = b->boxes[i].twin = i;
	err = count_nodes(b);
	if (err)
		return err;
	set_terminals(b);
	err = add_arcs(b);
	if (err)
		return err;
	find_alike(b);
	return make_trunk(b);
}

/* ---- trees of the parts ------------------------------------------------- */

/* Is there anything to be gained? */
static int check_boxes(const struct plan_boxed *b, struct plan_error *e)
{
	uint32_t i;

	for (i = 0; b->nboxes > 1 && i < b->nboxes; i++)
		if (b->boxes[i].nterminals > 1)
			return 0;
	return plan_fail(e, EAGAIN, "there are no boxes of several GPUs");
}

/* Remove the switches of boxes, each box with the world around it. */
static int split_boxes(struct plan_boxed *b, struct plan_error *e)
{
	uint32_t i;
	int err = 0;

	for (i = 0; !err && i < b->nboxes; i++) {
		struct plan_box *x = &b->boxes[i];

		if (x->alike != i)
			x->links = b->boxes[x->alike].links;
		else
			err = plan_net_split(x->net, b->k, &x->links, e);
	}
	return err;
}

/*
 * What a box has of an arc between it and the world, after its switches are
 * gone: a switch may have passed on from the world to the world.
 */
static void keep(const struct plan_box *x, uint64_t *in, uint64_t *out)
{
	const struct plan_links *l = x->links;
	uint32_t i;

	for (i = 0; i < l->npaths; i++) {
		const struct plan_path *p = &l->paths[i];
		const uint32_t *arcs = l->path_arcs + p->first;

		if (p->from == x->world)
			in[x->arcs[arcs[0]]] += p->weight;
		if (p->to == x->world)
			out[x->arcs[arcs[p->narcs - 1]]] += p->weight;
	}
}

static int trim_trunk(struct plan_boxed *b)
{
	const struct plan_net *net = b->net;
	uint64_t *in = calloc(net->narcs + 1, sizeof(*in));
	uint64_t *out = calloc(net->narcs + 1, sizeof(*out));
	uint32_t i;

	for (i = 0; in && out && i < b->nboxes; i++)
		keep(&b->boxes[i], in, out);
	for (i = 0; in && out && i < b->trunk->narcs; i++) {
		struct plan_arc *a = &b->trunk->arcs[i];
		uint32_t arc = b->trunk_arcs[i];

		if (a->from < b->nboxes && out[arc] < a->capacity)
			a->capacity = out[arc];
		if (a->to < b->nboxes && in[arc] < a->capacity)
			a->capacity = in[arc];
	}
	free(in);
	free(out);
	return in && out ? 0 : -ENOMEM;
}

/* Trees over boxes, and how much of each arc they use. */
static int pack_trunk(struct plan_boxed *b, struct plan_error *e)
{
	uint64_t t;
	uint32_t i;
	int err;

	b->trunk->patience = b->patience;
	err = plan_net_split(b->trunk, b->k, &b->links, e);
	if (!err)
		err = plan_net_pack(b->trunk, b->links, b->k, &b->forest, e);
	for (t = 0; !err && t < b->forest->ntrees; t++) {
		const struct plan_tree *tree = &b->forest->trees[t];

		for (i = 0; i < b->forest->nhops; i++) {
			const struct plan_path *p = &b->links->paths[
				b->forest->hops[tree->first + i]];
			const uint32_t *arcs = b->links->path_arcs + p->first;

			b->used[b->trunk_arcs[arcs[0]]] += tree->weight;
			if (p->narcs > 1)
				b->used[b->trunk_arcs[arcs[p->narcs - 1]]] +=
					tree->weight;
		}
	}
	return err;
}

/* The box's links without those from and to the world. */
static int inner_links(const struct plan_box *x, struct plan_links *out)
{
	const struct plan_links *l = x->links;
	uint32_t i;

	*out = *l;
	out->nlinks = 0;
	out->links = malloc((l->nlinks + 1) * sizeof(*out->links));
	if (!out->links)
		return -ENOMEM;
	for (i = 0; i < l->nlinks; i++)
		if (l->links[i].from != x->world && l->links[i].to != x->world)
			out->links[out->nlinks++] = l->links[i];
	return 0;
}

/*
 * Trees inside: a GPU is the root of its own and of all those that enter the
 * box there.
 */
static int pack_box(struct plan_boxed *b, struct plan_box *x,
		    struct plan_error *e)
{
	struct plan_net *roots = plan_net_new(x->nnodes);
	struct plan_links inner = { 0 };
	uint32_t i;
	int err = roots ? inner_links(x, &inner) : -ENOMEM;

	for (i = 0; !err && i < x->nnodes; i++)
		if (x->net->terminal[i])
			plan_net_terminal(roots, i,
					  b->k * x->net->weight[i] +
					  x->inflow[i]);
	if (roots)
		roots->patience = b->patience;
	if (err)
		plan_fail(e, ENOMEM, "out of memory");
	else
		err = plan_net_pack(roots, &inner, 1, &x->forest, e);
	free(inner.links);
	plan_net_free(roots);
	return err;
}

static bool same_roots(const struct plan_box *a, const struct plan_box *b)
{
	return a->alike == b->alike &&
	       !memcmp(a->inflow, b->inflow, a->nnodes * sizeof(*a->inflow));
}

static int pack_boxes(struct plan_boxed *b, struct plan_error *e)
{
	uint32_t i, k;
	int err = 0;

	for (i = 0; !err && i < b->nboxes; i++) {
		struct plan_box *x = &b->boxes[i];

		if (x->nterminals < 2)
			continue;
		for (k = 0; k < i; k++)
			if (b->boxes[k].twin == k &&
			    same_roots(&b->boxes[k], x))
				break;
		x->twin = k;
		if (k < i)
			x->forest = b->boxes[k].forest;
		else
			err = pack_box(b, x, e);
	}
	return err;
}

/*
 * Only what the parts could do together may be impossible (-EINVAL then): the
 * parts each were possible.
 */
static int solve(struct plan_boxed *b, struct plan_error *e)
{
	int err = split_boxes(b, e);

	if (!err && trim_trunk(b))
		return plan_fail(e, ENOMEM, "out of memory");
	if (!err)
		err = pack_trunk(b, e);
	if (!err && plan_boxed_share(b))
		return plan_fail(e, ENOMEM, "out of memory");
	if (!err)
		err = pack_boxes(b, e);
	return err == -EINVAL ?
	       plan_fail(e, EAGAIN, "no optimum is made of trees over boxes") :
	       err;
}

/* ---- what no tree needs ------------------------------------------------- */

/* Of box @x: the arc to the world that is the other way of arc @i from there. */
static uint32_t other_way(const struct plan_boxed *b, const struct plan_box *x,
			  uint32_t i)
{
	const struct plan_arc *a = &b->net->arcs[x->arcs[i]], *o;
	uint32_t k;

	if (b->box_of[a->from] != PLAN_NONE)
		return PLAN_NONE;	/* it is another box's, too */
	for (k = 0; k < x->net->narcs; k++) {
		o = &b->net->arcs[x->arcs[k]];
		if (o->from == a->to && o->to == a->from)
			return k;
	}
	return PLAN_NONE;
}

/* Less on all cables of a box, until only so much enters it as has to. */
static void trim_box(const struct plan_boxed *b, const struct plan_box *x,
		     struct plan_net *net)
{
	const struct plan_net *part = x->net;
	uint64_t in = 0, out = 0, own = 0, need, slack, left, cut;
	uint64_t *a, *o;
	uint32_t i, k;

	for (i = 0; i < x->nnodes; i++)
		own += b->k * part->weight[i];
	for (i = 0; i < part->narcs; i++) {
		in += part->arcs[i].from == x->world ? part->arcs[i].capacity :
						       0;
		out += part->arcs[i].to == x->world ? part->arcs[i].capacity :
						      0;
	}
	need = b->k * part->weight[x->world];
	slack = in > need ? in - need : 0;
	if (out < own + slack)
		slack = out > own ? out - own : 0;
	for (left = slack, i = 0; left && i < part->narcs; i++) {
		k = part->arcs[i].from == x->world ? other_way(b, x, i) :
						     PLAN_NONE;
		if (k == PLAN_NONE)
			continue;
		a = &net->arcs[x->arcs[i]].capacity;
		o = &net->arcs[x->arcs[k]].capacity;
		cut = (uint64_t)(((unsigned __int128)slack * *a + in - 1) / in);
		cut = cut < left ? cut : left;
		cut = cut < *a ? cut : *a;
		cut = cut < *o ? cut : *o;
		*a -= cut;
		*o -= cut;
		left -= cut;
	}
}

/*
 * The network without what is too much on the cables of boxes, both ways
 * alike. If cuts are still large enough, all that a box gets is used, and the
 * trees inside are sure to fit.
 */
static int trim(const struct plan_net *net, const uint32_t *box, uint64_t k,
		struct plan_net **out)
{
	struct plan_net *less = plan_net_copy(net);
	struct plan_boxed b = { 0 };
	int err = less ? boxed_make(&b, net, box) : -ENOMEM;
	uint32_t i;

	b.k = k;
	for (i = 0; !err && i < b.nboxes; i++)
		trim_box(&b, &b.boxes[i], less);
	boxed_clear(&b);
	if (err)
		plan_net_free(less);
	else
		*out = less;
	return err;
}

/* ---- all of it ---------------------------------------------------------- */

static int solve_at(const struct plan_net *net, const uint32_t *box,
		    uint64_t k, uint64_t *patience, struct plan_solution *s,
		    struct plan_error *e)
{
	struct plan_boxed b;
	int err = boxed_make(&b, net, box);

	b.k = k;
	b.patience = patience;
	if (err)
		plan_fail(e, -err, "out of memory");
	else
		err = check_boxes(&b, e);
	if (!err)
		err = solve(&b, e);
	if (!err) {
		err = plan_boxed_compose(&b, &s->links, &s->forest);
		if (err)
			plan_fail(e, -err, "too many trees for the memory");
	}
	boxed_clear(&b);
	return err;
}

static int solve_scaled(const struct plan_net *net, const uint32_t *box,
			uint64_t k, uint64_t *patience,
			struct plan_solution *s, struct plan_error *e)
{
	struct plan_net *less;
	int err = trim(net, box, k, &less);

	if (err)
		return plan_fail(e, -err, "out of memory");
	err = solve_at(less, box, k, patience, s, e);
	plan_net_free(less);
	return err == -EAGAIN ? solve_at(net, box, k, patience, s, e) : err;
}

int plan_boxes_at(struct plan_net *net, const uint32_t *box,
		  struct plan_ratio x, uint64_t *patience,
		  struct plan_solution *s, struct plan_error *e)
{
	struct plan_solution found = { .x = x };
	struct plan_net *scaled = plan_net_copy(net);
	uint32_t i;
	int err;

	if (!scaled)
		return plan_fail(e, ENOMEM, "out of memory");
	err = plan_net_scale(scaled, x, &found.k, e);
	if (!err)
		err = solve_scaled(scaled, box, found.k, patience, &found, e);
	for (i = 0; !err && i < net->narcs; i++)
		net->arcs[i].capacity = scaled->arcs[i].capacity;
	if (!err)
		*s = found;
	plan_net_free(scaled);
	return err;
}
