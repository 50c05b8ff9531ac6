// SPDX-License-Identifier: GPL-2.0-only
/*
 * Elements of the topology file as objects of the model. Ids follow the order of
 * the file: switches, their ports, hosts, appliances, endpoints.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "fabric.h"
#include "util.h"

#define UNKNOWN		0xff	/* a state that has no word: "unknown" */
#define SETTLE_MS	100

void pfx_number(struct pfx_fabric *f)
{
	const struct topology *t = f->t;
	uint32_t id = 1 + t->nswitches;
	unsigned int i;

	f->switches = xcalloc(t->nswitches, sizeof(*f->switches));
	f->first_port = xcalloc(t->nswitches, sizeof(*f->first_port));
	for (i = 0; i < t->nswitches; i++) {
		f->first_port[i] = id;
		id += t->switches[i].nports;
	}
	f->first_host = id;
	f->first_appliance = f->first_host + t->nhosts;
	f->first_endpoint = f->first_appliance + t->nappliances;
	f->ids = f->first_endpoint + t->nendpoints;
}

uint32_t pfx_port_id(const struct pfx_fabric *f, const struct topo_end *end)
{
	return f->first_port[end->sw] + end->port - 1;
}

bool pfx_port(const struct pfx_fabric *f, uint32_t id, struct topo_end *end)
{
	unsigned int sw;

	for (sw = 0; sw < f->t->nswitches; sw++) {
		uint32_t first = f->first_port[sw];

		if (id < first || id >= first + f->t->switches[sw].nports)
			continue;
		*end = (struct topo_end){ sw, id - first + 1 };
		return true;
	}
	return false;
}

unsigned int pfx_endpoint(const struct pfx_fabric *f, uint32_t id)
{
	return id >= f->first_endpoint && id < f->ids ? id - f->first_endpoint :
							TOPO_NONE;
}

const struct topo_end *pfx_uplink(const struct pfx_fabric *f, unsigned int ep)
{
	const struct topo_endpoint *e = &f->t->endpoints[ep];

	return &f->t->appliances[e->appliance].uplinks[e->uplink];
}

void pfx_port_name(const struct pfx_fabric *f, const struct topo_end *end,
		   char name[CTL_NAME_LEN * 2])
{
	snprintf(name, CTL_NAME_LEN * 2, "%s:%u", f->t->switches[end->sw].name,
		 end->port);
}

/* ---- bindings ------------------------------------------------------------ */

static const struct port_bind *bind_of(const struct pfx_fabric *f,
				       const struct topo_end *end)
{
	return end->port < ANSWER_PORTS ?
	       &f->switches[end->sw].bind[end->port] : NULL;
}

static const struct port_link *link_of(const struct pfx_fabric *f,
				       const struct topo_end *end)
{
	const struct pfx *x = &f->switches[end->sw];

	return x->device && end->port < ANSWER_PORTS &&
	       x->link[end->port].there ? &x->link[end->port] : NULL;
}

/* Partitions have numbers of their own; that of a host is its port's. */
const struct topo_end *pfx_bound_to(const struct pfx_fabric *f,
				    const struct topo_end *end)
{
	const struct port_bind *b = bind_of(f, end);
	unsigned int h, i;

	if (!f->switches[end->sw].device || !b || !b->bound)
		return NULL;
	for (h = 0; h < f->t->nhosts; h++)
		for (i = 0; i < f->t->hosts[h].nports; i++) {
			const struct topo_end *p = &f->t->hosts[h].ports[i];
			const struct port_link *l = p->sw == end->sw ?
						    link_of(f, p) : NULL;

			if (l && l->placed && l->partition == b->partition)
				return p;
		}
	return NULL;
}

const struct switchtec *pfx_local(const struct pfx_fabric *f,
				  const struct topo_end *end)
{
	const struct port_bind *b = bind_of(f, end);
	int i;

	for (i = 0; i < f->ndevices && b && b->bound; i++)
		if (f->devices[i].sw == end->sw &&
		    f->devices[i].partition == b->partition)
			return &f->devices[i];
	return NULL;
}

/* ---- one element --------------------------------------------------------- */

static void fill(struct object *o, uint32_t id, uint32_t type, uint32_t kind,
		 const char *name)
{
	memset(o, 0, sizeof(*o));
	o->id = id;
	o->type = type;
	o->kind = kind;
	snprintf(o->name, sizeof(o->name), "%s", name);
}

static void fill_host_port(const struct pfx_fabric *f,
			   const struct topo_port *p, struct object *o)
{
	const struct topo_host *h = &f->t->hosts[p->owner];

	snprintf(o->name, sizeof(o->name), "%s.%u", h->name, p->index);
	o->link = f->first_host + p->owner;
	o->peer = topology_peer(f->t, p->owner, p->index);
	o->manager = h->manager;
}

static void fill_port(const struct pfx_fabric *f, uint32_t id,
		      const struct topo_end *end, struct object *o)
{
	const struct topo_switch *s = &f->t->switches[end->sw];
	const struct topo_port *p = &s->ports[end->port - 1];
	const struct port_link *l = link_of(f, end);
	const struct topo_isl *isl;
	char name[CTL_NAME_LEN * 2];

	pfx_port_name(f, end, name);
	fill(o, id, T_PORT, p->kind, name);
	o->parent = 1 + end->sw;
	o->number = end->port;
	o->max_speed = s->speed * 1000;
	o->max_width = s->width;
	o->state = l ? (l->up ? FABREX_LINK_STATE_UP : FABREX_LINK_STATE_DOWN)
		     : UNKNOWN;
	if (l) {
		o->speed = l->speed;
		o->width = l->width;
		o->max_width = l->max_width;
	}
	switch (p->kind) {
	case TOPO_PORT_HOST:
		fill_host_port(f, p, o);
		break;
	case TOPO_PORT_UPLINK:
		o->link = f->first_appliance + p->owner;
		break;
	case TOPO_PORT_ISL:
		isl = &f->t->isls[p->owner];
		o->link = pfx_port_id(f, p->index ? &isl->a : &isl->b);
		break;
	default:
		break;
	}
}

static void fill_host(const struct pfx_fabric *f, unsigned int h,
		      struct object *o)
{
	unsigned int i, known = 0;

	fill(o, f->first_host + h, T_HOST, 0, f->t->hosts[h].name);
	o->state = FABREX_HOST_STATE_DOWN;
	for (i = 0; i < f->t->hosts[h].nports; i++) {
		const struct port_link *l = link_of(f, &f->t->hosts[h].ports[i]);

		known += l != NULL;
		if (l && l->up)
			o->state = FABREX_HOST_STATE_UP;
	}
	if (!known)
		o->state = UNKNOWN;
}

static uint32_t endpoint_state(const struct pfx_fabric *f,
			       const struct topo_end *end)
{
	const struct port_bind *b = bind_of(f, end);

	if (!f->switches[end->sw].device || !b || !b->there)
		return UNKNOWN;
	if (b->result == MRPC_BIND_IN_PROGRESS)
		return b->bound ? FABREX_ENDPOINT_STATE_RELEASING :
				  FABREX_ENDPOINT_STATE_BINDING;
	return b->bound ? FABREX_ENDPOINT_STATE_BOUND :
			  FABREX_ENDPOINT_STATE_FREE;
}

static unsigned int count_listed(const struct pfx_fabric *f,
				 const struct topo_end *end, uint32_t kind)
{
	unsigned int i, n = 0;

	for (i = 0; i < f->t->nendpoints; i++) {
		const struct topo_end *up = pfx_uplink(f, i);

		n += f->t->endpoints[i].class == kind && up->sw == end->sw &&
		     up->port == end->port;
	}
	return n;
}

/* The same but for the function, the last character. */
static bool same_device(const struct below *a, const struct below *b)
{
	size_t n = strlen(a->name);

	return strlen(b->name) == n && !strncmp(a->name, b->name, n - 1);
}

/*
 * Keep of @n those of one kind. A device with several functions of it, such as a
 * NIC with two ports, is one, unless the file lists more than there are devices.
 */
static unsigned int keep_kind(struct below *v, unsigned int n, uint32_t kind,
			      unsigned int listed)
{
	unsigned int i, all = 0, devices = 0;

	for (i = 0; i < n; i++)
		if (!v[i].virtual && v[i].kind == kind)
			v[all++] = v[i];
	for (i = 0; i < all; i++)
		devices += !i || !same_device(&v[i], &v[i - 1]);
	if (devices < listed)
		return all;
	for (i = 0, n = 0; i < all; i++)
		if (!n || !same_device(&v[i], &v[n - 1]))
			v[n++] = v[i];
	return n;
}

/* Which of several of its kind behind one uplink it is. */
static unsigned int nth_behind(const struct pfx_fabric *f, unsigned int ep)
{
	const struct topo_endpoint *v = f->t->endpoints;
	unsigned int i, n = 0;

	for (i = 0; i < ep; i++)
		n += v[i].appliance == v[ep].appliance &&
		     v[i].uplink == v[ep].uplink && v[i].class == v[ep].class;
	return n;
}

/* The nth of that kind below the slot is taken for the nth of the file. */
static void find_device(const struct pfx_fabric *f, unsigned int ep,
			const struct topo_end *end, struct object *o)
{
	const struct switchtec *d = pfx_local(f, end);
	unsigned int n, nth = nth_behind(f, ep);
	struct below v[BELOW_MOST];
	char bridge[PCI_NAME_LEN];

	if (!d || !slot_bridge(&f->env, d->pci, o->slot, bridge))
		return;
	n = keep_kind(v, slot_below(&f->env, bridge, v), o->kind,
		      count_listed(f, end, o->kind));
	if (nth >= n)
		return;
	snprintf(o->pci_name, sizeof(o->pci_name), "%s", v[nth].name);
	snprintf(o->pci_driver, sizeof(o->pci_driver), "%s", v[nth].driver);
}

static void fill_endpoint(const struct pfx_fabric *f, unsigned int ep,
			  struct object *o)
{
	const struct topo_endpoint *e = &f->t->endpoints[ep];
	const struct topo_end *end = pfx_uplink(f, ep);
	const struct topo_end *to = pfx_bound_to(f, end);

	fill(o, f->first_endpoint + ep, T_ENDPOINT, e->class, e->name);
	o->parent = f->first_appliance + e->appliance;
	o->link = pfx_port_id(f, end);
	o->number = e->number;
	o->size = e->size;
	o->state = endpoint_state(f, end);
	if (!to)
		return;
	o->bound = pfx_port_id(f, to);
	o->slot = bind_of(f, end)->logical;
	find_device(f, ep, end, o);
}

bool pfx_object(struct pfx_fabric *f, uint32_t id, struct object *o)
{
	const struct topology *t = f->t;
	struct topo_end end;

	if (!id || id >= f->ids)
		return false;
	if (id <= t->nswitches)
		fill(o, id, T_SWITCH, 0, t->switches[id - 1].name);
	else if (pfx_port(f, id, &end))
		fill_port(f, id, &end, o);
	else if (id < f->first_appliance)
		fill_host(f, id - f->first_host, o);
	else if (id < f->first_endpoint)
		fill(o, id, T_APPLIANCE,
		     t->appliances[id - f->first_appliance].kind,
		     t->appliances[id - f->first_appliance].name);
	else
		fill_endpoint(f, id - f->first_endpoint, o);
	return true;
}

/* ---- what has come, and what should have --------------------------------- */

bool pfx_compare(struct pfx_fabric *f, uint32_t ep, bool surplus, char *text,
		 size_t len)
{
	const struct topo_end *end = pfx_uplink(f, pfx_endpoint(f, ep));
	const struct switchtec *d = pfx_local(f, end);
	char bridge[PCI_NAME_LEN], port[CTL_NAME_LEN * 2];
	struct below v[BELOW_MOST], of_kind[BELOW_MOST];
	unsigned int n, seen, listed;
	uint32_t kind;

	if (!d ||
	    !slot_bridge(&f->env, d->pci, bind_of(f, end)->logical, bridge))
		return false;
	n = slot_below(&f->env, bridge, v);
	pfx_port_name(f, end, port);
	for (kind = TOPO_GPU; kind <= TOPO_FPGA; kind++) {
		memcpy(of_kind, v, sizeof(of_kind));
		listed = count_listed(f, end, kind);
		seen = keep_kind(of_kind, n, kind, listed);
		if (seen == listed || (seen > listed && !surplus))
			continue;
		snprintf(text, len, "behind %s there are %u %s devices (below "
			 "bridge %s), %s has %u", port, seen,
			 topology_class_name((enum topo_class)kind), bridge,
			 f->file, listed);
		return true;
	}
	return false;
}

bool pfx_differs(struct backend *b, uint32_t ep, char *text, size_t len)
{
	/* Linux adds one after the other; there may be more to come. */
	poll(NULL, 0, SETTLE_MS);
	return pfx_compare(to_pfx(b), ep, true, text, len);
}
