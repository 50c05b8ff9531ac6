/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What travels over each link of the fabric: a transfer is counted on every
 * link of its route, by direction. Relaxed atomics, no lock. Called by
 * everything that moves payload, and read by GET_LINKS.
 */
#ifndef EMU_TRAFFIC_H
#define EMU_TRAFFIC_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <draco/regs.h>

struct fabric;
struct fabric_ep;
struct port;

/* Bytes over a link, as seen from the switch port or the endpoint. */
struct traffic {
	_Atomic uint64_t out, in;
};

/* Memory at one end of a transfer. */
struct place {
	struct port *port;	/* whose bus addresses lead to it */
	struct port *at;	/* of an endpoint: the port that it is bound to,
				 * @port or another one of the host */
	struct fabric_ep *ep;	/* NULL: memory of @port's host */
};

/* Payload that went from @from to @to: on the route that there is now. */
void traffic_count(struct fabric *f, const struct place *from,
		   const struct place *to, uint64_t bytes);

/* Copy up to @max links from object id @first on; *next: go on there, or 0. */
size_t traffic_links(struct fabric *f, uint32_t first, struct draco_link *out,
		     size_t max, uint32_t *next);

#endif
