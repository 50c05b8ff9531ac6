// SPDX-License-Identifier: LGPL-2.1-or-later
/* Topologies of NCCL and RCCL: read, written, read again. */
#include <errno.h>
#include <stdlib.h>

#include "nccl.h"
#include "same.h"
#include "tap.h"

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

static struct plan_graph *load(const char *file)
{
	struct plan_error e = { 0 };
	struct plan_graph *g;
	size_t length;
	char *text = slurp(file, &length);

	g = plan_nccl_parse(text, length, file, &e);
	ok(g && !g->nwarnings, "%s is read%s%s", file, g ? "" : ": ", e.text);
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

	if (text)
		h = plan_nccl_parse(text, length, "again", &e);
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
	ok(h->nranks == 2 && plan_graph_find(h, "gpu2") == PLAN_NONE &&
	   is(h, "gpu0", "pci.busid", "0000:bf:00.0") &&
	   is(h, "gpu1", "pci.busid", "0000:38:00.0"),
	   "numbers are those of visible devices");
	ok(capacity(h, "gpu0", "gpu1") == 48000 &&
	   is(h, "gpu0", "xgmi.0.target", "0000:38:00.0") &&
	   !plan_node_get(h, plan_graph_find(h, "gpu0"), "xgmi.1.target"),
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

int main(void)
{
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
	return tap_done();
}
