// SPDX-License-Identifier: LGPL-2.1-or-later
/* Random graphs, the same for the same seed. Called by tests. */
#include <stdlib.h>

#include "random.h"

uint64_t random_next(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

uint32_t random_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)(random_next(state) % n);
}

/* Often small and alike, as real ones are; sometimes anything. */
static uint64_t capacity(uint64_t *state)
{
	static const uint64_t usual[] = { 1, 2, 3, 27, 48, 27000, 48000 };

	if (random_below(state, 4))
		return usual[random_below(state, 7)];
	return 1 + random_below(state, 1000);
}

static void nodes(struct plan_graph *g, uint64_t *state, uint32_t gpus,
		  uint32_t switches, uint32_t boxes)
{
	char name[32];
	uint32_t i;

	/* Switches first, last or between: numbers must not matter. */
	bool first = random_below(state, 2);

	for (i = 0; i < gpus + switches; i++) {
		bool sw = first ? i < switches : i >= gpus;
		uint32_t k = sw ? i - (first ? 0 : gpus) :
				  i - (first ? switches : 0);

		snprintf(name, sizeof(name), "%s%u", sw ? "s" : "g", k);
		plan_graph_add_node(g, sw ? PLAN_PCI_SWITCH : PLAN_GPU, name,
				    sw ? PLAN_NONE : k % boxes, NULL);
	}
}

static uint32_t any(const struct plan_graph *g, uint64_t *state, uint32_t not)
{
	uint32_t n;

	do
		n = random_below(state, g->nnodes);
	while (n == not);
	return n;
}

/* A tree over all nodes, and as many links again. */
static void symmetric(struct plan_graph *g, uint64_t *state)
{
	uint32_t i, n = g->nnodes;

	for (i = 1; i < n; i++)
		plan_graph_add_link(g, i, random_below(state, i),
				    capacity(state), 100, PLAN_OTHER, NULL);
	for (i = random_below(state, 2 * n); i; i--) {
		uint32_t a = random_below(state, n);

		plan_graph_add_link(g, a, any(g, state, a), capacity(state),
				    100, PLAN_OTHER, NULL);
	}
}

/* One way around: through every node, or through some. */
static void circle(struct plan_graph *g, uint64_t *state, uint32_t length)
{
	uint32_t *way = malloc(g->nnodes * sizeof(*way)), i;
	uint64_t c = capacity(state);

	for (i = 0; i < g->nnodes; i++)
		way[i] = i;
	for (i = 0; i < length; i++) {
		uint32_t k = i + random_below(state, g->nnodes - i), t = way[i];

		way[i] = way[k];
		way[k] = t;
	}
	for (i = 0; i < length; i++)
		plan_graph_add_edge(g, way[i], way[(i + 1) % length], c, 100,
				    PLAN_OTHER, NULL);
	free(way);
}

/* Circles keep switches balanced; arcs between GPUs need not be. */
static void asymmetric(struct plan_graph *g, uint64_t *state)
{
	uint32_t i;

	circle(g, state, g->nnodes);
	for (i = random_below(state, g->nnodes); i && g->nnodes > 2; i--)
		circle(g, state, 2 + random_below(state, g->nnodes - 2));
	for (i = random_below(state, 2 * g->nranks); i; i--) {
		uint32_t a = g->gpus[random_below(state, g->nranks)];
		uint32_t b = g->gpus[random_below(state, g->nranks)];

		if (a != b)
			plan_graph_add_edge(g, a, b, capacity(state), 100,
					    PLAN_OTHER, NULL);
	}
}

/* GPUs of a box in a mesh, each behind a switch; switches in a tree. */
static void boxes(struct plan_graph *g, uint64_t *state, uint32_t switches)
{
	uint64_t mesh = capacity(state), up = capacity(state);
	uint32_t i, k, *sw = malloc((switches + 1) * sizeof(*sw)), n = 0;

	for (i = 0; i < g->nnodes; i++)
		if (g->nodes[i].kind != PLAN_GPU)
			sw[n++] = i;
	for (i = 1; i < n; i++)
		plan_graph_add_link(g, sw[i], sw[random_below(state, i)],
				    capacity(state), 100, PLAN_CABLE, NULL);
	for (i = 0; i < g->nranks; i++) {
		plan_graph_add_link(g, g->gpus[i], sw[i % n], up, 100,
				    PLAN_PCIE, NULL);
		for (k = 0; k < i; k++)
			if (g->nodes[g->gpus[i]].box ==
			    g->nodes[g->gpus[k]].box)
				plan_graph_add_link(g, g->gpus[i], g->gpus[k],
						    mesh, 100, PLAN_XGMI, NULL);
	}
	free(sw);
}

struct plan_graph *random_graph(uint64_t seed, uint32_t gpus,
				uint32_t switches)
{
	struct plan_graph *g = plan_graph_new("random");
	uint64_t state = seed;
	uint32_t n = 2 + random_below(&state, gpus - 1);
	uint32_t s = random_below(&state, switches + 1);
	uint32_t kind = (uint32_t)(seed % 3);

	if (kind == 2 && !s)
		s = 1;
	nodes(g, &state, n, s, kind == 2 ? 1 + random_below(&state, 3) : n);
	if (kind == 0)
		symmetric(g, &state);
	else if (kind == 1)
		asymmetric(g, &state);
	else
		boxes(g, &state, s);
	return g;
}
