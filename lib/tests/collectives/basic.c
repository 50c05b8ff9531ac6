// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * First things: barriers, a sum, SEND and RECV of all lengths.
 */
#include "world.h"

static void sum_work(struct world *w)
{
	double mine = w->rank + 1, sum = 0;
	uint32_t i;

	for (i = 0; i < 1000; i++) {
		CHECK_EQ(fabrex_barrier(w->comm), 0);
		CHECK_EQ(fabrex_all_reduce(w->comm, &mine, &sum, 1,
					   FABREX_FLOAT64, FABREX_SUM), 0);
		CHECK_EQ(sum, w->size * (w->size + 1) / 2);
	}
}

TEST(barriers_and_sums)
{
	uint32_t n;

	for (n = 1; n <= RANKS; n++)
		world_run(n, sum_work, NULL);
}
