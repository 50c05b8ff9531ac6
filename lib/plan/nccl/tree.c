// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What of a graph goes into a topology XML. Called by nccl/write.c.
 *
 * The libraries see a switch as one element, with the bus id of its upstream
 * port; its downstream ports and root ports are no elements. So partitions and
 * appliance switches are elements, nested as plan_node.up nests them, and root
 * ports are passed over.
 *
 * Bus ids that no attribute gives are made up as firmware numbers buses: depth
 * first from 0000:01:00.0, each device on a bus of its own, a switch takes two
 * (its upstream port's, the one inside); after bus ff the next domain begins.
 * What attributes give is passed over.
 *
 * Where GPUs have real bus ids, one that is made up might be that of a device
 * which is no part of the graph, and the library would put that device there.
 * Switches without an id are left out then; what is below is one higher.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/nccl/number.h"
#include "plan/nccl/tree.h"
#include "plan/nccl/xml.h"

struct builder {
	struct nccl_tree *t;
	struct plan_error *e;
	uint32_t *group;	/* of root complexes: a host's first one */
	uint32_t host;		/* the group; PLAN_NONE: not known yet */
	uint32_t gpu;		/* that settled it */
	bool real;		/* GPUs have bus ids of a machine */
	uint32_t ngiven;
	uint64_t *given;	/* bus ids, sorted */
	uint64_t bus;		/* next one, domain and all */
};

static int memory(const struct builder *b)
{
	return plan_fail(b->e, ENOMEM, "out of memory");
}

static const struct plan_node *node_of(const struct builder *b, uint32_t n)
{
	return &b->t->g->nodes[n];
}

/* ---- which nodes -------------------------------------------------------- */

static uint32_t find(uint32_t *group, uint32_t i)
{
	while (group[i] != i)
		i = group[i] = group[group[i]];
	return i;
}

/* CPUs that are joined are one host. */
static void group_cpus(struct builder *b)
{
	const struct plan_graph *g = b->t->g;
	uint32_t i;

	for (i = 0; i < g->nnodes; i++)
		b->group[i] = i;
	for (i = 0; i < g->nedges; i++)
		if (g->edges[i].kind == PLAN_SMP)
			b->group[find(b->group, g->edges[i].from)] =
				find(b->group, g->edges[i].to);
}

static bool may_be_above(enum plan_node_kind kind)
{
	return kind == PLAN_PCI_SWITCH || kind == PLAN_PARTITION ||
	       kind == PLAN_ROOT_PORT || kind == PLAN_ROOT_COMPLEX ||
	       kind == PLAN_NTB;
}

/* The CPU that @node is below; PLAN_NONE: none, or no sensible path there. */
static uint32_t cpu_above(const struct builder *b, uint32_t node)
{
	uint32_t up = node, depth = 0;

	while (node_of(b, up)->kind != PLAN_ROOT_COMPLEX) {
		up = node_of(b, up)->up;
		if (up == PLAN_NONE || up >= b->t->g->nnodes ||
		    ++depth > XML_DEPTH - 6 ||
		    (!may_be_above(node_of(b, up)->kind) &&
		     node_of(b, up)->kind != PLAN_NIC))
			return PLAN_NONE;
	}
	return up;
}

static void take(struct builder *b, uint32_t node)
{
	for (; node_of(b, node)->kind != PLAN_ROOT_COMPLEX;
	     node = node_of(b, node)->up)
		b->t->in[node] = true;
	b->t->in[node] = true;
}

static int take_gpu(struct builder *b, uint32_t node)
{
	uint32_t cpu = cpu_above(b, node), up = node_of(b, node)->up;

	if (cpu == PLAN_NONE || node_of(b, up)->kind == PLAN_NIC)
		return plan_fail(b->e, EINVAL, "%s: no PCI tree leads to it from a root complex; only hosts with their wiring can be written, and what was read from such a file",
				 node_of(b, node)->name);
	cpu = find(b->group, cpu);
	if (b->host == PLAN_NONE) {
		b->host = cpu;
		b->gpu = node;
	}
	if (cpu != b->host)
		return plan_fail(b->e, EINVAL, "%s and %s are on two hosts; a topology file is one host's, choose a host",
				 node_of(b, b->gpu)->name,
				 node_of(b, node)->name);
	take(b, node);
	return 0;
}

/* NICs go along, and what is known by its bus id, if it is the same host's. */
static void take_others(struct builder *b)
{
	const struct plan_graph *g = b->t->g;
	uint32_t i, cpu;

	for (i = 0; i < g->nnodes; i++) {
		enum plan_node_kind kind = g->nodes[i].kind;

		if (kind != PLAN_NIC && kind != PLAN_NET &&
		    (kind != PLAN_PCI_SWITCH ||
		     !plan_node_get(g, i, "pci.busid")) &&
		    (kind != PLAN_ROOT_COMPLEX ||
		     !plan_node_get(g, i, "cpu.numaid")))
			continue;
		if (kind == PLAN_NET && (g->nodes[i].up >= g->nnodes ||
		    g->nodes[g->nodes[i].up].kind != PLAN_NIC))
			continue;
		cpu = cpu_above(b, i);
		if (cpu != PLAN_NONE && find(b->group, cpu) == b->host)
			take(b, i);
	}
}

static int choose(struct builder *b)
{
	const struct plan_graph *g = b->t->g;
	uint32_t i;
	int err = 0;

	group_cpus(b);
	for (i = 0; !err && i < g->nnodes; i++)
		if (b->t->devs[i] != PLAN_NONE ||
		    (b->t->as_read && g->nodes[i].kind == PLAN_GPU))
			err = take_gpu(b, i);
	if (!err && b->host == PLAN_NONE)
		err = plan_fail(b->e, EINVAL, "%s has no GPU to plan for; choose some",
				g->name);
	if (!err)
		take_others(b);
	return err;
}

/* ---- who is below whom --------------------------------------------------- */

/* Root ports, and what has no bus id where there are real ones. */
static bool passed_over(const struct builder *b, uint32_t i)
{
	enum plan_node_kind kind = node_of(b, i)->kind;

	return kind == PLAN_ROOT_PORT ||
	       (b->real && (kind == PLAN_PCI_SWITCH || kind == PLAN_NTB ||
			    kind == PLAN_PARTITION) &&
		!plan_node_get(b->t->g, i, "pci.busid"));
}

static int find_real(struct builder *b)
{
	const struct plan_graph *g = b->t->g;
	uint32_t i, with = PLAN_NONE, without = PLAN_NONE;

	for (i = 0; i < g->nnodes; i++) {
		if (!b->t->in[i] || g->nodes[i].kind != PLAN_GPU)
			continue;
		if (plan_node_get(g, i, "pci.busid"))
			with = i;
		else
			without = i;
	}
	b->real = with != PLAN_NONE;
	if (!b->real || without == PLAN_NONE)
		return 0;
	return plan_fail(b->e, EINVAL, "%s has no bus id, though %s has one; give all GPUs a pci.busid, or none",
			 g->nodes[without].name, g->nodes[with].name);
}

static void nest(struct builder *b)
{
	struct nccl_tree *t = b->t;
	uint32_t i, up;

	for (i = t->g->nnodes; i--;) {	/* lists are in the nodes' order */
		t->ncpus += t->in[i] &&
			    t->g->nodes[i].kind == PLAN_ROOT_COMPLEX;
		if (!t->in[i] || t->g->nodes[i].kind == PLAN_ROOT_COMPLEX ||
		    passed_over(b, i))
			continue;
		up = t->g->nodes[i].up;
		while (passed_over(b, up))
			up = t->g->nodes[up].up;
		t->next[i] = t->first[up];
		t->first[up] = i;
	}
}

static void measure(struct builder *b)
{
	const struct plan_graph *g = b->t->g;
	const struct plan_edge *d;

	for (d = g->edges; d < g->edges + g->nedges; d++)
		if (g->nodes[d->from].up == d->to)
			b->t->capacity[d->from] += d->capacity;
}

/* ---- bus ids ------------------------------------------------------------ */

static bool on_pci(const struct builder *b, uint32_t i)
{
	const struct plan_node *n = node_of(b, i);

	if (!b->t->in[i] || n->kind == PLAN_ROOT_COMPLEX ||
	    n->kind == PLAN_ROOT_PORT || n->kind == PLAN_NET)
		return false;
	/* A NIC of no bus id right below a CPU is a virtual one. */
	return n->kind != PLAN_NIC ||
	       node_of(b, n->up)->kind != PLAN_ROOT_COMPLEX ||
	       plan_node_get(b->t->g, i, "pci.busid");
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int take_given(struct builder *b)
{
	const struct plan_graph *g = b->t->g;
	const char *text;
	uint32_t i;

	for (i = 0; i < g->nnodes; i++) {
		text = plan_node_get(g, i, "pci.busid");
		if (!text || !on_pci(b, i))
			continue;
		b->t->busids[i] = nccl_busid(text);
		if (b->t->busids[i] == NCCL_NO_BUSID)
			return plan_fail(b->e, EINVAL, "%s: pci.busid \"%.40s\"; write it as 0000:c1:00.0",
					 g->nodes[i].name, text);
		b->given[b->ngiven++] = b->t->busids[i];
	}
	qsort(b->given, b->ngiven, sizeof(*b->given), by_value);
	for (i = 1; i < b->ngiven; i++)
		if (b->given[i] == b->given[i - 1])
			return plan_fail(b->e, EINVAL, "two elements have bus id %04llx:%02x:%02x.%x; bus ids are unique in a host",
					 (unsigned long long)b->given[i] >> 20,
					 (unsigned int)(b->given[i] >> 12) & 0xff,
					 (unsigned int)(b->given[i] >> 4) & 0xff,
					 (unsigned int)b->given[i] & 0xf);
	return 0;
}

static uint64_t new_busid(struct builder *b)
{
	uint64_t id;

	do {
		if (!(b->bus & 0xff))
			b->bus++;	/* 00 is the CPU's own */
		id = b->bus++ << 12;
	} while (b->ngiven && bsearch(&id, b->given, b->ngiven, sizeof(id),
				      by_value));
	return id;
}

/* Nested at most XML_DEPTH deep. */
static void number_below(struct builder *b, uint32_t node)
{
	uint32_t i;

	for (i = b->t->first[node]; i != PLAN_NONE; i = b->t->next[i]) {
		if (on_pci(b, i) && b->t->busids[i] == NCCL_NO_BUSID) {
			b->t->busids[i] = new_busid(b);
			if (node_of(b, i)->kind != PLAN_GPU &&
			    node_of(b, i)->kind != PLAN_NIC)
				b->bus++;	/* inside the switch */
		}
		number_below(b, i);
	}
}

/* GPU switches are on no tree here; they come last. */
static void number(struct builder *b)
{
	const struct plan_graph *g = b->t->g;
	uint32_t i;

	b->bus = 1;
	for (i = 0; i < g->nnodes; i++)
		if (b->t->in[i] && g->nodes[i].kind == PLAN_ROOT_COMPLEX)
			number_below(b, i);
	for (i = 0; i < g->nnodes; i++)
		if (g->nodes[i].kind == PLAN_GPU_SWITCH)
			b->t->busids[i] = new_busid(b);
}

/* ---- all of it ----------------------------------------------------------- */

static bool as_read(const struct nccl_tree *t)
{
	const char *version = NULL;
	int64_t n;
	uint32_t i;

	for (i = 0; !version && i < t->g->nnodes; i++)
		if (t->g->nodes[i].kind == PLAN_ROOT_COMPLEX)
			version = plan_node_get(t->g, i, "system.version");
	return version && nccl_int(version, &n) &&
	       n == nccl_limits(t->dialect)->version;
}

static bool reserve(struct builder *b)
{
	struct nccl_tree *t = b->t;
	size_t n = t->g->nnodes + 1;
	uint32_t i;

	t->devs = calloc(n, sizeof(*t->devs));
	t->in = calloc(n, sizeof(*t->in));
	t->first = calloc(n, sizeof(*t->first));
	t->next = calloc(n, sizeof(*t->next));
	t->busids = calloc(n, sizeof(*t->busids));
	t->capacity = calloc(n, sizeof(*t->capacity));
	b->group = calloc(n, sizeof(*b->group));
	b->given = calloc(n, sizeof(*b->given));
	if (!t->devs || !t->in || !t->first || !t->next || !t->busids ||
	    !t->capacity || !b->group || !b->given)
		return false;
	for (i = 0; i < t->g->nnodes; i++) {
		t->first[i] = t->next[i] = PLAN_NONE;
		t->busids[i] = NCCL_NO_BUSID;
	}
	return true;
}

static int build(struct builder *b)
{
	const struct plan_graph *g = b->t->g;
	uint32_t i;
	bool ranks;
	int err;

	if (!reserve(b) || nccl_devs(g, b->t->devs, &ranks))
		return memory(b);
	b->t->as_read = ranks && as_read(b->t);
	/* GPUs that are no ranks have the file's numbers, in the file only. */
	for (i = 0; !b->t->as_read && i < g->nnodes; i++)
		if (g->nodes[i].rank == PLAN_NONE)
			b->t->devs[i] = PLAN_NONE;
	err = choose(b);
	if (!err)
		err = find_real(b);
	if (err)
		return err;
	nest(b);
	measure(b);
	err = take_given(b);
	if (!err)
		number(b);
	return err;
}

int nccl_tree(const struct plan_graph *g, enum plan_dialect d,
	      struct nccl_tree *t, struct plan_error *e)
{
	struct builder b = {
		.t = t, .e = e, .host = PLAN_NONE, .gpu = PLAN_NONE,
	};
	int err;

	*t = (struct nccl_tree){ .g = g, .dialect = d };
	err = build(&b);
	free(b.group);
	free(b.given);
	if (err)
		nccl_tree_free(t);
	return err;
}

void nccl_tree_free(struct nccl_tree *t)
{
	free(t->devs);
	free(t->in);
	free(t->first);
	free(t->next);
	free(t->busids);
	free(t->capacity);
	*t = (struct nccl_tree){ .g = NULL };
}
