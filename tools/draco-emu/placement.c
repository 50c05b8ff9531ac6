// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bindings that are made without asking a host: those of switches that bind
 * ports, with all that is behind them, and those from before the emulator was
 * started. Beside binding.c; loop thread.
 */
#include <errno.h>

#include "binding.h"
#include "port.h"

/* Behind one port of a switch that binds ports. */
static bool together(const struct binding *a, const struct binding *b)
{
	const struct fabric *f = a->fabric;
	const struct link *l = f->eps[a->ep].uplink;

	return a == b || (l == f->eps[b->ep].uplink &&
			  f->topo->switches[l->sw].model == TOPO_PFX);
}

unsigned int binding_companions(struct binding *b, struct binding **out)
{
	struct bindings *all = b->fabric->bindings;
	unsigned int n = 0;

	for (unsigned int i = 0; i < all->n && n < SLOT_FUNCTIONS; i++) {
		struct binding *o = &all->list[i];

		if (o->state != DRACO_EP_GONE && together(o, b))
			out[n++] = o;
	}
	return n;
}

/* Bound to this slot, and not in it yet. */
static void attach_later(struct binding *const *set, unsigned int n,
			 struct port *p, unsigned int slot)
{
	for (unsigned int i = 0; i < n; i++) {
		set[i]->port = p;
		set[i]->slot = slot;
		binding_set_state(set[i], DRACO_EP_ATTACHING, 0);
	}
}

int binding_place(struct fabric *f, unsigned int ep, struct port *p,
		  unsigned int slot)
{
	struct binding *set[SLOT_FUNCTIONS];
	unsigned int n = binding_companions(&f->bindings->list[ep], set);

	if (!n)
		return -ENODEV;
	if (binding_taken_slots(f, p) >> slot & 1)
		return -EBUSY;
	for (unsigned int i = 0; i < n; i++) {
		if (set[i]->port)
			return -EBUSY;
	}
	if (binding_can_plug(set[0], p))
		return binding_plug_in(set[0], p, slot, true);
	attach_later(set, n, p, slot);
	return 0;
}

/* Those that have been inserted since are nobody's. */
static unsigned int keep_bound(struct binding **set, unsigned int n)
{
	unsigned int bound = 0;

	for (unsigned int i = 0; i < n; i++) {
		if (set[i]->port)
			set[bound++] = set[i];
	}
	return bound;
}

int binding_take(struct fabric *f, unsigned int ep)
{
	struct binding *set[SLOT_FUNCTIONS];
	unsigned int n = binding_companions(&f->bindings->list[ep], set);

	n = keep_bound(set, n);
	if (!n)
		return -EBUSY;
	for (unsigned int i = 0; i < n; i++) {
		if (set[i]->state == DRACO_EP_BINDING)
			return -EBUSY;
	}
	for (unsigned int i = 0; i < n; i++)
		binding_take_out(set[i]);
	return 0;
}

int binding_restore(struct fabric *f, unsigned int ep, struct port *p,
		    unsigned int slot)
{
	struct binding *b = &f->bindings->list[ep];
	unsigned int slots = f->topo->hosts[p->host].slots;
	struct binding *set[SLOT_FUNCTIONS];
	int picked;

	/* It may have come with another one. */
	if (b->port)
		return b->port == p ? 0 : -EEXIST;
	if (slot < TOPO_FIRST_SLOT || slot >= TOPO_FIRST_SLOT + slots ||
	    binding_taken_slots(f, p) >> slot & 1) {
		picked = binding_pick_slot(f, p);
		if (picked < 0)
			return picked;
		slot = picked;
	}
	attach_later(set, binding_companions(b, set), p, slot);
	return 0;
}
