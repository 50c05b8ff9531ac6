// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which ports see each other. A host may have several that do not: where every
 * switch has one of each host and no link joins the switches, or where there is
 * a bridge for each pair of hosts. Numbers of peers repeat from bridge to
 * bridge, so a port is recognized by its name, too. Called by bootstrap/ and
 * link/.
 */
#include <string.h>

#include "coll/comm.h"

#define PORTS	16u	/* of this host that are looked at */

/* ---- one port and another ---------------------------------------------- */

static uint64_t name_hash(const char *fabric, const char *name)
{
	return fxi_hash(name, strlen(name),
			fxi_hash(fabric, strlen(fabric), 3));
}

/* It may have been reset since it was opened. */
void fxi_port_identify(const struct fabrex_port *port, struct port_id *id)
{
	struct fabrex_port_attr now = port->attr;

	if (port->ops->query(port->transport, &now))
		now = port->attr;
	id->name = name_hash(now.fabric, now.name);
	id->peer = now.peer;
	id->generation = now.generation;
}

enum port_sight fxi_port_sight(const struct fabrex_port *port,
			       const struct port_id *id, bool near)
{
	const struct fabrex_port_attr *own = &port->attr;
	struct fabrex_peer found = { 0 };

	if (id->peer >= own->max_peers)
		return SIGHT_NONE;
	if (id->peer == own->peer)
		return near && id->name == name_hash(own->fabric, own->name) ?
		       SIGHT_SAME : SIGHT_OTHER;
	if (port->ops->peer(port->transport, NULL, id->peer, false, &found))
		return SIGHT_NONE;
	if (id->name != name_hash(own->fabric, found.name))
		return found.up ? SIGHT_OTHER : SIGHT_NONE;
	if (!found.up)
		return SIGHT_DOWN;
	return id->generation == found.generation ? SIGHT_SAME : SIGHT_NAME;
}

bool fxi_port_is_alone(const struct fabrex_port *port)
{
	struct fabrex_peer found = { 0 };
	uint32_t from = 0;

	while (!port->ops->peer(port->transport, NULL, from, true, &found)) {
		if (found.up && found.peer != port->attr.peer)
			return false;
		from = found.peer + 1;
	}
	return true;
}

/* ---- ports of this host ------------------------------------------------ */

/* Is the other port this one, or one that it reaches now? */
static bool sees_port(const struct fabrex_port *port,
		      const struct fabrex_local_port *other)
{
	struct fabrex_peer found = { 0 };

	if (other->peer == port->attr.peer)
		return !strcmp(other->name, port->attr.name);
	return !port->ops->peer(port->transport, NULL, other->peer, false,
				&found) &&
	       found.up && !strcmp(other->name, found.name);
}

static bool is_unseen(const struct fabrex_port *port,
		      const struct fabrex_local_port *other)
{
	return other->alive && other->link_up && other->may_open &&
	       !strcmp(other->fabric, port->attr.fabric) &&
	       !sees_port(port, other);
}

static bool is_seen(struct fabrex_port *const *ports, uint32_t n,
		    const struct fabrex_local_port *other)
{
	while (n)
		if (sees_port(ports[--n], other))
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
		    !is_seen(opened, count, &ports[i]) &&
		    !fabrex_open(ports[i].device, &opened[count]))
			count++;
	return count;
}
