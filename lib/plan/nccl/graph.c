// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Rings as the libraries take them: graph XML, NCCL_RINGS. Called by api/.
 *
 * Both name GPUs by their "dev" in the topology that the library uses, which is
 * to be the one that the graph was read from, or that plan_nccl_write() writes
 * for it: nccl_devs() has the numbers. RCCL passes over a ring of NCCL_RINGS
 * with a number that is not below n, the number of GPUs, and gives up where no
 * GPU has the number as its dev.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/nccl/number.h"
#include "plan/nccl/rules.h"
#include "plan/nccl/xml.h"

#define DIGITS	7u	/* of a number in NCCL_RINGS */

/* ---- what kind of path --------------------------------------------------- */

/* In the libraries' order, from near to far. */
enum path {
	PATH_NVL, PATH_PIX, PATH_PXB, PATH_PHB, PATH_SYS
};

/* "NVL" is XGMI, too: the word XGMI is in debug output only. */
static const char *const paths[] = { "NVL", "PIX", "PXB", "PHB", "SYS" };

static uint32_t above(const struct plan_graph *g, uint32_t node)
{
	uint32_t steps = 0;

	do {
		node = g->nodes[node].up;
	} while (node != PLAN_NONE && steps++ < g->nnodes &&
		 g->nodes[node].kind == PLAN_ROOT_PORT);
	return node;
}

/* What is above @node, from near to far, @most at most. */
static uint32_t way_up(const struct plan_graph *g, uint32_t node,
		       uint32_t *way, uint32_t most)
{
	uint32_t n = 0;

	for (node = above(g, node); node != PLAN_NONE && n < most;
	     node = above(g, node))
		way[n++] = node;
	return n;
}

static enum path pci_path(const struct plan_graph *g, uint32_t a, uint32_t b)
{
	uint32_t up[XML_DEPTH], down[XML_DEPTH], n, m, i, k;

	n = way_up(g, a, up, XML_DEPTH);
	m = way_up(g, b, down, XML_DEPTH);
	for (i = 0; i < n; i++)
		for (k = 0; k < m; k++) {
			if (up[i] != down[k])
				continue;
			if (g->nodes[up[i]].kind == PLAN_ROOT_COMPLEX)
				return PATH_PHB;
			return i || k ? PATH_PXB : PATH_PIX;
		}
	return PATH_SYS;
}

/*
 * Which nodes a link between GPUs joins @gpu to: marks of @near get the value
 * @mark. A switch between GPUs is marked, too.
 */
struct near {
	const struct plan_graph *g;
	uint32_t *first, *edges;	/* links between GPUs, of each node */
	uint32_t *mark;
};

static bool joins_gpus(const struct plan_graph *g, const struct plan_edge *d)
{
	enum plan_node_kind a = g->nodes[d->from].kind;
	enum plan_node_kind b = g->nodes[d->to].kind;

	return (d->kind == PLAN_XGMI || d->kind == PLAN_NVLINK) &&
	       (a == PLAN_GPU || a == PLAN_GPU_SWITCH) &&
	       (b == PLAN_GPU || b == PLAN_GPU_SWITCH);
}

static bool near_new(struct near *near, const struct plan_graph *g)
{
	uint32_t i;

	near->g = g;
	near->first = calloc(g->nnodes + 2, sizeof(*near->first));
	near->edges = calloc(g->nedges + 1, sizeof(*near->edges));
	near->mark = calloc(g->nnodes + 1, sizeof(*near->mark));
	if (!near->first || !near->edges || !near->mark)
		return false;
	for (i = 0; i < g->nedges; i++)
		if (joins_gpus(g, &g->edges[i]))
			near->first[g->edges[i].from + 2]++;
	for (i = 2; i < g->nnodes + 2; i++)
		near->first[i] += near->first[i - 1];
	for (i = 0; i < g->nedges; i++)
		if (joins_gpus(g, &g->edges[i]))
			near->edges[near->first[g->edges[i].from + 1]++] = i;
	return true;
}

static void near_free(struct near *near)
{
	free(near->first);
	free(near->edges);
	free(near->mark);
}

static void mark_near(struct near *near, uint32_t gpu, uint32_t mark)
{
	uint32_t i, k, to;

	for (i = near->first[gpu]; i < near->first[gpu + 1]; i++) {
		to = near->g->edges[near->edges[i]].to;
		if (near->mark[to] == mark)
			continue;
		near->mark[to] = mark;
		if (near->g->nodes[to].kind != PLAN_GPU_SWITCH)
			continue;
		for (k = near->first[to]; k < near->first[to + 1]; k++)
			near->mark[near->g->edges[near->edges[k]].to] = mark;
	}
}

/* The farthest that two neighbours of any ring are apart. */
static int farthest(const struct plan_graph *g, const struct plan_rings *r,
		    enum path *out)
{
	struct near near = { .g = NULL };
	uint32_t n = g->nranks, i, k, a, b, mark = 0;
	enum path p;

	*out = PATH_NVL;
	if (!near_new(&near, g)) {
		near_free(&near);
		return -ENOMEM;
	}
	for (i = 0; i < r->nrings; i++)
		for (k = 0; k < n; k++) {
			a = g->gpus[r->order[(size_t)i * n + k]];
			b = g->gpus[r->order[(size_t)i * n + (k + 1) % n]];
			mark_near(&near, a, ++mark);
			if (near.mark[b] == mark || a == b)
				continue;
			p = pci_path(g, a, b);
			if (p > *out)
				*out = p;
		}
	near_free(&near);
	return 0;
}

/* ---- writing ------------------------------------------------------------- */

static bool all_alike(const struct plan_rings *r, uint32_t n)
{
	uint32_t i;

	for (i = 1; i < r->nrings; i++)
		if (memcmp(r->order, r->order + (size_t)i * n,
			   n * sizeof(*r->order)))
			return false;
	return true;
}

/* The library's own has what each channel carries, GB/s. */
static double speed_of(const struct plan_rings *r)
{
	return plan_ratio_value(r->busbw) / 1000 / r->nrings;
}

static void put_ring(const struct plan_graph *g, const uint32_t *order,
		     const uint32_t *devs, FILE *f)
{
	uint32_t i;

	fputs("    <channel>\n", f);
	for (i = 0; i < g->nranks; i++)
		fprintf(f, "      <gpu dev=\"0x%x\"/>\n",
			devs[g->gpus[order[i]]]);
	fputs("    </channel>\n", f);
}

static int check_rings(const struct plan_graph *g, const struct plan_rings *r,
		       enum plan_dialect d, struct plan_error *e)
{
	size_t i, n = (size_t)r->nrings * g->nranks;

	if (d != PLAN_NCCL && d != PLAN_RCCL)
		return plan_fail(e, EINVAL, "%d is no dialect", (int)d);
	if (!r->nrings || !g->nranks)
		return plan_fail(e, EINVAL, "%s: no ring to write; plan some",
				 g->name);
	if (r->nrings > nccl_limits(d)->channels)
		return plan_fail(e, E2BIG, "%u rings; the library takes %u, plan for fewer",
				 r->nrings, nccl_limits(d)->channels);
	if (n + r->nrings + 2 >= nccl_limits(d)->graph_elements)
		return plan_fail(e, E2BIG, "%u rings of %u GPUs; the library takes files of %u elements, plan for fewer rings",
				 r->nrings, g->nranks,
				 nccl_limits(d)->graph_elements - 1);
	for (i = 0; i < n; i++)
		if (r->order[i] >= g->nranks)
			return plan_fail(e, EINVAL, "a ring has rank %u; there are %u",
					 r->order[i], g->nranks);
	return 0;
}

int plan_nccl_graph_write(const struct plan_graph *g,
			  const struct plan_rings *r, enum plan_dialect d,
			  FILE *f, struct plan_error *e)
{
	int err = check_rings(g, r, d, e);
	enum path path;
	uint32_t *devs, i;
	bool kept;

	if (err)
		return err;
	devs = calloc(g->nnodes + 1, sizeof(*devs));
	if (!devs || farthest(g, r, &path) || nccl_devs(g, devs, &kept)) {
		free(devs);
		return plan_fail(e, ENOMEM, "out of memory");
	}
	fprintf(f, "<graphs version=\"1\">\n"
		"  <graph id=\"0\" pattern=\"4\" crossnic=\"0\" nchannels=\"%u\" speedintra=\"%g\" speedinter=\"%g\" latencyinter=\"0\" typeintra=\"%s\" typeinter=\"PIX\" samechannels=\"%d\">\n",
		r->nrings, speed_of(r), speed_of(r), paths[path],
		all_alike(r, g->nranks));
	for (i = 0; i < r->nrings; i++)
		put_ring(g, r->order + (size_t)i * g->nranks, devs, f);
	fputs("  </graph>\n</graphs>\n", f);
	free(devs);
	return ferror(f) ? plan_fail(e, EIO, "cannot write the graph") : 0;
}

/* ---- reading ------------------------------------------------------------- */

static void reverse(uint32_t *p, uint32_t n)
{
	uint32_t i, x;

	for (i = 0; i < n / 2; i++) {
		x = p[i];
		p[i] = p[n - 1 - i];
		p[n - 1 - i] = x;
	}
}

/* Turned until rank 0 comes first. */
static void rotate(uint32_t *ring, uint32_t n)
{
	uint32_t first = 0;

	while (ring[first])
		first++;
	reverse(ring, first);
	reverse(ring + first, n - first);
	reverse(ring, n);
}

struct reader {
	const struct plan_graph *g;
	const char *name;
	struct plan_error *e;
	struct dev {
		uint64_t dev;
		uint32_t rank;
	} *devs;		/* sorted */
	bool *seen;
	uint32_t *order;
};

static int by_dev(const void *a, const void *b)
{
	const struct dev *x = a, *y = b;

	return (x->dev > y->dev) - (x->dev < y->dev);
}

static int bad(const struct reader *r, const struct xml_element *x,
	       const char *what, const char *value, const char *remedy)
{
	return plan_fail(r->e, EINVAL, "%.100s:%u: <%.20s>: %s%s%.40s%s; %s",
			 r->name, x->line, x->name, what, value ? " \"" : "",
			 value ? value : "", value ? "\"" : "", remedy);
}

/* As the library: hexadecimal. */
static int rank_of(const struct reader *r, const struct xml_element *gpu,
		   uint32_t *rank)
{
	const char *text = xml_get(gpu, "dev");
	struct dev key = { 0, 0 }, *found;
	char *end;

	if (!text)
		return bad(r, gpu, "no dev", NULL, "the library needs it");
	errno = 0;
	key.dev = strtoull(text, &end, 16);
	if (!isxdigit((unsigned char)*text) || errno || *end)
		return bad(r, gpu, "dev", text, "write it as 0xa");
	found = bsearch(&key, r->devs, r->g->nranks, sizeof(key), by_dev);
	if (!found)
		return bad(r, gpu, "dev", text,
			   "no GPU that is planned for has it, see the topology");
	*rank = found->rank;
	return 0;
}

static int read_channel(struct reader *r, const struct xml_element *x,
			uint32_t *ring)
{
	const struct xml_element *gpu;
	uint32_t n = 0, rank = 0;
	int err;

	memset(r->seen, 0, r->g->nranks * sizeof(*r->seen));
	for (gpu = xml_child(x, "gpu"); gpu; gpu = xml_sibling(gpu, "gpu")) {
		err = rank_of(r, gpu, &rank);
		if (err)
			return err;
		if (r->seen[rank])
			return bad(r, gpu, "a GPU that the channel has already, dev",
				   xml_get(gpu, "dev"), "each is in it once");
		r->seen[rank] = true;
		ring[n++] = rank;
	}
	if (n != r->g->nranks)
		return bad(r, x, "not all GPUs are in it", NULL,
			   "a ring goes through all that are planned for");
	rotate(ring, n);
	return 0;
}

/* The one with id 0 is the ring's. */
static const struct xml_element *ring_graph(const struct reader *r,
					    const struct xml_element *root)
{
	const struct xml_element *x;
	const char *pattern, *id;
	int64_t n;

	if (strcmp(root->name, "graphs")) {
		bad(r, root, "the outermost element is not <graphs>", NULL,
		    "give a graph, as NCCL_GRAPH_DUMP_FILE writes it");
		return NULL;
	}
	for (x = xml_child(root, "graph"); x; x = xml_sibling(x, "graph")) {
		pattern = xml_get(x, "pattern");
		id = xml_get(x, "id");
		if (pattern && nccl_int(pattern, &n) && n == 4 &&
		    (!id || (nccl_int(id, &n) && !n)))
			return x;
	}
	bad(r, root, "no <graph> with id 0 and pattern 4 in it", NULL,
	    "only rings can be read");
	return NULL;
}

static int read_rings(struct reader *r, const struct xml_element *root,
		      uint32_t *nrings)
{
	const struct xml_element *graph = ring_graph(r, root), *x;
	uint32_t n = 0;
	int err = 0;

	if (!graph)
		return -EINVAL;
	for (x = xml_child(graph, "channel"); x; x = xml_sibling(x, "channel"))
		n++;
	if (!n)
		return bad(r, graph, "no <channel> in it", NULL,
			   "write at least one ring");
	if (n > nccl_limits(PLAN_RCCL)->channels)
		return bad(r, graph, "more than 128 channels", NULL,
			   "neither library takes so many");
	*nrings = n;
	r->order = calloc((size_t)n * r->g->nranks, sizeof(*r->order));
	if (!r->order)
		return plan_fail(r->e, ENOMEM, "%.100s: out of memory",
				 r->name);
	for (n = 0, x = xml_child(graph, "channel"); !err && x;
	     x = xml_sibling(x, "channel"), n++)
		err = read_channel(r, x, r->order + (size_t)n * r->g->nranks);
	return err;
}

static int sort_devs(struct reader *r)
{
	const struct plan_graph *g = r->g;
	uint32_t *devs = calloc(g->nnodes + 1, sizeof(*devs)), i;
	bool kept;
	int err = devs ? nccl_devs(g, devs, &kept) : -ENOMEM;

	for (i = 0; !err && i < g->nranks; i++)
		r->devs[i] = (struct dev){ devs[g->gpus[i]], i };
	if (!err)
		qsort(r->devs, g->nranks, sizeof(*r->devs), by_dev);
	free(devs);
	return err ? plan_fail(r->e, ENOMEM, "%.100s: out of memory",
			       r->name) : 0;
}

int plan_nccl_graph_read(const struct plan_graph *g, const char *text,
			 size_t length, const char *name, uint32_t **order,
			 uint32_t *nrings, struct plan_error *e)
{
	struct reader r = { .g = g, .name = name, .e = e };
	struct xml_element *root;
	uint32_t n = 0;
	int err;

	if (!g->nranks)
		return plan_fail(e, EINVAL, "%s has no GPU to plan for; choose some",
				 g->name);
	root = xml_parse(text, length, name, e);
	if (!root)
		return -EINVAL;
	r.devs = calloc(g->nranks, sizeof(*r.devs));
	r.seen = calloc(g->nranks, sizeof(*r.seen));
	if (r.devs && r.seen)
		err = sort_devs(&r);
	else
		err = plan_fail(e, ENOMEM, "%.100s: out of memory", name);
	if (!err)
		err = read_rings(&r, root, &n);
	free(r.devs);
	free(r.seen);
	xml_free(root);
	if (err) {
		free(r.order);
		return err;
	}
	*order = r.order;
	*nrings = n;
	return 0;
}

/* ---- NCCL_RINGS ---------------------------------------------------------- */

/* Numbers by rank: devs, if RCCL takes them; false: ranks, as it does not. */
static bool ring_numbers(const struct plan_graph *g, const uint32_t *devs,
			 uint32_t *numbers)
{
	uint32_t i;

	for (i = 0; i < g->nranks; i++) {	/* unique, so these are all */
		numbers[i] = devs[g->gpus[i]];
		if (numbers[i] >= g->nranks)
			break;
	}
	if (i == g->nranks)
		return true;
	for (i = 0; i < g->nranks; i++)
		numbers[i] = i;
	return false;
}

/* The numbers of all ranks, to be freed. NULL: out of memory. */
static uint32_t *make_numbers(const struct plan_graph *g, bool *by_dev)
{
	uint32_t *devs = calloc(g->nnodes + 1, sizeof(*devs));
	uint32_t *numbers = calloc(g->nranks + 1, sizeof(*numbers));
	bool as_read;

	if (devs && numbers && !nccl_devs(g, devs, &as_read)) {
		*by_dev = ring_numbers(g, devs, numbers);
	} else {
		free(numbers);
		numbers = NULL;
	}
	free(devs);
	return numbers;
}

int plan_nccl_rings_by_dev(const struct plan_graph *g, bool *by_dev)
{
	uint32_t *numbers = make_numbers(g, by_dev);

	if (!numbers)
		return -ENOMEM;
	free(numbers);
	return 0;
}

int plan_nccl_rings_write(const struct plan_graph *g,
			  const struct plan_rings *r, FILE *f, bool *by_dev)
{
	uint32_t n = g->nranks, i, k;
	bool fits = false;
	uint32_t *numbers = make_numbers(g, &fits);

	for (i = 0; numbers && i < r->nrings; i++)
		for (k = 0; k < n; k++)
			fprintf(f, "%s%u", k ? " " : i ? "|" : "",
				numbers[r->order[(size_t)i * n + k]]);
	if (by_dev)
		*by_dev = fits;
	free(numbers);
	return !numbers ? -ENOMEM : ferror(f) ? -EIO : 0;
}

struct ring_text {
	const char *p;
	uint32_t nranks, nrings, n;	/* n: GPUs in this ring so far */
	uint32_t *order;
	bool *seen;
	struct plan_error *e;
};

static int end_ring(struct ring_text *t)
{
	if (t->n != t->nranks)
		return plan_fail(t->e, EINVAL, "ring %u: %u GPUs of %u; each ring goes through all, RCCL passes over others",
				 t->nrings, t->n, t->nranks);
	rotate(t->order + (size_t)t->nrings * t->nranks, t->nranks);
	memset(t->seen, 0, t->nranks * sizeof(*t->seen));
	t->nrings++;
	t->n = 0;
	return 0;
}

static int add_gpu(struct ring_text *t)
{
	size_t digits = strspn(t->p, "0123456789");
	unsigned long gpu = strtoul(t->p, NULL, 10);

	if (!digits)
		return plan_fail(t->e, EINVAL, "ring %u: \"%.20s\"; write numbers with blanks between them, \"|\" between rings",
				 t->nrings, t->p);
	if (digits > DIGITS || gpu >= t->nranks)
		return plan_fail(t->e, EINVAL, "ring %u: GPU %.*s; there are 0 to %u",
				 t->nrings, digits > 20 ? 20 : (int)digits, t->p,
				 t->nranks - 1);
	if (t->seen[gpu])
		return plan_fail(t->e, EINVAL, "ring %u: GPU %lu is in it twice; each is in it once",
				 t->nrings, gpu);
	t->seen[gpu] = true;
	t->order[(size_t)t->nrings * t->nranks + t->n++] = (uint32_t)gpu;
	t->p += digits;
	return 0;
}

/* "N1" before and after the GPUs is a NIC; rings are planned for GPUs. */
static bool skip(struct ring_text *t)
{
	size_t digits;

	if (*t->p == ' ' || *t->p == '\t' || *t->p == '\n') {
		t->p++;
		return true;
	}
	digits = *t->p == 'N' ? strspn(t->p + 1, "0123456789") : 0;
	t->p += digits ? 1 + digits : 0;
	return digits;
}

static int parse_rings(struct ring_text *t)
{
	int err = 0;

	while (!err && *t->p) {
		if (skip(t))
			continue;
		if (*t->p == '|') {
			t->p++;
			err = end_ring(t);
		} else {
			err = add_gpu(t);
		}
	}
	return err ? err : end_ring(t);
}

int plan_nccl_rings_parse(const char *text, uint32_t nranks, uint32_t **order,
			  uint32_t *nrings, struct plan_error *e)
{
	struct ring_text t = { .p = text, .nranks = nranks, .e = e };
	size_t rings = 1;
	const char *p;
	int err;

	for (p = text; *p; p++)
		rings += *p == '|';
	if (!nranks)
		return plan_fail(e, EINVAL, "rings of no GPU; choose some");
	if (rings > nccl_limits(PLAN_RCCL)->channels)
		return plan_fail(e, E2BIG, "%zu rings; RCCL takes %u", rings,
				 nccl_limits(PLAN_RCCL)->channels);
	t.order = calloc(rings * nranks, sizeof(*t.order));
	t.seen = calloc(nranks, sizeof(*t.seen));
	err = t.order && t.seen ? parse_rings(&t) :
		plan_fail(e, ENOMEM, "out of memory");
	free(t.seen);
	if (err) {
		free(t.order);
		return err;
	}
	*order = t.order;
	*nrings = t.nrings;
	return 0;
}
