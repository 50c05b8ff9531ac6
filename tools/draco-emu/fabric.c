// SPDX-License-Identifier: GPL-2.0-only
/*
 * The fabric model: objects made from the topology, link states, who sees
 * whom. Called by admin commands, bindings, ports and the control socket.
 */
#include "fabric.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "binding.h"
#include "epf.h"
#include "mesh.h"
#include "pfx.h"
#include "port.h"
#include "route.h"

_Static_assert(sizeof(struct draco_object) == 128, "docs/draco.md");
_Static_assert(sizeof(struct draco_peer) == 16, "docs/draco.md");

/* ---- Object ids: switches, their ports, hosts, appliances, endpoints ---- */

uint32_t fabric_switch_id(struct fabric *f, unsigned int sw)
{
	(void)f;
	return 1 + sw;
}

static uint32_t link_id(struct fabric *f, uint32_t link)
{
	return 1 + f->topo->nswitches + link;
}

uint32_t fabric_host_id(struct fabric *f, unsigned int host)
{
	return link_id(f, f->nlinks) + host;
}

uint32_t fabric_appliance_id(struct fabric *f, unsigned int appliance)
{
	return fabric_host_id(f, f->topo->nhosts) + appliance;
}

uint32_t fabric_ep_id(struct fabric *f, unsigned int ep)
{
	return fabric_appliance_id(f, f->topo->nappliances) + ep;
}

static struct draco_object *object(struct fabric *f, uint32_t id)
{
	return &f->objects[id - 1];
}

struct link *fabric_link_by_id(struct fabric *f, uint32_t id)
{
	uint32_t first = link_id(f, 0);

	return id >= first && id - first < f->nlinks ? &f->links[id - first] :
						       NULL;
}

struct port *fabric_port_by_id(struct fabric *f, uint32_t id)
{
	struct link *l = fabric_link_by_id(f, id);

	return l && l->kind == DRACO_PORT_HOST ? f->ports[l->peer] : NULL;
}

struct port *fabric_port_by_peer(struct fabric *f, unsigned int peer)
{
	return peer < f->nports ? f->ports[peer] : NULL;
}

struct port *fabric_port_of(struct fabric *f, unsigned int host,
			    unsigned int index)
{
	return f->ports[topology_peer(f->topo, host, index)];
}

unsigned int fabric_ep_by_id(struct fabric *f, uint32_t id)
{
	uint32_t first = fabric_ep_id(f, 0);

	return id >= first && id - first < f->topo->nendpoints ? id - first :
								 TOPO_NONE;
}

uint32_t fabric_find(struct fabric *f, const char *name)
{
	for (uint32_t i = 0; i < f->nobjects; i++) {
		if (!strcmp(f->objects[i].name, name))
			return i + 1;
	}
	return 0;
}

/* ---- Construction ---- */

static void describe(struct fabric *f, uint32_t id, unsigned int type,
		     unsigned int kind, const char *name)
{
	struct draco_object *o = object(f, id);

	o->id = id;
	o->type = type;
	o->kind = kind;
	o->peer = 0xffff;
	/* The topology has made sure that names fit. */
	memcpy(o->name, name, strnlen(name, sizeof(o->name) - 1));
}

static uint32_t link_at(struct fabric *f, const struct topo_end *e)
{
	return f->first_link[e->sw] + e->port - 1;
}

/* What a port leads to: object id and name of the port. */
static uint32_t lead(struct fabric *f, struct link *l,
		     const struct topo_port *tp, char *name, size_t len)
{
	const struct topology *t = f->topo;
	const struct topo_isl *isl;

	switch (tp->kind) {
	case TOPO_PORT_HOST:
		l->peer = topology_peer(t, tp->owner, tp->index);
		snprintf(name, len, "%s.%u", t->hosts[tp->owner].name,
			 tp->index);
		return fabric_host_id(f, tp->owner);
	case TOPO_PORT_UPLINK:
		return fabric_appliance_id(f, tp->owner);
	case TOPO_PORT_ISL:
		isl = &t->isls[tp->owner];
		l->other = link_at(f, tp->index ? &isl->a : &isl->b);
		return link_id(f, l->other);
	default:
		return 0;
	}
}

static void make_link(struct fabric *f, unsigned int sw, unsigned int i)
{
	const struct topo_switch *ts = &f->topo->switches[sw];
	uint32_t index = f->first_link[sw] + i;
	struct link *l = &f->links[index];
	char name[DRACO_NAME_LEN * 2];
	struct draco_object *o;
	uint32_t leads_to;

	l->id = link_id(f, index);
	l->sw = sw;
	l->kind = ts->ports[i].kind;
	l->peer = 0xffff;
	l->other = FABRIC_NO_LINK;
	snprintf(name, sizeof(name), "%s:%u", ts->name, i + 1);
	leads_to = lead(f, l, &ts->ports[i], name, sizeof(name));
	describe(f, l->id, DRACO_OBJ_PORT, l->kind, name);
	o = object(f, l->id);
	o->parent = fabric_switch_id(f, sw);
	o->link = leads_to;
	o->number = i + 1;
	o->peer = l->peer;
	o->max_speed = ts->speed * 1000;
	o->max_width = ts->width;
	if (l->kind == DRACO_PORT_HOST &&
	    f->topo->hosts[ts->ports[i].owner].manager)
		o->flags = DRACO_OBJF_MANAGER;
	if (l->kind != DRACO_PORT_UNUSED) {
		atomic_store(&l->up, true);
		o->state = DRACO_LINK_UP;
		o->speed = o->max_speed;
		o->width = o->max_width;
	}
}

static void make_switches(struct fabric *f)
{
	const struct topology *t = f->topo;
	uint32_t n = 0;

	for (unsigned int s = 0; s < t->nswitches; s++) {
		f->first_link[s] = n;
		n += t->switches[s].nports;
	}
	for (unsigned int s = 0; s < t->nswitches; s++) {
		describe(f, fabric_switch_id(f, s), DRACO_OBJ_SWITCH, 0,
			 t->switches[s].name);
		for (unsigned int i = 0; i < t->switches[s].nports; i++)
			make_link(f, s, i);
	}
}

static const uint16_t ep_device[] = {
	[DRACO_EP_GPU] = DRACO_PCI_DEVICE_GPU,
	[DRACO_EP_NVME] = DRACO_PCI_DEVICE_NVME,
	[DRACO_EP_NIC] = DRACO_PCI_DEVICE_NIC,
	[DRACO_EP_FPGA] = DRACO_PCI_DEVICE_FPGA,
};

static void make_endpoint(struct fabric *f, unsigned int i)
{
	const struct topo_endpoint *te = &f->topo->endpoints[i];
	const struct topo_appliance *ta = &f->topo->appliances[te->appliance];
	uint32_t id = fabric_ep_id(f, i);
	struct draco_object *o = object(f, id);

	describe(f, id, DRACO_OBJ_ENDPOINT, te->class, te->name);
	f->eps[i].id = id;
	f->eps[i].uplink = &f->links[link_at(f, &ta->uplinks[te->uplink])];
	f->eps[i].second = traffic_on_second(f->topo, i);
	atomic_store(&f->eps[i].answers, true);
	o->parent = fabric_appliance_id(f, te->appliance);
	o->link = f->eps[i].uplink->id;
	o->number = te->number;
	o->width = 16;
	o->pci_vendor = DRACO_PCI_VENDOR;
	o->pci_device = ep_device[te->class];
	o->size = te->size;
	o->state = DRACO_EP_FREE;
}

static void make_appliance(struct fabric *f, unsigned int i)
{
	const struct topo_appliance *ta = &f->topo->appliances[i];
	uint32_t id = fabric_appliance_id(f, i);
	struct draco_object *o = object(f, id);
	unsigned int behind[TOPO_MAX_UPLINKS] = { 0 };

	describe(f, id, DRACO_OBJ_APPLIANCE, 0, ta->name);
	o->number = ta->nuplinks;
	for (unsigned int k = 0; k < ta->nendpoints; k++) {
		unsigned int u = f->topo->endpoints[ta->first + k].uplink;

		if (++behind[u] > o->width)
			o->width = behind[u];
	}
}

static void make_objects(struct fabric *f)
{
	const struct topology *t = f->topo;

	make_switches(f);
	for (unsigned int i = 0; i < t->nhosts; i++)
		describe(f, fabric_host_id(f, i), DRACO_OBJ_HOST, 0,
			 t->hosts[i].name);
	for (unsigned int i = 0; i < t->nappliances; i++)
		make_appliance(f, i);
	for (unsigned int i = 0; i < t->nendpoints; i++)
		make_endpoint(f, i);
}

/* Partitions of a host are joined by its root complex, if that forwards. */
static void join_ports(struct fabric *f, unsigned int host)
{
	unsigned int n = f->topo->hosts[host].nports;
	struct port **ports = &f->ports[f->nports - n];

	if (!f->topo->hosts[host].p2p_root)
		return;
	for (unsigned int k = 0; k < n; k++)
		ports[k]->sibling = ports[(k + 1) % n];
}

static int make_ports(struct fabric *f)
{
	for (unsigned int h = 0; h < f->topo->nhosts; h++) {
		for (unsigned int k = 0; k < f->topo->hosts[h].nports; k++) {
			struct port *p = calloc(1, sizeof(*p));
			int err;

			if (!p)
				return -ENOMEM;
			err = port_init(p, f, f->nports, h, k);
			if (err) {
				free(p);
				return err;
			}
			f->ports[f->nports++] = p;
		}
		join_ports(f, h);
	}
	return 0;
}

static int allocate(struct fabric *f)
{
	const struct topology *t = f->topo;

	for (unsigned int s = 0; s < t->nswitches; s++)
		f->nlinks += t->switches[s].nports;
	f->nobjects = t->nswitches + f->nlinks + t->nhosts + t->nappliances +
		      t->nendpoints;
	f->objects = calloc(f->nobjects, sizeof(*f->objects));
	f->links = calloc(f->nlinks, sizeof(*f->links));
	f->first_link = calloc(t->nswitches, sizeof(*f->first_link));
	f->ports = calloc(topology_host_ports(t) + 1, sizeof(*f->ports));
	f->visible = calloc(4ul * topology_host_ports(t) + 1,
			    sizeof(*f->visible));
	f->eps = calloc(t->nendpoints + 1, sizeof(*f->eps));
	return f->objects && f->links && f->first_link && f->ports &&
	       f->visible && f->eps ? 0 : -ENOMEM;
}

int fabric_init(struct fabric *f, const struct topology *topo)
{
	int err;

	memset(f, 0, sizeof(*f));
	f->topo = topo;
	pthread_mutex_init(&f->lock, NULL);
	event_init(&f->events);
	audit_init(&f->audit);
	engine_init(&f->engine);
	err = allocate(f);
	if (!err)
		make_objects(f);
	if (!err)
		err = route_init(f);
	if (!err)
		throttle_init(f);
	if (!err)
		err = mesh_init(f);
	if (!err)
		err = make_ports(f);
	if (!err)
		err = pfx_init(f);
	if (!err)
		err = epf_init(f);
	if (err)
		fabric_free(f);
	return err;
}

void fabric_free(struct fabric *f)
{
	pfx_free(f);
	epf_free(f);
	for (unsigned int i = 0; i < f->nports; i++) {
		port_free(f->ports[i]);
		free(f->ports[i]);
	}
	free(f->ports);
	free(f->objects);
	free(f->links);
	free(f->first_link);
	free((void *)f->route);
	free(f->visible);
	free(f->eps);
	mesh_free(f);
	throttle_free(f);
	engine_free(&f->engine);
	event_exit(&f->events);
	audit_free(&f->audit);
	pthread_mutex_destroy(&f->lock);
	memset(f, 0, sizeof(*f));
}

/* ---- Reading ---- */

size_t fabric_objects(struct fabric *f, unsigned int type, uint32_t first,
		      struct draco_object *out, size_t max, uint32_t *next,
		      uint64_t *seq)
{
	uint32_t id = first ? first : 1;
	size_t n = 0;

	pthread_mutex_lock(&f->lock);
	for (; id <= f->nobjects; id++) {
		const struct draco_object *o = object(f, id);

		if (type && o->type != type)
			continue;
		if (n == max)
			break;
		out[n++] = *o;
	}
	*next = id <= f->nobjects ? id : 0;
	*seq = f->topology_seq;
	pthread_mutex_unlock(&f->lock);
	return n;
}

void fabric_object_counts(struct fabric *f, uint32_t *counts, uint64_t *seq)
{
	counts[DRACO_OBJ_SWITCH] = f->topo->nswitches;
	counts[DRACO_OBJ_PORT] = f->nlinks;
	counts[DRACO_OBJ_HOST] = f->topo->nhosts;
	counts[DRACO_OBJ_APPLIANCE] = f->topo->nappliances;
	counts[DRACO_OBJ_ENDPOINT] = f->topo->nendpoints;
	counts[0] = f->nobjects;
	pthread_mutex_lock(&f->lock);
	*seq = f->topology_seq;
	pthread_mutex_unlock(&f->lock);
}

void fabric_object(struct fabric *f, uint32_t id, struct draco_object *out)
{
	pthread_mutex_lock(&f->lock);
	*out = *object(f, id);
	pthread_mutex_unlock(&f->lock);
}

/* ---- Endpoints ---- */

void fabric_ep_state(struct fabric *f, unsigned int ep, unsigned int state,
		     uint32_t bound, unsigned int slot, unsigned int flags)
{
	struct draco_event ev = {
		.type = DRACO_EV_EP_STATE,
		.obj_type = DRACO_OBJ_ENDPOINT,
		.flags = flags,
		.object = fabric_ep_id(f, ep),
		.port = bound,
		.state = state,
		.arg = { slot },
	};
	struct draco_object *o = object(f, ev.object);

	pthread_mutex_lock(&f->lock);
	if (!bound)
		ev.port = o->bound;
	o->state = state;
	o->bound = bound;
	o->slot = slot;
	f->topology_seq++;
	event_post_all(f, &ev);
	pthread_mutex_unlock(&f->lock);
}

/* ---- Who sees whom. lock held ---- */

static bool is_visible(struct fabric *f, unsigned int who, unsigned int whom)
{
	return f->visible[who * 4 + whom / 64] >> (whom % 64) & 1;
}

static void set_visible(struct fabric *f, unsigned int who, unsigned int whom,
			bool on)
{
	uint64_t bit = 1ull << (whom % 64);

	if (on)
		f->visible[who * 4 + whom / 64] |= bit;
	else
		f->visible[who * 4 + whom / 64] &= ~bit;
}

static void post_peer(struct fabric *f, struct port *p, bool up,
		      const struct event_mask *to)
{
	struct draco_event ev = {
		.type = up ? DRACO_EV_PEER_UP : DRACO_EV_PEER_DOWN,
		.obj_type = DRACO_OBJ_PORT,
		.object = p->link->id,
		.port = p->link->id,
		.state = object(f, p->link->id)->state,
		.arg = { atomic_load(&p->generation), p->peer },
	};

	event_post(f, &ev, to);
}

static bool should_see(struct fabric *f, unsigned int who, struct port *p)
{
	return port_is_ready(p) && port_is_ready(f->ports[who]) &&
	       fabric_reachable(f, f->ports[who], p);
}

/* PEER_DOWN to all that saw @p and no longer do; @all: whether or not. */
static void peers_down(struct fabric *f, struct port *p, bool all)
{
	struct event_mask to = { { 0 } };
	bool any = false;

	for (unsigned int i = 0; i < f->nports; i++) {
		if (!is_visible(f, i, p->peer) ||
		    (!all && should_see(f, i, p)))
			continue;
		set_visible(f, i, p->peer, false);
		event_mask_set(&to, i);
		any = true;
	}
	if (any)
		post_peer(f, p, false, &to);
}

/* PEER_UP to all that see @p now and did not. */
static void peers_up(struct fabric *f, struct port *p)
{
	struct event_mask to = { { 0 } };
	bool any = false;

	for (unsigned int i = 0; i < f->nports; i++) {
		if (f->ports[i] == p || is_visible(f, i, p->peer) ||
		    !should_see(f, i, p))
			continue;
		set_visible(f, i, p->peer, true);
		event_mask_set(&to, i);
		any = true;
	}
	if (any)
		post_peer(f, p, true, &to);
}

static void update_peers(struct fabric *f)
{
	for (unsigned int i = 0; i < f->nports; i++)
		peers_down(f, f->ports[i], false);
	for (unsigned int i = 0; i < f->nports; i++)
		peers_up(f, f->ports[i]);
}

/* lock held */
static bool peer_is_up(struct fabric *f, const struct port *who,
		       struct port *p)
{
	return p == who ? port_is_ready(p) && atomic_load(&p->link->up) :
			  is_visible(f, who->peer, p->peer);
}

size_t fabric_peers(struct fabric *f, const struct port *who,
		    unsigned int first, struct draco_peer *out, size_t max,
		    uint32_t *next, uint64_t *seq)
{
	size_t n = 0;

	pthread_mutex_lock(&f->lock);
	for (; first < f->nports && n < max; first++) {
		struct port *p = f->ports[first];

		out[n++] = (struct draco_peer){
			.port = p->link->id,
			.generation = atomic_load(&p->generation),
			.peer = p->peer,
			.flags = peer_is_up(f, who, p) ? DRACO_PEERF_UP : 0,
		};
	}
	*next = first < f->nports ? first : 0;
	*seq = event_last(&f->events);
	pthread_mutex_unlock(&f->lock);
	return n;
}

static void update_host(struct fabric *f, unsigned int host)
{
	struct draco_object *o = object(f, fabric_host_id(f, host));
	unsigned int state = DRACO_HOST_DOWN;

	for (unsigned int i = 0; i < f->nports; i++) {
		if (f->ports[i]->host == host && port_is_ready(f->ports[i]))
			state = DRACO_HOST_UP;
	}
	if (o->state != state)
		f->topology_seq++;
	o->state = state;
}

void fabric_port_changed(struct fabric *f, struct port *p)
{
	struct draco_object *o = object(f, p->link->id);

	pthread_mutex_lock(&f->lock);
	if (o->generation != atomic_load(&p->generation))
		f->topology_seq++;
	o->generation = atomic_load(&p->generation);
	/* A port that starts has seen nobody yet. */
	if (!port_is_ready(p))
		memset(&f->visible[p->peer * 4], 0, 4 * sizeof(*f->visible));
	update_host(f, p->host);
	update_peers(f);
	pthread_mutex_unlock(&f->lock);
}

void fabric_port_hide(struct fabric *f, struct port *p)
{
	pthread_mutex_lock(&f->lock);
	peers_down(f, p, true);
	pthread_mutex_unlock(&f->lock);
}

void fabric_tell_itself(struct fabric *f, struct port *p, bool up)
{
	struct event_mask to = { { 0 } };

	event_mask_set(&to, p->peer);
	pthread_mutex_lock(&f->lock);
	post_peer(f, p, up, &to);
	pthread_mutex_unlock(&f->lock);
}

/* ---- Links ---- */

static unsigned int link_state(struct fabric *f, const struct link *l)
{
	const struct link *other;

	if (l->kind == DRACO_PORT_UNUSED)
		return DRACO_LINK_DOWN;
	if (l->disabled)
		return DRACO_LINK_DISABLED;
	if (l->broken)
		return DRACO_LINK_DOWN;
	if (l->kind != DRACO_PORT_ISL)
		return DRACO_LINK_UP;
	other = &f->links[l->other];
	return other->disabled || other->broken ? DRACO_LINK_DOWN :
						  DRACO_LINK_UP;
}

/* lock held. Back up, binding.c sees to it. */
static void silence_endpoints(struct fabric *f, const struct link *uplink)
{
	for (unsigned int i = 0; i < f->topo->nendpoints; i++) {
		if (f->eps[i].uplink != uplink)
			continue;
		atomic_store(&f->eps[i].answers, false);
		atomic_fetch_add(&f->eps[i].downs, 1);
	}
}

/* lock held */
static bool update_link(struct fabric *f, struct link *l)
{
	struct draco_object *o = object(f, l->id);
	unsigned int state = link_state(f, l);
	struct draco_event ev = {
		.type = DRACO_EV_LINK, .obj_type = DRACO_OBJ_PORT,
		.object = l->id, .state = state,
		.port = l->kind == DRACO_PORT_HOST ? l->id : 0,
	};
	bool up = state == DRACO_LINK_UP;

	if (o->state == state)
		return false;
	if (o->state == DRACO_LINK_UP)
		count(l->kind == DRACO_PORT_HOST ?
		      &f->ports[l->peer]->counters : &l->counters,
		      CNT_LINK_DOWNS);
	o->state = state;
	o->speed = up ? o->max_speed : 0;
	o->width = up ? o->max_width : 0;
	atomic_store(&l->up, up);
	if (l->kind == DRACO_PORT_UPLINK) {
		if (!up)
			silence_endpoints(f, l);
		binding_uplink_changed(f);
	}
	if (l->kind == DRACO_PORT_HOST && f->ports[l->peer]->part)
		pfx_link_changed(f->ports[l->peer]->part);
	if (l->kind == DRACO_PORT_HOST && f->ports[l->peer]->end)
		epf_link_changed(f->ports[l->peer]->end);
	f->topology_seq++;
	event_post_all(f, &ev);
	return true;
}

/* lock held */
static void links_changed(struct fabric *f, struct link *l)
{
	bool changed = update_link(f, l);

	if (l->kind == DRACO_PORT_ISL) {
		changed |= update_link(f, &f->links[l->other]);
		route_compute(f);
	}
	if (changed)
		update_peers(f);
}

void fabric_link_control(struct fabric *f, struct link *l, unsigned int action)
{
	pthread_mutex_lock(&f->lock);
	l->disabled = action == DRACO_PORTC_DISABLE;
	links_changed(f, l);
	pthread_mutex_unlock(&f->lock);
}

void fabric_link_break(struct fabric *f, struct link *l, bool broken)
{
	pthread_mutex_lock(&f->lock);
	l->broken = broken;
	links_changed(f, l);
	pthread_mutex_unlock(&f->lock);
}

void fabric_link_slow(struct fabric *f, struct link *l, uint64_t rate)
{
	struct draco_event ev = {
		.type = DRACO_EV_FAULT, .obj_type = DRACO_OBJ_PORT,
		.object = l->id,
		.port = l->kind == DRACO_PORT_HOST ? l->id : 0,
		.arg = { DRACO_FAULT_SLOW_LINK },
	};
	bool was = pace_on(&l->pace);

	pace_set(&l->pace, rate);
	if (rate && !was)
		atomic_fetch_add(&f->nslow, 1);
	else if (!rate && was)
		atomic_fetch_sub(&f->nslow, 1);
	if (rate)
		event_post_all(f, &ev);
}

/* ---- Data path ---- */

bool fabric_links_joined(struct fabric *f, const struct link *a,
			 const struct link *b)
{
	if (!atomic_load_explicit(&a->up, memory_order_relaxed) ||
	    !atomic_load_explicit(&b->up, memory_order_relaxed))
		return false;
	return a->sw == b->sw || route_next(f, a->sw, b->sw) != ROUTE_NONE;
}

bool fabric_reachable(struct fabric *f, const struct port *a,
		      const struct port *b)
{
	return fabric_links_joined(f, a->link, b->link);
}

/* The link after @l on the way to switch @to, or NULL at its end. */
static struct link *next_hop(struct fabric *f, unsigned int *sw,
			     unsigned int to)
{
	uint32_t next = route_next(f, *sw, to);

	if (next == ROUTE_NONE || next == ROUTE_HERE)
		return NULL;
	*sw = f->links[f->links[next].other].sw;
	return &f->links[next];
}

static uint64_t longest_wait(struct fabric *f, struct port *from,
			     struct port *to, uint64_t now)
{
	uint64_t wait = pace_wait(&from->link->pace, now);
	uint64_t other = pace_wait(&to->link->pace, now);
	unsigned int sw = from->link->sw, hops = 0;
	struct link *l;

	wait = other > wait ? other : wait;
	while (hops++ < TOPO_MAX_SWITCHES &&
	       (l = next_hop(f, &sw, to->link->sw))) {
		other = pace_wait(&l->pace, now);
		wait = other > wait ? other : wait;
	}
	return wait;
}

static void charge(struct fabric *f, struct port *from, struct port *to,
		   uint64_t now, uint64_t bytes)
{
	unsigned int sw = from->link->sw, hops = 0;
	struct link *l;

	pace_charge(&from->link->pace, now, bytes);
	if (to != from)
		pace_charge(&to->link->pace, now, bytes);
	while (hops++ < TOPO_MAX_SWITCHES &&
	       (l = next_hop(f, &sw, to->link->sw)))
		pace_charge(&l->pace, now, bytes);
}

static uint64_t smallest_chunk(struct fabric *f, struct port *from,
			       struct port *to, uint64_t bytes)
{
	unsigned int sw = from->link->sw, hops = 0;
	struct link *l;

	bytes = pace_chunk(&from->link->pace, bytes);
	bytes = pace_chunk(&to->link->pace, bytes);
	while (hops++ < TOPO_MAX_SWITCHES &&
	       (l = next_hop(f, &sw, to->link->sw)))
		bytes = pace_chunk(&l->pace, bytes);
	return bytes;
}

uint64_t fabric_pace(struct fabric *f, struct port *from, struct port *to,
		     uint64_t *bytes)
{
	uint64_t now, wait;

	if (!atomic_load_explicit(&f->nslow, memory_order_relaxed))
		return 0;
	now = engine_now_ns();
	wait = longest_wait(f, from, to, now);
	/* Not for long, so that revocation is noticed. */
	if (wait)
		return wait < 10000000 ? wait : 10000000;
	*bytes = smallest_chunk(f, from, to, *bytes);
	charge(f, from, to, now, *bytes);
	return 0;
}
