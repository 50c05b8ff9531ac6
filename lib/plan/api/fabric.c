// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Fabrics that are described by calls instead of a topology file. What is added
 * is checked as the parser of such files does; plan/input/wiring.c makes a graph
 * of it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/api/api.h"
#include "plan/read.h"
#include "topology/pcie.h"
#include "topology/topology.h"

struct fabrex_plan_fabric {
	struct topology *t;
};

#define PORTS_MAX	TOPO_MAX_SWITCH_PORTS	/* of one host */

/* ---- names and room ------------------------------------------------------- */

static bool is_taken(const struct topology *t, const char *name)
{
	unsigned int i;

	for (i = 0; i < t->nswitches; i++)
		if (!strcmp(t->switches[i].name, name))
			return true;
	for (i = 0; i < t->nappliances; i++)
		if (!strcmp(t->appliances[i].name, name))
			return true;
	return topology_find_host(t, name) != TOPO_NONE ||
	       topology_find_endpoint(t, name) != TOPO_NONE;
}

static int set_name(const struct topology *t, char to[TOPO_NAME_LEN],
		    const char *name)
{
	if (!name || !*name || strlen(name) >= TOPO_NAME_LEN)
		return api_fail(EINVAL, "%s: \"%.80s\" is no name of a part; use 1 to %d characters",
				t->name, name ? name : "", TOPO_NAME_LEN - 1);
	if (is_taken(t, name))
		return api_fail(EEXIST, "%s: there are two parts named %s; names are unique",
				t->name, name);
	strcpy(to, name);
	return 0;
}

/* Room for one more of @size behind @n of them, all of them 0. */
static void *add(void **array, unsigned int n, size_t size)
{
	char *p = realloc(*array, ((size_t)n + 1) * size);

	if (!p) {
		api_fail(ENOMEM, "out of memory");
		return NULL;
	}
	*array = p;
	memset(p + (size_t)n * size, 0, size);
	return p + (size_t)n * size;
}

#define ADD(array, n) add((void **)&(array), (n), sizeof(*(array)))

/* ---- ports ---------------------------------------------------------------- */

static int check_port(const struct topology *t, const char *of,
		      const struct fabrex_plan_port *p)
{
	const struct topo_switch *s;

	if (p->sw >= t->nswitches)
		return api_fail(EINVAL, "%s: there is no switch %u; add switches first",
				of, p->sw);
	s = &t->switches[p->sw];
	if (!p->port || p->port > s->nports)
		return api_fail(EINVAL, "%s: switch %s has no port %u; its ports are 1 to %u",
				of, s->name, p->port, s->nports);
	if (s->ports[p->port - 1].kind != TOPO_PORT_UNUSED)
		return api_fail(EINVAL, "%s: port %s:%u has a cable already; use another one",
				of, s->name, p->port);
	if ((p->speed || p->width) &&
	    !pcie_rate((p->speed ? p->speed : s->speed * 1000) / 1000.0,
		       p->width ? p->width : s->width))
		return api_fail(EINVAL, "%s: port %s:%u: there is no link of %u MT/s x%u; leave both 0 if they are not known",
				of, s->name, p->port, p->speed, p->width);
	return 0;
}

/* Copies of @n ports of the caller's, each of them good and named once. */
static int copy_ports(const struct topology *t, const char *of,
		      const struct fabrex_plan_port *ports, uint32_t n,
		      size_t size, struct fabrex_plan_port *out)
{
	uint32_t i, k;
	int err = 0;

	for (i = 0; !err && i < n; i++) {
		err = api_copy_in("port", &out[i], sizeof(*out),
				  (const char *)ports + i * size, size);
		if (!err)
			err = check_port(t, of, &out[i]);
		for (k = 0; !err && k < i; k++)
			if (out[k].sw == out[i].sw &&
			    out[k].port == out[i].port)
				err = api_fail(EINVAL, "%s: port %s:%u is named twice; name each once",
					       of, t->switches[out[i].sw].name,
					       out[i].port);
	}
	return err;
}

static struct topo_end take_port(struct topology *t,
				 const struct fabrex_plan_port *p,
				 enum topo_port_kind kind, unsigned int owner,
				 unsigned int index)
{
	t->switches[p->sw].ports[p->port - 1] = (struct topo_port){
		.kind = kind, .owner = owner, .index = index,
		.speed = p->speed, .width = p->width,
	};
	return (struct topo_end){ p->sw, p->port };
}

/* ---- the public functions ------------------------------------------------- */

EXPORT int fabrex_plan_fabric_create(const struct fabrex_plan_fabric_attr *attr,
				     size_t size,
				     struct fabrex_plan_fabric **fabric)
{
	struct fabrex_plan_fabric_attr a;
	struct fabrex_plan_fabric *f;
	int err = api_copy_in("fabric", &a, sizeof(a), attr, size);

	if (err)
		return err;
	if (a.reserved[0] || a.reserved[1])
		return api_fail(EINVAL, "fabric: reserved fields are not 0; clear the structure");
	if (!a.name || !*a.name || strlen(a.name) >= TOPO_NAME_LEN)
		return api_fail(EINVAL, "\"%.80s\" names no fabric; use 1 to %d characters",
				a.name ? a.name : "", TOPO_NAME_LEN - 1);
	f = malloc(sizeof(*f));
	if (f)
		f->t = topology_new(a.name);
	if (!f || !f->t) {
		free(f);
		return api_fail(ENOMEM, "out of memory");
	}
	f->t->link_gbps = a.link / 1000.0;
	f->t->root_complex_gbps = a.root_complex / 1000.0;
	*fabric = f;
	return 0;
}

EXPORT void fabrex_plan_fabric_free(struct fabrex_plan_fabric *fabric)
{
	if (fabric)
		topology_free(fabric->t);
	free(fabric);
}

EXPORT int fabrex_plan_fabric_switch(struct fabrex_plan_fabric *fabric,
				     const char *name, uint32_t ports,
				     uint32_t speed, uint32_t width)
{
	struct topology *t = fabric->t;
	char copy[TOPO_NAME_LEN];
	struct topo_switch *s;
	int err = set_name(t, copy, name);

	if (err)
		return err;
	if (t->nswitches == TOPO_MAX_SWITCHES)
		return api_fail(E2BIG, "%s: more than %d switches", t->name,
				TOPO_MAX_SWITCHES);
	if (!ports || ports > TOPO_MAX_SWITCH_PORTS || !pcie_rate(speed, width))
		return api_fail(EINVAL, "switch %s: %u ports of %u GT/s x%u; give 1 to %d ports of a PCIe speed and width",
				name, ports, speed, width,
				TOPO_MAX_SWITCH_PORTS);
	s = ADD(t->switches, t->nswitches);
	if (!s)
		return -ENOMEM;
	s->ports = calloc(ports, sizeof(*s->ports));
	if (!s->ports)
		return api_fail(ENOMEM, "out of memory");
	strcpy(s->name, copy);
	s->nports = ports;
	s->speed = speed;
	s->width = width;
	return (int)t->nswitches++;
}

EXPORT int fabrex_plan_fabric_isl(struct fabrex_plan_fabric *fabric,
				  const struct fabrex_plan_port ends[2],
				  size_t size)
{
	struct topology *t = fabric->t;
	struct fabrex_plan_port p[2];
	struct topo_isl *isl;
	int err = copy_ports(t, "ISL", ends, 2, size, p);

	if (err)
		return err;
	if (p[0].sw == p[1].sw)
		return api_fail(EINVAL, "ISL: both ends are at switch %s; join two switches",
				t->switches[p[0].sw].name);
	isl = ADD(t->isls, t->nisls);
	if (!isl)
		return -ENOMEM;
	isl->a = take_port(t, &p[0], TOPO_PORT_ISL, t->nisls, 0);
	isl->b = take_port(t, &p[1], TOPO_PORT_ISL, t->nisls, 1);
	return (int)t->nisls++;
}

EXPORT int fabrex_plan_fabric_host(struct fabrex_plan_fabric *fabric,
				   const char *name, uint32_t flags,
				   const struct fabrex_plan_port *ports,
				   uint32_t n, size_t size)
{
	struct topology *t = fabric->t;
	struct fabrex_plan_port p[PORTS_MAX];
	char copy[TOPO_NAME_LEN];
	struct topo_host *h;
	int err = set_name(t, copy, name);
	uint32_t i;

	if (err)
		return err;
	if ((flags & ~FABREX_PLAN_NO_ROOT_P2P) || n > PORTS_MAX ||
	    topology_host_ports(t) + n > TOPO_MAX_HOST_PORTS)
		return api_fail(EINVAL, "host %s: flags 0x%x, %u ports; use known flags and %d ports at most, %d in the fabric",
				name, flags, n, PORTS_MAX, TOPO_MAX_HOST_PORTS);
	err = copy_ports(t, name, ports, n, size, p);
	if (err)
		return err;
	h = ADD(t->hosts, t->nhosts);
	if (!h)
		return -ENOMEM;
	h->ports = calloc(n + 1, sizeof(*h->ports));
	if (!h->ports)
		return api_fail(ENOMEM, "out of memory");
	strcpy(h->name, copy);
	h->p2p_root = !(flags & FABREX_PLAN_NO_ROOT_P2P);
	h->slots = TOPO_MAX_SLOTS;
	h->nports = n;
	for (i = 0; i < n; i++)
		h->ports[i] = take_port(t, &p[i], TOPO_PORT_HOST, t->nhosts, i);
	return (int)t->nhosts++;
}

static bool is_mesh(const char *word)
{
	return !strcmp(word, "xgmi") || !strcmp(word, "nvlink") ||
	       !strcmp(word, "pcie");
}

EXPORT int fabrex_plan_fabric_appliance(struct fabrex_plan_fabric *fabric,
					const char *name, uint32_t flags,
					const struct fabrex_plan_port *uplinks,
					uint32_t n, size_t size,
					const char *mesh,
					uint64_t mesh_capacity)
{
	struct topology *t = fabric->t;
	struct fabrex_plan_port p[TOPO_MAX_UPLINKS];
	char copy[TOPO_NAME_LEN];
	struct topo_appliance *a;
	int err = set_name(t, copy, name);
	uint32_t i;

	if (err)
		return err;
	if ((flags & ~FABREX_PLAN_FLAT) || n > TOPO_MAX_UPLINKS)
		return api_fail(EINVAL, "appliance %s: flags 0x%x, %u uplinks; use known flags and %d uplinks at most",
				name, flags, n, TOPO_MAX_UPLINKS);
	if (mesh && (!is_mesh(mesh) || !mesh_capacity))
		return api_fail(EINVAL, "appliance %s: a mesh of \"%.20s\" links, %llu MB/s each; use xgmi, nvlink or pcie and a capacity",
				name, mesh, (unsigned long long)mesh_capacity);
	err = copy_ports(t, name, uplinks, n, size, p);
	if (err)
		return err;
	a = ADD(t->appliances, t->nappliances);
	if (!a)
		return -ENOMEM;
	strcpy(a->name, copy);
	a->kind = flags & FABREX_PLAN_FLAT ? TOPO_FLAT : TOPO_CASCADE;
	a->first = t->nendpoints;
	a->nuplinks = n;
	strcpy(a->mesh_kind, mesh ? mesh : "");
	a->mesh_gbps = mesh_capacity / 1000.0;
	for (i = 0; i < n; i++)
		a->uplinks[i] = take_port(t, &p[i], TOPO_PORT_UPLINK,
					  t->nappliances, i);
	return (int)t->nappliances++;
}

static int check_gpu(const struct topology *t, const struct fabrex_plan_gpu *g)
{
	const struct topo_appliance *a;

	if (g->reserved[0] || g->reserved[1])
		return api_fail(EINVAL, "%s: reserved fields are not 0; clear the structure",
				g->name);
	if (g->appliance >= t->nappliances)
		return api_fail(EINVAL, "%s: there is no appliance %u; add appliances first",
				g->name, g->appliance);
	a = &t->appliances[g->appliance];
	if (a->nendpoints && a->first + a->nendpoints != t->nendpoints)
		return api_fail(EINVAL, "%s: GPUs of another appliance came after those of %s; add all of one, then all of the next",
				g->name, a->name);
	if (a->nendpoints == TOPO_MAX_ENDPOINTS)
		return api_fail(E2BIG, "%s: more than %d GPUs in %s", g->name,
				TOPO_MAX_ENDPOINTS, a->name);
	if (g->uplink >= a->nuplinks)
		return api_fail(EINVAL, "%s: %s has no uplink %u; it has %u, counted from 0",
				g->name, a->name, g->uplink, a->nuplinks);
	if (g->host == FABREX_PLAN_NONE)
		return 0;
	if (g->host >= t->nhosts || g->host_port >= t->hosts[g->host].nports)
		return api_fail(EINVAL, "%s: there is no port %u of host %u; add hosts first",
				g->name, g->host_port, g->host);
	return 0;
}

EXPORT int fabrex_plan_fabric_gpu(struct fabrex_plan_fabric *fabric,
				  const struct fabrex_plan_gpu *gpu,
				  size_t size)
{
	struct topology *t = fabric->t;
	struct topo_appliance *a;
	struct topo_endpoint *ep;
	struct topo_binding *b;
	struct fabrex_plan_gpu g;
	char copy[TOPO_NAME_LEN];
	int err = api_copy_in("GPU", &g, sizeof(g), gpu, size);

	if (!err)
		err = set_name(t, copy, g.name);
	if (!err)
		err = check_gpu(t, &g);
	if (err)
		return err;
	ep = ADD(t->endpoints, t->nendpoints);
	b = ep ? ADD(t->bindings, t->nbindings) : NULL;
	if (!b)
		return -ENOMEM;
	a = &t->appliances[g.appliance];
	if (!a->nendpoints)
		a->first = t->nendpoints;
	strcpy(ep->name, copy);
	ep->class = TOPO_GPU;
	ep->appliance = g.appliance;
	ep->number = a->nendpoints++;
	ep->uplink = g.uplink;
	if (g.host != FABREX_PLAN_NONE) {
		*b = (struct topo_binding){ t->nendpoints, g.host,
					    g.host_port };
		t->nbindings++;
	}
	return (int)t->nendpoints++;
}

EXPORT int fabrex_plan_fabric_graph(const struct fabrex_plan_fabric *fabric,
				    const struct fabrex_plan_select *select,
				    size_t size,
				    struct fabrex_plan_graph **graph)
{
	struct fabrex_plan_select s;
	struct plan_error e = { 0 };
	int err = api_select(select, size, &s);

	if (err)
		return err;
	return api_graph(plan_graph_from_topology(fabric->t,
				&(struct plan_select){ s.host, s.devices },
				&e), &e, graph);
}
