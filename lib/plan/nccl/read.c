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

#include "plan/nccl/number.h"
#include "plan/nccl/read.h"
#include "topology/pcie.h"

#define WARNINGS	64u
#define HOSTS		256u
#define LINKS_OF_ONE	128u	/* <xgmi>, <nvlink> ... in one element */

/* ---- errors and attributes ---------------------------------------------- */

int nccl_bad(const struct nccl_import *m, const struct xml_element *x,
	     const char *what, const char *value, const char *remedy)
{
	const char *id = xml_get(x, "busid");

	return plan_fail(m->e, EINVAL, "%.100s:%u: <%.20s%s%.20s>: %s%s%.40s%s; %s",
			 m->name, x->line, x->name, id ? " busid=" : "",
			 id ? id : "", what, value ? " \"" : "",
			 value ? value : "", value ? "\"" : "", remedy);
}

int nccl_no_memory(const struct nccl_import *m)
{
	return plan_fail(m->e, ENOMEM, "%.100s: out of memory", m->name);
}

int nccl_suppose(struct nccl_import *m, const struct xml_element *x,
		 const char *what, const char *value, const char *instead)
{
	const char *id = xml_get(x, "busid");

	if (m->g->nwarnings == WARNINGS)
		return 0;	/* nobody reads more */
	return plan_graph_warn(m->g, "%.100s:%u: <%.20s%s%.20s>: %s%s%.40s%s: %s",
			       m->name, x->line, x->name, id ? " busid=" : "",
			       id ? id : "", what, value ? " \"" : "",
			       value ? value : "", value ? "\"" : "", instead) ?
		nccl_no_memory(m) : 0;
}

/* All attributes of @x, as "prefix.name", of @node. */
static int keep(struct nccl_import *m, uint32_t node,
		const struct xml_element *x, const char *prefix)
{
	char key[XML_VALUE + 64];
	uint32_t i;

	for (i = 0; i < x->nattributes; i++) {
		if (!xml_plain_name(x->attributes[i].name)) {
			if (nccl_suppose(m, x, "attribute", x->attributes[i].name,
					 "no name for an attribute here; left out"))
				return -ENOMEM;
			continue;
		}
		snprintf(key, sizeof(key), "%s.%s", prefix,
			 x->attributes[i].name);
		if (plan_node_set(m->g, node, key, x->attributes[i].value))
			return nccl_no_memory(m);
	}
	return 0;
}

/* An attribute that has to be a number if it is there. */
int nccl_get_number(const struct nccl_import *m, const struct xml_element *x,
		    const char *key, int64_t standard, int64_t *out)
{
	const char *text = xml_get(x, key);

	*out = standard;
	if (!text || !*text || nccl_int(text, out))
		return 0;
	return nccl_bad(m, x, key, text, "give a number");
}

/* ---- nodes --------------------------------------------------------------- */

int nccl_add_node(struct nccl_import *m, const struct xml_element *x,
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
		return nccl_bad(m, x, "there are two of", full,
				"numbers and bus ids are unique in a host");
	if (n < 0)
		return plan_fail(m->e, (int)-n, "%.100s:%u: <%.20s>: %.300s",
				 m->name, x->line, x->name, e.text);
	*node = (uint32_t)n;
	m->g->nodes[n].line = x->line;
	m->g->nodes[n].up = up;
	return 0;
}

int nccl_add_link(struct nccl_import *m, const struct xml_element *x, uint32_t a,
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

/*
 * What the link of @x carries. The library takes what it does not know for
 * Gen3 and 16 lanes, and says so in its debug output only.
 */
static int pci_capacity(struct nccl_import *m, const struct xml_element *x,
			uint64_t *capacity)
{
	const char *speed = xml_get(x, "link_speed");
	const char *lanes = xml_get(x, "link_width");
	int64_t width = 0;
	double gt;
	int err = 0;

	gt = speed ? pcie_speed_parse(speed) : 0;
	if (!gt && speed && nccl_speed_known(speed))
		gt = strtod(speed, NULL);	/* older kernels: "8 GT/s" */
	if (!gt || !plan_pcie_capacity(gt, 16)) {
		gt = 8;
		err = nccl_suppose(m, x, "link_speed", speed ? speed : "",
				   "not one that is known; 8.0 GT/s, as the library does");
	} else if (!nccl_speed_known(speed)) {
		err = nccl_suppose(m, x, "link_speed", speed,
				   "the library takes this for 8.0 GT/s; it knows it with \" PCIe\"");
	}
	if (!lanes || !*lanes || !nccl_int(lanes, &width) || width < 1 ||
	    width > 32) {
		if (!err && (!lanes || strcmp(lanes, "0")))
			err = nccl_suppose(m, x, "link_width", lanes ? lanes : "",
					   "not one that exists; 16");
		width = 16;
	}
	*capacity = plan_pcie_capacity(gt, (uint32_t)width);
	return err;
}

static int add_net(struct nccl_import *m, const struct xml_element *x, uint32_t nic)
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
	err = nccl_get_number(m, x, "speed", 0, &speed);
	if (!err)
		err = nccl_add_node(m, x, PLAN_NET, name, nic, &node);
	if (err)
		return err;
	if (speed <= 0)
		speed = 10000;	/* Mbit/s; what the library assumes */
	err = keep(m, node, x, "net");
	return err ? err : nccl_add_link(m, x, node, nic, ((uint64_t)speed + 7) / 8,
					 PLAN_OTHER);
}

static int add_nets(struct nccl_import *m, const struct xml_element *nic,
		    uint32_t node)
{
	const struct xml_element *x;
	int err = keep(m, node, nic, "nic");

	for (x = nic->first; !err && x; x = x->next)
		err = strcmp(x->name, "net") ?
			nccl_suppose(m, x, "an element that means nothing here",
				     NULL, "left out") : add_net(m, x, node);
	return err;
}

/* A <nic> that is not on PCI. */
static int add_virtual_nic(struct nccl_import *m, const struct xml_element *x,
			   uint32_t cpu)
{
	char name[40];
	uint32_t node;
	int err;

	snprintf(name, sizeof(name), "nic-%u", m->anonymous++);
	err = nccl_add_node(m, x, PLAN_NIC, name, cpu, &node);
	if (!err)
		err = nccl_add_link(m, x, node, cpu, NCCL_LOC_BW, PLAN_OTHER);
	return err ? err : add_nets(m, x, node);
}

bool nccl_is_link(const struct xml_element *x)
{
	return !strcmp(x->name, "xgmi") || !strcmp(x->name, "nvlink") ||
	       !strcmp(x->name, "c2c") || !strcmp(x->name, "pcilink");
}

/* Links are kept as attributes now and become edges when all nodes exist. */
static int keep_links(struct nccl_import *m, const struct xml_element *in,
		      uint32_t node)
{
	static const char *const kinds[] = { "xgmi", "nvlink", "c2c",
					     "pcilink" };
	const struct xml_element *x;
	char prefix[24];
	uint32_t i, n = 0;
	bool bridge = !strcmp(in->name, "pci");
	int err = 0;

	/* The last kind is of bridges, the others are of GPUs. */
	for (i = bridge ? 3 : 0; i < (bridge ? 4 : 3); i++) {
		for (n = 0, x = xml_child(in, kinds[i]); !err && x;
		     x = xml_sibling(x, kinds[i])) {
			if (n == LINKS_OF_ONE)
				return nccl_bad(m, x, "more than 128 of one element",
						NULL, "no chip has so many links");
			snprintf(prefix, sizeof(prefix), "%s.%u", kinds[i],
				 n++);
			err = keep(m, node, x, prefix);
		}
	}
	return err;
}

/* What is in @x besides links means nothing. */
static int pass_over(struct nccl_import *m, const struct xml_element *x)
{
	int err = 0;

	for (x = x->first; !err && x; x = x->next)
		if (!nccl_is_link(x))
			err = nccl_suppose(m, x, "an element that means nothing here",
					   NULL, "left out");
	return err;
}

/* @gpu is NULL if only the class says that it is one. */
static int add_gpu(struct nccl_import *m, const struct xml_element *pci,
		   const struct xml_element *gpu, uint32_t up, uint32_t *node)
{
	const char *busid = xml_get(pci, "busid");
	int64_t dev = -1;
	char name[40];
	int err;

	if (gpu && (xml_sibling(gpu, "gpu") || xml_child(pci, "nic") ||
		    xml_child(pci, "pci")))
		return nccl_bad(m, pci, "more in it than one <gpu>", NULL,
				"a pci element is one GPU, one NIC, or a bridge");
	if (gpu && !gpu->nattributes)
		return nccl_bad(m, gpu, "no attributes", NULL,
				"give at least its number, dev");
	err = gpu ? nccl_get_number(m, gpu, "dev", -1, &dev) : 0;
	if (err)
		return err;
	if (dev >= 0)
		snprintf(name, sizeof(name), "gpu%lld", (long long)dev);
	else
		snprintf(name, sizeof(name), "gpu-%.30s", busid);
	err = nccl_add_node(m, gpu ? gpu : pci, PLAN_GPU, name, up, node);
	if (!err)
		err = keep(m, *node, pci, "pci");
	if (!err && gpu)
		err = keep(m, *node, gpu, "gpu");
	if (!err && gpu)
		err = keep_links(m, gpu, *node);
	return err || !gpu ? err : pass_over(m, gpu);
}

static int add_nic(struct nccl_import *m, const struct xml_element *x,
		   const struct xml_element *nic, uint32_t up, uint32_t *node)
{
	char name[40];
	int err;

	if (nic && (xml_sibling(nic, "nic") || xml_child(x, "pci")))
		return nccl_bad(m, x, "more in it than one <nic>", NULL,
				"a pci element is one GPU, one NIC, or a bridge");
	snprintf(name, sizeof(name), "nic-%.30s", xml_get(x, "busid"));
	err = nccl_add_node(m, x, PLAN_NIC, name, up, node);
	if (!err)
		err = keep(m, *node, x, "pci");
	return err || !nic ? err : add_nets(m, nic, *node);
}

static int add_bridge(struct nccl_import *m, struct xml_element *x, uint32_t up,
		      uint32_t *node)
{
	char name[40];
	int err;

	x->mark = true;		/* may have <pcilink> */
	snprintf(name, sizeof(name), "pci-%.30s", xml_get(x, "busid"));
	err = nccl_add_node(m, x, PLAN_PCI_SWITCH, name, up, node);
	if (!err)
		err = keep(m, *node, x, "pci");
	return err ? err : keep_links(m, x, *node);
}

/* By what is in it; by its class if nothing is, for the library fills it in. */
static int add_device(struct nccl_import *m, struct xml_element *x, uint32_t up,
		      uint32_t *node)
{
	const struct xml_element *gpu = xml_child(x, "gpu");
	const struct xml_element *nic = xml_child(x, "nic");
	const char *text = xml_get(x, "class");
	enum nccl_class class = NCCL_CLASS_UNKNOWN;

	if (text && !x->first)
		class = nccl_class(PLAN_RCCL, text);
	if (gpu || class == NCCL_CLASS_GPU)
		return add_gpu(m, x, gpu, up, node);
	if (nic || class == NCCL_CLASS_NIC)
		return add_nic(m, x, nic, up, node);
	return add_bridge(m, x, up, node);
}

/* Nested at most XML_DEPTH deep. */
static int add_pci(struct nccl_import *m, struct xml_element *x, uint32_t up)
{
	const char *busid = xml_get(x, "busid");
	struct xml_element *c;
	uint64_t capacity;
	uint32_t node = PLAN_NONE;
	int err;

	if (!busid || nccl_busid(busid) == NCCL_NO_BUSID)
		return nccl_bad(m, x, busid ? "busid" : "no busid", busid,
				"write it as 0000:c1:00.0");
	err = add_device(m, x, up, &node);
	m->places[m->nplaces++] = (struct nccl_place){ nccl_busid(busid), m->host,
						  node };
	if (!err)
		err = pci_capacity(m, x, &capacity);
	if (!err)
		err = nccl_add_link(m, x, node, up, capacity, PLAN_PCIE);
	for (c = x->first; !err && c; c = c->next) {
		if (!strcmp(c->name, "pci"))
			err = add_pci(m, c, node);
		else if (strcmp(c->name, "gpu") && strcmp(c->name, "nic") &&
			 (!nccl_is_link(c) || !x->mark))
			err = nccl_suppose(m, c, "an element that means nothing here",
					   NULL, "left out");
	}
	return err;
}

static int add_cpu(struct nccl_import *m, const struct xml_element *cpu)
{
	struct xml_element *x;
	char name[40];
	uint32_t node;
	int64_t numa;
	int err;

	if (!xml_get(cpu, "numaid"))
		return nccl_bad(m, cpu, "no numaid", NULL, "number the CPUs from 0");
	err = nccl_get_number(m, cpu, "numaid", 0, &numa);
	if (err)
		return err;
	snprintf(name, sizeof(name), "cpu%lld", (long long)numa);
	err = nccl_add_node(m, cpu, PLAN_ROOT_COMPLEX, name, PLAN_NONE, &node);
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
			err = nccl_suppose(m, x, "an element that means nothing here",
					   NULL, "left out");
	}
	return err;
}

/* ---- hosts and CPUs ------------------------------------------------------ */

uint32_t nccl_host_of(const struct nccl_import *m, const struct xml_element *cpu)
{
	const char *hash = xml_get(cpu, "host_hash");
	uint32_t i = 0;

	while (i < m->nhosts && strcmp(m->hosts[i], hash ? hash : "0x0"))
		i++;
	return i;
}

static int find_hosts(struct nccl_import *m)
{
	const struct xml_element *x;
	uint32_t h;

	for (x = xml_child(m->root, "cpu"); x; x = xml_sibling(x, "cpu")) {
		h = nccl_host_of(m, x);
		if (h == HOSTS)
			return nccl_bad(m, x, "more than 256 hosts", NULL,
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

static uint32_t cpu_bw(const struct nccl_import *m, uint32_t node)
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
static int join_cpus(struct nccl_import *m)
{
	uint32_t *bw = calloc(m->ncpus + 1, sizeof(*bw)), i, k;
	int err = bw ? 0 : nccl_no_memory(m);

	for (i = 0; !err && i < m->ncpus; i++)
		bw[i] = cpu_bw(m, m->cpus[i]);
	for (i = 0; !err && i < m->ncpus; i++)
		for (k = 0; !err && k < i; k++)
			if (m->cpu_hosts[i] == m->cpu_hosts[k])
				err = nccl_add_link(m, m->root, m->cpus[k],
						    m->cpus[i],
						    bw[i] < bw[k] ? bw[i] : bw[k],
						    PLAN_SMP);
	free(bw);
	return err;
}

/* ---- all of it ----------------------------------------------------------- */

static bool reserve(struct nccl_import *m)
{
	m->room = xml_count(m->root);
	m->hosts = calloc(m->room, sizeof(*m->hosts));
	m->places = calloc(m->room, sizeof(*m->places));
	m->ways = calloc(m->room, sizeof(*m->ways));
	m->cpus = calloc(m->room, sizeof(*m->cpus));
	m->cpu_hosts = calloc(m->room, sizeof(*m->cpu_hosts));
	return m->hosts && m->places && m->ways && m->cpus && m->cpu_hosts;
}

static int check_root(struct nccl_import *m)
{
	const char *version = xml_get(m->root, "version");
	int64_t n;

	if (strcmp(m->root->name, "system"))
		return nccl_bad(m, m->root, "the outermost element is not <system>",
				NULL, "give a topology, as NCCL_TOPO_DUMP_FILE writes it");
	if (!version || !nccl_int(version, &n) || n < 1 || n > 2)
		return nccl_bad(m, m->root, version ? "version" : "no version",
				version, "NCCL writes 1, RCCL 2");
	m->dialect = n == 1 ? PLAN_NCCL : PLAN_RCCL;
	if (!xml_child(m->root, "cpu"))
		return nccl_bad(m, m->root, "no <cpu> in it", NULL,
				"all devices are below a CPU");
	return find_hosts(m);
}

static int add_cpus(struct nccl_import *m)
{
	const struct xml_element *x;
	int err = 0;

	for (x = m->root->first; !err && x; x = x->next) {
		if (strcmp(x->name, "cpu")) {
			err = nccl_suppose(m, x, "an element that means nothing here",
					   NULL, "left out");
			continue;
		}
		m->host = nccl_host_of(m, x);
		err = add_cpu(m, x);
	}
	return err;
}

static int import(struct nccl_import *m)
{
	int err = check_root(m);

	if (!err)
		err = add_cpus(m);
	if (!err)
		err = keep(m, m->cpus[0], m->root, "system");
	if (!err)
		err = join_cpus(m);
	if (!err)
		err = nccl_join(m);
	if (!err)
		err = nccl_set_ranks(m->g, m->name, m->nhosts, m->e);
	if (!err && nccl_set_boxes(m->g))
		err = nccl_no_memory(m);
	return err;
}

struct plan_graph *plan_nccl_parse(const char *text, size_t length,
				   const char *name, struct plan_error *e)
{
	struct xml_element *root = xml_parse(text, length, name, e);
	struct nccl_import m = { .name = name, .e = e, .root = root };
	int err;

	if (!root)
		return NULL;
	m.g = plan_graph_new(name);
	err = m.g && reserve(&m) ? import(&m) : nccl_no_memory(&m);
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
