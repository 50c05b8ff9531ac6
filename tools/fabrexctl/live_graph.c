// SPDX-License-Identifier: GPL-2.0-only
/*
 * The part of the live fabric that works at this moment, as a graph. hardware.c
 * adds what this host's kernel knows. Called by source.c.
 */
#include <stdlib.h>
#include <string.h>

#include "fabric.h"
#include "graph.h"
#include "hardware.h"
#include "live.h"
#include "live_fabric.h"
#include "names.h"
#include "pcigraph.h"
#include "source.h"

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
			const struct topo_end e = live_end(v, v->ports.v[p]);

			if ((e.sw == l->a.sw && e.port == l->a.port) ||
			    (e.sw == l->b.sw && e.port == l->b.port))
				up &= is_up(v->ports.v[p]);
		}
		if (up)
			t->isls[n++] = *l;
		else
			live_note(&v->notes, "the link %s:%u - %s:%u is down; "
				  "left out", t->switches[l->a.sw].name,
				  l->a.port, t->switches[l->b.sw].name,
				  l->b.port);
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
		live_note(&v->notes, "%s is %s; left out", o->name,
		     state_name(T_ENDPOINT, o->state));
	else if (!is_up(port))
		live_note(&v->notes, "%s is bound to %s, which is %s; left out",
		     o->name, port->name, state_name(T_PORT, port->state));
	else if (!is_up(up))
		live_note(&v->notes, "%s sits behind %s, which is %s; left out",
		     o->name, up->name, state_name(T_PORT, up->state));
	else if (v->part[live_find(&v->switches, up->parent)] !=
		 v->part[live_find(&v->switches, port->parent)])
		live_note(&v->notes, "no link that is up leads from %s to %s; left "
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
			live_note(&v->notes, "%s is bound to %s, but this host's "
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
static void note_meshes(struct live *v, const struct fabrex_plan_graph *g,
			const char *file)
{
	const struct fabrex_plan_graph_attr attr = graph_attr(g);
	const struct topology *t = v->t;
	unsigned int *n = xcalloc(t->nappliances + 1, sizeof(*n)), i, boxes = 0;
	const char *first = NULL;
	uint32_t box;

	for (i = 0; i < attr.ranks; i++) {
		box = graph_rank(g, i).box;
		if (box < t->nappliances)
			n[box]++;
	}
	for (i = 0; i < attr.edges; i++) {
		const struct fabrex_plan_edge e = graph_edge(g, i);

		if (e.kind != FABREX_PLAN_XGMI && e.kind != FABREX_PLAN_NVLINK)
			continue;
		box = graph_node(g, e.from).box;
		if (box < t->nappliances)
			n[box] = 0;
	}
	for (i = 0; i < t->nappliances; i++)
		if (n[i] > 1 && !*t->appliances[i].mesh_kind && !boxes++)
			first = t->appliances[i].name;
	if (boxes && !file)
		live_note(&v->notes, "nothing here says which links join the GPUs "
		     "inside %s%s; --topology FILE does, with a mesh for it",
		     first, boxes > 1 ? " and others" : "");
	free(n);
}

/* Only a host itself has the addresses of its devices. */
static void note_addresses(struct live *v, const struct fabrex_plan_graph *g,
			   const char *host)
{
	const uint32_t n = graph_attr(g).ranks;
	uint32_t i;

	for (i = 0; i < n; i++)
		if (fabrex_plan_node_get(g, fabrex_plan_rank_node(g, i),
					 "pci.busid"))
			return;
	if (host)
		live_note(&v->notes, "bus ids of host %s's devices are not known "
		     "here, so a topology file with them is for looking at "
		     "only; export it on %s", host, host);
}

static int make_graph(struct live *v, const struct fabrex_plan_select *select,
		      const char *file, struct gpu *gpus,
		      struct fabrex_plan_graph **g)
{
	const char *host = select ? select->host : NULL;
	const struct fabrex_plan_select devices = {
		.devices = select ? select->devices : NULL,
	};
	size_t n = 0, i;
	int r;

	drop_isls(v);
	find_parts(v);
	drop_bindings(v, gpus, &n);
	r = check_host(v, host);
	if (r)
		return r;
	r = fabric_graph(v->t, host, g);
	if (!r) {
		hardware_add(*g, gpus, n);
		if (!graph_attr(*g).ranks)
			return nothing_composed(v, host);
		r = fabrex_plan_graph_select(*g, &devices, sizeof(devices));
	}
	if (r)
		return err_set(&v->c->err, -r, v->t->name, "%s: %s",
			       v->t->name, fabrex_plan_strerror_last());
	note_meshes(v, *g, file);
	note_addresses(v, *g, host);
	for (i = 0; i < v->notes.n; i++)
		graph_warn(*g, "%s", v->notes.v[i]);
	return 0;
}

/* ---- without a fabric ---------------------------------------------------- */

/* Those of @file, else those of topology files without them. */
static int read_capacity(struct ctl *c, const char *file,
			 struct pci_capacity *capacity)
{
	struct topology *t = NULL;
	int r = 0;

	if (file)
		r = source_topology(c, file, &t);
	else
		t = topology_new("defaults");
	if (r)
		return r;
	if (!t)
		return err_set(&c->err, ENOMEM, NULL, "out of memory");
	*capacity = (struct pci_capacity){ t->link_gbps, t->root_complex_gbps };
	topology_free(t);
	return 0;
}

static int machine_graph(struct ctl *c, const struct fabrex_plan_select *select,
			 const char *file, struct fabrex_plan_graph **g)
{
	struct fabrex_plan_select devices = {
		.devices = select ? select->devices : NULL,
	};
	struct fabrex_plan_graph *made = NULL;
	struct pci_capacity capacity;
	int r;

	if (select && select->host)
		return err_set(&c->err, ENOENT, select->host, "there is no host "
			       "%s: without a fabric there is only this machine "
			       "(%s); leave --host out", select->host,
			       c->no_fabric);
	r = read_capacity(c, file, &capacity);
	if (!r)
		r = pci_graph(c, &capacity, &made);
	if (!r && fabrex_plan_graph_select(made, &devices, sizeof(devices))) {
		r = err_set(&c->err, EINVAL, "live", "%s",
			    fabrex_plan_strerror_last());
		fabrex_plan_graph_free(made);
	}
	if (!r)
		*g = made;
	return r;
}

int live_graph(struct ctl *c, const struct fabrex_plan_select *select,
	       const char *file, struct fabrex_plan_graph **g)
{
	struct fabrex_plan_graph *made = NULL;
	struct live v = { .c = c };
	struct gpu *gpus;
	int r = ctl_open_any(c);

	if (r > 0)
		return machine_graph(c, select, file, g);
	if (!r)
		r = live_load(&v, file);

	if (!r) {
		gpus = xcalloc(v.t->nbindings + 1, sizeof(*gpus));
		r = make_graph(&v, select, file, gpus, &made);
		free(gpus);
	}
	if (r)
		fabrex_plan_graph_free(made);
	else
		*g = made;
	live_forget(&v);
	return r;
}
