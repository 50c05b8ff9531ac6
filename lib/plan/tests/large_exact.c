// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Hundreds of random graphs of 2 to 12 GPUs, against every cut of each; and a
 * large fabric of which no two links are alike.
 */
#include "check.h"
#include "exact.h"
#include "fabrics.h"
#include "random.h"
#include "tests/tap.h"

static void unequal(void)
{
	struct fabric_shape shape = fabric_shape(8, 16, 8, FABRIC_STRIPED);
	struct plan_graph *g = fabric_columbas(&shape);
	enum plan_collective c;
	uint64_t state = 1;
	uint32_t i;

	for (i = 0; i < g->nedges; i++)
		if (g->edges[i].twin > i)
			g->edges[i].capacity =
				g->edges[g->edges[i].twin].capacity =
				10000 + random_below(&state, 40000);
	for (c = PLAN_ALL_GATHER; c < PLAN_COLLECTIVES; c++) {
		struct plan_error e = { .text = "" };
		struct plan_optimum o;
		char why[CHECK_WHY] = "";

		if (plan_optimum(g, c, 5, &o, &e)) {
			ok(false, "%s: %s", plan_collective_name(c), e.text);
			continue;
		}
		ok(check_optimum(g, c, 5, &o, why) && o.proved,
		   "%u GPUs, all links unlike, %s: proved %s", g->nranks,
		   plan_collective_name(c), why);
		plan_optimum_free(&o);
	}
	plan_graph_free(g);
}

int main(void)
{
	exact_run(1, 360, 12, 4);
	unequal();
	return tap_done();
}
