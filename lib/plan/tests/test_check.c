// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The checker itself: a right schedule passes, and of every way to break it the
 * reason is told. And the random graphs are what they are said to be.
 */
#include "check.h"
#include "random.h"
#include "tests/tap.h"

#define N 4u

/* GPUs 0 to 3 on a switch, node 4; edge 2i up from GPU i, 2i + 1 down. */
static struct plan_graph *star(void)
{
	struct plan_graph *g = plan_graph_new("star");
	char name[16];
	uint32_t i;

	for (i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "g%u", i);
		plan_graph_add_node(g, PLAN_GPU, name, 0, NULL);
	}
	plan_graph_add_node(g, PLAN_PCI_SWITCH, "s", 0, NULL);
	for (i = 0; i < N; i++)
		plan_graph_add_link(g, i, N, 12, 1, PLAN_PCIE, NULL);
	return g;
}

static void hop(struct plan_schedule *s, const struct plan_graph *g,
		uint32_t from, uint32_t to, bool reduce)
{
	uint32_t way[2] = { 2 * (from % N), 2 * (to % N) + 1 };

	plan_schedule_transfer(s, (uint32_t)plan_schedule_route(s, g, way, 2),
			       reduce);
}

/* A ring: shard r goes around from r, or ends there. */
static struct plan_schedule *ring(const struct plan_graph *g,
				  enum plan_collective c)
{
	struct plan_schedule *s = plan_schedule_new(c, N, 0);
	uint32_t r, i;

	for (r = 0; r < s->nshards; r++) {
		plan_schedule_chunk(s, r, 0, 1);
		for (i = 0; c != PLAN_ALL_GATHER && i < N - 1; i++)
			hop(s, g, r + 1 + i, r + 2 + i, true);
		for (i = 0; c != PLAN_REDUCE_SCATTER && i < N - 1; i++)
			hop(s, g, r + i, r + 1 + i, false);
	}
	plan_schedule_finish(s);
	return s;
}

static void right(const struct plan_graph *g)
{
	static const struct {
		enum plan_collective c;
		uint64_t num, den;
	} cases[] = {
		{ PLAN_ALL_GATHER, 16, 1 }, { PLAN_REDUCE_SCATTER, 16, 1 },
		{ PLAN_ALL_REDUCE, 6, 1 },
	};
	struct plan_ratio r = { 0, 1 };
	char why[CHECK_WHY] = "";
	uint32_t i;

	for (i = 0; i < 3; i++) {
		struct plan_schedule *s = ring(g, cases[i].c);

		ok(check_schedule(g, s, &r, why), "%s in a ring is right%s",
		   plan_collective_name(cases[i].c), why);
		ok(r.num == cases[i].num && r.den == cases[i].den,
		   "its flows give %llu/%llu", (unsigned long long)r.num,
		   (unsigned long long)r.den);
		plan_schedule_free(s);
	}
}

enum way_to_break {
	LOST, TWICE, EARLY, DOUBLED, UNFINISHED, LIGHT, BROKEN_ROUTE, WAYS
};

static const char *const reasons[WAYS] = {
	[LOST] = "ends with", [TWICE] = "gets twice",
	[EARLY] = "does not have", [DOUBLED] = "arrives twice",
	[UNFINISHED] = "unfinished sum", [LIGHT] = "weighs",
	[BROKEN_ROUTE] = "is broken at hop",
};

static void wrong(const struct plan_graph *g, enum way_to_break way)
{
	bool sums = way == DOUBLED || way == UNFINISHED;
	struct plan_schedule *s = ring(g, sums ? PLAN_ALL_REDUCE :
						 PLAN_ALL_GATHER);
	struct plan_transfer *t = s->transfers + s->chunks[0].first;
	char why[CHECK_WHY] = "";
	struct plan_ratio r;

	switch (way) {
	case LOST:
		s->chunks[0].ntransfers--;
		break;
	case TWICE:
		t[1] = t[0];
		break;
	case EARLY:
		t[0] = t[2];
		break;
	case DOUBLED:
		t[2] = t[1];
		break;
	case UNFINISHED:
		t[2].reduce = 0;
		break;
	case LIGHT:
		s->chunks[1].weight++;
		break;
	default:
		s->route_edges[1] = s->route_edges[0];
		break;
	}
	ok(!check_schedule(g, s, &r, why), "way %d to break it is found", way);
	has(why, reasons[way]);
	plan_schedule_free(s);
}

static void graphs(void)
{
	uint32_t i, bad = 0, most = 0;

	for (i = 0; i < 300; i++) {
		struct plan_graph *g = random_graph(i, 12, 4);

		bad += plan_graph_check(g, NULL) != 0;
		most = g->nranks > most ? g->nranks : most;
		plan_graph_free(g);
	}
	ok(!bad && most == 12, "random graphs can be planned on, up to %u GPUs",
	   most);
}

int main(void)
{
	struct plan_graph *g = star();
	enum way_to_break way;

	right(g);
	for (way = LOST; way < WAYS; way++)
		wrong(g, way);
	graphs();
	plan_graph_free(g);
	return tap_done();
}
