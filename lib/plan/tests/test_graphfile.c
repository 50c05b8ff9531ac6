// SPDX-License-Identifier: LGPL-2.1-or-later
/* Graph files: round trips, mistakes with their messages, hostile bytes. */
#include <errno.h>
#include <stdlib.h>

#include "plan/optimum.h"
#include "plan/read.h"
#include "tests/tap.h"

/* libconfig loses the text of a string that stands where none may. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libconfig.so\n";
}

static struct plan_graph *parse(const char *text, struct plan_error *e)
{
	return plan_graph_parse(text, strlen(text), "t", NULL, e);
}

static char *text_of(const struct plan_graph *g)
{
	struct plan_error e = { 0 };
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (plan_graphfile_write(g, f, &e))
		printf("# %s\n", e.text);
	fclose(f);
	return text;
}

static bool same_attributes(const struct plan_node *a,
			    const struct plan_node *b)
{
	uint32_t i;

	if (a->nattributes != b->nattributes)
		return false;
	for (i = 0; i < a->nattributes; i++)
		if (strcmp(a->attributes[i].key, b->attributes[i].key) ||
		    strcmp(a->attributes[i].value, b->attributes[i].value))
			return false;
	return true;
}

static bool same_nodes(const struct plan_graph *a, const struct plan_graph *b)
{
	uint32_t i;

	if (a->nnodes != b->nnodes || a->nranks != b->nranks ||
	    a->nboxes != b->nboxes || strcmp(a->name, b->name))
		return false;
	for (i = 0; i < a->nnodes; i++) {
		const struct plan_node *x = &a->nodes[i], *y = &b->nodes[i];

		if (strcmp(x->name, y->name) || x->kind != y->kind ||
		    x->rank != y->rank || x->box != y->box || x->up != y->up ||
		    !same_attributes(x, y))
			return false;
	}
	for (i = 0; i < a->nranks; i++)
		if (a->gpus[i] != b->gpus[i])
			return false;
	return true;
}

/* All but line numbers. */
static bool same(const struct plan_graph *a, const struct plan_graph *b)
{
	uint32_t i;

	if (!same_nodes(a, b) || a->nedges != b->nedges ||
	    a->nwarnings != b->nwarnings)
		return false;
	for (i = 0; i < a->nedges; i++) {
		const struct plan_edge *x = &a->edges[i], *y = &b->edges[i];

		if (x->from != y->from || x->to != y->to ||
		    x->capacity != y->capacity || x->latency != y->latency ||
		    x->kind != y->kind || x->twin != y->twin)
			return false;
	}
	for (i = 0; i < a->nwarnings; i++)
		if (strcmp(a->warnings[i], b->warnings[i]))
			return false;
	return true;
}

static bool comes_back(const struct plan_graph *g)
{
	struct plan_error e = { 0 };
	char *text = text_of(g), *again;
	struct plan_graph *back = parse(text, &e);
	bool good;

	if (!back)
		printf("# %s\n%s\n", e.text, text);
	good = back && same(g, back);
	again = back ? text_of(back) : NULL;
	good = good && !strcmp(text, again);
	plan_graph_free(back);
	free(text);
	free(again);
	return good;
}

static void files(void)
{
	static const char *const names[] = {
		"1s-1rp-std-cascade.topo", "2s-2rp-split-flat.topo",
		"demo.topo", "graphs/hypercube-8.graph",
		"graphs/ring-8.graph", "graphs/dgx-a100.graph",
		"graphs/two-dgx.graph",
	};
	struct plan_error e = { 0 };
	struct plan_graph *g;
	char path[80];
	uint32_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), "topologies/%s", names[i]);
		g = plan_graph_read(path, NULL, &e);
		ok(g && !plan_graph_check(g, &e), "%s can be planned on%s",
		   names[i], e.text);
		ok(g && comes_back(g), "and comes back from its graph file");
		plan_graph_free(g);
	}
}

/* xorshift64* */
static uint64_t seed;

static uint32_t below(uint32_t n)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return (uint32_t)((seed * 2685821657736338717ull >> 33) % n);
}

static void random_attributes(struct plan_graph *g, uint32_t node)
{
	char key[8], value[12];
	uint32_t i, k, n = below(4);

	for (i = 0; i < n; i++) {
		snprintf(key, sizeof(key), "%c.%u\"", 'a' + below(3), below(9));
		for (k = 0; k < sizeof(value) - 1; k++)
			value[k] = (char)(1 + below(255));
		value[below(sizeof(value))] = 0;
		value[sizeof(value) - 1] = 0;
		plan_node_set(g, node, key, value);
	}
}

static void random_edges(struct plan_graph *g)
{
	uint32_t i, n = below(20), a, b;
	int64_t x;

	for (i = 0; i < n; i++) {
		a = below(g->nnodes);
		b = below(g->nnodes);
		if (below(3)) {
			x = plan_graph_add_link(g, a, b, 1 + below(~0u),
						below(1000),
						1 + below(PLAN_LINK_KINDS - 1),
						NULL);
			if (x >= 0 && !below(3))
				g->edges[x + 1].capacity = 1 + below(1000);
			if (x >= 0 && !below(3))
				g->edges[x + 1].latency = below(1000);
		} else {
			plan_graph_add_edge(g, a, b, 1 + below(100000), 0,
					    1 + below(PLAN_LINK_KINDS - 1),
					    NULL);
		}
	}
}

static struct plan_graph *random_graph(void)
{
	struct plan_graph *g = plan_graph_new("any \"graph\"\n\\");
	uint32_t i, n = 1 + below(12), gpus[12], ngpus = 0;
	char name[16];

	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "n%u.%u:%u", i, below(9),
			 below(9));
		plan_graph_add_node(g, 1 + below(PLAN_NODE_KINDS - 1), name,
				    below(3) ? below(4) : PLAN_NONE, NULL);
		if (i && below(2))
			g->nodes[i].up = below(i);
		if (g->nodes[i].kind == PLAN_GPU && below(4))
			gpus[ngpus++] = i;
		random_attributes(g, i);
	}
	random_edges(g);
	for (i = 0; i + 1 < ngpus; i++) {
		uint32_t k = i + below(ngpus - i), t = gpus[i];

		gpus[i] = gpus[k];
		gpus[k] = t;
	}
	if (below(2))
		plan_graph_ranks(g, gpus, ngpus, NULL);
	if (!below(4))
		plan_graph_warn(g, "a \"warning\" %u", below(99));
	return g;
}

static void random_graphs(void)
{
	uint32_t i, good = 0;

	seed = 5;
	for (i = 0; i < 500; i++) {
		struct plan_graph *g = random_graph();

		good += comes_back(g);
		plan_graph_free(g);
	}
	ok(good == 500, "%u of 500 random graphs come back as they were", good);
}

#define G "graph = \"g\"; nodes = ( { name = \"a\"; kind = \"gpu\"; },\n" \
	"{ name = \"b\"; kind = \"gpu\"; },\n{ name = \"s\"; kind = \"ntb\"; } );\n"
#define L(rest) G "links = (\n{ a = \"a\"; b = \"b\"; " rest " } );\n"
#define N(rest) "graph = \"g\";\nnodes = ( { name = \"a\"; " rest " } );\n"

static const struct {
	const char *text, *says;
} mistakes[] = {
	{ "graph = ;", "t:1: syntax error; see docs/graph-files.md" },
	{ "graph = \"g\";\nnodes = \"a\n\n", "t:2: a string that begins here has no end" },
	{ "graph = 5;", "t:1: graph: \"graph\" is no string" },
	{ "graph = \"\";", "t:1: graph: its name has 0 characters; use 1 to 63" },
	{ "graph = \"g\"; nodse = ();",
	  "t:1: graph: there is no setting \"nodse\"; is it \"nodes\"?" },
	{ "graph = \"g\"; zebra = ();",
	  "there is no setting \"zebra\"; remove it" },
	{ "graph = \"g\";", "graph: \"nodes\" is empty or missing" },
	{ "graph = \"g\"; nodes = 5;", "\"nodes\" is no list" },
	{ "graph = \"g\"; nodes = ( 5 );",
	  "t:1: node 1: it is no group; write { ... }" },
	{ "graph = \"g\"; nodes = ( { kind = \"gpu\"; } );",
	  "node 1: \"name\" is missing" },
	{ N(""), "t:2: node a: \"kind\" is missing" },
	{ N("kind = \"cpu\";"), "t:2: node a: there is no kind \"cpu\"; choose gpu" },
	{ N("kind = \"gpu\"; bux = 1;"), "is it \"box\"?" },
	{ N("kind = \"gpu\"; box = 1.5;"), "node a: \"box\" is no whole number" },
	{ N("kind = \"gpu\"; box = -1;"), "\"box\" is -1; choose 0 to 16383" },
	{ N("kind = \"gpu\"; box = 99999999999L;"), "\"box\" is 99999999999" },
	{ N("kind = \"gpu\"; up = \"b\";"), "there is no node \"b\"" },
	{ N("kind = \"gpu\"; up = \"a\";"), "node a: \"up\" leads back" },
	{ "graph = \"g\"; nodes = (\n"
	  "{ name = \"a\"; kind = \"gpu\"; up = \"b\"; },\n"
	  "{ name = \"b\"; kind = \"ntb\"; up = \"c\"; },\n"
	  "{ name = \"c\"; kind = \"ntb\"; up = \"b\"; } );",
	  "t:3: node b: \"up\" leads back to the node itself" },
	{ N("kind = \"gpu\"; attributes = 5;"), "\"attributes\" is no list" },
	{ N("kind = \"gpu\"; attributes = ( \"k\" );"),
	  "an attribute is a pair of strings" },
	{ N("kind = \"gpu\"; attributes = ( ( \"k\", 5 ) );"),
	  "an attribute is a pair of strings" },
	{ N("kind = \"gpu\"; attributes = ( ( \"k\", \"1\" ), ( \"k\", \"2\" ) );"),
	  "attribute \"k\" is there twice" },
	{ "graph = \"g\"; nodes = ( { name = \"a b\"; kind = \"gpu\"; } );",
	  "\"a b\" is no name of an element" },
	{ "graph = \"g\"; nodes = ( { name = \"a\"; kind = \"gpu\"; },\n"
	  "{ name = \"a\"; kind = \"gpu\"; } );",
	  "t:2: there are two elements named a" },
	{ "graph = \"g\"; nodes = ( { name = \"a\"; name = \"b\"; } );",
	  "t:1: duplicate setting name" },
	{ L(""), "t:5: link a - b: \"gbps\" is missing" },
	{ L("gbps = 0;"), "t:5: link a - b: \"gbps\" is 0; choose GB/s from 0.001" },
	{ L("gbps = -3.0;"), "\"gbps\" is -3" },
	{ L("gbps = 1e400;"), "\"gbps\" is inf" },
	{ L("gbps = 1e-300;"), "\"gbps\" is 1e-300" },
	{ L("gbps = 5000000;"), "choose GB/s from 0.001 to 4294967," },
	{ L("gbps = nan;"), "t:5: syntax error" },
	{ L("gbps = \"27\";"), "\"gbps\" is no number" },
	{ L("gbps = 1; back_gbps = 0.0;"), "\"back_gbps\" is 0" },
	{ L("gbps = 1; latency_ns = 2000000000;"),
	  "\"latency_ns\" is 2000000000; choose 0 to 1000000000" },
	{ L("gbps = 1; kind = \"ether\";"), "there is no kind \"ether\"" },
	{ L("gpbs = 1;"), "there is no setting \"gpbs\"; is it \"gbps\"?" },
	{ L("gbps = 1; to = \"s\";"), "it has both kinds of ends" },
	{ G "links = ( { a = \"a\"; b = \"x\"; gbps = 1; } );",
	  "t:4: link a - x: there is no node \"x\"" },
	{ G "links = ( { a = \"a\"; b = \"a\"; gbps = 1; } );",
	  "t:4: a has a link to itself" },
	{ G "links = ( { from = \"a\"; to = \"b\"; gbps = 1; back_gbps = 1; } );",
	  "link a > b: one direction has no way back" },
	{ G "links = ( { from = \"a\"; gbps = 1; } );",
	  "link 1: \"to\" is missing" },
	{ G "ranks = ( \"b\", \"b\" );", "t:4: b is named twice" },
	{ G "ranks = ( \"s\" );", "t:4: s is no GPU" },
	{ G "ranks = ( \"x\" );", "t:4: ranks: there is no node \"x\"" },
	{ G "ranks = ( 5 );", "ranks: element 1 is no string" },
	{ G "warnings = ( 5 );", "a warning is no string" },
};

/* The example of the documentation is one. */
static void documented(void)
{
	struct plan_error e = { 0 };
	struct plan_graph *g = NULL;
	char text[32768], *from, *end;
	FILE *f = fopen("docs/graph-files.md", "r");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

	text[n] = 0;
	if (f)
		fclose(f);
	from = strstr(text, "graph = \"pair\"");
	end = from ? strstr(from, "```") : NULL;
	if (end)
		g = plan_graph_parse(from, (size_t)(end - from), "doc", NULL,
				     &e);
	ok(g && !plan_graph_check(g, &e), "docs/graph-files.md: %s",
	   g ? g->name : e.text);
	ok(g && g->nedges == 5 && g->nodes[0].rank == 1, "its links and ranks");
	plan_graph_free(g);
}

/* What the files say of themselves. */
static void known(void)
{
	static const struct {
		const char *file;
		uint64_t busbw;		/* of an all-gather, MB/s */
	} files_known[] = {
		{ "hypercube-8", 30000 }, { "ring-8", 50000 },
		{ "dgx-a100", 300000 }, { "two-dgx", 325000 },
	};
	uint32_t i;

	for (i = 0; i < sizeof(files_known) / sizeof(*files_known); i++) {
		struct plan_optimum o = { 0 };
		struct plan_error e = { 0 };
		struct plan_graph *g;
		char path[80];

		snprintf(path, sizeof(path), "topologies/graphs/%s.graph",
			 files_known[i].file);
		g = plan_graph_read(path, NULL, &e);
		ok(g && !plan_optimum(g, PLAN_ALL_GATHER, 0, &o, &e) &&
		   o.proved && !plan_ratio_compare(o.busbw, plan_ratio(
			files_known[i].busbw, 1)), "%s: the best all-gather has %llu MB/s busbw%s",
		   files_known[i].file,
		   (unsigned long long)files_known[i].busbw, e.text);
		plan_optimum_free(&o);
		plan_graph_free(g);
	}
}

static void formats(void)
{
	static const char xml[] = "\xef\xbb\xbf \n<system version=\"1\">\n"
		"<cpu numaid=\"0\"><pci busid=\"0000:01:00.0\" "
		"class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" "
		"link_width=\"16\"><gpu dev=\"0\" sm=\"90\" rank=\"0\" "
		"gdr=\"1\"/></pci><pci busid=\"0000:02:00.0\" "
		"class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" "
		"link_width=\"16\"><gpu dev=\"1\" sm=\"90\" rank=\"1\" "
		"gdr=\"1\"/></pci></cpu></system>\n";
	struct plan_select select = { NULL, "1" };
	struct plan_error e = { 0 };
	struct plan_graph *g = plan_graph_parse(xml, sizeof(xml) - 1, "t",
						&select, &e);

	ok(g && g->nranks == 1, "XML is told by its first character%s%s",
	   g ? "" : ": ", e.text);
	ok(g && comes_back(g), "and comes back from a graph file");
	plan_graph_free(g);
	g = parse("\xef\xbb\xbf" G, &e);
	ok(g && g->nranks == 2, "a byte order mark is nothing");
	plan_graph_free(g);
}

static void all_mistakes(void)
{
	uint32_t i;

	for (i = 0; i < sizeof(mistakes) / sizeof(*mistakes); i++) {
		struct plan_error e = { 0 };
		struct plan_graph *g = parse(mistakes[i].text, &e);

		if (g)
			ok(0, "accepted: %s", mistakes[i].text);
		else
			has(e.text, mistakes[i].says);
		plan_graph_free(g);
	}
}

static void meanings(void)
{
	struct plan_error e = { 0 };
	struct plan_graph *g = parse(L("gbps = 2; back_gbps = 0.0014; kind = \"xgmi\";")
				     "ranks = ( \"b\", \"a\" );", &e);

	ok(g && g->nedges == 2 && g->edges[0].capacity == 2000 &&
	   g->edges[1].capacity == 1, "capacities of both directions");
	ok(g->edges[1].latency == plan_link_latency(PLAN_XGMI),
	   "latency is that of the kind if it is not given");
	ok(g->edges[1].line == 5 && g->nodes[1].line == 2, "lines are kept");
	ok(g->gpus[0] == 1 && g->nodes[0].rank == 1, "ranks in their order");
	plan_graph_free(g);
	g = parse(G "ranks = ();", &e);
	ok(g && !g->nranks && g->nodes[0].rank == PLAN_NONE, "no ranks");
	plan_graph_free(g);
}

static void too_many(void)
{
	struct plan_error e = { 0 };
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	uint32_t i;

	fprintf(f, "graph = \"g\"; nodes = ( ");
	for (i = 0; i <= PLAN_NODES; i++)
		fprintf(f, "%s\n{ name = \"n%u\"; kind = \"ntb\"; }",
			i ? "," : "", i);
	fprintf(f, ");\n");
	fclose(f);
	ok(!parse(text, &e) && e.code == E2BIG, "too many nodes: %s", e.text);
	has(e.text, "t:16386: n16384: more than 16384 elements");
	free(text);
}

/* Break a good file in all ways that one byte can. */
static void mutations(const char *path)
{
	struct plan_error e = { 0 };
	size_t n, i, taken = 0, refused = 0;
	char text[16384], *copy;
	struct plan_graph *g;
	FILE *f = fopen(path, "r");

	n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	text[n] = 0;
	if (f)
		fclose(f);
	copy = malloc(n + 1);
	seed = 11;
	for (i = 0; n && i < 3000; i++) {
		size_t at = below((uint32_t)n), length = n;

		memcpy(copy, text, n + 1);
		if (i % 3 == 0)
			length = at;
		else if (i % 3 == 1)
			copy[at] = (char)below(256);
		else
			memmove(copy + at, copy + at + 1, n - at);
		e = (struct plan_error){ 0 };
		g = plan_graph_parse(copy, length, "t", NULL, &e);
		taken += g != NULL;
		refused += !g && e.code && *e.text;
		plan_graph_free(g);
	}
	ok(taken + refused == 3000, "%s, broken: %zu times taken, %zu refused",
	   path, taken, refused);
	free(copy);
}

int main(void)
{
	files();
	random_graphs();
	documented();
	known();
	formats();
	all_mistakes();
	meanings();
	too_many();
	mutations("topologies/graphs/ring-8.graph");
	mutations("topologies/demo.topo");
	return tap_done();
}
