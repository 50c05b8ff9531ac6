// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Ports of a host that do not see each other, as where every switch has one of
 * each host and no link joins the switches. Called by bootstrap/ and link/.
 */
#include <string.h>

#include "coll/comm.h"

#define PORTS	16u	/* of this host that are looked at */

bool fxi_sees_peer(const struct fabrex_port *port, uint32_t peer)
{
	struct fabrex_peer found = { 0 };

	if (peer == port->attr.peer)
		return true;
	return !port->ops->peer(port->transport, NULL, peer, false, &found) &&
	       found.up;
}

static bool is_unseen(const struct fabrex_port *port,
		      const struct fabrex_local_port *other)
{
	return other->alive && other->link_up && other->may_open &&
	       !strcmp(other->fabric, port->attr.fabric) &&
	       !fxi_sees_peer(port, other->peer);
}

static bool is_seen(struct fabrex_port *const *ports, uint32_t n,
		    uint32_t peer)
{
	while (n)
		if (fxi_sees_peer(ports[--n], peer))
			return true;
	return false;
}

uint32_t fxi_unseen_open(const struct fabrex_port *port,
			 struct fabrex_port **opened, uint32_t n)
{
	struct fabrex_local_port ports[PORTS];
	int i, all = fabrex_port_list(NULL, ports, PORTS, sizeof(*ports));
	uint32_t count = 0;

	if (all > (int)PORTS)
		all = PORTS;
	for (i = 0; i < all && count < n; i++)
		if (is_unseen(port, &ports[i]) &&
		    !is_seen(opened, count, ports[i].peer) &&
		    !fabrex_open(ports[i].device, &opened[count]))
			count++;
	return count;
}
