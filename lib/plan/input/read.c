// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reads a graph from a file of any format and selects the GPUs that are ranks.
 * Called by api/graph.c; each format has a file of its own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "plan/nccl.h"
#include "plan/read.h"
#include "topology/scan.h"
#include "topology/topology.h"

#define FILE_LIMIT	(64u << 20)	/* bytes */
#define DEVICE_LIMIT	(1u << 20)	/* of a list of devices */

/* ---- which GPUs are ranks ------------------------------------------------ */

struct choice {
	const struct plan_graph *g;
	uint32_t *nodes;	/* GPUs chosen so far, in their order */
	uint32_t n;
};

/* Whose it is: its own attribute, or the root complex that it is below. */
static const char *host_of(const struct plan_graph *g, uint32_t node)
{
	const char *host = plan_node_get(g, node, "host");
	uint32_t steps = 0;

	while (!host && node != PLAN_NONE && steps++ < g->nnodes) {
		if (g->nodes[node].kind == PLAN_ROOT_COMPLEX)
			host = g->nodes[node].name;
		node = g->nodes[node].up;
	}
	return host;
}

static int choose_host(struct choice *c, const char *host,
		       struct plan_error *e)
{
	uint32_t i, n = 0;

	for (i = 0; i < c->n; i++) {
		const char *of = host_of(c->g, c->nodes[i]);

		if (of && !strcmp(of, host))
			c->nodes[n++] = c->nodes[i];
	}
	if (!n)
		return plan_fail(e, EINVAL, "host \"%.40s\": no GPU of %s belongs to it; name another host",
				 host, c->g->name);
	c->n = n;
	return 0;
}

/* An index among the chosen GPUs, or a name of one. */
static int find_device(const struct choice *c, const char *word, uint32_t *node,
		       struct plan_error *e)
{
	unsigned long index;
	uint32_t i;
	char *end;

	if (strspn(word, "0123456789") == strlen(word)) {
		errno = 0;
		index = strtoul(word, &end, 10);
		if (errno || index >= c->n)
			return plan_fail(e, EINVAL, "device %.40s: there are %u GPUs to choose from; the last one is %u",
					 word, c->n, c->n - 1);
		*node = c->nodes[index];
		return 0;
	}
	for (i = 0; i < c->n; i++)
		if (!strcmp(c->g->nodes[c->nodes[i]].name, word)) {
			*node = c->nodes[i];
			return 0;
		}
	return plan_fail(e, EINVAL, "device \"%.80s\": there is no such GPU to choose; use its name or its number, counted from 0",
			 word);
}

static int choose_one(const struct choice *c, const char *word, bool *taken,
		      struct choice *out, struct plan_error *e)
{
	uint32_t node = 0;
	int err;

	if (!*word)
		return plan_fail(e, EINVAL, "devices: an empty element; write numbers or names with commas between them");
	err = find_device(c, word, &node, e);
	if (err)
		return err;
	if (taken[node])
		return plan_fail(e, EINVAL, "device %.80s (%s) is chosen twice; name each GPU once",
				 word, c->g->nodes[node].name);
	taken[node] = true;
	out->nodes[out->n++] = node;
	return 0;
}

/* Cut off blanks around. */
static char *trim(char *word)
{
	size_t n;

	word += strspn(word, " \t");
	for (n = strlen(word); n && strchr(" \t", word[n - 1]); n--)
		word[n - 1] = 0;
	return word;
}

static int choose_devices(const struct choice *c, char *list,
			  struct choice *out, struct plan_error *e)
{
	bool *taken = calloc(c->g->nnodes + 1, sizeof(*taken));
	char *word, *rest = list;
	int err = 0;

	if (!taken)
		return plan_fail(e, ENOMEM, "out of memory");
	while (!err && (word = strsep(&rest, ",")))
		err = choose_one(c, trim(word), taken, out, e);
	free(taken);
	return err;
}

static int apply(struct plan_graph *g, const struct plan_select *select,
		 struct choice *c, struct choice *out, struct plan_error *e)
{
	char *list;
	int err = 0;

	if (select->host)
		err = choose_host(c, select->host, e);
	if (err || !select->devices)
		return err ? err : plan_graph_ranks(g, c->nodes, c->n, e);
	if (strlen(select->devices) > DEVICE_LIMIT)
		return plan_fail(e, E2BIG, "devices: a list of more than %u characters",
				 DEVICE_LIMIT);
	list = strdup(select->devices);
	if (!list)
		return plan_fail(e, ENOMEM, "out of memory");
	err = choose_devices(c, list, out, e);
	free(list);
	return err ? err : plan_graph_ranks(g, out->nodes, out->n, e);
}

int plan_graph_select(struct plan_graph *g, const struct plan_select *select,
		      struct plan_error *e)
{
	struct choice c = { .g = g, .n = g->nranks }, out = { .g = g };
	int err;

	if (!select || (!select->host && !select->devices))
		return 0;
	c.nodes = calloc(g->nranks + 1, sizeof(*c.nodes));
	out.nodes = calloc(g->nranks + 1, sizeof(*out.nodes));
	if (!c.nodes || !out.nodes) {
		err = plan_fail(e, ENOMEM, "out of memory");
	} else {
		if (g->nranks)
			memcpy(c.nodes, g->gpus, g->nranks * sizeof(*c.nodes));
		err = apply(g, select, &c, &out, e);
	}
	free(c.nodes);
	free(out.nodes);
	return err;
}

/* ---- formats ------------------------------------------------------------- */

static struct plan_graph *read_topology(const char *text, const char *name,
					const struct plan_select *select,
					struct plan_error *e)
{
	struct plan_error own = { 0 };
	struct plan_graph *g;
	struct topology *t;
	char why[400];

	t = topology_parse(text, name, why, sizeof(why));
	if (!t) {
		plan_fail(e, EINVAL, "%s", why);
		return NULL;
	}
	g = plan_graph_from_topology(t, select, &own);
	if (!g)
		plan_fail(e, own.code, "%.100s: %.400s", name, own.text);
	topology_free(t);
	return g;
}

/* Those that know nothing of selecting. */
static struct plan_graph *selected(struct plan_graph *g, const char *name,
				   const struct plan_select *select,
				   struct plan_error *e)
{
	struct plan_error own = { 0 };

	if (g && plan_graph_select(g, select, &own)) {
		plan_fail(e, own.code, "%.100s: %.400s", name, own.text);
		plan_graph_free(g);
		return NULL;
	}
	return g;
}

/* @text ends with a NUL. */
static struct plan_graph *read_config(const char *text, size_t length,
				      const char *name,
				      const struct plan_select *select,
				      struct plan_error *e)
{
	struct topo_scan scan;
	char why[400];

	if (topology_scan(text, length, name, &scan, why, sizeof(why))) {
		plan_fail(e, EINVAL, "%s", why);
		return NULL;
	}
	if (scan.fabric)
		return read_topology(text, name, select, e);
	if (scan.graph)
		return selected(plan_graphfile_parse(text, name, e), name,
				select, e);
	plan_fail(e, EINVAL, "%.100s: neither \"fabric\" nor \"graph\" is set in it, and it is no XML; give a topology file, a graph file, or an NCCL topology",
		  name);
	return NULL;
}

struct plan_graph *plan_graph_parse(const char *text, size_t length,
				    const char *name,
				    const struct plan_select *select,
				    struct plan_error *e)
{
	struct plan_graph *g;
	size_t i = 0;
	char *copy;

	if (length >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) {
		text += 3;	/* byte order mark */
		length -= 3;
	}
	if (length > FILE_LIMIT) {
		plan_fail(e, E2BIG, "%.100s: more than %u MiB; no fabric takes so much",
			  name, FILE_LIMIT >> 20);
		return NULL;
	}
	while (i < length && strchr(" \t\r\n\f\v", text[i]) && text[i])
		i++;
	if (i == length) {
		plan_fail(e, EINVAL, "%.100s: empty; give a topology file, a graph file, or an NCCL topology",
			  name);
		return NULL;
	}
	if (text[i] == '<')
		return selected(plan_nccl_parse(text, length, name, e), name,
				select, e);
	copy = malloc(length + 1);	/* libconfig wants an end */
	if (!copy) {
		plan_fail(e, ENOMEM, "%.100s: out of memory", name);
		return NULL;
	}
	memcpy(copy, text, length);
	copy[length] = 0;
	g = read_config(copy, length, name, select, e);
	free(copy);
	return g;
}

/* ---- files --------------------------------------------------------------- */

static char *read_all(FILE *f, size_t *length)
{
	size_t room = 1 << 16, n = 0;
	char *text = malloc(room), *more;

	while (text) {
		n += fread(text + n, 1, room - n, f);
		if (n < room || room > FILE_LIMIT)
			break;
		room *= 2;
		more = realloc(text, room);
		if (!more)
			free(text);
		text = more;
	}
	*length = n;
	return text;
}

static struct plan_graph *read_stream(FILE *f, const char *path,
				      const struct plan_select *select,
				      struct plan_error *e)
{
	struct plan_graph *g;
	struct stat st;
	size_t length;
	char *text;

	if (!fstat(fileno(f), &st) && S_ISDIR(st.st_mode)) {
		plan_fail(e, EISDIR, "%.200s: it is a directory; name a file",
			  path);
		return NULL;
	}
	text = read_all(f, &length);
	if (!text) {
		plan_fail(e, ENOMEM, "%.200s: out of memory", path);
		return NULL;
	}
	if (ferror(f)) {
		plan_fail(e, EIO, "%.200s: it cannot be read to its end; check the medium",
			  path);
		free(text);
		return NULL;
	}
	g = plan_graph_parse(text, length, path, select, e);
	free(text);
	return g;
}

struct plan_graph *plan_graph_read(const char *path,
				   const struct plan_select *select,
				   struct plan_error *e)
{
	struct plan_graph *g;
	FILE *f = fopen(path, "re");

	if (!f) {
		plan_fail(e, errno, "%.200s: it cannot be opened: %s; check the path and its permissions",
			  path, strerror(errno));
		return NULL;
	}
	g = read_stream(f, path, select, e);
	fclose(f);
	return g;
}
