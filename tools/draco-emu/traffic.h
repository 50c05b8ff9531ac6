/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What travels over each link of the fabric: the route of a transfer, and its
 * bytes, which are counted on every link of it, by direction. Relaxed atomics,
 * no lock. Called by everything that moves payload, and read by GET_LINKS.
 */
#ifndef EMU_TRAFFIC_H
#define EMU_TRAFFIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <draco/regs.h>

struct fabric;
struct fabric_ep;
struct link;
struct port;
struct topology;

/* One direction of a link. */
struct oneway {
	_Atomic uint64_t bytes;		/* that have been counted */
	double rate;			/* bytes per nanosecond; 0: any */
	double free_ns;			/* throttle.c */
};

/* A link, as seen from the switch port or the endpoint. */
struct traffic {
	struct oneway out, in;
};

/* Memory at one end of a transfer. */
struct place {
	struct port *port;	/* whose bus addresses lead to it */
	struct port *at;	/* of an endpoint: the port that it is bound to,
				 * @port or another one of the host */
	struct fabric_ep *ep;	/* NULL: memory of @port's host */
};

/*
 * Is @ep, an index in the topology, on the second switch of a cascade? Half of
 * the GPUs behind an uplink are.
 */
bool traffic_on_second(const struct topology *t, unsigned int ep);

/*
 * Calls @visit for each link of the route that there is now, in its direction.
 * @isl: the port that sends, of a link between switches, else NULL.
 */
typedef void (*traffic_visit)(struct fabric *f, struct oneway *way,
			      struct link *isl, void *arg);
void traffic_route(struct fabric *f, const struct place *from,
		   const struct place *to, traffic_visit visit, void *arg);

/* Payload that went from @from to @to: on the route that there is now. */
void traffic_count(struct fabric *f, const struct place *from,
		   const struct place *to, uint64_t bytes);

/*
 * Copy up to @max links from id @first on; *next: go on there, or 0. @mesh:
 * those inside meshes, too, with ids after those of objects.
 */
size_t traffic_links(struct fabric *f, uint32_t first, bool mesh,
		     struct draco_link *out, size_t max, uint32_t *next);

#endif
