// SPDX-License-Identifier: GPL-2.0-only
/* See fabric.h. */
#include <math.h>
#include <stdlib.h>

#include "fabric.h"
#include "util.h"

static uint64_t mbps(double gbps)
{
	return (uint64_t)llround(gbps * 1000);
}

/* Ends of cables as the planner has them, to be freed. */
static struct fabrex_plan_port *ports_of(const struct topology *t,
					 const struct topo_end *ends,
					 unsigned int n)
{
	struct fabrex_plan_port *ports = xcalloc(n, sizeof(*ports));
	unsigned int i;

	for (i = 0; i < n; i++) {
		const struct topo_port *p =
			&t->switches[ends[i].sw].ports[ends[i].port - 1];

		ports[i] = (struct fabrex_plan_port){
			.sw = ends[i].sw, .port = ends[i].port,
			.speed = p->speed, .width = p->width,
		};
	}
	return ports;
}

static int add_switches(struct fabrex_plan_fabric *f, const struct topology *t)
{
	unsigned int i;
	int r = 0;

	for (i = 0; r >= 0 && i < t->nswitches; i++)
		r = fabrex_plan_fabric_switch(f, t->switches[i].name,
					      t->switches[i].nports,
					      t->switches[i].speed,
					      t->switches[i].width);
	for (i = 0; r >= 0 && i < t->nisls; i++) {
		const struct topo_end ends[] = { t->isls[i].a, t->isls[i].b };
		struct fabrex_plan_port *ports;

		if (ends[0].sw == ends[1].sw)
			continue;	/* it leads nowhere */
		ports = ports_of(t, ends, 2);
		r = fabrex_plan_fabric_isl(f, ports, sizeof(*ports));
		free(ports);
	}
	return r;
}

static int add_hosts(struct fabrex_plan_fabric *f, const struct topology *t)
{
	unsigned int i;
	int r = 0;

	for (i = 0; r >= 0 && i < t->nhosts; i++) {
		const struct topo_host *h = &t->hosts[i];
		struct fabrex_plan_port *ports = ports_of(t, h->ports,
							  h->nports);

		r = fabrex_plan_fabric_host(f, h->name, h->p2p_root ? 0 :
					    FABREX_PLAN_NO_ROOT_P2P, ports,
					    h->nports, sizeof(*ports));
		free(ports);
	}
	return r;
}

static int add_appliances(struct fabrex_plan_fabric *f,
			  const struct topology *t)
{
	unsigned int i;
	int r = 0;

	for (i = 0; r >= 0 && i < t->nappliances; i++) {
		const struct topo_appliance *a = &t->appliances[i];
		struct fabrex_plan_port *ports = ports_of(t, a->uplinks,
							  a->nuplinks);

		r = fabrex_plan_fabric_appliance(f, a->name,
				a->kind == TOPO_FLAT ? FABREX_PLAN_FLAT : 0,
				ports, a->nuplinks, sizeof(*ports),
				*a->mesh_kind ? a->mesh_kind : NULL,
				mbps(a->mesh_gbps));
		free(ports);
	}
	return r;
}

static int add_gpus(struct fabrex_plan_fabric *f, const struct topology *t)
{
	unsigned int i, k;
	int r = 0;

	for (i = 0; r >= 0 && i < t->nendpoints; i++) {
		const struct topo_endpoint *ep = &t->endpoints[i];
		struct fabrex_plan_gpu gpu = {
			.name = ep->name, .appliance = ep->appliance,
			.uplink = ep->uplink, .host = FABREX_PLAN_NONE,
		};

		if (ep->class != TOPO_GPU)
			continue;
		for (k = 0; k < t->nbindings; k++)
			if (t->bindings[k].endpoint == i) {
				gpu.host = t->bindings[k].host;
				gpu.host_port = t->bindings[k].port;
			}
		r = fabrex_plan_fabric_gpu(f, &gpu, sizeof(gpu));
	}
	return r;
}

int fabric_graph(const struct topology *t, const char *host,
		 struct fabrex_plan_graph **g)
{
	const struct fabrex_plan_fabric_attr attr = {
		.name = t->name, .link = mbps(t->link_gbps),
		.root_complex = mbps(t->root_complex_gbps),
	};
	const struct fabrex_plan_select select = { .host = host };
	struct fabrex_plan_fabric *f;
	int r = fabrex_plan_fabric_create(&attr, sizeof(attr), &f);

	if (r)
		return r;
	r = add_switches(f, t);
	if (r >= 0)
		r = add_hosts(f, t);
	if (r >= 0)
		r = add_appliances(f, t);
	if (r >= 0)
		r = add_gpus(f, t);
	if (r >= 0)
		r = fabrex_plan_fabric_graph(f, &select, sizeof(select), g);
	fabrex_plan_fabric_free(f);
	return r;
}
