// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Makes a graph of the wiring and the bindings in a struct topology. Called by
 * read.c and api/fabric.c.
 *
 * The graph is what hosts see, not how the cabinet is cabled: each host port has
 * its partition, and the capacity of what several partitions use (an uplink, a
 * link between switches) is divided among them, since bytes cannot change
 * partitions on their path. docs/graph-files.md has the rules.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/input/wiring.h"
#include "topology/pcie.h"

#define GEN4		16	/* GT/s; appliances are Gen4 x16 inside */
#define LANES		16

/* ---- what links carry ---------------------------------------------------- */

static uint64_t mbps(double gbps)
{
	return (uint64_t)llround(gbps * 1000);
}

/* A link of this speed and width, when Gen4 x16 is worth link_gbps. */
static uint64_t scaled(const struct wiring *w, double gt,
		       unsigned int width)
{
	uint64_t full = plan_pcie_capacity(GEN4, LANES);

	return (mbps(w->t->link_gbps) * plan_pcie_capacity(gt, width) +
		full / 2) / full;
}

static uint64_t inner_capacity(const struct wiring *w)
{
	return mbps(w->t->link_gbps);
}

static uint64_t switch_capacity(const struct wiring *w, unsigned int sw)
{
	const struct topo_switch *s = &w->t->switches[sw];

	return scaled(w, s->speed, s->width);
}

/* Of the link at a port: as it runs, if that is known. GT/s. */
static double port_speed(const struct wiring *w, const struct topo_end *end)
{
	const struct topo_switch *s = &w->t->switches[end->sw];
	unsigned int speed = s->ports[end->port - 1].speed;

	return speed ? speed / 1000.0 : s->speed;
}

static unsigned int port_width(const struct wiring *w,
			       const struct topo_end *end)
{
	const struct topo_switch *s = &w->t->switches[end->sw];
	unsigned int width = s->ports[end->port - 1].width;

	return width ? width : s->width;
}

static uint64_t port_capacity(const struct wiring *w,
			      const struct topo_end *end)
{
	return scaled(w, port_speed(w, end), port_width(w, end));
}

static unsigned int *users(const struct wiring *w, unsigned int a,
			   unsigned int b)
{
	return a < b ? &w->users[a * w->nsw + b] : &w->users[b * w->nsw + a];
}

static void add_trunks(struct wiring *w)
{
	unsigned int i;

	for (i = 0; i < w->t->nisls; i++) {
		const struct topo_isl *isl = &w->t->isls[i];
		unsigned int a = isl->a.sw, b = isl->b.sw;
		uint64_t x = port_capacity(w, &isl->a);
		uint64_t y = port_capacity(w, &isl->b);

		*trunk(w, a, b) += x < y ? x : y;
		*trunk(w, b, a) = *trunk(w, a, b);
	}
}

/* ---- nodes and links ----------------------------------------------------- */

/*
 * Adding is done by these two alone: after a failure the node is PLAN_NONE, and
 * what is added next to it fails, too, without another message.
 */
static uint32_t add_node(struct wiring *w, enum plan_node_kind kind,
			 const char *name, uint32_t box)
{
	int64_t n;

	if (w->e->code)
		return PLAN_NONE;
	n = plan_graph_add_node(w->g, kind, name, box, w->e);
	return n < 0 ? PLAN_NONE : (uint32_t)n;
}

static void add_link(struct wiring *w, uint32_t below, uint32_t above,
		     uint64_t capacity, enum plan_link_kind kind)
{
	if (!w->e->code)
		plan_graph_add_link(w->g, below, above, capacity,
				    plan_link_latency(kind), kind, w->e);
}

/* A link of the PCI tree. */
static void add_up(struct wiring *w, uint32_t below, uint32_t above,
		   uint64_t capacity, enum plan_link_kind kind)
{
	add_link(w, below, above, capacity, kind);
	if (!w->e->code)
		w->g->nodes[below].up = above;
}

static void set(struct wiring *w, uint32_t node, const char *key,
		const char *value)
{
	if (!w->e->code && value && plan_node_set(w->g, node, key, value))
		plan_fail(w->e, ENOMEM, "%s: out of memory",
			  w->g->nodes[node].name);
}

/* Speed and width of its link upwards, as sysfs would have them. */
static void set_speed(struct wiring *w, uint32_t node, double gt,
		      unsigned int width)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", width);
	set(w, node, "pci.link_speed", pcie_speed_name(gt));
	set(w, node, "pci.link_width", text);
}

static uint32_t server_box(const struct wiring *w, unsigned int host)
{
	unsigned int h, n = w->t->nappliances;

	for (h = 0; h < host; h++)
		n += w->hosts[h];
	return n;
}


/* ---- hosts and partitions ------------------------------------------------ */

static uint32_t *partition(const struct wiring *w, unsigned int p,
			   unsigned int sw)
{
	return &w->partitions[p * w->nsw + sw];
}

/*
 * Count who uses the links between switches: partitions on the paths of their
 * GPUs, whether planned for or not.
 */
static void use_trunks(struct wiring *w, bool *seen)
{
	unsigned int i, p, s;

	for (i = 0; i < w->t->nendpoints; i++) {
		p = w->bound[i];
		if (p == TOPO_NONE)
			continue;
		for (s = uplink_switch(w, i); s != w->ports[p].sw &&
		     !seen[p * w->nsw + s]; s = w->next[p * w->nsw + s]) {
			seen[p * w->nsw + s] = true;
			++*users(w, s, w->next[p * w->nsw + s]);
		}
	}
}

static void add_partition_node(struct wiring *w, unsigned int p,
			       unsigned int sw)
{
	const struct topo_host *h = &w->t->hosts[w->ports[p].host];
	const struct topo_end *end = &h->ports[w->ports[p].nth];
	const struct topo_switch *s = &w->t->switches[sw];
	char name[3 * TOPO_NAME_LEN];
	uint32_t node;

	snprintf(name, sizeof(name), "%s:%u%s%s",
		 w->t->switches[end->sw].name, end->port,
		 sw == end->sw ? "" : ":", sw == end->sw ? "" : s->name);
	node = add_node(w, PLAN_PARTITION, name, PLAN_NONE);
	*partition(w, p, sw) = node;
	set(w, node, "host", h->name);
	set(w, node, "draco", s->name);
	if (sw == end->sw)
		set_speed(w, node, port_speed(w, end), port_width(w, end));
	else
		set_speed(w, node, s->speed, s->width);
}

static void add_host(struct wiring *w, unsigned int host)
{
	const struct topo_host *h = &w->t->hosts[host];
	uint32_t box = server_box(w, host), port;
	char name[TOPO_NAME_LEN + 12];
	unsigned int p;

	w->root_complexes[host] = add_node(w, PLAN_ROOT_COMPLEX, h->name, box);
	set(w, w->root_complexes[host], "host", h->name);
	for (p = 0; p < w->nports; p++) {
		if (w->ports[p].host != host)
			continue;
		snprintf(name, sizeof(name), "%s.%u", h->name,
			 w->ports[p].nth);
		port = add_node(w, PLAN_ROOT_PORT, name, box);
		if (!w->e->code)
			w->g->nodes[port].up = w->root_complexes[host];
		if (h->p2p_root)
			add_link(w, port, w->root_complexes[host],
				 mbps(w->t->root_complex_gbps), PLAN_ROOT);
		add_partition_node(w, p, w->ports[p].sw);
		add_up(w, *partition(w, p, w->ports[p].sw), port,
		       port_capacity(w, &h->ports[w->ports[p].nth]),
		       PLAN_CABLE);
	}
}

/* The partition on this switch and all between it and its host port. */
static uint32_t reach_partition(struct wiring *w, unsigned int p,
				unsigned int sw)
{
	unsigned int s = sw, next;

	for (; !w->e->code && *partition(w, p, s) == PLAN_NONE; s = next) {
		next = w->next[p * w->nsw + s];
		add_partition_node(w, p, s);
	}
	for (s = sw; !w->e->code && s != w->ports[p].sw; s = next) {
		next = w->next[p * w->nsw + s];
		if (w->g->nodes[*partition(w, p, s)].up != PLAN_NONE)
			break;
		add_up(w, *partition(w, p, s), *partition(w, p, next),
		       *trunk(w, s, next) / *users(w, s, next), PLAN_ISL);
	}
	return *partition(w, p, sw);
}

static void warn_trunks(struct wiring *w)
{
	unsigned int a, b;

	for (a = 0; a < w->nsw; a++)
		for (b = a + 1; b < w->nsw; b++)
			if (*users(w, a, b) > 1)
				plan_graph_warn(w->g, "the links between %s and %s (%.10g GB/s) carry %u partitions, the NTBs counted as one; each is planned with the same share",
						w->t->switches[a].name,
						w->t->switches[b].name,
						(double)*trunk(w, a, b) / 1000,
						*users(w, a, b));
}

/* ---- appliances ---------------------------------------------------------- */

/* The GPUs behind an uplink. */
struct behind {
	unsigned int appliance, uplink;
	unsigned int n;			/* of them */
	unsigned int *endpoints;
	unsigned int bound[2];		/* on the first switch, on the second */
};

/*
 * A cascade has one switch at the uplink, another one behind it, and half of
 * the GPUs on each; flat has the first only.
 */
static bool on_second(const struct wiring *w, const struct behind *b,
		      unsigned int k)
{
	return w->t->appliances[b->appliance].kind == TOPO_CASCADE &&
	       k >= (b->n + 1) / 2;
}

static uint32_t add_box_switch(struct wiring *w, const struct behind *b,
			       unsigned int p, bool second, bool split)
{
	const struct topo_host *h = &w->t->hosts[w->ports[p].host];
	char name[3 * TOPO_NAME_LEN], whose[TOPO_NAME_LEN + 12] = "";
	uint32_t node;

	if (split)
		snprintf(whose, sizeof(whose), ":%s.%u", h->name,
			 w->ports[p].nth);
	snprintf(name, sizeof(name), "%s:up%u%s%s",
		 w->t->appliances[b->appliance].name, b->uplink,
		 second ? "b" : "", whose);
	node = add_node(w, PLAN_PCI_SWITCH, name, b->appliance);
	set(w, node, "host", h->name);
	return node;
}

/* What one partition has behind an uplink. */
static void add_piece(struct wiring *w, const struct behind *b, unsigned int p)
{
	const struct topo_end *end =
		&w->t->appliances[b->appliance].uplinks[b->uplink];
	unsigned int mine[2] = { 0, 0 }, k, all = b->bound[0] + b->bound[1];
	uint32_t sw[2] = { PLAN_NONE, PLAN_NONE }, gpu;
	bool split;

	for (k = 0; k < b->n; k++)
		mine[on_second(w, b, k)] += w->bound[b->endpoints[k]] == p;
	split = mine[0] + mine[1] < all;
	sw[0] = add_box_switch(w, b, p, false, split);
	set_speed(w, sw[0], port_speed(w, end), port_width(w, end));
	add_up(w, sw[0], reach_partition(w, p, end->sw),
	       port_capacity(w, end) * (mine[0] + mine[1]) / all,
	       PLAN_CABLE);
	if (mine[1]) {
		sw[1] = add_box_switch(w, b, p, true, split);
		set_speed(w, sw[1], GEN4, LANES);
		add_up(w, sw[1], sw[0],
		       inner_capacity(w) * mine[1] / b->bound[1], PLAN_PCIE);
	}
	for (k = 0; k < b->n; k++) {
		gpu = w->gpus[b->endpoints[k]];
		if (w->bound[b->endpoints[k]] == p)
			add_up(w, gpu, sw[on_second(w, b, k)],
			       inner_capacity(w), PLAN_PCIE);
	}
}

static bool first_of_its_port(const struct wiring *w, const struct behind *b,
			      unsigned int k)
{
	unsigned int i;

	for (i = 0; i < k; i++)
		if (w->bound[b->endpoints[i]] == w->bound[b->endpoints[k]])
			return false;
	return w->bound[b->endpoints[k]] != TOPO_NONE;
}

static void add_uplink(struct wiring *w, struct behind *b)
{
	const struct topo_appliance *a = &w->t->appliances[b->appliance];
	unsigned int k, partitions = 0, planned = 0;

	for (k = 0; k < b->n; k++)
		b->bound[on_second(w, b, k)] +=
			w->bound[b->endpoints[k]] != TOPO_NONE;
	for (k = 0; k < b->n; k++) {
		if (!first_of_its_port(w, b, k))
			continue;
		partitions++;
		if (w->hosts[w->ports[w->bound[b->endpoints[k]]].host]) {
			add_piece(w, b, w->bound[b->endpoints[k]]);
			planned++;
		}
	}
	if (planned && partitions > 1)
		plan_graph_warn(w->g, "appliance \"%s\": the GPUs behind uplink %s:%u are bound to %u host ports; each is planned with a share of the uplink by its number of GPUs",
				a->name,
				w->t->switches[a->uplinks[b->uplink].sw].name,
				a->uplinks[b->uplink].port, partitions);
}

static enum plan_link_kind mesh_kind(const char *word)
{
	return !strcmp(word, "xgmi") ? PLAN_XGMI :
	       !strcmp(word, "nvlink") ? PLAN_NVLINK : PLAN_PCIE;
}

/* Links inside the box join GPUs of one host: drivers know no others. */
static void add_mesh(struct wiring *w, const struct topo_appliance *a)
{
	unsigned int i, k, end = a->first + a->nendpoints;

	for (i = a->first; i < end; i++)
		for (k = i + 1; k < end; k++)
			if (w->gpus[i] != PLAN_NONE &&
			    w->gpus[k] != PLAN_NONE &&
			    w->ports[w->bound[i]].host ==
			    w->ports[w->bound[k]].host)
				add_link(w, w->gpus[i], w->gpus[k],
					 mbps(a->mesh_gbps),
					 mesh_kind(a->mesh_kind));
}

static void add_appliance(struct wiring *w, unsigned int i)
{
	const struct topo_appliance *a = &w->t->appliances[i];
	unsigned int endpoints[TOPO_MAX_ENDPOINTS], u, k;

	if (*a->mesh_kind)
		add_mesh(w, a);
	for (u = 0; u < a->nuplinks && !w->e->code; u++) {
		struct behind b = { i, u, 0, endpoints, { 0, 0 } };

		for (k = a->first; k < a->first + a->nendpoints; k++)
			if (is_gpu(w, k) && w->t->endpoints[k].uplink == u)
				endpoints[b.n++] = k;
		add_uplink(w, &b);
	}
}

/* Ranks: host by host, as the file lists the GPUs. */
static void add_gpus(struct wiring *w)
{
	unsigned int h, i;

	for (h = 0; h < w->t->nhosts; h++)
		for (i = 0; w->hosts[h] && i < w->t->nendpoints; i++) {
			const struct topo_endpoint *ep = &w->t->endpoints[i];

			if (w->bound[i] == TOPO_NONE ||
			    w->ports[w->bound[i]].host != h)
				continue;
			w->gpus[i] = add_node(w, PLAN_GPU, ep->name,
					      ep->appliance);
			set(w, w->gpus[i], "host", w->t->hosts[h].name);
			set_speed(w, w->gpus[i], GEN4, LANES);
		}
}

/* ---- between hosts ------------------------------------------------------- */

/*
 * A host's first port on this switch: its NTB serves the host. Partitions of
 * the same host are not joined by it: peer-to-peer within a host uses the
 * host's own addresses, and those lead over its root complex.
 */
static unsigned int first_port(const struct wiring *w, unsigned int host,
			       unsigned int sw)
{
	unsigned int p;

	for (p = 0; p < w->nports; p++)
		if (w->ports[p].host == host && w->ports[p].sw == sw)
			return p;
	return TOPO_NONE;
}

static unsigned int hosts_at(const struct wiring *w, unsigned int sw)
{
	unsigned int h, n = 0;

	for (h = 0; h < w->t->nhosts; h++)
		n += w->hosts[h] && first_port(w, h, sw) != TOPO_NONE;
	return n;
}

/* Switches where an NTB joins something: what has only one way out does not. */
static void choose_ntbs(const struct wiring *w, bool *use)
{
	unsigned int s, r, ways, hosts[TOPO_MAX_SWITCHES];
	bool more = true;

	for (s = 0; s < w->nsw; s++) {
		use[s] = true;
		hosts[s] = hosts_at(w, s);
	}
	while (more) {
		more = false;
		for (s = 0; s < w->nsw; s++) {
			ways = hosts[s];
			for (r = 0; r < w->nsw; r++)
				ways += use[r] && *trunk(w, s, r);
			if (use[s] && ways < 2) {
				use[s] = false;
				more = true;
			}
		}
	}
}

/*
 * The crossbar carries all that the links of a partition bring: between two
 * partitions there is no link, and the NTB never limits a transfer.
 */
static void join_hosts(struct wiring *w, unsigned int sw)
{
	uint64_t crossbar = switch_capacity(w, sw) * w->t->switches[sw].nports;
	unsigned int h, p;

	for (h = 0; h < w->t->nhosts; h++) {
		p = w->hosts[h] ? first_port(w, h, sw) : TOPO_NONE;
		if (p != TOPO_NONE)
			add_link(w, *partition(w, p, sw), w->ntbs[sw],
				 crossbar, PLAN_PCIE);
	}
}

static void warn_ntbs(struct wiring *w)
{
	unsigned int h, s, n;

	for (h = 0; h < w->t->nhosts; h++) {
		for (n = 0, s = 0; w->hosts[h] && s < w->nsw; s++)
			n += w->ntbs[s] != PLAN_NONE &&
			     first_port(w, h, s) != TOPO_NONE;
		if (n > 1)
			plan_graph_warn(w->g, "host \"%s\" reaches other hosts by the NTBs of %u switches; a path from one of its partitions to another may lead over them",
					w->t->hosts[h].name, n);
	}
}

static void plan_ntbs(struct wiring *w, const bool *use)
{
	unsigned int a, b;

	for (a = 0; a < w->nsw; a++)
		for (b = a + 1; b < w->nsw; b++)
			if (use[a] && use[b] && *trunk(w, a, b))
				++*users(w, a, b);
}

static void add_ntbs(struct wiring *w, const bool *use)
{
	char name[TOPO_NAME_LEN + 8];
	unsigned int a, b;

	for (a = 0; a < w->nsw; a++) {
		if (!use[a])
			continue;
		snprintf(name, sizeof(name), "%s:ntb", w->t->switches[a].name);
		w->ntbs[a] = add_node(w, PLAN_NTB, name, PLAN_NONE);
		set(w, w->ntbs[a], "draco", w->t->switches[a].name);
		join_hosts(w, a);
		for (b = 0; b < a; b++)
			if (use[b] && *trunk(w, a, b))
				add_link(w, w->ntbs[b], w->ntbs[a],
					 *trunk(w, a, b) / *users(w, a, b),
					 PLAN_ISL);
	}
	warn_ntbs(w);
}

/* ---- all of it ----------------------------------------------------------- */

static bool several_hosts(const struct wiring *w)
{
	unsigned int h, n = 0;

	for (h = 0; h < w->t->nhosts; h++)
		n += w->hosts[h];
	return n > 1;
}

static int build(struct wiring *w)
{
	bool ntbs[TOPO_MAX_SWITCHES] = { false };
	bool *seen = calloc((size_t)w->nports * w->nsw, sizeof(*seen));
	unsigned int i;

	if (!seen)
		return plan_fail(w->e, ENOMEM, "%s: out of memory", w->t->name);
	use_trunks(w, seen);
	free(seen);
	if (several_hosts(w)) {
		choose_ntbs(w, ntbs);
		plan_ntbs(w, ntbs);
	}
	add_gpus(w);
	for (i = 0; i < w->t->nhosts; i++)
		if (w->hosts[i])
			add_host(w, i);
	for (i = 0; i < w->t->nappliances && !w->e->code; i++)
		add_appliance(w, i);
	add_ntbs(w, ntbs);
	warn_trunks(w);
	return w->e->code ? -w->e->code : 0;
}

static void list_ports(struct wiring *w)
{
	unsigned int h, k, p = 0;

	for (h = 0; h < w->t->nhosts; h++)
		for (k = 0; k < w->t->hosts[h].nports; k++, p++)
			w->ports[p] = (struct port){
				.host = h, .nth = k,
				.sw = w->t->hosts[h].ports[k].sw,
			};
}

/* All bits set: TOPO_NONE, PLAN_NONE. */
static void *nones(size_t n)
{
	unsigned int *p = malloc((n + 1) * sizeof(*p));

	if (p)
		memset(p, 0xff, (n + 1) * sizeof(*p));
	return p;
}

static int make_tables(struct wiring *w)
{
	size_t s = w->t->nswitches, p = topology_host_ports(w->t);

	w->nsw = w->t->nswitches;
	w->nports = (unsigned int)p;
	w->ports = calloc(p + 1, sizeof(*w->ports));
	w->hosts = calloc(w->t->nhosts + 1, sizeof(*w->hosts));
	w->trunks = calloc(s * s + 1, sizeof(*w->trunks));
	w->users = calloc(s * s + 1, sizeof(*w->users));
	w->bound = nones(w->t->nendpoints);
	w->gpus = nones(w->t->nendpoints);
	w->root_complexes = nones(w->t->nhosts);
	w->next = nones(p * s);
	w->hops = nones(p * s);
	w->partitions = nones(p * s);
	w->ntbs = nones(s);
	w->g = plan_graph_new(w->t->name);
	if (!w->ports || !w->hosts || !w->trunks || !w->users || !w->bound ||
	    !w->gpus || !w->root_complexes || !w->next || !w->hops ||
	    !w->partitions || !w->ntbs || !w->g)
		return plan_fail(w->e, ENOMEM, "%s: out of memory", w->t->name);
	list_ports(w);
	return 0;
}

static void free_tables(struct wiring *w)
{
	free(w->ports);
	free(w->hosts);
	free(w->trunks);
	free(w->users);
	free(w->bound);
	free(w->gpus);
	free(w->root_complexes);
	free(w->next);
	free(w->hops);
	free(w->partitions);
	free(w->ntbs);
}

static int wire(struct wiring *w)
{
	int err;

	if (!mbps(w->t->link_gbps) || !mbps(w->t->root_complex_gbps))
		return plan_fail(w->e, EINVAL, "%s: link_gbps or root_complex_gbps is less than 1 MB/s; give it in GB/s",
				 w->t->name);
	add_trunks(w);
	err = wiring_bind(w);
	return err ? err : build(w);
}

struct plan_graph *plan_graph_from_topology(const struct topology *t,
					    const struct plan_select *select,
					    struct plan_error *e)
{
	struct plan_select devices = { NULL, select ? select->devices : NULL };
	struct plan_error own = { 0 };
	struct wiring w = { .t = t, .e = &own,
			    .only = select ? select->host : NULL };
	int err = make_tables(&w);

	if (!err)
		err = wire(&w);
	if (!err)
		err = plan_graph_select(w.g, &devices, &own);
	free_tables(&w);
	if (!err)
		return w.g;
	plan_graph_free(w.g);
	if (e)
		*e = own;
	return NULL;
}
