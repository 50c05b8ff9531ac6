// SPDX-License-Identifier: GPL-2.0-only
/*
 * The fabric's objects as a topology: wiring, kinds, bindings. Called by
 * live_graph.c and, for the topology itself, by topology.c.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "live.h"
#include "live_fabric.h"
#include "names.h"
#include "source.h"
#include "topology/pcie.h"
#include "topology/topology.h"

void live_note(struct notes *n, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	n->v = xrealloc(n->v, (n->n + 1) * sizeof(*n->v));
	n->v[n->n++] = xstrdup(text);
}

/* ---- lists --------------------------------------------------------------- */

static int by_id(const void *a, const void *b)
{
	const struct object *x = *(const struct object *const *)a;
	const struct object *y = *(const struct object *const *)b;

	return x->id < y->id ? -1 : x->id > y->id;
}

/* Of an appliance one after the other, as struct topology has them. */
static int by_place(const void *a, const void *b)
{
	const struct object *x = *(const struct object *const *)a;
	const struct object *y = *(const struct object *const *)b;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return by_id(a, b);
}

static void collect(const struct model *m, uint32_t type, struct list *l)
{
	size_t i;

	l->v = xcalloc(m->n + 1, sizeof(*l->v));
	for (i = 0; i < m->n; i++)
		if (m->objects[i]->type == type)
			l->v[l->n++] = m->objects[i];
	qsort(l->v, l->n, sizeof(*l->v), type == T_ENDPOINT ? by_place : by_id);
}

/* TOPO_NONE: it is not there. */
unsigned int live_find(const struct list *l, uint32_t id)
{
	const struct object key = { .id = id }, *k = &key;
	const struct object **at;

	at = bsearch(&k, l->v, l->n, sizeof(*l->v), by_id);
	return at ? (unsigned int)(at - l->v) : TOPO_NONE;
}

static void collect_all(struct live *v)
{
	const struct model *m = v->c->model;

	collect(m, T_SWITCH, &v->switches);
	collect(m, T_HOST, &v->hosts);
	collect(m, T_APPLIANCE, &v->appliances);
	collect(m, T_ENDPOINT, &v->endpoints);
	collect(m, T_PORT, &v->ports);
}

void live_forget(struct live *v)
{
	size_t i;

	free(v->switches.v);
	free(v->hosts.v);
	free(v->appliances.v);
	free(v->endpoints.v);
	free(v->ports.v);
	for (i = 0; i < v->notes.n; i++)
		free(v->notes.v[i]);
	free(v->notes.v);
	free(v->part);
	topology_free(v->t);
}

/* ---- switches and their ports -------------------------------------------- */

static int odd(struct live *v, const struct object *o, const char *what)
{
	return err_set(&v->c->err, EPROTO, o->name, "%s: %s; does the switch "
		       "run newer firmware than fabrexctl knows?", o->name,
		       what);
}

static void set_name(char to[TOPO_NAME_LEN], const char *from)
{
	snprintf(to, TOPO_NAME_LEN, "%s", from);
}

/* Capability of a switch: that of its best port. */
static int add_switches(struct live *v)
{
	struct topology *t = v->t;
	unsigned int i, s;

	t->switches = xcalloc(v->switches.n + 1, sizeof(*t->switches));
	t->nswitches = v->switches.n;
	for (s = 0; s < t->nswitches; s++) {
		set_name(t->switches[s].name, v->switches.v[s]->name);
		t->switches[s].nports = 2;
	}
	for (i = 0; i < v->ports.n; i++) {
		const struct object *o = v->ports.v[i];
		struct topo_switch *sw;

		s = live_find(&v->switches, o->parent);
		if (s == TOPO_NONE)
			return odd(v, o, "a port of no switch");
		sw = &t->switches[s];
		if (!o->number || o->number > TOPO_MAX_SWITCH_PORTS)
			return odd(v, o, "its number is out of range");
		if (o->number > sw->nports)
			sw->nports = o->number;
		if (o->max_speed / 1000 > sw->speed)
			sw->speed = o->max_speed / 1000;
		if (o->max_width > sw->width)
			sw->width = o->max_width;
	}
	for (s = 0; s < t->nswitches; s++) {
		struct topo_switch *sw = &t->switches[s];

		sw->ports = xcalloc(sw->nports, sizeof(*sw->ports));
		if (!pcie_rate(sw->speed, sw->width)) {
			sw->speed = 16;
			sw->width = 16;
		}
	}
	return t->nswitches ? 0 : err_set(&v->c->err, ENODEV, NULL,
					  "the fabric has no switches");
}

struct topo_end live_end(const struct live *v, const struct object *port)
{
	return (struct topo_end){ live_find(&v->switches, port->parent),
				  port->number };
}

/* Two ports with one number would make one of them a lie. */
static int take_port(struct live *v, const struct object *o,
		     enum topo_port_kind kind, unsigned int owner,
		     unsigned int index)
{
	const struct topo_end end = live_end(v, o);
	struct topo_port *p = &v->t->switches[end.sw].ports[end.port - 1];

	if (p->kind != TOPO_PORT_UNUSED)
		return odd(v, o, "another port has its number");
	*p = (struct topo_port){ .kind = kind, .owner = owner,
				 .index = index };
	if (pcie_rate(o->speed / 1000.0, o->width)) {
		p->speed = o->speed;
		p->width = o->width;
	}
	return 0;
}

static int add_isls(struct live *v)
{
	struct topology *t = v->t;
	unsigned int i;
	int r = 0;

	t->isls = xcalloc(v->ports.n + 1, sizeof(*t->isls));
	for (i = 0; !r && i < v->ports.n; i++) {
		const struct object *a = v->ports.v[i];
		const struct object *b = model_get(v->c->model, a->link);

		if (a->kind != FABREX_PORT_KIND_ISL || !b || b->id < a->id ||
		    b->type != T_PORT || b->link != a->id)
			continue;
		t->isls[t->nisls] = (struct topo_isl){ live_end(v, a),
						       live_end(v, b) };
		r = take_port(v, a, TOPO_PORT_ISL, t->nisls, 0);
		if (!r)
			r = take_port(v, b, TOPO_PORT_ISL, t->nisls, 1);
		t->nisls++;
	}
	return r;
}

/* ---- hosts --------------------------------------------------------------- */

/* The number in "server.1", if the port is called that; else TOPO_NONE. */
static unsigned int nth_port(const struct object *host,
			     const struct object *port)
{
	size_t n = strlen(host->name);
	uint64_t nth;

	if (strncmp(port->name, host->name, n) || port->name[n] != '.' ||
	    !parse_u64(port->name + n + 1, 0, TOPO_MAX_HOST_PORTS - 1, &nth))
		return TOPO_NONE;
	return (unsigned int)nth;
}

static bool is_port_of(const struct object *port, uint32_t kind,
		       const struct object *owner)
{
	return port->kind == kind && port->link == owner->id;
}

/* Ports in the order of their numbers if all have one, else of their ids. */
static int add_host_ports(struct live *v, unsigned int h)
{
	const struct object *host = v->hosts.v[h];
	struct topo_host *to = &v->t->hosts[h];
	unsigned int i, n = 0, nth, named = 0;
	int r = 0;

	for (i = 0; i < v->ports.n; i++)
		n += is_port_of(v->ports.v[i], FABREX_PORT_KIND_HOST, host);
	to->ports = xcalloc(n + 1, sizeof(*to->ports));
	for (i = 0; i < v->ports.n; i++)
		if (is_port_of(v->ports.v[i], FABREX_PORT_KIND_HOST, host) &&
		    nth_port(host, v->ports.v[i]) < n)
			named++;
	for (i = 0; !r && i < v->ports.n; i++) {
		if (!is_port_of(v->ports.v[i], FABREX_PORT_KIND_HOST, host))
			continue;
		nth = named == n ? nth_port(host, v->ports.v[i]) : to->nports;
		to->ports[nth] = live_end(v, v->ports.v[i]);
		r = take_port(v, v->ports.v[i], TOPO_PORT_HOST, h, nth);
		to->nports++;
	}
	return r;
}

static bool is_manager(const struct live *v, const struct object *host)
{
	unsigned int i;

	for (i = 0; i < v->ports.n; i++)
		if (is_port_of(v->ports.v[i], FABREX_PORT_KIND_HOST, host) &&
		    v->ports.v[i]->manager)
			return true;
	return false;
}

static int add_hosts(struct live *v)
{
	struct topology *t = v->t;
	unsigned int h;
	int r = 0;

	t->hosts = xcalloc(v->hosts.n + 1, sizeof(*t->hosts));
	for (h = 0; !r && h < v->hosts.n; h++) {
		t->nhosts++;
		set_name(t->hosts[h].name, v->hosts.v[h]->name);
		t->hosts[h].manager = is_manager(v, v->hosts.v[h]);
		t->hosts[h].p2p_root = true;
		t->hosts[h].slots = 16;
		r = add_host_ports(v, h);
	}
	return r;
}

/* ---- appliances ---------------------------------------------------------- */

/* Uplinks in the order of the first endpoint behind each, then of their ids. */
static int add_uplinks(struct live *v, unsigned int a)
{
	const struct object *box = v->appliances.v[a];
	struct topo_appliance *to = &v->t->appliances[a];
	const struct object *up[TOPO_MAX_UPLINKS];
	unsigned int i, k, n = 0, pass;
	int r = 0;

	for (pass = 0; pass < 2; pass++) {
		const struct list *l = pass ? &v->ports : &v->endpoints;

		for (i = 0; i < l->n; i++) {
			const struct object *port = pass ? l->v[i] :
				l->v[i]->parent == box->id ?
				model_get(v->c->model, l->v[i]->link) : NULL;

			if (!port || port->type != T_PORT ||
			    !is_port_of(port, FABREX_PORT_KIND_UPLINK, box))
				continue;
			for (k = 0; k < n && up[k] != port; k++)
				;
			if (k < n)
				continue;
			if (n == TOPO_MAX_UPLINKS)
				return odd(v, box, "more than four uplinks");
			up[n++] = port;
		}
	}
	for (k = 0; !r && k < n; k++) {
		to->uplinks[k] = live_end(v, up[k]);
		r = take_port(v, up[k], TOPO_PORT_UPLINK, a, k);
	}
	to->nuplinks = n;
	return r;
}

static int add_appliances(struct live *v)
{
	struct topology *t = v->t;
	unsigned int a;
	int r = 0;

	t->appliances = xcalloc(v->appliances.n + 1, sizeof(*t->appliances));
	t->nappliances = v->appliances.n;
	for (a = 0; !r && a < t->nappliances; a++) {
		const struct object *o = v->appliances.v[a];

		set_name(t->appliances[a].name, o->name);
		t->appliances[a].kind =
			o->kind == APPLIANCE_FLAT ? TOPO_FLAT :
			TOPO_CASCADE;
		r = add_uplinks(v, a);
	}
	return r;
}

static unsigned int uplink_of(const struct live *v, unsigned int a,
			      const struct object *ep)
{
	const struct object *port = model_get(v->c->model, ep->link);
	const struct topo_appliance *box = &v->t->appliances[a];
	unsigned int k;

	for (k = 0; port && k < box->nuplinks; k++)
		if (port->number == box->uplinks[k].port &&
		    live_find(&v->switches, port->parent) == box->uplinks[k].sw)
			return k;
	return TOPO_NONE;
}

static int add_endpoints(struct live *v)
{
	struct topology *t = v->t;
	unsigned int i, a;

	t->endpoints = xcalloc(v->endpoints.n + 1, sizeof(*t->endpoints));
	t->nendpoints = v->endpoints.n;
	for (i = 0; i < t->nendpoints; i++) {
		const struct object *o = v->endpoints.v[i];
		struct topo_endpoint *ep = &t->endpoints[i];

		a = live_find(&v->appliances, o->parent);
		if (a == TOPO_NONE)
			return odd(v, o, "an endpoint of no appliance");
		if (!t->appliances[a].nendpoints++)
			t->appliances[a].first = i;
		if (t->appliances[a].nendpoints > TOPO_MAX_ENDPOINTS)
			return odd(v, v->appliances.v[a],
				   "it has more than 256 endpoints");
		set_name(ep->name, o->name);
		ep->class = o->kind >= TOPO_GPU && o->kind <= TOPO_FPGA ?
			    o->kind : TOPO_FPGA;
		ep->appliance = a;
		ep->number = i - t->appliances[a].first;
		ep->size = o->size;
		ep->uplink = uplink_of(v, a, o);
		if (ep->uplink == TOPO_NONE)
			return odd(v, o, "it sits behind no uplink of its appliance");
	}
	return 0;
}

static int add_bindings(struct live *v)
{
	struct topology *t = v->t;
	unsigned int i, h;

	t->bindings = xcalloc(v->endpoints.n + 1, sizeof(*t->bindings));
	for (i = 0; i < t->nendpoints; i++) {
		const struct object *o = v->endpoints.v[i];
		const struct object *port = model_get(v->c->model, o->bound);
		struct topo_end end;

		if (!o->bound)
			continue;
		if (!port || port->type != T_PORT)
			return odd(v, o, "it is bound to something unknown");
		end = live_end(v, port);
		if (t->switches[end.sw].ports[end.port - 1].kind !=
		    TOPO_PORT_HOST)
			return odd(v, o, "it is bound to a port of no host");
		h = t->switches[end.sw].ports[end.port - 1].owner;
		if (o->slot >= TOPO_FIRST_SLOT &&
		    o->slot < TOPO_FIRST_SLOT + TOPO_MAX_SLOTS &&
		    o->slot - TOPO_FIRST_SLOT + 1 > t->hosts[h].slots)
			t->hosts[h].slots = o->slot - TOPO_FIRST_SLOT + 1;
		t->bindings[t->nbindings++] = (struct topo_binding){
			.endpoint = i, .host = h,
			.port = t->switches[end.sw].ports[end.port - 1].index,
		};
	}
	return 0;
}

/* ---- what a file adds ---------------------------------------------------- */

static void take_mesh(struct live *v, const struct topology *file)
{
	unsigned int a, k;

	for (a = 0; a < v->t->nappliances; a++) {
		struct topo_appliance *to = &v->t->appliances[a];

		for (k = 0; k < file->nappliances; k++)
			if (!strcmp(file->appliances[k].name, to->name))
				break;
		if (k == file->nappliances) {
			live_note(&v->notes, "appliance \"%s\" is not in the "
			     "topology file; links inside it are not known",
			     to->name);
			continue;
		}
		memcpy(to->mesh_kind, file->appliances[k].mesh_kind,
		       sizeof(to->mesh_kind));
		to->mesh_gbps = file->appliances[k].mesh_gbps;
	}
}

/* A switch does not say of what model it is. */
static void take_models(struct live *v, const struct topology *file)
{
	unsigned int s, k;

	for (s = 0; s < v->t->nswitches; s++)
		for (k = 0; k < file->nswitches; k++)
			if (!strcmp(file->switches[k].name,
				    v->t->switches[s].name))
				v->t->switches[s].model =
					file->switches[k].model;
}

static int add_file(struct live *v, const char *path)
{
	struct topology *t = v->t, *file;
	unsigned int h, k;
	int r;

	if (!path)
		return 0;
	r = source_topology(v->c, path, &file);
	if (r)
		return r;
	t->link_gbps = file->link_gbps;
	t->root_complex_gbps = file->root_complex_gbps;
	t->limits = file->limits;
	take_mesh(v, file);
	take_models(v, file);
	for (h = 0; h < t->nhosts; h++) {
		k = topology_find_host(file, t->hosts[h].name);
		if (k != TOPO_NONE)
			t->hosts[h].p2p_root = file->hosts[k].p2p_root;
		if (k != TOPO_NONE && file->hosts[k].slots > t->hosts[h].slots)
			t->hosts[h].slots = file->hosts[k].slots;
	}
	topology_free(file);
	return 0;
}

const char *live_host(struct ctl *c)
{
	return c->model && c->model->nfports ? ctl_fport(c)->host : "";
}

int live_load(struct live *v, const char *file)
{
	const char *name;
	int r = ctl_load(v->c);

	if (r)
		return r;
	name = ctl_fport(v->c)->fabric;
	v->t = topology_new(*name ? name : "fabric");
	if (!v->t)
		return err_set(&v->c->err, ENOMEM, NULL, "out of memory");
	collect_all(v);
	r = add_switches(v);
	if (!r)
		r = add_isls(v);
	if (!r)
		r = add_hosts(v);
	if (!r)
		r = add_appliances(v);
	if (!r)
		r = add_endpoints(v);
	if (!r)
		r = add_bindings(v);
	return r ? r : add_file(v, file ? file : v->c->be->wiring);
}

int live_topology(struct ctl *c, const char *file, struct topology **t)
{
	struct live v = { .c = c };
	int r = ctl_open_any(c);

	if (r > 0)
		return err_set(&c->err, c->no_fabric_code, "live", "without a fabric there "
			       "is no wiring to write: %s; --format graph, nccl "
			       "or rccl has this machine's PCI tree",
			       c->no_fabric);
	if (!r)
		r = live_load(&v, file);

	if (!r) {
		*t = v.t;
		v.t = NULL;
	}
	live_forget(&v);
	return r;
}
