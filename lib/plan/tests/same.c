// SPDX-License-Identifier: LGPL-2.1-or-later
/* Are two graphs the same? Called by tests of readers and writers. */
#include <stdio.h>
#include <string.h>

#include "same.h"

static char why[512];

static const char *attributes(const struct plan_graph *a,
			      const struct plan_graph *b, uint32_t i)
{
	const struct plan_node *n = &a->nodes[i];
	const char *value;
	uint32_t k;

	for (k = 0; k < n->nattributes; k++) {
		value = plan_node_get(b, i, n->attributes[k].key);
		if (value && !strcmp(value, n->attributes[k].value))
			continue;
		snprintf(why, sizeof(why), "%s: %.100s is \"%.100s\" and \"%.100s\"",
			 n->name, n->attributes[k].key, n->attributes[k].value,
			 value ? value : "(nothing)");
		return why;
	}
	return NULL;
}

static const char *node(const struct plan_graph *a, const struct plan_graph *b,
			uint32_t i)
{
	const struct plan_node *x = &a->nodes[i], *y = &b->nodes[i];

	if (strcmp(x->name, y->name) || x->kind != y->kind ||
	    x->rank != y->rank || x->box != y->box || x->up != y->up ||
	    x->nattributes != y->nattributes) {
		snprintf(why, sizeof(why), "node %u: %s (%s, rank %d, box %d, up %d, %u attributes) and %s (%s, %d, %d, %d, %u)",
			 i, x->name, plan_node_kind_name(x->kind), (int)x->rank,
			 (int)x->box, (int)x->up, x->nattributes, y->name,
			 plan_node_kind_name(y->kind), (int)y->rank,
			 (int)y->box, (int)y->up, y->nattributes);
		return why;
	}
	return attributes(a, b, i);
}

static const char *edge(const struct plan_graph *a, const struct plan_graph *b,
			uint32_t i)
{
	const struct plan_edge *x = &a->edges[i], *y = &b->edges[i];

	if (x->from == y->from && x->to == y->to && x->kind == y->kind &&
	    x->capacity == y->capacity && x->latency == y->latency &&
	    x->twin == y->twin)
		return NULL;
	snprintf(why, sizeof(why), "edge %u: %u to %u, %s, %llu MB/s, %u ns, twin %d and %u to %u, %s, %llu MB/s, %u ns, twin %d",
		 i, x->from, x->to, plan_link_kind_name(x->kind),
		 (unsigned long long)x->capacity, x->latency, (int)x->twin,
		 y->from, y->to, plan_link_kind_name(y->kind),
		 (unsigned long long)y->capacity, y->latency, (int)y->twin);
	return why;
}

const char *same_graph(const struct plan_graph *a, const struct plan_graph *b)
{
	const char *differs = NULL;
	uint32_t i;

	if (a->nnodes != b->nnodes || a->nedges != b->nedges ||
	    a->nranks != b->nranks || a->nboxes != b->nboxes) {
		snprintf(why, sizeof(why), "%u nodes, %u edges, %u ranks, %u boxes and %u, %u, %u, %u",
			 a->nnodes, a->nedges, a->nranks, a->nboxes,
			 b->nnodes, b->nedges, b->nranks, b->nboxes);
		return why;
	}
	for (i = 0; !differs && i < a->nnodes; i++)
		differs = node(a, b, i);
	for (i = 0; !differs && i < a->nedges; i++)
		differs = edge(a, b, i);
	if (!differs && a->nranks &&
	    memcmp(a->gpus, b->gpus, a->nranks * sizeof(*a->gpus)))
		differs = "ranks are other GPUs";
	return differs;
}
