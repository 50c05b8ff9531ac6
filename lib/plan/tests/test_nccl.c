// SPDX-License-Identifier: LGPL-2.1-or-later
/* Topologies of NCCL and RCCL: read, written, read again. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include "plan/nccl.h"
#include "plan/read.h"
#include "same.h"
#include "tests/tap.h"

#define DATA "lib/plan/tests/data/nccl/"

static char *slurp(const char *file, size_t *length)
{
	char path[256], *text = calloc(1, 1 << 20);
	FILE *f;

	snprintf(path, sizeof(path), DATA "%s", file);
	f = fopen(path, "r");
	if (!text || !f) {
		printf("Bail out! cannot read %s\n", path);
		exit(1);
	}
	*length = fread(text, 1, (1 << 20) - 1, f);
	fclose(f);
	return text;
}

static void valid(const char *text, size_t length, const char *name)
{
	struct plan_error e = { 0 };

	ok(!plan_nccl_validate(text, length, name, &e), "%s is valid %s", name,
	   e.text);
}

static struct plan_graph *load(const char *file)
{
	struct plan_error e = { 0 };
	struct plan_graph *g;
	size_t length;
	char *text = slurp(file, &length);

	g = plan_nccl_parse(text, length, file, &e);
	ok(g && !g->nwarnings, "%s is read%s%s", file, g ? "" : ": ", e.text);
	valid(text, length, file);
	free(text);
	return g;
}

static char *export(const struct plan_graph *g, enum plan_dialect d,
		    size_t *length, struct plan_error *e)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, length);
	int err = plan_nccl_write(g, d, f, e);

	fclose(f);
	if (!err)
		return text;
	free(text);
	return NULL;
}

/* As written for @d, read again. */
static struct plan_graph *again(const struct plan_graph *g, enum plan_dialect d)
{
	struct plan_error e = { 0 };
	struct plan_graph *h = NULL;
	size_t length;
	char *text = export(g, d, &length, &e);

	if (text) {
		valid(text, length, "what was written");
		h = plan_nccl_parse(text, length, "again", &e);
	}
	ok(h != NULL, "%s is written for version %d and read again %s",
	   g->name, (int)d, e.text);
	free(text);
	return h;
}

static void round_trip(const char *file, enum plan_dialect d)
{
	struct plan_graph *g = load(file), *h = again(g, d);
	const char *differs = h ? same_graph(g, h) : "nothing was read";

	ok(!differs, "%s is the same%s%s", file, differs ? ", but " : "",
	   differs ? differs : "");
	plan_graph_free(g);
	plan_graph_free(h);
}

static uint64_t capacity(const struct plan_graph *g, const char *from,
			 const char *to)
{
	uint32_t a = plan_graph_find(g, from), b = plan_graph_find(g, to), i;
	uint64_t sum = 0;

	for (i = 0; i < g->nedges; i++)
		if (g->edges[i].from == a && g->edges[i].to == b)
			sum += g->edges[i].capacity;
	return sum;
}

static bool is(const struct plan_graph *g, const char *node, const char *key,
	       const char *value)
{
	uint32_t n = plan_graph_find(g, node);
	const char *v = n == PLAN_NONE ? NULL : plan_node_get(g, n, key);

	return v && !strcmp(v, value);
}

static void mi300x(void)
{
	struct plan_graph *g = load("mi300x.xml");
	uint32_t gpu = plan_graph_find(g, "gpu3");

	ok(g->nranks == 8 && g->nboxes == 1 && g->nodes[gpu].rank == 3,
	   "eight GPUs in one box");
	ok(capacity(g, "gpu0", "gpu7") == 48000, "one XGMI link of gfx942");
	ok(capacity(g, "gpu0", "pci-0000:0b:00.0") == 54000,
	   "Gen5 x16 from a GPU up");
	ok(capacity(g, "cpu0", "cpu1") == 16000, "AMD CPUs with each other");
	ok(capacity(g, "net3", "nic-0000:59:00.0") == 50000, "400 Gbit/s");
	ok(is(g, "gpu3", "gpu.gcn", "gfx942") &&
	   is(g, "gpu3", "pci.class", "0x120000") &&
	   is(g, "gpu0", "xgmi.2.target", "0000:5c:00.0") &&
	   is(g, "cpu1", "cpu.host_hash", "0x5ca1ab1e"),
	   "attributes are kept");
	ok(!plan_graph_check(g, NULL), "can be planned on");
	plan_graph_free(g);
}

static void dgx(void)
{
	struct plan_graph *g = load("dgx-a100.xml");
	uint32_t sw = plan_graph_find(g, "nvswitch-0000:c6:00.0");

	ok(sw != PLAN_NONE && g->nodes[sw].kind == PLAN_GPU_SWITCH &&
	   g->nodes[sw].box == 0, "each NVSwitch is a node of the box");
	ok(capacity(g, "gpu5", "nvswitch-0000:c6:00.0") == 40000 &&
	   capacity(g, "nvswitch-0000:c6:00.0", "gpu5") == 40000,
	   "two links of sm 80 to each");
	ok(!plan_graph_check(g, NULL), "can be planned on");
	plan_graph_free(g);
}

static void others(void)
{
	struct plan_graph *g = load("two-switch.xml");

	ok(g->nranks == 16 && g->nboxes == 2, "two boxes");
	ok(g->nodes[plan_graph_find(g, "gpu0")].box ==
	   g->nodes[plan_graph_find(g, "gpu7")].box &&
	   g->nodes[plan_graph_find(g, "pci-0000:22:00.0")].box ==
	   g->nodes[plan_graph_find(g, "gpu0")].box &&
	   g->nodes[plan_graph_find(g, "pci-0000:20:00.0")].box == PLAN_NONE,
	   "boxes are by XGMI; a switch of both is in none");
	plan_graph_free(g);
	g = load("one-gpu.xml");
	ok(g->nranks == 1 && capacity(g, "gpu0", "cpu-1") == 250000 + 54000,
	   "C2C is a link to the CPU");
	plan_graph_free(g);
}

/* Visible devices 6 and 2, in this order. */
static void subset(void)
{
	struct plan_graph *g = load("mi300x.xml"), *h;
	uint32_t two[2] = { plan_graph_find(g, "gpu6"),
			    plan_graph_find(g, "gpu2") };

	plan_graph_ranks(g, two, 2, NULL);
	h = again(g, PLAN_RCCL);
	ok(h->nranks == 2 && h->gpus[0] == plan_graph_find(h, "gpu6") &&
	   is(h, "gpu6", "pci.busid", "0000:bf:00.0") &&
	   is(h, "gpu2", "pci.busid", "0000:38:00.0") &&
	   is(h, "gpu6", "gpu.dev", "6") && is(h, "gpu6", "gpu.rank", "0") &&
	   is(h, "gpu2", "gpu.dev", "2") && is(h, "gpu2", "gpu.rank", "1"),
	   "ranks are those of visible devices, devs the file's");
	ok(capacity(h, "gpu6", "gpu2") == 48000 &&
	   is(h, "gpu6", "xgmi.0.target", "0000:38:00.0") &&
	   !plan_node_get(h, plan_graph_find(h, "gpu6"), "xgmi.1.target"),
	   "links are those between them");
	plan_graph_free(g);
	plan_graph_free(h);
}

static void other_dialect(void)
{
	struct plan_graph *g = load("mi300x.xml"), *h = again(g, PLAN_NCCL);

	ok(is(h, "gpu4", "pci.class", "0x030200") &&
	   is(h, "gpu4", "nvlink.0.tclass", "0x030200") &&
	   !plan_node_get(h, plan_graph_find(h, "gpu4"), "gpu.gcn"),
	   "NCCL is told of GPUs as it knows them");
	ok(capacity(h, "gpu0", "gpu1") == 40000, "as many NVLinks as are nearest");
	plan_graph_free(g);
	plan_graph_free(h);
}

static void refused(const char *text, const char *says)
{
	struct plan_error e = { 0 };
	struct plan_graph *g = plan_nccl_parse(text, strlen(text), "t.xml", &e);

	ok(!g, "is refused");
	has(e.text, says);
	plan_graph_free(g);
}

#define CPU	"<cpu numaid=\"0\" arch=\"x86_64\">"
#define GPU(bus, dev) "<pci busid=\"0000:" bus ":00.0\" class=\"0x03\" link_speed=\"8.0 GT/s PCIe\" link_width=\"8\"><gpu dev=\"" dev "\" sm=\"80\"/></pci>"

static void refusals(void)
{
	refused("", "t.xml:1: this is no XML");
	refused("<system version=\"1\">", "t.xml:1: this is no XML");
	refused("<!DOCTYPE x [<!ENTITY a \"b\">]>\n<system/>",
		"t.xml:1: a document type declaration");
	refused("<graphs version=\"1\"/>", "the outermost element is not <system>");
	refused("<system version=\"3\"><cpu/></system>", "version \"3\"");
	refused("<system version=\"1\"/>", "no <cpu> in it");
	refused("<system version=\"1\">\n<cpu/></system>", "t.xml:2: <cpu>: no numaid");
	refused("<system version=\"1\">" CPU "x</cpu></system>",
		"text between elements");
	refused("<system version=\"1\">" CPU GPU("01", "0") "\n" GPU("02", "0")
		"</cpu></system>", "t.xml:2: <gpu>: there are two of \"gpu0\"");
	refused("<system version=\"1\">" CPU GPU("01", "0") "\n" GPU("01", "1")
		"</cpu></system>", "t.xml:2: gpu0 and gpu1 have the same busid");
	refused("<system version=\"1\">" CPU "<pci busid=\"1\"/></cpu></system>",
		"busid \"1\"; write it as 0000:c1:00.0");
}

static void odd_speed(void)
{
	static const char text[] = "<system version=\"1\">" CPU
		"<pci busid=\"0000:01:00.0\" link_speed=\"16.0 GT/s\" link_width=\"16\"/>"
		"<pci busid=\"0000:02:00.0\" link_speed=\"Unknown\" link_width=\"255\"/>"
		"<pci busid=\"0000:03:00.0\" link_speed=\"16 GT/s\" link_width=\"0\"/>"
		"</cpu></system>";
	struct plan_graph *g = plan_nccl_parse(text, strlen(text), "t", NULL);

	ok(g && capacity(g, "pci-0000:01:00.0", "cpu0") == 27000 &&
	   g->nwarnings == 3, "a speed that only the library does not know");
	has(g->warnings[0], "the library takes this for 8.0 GT/s");
	ok(capacity(g, "pci-0000:02:00.0", "cpu0") ==
	   plan_pcie_capacity(8, 16), "an unknown speed is Gen3, as there");
	has(g->warnings[1], "not one that is known");
	ok(capacity(g, "pci-0000:03:00.0", "cpu0") == 27000,
	   "older kernels write 16 GT/s");
	plan_graph_free(g);
}

/* Through a graph file and back, and then as before. */
static void through_graph_file(const char *file, enum plan_dialect d)
{
	struct plan_error e = { 0 };
	struct plan_graph *g = load(file), *h = NULL, *i;
	const char *differs;
	char *text = NULL;
	size_t length;
	FILE *f = open_memstream(&text, &length);

	ok(!plan_graphfile_write(g, f, &e), "%s as a graph file %s", file,
	   e.text);
	fclose(f);
	h = plan_graphfile_parse(text, "graph", &e);
	differs = h ? same_graph(g, h) : e.text;
	ok(!differs, "is the same %s", differs ? differs : "");
	i = h ? again(h, d) : NULL;
	differs = i ? same_graph(g, i) : "nothing was read";
	ok(!differs, "and as a topology again %s", differs ? differs : "");
	free(text);
	plan_graph_free(g);
	plan_graph_free(h);
	plan_graph_free(i);
}

/* "<!-- expect: LINE: MESSAGE -->" is in each of them. */
static void broken_file(const char *file)
{
	struct plan_error e = { 0 };
	char path[128], expect[256] = "";
	size_t length;
	char *text, *p;
	int err;

	snprintf(path, sizeof(path), "broken/%s", file);
	text = slurp(path, &length);
	p = strstr(text, "expect: ");
	snprintf(expect, sizeof(expect), "x:%.*s",
		 p ? (int)(strstr(p, " -->") - p - 8) : 0, p ? p + 8 : "");
	if (strncmp(file, "graph-", 6))
		err = plan_nccl_validate(text, length, "x", &e);
	else
		err = plan_nccl_graph_validate(text, length, "x", &e);
	ok(err == (strcmp(file, "long-value.xml") ? -EINVAL : -E2BIG),
	   "%s is not valid", file);
	has(e.text, expect);
	free(text);
}

static void broken_files(void)
{
	struct dirent **files;
	int n = scandir(DATA "broken", &files, NULL, alphasort), i, count = 0;

	for (i = 0; i < n; i++) {
		if (strstr(files[i]->d_name, ".xml")) {
			broken_file(files[i]->d_name);
			count++;
		}
		free(files[i]);
	}
	if (n > 0)
		free(files);
	ok(count > 60, "%d broken files", count);
}

/* ---- composed hosts ------------------------------------------------------ */

static struct plan_graph *wired(const char *file, const char *devices)
{
	struct plan_select select = { .devices = devices };
	struct plan_error e = { 0 };
	struct plan_graph *g = plan_graph_read(file, &select, &e);

	ok(g != NULL, "%s is read %s", file, e.text);
	return g;
}

static void composed(const char *file, uint32_t boxes)
{
	struct plan_graph *g = wired(file, NULL), *h = again(g, PLAN_RCCL);
	uint32_t i, alike = 0;

	ok(h->nranks == 16 && h->nboxes == boxes, "16 GPUs in %u boxes",
	   h->nboxes);
	for (i = 0; i < 16; i++)
		alike += h->nodes[h->gpus[i]].rank == i &&
			 capacity(h, h->nodes[h->gpus[i]].name,
				  h->nodes[h->nodes[h->gpus[i]].up].name) ==
			 27000 && is(h, h->nodes[h->gpus[i]].name,
				     "pci.link_speed", "16.0 GT/s PCIe");
	ok(alike == 16, "each on Gen4 x16");
	plan_graph_free(h);
	plan_graph_free(again(g, PLAN_NCCL));
	plan_graph_free(g);
}

static void composed_subset(void)
{
	struct plan_graph *g = wired("topologies/2s-2rp-split-flat.topo",
				     "9,1,4"), *h;

	h = again(g, PLAN_RCCL);
	ok(h->nranks == 3 && h->gpus[0] == plan_graph_find(h, "gpu0"),
	   "three GPUs, in the order of visible devices");
	ok(capacity(h, "gpu1", "gpu2") == 48000 && !capacity(h, "gpu0", "gpu1"),
	   "gpu1 and gpu2 are of one box");
	plan_graph_free(g);
	plan_graph_free(h);
}

static void two_hosts(void)
{
	struct plan_graph *g = plan_graph_new("two");
	struct plan_error e = { 0 };
	FILE *f = fopen("/dev/null", "w");

	plan_graph_add_node(g, PLAN_ROOT_COMPLEX, "a", PLAN_NONE, NULL);
	plan_graph_add_node(g, PLAN_ROOT_COMPLEX, "b", PLAN_NONE, NULL);
	plan_graph_add_node(g, PLAN_GPU, "a.gpu", PLAN_NONE, NULL);
	plan_graph_add_node(g, PLAN_GPU, "b.gpu", PLAN_NONE, NULL);
	ok(plan_nccl_write(g, PLAN_NCCL, f, &e) == -EINVAL, "no tree");
	has(e.text, "a.gpu: no PCI tree leads to it");
	g->nodes[2].up = 0;
	g->nodes[3].up = 1;
	ok(plan_nccl_write(g, PLAN_NCCL, f, &e) == -EINVAL, "two hosts");
	has(e.text, "a.gpu and b.gpu are on two hosts");
	plan_graph_add_link(g, 0, 1, 1, 1, PLAN_SMP, NULL);
	ok(!plan_nccl_write(g, PLAN_NCCL, f, &e), "two CPUs of one");
	g->nodes[2].up = 3;
	g->nodes[3].up = 2;
	ok(plan_nccl_write(g, PLAN_NCCL, f, &e) == -EINVAL,
	   "nodes that are above one another");
	fclose(f);
	plan_graph_free(g);
}

/* ---- rings --------------------------------------------------------------- */

static char *ring_text(const struct plan_graph *g, const struct plan_rings *r,
		       enum plan_dialect d, size_t *length)
{
	struct plan_error e = { 0 };
	char *text = NULL;
	FILE *f = open_memstream(&text, length);
	int err = plan_nccl_graph_write(g, r, d, f, &e);

	fclose(f);
	ok(!err && !plan_nccl_graph_validate(text, *length, "rings", &e),
	   "rings are written, and valid %s", e.text);
	return text;
}

static void ring_graph(struct plan_graph *g, const char *type,
		       const char *first)
{
	uint32_t order[32], *back = NULL, n = g->nranks, nrings = 0, i;
	struct plan_rings r = { .nrings = 2, .order = order,
				.busbw = plan_ratio(54000, 1) };
	struct plan_error e = { 0 };
	size_t length;
	char *text;

	for (i = 0; i < n; i++) {
		order[i] = i;
		order[n + i] = (n - i) % n;
	}
	text = ring_text(g, &r, PLAN_RCCL, &length);
	has(text, type);
	has(text, first);
	has(text, "pattern=\"4\" crossnic=\"0\" nchannels=\"2\" speedintra=\"27\" speedinter=\"27\"");
	ok(!plan_nccl_graph_read(g, text, length, "rings", &back, &nrings, &e)
	   && nrings == 2 && !memcmp(back, order, 2 * n * sizeof(*order)),
	   "and read again %s", e.text);
	free(text);
	free(back);
	plan_graph_free(g);
}

static void ring_types(void)
{
	const char *std = "topologies/1s-2rp-std-cascade.topo";
	const char *one = "topologies/1s-1rp-std-cascade.topo";

	ring_graph(wired(std, "0,1,2"), "typeintra=\"NVL\"", "<gpu dev=\"0x0\"/>");
	ring_graph(wired(std, NULL), "typeintra=\"PHB\"", "<gpu dev=\"0xf\"/>");
	ring_graph(wired(one, "0,9"), "typeintra=\"PXB\"", "<gpu dev=\"0x1\"/>");
	ring_graph(load("mi300x.xml"), "typeintra=\"NVL\"", "0x7");
	ring_graph(load("dgx-a100.xml"), "typeintra=\"NVL\"", "0x7");
}

static void given_rings(void)
{
	struct plan_graph *g = load("two-gpus.xml");
	struct plan_error e = { 0 };
	uint32_t *order = NULL, nrings;
	size_t length;
	char *text = slurp("two-rings.graph.xml", &length);

	ok(!plan_nccl_graph_validate(text, length, "g.xml", &e),
	   "rings of three are valid %s", e.text);
	ok(plan_nccl_graph_read(g, text, length, "g.xml", &order, &nrings, &e)
	   == -EINVAL && !order, "but not of two GPUs");
	has(e.text, "g.xml:7: <gpu>: dev \"0xa\"; no GPU that is planned for has it");
	free(text);
	plan_graph_free(g);
}

static void bad_rings(const char *text, const char *says)
{
	struct plan_error e = { 0 };
	uint32_t *order = NULL, nrings;

	ok(plan_nccl_rings_parse(text, 4, &order, &nrings, &e) && !order,
	   "\"%s\" is refused", text);
	has(e.text, says);
}

/* Of ranks 0 1 2 ... of a part of @file. */
static void ring_numbers(const char *file, const char *devices, bool fits,
			 const char *string, const char *first)
{
	struct plan_graph *g = wired(file, devices);
	uint32_t order[16] = { 0, 1, 2, 3, 4, 5, 6, 7 }, *back = NULL, n = 0;
	struct plan_rings r = { .nrings = 1, .order = order,
				.busbw = plan_ratio(27000, 1) };
	struct plan_error e = { 0 };
	char *text = NULL;
	size_t length;
	bool by_dev = !fits;
	FILE *f = open_memstream(&text, &length);

	ok(!plan_nccl_rings_write(g, &r, f, &by_dev) && by_dev == fits,
	   "%s: RCCL %s numbers of %s", file, fits ? "takes" : "has no",
	   devices);
	fclose(f);
	ok(!strcmp(text, string), "%s", text);
	free(text);
	text = ring_text(g, &r, PLAN_RCCL, &length);
	has(text, first);
	ok(!plan_nccl_graph_read(g, text, length, "rings", &back, &n, &e) &&
	   n == 1 && !memcmp(back, order, g->nranks * sizeof(*back)),
	   "which is the same ring %s", e.text);
	free(text);
	free(back);
	plan_graph_free(g);
}

/* A part of a file's devices, or all in an order of one's own. */
static void ring_devices(void)
{
	ring_numbers("topologies/2s-2rp-split-flat.topo", "15,3,8", true,
		     "0 1 2", "<gpu dev=\"0x0\"/>\n      <gpu dev=\"0x1\"/>");
	ring_numbers(DATA "two-switch.xml", "15,3", false, "0 1",
		     "<gpu dev=\"0xf\"/>\n      <gpu dev=\"0x3\"/>");
	ring_numbers(DATA "mi300x.xml", "1,0", true, "1 0",
		     "<gpu dev=\"0x1\"/>\n      <gpu dev=\"0x0\"/>");
	ring_numbers(DATA "mi300x.xml", "4,5,6,7", false, "0 1 2 3",
		     "<gpu dev=\"0x4\"/>\n      <gpu dev=\"0x5\"/>");
	ring_numbers(DATA "mi300x.xml", "7,6,5,4,3,2,1,0", true,
		     "7 6 5 4 3 2 1 0", "<gpu dev=\"0x7\"/>");
}

/* Switches of no bus id among GPUs that have one are not made up. */
static void real_bus_ids(void)
{
	struct plan_graph *g = wired("topologies/2s-2rp-split-flat.topo",
				     "9,1"), *h;
	struct plan_error e = { 0 };
	FILE *f = fopen("/dev/null", "w");

	plan_node_set(g, g->gpus[0], "pci.busid", "0000:44:00.0");
	ok(plan_nccl_write(g, PLAN_RCCL, f, &e) == -EINVAL,
	   "one bus id of two");
	has(e.text, "has no bus id, though");
	fclose(f);
	plan_node_set(g, g->gpus[1], "pci.busid", "0000:05:00.0");
	h = again(g, PLAN_RCCL);
	ok(h->nranks == 2 && h->nodes[h->nodes[h->gpus[0]].up].kind ==
	   PLAN_ROOT_COMPLEX && is(h, "gpu0", "pci.busid", "0000:44:00.0"),
	   "without switches that have none");
	plan_graph_free(g);
	plan_graph_free(h);
}

static void ring_strings(void)
{
	struct plan_graph *g = wired("topologies/2s-2rp-split-flat.topo",
				     "0,1,2,3");
	bool by_dev = false;
	struct plan_error e = { 0 };
	struct plan_rings r = { .nrings = 0 };
	char *text = NULL;
	size_t length;
	FILE *f = open_memstream(&text, &length);

	ok(!plan_nccl_rings_parse("N0 0 1 2 3 N1| 2 1 0 3", 4, &r.order,
				  &r.nrings, &e) && r.nrings == 2,
	   "NCCL_RINGS is read %s", e.text);
	plan_nccl_rings_write(g, &r, f, &by_dev);
	fclose(f);
	ok(by_dev && !strcmp(text, "0 1 2 3|0 3 2 1"), "each begins with 0: %s",
	   text);
	plan_graph_free(g);
	free(text);
	free(r.order);
	bad_rings("", "ring 0: 0 GPUs of 4");
	bad_rings("0 1 2 3|", "ring 1: 0 GPUs of 4");
	bad_rings("0 1 2 4", "ring 0: GPU 4; there are 0 to 3");
	bad_rings("0 1 2 99999999999999999999", "there are 0 to 3");
	bad_rings("0 1 2 2", "GPU 2 is in it twice");
	bad_rings("0,1,2,3", "\",1,2,3\"; write numbers with blanks");
	bad_rings("0 1 2", "ring 0: 3 GPUs of 4");
}

/* What is in an element that is left out is left out as well, links too. */
/* Where one GPU has a rank and another none, the other is in its file only. */
static void without_rank(void)
{
	static const char text[] = "<system version=\"1\">"
		"<cpu numaid=\"0\" affinity=\"ffff\" arch=\"x86_64\""
		" vendor=\"AuthenticAMD\" familyid=\"175\" modelid=\"1\">"
		"<pci busid=\"0000:01:00.0\" class=\"0x030200\""
		" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">"
		"<gpu dev=\"0\" sm=\"80\" rank=\"0\" gdr=\"1\"/></pci>"
		"<pci busid=\"0000:02:00.0\" class=\"0x030200\""
		" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">"
		"<gpu dev=\"1\" sm=\"80\" gdr=\"1\"/></pci></cpu></system>";
	struct plan_graph *g = plan_nccl_parse(text, strlen(text), "t", NULL);
	struct plan_graph *h = g ? again(g, PLAN_NCCL) : NULL;

	ok(h && h->nnodes == g->nnodes && h->nranks == 1,
	   "a GPU without a rank is written as it was read");
	plan_graph_free(h);
	h = g ? again(g, PLAN_RCCL) : NULL;
	ok(h && h->nranks == 1 && h->nnodes == g->nnodes - 1,
	   "and not at all for another library");
	plan_graph_free(h);
	plan_graph_free(g);
}

static void left_out(void)
{
	static const char text[] = "<system version=\"1\">" CPU GPU("01", "0")
		"<system>" CPU "<pci busid=\"0000:01:00.0\"><gpu dev=\"0\">"
		"<nvlink target=\"0000:02:00.0\" count=\"1\"/></gpu></pci>"
		"</cpu></system>" GPU("02", "1") "</cpu></system>";
	struct plan_graph *g = plan_nccl_parse(text, strlen(text), "t", NULL);

	ok(g && g->nranks == 2 && g->nedges == 4 && g->nwarnings == 1,
	   "misplaced elements add nothing");
	plan_graph_free(g);
}

int main(void)
{
	without_rank();
	left_out();
	mi300x();
	dgx();
	others();
	round_trip("mi300x.xml", PLAN_RCCL);
	round_trip("dgx-a100.xml", PLAN_NCCL);
	round_trip("two-switch.xml", PLAN_RCCL);
	round_trip("one-gpu.xml", PLAN_NCCL);
	subset();
	other_dialect();
	refusals();
	odd_speed();
	through_graph_file("mi300x.xml", PLAN_RCCL);
	through_graph_file("dgx-a100.xml", PLAN_NCCL);
	through_graph_file("two-switch.xml", PLAN_RCCL);
	broken_files();
	composed("topologies/1s-1rp-std-cascade.topo", 2);
	composed("topologies/2s-2rp-split-flat.topo", 2);
	composed_subset();
	two_hosts();
	ring_types();
	given_rings();
	ring_strings();
	ring_devices();
	real_bus_ids();
	return tap_done();
}
