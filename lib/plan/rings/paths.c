// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Paths between ranks: the widest of the shortest, several where they are equally
 * good. Called by the files of set.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/rings/set.h"

static bool symmetric(const struct plan_graph *g)
{
	uint32_t i;

	for (i = 0; i < g->nedges; i++)
		if (g->edges[i].twin == PLAN_NONE ||
		    g->edges[g->edges[i].twin].capacity !=
		    g->edges[i].capacity)
			return false;
	return true;
}

int plan_ring_paths_init(struct plan_ring_paths *w, const struct plan_graph *g)
{
	*w = (struct plan_ring_paths){
		.g = g, .source = PLAN_NONE, .symmetric = symmetric(g),
		.most = PLAN_PATHS_POOL,
	};
	w->index = calloc((size_t)g->nranks * g->nranks, sizeof(*w->index));
	w->dist = calloc(g->nnodes, sizeof(*w->dist));
	w->queue = calloc(g->nnodes, sizeof(*w->queue));
	w->width = calloc(g->nnodes, sizeof(*w->width));
	if (!w->index || !w->dist || !w->queue || !w->width ||
	    plan_graph_sort_edges(g, false, &w->out_first, &w->out_edges) ||
	    plan_graph_sort_edges(g, true, &w->in_first, &w->in_edges)) {
		plan_ring_paths_free(w);
		return -ENOMEM;
	}
	return 0;
}

void plan_ring_paths_free(struct plan_ring_paths *w)
{
	free(w->out_first);
	free(w->out_edges);
	free(w->in_first);
	free(w->in_edges);
	free(w->index);
	free(w->peer_first);
	free(w->peers);
	free(w->pool);
	free(w->dist);
	free(w->queue);
	free(w->width);
	*w = (struct plan_ring_paths){ 0 };
}

/* Distances from rank @u and how wide the widest shortest route is. */
static void measure(struct plan_ring_paths *w, uint32_t u)
{
	const struct plan_graph *g = w->g;
	uint32_t head = 0, tail = 0, from = g->gpus[u], i;

	memset(w->dist, 0xff, g->nnodes * sizeof(*w->dist));
	memset(w->width, 0, g->nnodes * sizeof(*w->width));
	w->source = u;
	w->dist[from] = 0;
	w->width[from] = UINT64_MAX;
	w->queue[tail++] = from;
	while (head < tail) {
		uint32_t x = w->queue[head++];

		if (x != from && g->nodes[x].kind == PLAN_GPU)
			continue;	/* routes end there */
		for (i = w->out_first[x]; i < w->out_first[x + 1]; i++) {
			const struct plan_edge *d = &g->edges[w->out_edges[i]];
			uint64_t wide = d->capacity < w->width[x] ?
					d->capacity : w->width[x];

			if (w->dist[d->to] == PLAN_NONE) {
				w->dist[d->to] = w->dist[x] + 1;
				w->queue[tail++] = d->to;
			}
			if (w->dist[d->to] == w->dist[x] + 1 &&
			    wide > w->width[d->to])
				w->width[d->to] = wide;
		}
	}
}

static int grow(struct plan_ring_paths *w, uint64_t want)
{
	uint64_t room = w->room ? w->room : 4096;
	uint32_t *p;

	while (room < want)
		room *= 2;
	if (room > w->most)
		room = w->most;
	p = realloc(w->pool, room * sizeof(*p));
	if (!p)
		return -ENOMEM;
	w->pool = p;
	w->room = room;
	return 0;
}

static void forget(struct plan_ring_paths *w)
{
	size_t pairs = (size_t)w->g->nranks * w->g->nranks;

	memset(w->index, 0, pairs * sizeof(*w->index));
	w->npool = 0;
	w->turnovers++;
}

/* Ways of one pair are far less than the pool: 9 routes over all nodes. */
static uint32_t *room_for(struct plan_ring_paths *w, uint64_t more)
{
	if (w->npool + more > w->most)
		forget(w);
	if (w->npool + more > w->room && grow(w, w->npool + more)) {
		w->failed = true;
		return NULL;
	}
	return w->pool + w->npool;
}

/*
 * Back from @node, @left edges to go, over what is at least @wide. Each pair
 * begins with another edge, so that pairs spread when not all paths are kept.
 */
static void trace(struct plan_ring_paths *w, uint32_t node, uint32_t left,
		  uint64_t wide, uint32_t turn, uint32_t *record,
		  uint32_t *trail)
{
	const struct plan_graph *g = w->g;
	uint32_t n = w->in_first[node + 1] - w->in_first[node], i;

	if (!left) {
		memcpy(record + 2 + record[0] * record[1], trail,
		       record[1] * sizeof(*trail));
		record[0]++;
		return;
	}
	for (i = 0; i < n && record[0] < PLAN_WAYS; i++) {
		uint32_t e = w->in_edges[w->in_first[node] + (i + turn) % n];
		uint32_t x = g->edges[e].from;

		if (w->dist[x] != left - 1 || w->width[x] < wide ||
		    g->edges[e].capacity < wide ||
		    (left > 1 && g->nodes[x].kind == PLAN_GPU))
			continue;
		trail[left - 1] = e;
		trace(w, x, left - 1, wide, turn, record, trail);
	}
}

static void find(struct plan_ring_paths *w, uint32_t u, uint32_t v)
{
	uint32_t to = w->g->gpus[v], length, *record;

	if (w->source != u)
		measure(w, u);
	length = w->dist[to] == PLAN_NONE ? 0 : w->dist[to];
	/* behind the record, the trail that is being traced */
	record = room_for(w, 2 + (uint64_t)(PLAN_WAYS + 1) * length);
	if (!record)
		return;
	record[0] = 0;
	record[1] = length;
	if (length)
		trace(w, to, length, w->width[to], u + v, record,
		      record + 2 + PLAN_WAYS * length);
	w->index[(size_t)u * w->g->nranks + v] = (uint32_t)w->npool + 1;
	w->npool += 2 + (uint64_t)record[0] * length;
}

/* The paths of (@v, @u), each back over the other directions. */
static void find_back(struct plan_ring_paths *w, uint32_t u, uint32_t v)
{
	uint32_t *record, i, k, turnovers;
	struct plan_ring_path path;
	uint64_t size;

	do {	/* until there is room behind what is walked back */
		turnovers = w->turnovers;
		path = plan_ring_paths_of(w, v, u);
		size = 2 + (uint64_t)path.count * path.length;
		record = w->failed ? NULL : room_for(w, size);
	} while (record && w->turnovers != turnovers);
	if (!record)
		return;
	path = plan_ring_paths_of(w, v, u);	/* it may have moved */
	record[0] = path.count;
	record[1] = path.length;
	for (i = 0; i < path.count; i++)
		for (k = 0; k < path.length; k++)
			record[2 + (i + 1) * path.length - 1 - k] =
				w->g->edges[path.edges[i * path.length + k]].twin;
	w->index[(size_t)u * w->g->nranks + v] = (uint32_t)w->npool + 1;
	w->npool += size;
}

struct plan_ring_path plan_ring_paths_of(struct plan_ring_paths *w, uint32_t u,
					 uint32_t v)
{
	uint32_t *at = &w->index[(size_t)u * w->g->nranks + v], *record;

	if (!*at && u > v && w->symmetric)
		find_back(w, u, v);
	else if (!*at)
		find(w, u, v);
	if (!*at)
		return (struct plan_ring_path){ 0 };
	record = w->pool + (*at - 1);
	return (struct plan_ring_path){ record[0], record[1], record + 2 };
}

/*
 * Only if the first rank lacks some: where all pairs have routes, there is
 * nothing to be guided by.
 */
int plan_ring_paths_peers(struct plan_ring_paths *w)
{
	const struct plan_graph *g = w->g;
	uint32_t u, v, *more;
	size_t n = 0, room = 0;

	w->peer_first = calloc((size_t)g->nranks + 1, sizeof(*w->peer_first));
	if (!w->peer_first)
		return -ENOMEM;
	for (u = 0; u < g->nranks; u++) {
		measure(w, u);
		if (n + g->nranks > room) {
			room = 2 * room + g->nranks;
			more = realloc(w->peers, room * sizeof(*more));
			if (!more)
				return -ENOMEM;
			w->peers = more;
		}
		for (v = 0; v < g->nranks; v++)
			if (v != u && w->dist[g->gpus[v]] != PLAN_NONE)
				w->peers[n++] = v;
		w->peer_first[u + 1] = (uint32_t)n;
		if (!u && n == g->nranks - 1)
			return 0;
	}
	w->sparse = true;
	return 0;
}
