// SPDX-License-Identifier: LGPL-2.1-or-later
/* Small fabrics of boxes against the general way. */
#include <errno.h>
#include <stdlib.h>

#include "check.h"
#include "fabrics.h"
#include "forest.h"
#include "random.h"
#include "tests/tap.h"

enum answer { BAD, MET, AGAIN };

/* algbw of a rate for each unit of weight. */
static struct plan_ratio algbw(const struct plan_graph *g,
			       enum plan_collective c, struct plan_ratio x)
{
	return c == PLAN_ALL_GATHER ? plan_ratio(x.num * g->nranks, x.den) : x;
}

/* All trees that were found, played by the checker. */
static bool good_trees(const struct plan_graph *g, enum plan_collective c,
		       uint32_t root, const struct plan_solution *s, char *why)
{
	struct plan_schedule *sched = forest_schedule(g, c, root, s);
	struct plan_ratio r, want = algbw(g, c, s->x);
	bool good;

	if (!sched) {
		snprintf(why, CHECK_WHY, "no schedule");
		return false;
	}
	good = check_schedule(g, sched, &r, why);
	if (good && plan_ratio_compare(r, want) < 0) {
		snprintf(why, CHECK_WHY, "%llu/%llu is less than %llu/%llu",
			 (unsigned long long)r.num, (unsigned long long)r.den,
			 (unsigned long long)want.num,
			 (unsigned long long)want.den);
		good = false;
	}
	plan_schedule_free(sched);
	return good;
}

/* @root PLAN_NONE: all-gather; otherwise a broadcast. */
static enum answer try(const struct plan_graph *g, uint32_t root, char *why)
{
	enum plan_collective c = root == PLAN_NONE ? PLAN_ALL_GATHER :
						     PLAN_BROADCAST;
	struct plan_solution s = { 0 };
	struct plan_error e = { 0 };
	uint32_t *box = boxes_of(g);
	struct plan_net *net = NULL;
	struct plan_ratio x;
	enum answer a = BAD;
	int err;

	if (plan_net_from_graph(g, root, false, &net, &e) ||
	    plan_net_cut(net, &x, NULL, &e))
		snprintf(why, CHECK_WHY, "%.200s", e.text);
	else if (err = plan_boxes(net, box, &s, &e), err == -EAGAIN)
		a = AGAIN;
	else if (err)
		snprintf(why, CHECK_WHY, "%.200s", e.text);
	else if (plan_ratio_compare(s.x, x))
		snprintf(why, CHECK_WHY, "%llu/%llu is not the optimum",
			 (unsigned long long)s.x.num,
			 (unsigned long long)s.x.den);
	else if (good_trees(g, c, root == PLAN_NONE ? 0 : root, &s, why))
		a = MET;
	plan_solution_clear(&s);
	plan_net_free(net);
	free(box);
	return a;
}

static void met(const struct plan_graph *g, uint32_t root, const char *name)
{
	char why[CHECK_WHY] = "it gave up";
	bool good = try(g, root, why) == MET;

	ok(good, "%s: the optimum%s", name, root == PLAN_NONE ? "" :
	   " from one root");
	if (!good)
		printf("# %s\n", why);
}

static void meets(struct plan_graph *g, const char *name)
{
	met(g, PLAN_NONE, name);
	met(g, g->nranks - 1, name);
	plan_graph_free(g);
}

static void shapes(void)
{
	struct fabric_shape s;
	uint32_t p;
	char name[64];

	for (p = 0; p < FABRIC_PATTERNS; p++) {
		s = fabric_shape(2, 8, 4, p);
		snprintf(name, sizeof(name), "2 boxes of 8, %s",
			 fabric_pattern_name(p));
		meets(fabric_columbas(&s), name);
		s = fabric_shape(4, 4, 8, p);
		snprintf(name, sizeof(name), "4 boxes of 4, %s",
			 fabric_pattern_name(p));
		meets(fabric_columbas(&s), name);
	}
	meets(fabric_dgx(4, 2, 300000, 25000), "4 servers with NVSwitch");
}

/* Everything random but the boxes. */
static struct plan_graph *any(uint64_t seed)
{
	uint64_t state = seed;
	struct fabric_shape s = fabric_shape(2 + random_below(&state, 3),
					     2 + random_below(&state, 3),
					     1 + random_below(&state, 4),
					     FABRIC_STRIPED);
	struct plan_graph *g;
	uint32_t i, n;

	s.uplinks = 1 + random_below(&state, s.gpus);
	s.mesh = 1 + random_below(&state, 50);
	s.link = 1 + random_below(&state, 50);
	s.isl = 1 + random_below(&state, 50);
	g = fabric_columbas(&s);
	n = g->nedges;
	for (i = 0; i < n; i += 2)	/* both directions alike */
		if (random_below(&state, 2))
			g->edges[i].capacity = g->edges[i + 1].capacity =
				1 + random_below(&state, 60);
	return g;
}

static void anything(uint64_t seeds)
{
	uint32_t count[AGAIN + 1] = { 0 };
	char why[CHECK_WHY] = "";
	uint64_t seed;

	for (seed = 0; seed < seeds; seed++) {
		struct plan_graph *g = any(seed);
		uint32_t root = seed % 3 ? PLAN_NONE : 0;
		enum answer a = try(g, root, why);

		if (a == BAD)
			printf("# seed %llu: %s\n", (unsigned long long)seed,
			       why);
		count[a]++;
		plan_graph_free(g);
	}
	ok(!count[BAD], "%u of %llu random fabrics: the optimum, proved",
	   count[MET], (unsigned long long)seeds);
	ok(count[MET] >= seeds * 3 / 5, "it gives up on less than two in five: %u",
	   count[AGAIN]);
}

/*
 * Links inside that are weaker than those to the others: the optimum has trees
 * that leave a box and come back.
 */
static void weak(void)
{
	struct fabric_shape s = fabric_shape(3, 4, 4, FABRIC_STRIPED);
	char why[CHECK_WHY] = "";
	struct plan_graph *g;

	s.mesh = 1000;
	g = fabric_columbas(&s);
	ok(try(g, PLAN_NONE, why) == AGAIN, "a weak mesh is told");
	plan_graph_free(g);
}

static void refusals(void)
{
	struct fabric_shape s = fabric_shape(4, 1, 4, FABRIC_STRIPED);
	struct plan_graph *g = fabric_columbas(&s);
	struct plan_solution found = { 0 };
	struct plan_error e = { 0 };
	struct plan_net *net = NULL;
	uint32_t *box = boxes_of(g);

	plan_net_from_graph(g, PLAN_NONE, false, &net, &e);
	ok(plan_boxes(net, box, &found, &e) == -EAGAIN,
	   "boxes of one GPU are no help");
	has(e.text, "no boxes of several GPUs");
	plan_net_free(net);
	plan_graph_free(g);
	free(box);
}

int main(void)
{
	shapes();
	anything(200);
	weak();
	refusals();
	return tap_done();
}
