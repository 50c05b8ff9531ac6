// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Who is which: ranks and boxes of a topology that was read, numbers of GPUs
 * in one that is written. Called by nccl/read.c, nccl/write.c, nccl/graph.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/nccl/number.h"
#include "plan/nccl/rules.h"

/* ---- ranks --------------------------------------------------------------- */

struct numbered {
	uint32_t node;
	int64_t number;
};

static int by_number(const void *a, const void *b)
{
	const struct numbered *x = a, *y = b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

/* GPUs with the number that @key gives them; those without are left out. */
static int by_key(const struct plan_graph *g, const char *name,
		  const char *key, struct numbered *list, uint32_t *n,
		  struct plan_error *e)
{
	uint32_t i;

	*n = 0;
	for (i = 0; i < g->nnodes; i++) {
		const char *text = plan_node_get(g, i, key);

		if (g->nodes[i].kind != PLAN_GPU || !text)
			continue;
		list[*n].node = i;
		if (!nccl_int(text, &list[*n].number) || list[*n].number < 0)
			return plan_fail(e, EINVAL, "%.100s:%u: <gpu>: %s \"%.40s\"; give a number, from 0",
					 name, g->nodes[i].line, key + 4,
					 text);
		(*n)++;
	}
	qsort(list, *n, sizeof(*list), by_number);
	return 0;
}

static int number_ranks(struct plan_graph *g, const char *name,
			uint32_t nhosts, struct numbered *list,
			uint32_t *nodes, struct plan_error *e)
{
	uint32_t n, i, gpus = g->nranks;
	int err = by_key(g, name, "gpu.rank", list, &n, e);

	for (i = 1; !err && i < n; i++)
		if (list[i].number == list[i - 1].number)
			err = plan_fail(e, EINVAL, "%.100s:%u: <gpu>: rank %lld is that of line %u, too; ranks are unique",
					name,
					g->nodes[list[i].node].line,
					(long long)list[i].number,
					g->nodes[list[i - 1].node].line);
	/* The library gives ranks itself; several hosts have the same devs. */
	if (!err && !n && nhosts == 1) {
		err = by_key(g, name, "gpu.dev", list, &n, e);
		if (n < gpus)
			n = 0;
	}
	if (err || !n)
		return err;
	for (i = 0; i < n; i++)
		nodes[i] = list[i].node;
	return plan_graph_ranks(g, nodes, n, e);
}

int nccl_set_ranks(struct plan_graph *g, const char *name, uint32_t nhosts,
		   struct plan_error *e)
{
	struct numbered *list = calloc(g->nnodes + 1, sizeof(*list));
	uint32_t *nodes = calloc(g->nnodes + 1, sizeof(*nodes));
	int err;

	if (list && nodes)
		err = number_ranks(g, name, nhosts, list, nodes, e);
	else
		err = plan_fail(e, ENOMEM, "%.100s: out of memory", name);
	free(list);
	free(nodes);
	return err;
}

/* ---- boxes --------------------------------------------------------------- */

static uint32_t find(uint32_t *group, uint32_t i)
{
	while (group[i] != i)
		i = group[i] = group[group[i]];
	return i;
}

/* What is plugged in right below a CPU, with @node in it; or the CPU. */
static uint32_t topmost(const struct plan_graph *g, uint32_t node)
{
	uint32_t top = g->nodes[node].up;

	while (g->nodes[top].up != PLAN_NONE &&
	       g->nodes[g->nodes[top].up].up != PLAN_NONE)
		top = g->nodes[top].up;
	return top;
}

static bool joins_gpus(const struct plan_graph *g, const struct plan_edge *d)
{
	return (d->kind == PLAN_XGMI || d->kind == PLAN_NVLINK) &&
	       g->nodes[d->from].kind != PLAN_ROOT_COMPLEX &&
	       g->nodes[d->to].kind != PLAN_ROOT_COMPLEX;
}

/* @size: zeroes */
static void group_gpus(const struct plan_graph *g, uint32_t *group,
		       uint32_t *size)
{
	const struct plan_edge *d;
	uint32_t i;

	for (i = 0; i < g->nnodes; i++)
		group[i] = i;
	for (d = g->edges; d < g->edges + g->nedges; d++)
		if (joins_gpus(g, d))
			group[find(group, d->from)] = find(group, d->to);
	for (i = 0; i < g->nnodes; i++)
		size[find(group, i)] += g->nodes[i].kind == PLAN_GPU;
	for (i = 0; i < g->nnodes; i++)
		if (g->nodes[i].kind == PLAN_GPU && group[i] == i &&
		    size[i] == 1)
			group[i] = topmost(g, i);
}

/* All that is between @gpu and its CPU, if it is in no other box. */
static void box_above(struct plan_graph *g, uint32_t gpu, bool *mixed)
{
	uint32_t box = g->nodes[gpu].box, up = g->nodes[gpu].up;

	for (; g->nodes[up].kind != PLAN_ROOT_COMPLEX; up = g->nodes[up].up) {
		if (g->nodes[up].box == PLAN_NONE && !mixed[up])
			g->nodes[up].box = box;
		else if (g->nodes[up].box != box)
			mixed[up] = true;
		if (mixed[up])
			g->nodes[up].box = PLAN_NONE;
	}
}

/* @boxes: PLAN_NONE of each node; @mixed: false of each */
static void fill_boxes(struct plan_graph *g, uint32_t *group, uint32_t *boxes,
		       bool *mixed)
{
	struct plan_node *n;
	uint32_t i, top;

	for (i = 0; i < g->nnodes; i++) {
		n = &g->nodes[i];
		top = find(group, i);
		if (n->kind != PLAN_GPU)
			continue;
		if (boxes[top] == PLAN_NONE)
			boxes[top] = g->nboxes++;
		n->box = boxes[top];
	}
	for (i = 0; i < g->nnodes; i++)
		if (g->nodes[i].kind == PLAN_GPU)
			box_above(g, i, mixed);
	for (i = 0; i < g->nnodes; i++) {	/* what is above comes before */
		n = &g->nodes[i];
		if (n->kind == PLAN_GPU_SWITCH)
			n->box = boxes[find(group, i)];
		else if ((n->kind == PLAN_NIC || n->kind == PLAN_NET))
			n->box = g->nodes[n->up].box;
	}
}

int nccl_set_boxes(struct plan_graph *g)
{
	uint32_t n = g->nnodes + 1;
	uint32_t *group = calloc(n, sizeof(*group));
	uint32_t *size = calloc(n, sizeof(*size));
	bool *mixed = calloc(n, sizeof(*mixed));
	int err = 0;

	if (group && size && mixed) {
		group_gpus(g, group, size);
		memset(size, 0xff, n * sizeof(*size));
		fill_boxes(g, group, size, mixed);
	} else {
		err = -ENOMEM;
	}
	free(group);
	free(size);
	free(mixed);
	return err;
}

/* ---- numbers that are written ------------------------------------------- */

/* The GPUs that the file's own numbers make ranks, in their order. */
static int file_ranks(const struct plan_graph *g, struct numbered *list,
		      uint32_t *n)
{
	uint32_t i, gpus = 0;
	int err = by_key(g, "", "gpu.rank", list, n, NULL);

	for (i = 0; i < g->nnodes; i++)
		gpus += g->nodes[i].kind == PLAN_GPU;
	if (!err && !*n) {
		err = by_key(g, "", "gpu.dev", list, n, NULL);
		if (*n < gpus)
			*n = 0;
	}
	return err;
}

static bool same_ranks(const struct plan_graph *g, const struct numbered *list,
		       uint32_t n)
{
	uint32_t i;

	if (!n || n != g->nranks)
		return false;
	for (i = 0; i < n; i++)
		if (list[i].node != g->gpus[i] ||
		    !plan_node_get(g, list[i].node, "gpu.dev"))
			return false;
	return true;
}

/* Numbers as the file has them; false: it has none, or one twice. */
static bool file_devs(const struct plan_graph *g, struct numbered *list,
		      uint32_t *devs)
{
	uint32_t n, i;

	if (by_key(g, "", "gpu.dev", list, &n, NULL))
		return false;
	for (i = 0; i < n; i++) {
		if (i && list[i].number == list[i - 1].number)
			return false;
		devs[list[i].node] = (uint32_t)list[i].number;
	}
	return true;
}

/* Of ranks alone; false: one has none, or they are not unique. */
static bool rank_devs(const struct plan_graph *g, struct numbered *list,
		      uint32_t *devs)
{
	uint32_t i;

	for (i = 0; i < g->nranks; i++) {
		const char *text = plan_node_get(g, g->gpus[i], "gpu.dev");

		list[i].node = g->gpus[i];
		if (!text || !nccl_int(text, &list[i].number) ||
		    list[i].number < 0 || list[i].number > INT32_MAX)
			return false;
	}
	qsort(list, g->nranks, sizeof(*list), by_number);
	for (i = 1; i < g->nranks; i++)
		if (list[i].number == list[i - 1].number)
			return false;
	for (i = 0; i < g->nranks; i++)
		devs[list[i].node] = (uint32_t)list[i].number;
	return true;
}

int nccl_devs(const struct plan_graph *g, uint32_t *devs, bool *as_read)
{
	struct numbered *list = calloc(g->nnodes + 1, sizeof(*list));
	bool given;
	uint32_t n, i;

	if (!list)
		return -ENOMEM;
	memset(devs, 0xff, g->nnodes * sizeof(*devs));
	*as_read = !file_ranks(g, list, &n) && same_ranks(g, list, n) &&
		   file_devs(g, list, devs);
	if (!*as_read)
		memset(devs, 0xff, g->nnodes * sizeof(*devs));
	given = *as_read || rank_devs(g, list, devs);
	free(list);
	for (i = 0; !given && i < g->nranks; i++)
		devs[g->gpus[i]] = i;
	return 0;
}
