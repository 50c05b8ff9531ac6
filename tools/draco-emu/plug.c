// SPDX-License-Identifier: GPL-2.0-only
/*
 * Plugs: what is in slots, and what has been given up but is still there. Made
 * by binding.c; loop thread.
 */
#include <stdlib.h>
#include <string.h>

#include "binding.h"
#include "mesh.h"
#include "port.h"

struct plug *plug_new(struct binding *b)
{
	struct bindings *all = b->fabric->bindings;
	struct plug *plug = calloc(1, sizeof(*plug));

	if (!plug)
		return NULL;
	plug->ep = &b->fabric->eps[b->ep];
	plug->binding = b;
	plug->port = b->port;
	plug->slot = b->slot;
	plug->linked = true;
	plug->next = all->plugs;
	plug->link = &all->plugs;
	if (plug->next)
		plug->next->link = &plug->next;
	all->plugs = plug;
	return plug;
}

void plug_free(struct plug *plug)
{
	*plug->link = plug->next;
	if (plug->next)
		plug->next->link = plug->link;
	event_met(plug->port, plug->token);
	free(plug);
}

void plug_describe(struct binding *b, struct endpoint_desc *d)
{
	const struct topo_endpoint *te = &b->fabric->topo->endpoints[b->ep];
	struct draco_object o;

	fabric_object(b->fabric, fabric_ep_id(b->fabric, b->ep), &o);
	d->name = te->name;
	d->kind = te->class;
	d->vendor = o.pci_vendor;
	d->device = o.pci_device;
	d->size = te->size;
	d->link_width = o.width;
	d->link = &b->fabric->eps[b->ep].answers;
	d->seat = mesh_seat(b->fabric, b->ep);
	d->host = b->port->host;
}
