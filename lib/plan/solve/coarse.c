// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Divides a network into boxes: appliances as they are, or, if those are too
 * many, larger ones made of everything below one switch. The cheapest division is
 * tried first. Called by optimum.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/solve/boxes.h"

/* ---- what hangs together ------------------------------------------------ */

static uint32_t find(uint32_t *up, uint32_t x)
{
	while (up[x] != x)
		x = up[x] = up[up[x]];
	return x;
}

static bool inner_arc(const uint32_t *box, const struct plan_arc *a)
{
	return a->capacity && box[a->from] == box[a->to] &&
	       box[a->from] != PLAN_NONE;
}

int plan_parts(const struct plan_net *net, const uint32_t *box, uint32_t *part)
{
	uint32_t *up = malloc((net->nnodes + 1) * sizeof(*up)), i, top, n = 0;

	if (!up)
		return -ENOMEM;
	for (i = 0; i < net->nnodes; i++) {
		up[i] = i;
		part[i] = PLAN_NONE;
	}
	for (i = 0; i < net->narcs; i++)
		if (inner_arc(box, &net->arcs[i]))
			up[find(up, net->arcs[i].from)] =
				find(up, net->arcs[i].to);
	for (i = 0; i < net->nnodes; i++) {
		top = find(up, i);
		if (net->terminal[i] && part[top] == PLAN_NONE)
			part[top] = n++;
	}
	for (i = 0; i < net->nnodes; i++)
		part[i] = part[find(up, i)];
	free(up);
	return (int)n;
}

/* ---- larger parts ------------------------------------------------------- */

/* What joins a part to a neighbour: a switch of no part, or another part. */
struct bond {
	uint32_t part, to;	/* parts come after all nodes */
	uint64_t capacity;
};

static int by_ends(const void *a, const void *b)
{
	const struct bond *x = a, *y = b;

	if (x->part != y->part)
		return x->part < y->part ? -1 : 1;
	return x->to < y->to ? -1 : x->to > y->to;
}

/* All bonds, each once, by part. Return: how many; *out is the caller's. */
static int64_t find_bonds(const struct plan_net *net, const uint32_t *part,
			  struct bond **out)
{
	struct bond *all = malloc((net->narcs + 1) * sizeof(*all));
	uint32_t i, n = 0, kept = 0;

	if (!all)
		return -ENOMEM;
	for (i = 0; i < net->narcs; i++) {
		const struct plan_arc *a = &net->arcs[i];
		uint32_t to = part[a->to];

		if (a->capacity && part[a->from] != PLAN_NONE &&
		    to != part[a->from])
			all[n++] = (struct bond){
				part[a->from],
				to == PLAN_NONE ? a->to : net->nnodes + to,
				a->capacity,
			};
	}
	qsort(all, n, sizeof(*all), by_ends);
	for (i = 0; i < n; i++) {
		if (kept && !by_ends(&all[kept - 1], &all[i]))
			all[kept - 1].capacity += all[i].capacity;
		else
			all[kept++] = all[i];
	}
	*out = all;
	return kept;
}

/* Each part to the switch, of no part yet, that takes most of it. */
static bool below_switches(const struct plan_net *net, const struct bond *bonds,
			   int64_t n, uint32_t *up)
{
	int64_t i, end, best;
	bool some = false;

	for (i = 0; i < n; i = end) {
		best = -1;
		for (end = i; end < n && bonds[end].part == bonds[i].part;
		     end++)
			if (bonds[end].to < net->nnodes &&
			    (best < 0 ||
			     bonds[end].capacity > bonds[best].capacity))
				best = end;
		if (best < 0)
			continue;
		up[find(up, net->nnodes + bonds[i].part)] =
			find(up, bonds[best].to);
		some = true;
	}
	return some;
}

/* Pairs of neighbours, each with the one of those left that it has most of. */
static bool pairs(const struct plan_net *net, const struct bond *bonds,
		  int64_t n, uint32_t *up)
{
	int64_t i, end, best;
	bool some = false;

	for (i = 0; i < n; i = end) {
		uint32_t self = net->nnodes + bonds[i].part;

		best = -1;
		for (end = i; end < n && bonds[end].part == bonds[i].part;
		     end++)
			if (bonds[end].to > self && up[bonds[end].to] ==
			    bonds[end].to && up[self] == self &&
			    (best < 0 ||
			     bonds[end].capacity > bonds[best].capacity))
				best = end;
		if (best < 0)
			continue;
		up[self] = bonds[best].to;
		some = true;
	}
	return some;
}

/* Parts that were given the same top are one; numbered by their first node. */
static int renumber(const struct plan_net *net, uint32_t *part, uint32_t nparts,
		    uint32_t *up)
{
	uint32_t all = net->nnodes + nparts, i, top, n = 0;
	uint32_t *name = malloc((all + 1) * sizeof(*name));

	if (!name)
		return -ENOMEM;
	memset(name, 0xff, (all + 1) * sizeof(*name));
	for (i = 0; i < net->nnodes; i++) {
		if (part[i] == PLAN_NONE)
			continue;
		top = find(up, net->nnodes + part[i]);
		if (name[top] == PLAN_NONE)
			name[top] = n++;
	}
	for (i = 0; i < net->nnodes; i++)
		part[i] = name[find(up, part[i] == PLAN_NONE ? i :
				    net->nnodes + part[i])];
	free(name);
	return (int)n;
}

/*
 * Larger parts: with the switch above them, or if there are none left, pairs
 * of neighbours. Return: how many; 0: nothing can be made larger; -ENOMEM.
 */
static int coarsen(const struct plan_net *net, uint32_t *part, uint32_t nparts)
{
	uint32_t all = net->nnodes + nparts, i;
	uint32_t *up = malloc((all + 1) * sizeof(*up));
	struct bond *bonds = NULL;
	int64_t n = up ? find_bonds(net, part, &bonds) : -ENOMEM;
	int got = (int)nparts;

	for (i = 0; up && i < all; i++)
		up[i] = i;
	if (n < 0)
		got = -ENOMEM;
	else if (below_switches(net, bonds, n, up) || pairs(net, bonds, n, up))
		got = renumber(net, part, nparts, up);
	else
		got = 0;
	free(bonds);
	free(up);
	return got;
}

/* ---- levels ------------------------------------------------------------- */

#define LEVELS	12
/* Steps of packing at one level: some 70 s, or where success is unlikely 12 s. */
#define PATIENCE	6000000000ull
#define LITTLE_PATIENCE	1000000000ull
/* Costs of 150 boxes, or the like inside, and of what is not tried at all. */
#define HIGH_COST	1000000000ull
#define MOST_COST	5000000000ull
#define DEPTH	16	/* of dead ends that are looked for */

/* Boxes of one size, as plan_boxes_at() takes them. */
struct level {
	uint32_t *box;		/* of each node */
	uint64_t cost;		/* of packing: an estimate, to compare */
	uint64_t patience;	/* steps of packing that are left; 0: too slow */
};

struct levels {
	uint32_t n;
	struct level level[LEVELS];	/* what costs least first */
};

static void levels_clear(struct levels *l)
{
	while (l->n)
		free(l->level[--l->n].box);
}

static uint64_t fourth_power(uint64_t n)
{
	return n * n * n * n;
}

/* Trees over boxes, and trees in the largest. */
static uint64_t cost(const struct plan_net *net, const uint32_t *part,
		     uint32_t nparts, uint64_t *count)
{
	uint64_t largest = 0;
	uint32_t i;

	memset(count, 0, nparts * sizeof(*count));
	for (i = 0; i < net->nnodes; i++)
		if (net->terminal[i] && ++count[part[i]] > largest)
			largest = count[part[i]];
	return fourth_power(nparts) + 2 * fourth_power(largest);
}

static int add_level(struct levels *l, const struct plan_net *net,
		     const uint32_t *part, uint32_t nparts)
{
	uint64_t *count = malloc((nparts + 1) * sizeof(*count)), c;
	uint32_t *box = malloc((net->nnodes + 1) * sizeof(*box)), at;

	if (!count || !box) {
		free(count);
		free(box);
		return -ENOMEM;
	}
	memcpy(box, part, net->nnodes * sizeof(*box));
	c = cost(net, part, nparts, count);
	if (c > MOST_COST) {
		free(count);
		free(box);
		return 0;
	}
	for (at = l->n++; at && l->level[at - 1].cost > c; at--)
		l->level[at] = l->level[at - 1];
	l->level[at] = (struct level){
		box, c, c > HIGH_COST ? LITTLE_PATIENCE : PATIENCE,
	};
	free(count);
	return 0;
}

/* A level for each number of parts, until there is one part. */
static int find_levels(struct levels *l, const struct plan_net *net,
		       const uint32_t *box)
{
	uint32_t *part = malloc((net->nnodes + 1) * sizeof(*part)), before = 0;
	int n = part ? plan_parts(net, box, part) : -ENOMEM, err = 0;

	l->n = 0;
	while (!err && n > 1 && l->n < LEVELS) {
		if ((uint32_t)n != before)
			err = add_level(l, net, part, (uint32_t)n);
		before = (uint32_t)n;
		n = coarsen(net, part, (uint32_t)n);
	}
	free(part);
	if (err || n < 0)
		levels_clear(l);
	return n < 0 ? n : err;
}

/* ---- dead ends ---------------------------------------------------------- */

/* Neighbours of switches: one of them, and whether there are more. */
struct neighbour {
	uint32_t node;		/* PLAN_NONE: there is none */
	bool more;
};

static void meet(struct neighbour *n, uint32_t node)
{
	if (n->node == PLAN_NONE)
		n->node = node;
	else if (n->node != node)
		n->more = true;
}

static bool dead_end(const struct plan_net *net, const struct neighbour *n,
		     uint32_t node)
{
	return !net->terminal[node] && n[node].node != PLAN_NONE &&
	       !n[node].more;
}

/*
 * What enters a switch with one neighbour can only go back (a root port below
 * which there is nothing else). Seen from a box it would be a way in.
 */
static bool cut_dead_ends(struct plan_net *net, struct neighbour *n)
{
	struct plan_arc *a;
	bool some = false;
	uint32_t i;

	for (i = 0; i < net->nnodes; i++)
		n[i] = (struct neighbour){ PLAN_NONE, false };
	for (i = 0; i < net->narcs; i++) {
		a = &net->arcs[i];
		if (!a->capacity)
			continue;
		meet(&n[a->from], a->to);
		meet(&n[a->to], a->from);
	}
	for (i = 0; i < net->narcs; i++) {
		a = &net->arcs[i];
		if (!a->capacity || (!dead_end(net, n, a->from) &&
				     !dead_end(net, n, a->to)))
			continue;
		a->capacity = 0;
		some = true;
	}
	return some;
}

static int remove_dead_ends(struct plan_net *net)
{
	struct neighbour *n = malloc((net->nnodes + 1) * sizeof(*n));
	uint32_t depth;

	if (!n)
		return -ENOMEM;
	for (depth = 0; depth < DEPTH && cut_dead_ends(net, n); )
		depth++;
	free(n);
	return 0;
}

static int greatest_rate(const struct plan_net *net, struct plan_ratio *x,
			 struct plan_error *e)
{
	int err = plan_net_cut(net, x, NULL, e);

	if (!err && !x->num)
		return plan_fail(e, EINVAL, "a GPU is not reached");
	return err;
}

static int any_level(struct plan_net *net, struct levels *l,
		     struct plan_ratio x, struct plan_solution *s,
		     struct plan_error *e)
{
	int err = plan_fail(e, EAGAIN, "there are no boxes");
	uint32_t i;

	for (i = 0; err == -EAGAIN && i < l->n; i++) {
		if (!l->level[i].patience)
			continue;
		err = plan_boxes_at(net, l->level[i].box, x,
				    &l->level[i].patience, s, e);
		if (err == -ETIME)
			err = plan_fail(e, EAGAIN, "there are too many boxes");
	}
	return err;
}

int plan_boxes(struct plan_net *net, const uint32_t *box,
	       struct plan_solution *s, struct plan_error *e)
{
	struct plan_ratio x;
	struct levels l;
	int err = greatest_rate(net, &x, e);

	if (err)
		return err;
	if (remove_dead_ends(net) || find_levels(&l, net, box))
		return plan_fail(e, ENOMEM, "out of memory");
	err = any_level(net, &l, x, s, e);
	levels_clear(&l);
	return err;
}

/* In sixteenths, then halves: finer steps gain little and take as long each. */
int plan_boxes_near(struct plan_net *net, const uint32_t *box,
		    struct plan_solution *s, struct plan_error *e)
{
	struct plan_ratio x, less;
	uint32_t part = 15, of = 16;
	struct levels l;
	int err = greatest_rate(net, &x, e);

	if (err)
		return err;
	if (remove_dead_ends(net) || find_levels(&l, net, box))
		return plan_fail(e, ENOMEM, "out of memory");
	do {
		err = plan_ratio_multiply(x, plan_ratio(part, of), &less) ?
		      plan_fail(e, EOVERFLOW, "capacities are too unlike each other for 64 bits; round them") :
		      any_level(net, &l, less, s, e);
		if (part > 1)
			part--;
		else
			of *= 2;
	} while (err == -EAGAIN && of <= 1024);
	levels_clear(&l);
	return err;
}
