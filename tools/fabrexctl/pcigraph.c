// SPDX-License-Identifier: GPL-2.0-only
/* See pcigraph.h. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "graph.h"
#include "hardware.h"
#include "pcigraph.h"
#include "pcitree.h"
#include "topology/pcie.h"
#include "util.h"

struct making {
	struct ctl *c;
	struct pci_tree tree;
	const struct pci_capacity *capacity;
	struct fabrex_plan_graph *g;
	uint32_t *node;		/* of each function; FABREX_PLAN_NONE */
	struct gpu *gpus;
	size_t ngpus;
};

static bool is_gone(const struct pci_function *f)
{
	for (; f; f = f->up)
		if (f->gone)
			return true;
	return false;
}

static bool is_gpu(const struct pci_function *f)
{
	return f->kind == FUNCTION_GPU && !*f->physfn && !is_gone(f);
}

static bool is_element(const struct pci_function *f)
{
	return is_gpu(f) || (f->kind == FUNCTION_UPSTREAM && !is_gone(f));
}

/* ---- links --------------------------------------------------------------- */

/* GPUs lower the speed of an idle link, not its width. */
static uint64_t capacity_of(const struct making *m,
			    const struct pci_function *f)
{
	uint32_t speed = f->most.speed, width = f->most.width;
	double share = 1;

	if (f->up && f->up->most.speed && f->up->most.speed < speed)
		speed = f->up->most.speed;
	if (f->up && f->up->most.width && f->up->most.width < width)
		width = f->up->most.width;
	if (f->link.width && f->link.width < width) {
		graph_warn(m->g, "%s has a link of %u lanes, though both ends have %u; reseat the device or the cable",
			   f->name, f->link.width, width);
		width = f->link.width;
	}
	if (pcie_rate(speed / 1000.0, width))
		share = pcie_rate(speed / 1000.0, width) / pcie_rate(16, 16);
	else if (f->up)
		graph_warn(m->g, "%s: the speed of its link is not known; planned as if it were Gen4 x16",
			   f->name);
	return (uint64_t)(m->capacity->link * 1000 * share + 0.5);
}

static int add_link(struct making *m, uint32_t node, uint32_t up,
		    uint64_t capacity, int kind)
{
	int r = fabrex_plan_link_add(m->g, node, up, capacity ? capacity : 1, 0,
				     kind);

	return r < 0 ? r : 0;
}

/* ---- nodes --------------------------------------------------------------- */

static int cpu_node(struct making *m, int numa, uint32_t *node)
{
	char name[24];
	int r;

	snprintf(name, sizeof(name), "cpu%d", numa);
	*node = fabrex_plan_node_find(m->g, name);
	if (*node != FABREX_PLAN_NONE)
		return 0;
	r = fabrex_plan_node_add(m->g, FABREX_PLAN_ROOT_COMPLEX, name, 0,
				 FABREX_PLAN_NONE);
	*node = (uint32_t)r;
	return r < 0 ? r : 0;
}

/* Firmware without NUMA says -1: there is one node, and it is node 0. */
static int numa_of(const struct pci_function *f)
{
	while (f->up)
		f = f->up;
	return f->numa_node < 0 ? 0 : f->numa_node;
}

static int node_kind(const struct pci_function *f)
{
	switch (f->kind) {
	case FUNCTION_GPU:
		return FABREX_PLAN_GPU;
	case FUNCTION_ROOT_PORT:
		return FABREX_PLAN_ROOT_PORT;
	case FUNCTION_UPSTREAM:
		return FABREX_PLAN_PCI_SWITCH;
	default:
		return 0;	/* it is part of one, or a plain bridge */
	}
}

static int add_node(struct making *m, const struct pci_function *f,
		    uint32_t *node)
{
	const struct pci_function *up = f->up;
	uint32_t above = FABREX_PLAN_NONE;
	uint64_t capacity, most = (uint64_t)(m->capacity->root_complex * 1000);
	int r = 0;

	while (up && m->node[up - m->tree.v] == FABREX_PLAN_NONE)
		up = up->up;
	if (up)
		above = m->node[up - m->tree.v];
	else
		r = cpu_node(m, numa_of(f), &above);
	if (r)
		return r;
	r = fabrex_plan_node_add(m->g, node_kind(f), f->name, 0, above);
	if (r < 0)
		return r;
	*node = (uint32_t)r;
	capacity = up ? capacity_of(m, f) : most;
	return add_link(m, *node, above, capacity, up ? FABREX_PLAN_PCIE :
							FABREX_PLAN_ROOT);
}

/*
 * Of GPUs and switches, and of what leads to them; whatever is above a function
 * is before it.
 */
static int add_nodes(struct making *m)
{
	bool *wanted = xcalloc(m->tree.n + 1, sizeof(*wanted));
	const struct pci_function *f;
	size_t i;
	int r = 0;

	for (i = 0; i < m->tree.n; i++)
		for (f = &m->tree.v[i]; f && is_element(&m->tree.v[i]); f = f->up)
			wanted[f - m->tree.v] = true;
	for (i = 0; i < m->tree.n; i++)
		m->node[i] = FABREX_PLAN_NONE;
	for (i = 0; i < m->tree.n && !r; i++)
		if (wanted[i] && node_kind(&m->tree.v[i]))
			r = add_node(m, &m->tree.v[i], &m->node[i]);
	free(wanted);
	return r;
}

/* Each CPU with each, as the libraries suppose it. */
static int join_cpus(struct making *m)
{
	const uint32_t n = graph_attr(m->g).nodes;
	uint32_t i, k, joined = 0;
	int r = 0;

	for (i = 0; i < n && !r; i++)
		for (k = 0; k < i && !r; k++)
			if (graph_node(m->g, i).kind == FABREX_PLAN_ROOT_COMPLEX &&
			    graph_node(m->g, k).kind == FABREX_PLAN_ROOT_COMPLEX) {
				r = add_link(m, k, i, (uint64_t)
					     (m->capacity->root_complex * 1000),
					     FABREX_PLAN_SMP);
				joined++;
			}
	if (joined)
		graph_warn(m->g, "what passes between processors is not known; planned with %g GB/s, root_complex_gbps of --topology FILE says it",
			   m->capacity->root_complex);
	return r;
}

/* ---- all of it ----------------------------------------------------------- */

static void list_gpus(struct making *m)
{
	size_t i;

	m->gpus = xcalloc(m->tree.n + 1, sizeof(*m->gpus));
	for (i = 0; i < m->tree.n; i++) {
		struct gpu *gpu = &m->gpus[m->ngpus];

		if (!is_gpu(&m->tree.v[i]))
			continue;
		snprintf(gpu->name, sizeof(gpu->name), "%s", m->tree.v[i].name);
		snprintf(gpu->pci, sizeof(gpu->pci), "%s", m->tree.v[i].name);
		m->ngpus++;
	}
}

static void warn_unseen(struct making *m)
{
	size_t i, n = 0;

	if (m->tree.unreadable)
		graph_warn(m->g, "/sys/bus/pci/devices cannot be read (%s), so no device is known",
			   strerror(m->tree.unreadable));
	for (i = 0; i < m->tree.n; i++)
		if (m->tree.v[i].kind == FUNCTION_GPU && is_gone(&m->tree.v[i]))
			graph_warn(m->g, "%s does not answer, or a bridge above it does not; left out",
				   m->tree.v[i].name);

	for (i = 0; i < m->tree.n; i++)
		n += m->node[i] != FABREX_PLAN_NONE && m->tree.v[i].supposed;
	if (n)
		graph_warn(m->g, "only root may read which bridges are switches; supposed of %zu by their place in the tree",
			   n);
}

static int make(struct making *m)
{
	char host[64] = "machine";
	uint32_t cpu;
	int r;

	gethostname(host, sizeof(host) - 1);
	r = fabrex_plan_graph_create(*host ? host : "machine", &m->g);
	if (!r)
		r = cpu_node(m, 0, &cpu);
	if (!r)
		r = add_nodes(m);
	if (!r)
		r = join_cpus(m);
	if (r)
		return err_set(&m->c->err, -r, "live", "%s",
			       fabrex_plan_strerror_last());
	hardware_add(m->g, m->gpus, m->ngpus);
	warn_unseen(m);
	return 0;
}

int pci_graph(struct ctl *c, const struct pci_capacity *capacity,
	      struct fabrex_plan_graph **g)
{
	struct making m = { .c = c, .capacity = capacity };
	struct p2p_env env;
	int r;

	fxi_p2p_env(&env);
	pci_tree_read(&env, &m.tree);
	m.node = xcalloc(m.tree.n + 1, sizeof(*m.node));
	list_gpus(&m);
	r = make(&m);
	if (r)
		fabrex_plan_graph_free(m.g);
	else
		*g = m.g;
	pci_tree_free(&m.tree);
	free(m.node);
	free(m.gpus);
	return r;
}
