// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reads and writes graph files: libconfig text with nodes and links, for fabrics
 * that no other format describes (docs/graph-files.md). A graph that is written
 * and read again is the same, indices of nodes and edges included. Called by
 * read.c and api/write.c.
 */
#include <errno.h>
#include <libconfig.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "plan/read.h"
#include "topology/scan.h"

#define ATTRIBUTES	256	/* of one node */
#define LATENCY		1000000000	/* ns, at most */

struct reader {
	const char *name;	/* of the file */
	struct plan_graph *g;
	struct plan_error *e;
};

/* A group or list of the file and how messages call it. */
struct element {
	config_setting_t *set;
	char what[2 * PLAN_NAME + 16];
};

static const char *const top_keys[] = {
	"graph", "nodes", "links", "ranks", "warnings", NULL
};
static const char *const node_keys[] = {
	"name", "kind", "box", "up", "attributes", NULL
};
static const char *const link_keys[] = {
	"a", "b", "from", "to", "gbps", "back_gbps", "latency_ns",
	"back_latency_ns", "kind", NULL
};

/* ---- messages ------------------------------------------------------------ */

__attribute__((format(printf, 4, 5)))
static int fail(struct reader *r, const struct element *el,
		const config_setting_t *at, const char *fmt, ...)
{
	char text[sizeof(r->e->text)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return plan_fail(r->e, EINVAL, "%.100s:%u: %s: %.250s", r->name,
			 config_setting_source_line(at ? at : el->set),
			 el->what, text);
}

/* What lib/plan says, with the place put before it. */
static int place(struct reader *r, const struct element *el, int err)
{
	struct plan_error own = *r->e;

	if (err)
		plan_fail(r->e, -err, "%.100s:%u: %.380s", r->name,
			  config_setting_source_line(el->set), own.text);
	return err;
}

static unsigned int least(unsigned int a, unsigned int b, unsigned int c)
{
	a = a < b ? a : b;
	return a < c ? a : c;
}

/* How many letters differ (Levenshtein); @b has at most 31. */
static unsigned int distance(const char *a, const char *b)
{
	unsigned int row[32], i, k, n = (unsigned int)strlen(b), diagonal, up;

	for (k = 0; k <= n; k++)
		row[k] = k;
	for (i = 1; *a; a++, i++) {
		diagonal = row[0];
		row[0] = i;
		for (k = 1; k <= n; k++) {
			up = row[k];
			row[k] = least(diagonal + (*a != b[k - 1]), up + 1,
				       row[k - 1] + 1);
			diagonal = up;
		}
	}
	return row[n];
}

static int unknown_key(struct reader *r, const struct element *el,
		       const config_setting_t *at, const char *const *keys)
{
	const char *key = config_setting_name(at), *best = NULL;
	unsigned int d, near = 4;

	for (; *keys && strlen(key) < 32; keys++) {
		d = distance(key, *keys);
		if (d < near) {
			near = d;
			best = *keys;
		}
	}
	if (best)
		return fail(r, el, at, "there is no setting \"%.40s\"; is it \"%s\"?",
			    key, best);
	return fail(r, el, at, "there is no setting \"%.40s\"; remove it", key);
}

static int check_keys(struct reader *r, const struct element *el,
		      const char *const *keys)
{
	int i, k, n = config_setting_length(el->set);

	for (i = 0; i < n; i++) {
		config_setting_t *m =
			config_setting_get_elem(el->set, (unsigned int)i);

		for (k = 0; keys[k]; k++)
			if (!strcmp(keys[k], config_setting_name(m)))
				break;
		if (!keys[k])
			return unknown_key(r, el, m, keys);
	}
	return 0;
}

/* ---- values -------------------------------------------------------------- */

/* *@value stays if the setting is not there and need not be. */
static int get_string(struct reader *r, const struct element *el,
		      const char *key, bool required, const char **value)
{
	config_setting_t *m = config_setting_get_member(el->set, key);
	const char *s;

	if (!m)
		return required ? fail(r, el, NULL, "\"%s\" is missing; add %s = \"...\";",
				       key, key) : 0;
	s = config_setting_get_string(m);
	if (!s)
		return fail(r, el, m, "\"%s\" is no string; write %s = \"...\";",
			    key, key);
	*value = s;
	return 0;
}

static int get_number(struct reader *r, const struct element *el,
		      const char *key, uint32_t max, uint32_t *value)
{
	config_setting_t *m = config_setting_get_member(el->set, key);
	long long v;

	if (!m)
		return 0;
	if (config_setting_type(m) != CONFIG_TYPE_INT &&
	    config_setting_type(m) != CONFIG_TYPE_INT64)
		return fail(r, el, m, "\"%s\" is no whole number; write one from 0 to %u",
			    key, max);
	v = config_setting_get_int64(m);
	if (v < 0 || v > max)
		return fail(r, el, m, "\"%s\" is %lld; choose 0 to %u", key, v,
			    max);
	*value = (uint32_t)v;
	return 0;
}

static int get_capacity(struct reader *r, const struct element *el,
			const char *key, bool required, uint64_t *value)
{
	config_setting_t *m = config_setting_get_member(el->set, key);
	double v;

	if (!m)
		return required ? fail(r, el, NULL, "\"%s\" is missing; add what it carries in each direction, such as %s = 27.0;",
				       key, key) : 0;
	if (!config_setting_is_number(m))
		return fail(r, el, m, "\"%s\" is no number; write GB/s such as 27.0",
			    key);
	v = config_setting_type(m) == CONFIG_TYPE_FLOAT ?
	    config_setting_get_float(m) : (double)config_setting_get_int64(m);
	if (!(v >= 0.001 && v <= (double)PLAN_CAPACITY / 1000))
		return fail(r, el, m, "\"%s\" is %g; choose GB/s from 0.001 to %.0f, and leave out a link that carries nothing",
			    key, v, floor((double)PLAN_CAPACITY / 1000));
	*value = (uint64_t)llround(v * 1000);
	return 0;
}

/* A node by its name. */
static int get_node(struct reader *r, const struct element *el,
		    const config_setting_t *at, const char *name,
		    uint32_t *node)
{
	*node = plan_graph_find(r->g, name);
	if (*node == PLAN_NONE)
		return fail(r, el, at, "there is no node \"%.80s\"; add it to nodes, or correct the name",
			    name);
	return 0;
}

/* The list @key of the top; *@list is NULL if it is not there. */
static int get_list(struct reader *r, const struct element *top,
		    const char *key, config_setting_t **list, unsigned int *n)
{
	config_setting_t *m = config_setting_get_member(top->set, key);

	*list = m;
	*n = 0;
	if (m && !config_setting_is_list(m) && !config_setting_is_array(m))
		return fail(r, top, m, "\"%s\" is no list; write %s = ( ... );",
			    key, key);
	if (m)
		*n = (unsigned int)config_setting_length(m);
	return 0;
}

static int get_group(struct reader *r, config_setting_t *list, unsigned int i,
		     const char *what, struct element *el)
{
	el->set = config_setting_get_elem(list, i);
	snprintf(el->what, sizeof(el->what), "%s %u", what, i + 1);
	if (!config_setting_is_group(el->set))
		return fail(r, el, NULL, "it is no group; write { ... }");
	return 0;
}

/* ---- nodes --------------------------------------------------------------- */

static int read_attribute(struct reader *r, const struct element *el,
			  config_setting_t *pair, uint32_t node)
{
	const char *key = NULL, *value = NULL;

	if ((config_setting_is_list(pair) || config_setting_is_array(pair)) &&
	    config_setting_length(pair) == 2) {
		key = config_setting_get_string_elem(pair, 0);
		value = config_setting_get_string_elem(pair, 1);
	}
	if (!key || !value || !*key)
		return fail(r, el, pair, "an attribute is a pair of strings; write (\"key\", \"value\")");
	if (plan_node_get(r->g, node, key))
		return fail(r, el, pair, "attribute \"%.80s\" is there twice; remove one",
			    key);
	if (plan_node_set(r->g, node, key, value))
		return plan_fail(r->e, ENOMEM, "%.100s: out of memory", r->name);
	return 0;
}

static int read_attributes(struct reader *r, const struct element *el,
			   uint32_t node)
{
	config_setting_t *list;
	unsigned int i, n;
	int err = get_list(r, el, "attributes", &list, &n);

	if (!err && n > ATTRIBUTES)
		return fail(r, el, list, "%u attributes; a node has at most %u",
			    n, ATTRIBUTES);
	for (i = 0; !err && i < n; i++)
		err = read_attribute(r, el, config_setting_get_elem(list, i),
				     node);
	return err;
}

static int read_node(struct reader *r, struct element *el)
{
	const char *name = NULL, *word = NULL;
	uint32_t box = PLAN_NONE;
	enum plan_node_kind kind;
	int64_t node;

	if (get_string(r, el, "name", true, &name))
		return -EINVAL;
	snprintf(el->what, sizeof(el->what), "node %.63s", name);
	if (check_keys(r, el, node_keys) ||
	    get_string(r, el, "kind", true, &word) ||
	    get_number(r, el, "box", PLAN_NODES - 1, &box))
		return -EINVAL;
	kind = plan_node_kind_parse(word);
	if (!kind)
		return fail(r, el, config_setting_get_member(el->set, "kind"),
			    "there is no kind \"%.40s\"; choose gpu, pci-switch, partition, root-port, root-complex, ntb, gpu-switch, nic or net",
			    word);
	node = plan_graph_add_node(r->g, kind, name, box, r->e);
	if (node < 0)
		return place(r, el, (int)node);
	r->g->nodes[node].line = config_setting_source_line(el->set);
	return read_attributes(r, el, (uint32_t)node);
}

static int read_nodes(struct reader *r, const struct element *top)
{
	config_setting_t *list;
	struct element el;
	unsigned int i, n;
	int err = get_list(r, top, "nodes", &list, &n);

	if (!err && !n)
		return fail(r, top, list, "\"nodes\" is empty or missing; add nodes = ( { name = \"gpu0\"; kind = \"gpu\"; } );");
	for (i = 0; !err && i < n; i++) {
		err = get_group(r, list, i, "node", &el);
		if (!err)
			err = read_node(r, &el);
	}
	return err;
}

/* The node above may stand further down, so this comes after all nodes. */
static int read_up(struct reader *r, struct element *el, uint32_t node)
{
	config_setting_t *m = config_setting_get_member(el->set, "up");
	const char *name = NULL;
	uint32_t up;

	snprintf(el->what, sizeof(el->what), "node %s", r->g->nodes[node].name);
	if (!m)
		return 0;
	if (get_string(r, el, "up", true, &name) ||
	    get_node(r, el, m, name, &up))
		return -EINVAL;
	r->g->nodes[node].up = up;
	return 0;
}

/* Mark those from which up leads to the top; others go in a circle. */
static int check_tree(struct reader *r, config_setting_t *list)
{
	uint32_t *seen = calloc(r->g->nnodes, sizeof(*seen)), i, at;
	struct element el;
	int err = 0;

	if (!seen)
		return plan_fail(r->e, ENOMEM, "%.100s: out of memory", r->name);
	for (i = 0; !err && i < r->g->nnodes; i++) {
		for (at = i; at != PLAN_NONE && !seen[at];
		     at = r->g->nodes[at].up)
			seen[at] = i + 1;
		if (at == PLAN_NONE || seen[at] != i + 1)
			continue;
		el.set = config_setting_get_elem(list, at);
		snprintf(el.what, sizeof(el.what), "node %s",
			 r->g->nodes[at].name);
		err = fail(r, &el, NULL, "\"up\" leads back to the node itself; the PCI tree has a top");
	}
	free(seen);
	return err;
}

static int read_tree(struct reader *r, const struct element *top)
{
	config_setting_t *list;
	struct element el;
	unsigned int i, n;
	int err = get_list(r, top, "nodes", &list, &n);

	for (i = 0; !err && i < n; i++) {
		el.set = config_setting_get_elem(list, i);
		err = read_up(r, &el, i);
	}
	return err ? err : check_tree(r, list);
}

/* ---- links --------------------------------------------------------------- */

struct link {
	uint32_t a, b;
	bool one_way;
	uint64_t capacity, back;
	uint32_t latency, back_latency;
	enum plan_link_kind kind;
};

static int read_ends(struct reader *r, struct element *el, struct link *l)
{
	config_setting_t *from = config_setting_get_member(el->set, "from");
	config_setting_t *to = config_setting_get_member(el->set, "to");
	const char *a = NULL, *b = NULL;

	l->one_way = from || to;
	if (l->one_way && (config_setting_get_member(el->set, "a") ||
			   config_setting_get_member(el->set, "b")))
		return fail(r, el, NULL, "it has both kinds of ends; write a and b for a link, from and to for one direction");
	if (get_string(r, el, l->one_way ? "from" : "a", true, &a) ||
	    get_string(r, el, l->one_way ? "to" : "b", true, &b))
		return -EINVAL;
	snprintf(el->what, sizeof(el->what), "link %.63s %s %.63s", a,
		 l->one_way ? ">" : "-", b);
	if (get_node(r, el, NULL, a, &l->a) || get_node(r, el, NULL, b, &l->b))
		return -EINVAL;
	return 0;
}

static int read_kind(struct reader *r, struct element *el, struct link *l)
{
	const char *word = "other";

	if (get_string(r, el, "kind", false, &word))
		return -EINVAL;
	l->kind = plan_link_kind_parse(word);
	if (!l->kind)
		return fail(r, el, config_setting_get_member(el->set, "kind"),
			    "there is no kind \"%.40s\"; choose pcie, cable, isl, xgmi, nvlink, root, smp or other",
			    word);
	return 0;
}

static int read_back(struct reader *r, struct element *el, struct link *l)
{
	l->back = l->capacity;
	l->back_latency = l->latency;
	if (l->one_way && (config_setting_get_member(el->set, "back_gbps") ||
			   config_setting_get_member(el->set, "back_latency_ns")))
		return fail(r, el, NULL, "one direction has no way back; write a and b for its ends, or leave out what begins with back_");
	if (get_capacity(r, el, "back_gbps", false, &l->back) ||
	    get_number(r, el, "back_latency_ns", LATENCY, &l->back_latency))
		return -EINVAL;
	return 0;
}

static int add_link(struct reader *r, const struct element *el,
		    const struct link *l)
{
	uint32_t line = config_setting_source_line(el->set);
	int64_t i;

	if (l->one_way)
		i = plan_graph_add_edge(r->g, l->a, l->b, l->capacity,
					l->latency, l->kind, r->e);
	else
		i = plan_graph_add_link(r->g, l->a, l->b, l->capacity,
					l->latency, l->kind, r->e);
	if (i < 0)
		return place(r, el, (int)i);
	r->g->edges[i].line = line;
	if (!l->one_way) {
		r->g->edges[i + 1].line = line;
		r->g->edges[i + 1].capacity = l->back;
		r->g->edges[i + 1].latency = l->back_latency;
	}
	return 0;
}

static int read_link(struct reader *r, struct element *el)
{
	struct link l = { 0 };

	if (check_keys(r, el, link_keys) || read_ends(r, el, &l) ||
	    get_capacity(r, el, "gbps", true, &l.capacity) ||
	    read_kind(r, el, &l))
		return -EINVAL;
	l.latency = plan_link_latency(l.kind);
	if (get_number(r, el, "latency_ns", LATENCY, &l.latency) ||
	    read_back(r, el, &l))
		return -EINVAL;
	return add_link(r, el, &l);
}

static int read_links(struct reader *r, const struct element *top)
{
	config_setting_t *list;
	struct element el;
	unsigned int i, n;
	int err = get_list(r, top, "links", &list, &n);

	for (i = 0; !err && i < n; i++) {
		err = get_group(r, list, i, "link", &el);
		if (!err)
			err = read_link(r, &el);
	}
	return err;
}

/* ---- the rest of the top ------------------------------------------------- */

static int read_rank(struct reader *r, const struct element *ranks,
		     unsigned int i, uint32_t *node)
{
	config_setting_t *m = config_setting_get_elem(ranks->set, i);
	const char *name = config_setting_get_string(m);

	if (!name)
		return fail(r, ranks, m, "element %u is no string; write names of GPUs",
			    i + 1);
	return get_node(r, ranks, m, name, node);
}

static int read_ranks(struct reader *r, const struct element *top)
{
	struct element el = { .what = "ranks" };
	uint32_t *nodes;
	unsigned int i, n;
	int err = get_list(r, top, "ranks", &el.set, &n);

	if (err || !el.set)
		return err;
	if (n > PLAN_GPUS)
		return fail(r, &el, NULL, "%u of them; at most %u can be planned for",
			    n, PLAN_GPUS);
	nodes = calloc(n + 1, sizeof(*nodes));
	if (!nodes)
		return plan_fail(r->e, ENOMEM, "%.100s: out of memory", r->name);
	for (i = 0; !err && i < n; i++)
		err = read_rank(r, &el, i, &nodes[i]);
	if (!err)
		err = place(r, &el, plan_graph_ranks(r->g, nodes, n, r->e));
	free(nodes);
	return err;
}

static int read_warnings(struct reader *r, const struct element *top)
{
	config_setting_t *list;
	unsigned int i, n;
	int err = get_list(r, top, "warnings", &list, &n);

	if (!err && n > PLAN_NODES)
		return fail(r, top, list, "%u warnings; keep the first %u", n,
			    PLAN_NODES);
	for (i = 0; !err && i < n; i++) {
		const char *s = config_setting_get_string_elem(list, (int)i);

		if (!s)
			err = fail(r, top, list, "a warning is no string; write \"...\"");
		else if (plan_graph_warn(r->g, "%s", s))
			err = plan_fail(r->e, ENOMEM, "%.100s: out of memory",
					r->name);
	}
	return err;
}

static int read_top(struct reader *r, const struct element *top)
{
	const char *name = NULL;
	int err = check_keys(r, top, top_keys);

	if (!err)
		err = get_string(r, top, "graph", true, &name);
	if (err)
		return err;
	if (!*name || strlen(name) >= PLAN_NAME)
		return fail(r, top, config_setting_get_member(top->set, "graph"),
			    "its name has %zu characters; use 1 to %u",
			    strlen(name), PLAN_NAME - 1);
	r->g = plan_graph_new(name);
	if (!r->g)
		return plan_fail(r->e, ENOMEM, "%.100s: out of memory", r->name);
	err = read_nodes(r, top);
	if (!err)
		err = read_tree(r, top);
	if (!err)
		err = read_links(r, top);
	if (!err)
		err = read_ranks(r, top);
	return err ? err : read_warnings(r, top);
}

static int parse(struct reader *r, const char *text)
{
	struct element top = { .what = "graph" };
	config_t config;
	int err;

	config_init(&config);
	if (!config_read_string(&config, text)) {
		err = plan_fail(r->e, EINVAL, "%.200s:%d: %s; see docs/graph-files.md for what they look like",
				r->name, config_error_line(&config),
				config_error_text(&config));
	} else {
		top.set = config_root_setting(&config);
		err = read_top(r, &top);
	}
	config_destroy(&config);
	return err;
}

struct plan_graph *plan_graphfile_parse(const char *text, const char *name,
					struct plan_error *e)
{
	struct plan_error own = { 0 };
	struct reader r = { .name = name, .e = &own };
	struct topo_scan scan;
	char why[400];
	int err;

	if (topology_scan(text, strlen(text), name, &scan, why, sizeof(why)))
		err = plan_fail(&own, EINVAL, "%s", why);
	else
		err = parse(&r, text);
	if (!err)
		return r.g;
	plan_graph_free(r.g);
	if (e)
		*e = own;
	return NULL;
}

/* ---- writing ------------------------------------------------------------- */

static void put_string(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s; s++)
		if (*s == '"' || *s == '\\')
			fprintf(f, "\\%c", *s);
		else if ((unsigned char)*s < 32 || *s == 127)
			fprintf(f, "\\x%02x", (unsigned char)*s);
		else
			fputc(*s, f);
	fputc('"', f);
}

static void put_gbps(FILE *f, const char *key, uint64_t capacity)
{
	fprintf(f, " %s = %llu.%03llu;", key,
		(unsigned long long)capacity / 1000,
		(unsigned long long)capacity % 1000);
}

static void put_attributes(const struct plan_node *n, FILE *f)
{
	uint32_t i;

	if (!n->nattributes)
		return;
	fprintf(f, "\n    attributes = (");
	for (i = 0; i < n->nattributes; i++) {
		fprintf(f, "%s\n      (", i ? "," : "");
		put_string(f, n->attributes[i].key);
		fprintf(f, ", ");
		put_string(f, n->attributes[i].value);
		fputc(')', f);
	}
	fprintf(f, " );");
}

static void put_node(const struct plan_graph *g, uint32_t i, FILE *f)
{
	const struct plan_node *n = &g->nodes[i];

	fprintf(f, "%s\n  { name = \"%s\"; kind = \"%s\";", i ? "," : "",
		n->name, plan_node_kind_name(n->kind));
	if (n->box != PLAN_NONE)
		fprintf(f, " box = %u;", n->box);
	if (n->up != PLAN_NONE)
		fprintf(f, " up = \"%s\";", g->nodes[n->up].name);
	put_attributes(n, f);
	fprintf(f, " }");
}

/* Is the edge the first of a link, with its other direction next to it? */
static bool is_link(const struct plan_graph *g, uint32_t i)
{
	const struct plan_edge *x = &g->edges[i], *y = x + 1;

	return x->twin == i + 1 && i + 1 < g->nedges && y->twin == i &&
	       y->from == x->to && y->to == x->from && y->kind == x->kind;
}

static void put_edge(const struct plan_graph *g, uint32_t i, bool both,
		     FILE *f)
{
	const struct plan_edge *x = &g->edges[i], *y = both ? x + 1 : x;

	fprintf(f, "%s\n  { %s = \"%s\"; %s = \"%s\";", i ? "," : "",
		both ? "a" : "from", g->nodes[x->from].name,
		both ? "b" : "to", g->nodes[x->to].name);
	put_gbps(f, "gbps", x->capacity);
	if (y->capacity != x->capacity)
		put_gbps(f, "back_gbps", y->capacity);
	if (x->latency != plan_link_latency(x->kind))
		fprintf(f, " latency_ns = %u;", x->latency);
	if (y->latency != x->latency)
		fprintf(f, " back_latency_ns = %u;", y->latency);
	fprintf(f, " kind = \"%s\"; }", plan_link_kind_name(x->kind));
}

static void put_ranks(const struct plan_graph *g, FILE *f)
{
	uint32_t i, rank = 0;

	for (i = 0; i < g->nnodes; i++)
		if (g->nodes[i].kind == PLAN_GPU && g->nodes[i].rank != rank++)
			break;
	if (i == g->nnodes)	/* all GPUs in their order */
		return;
	fprintf(f, "ranks = (");
	for (i = 0; i < g->nranks; i++)
		fprintf(f, "%s\n  \"%s\"", i ? "," : "",
			g->nodes[g->gpus[i]].name);
	fprintf(f, " );\n");
}

static void put_warnings(const struct plan_graph *g, FILE *f)
{
	uint32_t i;

	if (!g->nwarnings)
		return;
	fprintf(f, "warnings = (");
	for (i = 0; i < g->nwarnings; i++) {
		fprintf(f, "%s\n  ", i ? "," : "");
		put_string(f, g->warnings[i]);
	}
	fprintf(f, " );\n");
}

int plan_graphfile_write(const struct plan_graph *g, FILE *f,
			 struct plan_error *e)
{
	uint32_t i;
	bool both;

	fprintf(f, "# a graph for the planner, see docs/graph-files.md\ngraph = ");
	put_string(f, g->name);
	fprintf(f, ";\nnodes = (");
	for (i = 0; i < g->nnodes; i++)
		put_node(g, i, f);
	fprintf(f, " );\nlinks = (");
	for (i = 0; i < g->nedges; i += both ? 2 : 1) {
		both = is_link(g, i);
		put_edge(g, i, both, f);
	}
	fprintf(f, " );\n");
	put_ranks(g, f);
	put_warnings(g, f);
	if (fflush(f) || ferror(f))
		return plan_fail(e, EIO, "graph %s: it cannot be written: %s; is there room?",
				 g->name, strerror(errno));
	return 0;
}
