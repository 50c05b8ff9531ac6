// SPDX-License-Identifier: GPL-2.0-only
/*
 * Shortest paths over inter-switch links: which link a switch takes towards
 * each other switch. Called by fabric.c when a link changes.
 */
#include "route.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int route_init(struct fabric *f)
{
	size_t n = (size_t)f->topo->nswitches * f->topo->nswitches;

	f->route = calloc(n, sizeof(*f->route));
	if (!f->route)
		return -ENOMEM;
	route_compute(f);
	return 0;
}

static bool usable(struct fabric *f, const struct link *l)
{
	return l->kind == DRACO_PORT_ISL && atomic_load(&l->up) &&
	       atomic_load(&f->links[l->other].up);
}

/*
 * Breadth first from @to: the first link found at a switch is on a shortest
 * path from there. Lower port numbers win among equals.
 */
static void towards(struct fabric *f, unsigned int to, uint32_t *next)
{
	unsigned int queue[TOPO_MAX_SWITCHES], head = 0, tail = 0;

	memset(next, 0xff, f->topo->nswitches * sizeof(*next));
	next[to] = ROUTE_HERE;
	queue[tail++] = to;
	while (head < tail) {
		unsigned int sw = queue[head++];
		unsigned int n = f->topo->switches[sw].nports;

		for (unsigned int i = 0; i < n; i++) {
			struct link *l = &f->links[f->first_link[sw] + i];
			unsigned int from;

			if (!usable(f, l))
				continue;
			from = f->links[l->other].sw;
			if (next[from] != ROUTE_NONE)
				continue;
			next[from] = l->other;
			queue[tail++] = from;
		}
	}
}

void route_compute(struct fabric *f)
{
	unsigned int n = f->topo->nswitches;
	uint32_t next[TOPO_MAX_SWITCHES];

	for (unsigned int to = 0; to < n; to++) {
		towards(f, to, next);
		for (unsigned int from = 0; from < n; from++)
			atomic_store_explicit(&f->route[from * n + to],
					      next[from],
					      memory_order_relaxed);
	}
}
