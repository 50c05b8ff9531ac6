// SPDX-License-Identifier: GPL-2.0-only
/*
 * Plugs: what is in slots, and what has been given up but is still there. Made
 * for binding.c; loop thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binding.h"
#include "mesh.h"
#include "port.h"

static struct plug *new_plug(struct binding *b, struct port *p,
			     unsigned int slot)
{
	struct bindings *all = b->fabric->bindings;
	struct plug *plug = calloc(1, sizeof(*plug));

	if (!plug)
		return NULL;
	plug->ep = &b->fabric->eps[b->ep];
	plug->binding = b;
	plug->port = p;
	plug->slot = slot;
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

static void describe(const struct binding *b, const struct port *p,
		     struct endpoint_desc *d)
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
	d->host = p->host;
}

static void free_all(struct slots_function *list, unsigned int n)
{
	while (n)
		plug_free(list[--n].cookie);
}

int plug_insert(struct binding *const *set, unsigned int n, struct port *p,
		unsigned int slot)
{
	struct slots_function list[SLOT_FUNCTIONS] = { 0 };
	unsigned int i;
	int err;

	for (i = 0; i < n; i++) {
		list[i].cookie = new_plug(set[i], p, slot);
		if (!list[i].cookie) {
			free_all(list, i);
			return -ENOMEM;
		}
		describe(set[i], p, &list[i].ep);
	}
	err = slots_plug(p->slots, slot, list, n);
	if (err)
		free_all(list, n);
	for (i = 0; i < n && !err; i++)
		set[i]->plug = list[i].cookie;
	return err;
}
