// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Would the library accept this graph file? Called by api/write.c, and by tests
 * for everything that is written.
 *
 * The library does not check anything: a channel that is short, or more of
 * them than nchannels says, becomes what was in memory before.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/nccl/check.h"

#define PATTERNS	6	/* 1 to 3 trees, 4 ring, 5 NVLS, 6 direct */
#define RING		4
#define NVLS		5

struct dev {
	uint64_t dev;
	const struct xml_element *x;
};

struct validator {
	struct nccl_check c;
	const struct xml_element *root;
	uint32_t elements;
	struct dev *devs, *first;	/* of a channel; of the first one */
	uint32_t ndevs, nfirst;
};

static const struct nccl_attribute attributes[] = {
	{ "graphs", "version", NCCL_INT, NCCL_NEED },
	{ "graph", "id", NCCL_INDEX, NCCL_NEED },
	{ "graph", "pattern", NCCL_COUNT, NCCL_NEED },
	{ "graph", "crossnic", NCCL_INDEX, NCCL_NEED },
	{ "graph", "nchannels", NCCL_INDEX, NCCL_NEED },
	{ "graph", "speedintra", NCCL_REAL, NCCL_NEED },
	{ "graph", "speedinter", NCCL_REAL, NCCL_NEED },
	{ "graph", "latencyinter", NCCL_REAL, 0 },
	{ "graph", "typeintra", NCCL_PATH, NCCL_NEED },
	{ "graph", "typeinter", NCCL_PATH, NCCL_NEED },
	{ "graph", "samechannels", NCCL_FLAG, NCCL_NEED },
	{ "gpu", "dev", NCCL_DEV, NCCL_NEED },
	{ "gpu", "rank", NCCL_INDEX, 0 },
	{ "net", "dev", NCCL_DEV, NCCL_NEED },
	{ NULL, NULL, NCCL_TEXT, 0 }
};

static int64_t number(const struct xml_element *x, const char *key)
{
	const char *text = xml_get(x, key);
	int64_t n;

	return text && nccl_int(text, &n) ? n : -1;
}

/* ---- one channel --------------------------------------------------------- */

static int by_dev(const void *a, const void *b)
{
	const struct dev *x = a, *y = b;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	return (x->x->line > y->x->line) - (x->x->line < y->x->line);
}

static void check_devs(struct validator *v)
{
	uint32_t i;

	qsort(v->devs, v->ndevs, sizeof(*v->devs), by_dev);
	for (i = 1; i < v->ndevs; i++)
		if (v->devs[i].dev == v->devs[i - 1].dev)
			nccl_violation(&v->c, v->devs[i].x, "dev \"0x%llx\" is in line %u, too; a channel has each GPU once",
				       (unsigned long long)v->devs[i].dev,
				       v->devs[i - 1].x->line);
}

/* All channels of a graph go through the same GPUs. */
static void check_same(struct validator *v, const struct xml_element *x)
{
	struct dev *swap;
	uint32_t i;

	if (!v->nfirst) {
		swap = v->first;
		v->first = v->devs;
		v->devs = swap;
		v->nfirst = v->ndevs;
		return;
	}
	if (v->ndevs != v->nfirst) {
		nccl_violation(&v->c, x, "%u GPUs, the first channel has %u; each channel has all",
			       v->ndevs, v->nfirst);
		return;
	}
	for (i = 0; i < v->ndevs; i++)
		if (v->devs[i].dev != v->first[i].dev)
			break;
	if (i < v->ndevs)
		nccl_violation(&v->c, x, "GPUs that the first channel does not have; each channel has all");
}

static void check_channel(struct validator *v, const struct xml_element *x,
			  int64_t pattern)
{
	const struct xml_element *c;
	uint32_t nets = 0;

	v->ndevs = 0;
	nccl_check_attributes(&v->c, x, attributes);
	for (c = x->first; c; c = c->next) {
		v->elements++;
		nccl_check_attributes(&v->c, c, attributes);
		if (!strcmp(c->name, "net"))
			nets++;
		else if (strcmp(c->name, "gpu"))
			nccl_violation(&v->c, c, "the library passes over it; take it out");
		else if (xml_get(c, "dev"))
			v->devs[v->ndevs++] = (struct dev){
				strtoull(xml_get(c, "dev"), NULL, 16), c
			};
		if (c->first)
			nccl_violation(&v->c, c, "something in it; the library passes over that, take it out");
	}
	if (!v->ndevs)
		nccl_violation(&v->c, x, "no <gpu> in it; a channel has each GPU");
	if (nets && nets != 2)
		nccl_violation(&v->c, x, "%u <net>; a channel has none, or one at either end",
			       nets);
	else if (nets && (strcmp(x->first->name, "net") ||
			  strcmp(x->last->name, "net")))
		nccl_violation(&v->c, x, "<net> between GPUs; a channel has none, or one at either end");
	check_devs(v);
	if (pattern != NVLS)	/* there each has the one GPU that it is for */
		check_same(v, x);
}

/* ---- graphs -------------------------------------------------------------- */

static void check_graph(struct validator *v, const struct xml_element *x)
{
	int64_t pattern = number(x, "pattern");
	int64_t channels = number(x, "nchannels"), n = 0;
	const struct xml_element *c;

	v->elements++;
	v->nfirst = 0;
	nccl_check_attributes(&v->c, x, attributes);
	if (pattern > PATTERNS)
		nccl_violation(&v->c, x, "pattern %lld; 4 is a ring, 1 to 6 are known",
			       (long long)pattern);
	for (c = x->first; c; c = c->next) {
		if (strcmp(c->name, "channel")) {
			nccl_violation(&v->c, c, "the library passes over it and what is in it; take it out");
			continue;
		}
		n++;
		v->elements++;
		check_channel(v, c, pattern);
	}
	if (channels >= 0 && channels != n)
		nccl_violation(&v->c, x, "nchannels %lld, but %lld channels; write how many there are",
			       (long long)channels, (long long)n);
	if (n > nccl_limits(PLAN_RCCL)->channels)
		nccl_violation(&v->c, x, "%lld channels; NCCL takes %u, RCCL %u",
			       (long long)n, nccl_limits(PLAN_NCCL)->channels,
			       nccl_limits(PLAN_RCCL)->channels);
}

static void check_ids(struct validator *v)
{
	const struct xml_element *seen[16] = { NULL }, *x;
	int64_t id;

	for (x = xml_child(v->root, "graph"); x; x = xml_sibling(x, "graph")) {
		id = number(x, "id");
		if (id < 0)
			continue;
		if (id > 15)
			nccl_violation(&v->c, x, "id %lld; the library has graphs 0 to 5, 0 is of rings",
				       (long long)id);
		else if (seen[id])
			nccl_violation(&v->c, x, "id %lld is that of line %u, too; the last one counts, take the other out",
				       (long long)id, seen[id]->line);
		else
			seen[id] = x;
	}
}

static void check_graphs(struct validator *v)
{
	const struct xml_element *x;
	int64_t version = number(v->root, "version");

	if (strcmp(v->root->name, "graphs")) {
		nccl_violation(&v->c, v->root, "the outermost element is not <graphs>; give a graph, as NCCL_GRAPH_DUMP_FILE writes it");
		return;
	}
	nccl_check_attributes(&v->c, v->root, attributes);
	if (version >= 0 && version != 1)
		nccl_violation(&v->c, v->root, "version %lld; the libraries read 1",
			       (long long)version);
	v->elements++;
	for (x = v->root->first; x; x = x->next) {
		if (!strcmp(x->name, "graph"))
			check_graph(v, x);
		else
			nccl_violation(&v->c, x, "the library passes over it and what is in it; take it out");
	}
	if (!xml_child(v->root, "graph"))
		nccl_violation(&v->c, v->root, "no <graph> in it; write one");
	check_ids(v);
	/* It looks for room before it sees that there is nothing more. */
	if (v->elements >= nccl_limits(PLAN_NCCL)->graph_elements)
		nccl_violation(&v->c, v->root, "%u elements; NCCL takes %u, RCCL %u",
			       v->elements,
			       nccl_limits(PLAN_NCCL)->graph_elements - 1,
			       nccl_limits(PLAN_RCCL)->graph_elements - 1);
}

int plan_nccl_graph_validate(const char *text, size_t length, const char *name,
			     struct plan_error *e)
{
	struct xml_element *root = xml_parse(text, length, name, e);
	struct validator v = {
		.c = { .name = name, .e = e, .dialect = PLAN_NCCL },
		.root = root,
	};
	uint32_t n;

	if (!root)
		return -EINVAL;
	n = xml_count(root);
	v.devs = calloc(n, sizeof(*v.devs));
	v.first = calloc(n, sizeof(*v.first));
	v.c.memory = !v.devs || !v.first;
	if (!v.c.memory) {
		nccl_check_bytes(&v.c, text, length);
		check_graphs(&v);
	}
	free(v.devs);
	free(v.first);
	xml_free(root);
	return nccl_check_done(&v.c);
}
