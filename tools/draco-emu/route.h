/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Inside the fabric model: shortest paths over inter-switch links. fabric.lock
 * is held by whoever calls; the data path reads the result as atomics.
 */
#ifndef EMU_ROUTE_H
#define EMU_ROUTE_H

#include "fabric.h"

#define ROUTE_NONE	UINT32_MAX	/* no path */
#define ROUTE_HERE	(UINT32_MAX - 1) /* the same switch */

int route_init(struct fabric *f);
void route_compute(struct fabric *f);

static inline uint32_t route_next(struct fabric *f, unsigned int from,
				  unsigned int to)
{
	return atomic_load_explicit(&f->route[from * f->topo->nswitches + to],
				    memory_order_relaxed);
}

#endif
