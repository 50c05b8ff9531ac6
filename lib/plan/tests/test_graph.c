// SPDX-License-Identifier: LGPL-2.1-or-later
/* Graphs, ratios and schedules as containers. */
#include <errno.h>
#include <time.h>

#include "plan/plan.h"
#include "tests/tap.h"
#include "topology/pcie.h"

static void ratios(void)
{
	struct plan_ratio a = plan_ratio(6, 4), b;

	ok(a.num == 3 && a.den == 2, "6/4 is 3/2");
	ok(plan_ratio_compare(plan_ratio(~0ull, 3), plan_ratio(~0ull, 2)) < 0,
	   "large ratios compare exactly");
	ok(!plan_ratio_multiply(plan_ratio(~0ull, 2), plan_ratio(2, ~0ull), &b)
	   && b.num == 1 && b.den == 1, "products cancel before they overflow");
	ok(plan_ratio_multiply(plan_ratio(~0ull, 1), plan_ratio(2, 1), &b) ==
	   -EOVERFLOW, "an overflow is told");
	ok(plan_pcie_capacity(16, 16) == 27000, "Gen4 x16 carries 27 GB/s");
	ok(!plan_pcie_capacity(17, 16), "there is no 17 GT/s");
	ok(pcie_speed_parse("16.0 GT/s PCIe") == 16, "kernel's string");
}

/* Two GPUs on a switch, a third GPU beside. */
static struct plan_graph *star(void)
{
	struct plan_graph *g = plan_graph_new("star");
	char name[16];
	int i;

	plan_graph_add_node(g, PLAN_PCI_SWITCH, "s", 0, NULL);
	for (i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "g%d", i);
		plan_graph_add_node(g, PLAN_GPU, name, 0, NULL);
		plan_graph_add_link(g, 0, 1 + (uint32_t)i, 10, 1, PLAN_PCIE,
				    NULL);
	}
	return g;
}

static void graphs(void)
{
	struct plan_graph *g = star(), *c;
	struct plan_error e = { 0 };

	ok(plan_graph_find(g, "g2") == 3 && plan_graph_find(g, "x") ==
	   PLAN_NONE, "elements are found by name");
	ok(plan_graph_add_node(g, PLAN_GPU, "g1", 0, &e) == -EEXIST,
	   "a name is there once");
	has(e.text, "two elements named g1");
	ok(plan_graph_add_edge(g, 1, 1, 1, 1, PLAN_PCIE, &e) == -EINVAL,
	   "no link to itself");
	ok(plan_graph_add_edge(g, 1, 2, 0, 1, PLAN_PCIE, &e) == -EINVAL,
	   "no capacity of 0");
	ok(!plan_graph_check(g, &e), "a star can be planned on");
	ok(!plan_node_set(g, 1, "pci.busid", "0000:01:00.0") &&
	   !strcmp(plan_node_get(g, 1, "pci.busid"), "0000:01:00.0"),
	   "attributes are kept");
	c = plan_graph_copy(g);
	ok(c && c->nedges == 6 && plan_node_get(c, 1, "pci.busid") &&
	   c->edges[0].twin == 1, "a copy has everything");
	plan_graph_free(c);
	plan_graph_add_edge(g, 0, 1, 5, 1, PLAN_PCIE, NULL);
	ok(plan_graph_check(g, &e) == -EINVAL, "a switch makes no copies");
	has(e.text, "s receives 30 MB/s and sends 35");
	plan_graph_add_node(g, PLAN_GPU, "lonely", 1, NULL);
	ok(plan_graph_check(g, &e) == -EINVAL, "all have to be joined");
	has(e.text, "lonely");
	plan_graph_free(g);
}

/* Two GPUs of three are ranks: what the third has does not count. */
static void idle(void)
{
	struct plan_graph *g = star();
	const uint32_t two[] = { 1, 2 }, three[] = { 1, 2, 3 };
	struct plan_error e = { 0 };

	ok(!plan_graph_ranks(g, two, 2, &e) && !plan_graph_check(g, &e),
	   "some GPUs of a fabric can be planned for");
	plan_graph_add_edge(g, 0, 3, 5, 1, PLAN_PCIE, NULL);
	ok(!plan_graph_check(g, &e), "whatever the links of the others");
	plan_graph_add_edge(g, 1, 0, 5, 1, PLAN_PCIE, NULL);
	ok(plan_graph_check(g, &e) == -EINVAL, "balanced with them alone");
	has(e.text, "s receives 25 MB/s and sends 20 without the GPUs that are no ranks;");
	ok(!plan_graph_ranks(g, three, 3, &e) && !plan_graph_check(g, &e),
	   "all of them can be planned for");
	plan_graph_free(g);
}

/*
 * As many nodes as there may be, in a chain whose links are listed from its end,
 * so that a sweep over all links would pass one of them only.
 */
static void chains(void)
{
	struct plan_graph *g = plan_graph_new("chain");
	struct plan_error e = { 0 };
	clock_t begin;
	char name[16];
	uint32_t i;

	for (i = 0; i < PLAN_NODES; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		plan_graph_add_node(g, !i || i == PLAN_NODES - 1 ? PLAN_GPU :
				    PLAN_PCI_SWITCH, name, PLAN_NONE, NULL);
	}
	for (i = 0; i < 50000; i++)
		plan_graph_add_link(g, 1, 2, 1, 1, PLAN_OTHER, NULL);
	for (i = PLAN_NODES - 1; i > 1; i--)
		plan_graph_add_link(g, i, i - 1, 10, 1, PLAN_OTHER, NULL);
	begin = clock();
	ok(plan_graph_check(g, &e) == -EINVAL, "a chain that lacks a link");
	has(e.text, "no path leads from n0 to n16383");
	plan_graph_add_edge(g, 0, 1, 10, 1, PLAN_OTHER, NULL);
	ok(plan_graph_check(g, &e) == -EINVAL, "one way is not enough");
	has(e.text, "no path leads from n16383 to n0");
	plan_graph_add_edge(g, 1, 0, 10, 1, PLAN_OTHER, NULL);
	ok(!plan_graph_check(g, &e), "a long chain can be planned on");
	ok(clock() - begin < 2 * CLOCKS_PER_SEC, "soon, in %.1f s",
	   (double)(clock() - begin) / CLOCKS_PER_SEC);
	plan_graph_free(g);
}

static void schedules(void)
{
	struct plan_graph *g = star();
	struct plan_schedule *s = plan_schedule_new(PLAN_ALL_GATHER, 3, 0);
	struct plan_ratio rate;
	uint32_t r, t;

	for (r = 0; r < 3; r++) {
		plan_schedule_chunk(s, r, 0, r + 1);
		for (t = 0; t < 3; t++) {
			uint32_t way[2] = { 2 * r + 1, 2 * t };

			if (t != r)
				plan_schedule_transfer(s, (uint32_t)
					plan_schedule_route(s, g, way, 2),
					false);
		}
	}
	ok(!plan_schedule_finish(s) && s->shard_weight == 1,
	   "shards weigh the same in the end");
	ok(s->nroutes == 6, "routes are there once");
	ok(!plan_schedule_rate(s, g, &rate, NULL) && rate.num == 15 &&
	   rate.den == 1, "rate of the flows");
	plan_schedule_free(s);
	plan_graph_free(g);
}

int main(void)
{
	ratios();
	graphs();
	idle();
	chains();
	schedules();
	return tap_done();
}
