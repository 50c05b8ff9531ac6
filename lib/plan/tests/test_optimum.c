// SPDX-License-Identifier: LGPL-2.1-or-later
/* Bounds and optima of graphs whose values are known. */
#include <errno.h>

#include "check.h"
#include "plan/optimum.h"
#include "tests/tap.h"

static uint32_t node(struct plan_graph *g, enum plan_node_kind kind,
		     const char *prefix, uint32_t i, uint32_t box)
{
	char name[PLAN_NAME];

	snprintf(name, sizeof(name), "%s%u", prefix, i);
	return (uint32_t)plan_graph_add_node(g, kind, name, box, NULL);
}

static void link(struct plan_graph *g, uint32_t a, uint32_t b, uint64_t c)
{
	plan_graph_add_link(g, a, b, c, 500, PLAN_OTHER, NULL);
}

static void arc(struct plan_graph *g, uint32_t a, uint32_t b, uint64_t c)
{
	plan_graph_add_edge(g, a, b, c, 500, PLAN_OTHER, NULL);
}

static struct plan_graph *ring(uint32_t n, uint64_t c)
{
	struct plan_graph *g = plan_graph_new("ring");
	uint32_t i;

	for (i = 0; i < n; i++)
		node(g, PLAN_GPU, "g", i, 0);
	for (i = 0; i < n; i++)
		link(g, i, (i + 1) % n, c);
	return g;
}

static struct plan_graph *hypercube(uint32_t d, uint64_t c)
{
	struct plan_graph *g = plan_graph_new("hypercube");
	uint32_t i, k;

	for (i = 0; i < 1u << d; i++)
		node(g, PLAN_GPU, "g", i, 0);
	for (i = 0; i < 1u << d; i++)
		for (k = 0; k < d; k++)
			if (!(i >> k & 1))
				link(g, i, i ^ 1u << k, c);
	return g;
}

static struct plan_graph *star(uint32_t n, uint64_t c)
{
	struct plan_graph *g = plan_graph_new("star");
	uint32_t s = node(g, PLAN_GPU_SWITCH, "s", 0, 0), i;

	for (i = 0; i < n; i++)
		link(g, s, node(g, PLAN_GPU, "g", i, 0), c);
	return g;
}

static void mesh(struct plan_graph *g, const uint32_t *gpus, uint32_t n,
		 uint64_t c)
{
	uint32_t i, k;

	for (i = 0; i < n; i++)
		for (k = 0; k < i; k++)
			link(g, gpus[i], gpus[k], c);
}

/*
 * 2s-2rp-split-flat: two boxes of 8 with a full mesh of 48 GB/s; each has two
 * uplinks of 27 GB/s to either of two switches.
 */
static struct plan_graph *split_flat(void)
{
	struct plan_graph *g = plan_graph_new("split-flat");
	uint32_t draco[2], columba[2], box, i, gpus[8], host;

	for (i = 0; i < 2; i++)
		draco[i] = node(g, PLAN_PCI_SWITCH, "draco", i, PLAN_NONE);
	for (box = 0; box < 2; box++) {
		columba[box] = node(g, PLAN_PCI_SWITCH, "columba", box, box);
		for (i = 0; i < 8; i++) {
			gpus[i] = node(g, PLAN_GPU, "gpu", 8 * box + i, box);
			link(g, columba[box], gpus[i], 27000);
		}
		mesh(g, gpus, 8, 48000);
		for (i = 0; i < 4; i++)
			link(g, columba[box], draco[i / 2], 27000);
	}
	host = node(g, PLAN_ROOT_COMPLEX, "server", 0, 2);
	for (i = 0; i < 2; i++)
		link(g, draco[i], host, 27000);
	return g;
}

/* The certificate of a cut, by hand: algbw is this many times capacity. */
static struct plan_ratio by_hand(const struct plan_graph *g,
				 enum plan_collective c,
				 const struct plan_cut *cut)
{
	bool shards = c == PLAN_ALL_GATHER || c == PLAN_REDUCE_SCATTER;
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < cut->nedges; i++)
		sum += g->edges[cut->edges[i]].capacity;
	return plan_ratio(sum * (shards ? g->nranks : 1),
			  shards ? cut->ninside : 1);
}

/*
 * The bound, with its certificate, and a schedule that reaches it: algbw is to
 * be num/den MB/s.
 */
static void expect(struct plan_graph *g, const char *what,
		   enum plan_collective c, uint64_t num, uint64_t den)
{
	struct plan_ratio want = plan_ratio(num, den);
	struct plan_error e = { .text = "" };
	struct plan_optimum o = { .k = 0 };
	char why[CHECK_WHY] = "";
	int err = plan_optimum(g, c, 0, &o, &e);

	ok(!err && !plan_ratio_compare(o.bound.algbw, want) &&
	   (o.bound.kind == PLAN_BOUND_PARTITION ||
	    !plan_ratio_compare(by_hand(g, c, &o.bound.cut), want)),
	   "%s, %s: the bound is %llu/%llu %s", what, plan_collective_name(c),
	   (unsigned long long)num, (unsigned long long)den, e.text);
	if (err)
		return;
	ok(o.proved && check_optimum(g, c, 0, &o, why),
	   "%s, %s: a schedule reaches it, k = %llu %s", what,
	   plan_collective_name(c), (unsigned long long)o.k, why);
	plan_optimum_free(&o);
}

static void rings(void)
{
	struct plan_graph *g = ring(5, 1000);

	expect(g, "ring of 5", PLAN_ALL_GATHER, 2000 * 5, 4);
	expect(g, "ring of 5", PLAN_REDUCE_SCATTER, 2000 * 5, 4);
	expect(g, "ring of 5", PLAN_ALL_REDUCE, 1000 * 5, 4);
	expect(g, "ring of 5", PLAN_BROADCAST, 2000, 1);
	expect(g, "ring of 5", PLAN_REDUCE, 2000, 1);
	plan_graph_free(g);
}

static void cubes(void)
{
	struct plan_graph *g = hypercube(3, 1000);

	expect(g, "cube", PLAN_ALL_GATHER, 3000 * 8, 7);
	expect(g, "cube", PLAN_ALL_REDUCE, 3000 * 4, 7);
	expect(g, "cube", PLAN_BROADCAST, 3000, 1);
	plan_graph_free(g);
}

static void stars(void)
{
	struct plan_graph *g = star(8, 7000);

	expect(g, "star of 8", PLAN_ALL_GATHER, 8000, 1);
	expect(g, "star of 8", PLAN_REDUCE_SCATTER, 8000, 1);
	expect(g, "star of 8", PLAN_ALL_REDUCE, 4000, 1);
	expect(g, "star of 8", PLAN_BROADCAST, 7000, 1);
	plan_graph_free(g);
}

static void boxes(void)
{
	struct plan_graph *g = split_flat();

	expect(g, "split-flat", PLAN_ALL_GATHER, 216000, 1);
	expect(g, "split-flat", PLAN_REDUCE_SCATTER, 216000, 1);
	expect(g, "split-flat", PLAN_ALL_REDUCE, 108000, 1);
	expect(g, "split-flat", PLAN_BROADCAST, 108000, 1);
	plan_graph_free(g);
}

/* One way only, and a switch that takes and gives differently per link. */
static void directed(void)
{
	struct plan_graph *g = plan_graph_new("directed");
	uint32_t i, s;

	for (i = 0; i < 4; i++)
		node(g, PLAN_GPU, "g", i, 0);
	for (i = 0; i < 4; i++)
		arc(g, i, (i + 1) % 4, 900);
	expect(g, "one-way ring", PLAN_ALL_GATHER, 900 * 4, 3);
	expect(g, "one-way ring", PLAN_BROADCAST, 900, 1);
	s = node(g, PLAN_PCI_SWITCH, "s", 0, 0);
	arc(g, 0, s, 600);
	arc(g, 1, s, 300);
	arc(g, s, 2, 500);
	arc(g, s, 3, 400);
	expect(g, "with a switch", PLAN_ALL_GATHER, 900 * 4, 3);
	plan_graph_free(g);
}

/* GPUs that are no ranks pass nothing on; leaves do no harm. */
static void idle(void)
{
	struct plan_graph *g = ring(6, 1000);
	uint32_t ranks[] = { 0, 1, 2, 4 }, nic;
	struct plan_error e = { .text = "" };
	struct plan_bound b;

	nic = node(g, PLAN_NIC, "nic", 0, 0);
	link(g, 0, nic, 500);
	plan_graph_ranks(g, ranks, 3, NULL);
	expect(g, "three in a row", PLAN_ALL_GATHER, 1000 * 3, 2);
	expect(g, "three in a row", PLAN_BROADCAST, 1000, 1);
	expect(g, "three in a row", PLAN_ALL_REDUCE, 1000, 1);
	plan_graph_ranks(g, ranks, 4, NULL);
	ok(plan_bound(g, PLAN_ALL_GATHER, 0, &b, &e) == -EINVAL,
	   "a rank behind GPUs that pass nothing on is refused");
	has(e.text, "g4");
	plan_graph_free(g);
	g = star(3, 1000);
	nic = node(g, PLAN_GPU, "idle", 0, 0);
	arc(g, 0, nic, 500);
	arc(g, 1, 0, 500);
	plan_graph_ranks(g, ranks + 1, 2, NULL);
	ok(plan_bound(g, PLAN_ALL_GATHER, 0, &b, &e) == -EINVAL,
	   "a switch that is balanced only with a GPU that is no rank, too");
	has(e.text, "s0 receives 2500 MB/s and sends 2000 without the GPUs that are no ranks");
	plan_graph_free(g);
}

/* A chain is as fast as its links: up to the middle and down again. */
static void chains(void)
{
	struct plan_graph *g = plan_graph_new("chain");
	uint32_t i;

	for (i = 0; i < 5; i++)
		node(g, PLAN_GPU, "g", i, 0);
	for (i = 0; i < 4; i++)
		link(g, i, i + 1, 1000);
	expect(g, "chain", PLAN_ALL_REDUCE, 1000, 1);
	expect(g, "chain", PLAN_ALL_GATHER, 1000 * 5, 4);
	expect(g, "chain", PLAN_REDUCE, 1000, 1);
	plan_graph_free(g);
}

/* Numbers that do not fit are told, never wrapped. */
static void overflows(void)
{
	static const uint64_t odd[] = { 4294967291, 4294967279, 4294967231,
		4294967197, 4294967189, 4294967161, 4294967143, 4294967111 };
	struct plan_graph *g = plan_graph_new("odd");
	struct plan_error e = { .text = "" };
	enum plan_collective c;
	struct plan_optimum o;
	char why[CHECK_WHY];
	uint32_t i, good = 0;
	int err;

	for (i = 0; i < 8; i++)
		node(g, PLAN_GPU, "g", i, 0);
	for (i = 0; i < 8; i++) {
		arc(g, i, (i + 1) % 8, odd[i]);
		arc(g, i, (i + 3) % 8, odd[7 - i] / 3);
		arc(g, (i + 1) % 8, i, odd[i] / 7);
	}
	for (c = PLAN_ALL_GATHER; c < PLAN_COLLECTIVES; c++) {
		err = plan_optimum(g, c, 0, &o, &e);
		if (err) {
			good += err == -EOVERFLOW && strstr(e.text, "round");
			continue;
		}
		good += check_optimum(g, c, 0, &o, why);
		plan_optimum_free(&o);
	}
	ok(good == PLAN_COLLECTIVES - 1, "%u of %u right, or refused with a way out: %s",
	   good, PLAN_COLLECTIVES - 1, e.text);
	plan_graph_free(g);
}

static void refusals(void)
{
	struct plan_graph *g = ring(4, 1000);
	struct plan_error e = { .text = "" };
	struct plan_optimum o;

	ok(plan_optimum(g, PLAN_BROADCAST, 4, &o, &e) == -EINVAL,
	   "there is no rank 4");
	has(e.text, "root 4: ring has ranks 0 to 3");
	ok(plan_optimum(g, PLAN_COLLECTIVES, 0, &o, &e) == -EINVAL,
	   "there is no such collective");
	plan_graph_free(g);
	g = ring(1, 1000);
	ok(plan_optimum(g, PLAN_ALL_GATHER, 0, &o, &e) == -EINVAL,
	   "one GPU has nobody to talk to");
	plan_graph_free(g);
}

int main(void)
{
	rings();
	cubes();
	stars();
	boxes();
	directed();
	idle();
	chains();
	overflows();
	refusals();
	return tap_done();
}
