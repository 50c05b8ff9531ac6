// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Writes a graph as topology XML. Called by api/write.c.
 *
 * What was read from a file of the same dialect, with the same ranks, is
 * written with the file's attributes and no others. Anything else has all that
 * the library would have found in sysfs; made up where no attribute says it:
 * link_speed and link_width from the capacity of the link, classes 0x060400
 * and, of GPUs, 0x030200 (NCCL), 0x120000 (RCCL, MI300 and later) or 0x038000;
 * CPUs are AMD EPYC 7003. There is no affinity unless an attribute has it: the
 * library takes it from its own machine then, and pins threads to no wrong CPU.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/nccl/tree.h"
#include "plan/nccl/xml.h"
#include "topology/pcie.h"

struct writer {
	const struct plan_graph *g;
	struct nccl_tree t;
	FILE *f;
	struct plan_error *e;
	uint32_t *first_edge, *edges;	/* of each node: links between GPUs */
	uint64_t *sum;		/* MB/s to each node; 0 between uses */
	uint32_t ngpus;
	struct gpu_id {
		uint64_t busid;
		uint32_t node;
	} *gpus;		/* sorted */
	uint32_t cpu;		/* numbers CPUs */
};

/* What is written of a graph that is not as it was read. */
struct field {
	const char *name;
	const char *value;	/* if the node has none; NULL: not written */
	bool always;		/* whatever the node has */
};

/* ---- attributes ---------------------------------------------------------- */

static bool is_field(const struct field *fields, uint32_t n, const char *name)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (!strcmp(fields[i].name, name))
			return true;
	return false;
}

static const char *stored(const struct writer *w, uint32_t node,
			  const char *prefix, const char *name)
{
	char key[64];

	snprintf(key, sizeof(key), "%s%s", prefix, name);
	return plan_node_get(w->g, node, key);
}

/* In the usual order, @fields first; a file as it was, in its own order. */
static void put_attributes(const struct writer *w, uint32_t node,
			   const char *prefix, struct field *fields, uint32_t n)
{
	const struct plan_node *p = &w->g->nodes[node];
	size_t length = strlen(prefix);
	const char *value;
	uint32_t i;

	for (i = 0; !w->t.as_read && i < n; i++) {
		value = stored(w, node, prefix, fields[i].name);
		if (!value || fields[i].always)
			value = fields[i].value;
		if (value)
			xml_put(w->f, fields[i].name, value);
	}
	for (i = 0; i < p->nattributes; i++) {
		const char *key = p->attributes[i].key;

		if (!strncmp(key, prefix, length) &&
		    xml_plain_name(key + length) &&
		    (w->t.as_read || !is_field(fields, n, key + length)))
			xml_put(w->f, key + length, p->attributes[i].value);
	}
}

static void indent(const struct writer *w, uint32_t depth)
{
	fprintf(w->f, "%*s", (int)(2 * depth), "");
}

/* ---- what a link is called ---------------------------------------------- */

struct rate {
	double gt;
	uint32_t width;
};

/* The PCIe link whose capacity is nearest to this one; wide ones first. */
static struct rate nearest(uint64_t capacity)
{
	static const double speeds[] = { 2.5, 5, 8, 16, 32, 64 };
	static const uint32_t widths[] = { 16, 8, 4, 2, 1 };
	struct rate best = { 16, 16 };
	uint64_t least = UINT64_MAX, c, off;
	uint32_t i, k;

	for (k = 0; capacity && k < 5; k++)
		for (i = 0; i < 6; i++) {
			c = plan_pcie_capacity(speeds[i], widths[k]);
			off = c > capacity ? c - capacity : capacity - c;
			if (off < least) {
				least = off;
				best = (struct rate){ speeds[i], widths[k] };
			}
		}
	return best;
}

/* XGMI or NVLink, MB/s, of the first such link of a GPU; 0: it has none. */
static uint64_t gpu_link(const struct writer *w, uint32_t node)
{
	uint32_t first = w->first_edge[node];

	return first == w->first_edge[node + 1] ? 0 :
		w->g->edges[w->edges[first]].capacity;
}

static bool xgmi_gpu(const struct writer *w, uint32_t node)
{
	return plan_node_get(w->g, node, "gpu.gcn");
}

/* Written in the other dialect than it was read in. */
static bool foreign(const struct writer *w, uint32_t node)
{
	return plan_node_get(w->g, node, "gpu.sm") &&
	       xgmi_gpu(w, node) != (w->t.dialect == PLAN_RCCL);
}

static const char *gcn_of(const struct writer *w, uint32_t node)
{
	const char *gcn = plan_node_get(w->g, node, "gpu.gcn");
	uint64_t c = gpu_link(w, node);

	if (gcn)
		return gcn;
	if (c % 48000 && !(c % 36000))
		return "gfx90a";
	return c % 48000 && !(c % 24000) ? "gfx908" : "gfx942";
}

static const char *units_of(const char *gcn)
{
	if (!strcmp(gcn, "gfx90a"))
		return "104";
	return strcmp(gcn, "gfx908") ? "304" : "120";
}

/* Compute capability whose NVLink makes up the links. */
static const char *sm_of(const struct writer *w, uint32_t node)
{
	const char *sm = plan_node_get(w->g, node, "gpu.sm");
	uint64_t c = gpu_link(w, node);
	int64_t n;

	if (sm && !foreign(w, node) && nccl_int(sm, &n))
		return sm;
	if (c && c % 20000 && !(c % 20600))
		return "90";
	return c && c % 20000 && !(c % 40100) ? "100" : "80";
}

static const char *gpu_class(const struct writer *w, uint32_t node)
{
	const char *class = plan_node_get(w->g, node, "pci.class");
	const char *gcn = gcn_of(w, node);

	if (class && (w->t.as_read ||
		      nccl_class(w->t.dialect, class) == NCCL_CLASS_GPU))
		return class;
	if (w->t.dialect == PLAN_NCCL)
		return "0x030200";
	return nccl_xgmi_bw(gcn) == 48000 ? "0x120000" : "0x038000";
}

/* ---- links between GPUs -------------------------------------------------- */

static int by_busid(const void *a, const void *b)
{
	const struct gpu_id *x = a, *y = b;

	return (x->busid > y->busid) - (x->busid < y->busid);
}

static uint32_t gpu_at(const struct writer *w, const char *target)
{
	struct gpu_id key = { nccl_busid(target), 0 }, *p;

	p = bsearch(&key, w->gpus, w->ngpus, sizeof(key), by_busid);
	return p ? p->node : PLAN_NONE;
}

/* Does the file still have what a kept link leads to? */
static bool leads_on(const struct writer *w, uint32_t node, const char *prefix)
{
	const char *target = stored(w, node, prefix, "target");
	const char *class = stored(w, node, prefix, "tclass");
	uint32_t to;

	if (w->t.as_read)
		return true;
	if (!target)
		return !strncmp(prefix, "c2c", 3);
	to = gpu_at(w, target);
	if (to != PLAN_NONE)
		return w->t.in[to];
	return !strncmp(prefix, "pcilink", 7) || !class ||
	       nccl_class(w->t.dialect, class) != NCCL_CLASS_GPU;
}

/* Links as they were read; false: the node has none of them. */
static bool put_kept(const struct writer *w, uint32_t node, const char *kind,
		     uint32_t depth)
{
	const struct plan_node *p = &w->g->nodes[node];
	size_t length = strlen(kind);
	char prefix[32] = "", key[32];
	bool any = false;
	uint32_t i;

	for (i = 0; i < p->nattributes; i++) {
		const char *k = p->attributes[i].key;
		size_t digits;

		if (strncmp(k, kind, length) || k[length] != '.')
			continue;
		digits = strspn(k + length + 1, "0123456789");
		if (!digits || digits > 6 || k[length + 1 + digits] != '.')
			continue;
		snprintf(key, sizeof(key), "%.*s", (int)(length + digits + 2),
			 k);
		any = true;
		if (!strcmp(key, prefix) || !leads_on(w, node, key))
			continue;
		memcpy(prefix, key, sizeof(prefix));
		indent(w, depth);
		fprintf(w->f, "<%s", kind);
		put_attributes(w, node, prefix, NULL, 0);
		fputs("/>\n", w->f);
	}
	return any;
}

static void put_link(const struct writer *w, uint32_t to, uint64_t count,
		     uint32_t depth)
{
	char busid[32], number[24];

	nccl_busid_print(w->t.busids[to], busid, sizeof(busid));
	if (count > NCCL_LINK_COUNT)
		count = NCCL_LINK_COUNT;
	snprintf(number, sizeof(number), "%llu", (unsigned long long)count);
	indent(w, depth);
	fprintf(w->f, "<%s", nccl_limits(w->t.dialect)->link);
	xml_put(w->f, "target", busid);
	xml_put(w->f, "count", number);
	xml_put(w->f, "tclass", w->g->nodes[to].kind == PLAN_GPU ?
		gpu_class(w, to) : "0x068000");
	fputs("/>\n", w->f);
}

static uint64_t one_link(const struct writer *w, uint32_t node)
{
	int64_t sm = 0;

	if (w->t.dialect == PLAN_RCCL)
		return nccl_xgmi_bw(foreign(w, node) ? "gfx942" :
				    gcn_of(w, node));
	nccl_int(sm_of(w, node), &sm);
	return nccl_nvlink_bw(sm);
}

/* Links of the graph, as many of the library's as have the same capacity. */
static void put_links(struct writer *w, uint32_t node, uint32_t depth)
{
	uint64_t one = one_link(w, node), count;
	uint32_t i, to;

	for (i = w->first_edge[node]; i < w->first_edge[node + 1]; i++)
		w->sum[w->g->edges[w->edges[i]].to] +=
			w->g->edges[w->edges[i]].capacity;
	for (i = w->first_edge[node]; i < w->first_edge[node + 1]; i++) {
		to = w->g->edges[w->edges[i]].to;
		count = (w->sum[to] + one / 2) / one;
		if (w->sum[to] && (w->g->nodes[to].kind != PLAN_GPU ||
				   w->t.in[to]))
			put_link(w, to, count ? count : 1, depth);
		w->sum[to] = 0;
	}
}

static void put_all_links(struct writer *w, uint32_t node, uint32_t depth)
{
	bool kept = false;

	if (w->t.as_read) {
		put_kept(w, node, "xgmi", depth);
		put_kept(w, node, "nvlink", depth);
	} else {
		if (!foreign(w, node))
			kept = put_kept(w, node,
					nccl_limits(w->t.dialect)->link, depth);
		if (!kept)
			put_links(w, node, depth);
	}
	if (w->t.as_read || w->t.dialect == PLAN_NCCL)
		put_kept(w, node, "c2c", depth);
}

/* ---- elements ------------------------------------------------------------ */

static bool has_any(const struct writer *w, uint32_t node, const char *prefix)
{
	const struct plan_node *n = &w->g->nodes[node];
	uint32_t i;

	for (i = 0; i < n->nattributes; i++)
		if (!strncmp(n->attributes[i].key, prefix, strlen(prefix)))
			return true;
	return false;
}

static void put_gpu(struct writer *w, uint32_t node, uint32_t depth)
{
	bool rccl = w->t.dialect == PLAN_RCCL, other = foreign(w, node);
	const char *gcn = other ? "gfx942" : gcn_of(w, node);
	char dev[16], rank[16];
	struct field fields[] = {
		{ "dev", dev, true },
		{ "sm", rccl ? units_of(gcn) : sm_of(w, node), other },
		{ "gcn", rccl ? gcn : NULL, other },
		{ "arch", rccl ? "38911" : NULL, other },
		{ "rank", rank, true },
		{ "gdr", "1", false },
	};

	if (w->t.as_read && !has_any(w, node, "gpu."))
		return;		/* the file left it to the library */
	snprintf(dev, sizeof(dev), "%u", w->t.devs[node]);
	snprintf(rank, sizeof(rank), "%u", w->g->nodes[node].rank);
	indent(w, depth);
	fputs("<gpu", w->f);
	put_attributes(w, node, "gpu.", fields, 6);
	fputs(">\n", w->f);
	put_all_links(w, node, depth + 1);
	indent(w, depth);
	fputs("</gpu>\n", w->f);
}

static void put_nic(const struct writer *w, uint32_t node, uint32_t depth)
{
	const char *class = plan_node_get(w->g, node, "pci.class");
	uint32_t i;

	if (w->t.first[node] == PLAN_NONE && !has_any(w, node, "nic.") &&
	    (class ? nccl_class(PLAN_RCCL, class) == NCCL_CLASS_NIC :
		     !w->t.as_read))
		return;		/* as with GPUs */

	indent(w, depth);
	fputs("<nic", w->f);
	put_attributes(w, node, "nic.", NULL, 0);
	fputs(">\n", w->f);
	for (i = w->t.first[node]; i != PLAN_NONE; i = w->t.next[i]) {
		indent(w, depth + 1);
		fputs("<net", w->f);
		put_attributes(w, i, "net.", NULL, 0);
		fputs("/>\n", w->f);
	}
	indent(w, depth);
	fputs("</nic>\n", w->f);
}

static void put_pci_attributes(const struct writer *w, uint32_t node)
{
	enum plan_node_kind kind = w->g->nodes[node].kind;
	struct rate rate = nearest(w->t.capacity[node]);
	char busid[32], width[8];
	struct field fields[] = {
		{ "busid", busid, true },
		{ "class", kind == PLAN_GPU ? gpu_class(w, node) :
		  kind == PLAN_NIC ? "0x020000" : "0x060400",
		  kind == PLAN_GPU },
		{ "vendor", NULL, false },
		{ "device", NULL, false },
		{ "subsystem_vendor", NULL, false },
		{ "subsystem_device", NULL, false },
		{ "link_speed", pcie_speed_name(rate.gt), false },
		{ "link_width", width, false },
	};

	nccl_busid_print(w->t.busids[node], busid, sizeof(busid));
	snprintf(width, sizeof(width), "%u", rate.width);
	put_attributes(w, node, "pci.", fields, 8);
}

/* Nested at most XML_DEPTH deep. */
static void put_pci(struct writer *w, uint32_t node, uint32_t depth)
{
	uint32_t i;

	if (w->g->nodes[node].kind == PLAN_NIC &&
	    w->t.busids[node] == NCCL_NO_BUSID) {
		put_nic(w, node, depth);
		return;
	}
	indent(w, depth);
	fputs("<pci", w->f);
	put_pci_attributes(w, node);
	fputs(">\n", w->f);
	if (w->g->nodes[node].kind == PLAN_GPU)
		put_gpu(w, node, depth + 1);
	else if (w->g->nodes[node].kind == PLAN_NIC)
		put_nic(w, node, depth + 1);
	else
		for (i = w->t.first[node]; i != PLAN_NONE; i = w->t.next[i])
			put_pci(w, i, depth + 1);
	put_kept(w, node, "pcilink", depth + 1);
	indent(w, depth);
	fputs("</pci>\n", w->f);
}

static void put_cpu(struct writer *w, uint32_t node)
{
	char numa[16];
	struct field fields[] = {
		{ "numaid", numa, false },
		{ "affinity", NULL, false },
		{ "arch", "x86_64", false },
		{ "vendor", "AuthenticAMD", false },
		{ "familyid", "175", false },
		{ "modelid", "1", false },
	};
	uint32_t i;

	/* An arch that is not x86 has no vendor. */
	const char *arch = plan_node_get(w->g, node, "cpu.arch");

	for (i = 3; arch && strcmp(arch, "x86_64") && i < 6; i++)
		fields[i].value = NULL;
	snprintf(numa, sizeof(numa), "%u", w->cpu++);
	indent(w, 1);
	fputs("<cpu", w->f);
	put_attributes(w, node, "cpu.", fields, 6);
	fputs(">\n", w->f);
	for (i = w->t.first[node]; i != PLAN_NONE; i = w->t.next[i])
		put_pci(w, i, 2);
	indent(w, 1);
	fputs("</cpu>\n", w->f);
}

static void put_system(struct writer *w)
{
	char version[8];
	struct field fields[] = {
		{ "version", version, true },
	};
	uint32_t i, first = 0;

	while (w->g->nodes[first].kind != PLAN_ROOT_COMPLEX)
		first++;
	snprintf(version, sizeof(version), "%u",
		 nccl_limits(w->t.dialect)->version);
	fputs("<system", w->f);
	put_attributes(w, first, "system.", fields, 1);
	fputs(">\n", w->f);
	for (i = 0; i < w->g->nnodes; i++)
		if (w->t.in[i] && w->g->nodes[i].kind == PLAN_ROOT_COMPLEX)
			put_cpu(w, i);
	fputs("</system>\n", w->f);
}

/* ---- all of it ----------------------------------------------------------- */

static bool joins_gpus(const struct plan_graph *g, const struct plan_edge *d)
{
	return (d->kind == PLAN_XGMI || d->kind == PLAN_NVLINK) &&
	       g->nodes[d->from].kind == PLAN_GPU &&
	       (g->nodes[d->to].kind == PLAN_GPU ||
		g->nodes[d->to].kind == PLAN_GPU_SWITCH);
}

static int reserve(struct writer *w)
{
	const struct plan_graph *g = w->g;
	uint32_t i;

	w->first_edge = calloc(g->nnodes + 2, sizeof(*w->first_edge));
	w->edges = calloc(g->nedges + 1, sizeof(*w->edges));
	w->sum = calloc(g->nnodes + 1, sizeof(*w->sum));
	w->gpus = calloc(g->nnodes + 1, sizeof(*w->gpus));
	if (!w->first_edge || !w->edges || !w->sum || !w->gpus)
		return plan_fail(w->e, ENOMEM, "out of memory");
	for (i = 0; i < g->nedges; i++)
		if (joins_gpus(g, &g->edges[i]))
			w->first_edge[g->edges[i].from + 2]++;
	for (i = 2; i < g->nnodes + 2; i++)
		w->first_edge[i] += w->first_edge[i - 1];
	for (i = 0; i < g->nedges; i++)
		if (joins_gpus(g, &g->edges[i]))
			w->edges[w->first_edge[g->edges[i].from + 1]++] = i;
	return 0;
}

/* All GPUs that have a bus id, written or not. */
static void sort_gpus(struct writer *w)
{
	const char *text;
	uint32_t i;

	for (i = 0; i < w->g->nnodes; i++) {
		text = plan_node_get(w->g, i, "pci.busid");
		if (w->g->nodes[i].kind != PLAN_GPU || !text)
			continue;
		w->gpus[w->ngpus].busid = nccl_busid(text);
		w->gpus[w->ngpus++].node = i;
	}
	qsort(w->gpus, w->ngpus, sizeof(*w->gpus), by_busid);
}

int plan_nccl_write(const struct plan_graph *g, enum plan_dialect d, FILE *f,
		    struct plan_error *e)
{
	struct writer w = { .g = g, .f = f, .e = e };
	int err;

	if (d != PLAN_NCCL && d != PLAN_RCCL)
		return plan_fail(e, EINVAL, "%d is no dialect", (int)d);
	err = nccl_tree(g, d, &w.t, e);
	if (!err) {
		err = reserve(&w);
		if (!err) {
			sort_gpus(&w);
			put_system(&w);
			if (ferror(f))
				err = plan_fail(e, EIO, "cannot write the topology");
		}
		nccl_tree_free(&w.t);
	}
	free(w.first_edge);
	free(w.edges);
	free(w.sum);
	free(w.gpus);
	return err;
}
