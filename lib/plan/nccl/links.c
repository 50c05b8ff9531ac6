// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Links of a topology XML besides its PCI tree: XGMI, NVLink, C2C, links inside
 * a chip. Called by nccl/read.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/nccl/read.h"

/* ---- links between GPUs -------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
	const struct nccl_place *x = a, *y = b;

	if (x->host != y->host)
		return x->host < y->host ? -1 : 1;
	return (x->busid > y->busid) - (x->busid < y->busid);
}

static int sort_places(struct nccl_import *m)
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

static uint32_t at_busid(const struct nccl_import *m, const char *text)
{
	struct nccl_place key = { nccl_busid(text), m->host, 0 };
	const struct nccl_place *p;

	p = bsearch(&key, m->places, m->nplaces, sizeof(key), by_place);
	return p ? p->node : PLAN_NONE;
}

/* The node of an NVSwitch, made when it is first named. */
static int gpu_switch(struct nccl_import *m, const struct xml_element *x,
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
	err = nccl_add_node(m, x, PLAN_GPU_SWITCH, name, PLAN_NONE, node);
	if (!err && plan_node_set(m->g, *node, "pci.busid", target))
		err = nccl_no_memory(m);
	return err;
}

static uint32_t cpu_above(const struct nccl_import *m, uint32_t node)
{
	while (m->g->nodes[node].up != PLAN_NONE)
		node = m->g->nodes[node].up;
	return node;
}

static uint64_t link_bw(const struct nccl_import *m, uint32_t gpu, bool xgmi)
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
static int find_target(struct nccl_import *m, const struct xml_element *x,
		       uint32_t gpu, uint32_t *to)
{
	const char *target = xml_get(x, "target");
	const char *class = xml_get(x, "tclass");
	enum nccl_class c = class ? nccl_class(PLAN_RCCL, class) :
				    NCCL_CLASS_UNKNOWN;

	if (!target)
		return nccl_bad(m, x, "no target", NULL, "give a busid");
	*to = at_busid(m, target);
	if (*to != PLAN_NONE && m->g->nodes[*to].kind == PLAN_GPU) {
		if (*to == gpu)
			return nccl_bad(m, x, "leads back to its own GPU", target,
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
	return nccl_suppose(m, x, "target", target,
			    "no GPU here has this busid; the link is left out");
}

static int add_way(struct nccl_import *m, const struct xml_element *x, uint32_t gpu)
{
	bool xgmi = !strcmp(x->name, "xgmi");
	enum plan_link_kind kind = xgmi ? PLAN_XGMI : PLAN_NVLINK;
	uint64_t capacity;
	int64_t count;
	uint32_t to;
	int err;

	err = nccl_get_number(m, x, "count", 1, &count);
	if (!err && (count < 1 || count > NCCL_LINK_COUNT))
		err = nccl_bad(m, x, "count", xml_get(x, "count"),
			       "1 to 1000 links make sense");
	if (!err)
		err = find_target(m, x, gpu, &to);
	if (err || to == PLAN_NONE)
		return err;
	capacity = (uint64_t)count * link_bw(m, gpu, xgmi);
	if (m->g->nodes[to].kind != PLAN_GPU)
		return nccl_add_link(m, x, gpu, to, capacity, kind);
	m->ways[m->nways] = (struct nccl_way){ gpu, to, capacity, kind, x->line,
					  m->nways, false };
	m->nways++;
	return 0;
}

static int by_ends(const void *a, const void *b)
{
	const struct nccl_way *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return (x->kind > y->kind) - (x->kind < y->kind);
}

static int by_nth(const void *a, const void *b)
{
	const struct nccl_way *x = a, *y = b;

	return (x->nth > y->nth) - (x->nth < y->nth);
}

/* Several elements for one target are one link, as the library has it. */
static void merge_ways(struct nccl_import *m)
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

static int add_way_edge(struct nccl_import *m, const struct nccl_way *w)
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
static int add_ways(struct nccl_import *m)
{
	struct nccl_way *sorted, *order, key, *back;
	uint32_t i;
	int a = 0, b;

	merge_ways(m);
	sorted = m->ways;
	order = malloc((m->nways + 1) * sizeof(*order));
	if (!order)
		return nccl_no_memory(m);
	if (m->nways)
		memcpy(order, sorted, m->nways * sizeof(*order));
	qsort(order, m->nways, sizeof(*order), by_nth);
	for (i = 0; a >= 0 && i < m->nways; i++) {
		struct nccl_way *w = bsearch(&order[i], sorted, m->nways,
					     sizeof(*w), by_ends);

		if (w->done)
			continue;
		a = add_way_edge(m, w);
		key = (struct nccl_way){ w->to, w->from, 0, w->kind, 0, 0, false };
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

static int add_c2c(struct nccl_import *m, const struct xml_element *x, uint32_t gpu)
{
	int64_t count, bw;
	int err = nccl_get_number(m, x, "count", 1, &count);

	if (!err)
		err = nccl_get_number(m, x, "bw", 0, &bw);
	if (err)
		return err;
	if (count < 1 || count > NCCL_LINK_COUNT || bw < 1 || bw > 1000000)
		return nccl_bad(m, x, "count or bw", NULL,
				"count links of bw MB/s each, 1 to 1000000");
	return nccl_add_link(m, x, gpu, cpu_above(m, gpu), (uint64_t)(count * bw),
			     PLAN_NVLINK);
}

/* One chip that shows itself as two switches. Each side may name the other. */
static int add_pcilink(struct nccl_import *m, const struct xml_element *x,
		       uint32_t from)
{
	const char *target = xml_get(x, "target");
	uint32_t to;

	if (!target)
		return nccl_bad(m, x, "no target", NULL, "give a busid");
	to = at_busid(m, target);
	if (to == PLAN_NONE || m->g->nodes[to].kind != PLAN_PCI_SWITCH)
		return nccl_suppose(m, x, "target", target,
				    "no switch here has this busid; the link is left out");
	if (to == from)
		return nccl_bad(m, x, "leads back to its own switch", target,
				"give another switch's busid");
	m->ways[m->nways] = (struct nccl_way){ from < to ? from : to,
					  from < to ? to : from, NCCL_LOC_BW,
					  PLAN_OTHER, x->line, m->nways,
					  false };
	m->nways++;
	return 0;
}

static int join_switches(struct nccl_import *m)
{
	struct plan_error e = { 0 };
	const struct nccl_way *w;
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

/* What the nodes came from; anything else was left out, with all in it. */
static bool in_place(const struct xml_element *x)
{
	const char *in = x->parent->name;

	if (!strcmp(x->name, "pci"))
		return !strcmp(in, "pci") || !strcmp(in, "cpu");
	return (!strcmp(x->name, "gpu") && !strcmp(in, "pci")) ||
	       (!strcmp(x->name, "cpu") && !strcmp(in, "system") &&
		!x->parent->parent);
}

/* Links of one kind, in the whole file. */
static int add_links(struct nccl_import *m, const struct xml_element *x,
		     uint32_t above,
		     bool (*is)(const struct xml_element *),
		     int (*add)(struct nccl_import *, const struct xml_element *,
				uint32_t))
{
	const struct xml_element *c;
	const char *busid = xml_get(x, "busid");
	int err = 0;

	if (!strcmp(x->name, "cpu"))
		m->host = nccl_host_of(m, x);
	if (!strcmp(x->name, "pci"))
		above = at_busid(m, busid);
	for (c = x->first; !err && c; c = c->next) {
		if (above != PLAN_NONE && is(c))
			err = add(m, c, above);
		else if (in_place(c))
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
	return !strcmp(x->name, "pcilink") && x->parent->mark;
}

/* ---- all of them --------------------------------------------------------- */

int nccl_join(struct nccl_import *m)
{
	int err = sort_places(m);

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
	return err ? err : join_switches(m);
}
