// SPDX-License-Identifier: LGPL-2.1-or-later
/* Schedules as text, and certificates as sentences. */
#include <errno.h>
#include <stdlib.h>

#include "plan/draw.h"
#include "plan/optimum.h"
#include "plan/read.h"
#include "tests/tap.h"

/* has(), for parts of several lines. */
static void says(const char *text, const char *part)
{
	const char *from = part + strspn(part, "\n");

	ok(strstr(text, part), "says \"%.*s\"", (int)strcspn(from, "\n"), from);
	if (!strstr(text, part))
		fprintf(stderr, "it says:\n%s\n", text);
}

/* Edge between neighbours of a full mesh. */
static uint32_t edge(const struct plan_graph *g, uint32_t a, uint32_t b)
{
	uint32_t i;

	for (i = 0; g->edges[i].from != a || g->edges[i].to != b; i++)
		;
	return i;
}

static struct plan_graph *mesh(uint32_t n)
{
	struct plan_graph *g = plan_graph_new("mesh");
	char name[16];
	uint32_t i, k;

	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "box.g%u", i);
		plan_graph_add_node(g, PLAN_GPU, name, 0, NULL);
	}
	for (i = 0; i < n; i++)
		for (k = i + 1; k < n; k++)
			plan_graph_add_link(g, i, k, 48000, 1, PLAN_XGMI, NULL);
	return g;
}

static void add(struct plan_schedule *s, const struct plan_graph *g,
		uint32_t from, uint32_t to, bool reduce)
{
	uint32_t way = edge(g, from, to);

	plan_schedule_transfer(s, (uint32_t)plan_schedule_route(s, g, &way, 1),
			       reduce);
}

static char *text_of(const struct plan_graph *g, const struct plan_schedule *s,
		     struct plan_error *e, int *err)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	*err = plan_schedule_write(g, s, f, e);
	fclose(f);
	return text;
}

/* The transfers are made level by level, and written branch by branch. */
static void trees(void)
{
	struct plan_graph *g = mesh(5);
	struct plan_schedule *s = plan_schedule_new(PLAN_ALL_REDUCE, 5, 0);
	struct plan_error e = { 0 };
	char *text;
	int err;

	plan_schedule_chunk(s, 0, 0, 3);
	add(s, g, 3, 1, true);
	add(s, g, 4, 2, true);
	add(s, g, 1, 0, true);
	add(s, g, 2, 0, true);
	add(s, g, 0, 1, false);
	add(s, g, 0, 2, false);
	add(s, g, 2, 4, false);
	add(s, g, 1, 3, false);
	plan_schedule_chunk(s, 0, 1, 2);
	add(s, g, 0, 1, true);
	add(s, g, 1, 0, false);	/* 1 is written again: no trees */
	add(s, g, 0, 1, false);
	add(s, g, 2, 3, false);
	plan_schedule_finish(s);
	snprintf(g->name, sizeof(g->name), "a\nreduce 7 8>9");
	text = text_of(g, s, &e, &err);
	ok(!err, "written");
	says(text, "# all-reduce of 5 ranks on a?reduce 7 8>9\n");
	says(text, "# ranks: 0 box.g0, 1 box.g1,");
	says(text, "\nfabrex-schedule 1\ncollective all-reduce\nranks 5\nsplit 3 2\n");
	says(text, "\nreduce 0 3>1>0 4>2>0\ncopy 0 0>1>3 0>2>4\n");
	says(text, "\nreduce 1 0>1\ncopy 1 1>0>1 2>3\n");
	says(text, "48 GB/s, lets through");
	free(text);
	plan_schedule_free(s);
	plan_graph_free(g);
}

static void shards(void)
{
	struct plan_graph *g = mesh(3);
	struct plan_schedule *s = plan_schedule_new(PLAN_ALL_GATHER, 3, 0);
	struct plan_error e = { 0 };
	uint32_t i, k;
	char *text;
	int err;

	for (i = 0; i < 3; i++)
		for (k = 0; k <= i; k++) {
			plan_schedule_chunk(s, i, k, 1);
			add(s, g, i, (i + 1) % 3, false);
			add(s, g, i, (i + 2) % 3, false);
		}
	plan_schedule_finish(s);
	text = text_of(g, s, &e, &err);
	says(text, "\nshard 0 6\nshard 1 3x2\nshard 2 2x3\n");
	says(text, "\ncopy 0 0>1 0>2\n");
	says(text, "\ncopy 5 2>0 2>1\n");
	says(text, "# 144 GB/s algbw, 96 GB/s busbw");
	free(text);
	s->chunks[1].weight = 1ull << 32;
	text = text_of(g, s, &e, &err);
	ok(err == -E2BIG && !*text, "a weight that is too large");
	has(e.text, "chunk 1 has the weight 4294967296, more than 4294967295");
	free(text);
	s->nranks = 5000;
	text = text_of(g, s, &e, &err);
	ok(err == -E2BIG, "too many ranks");
	has(e.text, "5000 ranks, more than 4096");
	free(text);
	plan_schedule_free(s);
	plan_graph_free(g);
}

static void root(void)
{
	struct plan_graph *g = mesh(3);
	struct plan_schedule *s = plan_schedule_new(PLAN_BROADCAST, 3, 2);
	struct plan_error e = { 0 };
	char *text;
	int err;

	plan_schedule_chunk(s, 0, 0, 1);
	add(s, g, 2, 0, false);
	add(s, g, 0, 1, false);
	plan_schedule_finish(s);
	text = text_of(g, s, &e, &err);
	says(text, "collective broadcast\nranks 3\nroot 2\nsplit 1\ncopy 0 2>0>1\n");
	free(text);
	plan_schedule_free(s);
	plan_graph_free(g);
}

/* ---- certificates -------------------------------------------------------- */

/* What leaves those whose box is 0, as plan_bound() would find it. */
static void cut_box(const struct plan_graph *g, struct plan_cut *c, bool into)
{
	uint32_t i;

	*c = (struct plan_cut){ .inside = calloc(g->nnodes, sizeof(bool)),
				.edges = calloc(g->nedges, sizeof(uint32_t)) };
	for (i = 0; i < g->nnodes; i++) {
		c->inside[i] = g->nodes[i].box == 0;
		c->ninside += c->inside[i] && g->nodes[i].rank != PLAN_NONE;
	}
	for (i = 0; i < g->nedges; i++) {
		bool from = c->inside[g->edges[i].from];

		if (from == c->inside[g->edges[i].to] || from == into)
			continue;
		c->edges[c->nedges++] = i;
		c->capacity += g->edges[i].capacity;
	}
}

static char *explained(const struct plan_graph *g, enum plan_collective c,
		       const struct plan_bound *b)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	ok(!plan_bound_explain(g, c, b, f), "%s explained",
	   plan_collective_name(c));
	fclose(f);
	return text;
}

static void invert(const struct plan_graph *g, struct plan_cut *c)
{
	uint32_t i;

	for (i = 0; i < g->nnodes; i++)
		c->inside[i] = !c->inside[i];
	c->ninside = g->nranks - c->ninside;
}

static void cuts(void)
{
	struct plan_error e = { 0 };
	struct plan_graph *g = plan_graph_read(
		"topologies/2s-2rp-split-flat.topo", NULL, &e);
	struct plan_bound b = { .kind = PLAN_BOUND_CUT,
				.algbw = { 216000, 1 }, .busbw = { 202500, 1 } };
	char *text;

	cut_box(g, &b.cut, false);
	text = explained(g, PLAN_ALL_GATHER, &b);
	says(text, "faster than 216 GB/s algbw, 202.5 GB/s busbw.\n");
	says(text, "Inside, 8 of 16 GPUs:\n  box columba1 (8 GPUs)\n");
	says(text, "What leads out of it:\n  columba1:up0 > draco1:1  27 GB/s (cable)\n");
	says(text, "\n  together 4 x 27 = 108 GB/s\n");
	says(text, "8 of 16 shards over 108 GB/s: algbw <= 108 x 16/8 = 216 GB/s, busbw <= 216 x 15/16 = 202.5 GB/s.\n");
	free(text);
	invert(g, &b.cut);	/* now the edges lead in, and most is inside */
	text = explained(g, PLAN_REDUCE_SCATTER, &b);
	says(text, "Inside, 8 of 16 GPUs, all but:\n  box columba1 (8 GPUs)\n");
	says(text, "What leads into it:");
	free(text);
	b.algbw = b.busbw = plan_ratio(108000, 1);
	text = explained(g, PLAN_BROADCAST, &b);
	says(text, "all bytes cross 108 GB/s: algbw <= 108 GB/s; busbw is the same.\n");
	free(text);
	free(b.cut.inside);
	free(b.cut.edges);
	plan_graph_free(g);
}

/* What plan_bound() finds is told whole. */
static void bounds(void)
{
	struct plan_error e = { 0 };
	struct plan_graph *g = plan_graph_read(
		"topologies/2s-2rp-split-flat.topo", NULL, &e);
	struct plan_bound b = { 0 };
	enum plan_collective c;
	char *text;

	for (c = PLAN_ALL_GATHER; c < PLAN_COLLECTIVES; c++) {
		ok(!plan_bound(g, c, 3, &b, &e), "bound%s", e.text);
		text = explained(g, c, &b);
		says(text, "  together 4 x 27 = 108 GB/s\n");
		says(text, c == PLAN_ALL_REDUCE ? "Part 2, 8 of 16 GPUs:" :
		     "Inside, 8 of 16 GPUs:");
		free(text);
		plan_bound_free(&b);
	}
	plan_graph_free(g);
}

static void partition(void)
{
	struct plan_graph *g = mesh(3);
	struct plan_cut parts[3];
	struct plan_bound b = { .kind = PLAN_BOUND_PARTITION, .nparts = 3,
				.parts = parts, .algbw = { 72000, 1 },
				.busbw = { 96000, 1 } };
	uint32_t i;
	char *text;

	for (i = 0; i < 3; i++)
		g->nodes[i].box = i;
	g->nboxes = 3;
	for (i = 0; i < 3; i++) {
		g->nodes[i].box = 0;
		g->nodes[(i + 1) % 3].box = 1;
		g->nodes[(i + 2) % 3].box = 2;
		cut_box(g, &parts[i], true);
	}
	text = explained(g, PLAN_ALL_REDUCE, &b);
	says(text, "Part 2, 1 of 3 GPUs:\n  box.g1\nWhat leads into it:\n");
	says(text, "box.g0 > box.g1  48 GB/s (xgmi)\n");
	says(text, "Into all parts together lead 288 GB/s.");
	says(text, "at least 2(3 - 1)m bytes into 3 parts: algbw <= 288 / 4 = 72 GB/s, busbw <= 72 x 4/3 = 96 GB/s.\n");
	free(text);
	for (i = 0; i < 3; i++) {
		free(parts[i].inside);
		free(parts[i].edges);
	}
	plan_graph_free(g);
}

int main(void)
{
	trees();
	shards();
	root();
	cuts();
	bounds();
	partition();
	return tap_done();
}
