// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Finds detours: switches on no shortest path between two terminals, such as a
 * root complex behind the switches that hosts and boxes share. They are used as a
 * last resort. Called by split.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/solve/solve.h"

/* Steps that looking for detours may take; there are none beyond. */
#define MOST_STEPS	100000000ull

/* Arcs by their ends. */
struct walk {
	const struct plan_net *net;
	uint32_t n, *terminals;
	uint32_t *begin[2];	/* of each node, [1]: against the arcs */
	uint32_t *arcs[2];
	uint32_t *queue;
	uint32_t *to;		/* steps to each terminal, nnodes for each */
	uint32_t *far;
};

static void walk_clear(struct walk *w)
{
	int back;

	for (back = 0; back < 2; back++) {
		free(w->begin[back]);
		free(w->arcs[back]);
	}
	free(w->terminals);
	free(w->queue);
	free(w->to);
	free(w->far);
}

static uint32_t tail(const struct plan_arc *a, int back)
{
	return back ? a->to : a->from;
}

/* Counting sort: begin[x + 1] ends up as the end of node x's arcs. */
static int sort_arcs(struct walk *w, int back)
{
	const struct plan_net *net = w->net;
	uint32_t *begin = calloc(net->nnodes + 2, sizeof(*begin)), i;
	uint32_t *arcs = calloc(net->narcs + 1, sizeof(*arcs));

	w->begin[back] = begin;
	w->arcs[back] = arcs;
	if (!begin || !arcs)
		return -ENOMEM;
	for (i = 0; i < net->narcs; i++)
		if (net->arcs[i].capacity &&
		    tail(&net->arcs[i], back) + 2 <= net->nnodes)
			begin[tail(&net->arcs[i], back) + 2]++;
	for (i = 0; i < net->nnodes; i++)
		begin[i + 1] += begin[i];
	for (i = 0; i < net->narcs; i++)
		if (net->arcs[i].capacity)
			arcs[begin[tail(&net->arcs[i], back) + 1]++] = i;
	return 0;
}

static int walk_init(struct walk *w, const struct plan_net *net)
{
	uint32_t i;

	w->net = net;
	w->terminals = calloc(net->nnodes + 1, sizeof(*w->terminals));
	w->queue = calloc(net->nnodes + 1, sizeof(*w->queue));
	w->far = calloc(net->nnodes + 1, sizeof(*w->far));
	if (!w->terminals || !w->queue || !w->far)
		return -ENOMEM;
	for (i = 0; i < net->nnodes; i++)
		if (net->terminal[i])
			w->terminals[w->n++] = i;
	if ((uint64_t)w->n * w->n * net->nnodes > MOST_STEPS)
		return -E2BIG;
	w->to = calloc((size_t)w->n * net->nnodes + 1, sizeof(*w->to));
	if (!w->to)
		return -ENOMEM;
	return sort_arcs(w, 0) || sort_arcs(w, 1) ? -ENOMEM : 0;
}

/* Steps from a terminal (@back: to it), none through another terminal. */
static void steps(struct walk *w, uint32_t from, int back, uint32_t *far)
{
	const struct plan_net *net = w->net;
	uint32_t first = 0, last = 0, i, x, y;

	memset(far, 0xff, net->nnodes * sizeof(*far));
	far[from] = 0;
	w->queue[last++] = from;
	while (first < last) {
		x = w->queue[first++];
		if (x != from && net->terminal[x])
			continue;
		for (i = w->begin[back][x]; i < w->begin[back][x + 1]; i++) {
			y = tail(&net->arcs[w->arcs[back][i]], !back);
			if (far[y] != PLAN_NONE)
				continue;
			far[y] = far[x] + 1;
			w->queue[last++] = y;
		}
	}
}

/* Switches on shortest paths from one terminal are no detours. */
static void on_the_way(struct walk *w, uint32_t a, bool *detour)
{
	uint32_t nnodes = w->net->nnodes, b, x;
	const uint32_t *to;

	steps(w, a, 0, w->far);
	for (x = 0; x < nnodes; x++)
		for (b = 0; b < w->n && detour[x]; b++) {
			to = w->to + (size_t)b * nnodes;
			if (w->terminals[b] != a && w->far[x] != PLAN_NONE &&
			    to[x] != PLAN_NONE &&
			    w->far[x] + to[x] == w->far[w->terminals[b]])
				detour[x] = false;
		}
}

int plan_net_detours(const struct plan_net *net, bool *detour)
{
	struct walk w = { 0 };
	uint32_t i;
	int err = walk_init(&w, net);

	for (i = 0; i < net->nnodes; i++)
		detour[i] = !err && !net->terminal[i];
	for (i = 0; !err && i < w.n; i++)
		steps(&w, w.terminals[i], 1,
		      w.to + (size_t)i * net->nnodes);
	for (i = 0; !err && i < w.n; i++)
		on_the_way(&w, w.terminals[i], detour);
	walk_clear(&w);
	return err == -E2BIG ? 0 : err;
}
