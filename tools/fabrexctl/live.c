// SPDX-License-Identifier: GPL-2.0-only
/*
 * From the fabric's objects to a topology, and from there to a graph of what
 * works at this moment. hardware.c adds what this host's kernel knows.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "hardware.h"
#include "live.h"
#include "names.h"
#include "source.h"
#include "topology/topology.h"

/* Objects of one type, by id: the index is that in struct topology. */
struct list {
	const struct object **v;
	unsigned int n;
};

/* What is said of the fabric once there is a graph to say it of. */
struct notes {
	char **v;
	size_t n;
};

struct live {
	struct ctl *c;
	struct list switches, hosts, appliances, endpoints, ports;
	struct topology *t;
	struct notes notes;
	unsigned int *part;	/* of each switch: those with one are joined */
};

static __attribute__((format(printf, 2, 3))) void
note(struct notes *n, const char *fmt, ...)
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
static unsigned int find_id(const struct list *l, uint32_t id)
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

static void forget(struct live *v)
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

		s = find_id(&v->switches, o->parent);
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
		if (!plan_pcie_capacity(sw->speed, sw->width)) {
			sw->speed = 16;
			sw->width = 16;
		}
	}
	return t->nswitches ? 0 : err_set(&v->c->err, ENODEV, NULL,
					  "the fabric has no switches");
}

static struct topo_end end_of(const struct live *v, const struct object *port)
{
	return (struct topo_end){ find_id(&v->switches, port->parent),
				  port->number };
}

/* Two ports with one number would make one of them a lie. */
static int take_port(struct live *v, const struct object *o,
		     enum topo_port_kind kind, unsigned int owner,
		     unsigned int index)
{
	const struct topo_end end = end_of(v, o);
	struct topo_port *p = &v->t->switches[end.sw].ports[end.port - 1];

	if (p->kind != TOPO_PORT_UNUSED)
		return odd(v, o, "another port has its number");
	*p = (struct topo_port){ .kind = kind, .owner = owner,
				 .index = index };
	if (plan_pcie_capacity(o->speed / 1000.0, o->width)) {
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
		t->isls[t->nisls] = (struct topo_isl){ end_of(v, a),
						       end_of(v, b) };
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
		to->ports[nth] = end_of(v, v->ports.v[i]);
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
		to->uplinks[k] = end_of(v, up[k]);
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
		    find_id(&v->switches, port->parent) == box->uplinks[k].sw)
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

		a = find_id(&v->appliances, o->parent);
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
		end = end_of(v, port);
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
			note(&v->notes, "appliance \"%s\" is not in the "
			     "topology file; links inside it are not known",
			     to->name);
			continue;
		}
		memcpy(to->mesh_kind, file->appliances[k].mesh_kind,
		       sizeof(to->mesh_kind));
		to->mesh_gbps = file->appliances[k].mesh_gbps;
	}
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

static int load(struct live *v, const char *file)
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
	return r ? r : add_file(v, file);
}

int live_topology(struct ctl *c, const char *file, struct topology **t)
{
	struct live v = { .c = c };
	int r = load(&v, file);

	if (!r) {
		*t = v.t;
		v.t = NULL;
	}
	forget(&v);
	return r;
}

/* ---- what works now ------------------------------------------------------ */

static bool is_up(const struct object *port)
{
	return port && port->state == FABREX_LINK_STATE_UP;
}

static void drop_isls(struct live *v)
{
	struct topology *t = v->t;
	unsigned int i, p, n = 0;

	for (i = 0; i < t->nisls; i++) {
		const struct topo_isl *l = &t->isls[i];
		bool up = true;

		for (p = 0; p < v->ports.n; p++) {
			const struct topo_end e = end_of(v, v->ports.v[p]);

			if ((e.sw == l->a.sw && e.port == l->a.port) ||
			    (e.sw == l->b.sw && e.port == l->b.port))
				up &= is_up(v->ports.v[p]);
		}
		if (up)
			t->isls[n++] = *l;
		else
			note(&v->notes, "the link %s:%u - %s:%u is down; left "
			     "out", t->switches[l->a.sw].name, l->a.port,
			     t->switches[l->b.sw].name, l->b.port);
	}
	t->nisls = n;
}

/* Which switches are joined by links that are up. */
static void find_parts(struct live *v)
{
	const struct topology *t = v->t;
	unsigned int i, a, b;
	bool more = true;

	v->part = xcalloc(t->nswitches, sizeof(*v->part));
	for (i = 0; i < t->nswitches; i++)
		v->part[i] = i;
	while (more) {
		more = false;
		for (i = 0; i < t->nisls; i++) {
			a = v->part[t->isls[i].a.sw];
			b = v->part[t->isls[i].b.sw];
			if (a == b)
				continue;
			v->part[t->isls[i].a.sw] = a < b ? a : b;
			v->part[t->isls[i].b.sw] = a < b ? a : b;
			more = true;
		}
	}
}

/* Its address, if this host's kernel has it; else a note why not. */
static bool local_device(struct live *v, const struct object *o,
			 const struct fport *fp, struct gpu *gpu)
{
	struct object now = *o;
	struct err ignored = { 0 };

	if (!*now.pci_name)
		ctl_ask_port(v->c, fp->index, o->id, &now, &ignored);
	snprintf(gpu->name, sizeof(gpu->name), "%s", o->name);
	snprintf(gpu->pci, sizeof(gpu->pci), "%s", now.pci_name);
	return hardware_is_gpu(gpu->pci, now.pci_vendor);
}

/* Return: whether the endpoint of a binding can be reached. */
static bool is_usable(struct live *v, const struct object *o)
{
	const struct object *port = model_get(v->c->model, o->bound);
	const struct object *up = model_get(v->c->model, o->link);

	if (o->state != FABREX_ENDPOINT_STATE_BOUND)
		note(&v->notes, "%s is %s; left out", o->name,
		     state_name(T_ENDPOINT, o->state));
	else if (!is_up(port))
		note(&v->notes, "%s is bound to %s, which is %s; left out",
		     o->name, port->name, state_name(T_PORT, port->state));
	else if (!is_up(up))
		note(&v->notes, "%s sits behind %s, which is %s; left out",
		     o->name, up->name, state_name(T_PORT, up->state));
	else if (v->part[find_id(&v->switches, up->parent)] !=
		 v->part[find_id(&v->switches, port->parent)])
		note(&v->notes, "no link that is up leads from %s to %s; left "
		     "out", o->name, port->name);
	else
		return true;
	return false;
}

/* The link that leads to its box, as the fabric has it. */
static void fabric_link(const struct live *v, const struct object *o,
			struct gpu *gpu)
{
	const struct object *up = model_get(v->c->model, o->link);

	gpu->speed = up->speed / 1000.0;
	gpu->width = o->width && o->width < up->width ? o->width : up->width;
}

/* Bindings of GPUs that can be planned for stay; @gpus: those of this host. */
static void drop_bindings(struct live *v, struct gpu *gpus, size_t *ngpus)
{
	struct topology *t = v->t;
	unsigned int i, n = 0;

	for (i = 0; i < t->nbindings; i++) {
		const struct topo_binding b = t->bindings[i];
		const struct object *o = v->endpoints.v[b.endpoint];
		const struct fport *fp = model_local(v->c->model, o->bound);
		struct gpu *gpu = &gpus[*ngpus];

		if (t->endpoints[b.endpoint].class != TOPO_GPU ||
		    !is_usable(v, o))
			continue;
		if (fp && !local_device(v, o, fp, gpu)) {
			note(&v->notes, "%s is bound to %s, but this host's "
			     "kernel has no PCI device for it; left out, see "
			     "dmesg about pciehp and slot %u", o->name,
			     fp->name, o->slot);
			continue;
		}
		if (fp) {
			fabric_link(v, o, gpu);
			++*ngpus;
		}
		t->bindings[n++] = b;
	}
	t->nbindings = n;
}

static int nothing_composed(struct live *v, const char *host)
{
	struct err *e = &v->c->err;
	size_t i;

	if (host)
		err_set(e, ENODEV, host, "no GPU is composed to host %s, so "
			"there is nothing to plan for; \"fabrexctl compose "
			"gpu:2 --to %s\" attaches two", host, host);
	else
		err_set(e, ENODEV, v->t->name, "no GPU is composed to any host, "
			"so there is nothing to plan for; \"fabrexctl compose "
			"gpu:2 --to HOST\" attaches two");
	for (i = 0; i < v->notes.n; i++)
		err_append(e, "%s%s", i ? "; " : " (", v->notes.v[i]);
	if (v->notes.n)
		err_append(e, ")");
	return -ENODEV;
}

static int check_host(struct live *v, const char *host)
{
	unsigned int i;

	if (host && !model_want(v->c->model, host, T_BIT(T_HOST), &v->c->err))
		return -v->c->err.code;
	for (i = 0; i < v->t->nbindings; i++)
		if (!host || !strcmp(v->t->hosts[v->t->bindings[i].host].name,
				     host))
			return 0;
	return nothing_composed(v, host);
}

/* Boxes of which several GPUs are here, and nothing joins those inside. */
static void note_meshes(struct live *v, const struct plan_graph *g,
			const char *file)
{
	const struct topology *t = v->t;
	unsigned int *n = xcalloc(t->nappliances + 1, sizeof(*n)), i, boxes = 0;
	const char *first = NULL;

	for (i = 0; i < g->nranks; i++)
		if (g->nodes[g->gpus[i]].box < t->nappliances)
			n[g->nodes[g->gpus[i]].box]++;
	for (i = 0; i < g->nedges; i++)
		if ((g->edges[i].kind == PLAN_XGMI ||
		     g->edges[i].kind == PLAN_NVLINK) &&
		    g->nodes[g->edges[i].from].box < t->nappliances)
			n[g->nodes[g->edges[i].from].box] = 0;
	for (i = 0; i < t->nappliances; i++)
		if (n[i] > 1 && !*t->appliances[i].mesh_kind && !boxes++)
			first = t->appliances[i].name;
	if (boxes && !file)
		note(&v->notes, "nothing here says which links join the GPUs "
		     "inside %s%s; --topology FILE does, with a mesh for it",
		     first, boxes > 1 ? " and others" : "");
	free(n);
}

/* Only a host itself has the addresses of its devices. */
static void note_addresses(struct live *v, const struct plan_graph *g,
			   const char *host)
{
	uint32_t i;

	for (i = 0; i < g->nranks; i++)
		if (plan_node_get(g, g->gpus[i], "pci.busid"))
			return;
	if (host)
		note(&v->notes, "bus ids of host %s's devices are not known "
		     "here, so a topology file with them is for looking at "
		     "only; export it on %s", host, host);
}

static int make_graph(struct live *v, const struct plan_select *select,
		      const char *file, struct plan_graph **out)
{
	const struct plan_select host = { select ? select->host : NULL, NULL };
	const struct plan_select devices = { NULL,
					     select ? select->devices : NULL };
	struct gpu *gpus = xcalloc(v->t->nbindings + 1, sizeof(*gpus));
	struct plan_error e = { 0 };
	struct plan_graph *g = NULL;
	size_t ngpus = 0, i;
	int r;

	drop_isls(v);
	find_parts(v);
	drop_bindings(v, gpus, &ngpus);
	r = check_host(v, host.host);
	if (!r)
		g = plan_graph_from_topology(v->t, &host, &e);
	if (g)
		hardware_add(g, gpus, ngpus);
	if (g && !g->nranks)
		r = nothing_composed(v, host.host);
	else if (g && !plan_graph_select(g, &devices, &e)) {
		note_meshes(v, g, file);
		note_addresses(v, g, host.host);
		for (i = 0; i < v->notes.n; i++)
			plan_graph_warn(g, "%s", v->notes.v[i]);
		*out = g;
		g = NULL;
	} else if (!r) {
		r = err_set(&v->c->err, e.code, v->t->name, "%s: %s",
			    v->t->name, e.text);
	}
	plan_graph_free(g);
	free(gpus);
	return r;
}

int live_graph(struct ctl *c, const struct plan_select *select,
	       const char *file, struct plan_graph **g)
{
	struct live v = { .c = c };
	int r = load(&v, file);

	if (!r)
		r = make_graph(&v, select, file, g);
	forget(&v);
	return r;
}
