// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * NCCL and RCCL topology XML as a graph. Called by plan_graph_parse() and by
 * who has such a text.
 *
 * Nodes: <cpu> is a root complex; <pci> with a <gpu> in it a GPU, with a
 * <nic> a NIC, any other a switch (the library's file has one element for all
 * ports of a switch); <net> a port of its NIC. Links: <pci> up to what it is
 * in, by link_speed and link_width; CPUs of one host with each other; and what
 * <xgmi>, <nvlink>, <c2c>, <pcilink> say, at the library's own figure for each
 * link. Each NVSwitch that is named as a target is a node.
 *
 * Boxes: GPUs that XGMI or NVLink joins are in one. Of the others, those below
 * the same topmost <pci> are in one, those right below a CPU in the CPU's.
 * Switches are in the box of the GPUs below them, if it is one; CPUs in none.
 *
 * Every attribute becomes one of the node, "pci.class", "gpu.gcn"; those of
 * links and of <system> too: "xgmi.0.target", "system.version" (of the first
 * CPU).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nccl_number.h"
#include "nccl_rules.h"
#include "xml.h"

#define WARNINGS	64u
#define LINKS_OF_ONE	128u	/* <xgmi>, <nvlink> ... in one element */

/* A bus id of a host, and the node that has it. */
struct place {
	uint64_t busid;
	uint32_t host, node;
};

/* A link between GPUs, one way, as an element gives it. */
struct way {
	uint32_t from, to;
	uint64_t capacity;
	enum plan_link_kind kind;
	uint32_t line, nth;
	bool done;
};

struct import {
	struct plan_graph *g;
	const char *name;
	struct plan_error *e;
	const struct xml_element *root;
	enum plan_dialect dialect;
	uint32_t nhosts;
	const char **hosts;	/* host_hash of each */
	uint32_t host;		/* of the CPU at hand */
	uint32_t nplaces;
	struct place *places;	/* sorted once all are there */
	uint32_t nways;
	struct way *ways;
	uint32_t room;		/* elements of the document */
	uint32_t *cpus, *cpu_hosts, ncpus;
	uint32_t anonymous;	/* names made up */
};

/* ---- errors and attributes ---------------------------------------------- */

static int bad(const struct import *m, const struct xml_element *x,
	       const char *what, const char *value, const char *remedy)
{
	const char *id = xml_get(x, "busid");

	return plan_fail(m->e, EINVAL, "%.100s:%u: <%.20s%s%.20s>: %s%s%.40s%s; %s",
			 m->name, x->line, x->name, id ? " busid=" : "",
			 id ? id : "", what, value ? " \"" : "",
			 value ? value : "", value ? "\"" : "", remedy);
}

static int memory(const struct import *m)
{
	return plan_fail(m->e, ENOMEM, "%.100s: out of memory", m->name);
}

static int suppose(struct import *m, const struct xml_element *x,
		   const char *what, const char *value, const char *instead)
{
	const char *id = xml_get(x, "busid");

	if (m->g->nwarnings == WARNINGS)
		return 0;	/* nobody reads more */
	return plan_graph_warn(m->g, "%.100s:%u: <%.20s%s%.20s>: %s%s%.40s%s: %s",
			       m->name, x->line, x->name, id ? " busid=" : "",
			       id ? id : "", what, value ? " \"" : "",
			       value ? value : "", value ? "\"" : "", instead) ?
		memory(m) : 0;
}

/* All attributes of @x, as "prefix.name", of @node. */
static int keep(struct import *m, uint32_t node, const struct xml_element *x,
		const char *prefix)
{
	char key[XML_VALUE + 64];
	uint32_t i;

	for (i = 0; i < x->nattributes; i++) {
		if (!xml_plain_name(x->attributes[i].name)) {
			if (suppose(m, x, "attribute", x->attributes[i].name,
				    "no name for an attribute here; left out"))
				return -ENOMEM;
			continue;
		}
		snprintf(key, sizeof(key), "%s.%s", prefix,
			 x->attributes[i].name);
		if (plan_node_set(m->g, node, key, x->attributes[i].value))
			return memory(m);
	}
	return 0;
}

/* An attribute that has to be a number if it is there. */
static int number(const struct import *m, const struct xml_element *x,
		  const char *key, int64_t standard, int64_t *out)
{
	const char *text = xml_get(x, key);

	*out = standard;
	if (!text || !*text || nccl_int(text, out))
		return 0;
	return bad(m, x, key, text, "give a number");
}

/* ---- nodes --------------------------------------------------------------- */

static int add_node(struct import *m, const struct xml_element *x,
		    enum plan_node_kind kind, const char *name, uint32_t up,
		    uint32_t *node)
{
	char full[PLAN_NAME + 16];
	struct plan_error e = { 0 };
	int64_t n;

	if (m->nhosts > 1)
		snprintf(full, sizeof(full), "host%u.%s", m->host, name);
	else
		snprintf(full, sizeof(full), "%s", name);
	n = plan_graph_add_node(m->g, kind, full, PLAN_NONE, &e);
	if (n == -EEXIST)
		return bad(m, x, "there are two of", full,
			   "numbers and bus ids are unique in a host");
	if (n < 0)
		return plan_fail(m->e, (int)-n, "%.100s:%u: <%.20s>: %.300s",
				 m->name, x->line, x->name, e.text);
	*node = (uint32_t)n;
	m->g->nodes[n].line = x->line;
	m->g->nodes[n].up = up;
	return 0;
}

static int add_link(struct import *m, const struct xml_element *x, uint32_t a,
		    uint32_t b, uint64_t capacity, enum plan_link_kind kind)
{
	struct plan_error e = { 0 };
	int64_t n = plan_graph_add_link(m->g, a, b, capacity,
					plan_link_latency(kind), kind, &e);

	if (n < 0)
		return plan_fail(m->e, (int)-n, "%.100s:%u: <%.20s>: %.300s",
				 m->name, x->line, x->name, e.text);
	m->g->edges[n].line = m->g->edges[n + 1].line = x->line;
	return 0;
}

static int add_place(struct import *m, const struct xml_element *x,
		     uint32_t node)
{
	const char *text = xml_get(x, "busid");
	uint64_t id = text ? nccl_busid(text) : NCCL_NO_BUSID;

	if (id == NCCL_NO_BUSID)
		return bad(m, x, text ? "busid" : "no busid", text,
			   "write it as 0000:c1:00.0");
	m->places[m->nplaces++] = (struct place){ id, m->host, node };
	return 0;
}

/*
 * What the link of @x carries. The library takes what it does not know for
 * Gen3 and 16 lanes, and says so in its debug output only.
 */
static int pci_capacity(struct import *m, const struct xml_element *x,
			uint64_t *capacity)
{
	const char *speed = xml_get(x, "link_speed");
	const char *lanes = xml_get(x, "link_width");
	int64_t width = 0;
	double gt;
	int err = 0;

	gt = speed ? plan_pcie_speed_parse(speed) : 0;
	if (!gt && speed && nccl_speed_known(speed))
		gt = strtod(speed, NULL);	/* older kernels: "8 GT/s" */
	if (!gt || !plan_pcie_capacity(gt, 16)) {
		gt = 8;
		err = suppose(m, x, "link_speed", speed ? speed : "",
			      "not one that is known; 8.0 GT/s, as the library does");
	} else if (!nccl_speed_known(speed)) {
		err = suppose(m, x, "link_speed", speed,
			      "the library takes this for 8.0 GT/s; it knows it with \" PCIe\"");
	}
	if (!lanes || !*lanes || !nccl_int(lanes, &width) || width < 1 ||
	    width > 32) {
		if (!err && (!lanes || strcmp(lanes, "0")))
			err = suppose(m, x, "link_width", lanes ? lanes : "",
				      "not one that exists; 16");
		width = 16;
	}
	*capacity = plan_pcie_capacity(gt, (uint32_t)width);
	return err;
}

static int add_net(struct import *m, const struct xml_element *x, uint32_t nic)
{
	const char *dev = xml_get(x, "dev");
	int64_t speed, n;
	uint32_t node;
	char name[40];
	int err;

	if (dev && nccl_int(dev, &n) && n >= 0)
		snprintf(name, sizeof(name), "net%lld", (long long)n);
	else
		snprintf(name, sizeof(name), "net-%u", m->anonymous++);
	err = number(m, x, "speed", 0, &speed);
	if (!err)
		err = add_node(m, x, PLAN_NET, name, nic, &node);
	if (err)
		return err;
	if (speed <= 0)
		speed = 10000;	/* Mbit/s; what the library assumes */
	err = keep(m, node, x, "net");
	return err ? err : add_link(m, x, node, nic, ((uint64_t)speed + 7) / 8,
				    PLAN_OTHER);
}

static int add_nets(struct import *m, const struct xml_element *nic,
		    uint32_t node)
{
	const struct xml_element *x;
	int err = keep(m, node, nic, "nic");

	for (x = nic->first; !err && x; x = x->next)
		err = strcmp(x->name, "net") ?
			suppose(m, x, "an element that means nothing here",
				NULL, "left out") : add_net(m, x, node);
	return err;
}

/* A <nic> that is not on PCI. */
static int add_virtual_nic(struct import *m, const struct xml_element *x,
			   uint32_t cpu)
{
	char name[40];
	uint32_t node;
	int err;

	snprintf(name, sizeof(name), "nic-%u", m->anonymous++);
	err = add_node(m, x, PLAN_NIC, name, cpu, &node);
	if (!err)
		err = add_link(m, x, node, cpu, NCCL_LOC_BW, PLAN_OTHER);
	return err ? err : add_nets(m, x, node);
}

static bool is_link(const struct xml_element *x)
{
	return !strcmp(x->name, "xgmi") || !strcmp(x->name, "nvlink") ||
	       !strcmp(x->name, "c2c") || !strcmp(x->name, "pcilink");
}

/* Links are kept as attributes now and become edges when all nodes exist. */
static int keep_links(struct import *m, const struct xml_element *in,
		      uint32_t node)
{
	static const char *const kinds[] = { "xgmi", "nvlink", "c2c",
					     "pcilink" };
	const struct xml_element *x;
	char prefix[24];
	uint32_t i, n = 0;
	int err = 0;

	for (i = 0; i < 4; i++) {
		for (n = 0, x = xml_child(in, kinds[i]); !err && x;
		     x = xml_sibling(x, kinds[i])) {
			if (n == LINKS_OF_ONE)
				return bad(m, x, "more than 128 of one element",
					   NULL, "no chip has so many links");
			snprintf(prefix, sizeof(prefix), "%s.%u", kinds[i],
				 n++);
			err = keep(m, node, x, prefix);
		}
	}
	return err;
}

static int add_gpu(struct import *m, const struct xml_element *pci,
		   const struct xml_element *gpu, uint32_t up, uint32_t *node)
{
	const struct xml_element *x;
	const char *busid = xml_get(pci, "busid");
	char name[40];
	int64_t dev;
	int err;

	if (xml_sibling(gpu, "gpu") || xml_child(pci, "nic") ||
	    xml_child(pci, "pci"))
		return bad(m, pci, "more in it than one <gpu>", NULL,
			   "a pci element is one GPU, one NIC, or a bridge");
	err = number(m, gpu, "dev", -1, &dev);
	if (err)
		return err;
	if (dev >= 0)
		snprintf(name, sizeof(name), "gpu%lld", (long long)dev);
	else
		snprintf(name, sizeof(name), "gpu-%.30s", busid);
	err = add_node(m, gpu, PLAN_GPU, name, up, node);
	if (!err)
		err = keep(m, *node, pci, "pci");
	if (!err)
		err = keep(m, *node, gpu, "gpu");
	if (!err)
		err = keep_links(m, gpu, *node);
	for (x = gpu->first; !err && x; x = x->next)
		if (!is_link(x))
			err = suppose(m, x, "an element that means nothing here",
				      NULL, "left out");
	return err;
}

static int add_bridge(struct import *m, const struct xml_element *x,
		      const struct xml_element *nic, uint32_t up,
		      uint32_t *node)
{
	const char *busid = xml_get(x, "busid");
	char name[40];
	int err;

	if (nic && (xml_sibling(nic, "nic") || xml_child(x, "pci")))
		return bad(m, x, "more in it than one <nic>", NULL,
			   "a pci element is one GPU, one NIC, or a bridge");
	snprintf(name, sizeof(name), "%s-%.30s", nic ? "nic" : "pci", busid);
	err = add_node(m, x, nic ? PLAN_NIC : PLAN_PCI_SWITCH, name, up, node);
	if (!err)
		err = keep(m, *node, x, "pci");
	if (!err)
		err = keep_links(m, x, *node);
	return err || !nic ? err : add_nets(m, nic, *node);
}

/* Nested at most XML_DEPTH deep. */
static int add_pci(struct import *m, const struct xml_element *x, uint32_t up)
{
	const struct xml_element *gpu = xml_child(x, "gpu"), *c;
	const struct xml_element *nic = xml_child(x, "nic");
	uint64_t capacity;
	uint32_t node = PLAN_NONE;
	int err;

	if (!xml_get(x, "busid") ||
	    nccl_busid(xml_get(x, "busid")) == NCCL_NO_BUSID)
		return add_place(m, x, node);	/* says why */
	err = gpu ? add_gpu(m, x, gpu, up, &node) :
		    add_bridge(m, x, nic, up, &node);
	if (!err)
		err = add_place(m, x, node);
	if (!err)
		err = pci_capacity(m, x, &capacity);
	if (!err)
		err = add_link(m, x, node, up, capacity, PLAN_PCIE);
	for (c = x->first; !err && c; c = c->next) {
		if (!strcmp(c->name, "pci"))
			err = add_pci(m, c, node);
		else if (c != gpu && c != nic && !is_link(c))
			err = suppose(m, c, "an element that means nothing here",
				      NULL, "left out");
	}
	return err;
}

static int add_cpu(struct import *m, const struct xml_element *cpu)
{
	const struct xml_element *x;
	char name[40];
	uint32_t node;
	int64_t numa;
	int err;

	if (!xml_get(cpu, "numaid"))
		return bad(m, cpu, "no numaid", NULL, "number the CPUs from 0");
	err = number(m, cpu, "numaid", 0, &numa);
	if (err)
		return err;
	snprintf(name, sizeof(name), "cpu%lld", (long long)numa);
	err = add_node(m, cpu, PLAN_ROOT_COMPLEX, name, PLAN_NONE, &node);
	if (err)
		return err;
	m->cpus[m->ncpus] = node;
	m->cpu_hosts[m->ncpus++] = m->host;
	err = keep(m, node, cpu, "cpu");
	for (x = cpu->first; !err && x; x = x->next) {
		if (!strcmp(x->name, "pci"))
			err = add_pci(m, x, node);
		else if (!strcmp(x->name, "nic"))
			err = add_virtual_nic(m, x, node);
		else
			err = suppose(m, x, "an element that means nothing here",
				      NULL, "left out");
	}
	return err;
}

/* ---- hosts and CPUs ------------------------------------------------------ */

static uint32_t host_of(const struct import *m, const struct xml_element *cpu)
{
	const char *hash = xml_get(cpu, "host_hash");
	uint32_t i = 0;

	while (i < m->nhosts && strcmp(m->hosts[i], hash ? hash : "0x0"))
		i++;
	return i;
}

static int find_hosts(struct import *m)
{
	const struct xml_element *x;
	uint32_t h;

	for (x = xml_child(m->root, "cpu"); x; x = xml_sibling(x, "cpu")) {
		h = host_of(m, x);
		if (h == 4096)
			return bad(m, x, "more than 4096 hosts", NULL,
				   "plan for fewer");
		if (h == m->nhosts) {
			m->hosts[h] = xml_get(x, "host_hash");
			if (!m->hosts[h])
				m->hosts[h] = "0x0";
			m->nhosts++;
		}
	}
	return 0;
}

static uint32_t cpu_bw(const struct import *m, uint32_t node)
{
	const char *family = plan_node_get(m->g, node, "cpu.familyid");
	const char *model = plan_node_get(m->g, node, "cpu.modelid");
	int64_t f = 0, n = 0;

	if (family && !nccl_int(family, &f))
		f = 0;
	if (model && !nccl_int(model, &n))
		n = 0;
	return nccl_cpu_bw(plan_node_get(m->g, node, "cpu.arch"),
			   plan_node_get(m->g, node, "cpu.vendor"), f, n);
}

/* Each with each, as the library does it; the slower one's figure. */
static int join_cpus(struct import *m)
{
	uint32_t *bw = calloc(m->ncpus + 1, sizeof(*bw)), i, k;
	int err = bw ? 0 : memory(m);

	for (i = 0; !err && i < m->ncpus; i++)
		bw[i] = cpu_bw(m, m->cpus[i]);
	for (i = 0; !err && i < m->ncpus; i++)
		for (k = 0; !err && k < i; k++)
			if (m->cpu_hosts[i] == m->cpu_hosts[k])
				err = add_link(m, m->root, m->cpus[k],
					       m->cpus[i],
					       bw[i] < bw[k] ? bw[i] : bw[k],
					       PLAN_SMP);
	free(bw);
	return err;
}

/* ---- links between GPUs -------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->host != y->host)
		return x->host < y->host ? -1 : 1;
	return (x->busid > y->busid) - (x->busid < y->busid);
}

static int sort_places(struct import *m)
{
	uint32_t i;

	qsort(m->places, m->nplaces, sizeof(*m->places), by_place);
	for (i = 1; i < m->nplaces; i++)
		if (!by_place(&m->places[i - 1], &m->places[i]))
			return plan_fail(m->e, EINVAL, "%.100s:%u: %s and %s have the same busid; bus ids are unique in a host",
					 m->name,
					 m->g->nodes[m->places[i].node].line,
					 m->g->nodes[m->places[i - 1].node].name,
					 m->g->nodes[m->places[i].node].name);
	return 0;
}

static uint32_t at_busid(const struct import *m, const char *text)
{
	struct place key = { nccl_busid(text), m->host, 0 };
	const struct place *p;

	p = bsearch(&key, m->places, m->nplaces, sizeof(key), by_place);
	return p ? p->node : PLAN_NONE;
}

/* The node of an NVSwitch, made when it is first named. */
static int gpu_switch(struct import *m, const struct xml_element *x,
		      const char *target, uint32_t *node)
{
	char name[48], full[PLAN_NAME + 16], *p;
	int err;

	snprintf(name, sizeof(name), "nvswitch-%.30s", target);
	for (p = name; *p; p++)
		if (!strchr("0123456789abcdefghijklmnopqrstuvwxyz"
			    "ABCDEFGHIJKLMNOPQRSTUVWXYZ.:-", *p))
			*p = '_';
	if (m->nhosts > 1)
		snprintf(full, sizeof(full), "host%u.%s", m->host, name);
	else
		snprintf(full, sizeof(full), "%s", name);
	*node = plan_graph_find(m->g, full);
	if (*node != PLAN_NONE)
		return 0;
	err = add_node(m, x, PLAN_GPU_SWITCH, name, PLAN_NONE, node);
	if (!err && plan_node_set(m->g, *node, "pci.busid", target))
		err = memory(m);
	return err;
}

static uint32_t cpu_above(const struct import *m, uint32_t node)
{
	while (m->g->nodes[node].up != PLAN_NONE)
		node = m->g->nodes[node].up;
	return node;
}

static uint64_t link_bw(const struct import *m, uint32_t gpu, bool xgmi)
{
	const char *gcn = plan_node_get(m->g, gpu, "gpu.gcn");
	const char *sm = plan_node_get(m->g, gpu, "gpu.sm");
	int64_t n = 0;

	if (xgmi)
		return nccl_xgmi_bw(gcn ? gcn : "");
	if (sm && !nccl_int(sm, &n))
		n = 0;
	return nccl_nvlink_bw(n);
}

/* Where a <nvlink> or <xgmi> leads; PLAN_NONE: to nothing in this file. */
static int find_target(struct import *m, const struct xml_element *x,
		       uint32_t gpu, uint32_t *to)
{
	const char *target = xml_get(x, "target");
	const char *class = xml_get(x, "tclass");
	enum nccl_class c = class ? nccl_class(PLAN_RCCL, class) :
				    NCCL_CLASS_UNKNOWN;

	if (!target)
		return bad(m, x, "no target", NULL, "give a busid");
	*to = at_busid(m, target);
	if (*to != PLAN_NONE && m->g->nodes[*to].kind == PLAN_GPU) {
		if (*to == gpu)
			return bad(m, x, "leads back to its own GPU", target,
				   "give another GPU's busid");
		return 0;
	}
	*to = PLAN_NONE;
	if (c == NCCL_CLASS_NVSWITCH || !class)
		return gpu_switch(m, x, target, to);
	if (c == NCCL_CLASS_CPU) {
		*to = cpu_above(m, gpu);
		return 0;
	}
	return suppose(m, x, "target", target,
		       "no GPU here has this busid; the link is left out");
}

static int add_way(struct import *m, const struct xml_element *x, uint32_t gpu)
{
	bool xgmi = !strcmp(x->name, "xgmi");
	enum plan_link_kind kind = xgmi ? PLAN_XGMI : PLAN_NVLINK;
	uint64_t capacity;
	int64_t count;
	uint32_t to;
	int err;

	err = number(m, x, "count", 1, &count);
	if (!err && (count < 1 || count > NCCL_LINK_COUNT))
		err = bad(m, x, "count", xml_get(x, "count"),
			  "1 to 1000 links make sense");
	if (!err)
		err = find_target(m, x, gpu, &to);
	if (err || to == PLAN_NONE)
		return err;
	capacity = (uint64_t)count * link_bw(m, gpu, xgmi);
	if (m->g->nodes[to].kind != PLAN_GPU)
		return add_link(m, x, gpu, to, capacity, kind);
	m->ways[m->nways] = (struct way){ gpu, to, capacity, kind, x->line,
					  m->nways, false };
	m->nways++;
	return 0;
}

static int by_ends(const void *a, const void *b)
{
	const struct way *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return (x->kind > y->kind) - (x->kind < y->kind);
}

static int by_nth(const void *a, const void *b)
{
	const struct way *x = a, *y = b;

	return (x->nth > y->nth) - (x->nth < y->nth);
}

/* Several elements for one target are one link, as the library has it. */
static void merge_ways(struct import *m)
{
	uint32_t i, n = 0;

	qsort(m->ways, m->nways, sizeof(*m->ways), by_ends);
	for (i = 0; i < m->nways; i++) {
		if (n && !by_ends(&m->ways[n - 1], &m->ways[i]))
			m->ways[n - 1].capacity += m->ways[i].capacity;
		else
			m->ways[n++] = m->ways[i];
	}
	m->nways = n;
}

static int add_way_edge(struct import *m, const struct way *w)
{
	struct plan_error e = { 0 };
	int64_t n = plan_graph_add_edge(m->g, w->from, w->to, w->capacity,
					plan_link_latency(w->kind), w->kind,
					&e);

	if (n < 0)
		return plan_fail(m->e, (int)-n, "%.100s:%u: %.300s", m->name,
				 w->line, e.text);
	m->g->edges[n].line = w->line;
	return (int)n;
}

/* In the order of the file; the way back follows the way there. */
static int add_ways(struct import *m)
{
	struct way *sorted, *order, key, *back;
	uint32_t i;
	int a = 0, b;

	merge_ways(m);
	sorted = m->ways;
	order = malloc((m->nways + 1) * sizeof(*order));
	if (!order)
		return memory(m);
	if (m->nways)
		memcpy(order, sorted, m->nways * sizeof(*order));
	qsort(order, m->nways, sizeof(*order), by_nth);
	for (i = 0; a >= 0 && i < m->nways; i++) {
		struct way *w = bsearch(&order[i], sorted, m->nways,
					sizeof(*w), by_ends);

		if (w->done)
			continue;
		a = add_way_edge(m, w);
		key = (struct way){ w->to, w->from, 0, w->kind, 0, 0, false };
		back = bsearch(&key, sorted, m->nways, sizeof(key), by_ends);
		if (a < 0 || !back)
			continue;
		back->done = true;
		b = add_way_edge(m, back);
		if (b >= 0) {
			m->g->edges[a].twin = (uint32_t)b;
			m->g->edges[b].twin = (uint32_t)a;
		}
		a = b;
	}
	free(order);
	return a < 0 ? a : 0;
}

static int add_c2c(struct import *m, const struct xml_element *x, uint32_t gpu)
{
	int64_t count, bw;
	int err = number(m, x, "count", 1, &count);

	if (!err)
		err = number(m, x, "bw", 0, &bw);
	if (err)
		return err;
	if (count < 1 || count > NCCL_LINK_COUNT || bw < 1 || bw > 1000000)
		return bad(m, x, "count or bw", NULL,
			   "count links of bw MB/s each, 1 to 1000000");
	return add_link(m, x, gpu, cpu_above(m, gpu), (uint64_t)(count * bw),
			PLAN_NVLINK);
}

/* One chip that shows itself as two switches. Each side may name the other. */
static int add_pcilink(struct import *m, const struct xml_element *x,
		       uint32_t from)
{
	const char *target = xml_get(x, "target");
	uint32_t to;

	if (!target)
		return bad(m, x, "no target", NULL, "give a busid");
	to = at_busid(m, target);
	if (to == PLAN_NONE || m->g->nodes[to].kind != PLAN_PCI_SWITCH)
		return suppose(m, x, "target", target,
			       "no switch here has this busid; the link is left out");
	if (to == from)
		return bad(m, x, "leads back to its own switch", target,
			   "give another switch's busid");
	m->ways[m->nways] = (struct way){ from < to ? from : to,
					  from < to ? to : from, NCCL_LOC_BW,
					  PLAN_OTHER, x->line, m->nways,
					  false };
	m->nways++;
	return 0;
}

static int join_switches(struct import *m)
{
	struct plan_error e = { 0 };
	const struct way *w;
	int64_t n = 0;
	uint32_t i;

	merge_ways(m);
	qsort(m->ways, m->nways, sizeof(*m->ways), by_nth);
	for (i = 0; n >= 0 && i < m->nways; i++) {
		w = &m->ways[i];
		n = plan_graph_add_link(m->g, w->from, w->to, NCCL_LOC_BW,
					plan_link_latency(w->kind), w->kind,
					&e);
		if (n >= 0)
			m->g->edges[n].line = m->g->edges[n + 1].line = w->line;
	}
	return n < 0 ? plan_fail(m->e, (int)-n, "%.100s: <pcilink>: %.300s",
				 m->name, e.text) : 0;
}

/* Links of one kind, in the whole file. */
static int add_links(struct import *m, const struct xml_element *x,
		     uint32_t above,
		     bool (*is)(const struct xml_element *),
		     int (*add)(struct import *, const struct xml_element *,
				uint32_t))
{
	const struct xml_element *c;
	const char *busid = xml_get(x, "busid");
	int err = 0;

	if (!strcmp(x->name, "cpu"))
		m->host = host_of(m, x);
	if (!strcmp(x->name, "pci"))
		above = at_busid(m, busid);
	for (c = x->first; !err && c; c = c->next) {
		if (above != PLAN_NONE && is(c))
			err = add(m, c, above);
		else if (!is_link(c))
			err = add_links(m, c, above, is, add);
	}
	return err;
}

static bool is_xgmi(const struct xml_element *x)
{
	return !strcmp(x->name, "xgmi") && !strcmp(x->parent->name, "gpu");
}

static bool is_nvlink(const struct xml_element *x)
{
	return !strcmp(x->name, "nvlink") && !strcmp(x->parent->name, "gpu");
}

static bool is_c2c(const struct xml_element *x)
{
	return !strcmp(x->name, "c2c") && !strcmp(x->parent->name, "gpu");
}

static bool is_pcilink(const struct xml_element *x)
{
	return !strcmp(x->name, "pcilink") && !strcmp(x->parent->name, "pci") &&
	       !xml_child(x->parent, "gpu") && !xml_child(x->parent, "nic");
}

/* ---- all of it ----------------------------------------------------------- */

static uint32_t count_elements(const struct xml_element *x)
{
	uint32_t n = 1;

	for (x = x->first; x; x = x->next)
		n += count_elements(x);
	return n;
}

static bool reserve(struct import *m)
{
	m->room = count_elements(m->root);
	m->hosts = calloc(m->room, sizeof(*m->hosts));
	m->places = calloc(m->room, sizeof(*m->places));
	m->ways = calloc(m->room, sizeof(*m->ways));
	m->cpus = calloc(m->room, sizeof(*m->cpus));
	m->cpu_hosts = calloc(m->room, sizeof(*m->cpu_hosts));
	return m->hosts && m->places && m->ways && m->cpus && m->cpu_hosts;
}

static int check_root(struct import *m)
{
	const char *version = xml_get(m->root, "version");
	int64_t n;

	if (strcmp(m->root->name, "system"))
		return bad(m, m->root, "the outermost element is not <system>",
			   NULL, "give a topology, as NCCL_TOPO_DUMP_FILE writes it");
	if (!version || !nccl_int(version, &n) || n < 1 || n > 2)
		return bad(m, m->root, version ? "version" : "no version",
			   version, "NCCL writes 1, RCCL 2");
	m->dialect = n == 1 ? PLAN_NCCL : PLAN_RCCL;
	if (!xml_child(m->root, "cpu"))
		return bad(m, m->root, "no <cpu> in it", NULL,
			   "all devices are below a CPU");
	return find_hosts(m);
}

static int add_cpus(struct import *m)
{
	const struct xml_element *x;
	int err = 0;

	for (x = m->root->first; !err && x; x = x->next) {
		if (strcmp(x->name, "cpu")) {
			err = suppose(m, x, "an element that means nothing here",
				      NULL, "left out");
			continue;
		}
		m->host = host_of(m, x);
		err = add_cpu(m, x);
	}
	return err;
}

static int import(struct import *m)
{
	int err = check_root(m);

	if (!err)
		err = add_cpus(m);
	if (!err)
		err = keep(m, m->cpus[0], m->root, "system");
	if (!err)
		err = join_cpus(m);
	if (!err)
		err = sort_places(m);
	if (!err)
		err = add_links(m, m->root, PLAN_NONE, is_xgmi, add_way);
	if (!err)
		err = add_links(m, m->root, PLAN_NONE, is_nvlink, add_way);
	if (!err)
		err = add_ways(m);
	if (!err)
		err = add_links(m, m->root, PLAN_NONE, is_c2c, add_c2c);
	m->nways = 0;
	if (!err)
		err = add_links(m, m->root, PLAN_NONE, is_pcilink, add_pcilink);
	if (!err)
		err = join_switches(m);
	if (!err)
		err = nccl_set_ranks(m->g, m->name, m->nhosts, m->e);
	if (!err && nccl_set_boxes(m->g))
		err = memory(m);
	return err;
}

struct plan_graph *plan_nccl_parse(const char *text, size_t length,
				   const char *name, struct plan_error *e)
{
	struct xml_element *root = xml_parse(text, length, name, e);
	struct import m = { .name = name, .e = e, .root = root };
	int err;

	if (!root)
		return NULL;
	m.g = plan_graph_new(name);
	err = m.g && reserve(&m) ? import(&m) : memory(&m);
	free(m.hosts);
	free(m.places);
	free(m.ways);
	free(m.cpus);
	free(m.cpu_hosts);
	xml_free(root);
	if (err) {
		plan_graph_free(m.g);
		return NULL;
	}
	return m.g;
}
