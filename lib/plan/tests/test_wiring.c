// SPDX-License-Identifier: LGPL-2.1-or-later
/* Topology files as graphs: the shipped ones and hand-made cases. */
#include <errno.h>
#include <stdlib.h>

#include "plan/read.h"
#include "tests/tap.h"

static struct plan_graph *graph(const char *text, const char *host,
				const char *devices, struct plan_error *e)
{
	struct plan_select select = { host, devices };

	return plan_graph_parse(text, strlen(text), "t", &select, e);
}

static uint64_t capacity(const struct plan_graph *g, const char *a,
			 const char *b)
{
	uint32_t x = plan_graph_find(g, a), y = plan_graph_find(g, b), i;
	uint64_t sum = 0;

	for (i = 0; i < g->nedges; i++)
		if (g->edges[i].from == x && g->edges[i].to == y)
			sum += g->edges[i].capacity;
	return sum;
}

/* What leaves the first box other than by links inside it. */
static uint64_t leaves(const struct plan_graph *g, uint32_t box)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < g->nedges; i++)
		if (g->nodes[g->edges[i].from].box == box &&
		    g->nodes[g->edges[i].to].box != box)
			sum += g->edges[i].capacity;
	return sum;
}

/* Follow .up to the top; the names on the way. */
static void path_up(const struct plan_graph *g, uint32_t node, char *text,
		    size_t size)
{
	size_t n = 0;

	for (; node != PLAN_NONE && n < size; node = g->nodes[node].up)
		n += (size_t)snprintf(text + n, size - n, "%s ",
				      g->nodes[node].name);
}

static void shipped(const char *file, uint32_t nranks, uint64_t box,
		    const char *last)
{
	struct plan_error e = { 0 };
	char path[128], up[400];
	struct plan_graph *g;

	snprintf(path, sizeof(path), "topologies/%s.topo", file);
	g = plan_graph_read(path, NULL, &e);
	ok(g && !plan_graph_check(g, &e), "%s: %s", file,
	   g && !e.code ? "can be planned on" : e.text);
	if (!g)
		return;
	ok(g->nranks == nranks, "%u ranks", g->nranks);
	ok(leaves(g, 0) == box, "%llu MB/s leave a box",
	   (unsigned long long)leaves(g, 0));
	path_up(g, g->gpus[g->nranks - 1], up, sizeof(up));
	ok(!strcmp(up, last), "the last GPU's path: %s", up);
	ok(capacity(g, "columba1.gpu0", "columba1.gpu7") == 48000,
	   "the mesh is full");
	plan_graph_free(g);
}

static void all_shipped(void)
{
	shipped("1s-1rp-std-cascade", 16, 54000, "columba2.gpu7 "
		"columba2:up1b columba2:up1 draco1:1 server.0 server ");
	shipped("1s-2rp-std-cascade", 16, 54000, "columba2.gpu7 "
		"columba2:up1b columba2:up1 draco1:2 server.1 server ");
	shipped("1s-2rp-split-cascade", 16, 54000, "columba2.gpu7 "
		"columba2:up1b columba2:up1 draco1:2 server.1 server ");
	shipped("2s-2rp-std-flat", 16, 108000, "columba2.gpu7 "
		"columba2:up3 draco2:1 server.1 server ");
	shipped("2s-2rp-split-flat", 16, 108000, "columba2.gpu7 "
		"columba2:up3 draco2:1 server.1 server ");
	shipped("demo", 8, 54000, "columba1.gpu7 columba1:up1b columba1:up1 "
		"draco1:1 a.0 a ");
}

#define TWO "fabric = \"f\"; link_gbps = 27.0;\n" \
	"switches = ( { name = \"s\"; }, { name = \"u\"; } );\n"
#define BOX "appliances = ( { name = \"c\"; kind = \"cascade\";\n" \
	"uplinks = ( \"s:3\", \"s:4\" );\n" \
	"endpoints = ( { class = \"gpu\"; count = 4; } );\n" \
	"mesh = { kind = \"nvlink\"; gbps = 50; }; } );\n"
#define BIND(a, b, c, d) "bindings = (" \
	"{ endpoint = \"c.gpu0\"; port = \"" a "\"; }," \
	"{ endpoint = \"c.gpu1\"; port = \"" b "\"; }," \
	"{ endpoint = \"c.gpu2\"; port = \"" c "\"; }," \
	"{ endpoint = \"c.gpu3\"; port = \"" d "\"; } );\n"

static bool warned(const struct plan_graph *g, const char *part)
{
	uint32_t i;

	for (i = 0; i < g->nwarnings; i++)
		if (strstr(g->warnings[i], part))
			return true;
	return false;
}

static void shared_uplink(void)
{
	struct plan_error e = { 0 };
	struct plan_graph *g = graph(TWO "hosts = ( { name = \"h\"; ports = ( "
		"\"s:1\", \"s:2\" ); } );\n" BOX
		BIND("h.0", "h.1", "h.1", "h.1"), NULL, NULL, &e);

	ok(g && !plan_graph_check(g, &e), "GPUs of one uplink in two partitions");
	ok(warned(g, "uplink s:3 are bound to 2 host ports"), "there is a warning");
	ok(capacity(g, "c:up0:h.0", "s:1") == 13500 &&
	   capacity(g, "c:up0:h.1", "s:2") == 13500, "they share it");
	ok(capacity(g, "c:up0b:h.1", "c:up0:h.1") == 27000,
	   "but not the cascaded switch");
	ok(capacity(g, "c:up1", "s:2") == 27000, "the other one is whole");
	plan_graph_free(g);
}

static void over_isl(void)
{
	struct plan_error e = { 0 };
	struct plan_graph *g = graph(TWO "isls = ( { a = \"s:6\"; b = \"u:6\"; } );"
		"hosts = ( { name = \"h\"; ports = ( \"s:1\", \"u:1\", \"u:2\" ); } );\n"
		BOX BIND("h.0", "h.1", "h.2", "h.2"), NULL, NULL, &e);
	char up[200];

	ok(g && !plan_graph_check(g, &e), "partitions over two switches");
	path_up(g, plan_graph_find(g, "c.gpu2"), up, sizeof(up));
	ok(!strcmp(up, "c.gpu2 c:up1 u:2:s u:2 h.2 h "), "the way: %s", up);
	ok(capacity(g, "u:2:s", "u:2") == 13500 &&
	   capacity(g, "u:1", "u:1:s") == 13500, "the link is shared");
	ok(warned(g, "between s and u (27 GB/s) carry 2 partitions"),
	   "there is a warning");
	plan_graph_free(g);
}

static void several_hosts(void)
{
	static const char text[] = TWO
		"isls = ( { a = \"s:6\"; b = \"u:6\"; } );"
		"hosts = ( { name = \"g\"; ports = ( \"s:1\" ); },"
		"{ name = \"h\"; ports = ( \"s:2\" ); },"
		"{ name = \"i\"; ports = ( \"u:1\" ); } );\n"
		BOX BIND("h.0", "g.0", "h.0", "i.0");
	struct plan_error e = { 0 };
	struct plan_graph *g = graph(text, NULL, NULL, &e);

	ok(g && !plan_graph_check(g, &e), "three hosts");
	ok(!strcmp(g->nodes[g->gpus[0]].name, "c.gpu1") &&
	   !strcmp(g->nodes[g->gpus[2]].name, "c.gpu2"),
	   "ranks are numbered host by host");
	ok(capacity(g, "s:1", "s:ntb") == 6 * 27000 &&
	   capacity(g, "s:ntb", "u:ntb") == 13500 &&
	   capacity(g, "u:ntb", "u:1") == 6 * 27000, "NTBs join them");
	ok(capacity(g, "c.gpu0", "c.gpu2") == 50000 &&
	   !capacity(g, "c.gpu0", "c.gpu1"), "the mesh stays within a host");
	plan_graph_free(g);
	g = graph(text, "h", NULL, &e);
	ok(g && g->nranks == 2 && !plan_graph_check(g, &e), "one of them");
	ok(plan_graph_find(g, "c.gpu1") == PLAN_NONE &&
	   plan_graph_find(g, "s:ntb") == PLAN_NONE, "has the rest left out");
	ok(capacity(g, "c:up0:h.0", "s:2") == 13500,
	   "the others' GPUs have their share");
	plan_graph_free(g);
	ok(!graph(text, "x", NULL, &e), "a host that is not there");
	has(e.text, "t: there is no host \"x\" in f; choose from g, h, i");
}

static void unjoined(void)
{
	struct plan_error e = { 0 };
	struct plan_graph *g = graph(TWO "hosts = ( { name = \"h\"; p2p_root = false;"
		" ports = ( \"s:1\", \"s:2\" ); } );\n"
		"appliances = ( { name = \"c\"; kind = \"cascade\";\n"
		"uplinks = ( \"s:3\", \"s:4\" );\n"
		"endpoints = ( { class = \"gpu\"; count = 4; } ); } );\n"
		BIND("h.0", "h.0", "h.1", "h.1"), NULL, NULL, &e);

	ok(g && plan_graph_check(g, &e) == -EINVAL,
	   "a root complex that forwards nothing joins nothing");
	has(e.text, "no path leads from c.gpu0 to c.gpu2");
	plan_graph_free(g);
}

static void speeds(void)
{
	struct plan_error e = { 0 };
	struct plan_graph *g = graph("fabric = \"f\"; link_gbps = 26.0;"
		"switches = ( { name = \"s\"; speed = 32; width = 8; },"
		"{ name = \"u\"; speed = 8; } );"
		"isls = ( { a = \"s:6\"; b = \"u:6\"; }, { a = \"s:5\"; b = \"u:5\"; } );"
		"hosts = ( { name = \"h\"; ports = ( \"u:1\" ); } );\n" BOX,
		NULL, NULL, &e);

	ok(g && warned(g, "no bindings"), "the nearest port is over a link");
	ok(capacity(g, "c:up0", "u:1:s") == 26000, "Gen5 x8 is Gen4 x16");
	ok(capacity(g, "u:1", "h.0") == 13000, "Gen3 x16 is half of it");
	ok(capacity(g, "u:1:s", "u:1") == 26000, "two links, each the slower end's");
	ok(!strcmp(plan_node_get(g, plan_graph_find(g, "u:1"),
				 "pci.link_speed"), "8.0 GT/s PCIe"),
	   "speeds are kept");
	plan_graph_free(g);
}

static void selections(void)
{
	static const struct { const char *devices, *says; } bad[] = {
		{ "0,8", "device 8: there are 8 GPUs to choose from" },
		{ "99999999999999999999999", "the last one is 7" },
		{ "0,1,0", "device 0 (columba1.gpu0) is chosen twice" },
		{ "columba1.gpu3,3", "(columba1.gpu3) is chosen twice" },
		{ "0,,1", "an empty element" },
		{ "", "an empty element" },
		{ "1,", "an empty element" },
		{ "-1", "device \"-1\": there is no such GPU" },
		{ "columba1:up0", "there is no such GPU" },
	};
	struct plan_select select = { NULL, " 5, columba1.gpu2 ,0" };
	struct plan_error e = { 0 };
	struct plan_graph *g = plan_graph_read("topologies/demo.topo", &select,
					       &e);
	uint32_t i;

	ok(g && g->nranks == 3, "three devices");
	ok(g->gpus[0] == plan_graph_find(g, "columba1.gpu5") &&
	   g->nodes[g->gpus[2]].rank == 2, "in their order");
	ok(g->nodes[plan_graph_find(g, "columba1.gpu1")].rank == PLAN_NONE,
	   "others are no ranks");
	select.devices = "1,0";
	ok(!plan_graph_select(g, &select, &e) && g->nranks == 2 &&
	   g->gpus[0] == plan_graph_find(g, "columba1.gpu2"),
	   "indices are those among what was chosen before");
	plan_graph_free(g);
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		select.devices = bad[i].devices;
		g = plan_graph_read("topologies/demo.topo", &select, &e);
		ok(!g, "devices \"%s\" are refused", bad[i].devices);
		has(e.text, bad[i].says);
	}
}

static void refuses(const char *text, const char *says)
{
	struct plan_error e = { 0 };

	ok(!graph(text, NULL, NULL, &e), "refused");
	has(e.text, says);
}

static void hostile(void)
{
	char *many = malloc(1 << 20), *p = many;
	struct plan_error e = { 0 };
	int i;

	refuses("", "t: empty");
	refuses("fabric = \"f\";\n@include \"/etc/passwd\"\n", "t:2: \"@\"");
	refuses("fabric = \"f\";\n/* \n */ @include \"x\"\n", "t:3: \"@\"");
	refuses("fabric = \"\\\"\\\n\"; @", "t:2: \"@\"");
	refuses("fabric = \"f\"; x = ((((((((((((((((((((((((((((((((((((((((((",
		"brackets in brackets");
	refuses("fabric = ;", "t:1: syntax error");
	refuses("a = \"fabric = 1\";", "neither \"fabric\" nor \"graph\"");
	p += sprintf(p, "fabric = \"f\";\n");
	for (i = 0; i < 20000; i++)
		p += sprintf(p, "a%d = 1;\n", i);
	refuses(many, "t:1025: more than 1024 settings");
	free(many);
	ok(!plan_graph_parse("fabric\0=", 8, "t", NULL, &e), "refused");
	has(e.text, "t: a NUL byte");
	ok(!plan_graph_read("topologies", NULL, &e) && e.code == EISDIR,
	   "a directory is no file");
	ok(!plan_graph_read("topologies/none", NULL, &e) && e.code == ENOENT,
	   "nor is what is not there");
	ok(!plan_graph_read("/dev/zero", NULL, &e) && e.code == E2BIG,
	   "without end: %s", e.text);
	refuses("fabric = \"f\"; switches = ( { name = \"s\"; } );"
		"link_gbps = 1e-9; hosts = ( { name = \"h\"; ports = "
		"( \"s:1\" ); } );" BOX, "t: f: link_gbps or root_complex_gbps");
	refuses(TWO "hosts = ( { name = \"h\"; ports = ( \"s:1\" ); } );",
		"t: fabric \"f\": no GPU is bound");
}

/* ---- any fabric at all -------------------------------------------------- */

static uint64_t seed = 17;

static uint32_t below(uint32_t n)	/* xorshift64* */
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return (uint32_t)((seed * 2685821657736338717ull >> 33) % n);
}

struct maker {
	FILE *f;
	uint32_t nsw, nisls, nhosts, nboxes;
	uint32_t used[4];	/* ports of each switch */
	uint32_t ports[3];	/* of each host */
	uint32_t gpus[3];	/* of each box */
};

static void put_port(struct maker *m, const char *sep)
{
	uint32_t s = below(m->nsw);

	fprintf(m->f, "%s\"s%u:%u\"", sep, s, ++m->used[s]);
}

static void put_switches(struct maker *m)
{
	uint32_t i, a, b;

	m->nsw = 1 + below(4);
	fprintf(m->f, "fabric = \"f\"; switches = (");
	for (i = 0; i < m->nsw; i++)
		fprintf(m->f, "%s{ name = \"s%u\"; ports = 64; }",
			i ? "," : "", i);
	fprintf(m->f, ");\nisls = (");
	m->nisls = m->nsw > 1 ? below(6) : 0;
	for (i = 0; i < m->nisls; i++) {
		a = below(m->nsw);
		b = (a + 1 + below(m->nsw - 1)) % m->nsw;
		fprintf(m->f, "%s{ a = \"s%u:%u\"; b = \"s%u:%u\"; }",
			i ? "," : "", a, m->used[a] + 1, b, m->used[b] + 1);
		m->used[a]++;
		m->used[b]++;
	}
	fprintf(m->f, ");\n");
}

static void put_hosts(struct maker *m)
{
	uint32_t i, k;

	m->nhosts = 1 + below(3);
	fprintf(m->f, "hosts = (");
	for (i = 0; i < m->nhosts; i++) {
		m->ports[i] = 1 + below(3);
		fprintf(m->f, "%s{ name = \"h%u\"; p2p_root = %s; ports = (",
			i ? "," : "", i, below(5) ? "true" : "false");
		for (k = 0; k < m->ports[i]; k++)
			put_port(m, k ? "," : "");
		fprintf(m->f, "); }");
	}
	fprintf(m->f, ");\n");
}

static void put_boxes(struct maker *m)
{
	uint32_t i, k, flat;

	m->nboxes = 1 + below(3);
	fprintf(m->f, "appliances = (");
	for (i = 0; i < m->nboxes; i++) {
		flat = below(2);
		m->gpus[i] = 1 + below(9);
		fprintf(m->f, "%s{ name = \"c%u\"; kind = \"%s\"; uplinks = (",
			i ? "," : "", i, flat ? "flat" : "cascade");
		for (k = 0; k < (flat ? 4u : 2u); k++)
			put_port(m, k ? "," : "");
		fprintf(m->f, "); endpoints = ( { class = \"gpu\"; count = %u; },"
			"{ class = \"nvme\"; } ); %s }", m->gpus[i], below(3) ?
			"mesh = { kind = \"xgmi\"; gbps = 48; };" : "");
	}
	fprintf(m->f, ");\nbindings = (");
}

static char *random_topology(struct maker *m)
{
	char *text = NULL;
	uint32_t i, k, h, any = 0;
	size_t size;

	memset(m, 0, sizeof(*m));
	m->f = open_memstream(&text, &size);
	put_switches(m);
	put_hosts(m);
	put_boxes(m);
	for (i = 0; i < m->nboxes; i++)
		for (k = 0; k < m->gpus[i]; k++) {
			h = below(m->nhosts);
			if (below(8))
				fprintf(m->f, "%s{ endpoint = \"c%u.gpu%u\"; "
					"port = \"h%u.%u\"; }\n",
					any++ ? "," : "", i, k, h,
					below(m->ports[h]));
		}
	fprintf(m->f, ");\n");
	fclose(m->f);
	return text;
}

/* Each GPU's way up is there, and ends at a root complex. */
static bool trees_are_whole(const struct plan_graph *g)
{
	uint32_t i, at, up, steps;

	for (i = 0; i < g->nranks; i++) {
		for (at = g->gpus[i], steps = 0; steps < 20; steps++, at = up) {
			up = g->nodes[at].up;
			if (up == PLAN_NONE)
				break;
			if (g->nodes[at].kind != PLAN_ROOT_PORT &&
			    !capacity(g, g->nodes[at].name, g->nodes[up].name))
				return false;
		}
		if (g->nodes[at].kind != PLAN_ROOT_COMPLEX)
			return false;
	}
	return true;
}

/* No uplink and no link between switches is given away more than once. */
static bool shares_are_shares(const struct plan_graph *g,
			      const struct maker *m)
{
	uint64_t isls = 0, uplinks[3][4] = { { 0 } };
	uint32_t i, box, up;

	for (i = 0; i < g->nedges; i++) {
		const struct plan_edge *x = &g->edges[i];
		const char *from = g->nodes[x->from].name;

		if (g->edges[x->twin].capacity != x->capacity)
			return false;
		isls += x->kind == PLAN_ISL ? x->capacity : 0;
		if (x->kind == PLAN_CABLE &&
		    sscanf(from, "c%u:up%u", &box, &up) == 2)
			uplinks[box][up] += x->capacity;
	}
	for (box = 0; box < 3; box++)
		for (up = 0; up < 4; up++)
			if (uplinks[box][up] > 27000)
				return false;
	return isls <= 2ull * 27000 * m->nisls;
}

static void random_topologies(void)
{
	uint32_t i, read = 0, good = 0, planned = 0;
	struct plan_error e;
	struct plan_graph *g;
	struct maker m;

	for (i = 0; i < 1000; i++) {
		char *text = random_topology(&m);

		e = (struct plan_error){ 0 };
		g = graph(text, below(4) ? NULL : "h0", NULL, &e);
		if (g) {
			read++;
			good += trees_are_whole(g) && shares_are_shares(g, &m);
			e = (struct plan_error){ 0 };
			planned += !plan_graph_check(g, &e);
			if (e.code && !strstr(e.text, "no path leads") &&
			    !strstr(e.text, "to plan for"))
				printf("# %s\n", e.text), good--;
		} else if (!strstr(e.text, "no path") &&
			   !strstr(e.text, "slots") &&
			   !strstr(e.text, "no GPU is bound")) {
			printf("# %s\n%s\n", e.text, text);
			good--;
		}
		plan_graph_free(g);
		free(text);
	}
	ok(read > 500 && planned > 400 && good == read, "%u random fabrics, of which %u can be planned on; %u are right",
	   read, planned, good);
}

int main(void)
{
	all_shipped();
	shared_uplink();
	over_isl();
	several_hosts();
	unjoined();
	speeds();
	selections();
	hostile();
	random_topologies();
	return tap_done();
}
