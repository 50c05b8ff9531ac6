// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Fabrics whose optimum is known, from the literature or by hand: what each is
 * limited by stands beside it.
 */
#include "check.h"
#include "tests/tap.h"

static uint32_t gpus(struct plan_graph *g, uint32_t n, uint32_t box)
{
	uint32_t first = g->nnodes, i;
	char name[32];

	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "gpu%u", g->nranks);
		plan_graph_add_node(g, PLAN_GPU, name, box, NULL);
	}
	return first;
}

static uint32_t sw(struct plan_graph *g)
{
	char name[32];

	snprintf(name, sizeof(name), "switch%u", g->nnodes);
	return (uint32_t)plan_graph_add_node(g, PLAN_GPU_SWITCH, name,
					     PLAN_NONE, NULL);
}

static void join(struct plan_graph *g, uint32_t a, uint32_t b, uint64_t mbps)
{
	plan_graph_add_link(g, a, b, mbps, 100, PLAN_OTHER, NULL);
}

/* 2^d GPUs, d links each: all of a GPU's links bring it the shards. */
static struct plan_graph *hypercube(uint32_t d)
{
	struct plan_graph *g = plan_graph_new("hypercube");
	uint32_t i, k;

	gpus(g, 1u << d, PLAN_NONE);
	for (i = 0; i < 1u << d; i++)
		for (k = 0; k < d; k++)
			if (!(i >> k & 1))
				join(g, i, i | 1u << k, 10000);
	return g;
}

static struct plan_graph *circle(uint32_t n, bool both)
{
	struct plan_graph *g = plan_graph_new("ring");
	uint32_t i;

	gpus(g, n, PLAN_NONE);
	for (i = 0; i < n; i++) {
		if (both)
			join(g, i, (i + 1) % n, 25000);
		else
			plan_graph_add_edge(g, i, (i + 1) % n, 25000, 100,
					    PLAN_OTHER, NULL);
	}
	return g;
}

static struct plan_graph *torus(uint32_t x, uint32_t y)
{
	struct plan_graph *g = plan_graph_new("torus");
	uint32_t i, k;

	gpus(g, x * y, PLAN_NONE);
	for (i = 0; i < x; i++)
		for (k = 0; k < y; k++) {
			join(g, i * y + k, (i + 1) % x * y + k, 10000);
			join(g, i * y + k, i * y + (k + 1) % y, 10000);
		}
	return g;
}

static struct plan_graph *mesh(uint32_t n)
{
	struct plan_graph *g = plan_graph_new("mesh");
	uint32_t i, k;

	gpus(g, n, 0);
	for (i = 0; i < n; i++)
		for (k = 0; k < i; k++)
			join(g, i, k, 48000);
	return g;
}

/* Boxes of 8 on an NVSwitch, each GPU with a NIC on one switch for all. */
static struct plan_graph *dgx(uint32_t boxes, uint64_t inside, uint64_t nic)
{
	struct plan_graph *g = plan_graph_new("dgx");
	uint32_t b, i, first, s, core = sw(g);

	for (b = 0; b < boxes; b++) {
		first = gpus(g, 8, b);
		s = sw(g);
		for (i = 0; i < 8; i++) {
			join(g, first + i, s, inside);
			if (boxes > 1)
				join(g, first + i, core, nic);
		}
	}
	return g;
}

/* Leaves of 4 GPUs, each leaf with one way up to each of 2 spines. */
static struct plan_graph *tree(uint32_t leaves, uint64_t down, uint64_t up)
{
	struct plan_graph *g = plan_graph_new("fat-tree");
	uint32_t spine[2] = { sw(g), sw(g) }, l, i, first, s;

	for (l = 0; l < leaves; l++) {
		first = gpus(g, 4, l);
		s = sw(g);
		for (i = 0; i < 4; i++)
			join(g, first + i, s, down);
		join(g, s, spine[0], up);
		join(g, s, spine[1], up);
	}
	return g;
}

/* Two boxes in full mesh, @links of 27 GB/s each to one switch. */
static struct plan_graph *split(uint32_t links)
{
	struct plan_graph *g = plan_graph_new("split");
	uint32_t core = sw(g), b, i, k, first, s;

	for (b = 0; b < 2; b++) {
		first = gpus(g, 8, b);
		for (i = 0; i < 8; i++)
			for (k = 0; k < i; k++)
				join(g, first + i, first + k, 48000);
		for (k = 0; k < links; k++) {
			s = sw(g);
			join(g, s, core, 27000);
			for (i = 0; i < 8 / links; i++)
				join(g, s, first + k * (8 / links) + i, 27000);
		}
	}
	return g;
}

/* busbw in MB/s of all-gather, reduce-scatter and all-reduce alike. */
static void known(struct plan_graph *g, const char *what, uint64_t num,
		  uint64_t den)
{
	struct plan_ratio want = plan_ratio(num, den);
	enum plan_collective c;

	for (c = PLAN_ALL_GATHER; c <= PLAN_ALL_REDUCE; c++) {
		struct plan_error e = { .text = "" };
		struct plan_optimum o;
		char why[CHECK_WHY] = "";

		if (plan_optimum(g, c, 0, &o, &e)) {
			ok(false, "%s: %s", what, e.text);
			continue;
		}
		ok(check_optimum(g, c, 0, &o, why) && o.proved &&
		   !plan_ratio_compare(o.busbw, want),
		   "%s, %s: %.2f of %.2f GB/s busbw, %sproved, k = %llu %s",
		   what, plan_collective_name(c),
		   plan_ratio_value(o.busbw) / 1000,
		   plan_ratio_value(want) / 1000, o.proved ? "" : "not ",
		   (unsigned long long)o.k, why);
		plan_optimum_free(&o);
	}
	plan_graph_free(g);
}

int main(void)
{
	known(circle(6, false), "one-way ring of 6: one link in", 25000, 1);
	known(circle(5, true), "ring of 5: two links in", 50000, 1);
	known(hypercube(2), "hypercube of 4: two links in", 20000, 1);
	known(hypercube(3), "hypercube of 8: three links in", 30000, 1);
	known(hypercube(4), "hypercube of 16: four links in", 40000, 1);
	known(torus(3, 3), "torus of 9: four links in", 40000, 1);
	known(torus(4, 4), "torus of 16: four links in", 40000, 1);
	known(mesh(8), "full mesh of 8: seven links in", 7 * 48000, 1);
	known(dgx(1, 300000, 0), "a DGX: one port in", 300000, 1);
	/* 16 GPUs: NVSwitch and NIC into each, before 8 NICs into a box */
	known(dgx(2, 300000, 25000), "two DGX: both ports in", 325000, 1);
	/* 4 NICs' worth: 8 of 16 shards over 8 x 10 GB/s, 15/16 of it */
	known(dgx(2, 300000, 10000), "two DGX with slow NICs: a box's NICs",
	      150000, 1);
	/* 12 of 16 shards into a leaf over 2 ways */
	known(tree(4, 10000, 10000), "fat tree, nothing oversubscribed: a port",
	      10000, 1);
	known(tree(4, 10000, 3000), "fat tree, narrow: a leaf's ways up", 7500,
	      1);
	known(split(4), "two flat boxes: four uplinks", 202500, 1);
	known(split(2), "two cascade boxes: two uplinks", 101250, 1);
	return tap_done();
}
