// SPDX-License-Identifier: GPL-2.0-only
/*
 * Routes of transfers, whose bytes are counted on each link. Called by copy.c,
 * op.c, window.c, throttle.c and admin_topology.c.
 *
 * Memory of a host is reached over the link of its port; memory of an endpoint
 * over the endpoint's link, the uplink of its appliance, the inter-switch links
 * to the switch of the port that it is bound to and, if its partition is
 * another one of the same host, over the links of both ports, up to the root
 * complex and down again. Two endpoints of one partition reach each other where
 * their ways to the host meet: in the appliance if they are behind the same
 * uplink.
 *
 * Inside a cascade one more link leads to its second switch, and inside a host
 * one from each port to the root complex. They are part of the route and carry
 * bytes, but nobody can list them.
 */
#include "traffic.h"

#include <string.h>

#include "fabric.h"
#include "mesh.h"
#include "port.h"
#include "route.h"

_Static_assert(sizeof(struct draco_link) == 64, "docs/draco.md");

static uint64_t get(struct oneway *w)
{
	return atomic_load_explicit(&w->bytes, memory_order_relaxed);
}

/* ---- Routes ---- */

bool traffic_on_second(const struct topology *t, unsigned int ep)
{
	const struct topo_endpoint *te = &t->endpoints[ep], *other;
	const struct topo_appliance *ta = &t->appliances[te->appliance];
	unsigned int before = 0, all = 0;

	for (unsigned int i = 0; i < ta->nendpoints; i++) {
		other = &t->endpoints[ta->first + i];
		if (other->class != TOPO_GPU || other->uplink != te->uplink)
			continue;
		before += other < te;
		all++;
	}
	return ta->kind == TOPO_CASCADE && te->class == TOPO_GPU &&
	       before >= (all + 1) / 2;
}

/* Someone on the way. */
struct walk {
	struct fabric *f;
	traffic_visit visit;
	void *arg;
};

static void over(const struct walk *w, struct oneway *way)
{
	w->visit(w->f, way, NULL, w->arg);
}

/* The switch after @sw on the way to @to; @to itself if there is no way. */
static unsigned int next_switch(struct fabric *f, unsigned int sw,
				unsigned int to)
{
	uint32_t next = route_next(f, sw, to);

	if (next == ROUTE_NONE || next == ROUTE_HERE)
		return to;
	return f->links[f->links[next].other].sw;
}

static void walk_isls(const struct walk *w, unsigned int from, unsigned int to)
{
	for (unsigned int hops = 0; from != to && hops < TOPO_MAX_SWITCHES;
	     hops++) {
		uint32_t next = route_next(w->f, from, to);
		struct link *l;

		if (next == ROUTE_NONE || next == ROUTE_HERE)
			return;
		l = &w->f->links[next];
		w->visit(w->f, &l->traffic.out, l, w->arg);
		from = w->f->links[l->other].sw;
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
static void walk_ep_up(const struct walk *w, struct fabric_ep *ep)
{
	over(w, &ep->traffic.out);
	if (ep->second)
		over(w, &ep->uplink->inner.in);
	over(w, &ep->uplink->traffic.in);
}

static void walk_ep_down(const struct walk *w, struct fabric_ep *ep)
{
	over(w, &ep->uplink->traffic.out);
	if (ep->second)
		over(w, &ep->uplink->inner.out);
	over(w, &ep->traffic.in);
}

/* Up to the root complex at one port, and down at another one. */
static void walk_root(const struct walk *w, struct link *up, struct link *down)
{
	over(w, &up->traffic.out);
	over(w, &up->inner.out);
	over(w, &down->inner.in);
	over(w, &down->traffic.in);
}

/* From memory to the switch of the port that reaches it. */
static void walk_up(const struct walk *w, const struct place *p)
{
	if (!p->ep) {
		over(w, &p->port->link->traffic.in);
		return;
	}
	walk_ep_up(w, p->ep);
	walk_isls(w, p->ep->uplink->sw, p->at->link->sw);
	if (p->at != p->port)
		walk_root(w, p->at->link, p->port->link);
}

static void walk_down(const struct walk *w, const struct place *p)
{
	if (!p->ep) {
		over(w, &p->port->link->traffic.out);
		return;
	}
	if (p->at != p->port)
		walk_root(w, p->port->link, p->at->link);
	walk_isls(w, p->at->link->sw, p->ep->uplink->sw);
	walk_ep_down(w, p->ep);
}

/* Two endpoints of @port's partition. */
static void walk_peers(const struct walk *w, const struct port *port,
		       struct fabric_ep *from, struct fabric_ep *to)
{
	unsigned int a = from->uplink->sw, b = to->uplink->sw, sw;

	if (from->uplink == to->uplink) {
		over(w, &from->traffic.out);
		if (from->second != to->second)
			over(w, from->second ? &from->uplink->inner.in :
					       &from->uplink->inner.out);
		over(w, &to->traffic.in);
		return;
	}
	walk_ep_up(w, from);
	sw = meeting(w->f, a, b, port->link->sw);
	walk_isls(w, a, sw);
	walk_isls(w, sw, b);
	walk_ep_down(w, to);
}

static bool in_own_partition(const struct place *p)
{
	return p->ep && p->at == p->port;
}

void traffic_route(struct fabric *f, const struct place *from,
		   const struct place *to, traffic_visit visit, void *arg)
{
	struct walk w = { .f = f, .visit = visit, .arg = arg };

	if (from->port == to->port && in_own_partition(from) &&
	    in_own_partition(to)) {
		walk_peers(&w, from->port, from->ep, to->ep);
		return;
	}
	walk_up(&w, from);
	walk_isls(&w, from->port->link->sw, to->port->link->sw);
	walk_down(&w, to);
}

/* ---- Counting ---- */

static void count_way(struct fabric *f, struct oneway *way, struct link *isl,
		      void *arg)
{
	uint64_t bytes = *(const uint64_t *)arg;

	atomic_fetch_add_explicit(&way->bytes, bytes, memory_order_relaxed);
	if (!isl)
		return;
	count_add(&isl->counters, CNT_TX_BYTES, bytes);
	count_add(&f->links[isl->other].counters, CNT_RX_BYTES, bytes);
}

void traffic_count(struct fabric *f, const struct place *from,
		   const struct place *to, uint64_t bytes)
{
	if (bytes)
		traffic_route(f, from, to, count_way, &bytes);
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

/* @id is no object's. */
static bool describe_mesh(struct fabric *f, uint32_t id, struct draco_link *out)
{
	memset(out, 0, sizeof(*out));
	out->id = id;
	return mesh_describe(f, id - f->nobjects - 1, out);
}

size_t traffic_links(struct fabric *f, uint32_t first, bool mesh,
		     struct draco_link *out, size_t max, uint32_t *next)
{
	uint32_t id = first ? first : 1;
	struct draco_link link;
	bool more = true;
	size_t n = 0;

	for (; id <= f->nobjects || mesh; id++) {
		if (id > f->nobjects) {
			more = describe_mesh(f, id, &link);
			if (!more)
				break;
		} else if (!describe_link(f, id, &link)) {
			continue;
		}
		if (n == max)
			break;
		out[n++] = link;
	}
	*next = more && (id <= f->nobjects || mesh) ? id : 0;
	return n;
}
