/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A topology file on its way to become a graph. Inside lib/plan only: binding.c
 * finds out who belongs to whom, wiring.c makes the nodes and links.
 */
#ifndef LIB_PLAN_INPUT_WIRING_H
#define LIB_PLAN_INPUT_WIRING_H

#include "plan/read.h"
#include "topology/topology.h"

/* One of a host's ports: the partition behind it. */
struct port {
	unsigned int host, nth;
	unsigned int sw;
	unsigned int gpus;	/* bound to it */
};

struct wiring {
	const struct topology *t;
	struct plan_graph *g;
	struct plan_error *e;
	const char *only;	/* host, or NULL */
	unsigned int nsw;
	unsigned int nports;
	struct port *ports;
	unsigned int *bound;	/* port of each endpoint; TOPO_NONE */
	uint32_t *gpus;		/* node of each endpoint; PLAN_NONE */
	bool *hosts;		/* is the host planned for */
	uint32_t *root_complexes;	/* node of each host */
	/* Tables of ports x switches: the path from a switch to the port. */
	unsigned int *next;	/* switch after this one; itself at the end */
	unsigned int *hops;	/* TOPO_NONE: there is no path */
	uint32_t *partitions;	/* node of the port's partition there */
	/* Tables of switches x switches: links between them, taken together. */
	uint64_t *trunks;	/* MB/s */
	unsigned int *users;	/* partitions, and the NTBs, that share it */
	uint32_t *ntbs;		/* node of each switch */
};

static inline uint64_t *trunk(const struct wiring *w, unsigned int a,
			      unsigned int b)
{
	return &w->trunks[a * w->nsw + b];
}

static inline bool is_gpu(const struct wiring *w, unsigned int endpoint)
{
	return w->t->endpoints[endpoint].class == TOPO_GPU;
}

static inline unsigned int uplink_switch(const struct wiring *w,
					 unsigned int endpoint)
{
	const struct topo_endpoint *ep = &w->t->endpoints[endpoint];

	return w->t->appliances[ep->appliance].uplinks[ep->uplink].sw;
}

/* ---- binding.c ---------------------------------------------------------- */

/*
 * Fill in bound, ports' gpus, hosts, next, hops from trunks and the file's
 * bindings. -EINVAL: there is no such host, or none of its GPUs is bound.
 */
int wiring_bind(struct wiring *w);

#endif
