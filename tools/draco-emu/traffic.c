// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counts the bytes of transfers on the links of their routes. Called by copy.c,
 * op.c, window.c and admin_topology.c.
 *
 * Memory of a host is reached over the link of its port; memory of an endpoint
 * over the endpoint's link, the uplink of its appliance, the inter-switch links
 * to the switch of the port that it is bound to and, if its partition is
 * another one of the same host, over the links of both ports, up to the root
 * complex and down again. Two endpoints of one partition reach each other where
 * their ways to the host meet: in the appliance if they are behind the same
 * uplink.
 */
#include "traffic.h"

#include <string.h>

#include "fabric.h"
#include "port.h"
#include "route.h"

_Static_assert(sizeof(struct draco_link) == 64, "docs/draco.md");

static void add(_Atomic uint64_t *v, uint64_t bytes)
{
	atomic_fetch_add_explicit(v, bytes, memory_order_relaxed);
}

static uint64_t get(_Atomic uint64_t *v)
{
	return atomic_load_explicit(v, memory_order_relaxed);
}

/* ---- Routes ---- */

/* The switch after @sw on the way to @to; @to itself if there is no way. */
static unsigned int next_switch(struct fabric *f, unsigned int sw,
				unsigned int to)
{
	uint32_t next = route_next(f, sw, to);

	if (next == ROUTE_NONE || next == ROUTE_HERE)
		return to;
	return f->links[f->links[next].other].sw;
}

static void count_isls(struct fabric *f, unsigned int from, unsigned int to,
		       uint64_t bytes)
{
	for (unsigned int hops = 0; from != to && hops < TOPO_MAX_SWITCHES;
	     hops++) {
		uint32_t next = route_next(f, from, to);
		struct link *l, *other;

		if (next == ROUTE_NONE || next == ROUTE_HERE)
			return;
		l = &f->links[next];
		other = &f->links[l->other];
		add(&l->traffic.out, bytes);
		count_add(&l->counters, CNT_TX_BYTES, bytes);
		count_add(&other->counters, CNT_RX_BYTES, bytes);
		from = other->sw;
	}
}

/* Does the way from @from to @to lead over @sw? */
static bool leads_over(struct fabric *f, unsigned int from, unsigned int to,
		       unsigned int sw)
{
	for (unsigned int hops = 0; from != sw && from != to &&
	     hops < TOPO_MAX_SWITCHES; hops++)
		from = next_switch(f, from, to);
	return from == sw;
}

/* Where the ways from @a and @b to @top meet. */
static unsigned int meeting(struct fabric *f, unsigned int a, unsigned int b,
			    unsigned int top)
{
	for (unsigned int hops = 0; a != top && hops < TOPO_MAX_SWITCHES &&
	     !leads_over(f, b, top, a); hops++)
		a = next_switch(f, a, top);
	return a;
}

/* Between an endpoint and the switch at its uplink. */
static void count_ep_link(struct fabric_ep *ep, bool up, uint64_t bytes)
{
	add(up ? &ep->traffic.out : &ep->traffic.in, bytes);
	add(up ? &ep->uplink->traffic.in : &ep->uplink->traffic.out, bytes);
}

/* From memory to the switch of the port that reaches it. */
static void count_up(struct fabric *f, const struct place *p, uint64_t bytes)
{
	if (p->ep) {
		count_ep_link(p->ep, true, bytes);
		count_isls(f, p->ep->uplink->sw, p->at->link->sw, bytes);
		if (p->at == p->port)
			return;
		add(&p->at->link->traffic.out, bytes);
	}
	add(&p->port->link->traffic.in, bytes);
}

static void count_down(struct fabric *f, const struct place *p, uint64_t bytes)
{
	if (!p->ep) {
		add(&p->port->link->traffic.out, bytes);
		return;
	}
	if (p->at != p->port) {
		add(&p->port->link->traffic.out, bytes);
		add(&p->at->link->traffic.in, bytes);
	}
	count_isls(f, p->at->link->sw, p->ep->uplink->sw, bytes);
	count_ep_link(p->ep, false, bytes);
}

/* Two endpoints of @port's partition. */
static void count_peers(struct fabric *f, const struct port *port,
			struct fabric_ep *from, struct fabric_ep *to,
			uint64_t bytes)
{
	unsigned int a = from->uplink->sw, b = to->uplink->sw, sw;

	if (from->uplink == to->uplink) {
		add(&from->traffic.out, bytes);
		add(&to->traffic.in, bytes);
		return;
	}
	count_ep_link(from, true, bytes);
	sw = meeting(f, a, b, port->link->sw);
	count_isls(f, a, sw, bytes);
	count_isls(f, sw, b, bytes);
	count_ep_link(to, false, bytes);
}

static bool in_own_partition(const struct place *p)
{
	return p->ep && p->at == p->port;
}

void traffic_count(struct fabric *f, const struct place *from,
		   const struct place *to, uint64_t bytes)
{
	if (!bytes)
		return;
	if (from->port == to->port && in_own_partition(from) &&
	    in_own_partition(to)) {
		count_peers(f, from->port, from->ep, to->ep, bytes);
		return;
	}
	count_up(f, from, bytes);
	count_isls(f, from->port->link->sw, to->port->link->sw, bytes);
	count_down(f, to, bytes);
}

/* ---- Reading ---- */

/* The one end of a link under which it is listed; its ids never change. */
static bool describe_port(struct fabric *f, struct link *l,
			  struct draco_link *out)
{
	struct link *other = NULL;

	if (l->kind == DRACO_PORT_UNUSED)
		return false;
	if (l->kind == DRACO_PORT_ISL) {
		other = &f->links[l->other];
		if (other->id < l->id)
			return false;
	}
	out->a = l->id;
	out->b = f->objects[l->id - 1].link;
	out->a_to_b = get(&l->traffic.out);
	out->b_to_a = get(other ? &other->traffic.out : &l->traffic.in);
	return true;
}

static bool describe_link(struct fabric *f, uint32_t id, struct draco_link *out)
{
	struct link *l = fabric_link_by_id(f, id);
	unsigned int ep = fabric_ep_by_id(f, id);

	memset(out, 0, sizeof(*out));
	if (l)
		return describe_port(f, l, out);
	if (ep == TOPO_NONE)
		return false;
	out->a = id;
	out->b = f->objects[id - 1].parent;
	out->a_to_b = get(&f->eps[ep].traffic.out);
	out->b_to_a = get(&f->eps[ep].traffic.in);
	return true;
}

size_t traffic_links(struct fabric *f, uint32_t first, struct draco_link *out,
		     size_t max, uint32_t *next)
{
	uint32_t id = first ? first : 1;
	struct draco_link link;
	size_t n = 0;

	for (; id <= f->nobjects; id++) {
		if (!describe_link(f, id, &link))
			continue;
		if (n == max)
			break;
		out[n++] = link;
	}
	*next = id <= f->nobjects ? id : 0;
	return n;
}
