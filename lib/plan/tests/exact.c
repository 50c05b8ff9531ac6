// SPDX-License-Identifier: LGPL-2.1-or-later
/* Optima of random graphs against brute force. Called by tests. */
#include <stdlib.h>

#include "brute.h"
#include "check.h"
#include "exact.h"
#include "random.h"
#include "tests/tap.h"

struct tally {
	uint32_t graphs, good, proved;
};

/* Is it what brute force says, or for all-reduce, not above it? */
static bool agrees(const struct plan_graph *g, enum plan_collective c,
		   uint32_t root, const struct plan_optimum *o, char *why)
{
	struct plan_ratio r = brute_bound(g, c, root);
	int cmp = plan_ratio_compare(o->bound.algbw, r);

	if (c == PLAN_ALL_REDUCE ? cmp <= 0 : !cmp && o->proved)
		return true;
	snprintf(why, CHECK_WHY, "every cut: %llu/%llu; bound %llu/%llu, schedule %llu/%llu",
		 (unsigned long long)r.num, (unsigned long long)r.den,
		 (unsigned long long)o->bound.algbw.num,
		 (unsigned long long)o->bound.algbw.den,
		 (unsigned long long)o->algbw.num,
		 (unsigned long long)o->algbw.den);
	return false;
}

static void one(uint64_t seed, const struct plan_graph *g,
		enum plan_collective c, struct tally *t)
{
	struct plan_error e = { .text = "" };
	struct plan_optimum o;
	char why[CHECK_WHY] = "";
	uint32_t root = (uint32_t)(seed % g->nranks);
	bool good;

	t->graphs++;
	if (plan_optimum(g, c, root, &o, &e)) {
		printf("# seed %llu, %s: %s\n", (unsigned long long)seed,
		       plan_collective_name(c), e.text);
		return;
	}
	good = check_optimum(g, c, root, &o, why) &&
	       agrees(g, c, root, &o, why);
	if (!good)
		printf("# seed %llu, %u GPUs, %u nodes, %s: %s\n",
		       (unsigned long long)seed, g->nranks, g->nnodes,
		       plan_collective_name(c), why);
	t->good += good;
	t->proved += o.proved;
	plan_optimum_free(&o);
}

void exact_run(uint64_t seed, uint32_t count, uint32_t gpus,
	       uint32_t switches)
{
	struct tally tally[PLAN_COLLECTIVES] = { { 0, 0, 0 } };
	uint32_t i, refused = 0;
	enum plan_collective c;

	for (i = 0; i < count; i++) {
		struct plan_graph *g = random_graph(seed + i, gpus, switches);
		struct plan_error e;

		if (plan_graph_check(g, &e)) {
			printf("# seed %llu: %s\n",
			       (unsigned long long)(seed + i), e.text);
			refused++;
		}
		for (c = PLAN_ALL_GATHER; c < PLAN_COLLECTIVES; c++)
			one(seed + i, g, c, &tally[c]);
		plan_graph_free(g);
	}
	ok(!refused, "%u random graphs can be planned on", count);
	for (c = PLAN_ALL_GATHER; c < PLAN_COLLECTIVES; c++)
		ok(tally[c].good == count, "%s: %u of %u schedules right and as fast as brute force allows, %u proved optimal",
		   plan_collective_name(c), tally[c].good, tally[c].graphs,
		   tally[c].proved);
}
