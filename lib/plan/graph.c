// SPDX-License-Identifier: LGPL-2.1-or-later
/* Graphs: creation, changes, lookups. Called by readers and by api/graph.c. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"
#include "plan/util.h"

/* Names to nodes: open addressing, at most half full. */
struct plan_graph_private {
	uint32_t nslots;
	uint32_t *slots;	/* node + 1; 0: empty */
	uint64_t node_room, edge_room, gpu_room;
};

static const char *const node_kinds[PLAN_NODE_KINDS] = {
	[PLAN_GPU] = "gpu",
	[PLAN_PCI_SWITCH] = "pci-switch",
	[PLAN_PARTITION] = "partition",
	[PLAN_ROOT_PORT] = "root-port",
	[PLAN_ROOT_COMPLEX] = "root-complex",
	[PLAN_NTB] = "ntb",
	[PLAN_GPU_SWITCH] = "gpu-switch",
	[PLAN_NIC] = "nic",
	[PLAN_NET] = "net",
};

static const char *const link_kinds[PLAN_LINK_KINDS] = {
	[PLAN_PCIE] = "pcie",
	[PLAN_CABLE] = "cable",
	[PLAN_ISL] = "isl",
	[PLAN_XGMI] = "xgmi",
	[PLAN_NVLINK] = "nvlink",
	[PLAN_ROOT] = "root",
	[PLAN_SMP] = "smp",
	[PLAN_OTHER] = "other",
};

const char *plan_node_kind_name(enum plan_node_kind kind)
{
	return kind > 0 && kind < PLAN_NODE_KINDS ? node_kinds[kind] : "?";
}

const char *plan_link_kind_name(enum plan_link_kind kind)
{
	return kind > 0 && kind < PLAN_LINK_KINDS ? link_kinds[kind] : "?";
}

static unsigned int find_word(const char *const *words, unsigned int n,
			      const char *word)
{
	unsigned int i;

	for (i = 1; i < n; i++)
		if (!strcmp(word, words[i]))
			return i;
	return 0;
}

enum plan_node_kind plan_node_kind_parse(const char *word)
{
	return find_word(node_kinds, PLAN_NODE_KINDS, word);
}

enum plan_link_kind plan_link_kind_parse(const char *word)
{
	return find_word(link_kinds, PLAN_LINK_KINDS, word);
}

/* FNV-1a */
static uint32_t hash(const char *name)
{
	uint32_t h = 2166136261u;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 16777619u;
	return h;
}

/* The slot that has @name, or would. */
static uint32_t *slot_of(const struct plan_graph *g, const char *name)
{
	uint32_t mask = g->private->nslots - 1, i = hash(name) & mask;
	uint32_t *slots = g->private->slots;

	while (slots[i] && strcmp(g->nodes[slots[i] - 1].name, name))
		i = (i + 1) & mask;
	return &slots[i];
}

static int rehash(struct plan_graph *g)
{
	struct plan_graph_private *p = g->private;
	uint32_t n = p->nslots ? 2 * p->nslots : 64, i;
	uint32_t *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	free(p->slots);
	p->slots = slots;
	p->nslots = n;
	for (i = 0; i < g->nnodes; i++)
		*slot_of(g, g->nodes[i].name) = i + 1;
	return 0;
}

struct plan_graph *plan_graph_new(const char *name)
{
	struct plan_graph *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	snprintf(g->name, sizeof(g->name), "%s", name);
	g->private = calloc(1, sizeof(*g->private));
	if (!g->private || rehash(g)) {
		plan_graph_free(g);
		return NULL;
	}
	return g;
}

static void free_attributes(struct plan_node *n)
{
	uint32_t i;

	for (i = 0; i < n->nattributes; i++) {
		free(n->attributes[i].key);
		free(n->attributes[i].value);
	}
	free(n->attributes);
}

void plan_graph_free(struct plan_graph *g)
{
	uint32_t i;

	if (!g)
		return;
	for (i = 0; i < g->nnodes; i++)
		free_attributes(&g->nodes[i]);
	for (i = 0; i < g->nwarnings; i++)
		free(g->warnings[i]);
	if (g->private)
		free(g->private->slots);
	free(g->private);
	free(g->warnings);
	free(g->nodes);
	free(g->edges);
	free(g->gpus);
	free(g);
}

static int copy_attributes(struct plan_graph *to, const struct plan_graph *from,
			   uint32_t node)
{
	const struct plan_node *n = &from->nodes[node];
	uint32_t i;
	int err;

	for (i = 0; i < n->nattributes; i++) {
		err = plan_node_set(to, node, n->attributes[i].key,
				    n->attributes[i].value);
		if (err)
			return err;
	}
	return 0;
}

static int copy_into(struct plan_graph *c, const struct plan_graph *g)
{
	const struct plan_node *n;
	const struct plan_edge *d;
	uint32_t i;
	int err = 0;

	for (i = 0; !err && i < g->nnodes; i++) {
		n = &g->nodes[i];
		if (plan_graph_add_node(c, n->kind, n->name, n->box, NULL) < 0)
			return -ENOMEM;
		c->nodes[i].rank = n->rank;
		c->nodes[i].up = n->up;
		c->nodes[i].line = n->line;
		err = copy_attributes(c, g, i);
	}
	for (i = 0; !err && i < g->nedges; i++) {
		d = &g->edges[i];
		if (plan_graph_add_edge(c, d->from, d->to, d->capacity,
					d->latency, d->kind, NULL) < 0)
			return -ENOMEM;
		c->edges[i] = *d;
	}
	for (i = 0; !err && i < g->nwarnings; i++)
		err = plan_graph_warn(c, "%s", g->warnings[i]);
	if (err)
		return err;
	for (i = 0; i < g->nranks; i++)	/* there were as many GPUs */
		c->gpus[i] = g->gpus[i];
	c->nranks = g->nranks;
	c->nboxes = g->nboxes;
	return 0;
}

struct plan_graph *plan_graph_copy(const struct plan_graph *g)
{
	struct plan_graph *c = plan_graph_new(g->name);

	if (c && copy_into(c, g)) {
		plan_graph_free(c);
		return NULL;
	}
	return c;
}

static bool good_name(const char *name)
{
	const char *p;

	if (!*name || strlen(name) >= PLAN_NAME)
		return false;
	for (p = name; *p; p++)
		if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZ"
			    "abcdefghijklmnopqrstuvwxyz0123456789._:-", *p))
			return false;
	return true;
}

int64_t plan_graph_add_node(struct plan_graph *g, enum plan_node_kind kind,
			    const char *name, uint32_t box,
			    struct plan_error *e)
{
	struct plan_graph_private *p = g->private;
	struct plan_node *n;

	if (kind < PLAN_GPU || kind >= PLAN_NODE_KINDS || !good_name(name))
		return plan_fail(e, EINVAL, "\"%.80s\" is no name of an element; use 1 to %d of A-Z, a-z, 0-9, \".\", \"_\", \":\", \"-\"",
				 name, PLAN_NAME - 1);
	if (*slot_of(g, name))
		return plan_fail(e, EEXIST, "there are two elements named %s; names are unique",
				 name);
	if (g->nnodes == PLAN_NODES ||
	    (kind == PLAN_GPU && g->nranks == PLAN_GPUS))
		return plan_fail(e, E2BIG, "%s: more than %u %s", name,
				 g->nnodes == PLAN_NODES ? PLAN_NODES :
				 PLAN_GPUS,
				 g->nnodes == PLAN_NODES ? "elements" : "GPUs");
	if (plan_grow(&g->nodes, g->nnodes, 1, &p->node_room,
		      sizeof(*g->nodes)) ||
	    (kind == PLAN_GPU &&
	     plan_grow(&g->gpus, g->nranks, 1, &p->gpu_room,
		       sizeof(*g->gpus))) ||
	    (2 * (g->nnodes + 1) > p->nslots && rehash(g)))
		return plan_fail(e, ENOMEM, "%s: out of memory", name);
	n = &g->nodes[g->nnodes];
	*n = (struct plan_node){
		.kind = kind, .box = box, .up = PLAN_NONE, .rank = PLAN_NONE,
	};
	memcpy(n->name, name, strlen(name) + 1);
	if (kind == PLAN_GPU) {
		n->rank = g->nranks;
		g->gpus[g->nranks++] = g->nnodes;
	}
	if (box != PLAN_NONE && box >= g->nboxes)
		g->nboxes = box + 1;
	*slot_of(g, name) = ++g->nnodes;
	return g->nnodes - 1;
}

static int check_edge(const struct plan_graph *g, uint32_t from, uint32_t to,
		      uint64_t capacity, struct plan_error *e)
{
	const char *a, *b;

	if (from >= g->nnodes || to >= g->nnodes)
		return plan_fail(e, EINVAL, "a link of an element that does not exist");
	a = g->nodes[from].name;
	b = g->nodes[to].name;
	if (from == to)
		return plan_fail(e, EINVAL, "%s has a link to itself; name another element",
				 a);
	if (!capacity || capacity > PLAN_CAPACITY)
		return plan_fail(e, EINVAL, "link %s - %s: a capacity of %llu MB/s; 1 to %llu make sense, leave out a link that carries nothing",
				 a, b, (unsigned long long)capacity,
				 (unsigned long long)PLAN_CAPACITY);
	return 0;
}

int64_t plan_graph_add_edge(struct plan_graph *g, uint32_t from, uint32_t to,
			    uint64_t capacity, uint32_t latency,
			    enum plan_link_kind kind, struct plan_error *e)
{
	int err = check_edge(g, from, to, capacity, e);

	if (err)
		return err;
	if (g->nedges >= PLAN_EDGES)
		return plan_fail(e, E2BIG, "link %s - %s: more than %u links",
				 g->nodes[from].name, g->nodes[to].name,
				 PLAN_EDGES / 2);
	if (plan_grow(&g->edges, g->nedges, 1, &g->private->edge_room,
		 sizeof(*g->edges)))
		return plan_fail(e, ENOMEM, "out of memory");
	g->edges[g->nedges] = (struct plan_edge){
		.from = from, .to = to, .capacity = capacity,
		.latency = latency, .kind = kind, .twin = PLAN_NONE,
	};
	return g->nedges++;
}

int64_t plan_graph_add_link(struct plan_graph *g, uint32_t a, uint32_t b,
			    uint64_t capacity, uint32_t latency,
			    enum plan_link_kind kind, struct plan_error *e)
{
	int64_t first, second;

	first = plan_graph_add_edge(g, a, b, capacity, latency, kind, e);
	if (first < 0)
		return first;
	second = plan_graph_add_edge(g, b, a, capacity, latency, kind, e);
	if (second < 0) {
		g->nedges--;
		return second;
	}
	g->edges[first].twin = (uint32_t)second;
	g->edges[second].twin = (uint32_t)first;
	return first;
}

int plan_graph_warn(struct plan_graph *g, const char *fmt, ...)
{
	char **p = realloc(g->warnings, (g->nwarnings + 1) * sizeof(*p));
	char text[512];
	va_list ap;

	if (!p)
		return -ENOMEM;
	g->warnings = p;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	p[g->nwarnings] = strdup(text);
	if (!p[g->nwarnings])
		return -ENOMEM;
	g->nwarnings++;
	return 0;
}

uint32_t plan_graph_find(const struct plan_graph *g, const char *name)
{
	uint32_t slot = *slot_of(g, name);

	return slot ? slot - 1 : PLAN_NONE;
}

static struct plan_attribute *attribute(const struct plan_graph *g,
					uint32_t node, const char *key)
{
	const struct plan_node *n = &g->nodes[node];
	uint32_t i;

	for (i = 0; i < n->nattributes; i++)
		if (!strcmp(n->attributes[i].key, key))
			return &n->attributes[i];
	return NULL;
}

const char *plan_node_get(const struct plan_graph *g, uint32_t node,
			  const char *key)
{
	struct plan_attribute *a = attribute(g, node, key);

	return a ? a->value : NULL;
}

static int add_attribute(struct plan_node *n, const char *key, char *value)
{
	struct plan_attribute *p;

	p = realloc(n->attributes, (n->nattributes + 1) * sizeof(*p));
	if (!p)
		return -ENOMEM;
	n->attributes = p;
	p += n->nattributes;
	p->key = strdup(key);
	if (!p->key)
		return -ENOMEM;
	p->value = value;
	n->nattributes++;
	return 0;
}

int plan_node_set(struct plan_graph *g, uint32_t node, const char *key,
		  const char *value)
{
	struct plan_attribute *a = attribute(g, node, key);
	struct plan_node *n = &g->nodes[node];
	char *copy;

	if (!value) {
		if (!a)
			return 0;
		free(a->key);
		free(a->value);
		n->nattributes--;
		memmove(a, a + 1, (size_t)(n->attributes + n->nattributes - a) *
			sizeof(*a));
		return 0;
	}
	copy = strdup(value);
	if (!copy)
		return -ENOMEM;
	if (a) {
		free(a->value);
		a->value = copy;
	} else if (add_attribute(n, key, copy)) {
		free(copy);
		return -ENOMEM;
	}
	return 0;
}

int plan_graph_ranks(struct plan_graph *g, const uint32_t *nodes, uint32_t n,
		     struct plan_error *e)
{
	bool *taken = calloc(g->nnodes + 1, sizeof(*taken));
	uint32_t i;
	int err = 0;

	if (!taken)
		return plan_fail(e, ENOMEM, "out of memory");
	for (i = 0; !err && i < n; i++) {
		if (nodes[i] >= g->nnodes || g->nodes[nodes[i]].kind != PLAN_GPU)
			err = plan_fail(e, EINVAL, "%s is no GPU; name GPUs",
					nodes[i] < g->nnodes ?
					g->nodes[nodes[i]].name : "?");
		else if (taken[nodes[i]])
			err = plan_fail(e, EINVAL, "%s is named twice; name each GPU once",
					g->nodes[nodes[i]].name);
		else
			taken[nodes[i]] = true;
	}
	free(taken);
	if (err)
		return err;
	for (i = 0; i < g->nnodes; i++)
		g->nodes[i].rank = PLAN_NONE;
	for (i = 0; i < n; i++) {
		g->gpus[i] = nodes[i];
		g->nodes[nodes[i]].rank = i;
	}
	g->nranks = n;
	return 0;
}

/* ---- can anything be planned on it -------------------------------------- */

int plan_graph_sort_edges(const struct plan_graph *g, bool in,
			  uint32_t **first, uint32_t **edges)
{
	uint32_t *f = calloc((size_t)g->nnodes + 2, sizeof(*f)), i, n;

	*first = f;
	*edges = calloc((size_t)g->nedges + 1, sizeof(**edges));
	if (!f || !*edges)
		return -ENOMEM;
	for (i = 0; i < g->nedges; i++)
		f[(in ? g->edges[i].to : g->edges[i].from) + 2]++;
	for (i = 2; i < g->nnodes + 2; i++)
		f[i] += f[i - 1];
	for (i = 0; i < g->nedges; i++) {
		n = in ? g->edges[i].to : g->edges[i].from;
		(*edges)[f[n + 1]++] = i;
	}
	return 0;
}

/* GPUs that are no ranks pass nothing on. */
static bool is_idle(const struct plan_node *n)
{
	return n->kind == PLAN_GPU && n->rank == PLAN_NONE;
}

static bool has_idle(const struct plan_graph *g)
{
	uint32_t i;

	for (i = 0; i < g->nnodes; i++)
		if (is_idle(&g->nodes[i]))
			return true;
	return false;
}

/*
 * What is reached from @from by edges, or against them: each node and each edge
 * is looked at once. @seen is all false at first. Returns how many ranks, or
 * -ENOMEM.
 */
static int64_t reach(const struct plan_graph *g, uint32_t from, bool against,
		     bool *seen)
{
	uint32_t *queue = calloc(g->nnodes, sizeof(*queue)), *first, *edges;
	uint32_t head = 0, tail = 0, i, x, y;
	int64_t count = plan_graph_sort_edges(g, against, &first, &edges);

	if (!queue)
		count = -ENOMEM;
	if (!count) {
		seen[from] = true;
		queue[tail++] = from;
	}
	while (head < tail) {
		x = queue[head++];
		count += g->nodes[x].rank != PLAN_NONE;
		for (i = first[x]; !is_idle(&g->nodes[x]) && i < first[x + 1];
		     i++) {
			y = against ? g->edges[edges[i]].from :
				      g->edges[edges[i]].to;
			if (!seen[y])
				queue[tail++] = y;
			seen[y] = true;
		}
	}
	free(queue);
	free(first);
	free(edges);
	return count;
}

static int check_reach(const struct plan_graph *g, bool against,
		       struct plan_error *e)
{
	bool *seen = calloc(g->nnodes, sizeof(*seen));
	int64_t count = seen ? reach(g, g->gpus[0], against, seen) : -ENOMEM;
	uint32_t i;
	int err = 0;

	if (count < 0) {
		err = plan_fail(e, ENOMEM, "out of memory");
	} else if (count < g->nranks) {
		for (i = 0; seen[g->gpus[i]]; i++)
			;
		err = plan_fail(e, EINVAL, "no path leads from %s to %s; join them with a link, or plan for the GPUs of one part",
				g->nodes[g->gpus[against ? i : 0]].name,
				g->nodes[g->gpus[against ? 0 : i]].name);
	}
	free(seen);
	return err;
}

/* Links of idle GPUs carry nothing, so they do not count. */
static int check_balance(const struct plan_graph *g, struct plan_error *e)
{
	uint64_t *in = calloc(g->nnodes, sizeof(*in));
	uint64_t *out = calloc(g->nnodes, sizeof(*out));
	uint32_t i;
	int err = 0;

	if (!in || !out) {
		err = plan_fail(e, ENOMEM, "out of memory");
		goto out;
	}
	for (i = 0; i < g->nedges; i++) {
		const struct plan_edge *d = &g->edges[i];

		if (is_idle(&g->nodes[d->from]) || is_idle(&g->nodes[d->to]))
			continue;
		out[d->from] += d->capacity;
		in[d->to] += d->capacity;
	}
	for (i = 0; !err && i < g->nnodes; i++)
		if (g->nodes[i].kind != PLAN_GPU && in[i] != out[i])
			err = plan_fail(e, EINVAL, "%s receives %llu MB/s and sends %llu%s; a switch makes no copies, give both directions of its links the same sum",
					g->nodes[i].name,
					(unsigned long long)in[i],
					(unsigned long long)out[i],
					has_idle(g) ? " without the GPUs that are no ranks" : "");
out:
	free(in);
	free(out);
	return err;
}

int plan_graph_check(const struct plan_graph *g, struct plan_error *e)
{
	int err;

	if (g->nranks < 2)
		return plan_fail(e, EINVAL, "%s has %u GPU%s to plan for; a collective takes 2 or more",
				 g->name, g->nranks, g->nranks == 1 ? "" : "s");
	err = check_reach(g, false, e);
	if (!err)
		err = check_reach(g, true, e);
	return err ? err : check_balance(g, e);
}
