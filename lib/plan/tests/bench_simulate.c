// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * How long playing takes, and how that grows: packings of trees, as throughput
 * asks for, on Columbas from 16 to 1,024 GPUs, and rings.
 */
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "fabrics.h"
#include "plan/optimum.h"
#include "plan/rings/set.h"
#include "plan/simulate.h"

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void hop(struct plan_schedule *s, struct plan_ring_paths *w, uint32_t from,
		uint32_t to, uint32_t pick)
{
	struct plan_ring_path path = plan_ring_paths_of(w, from, to);

	plan_schedule_transfer(s, (uint32_t)plan_schedule_route(s, w->g,
			       path.edges + pick % path.count * path.length,
			       path.length), false);
}

/*
 * A tree of @root: from box to box, each time from another GPU to another,
 * and in each box from the one that has it to all others.
 */
static void tree(struct plan_schedule *s, struct plan_ring_paths *w, uint32_t root,
		 uint32_t t, uint32_t per_box)
{
	uint32_t boxes = s->nranks / per_box, b, i, at = root, next;

	for (b = 0; b < boxes; b++) {
		uint32_t base = at / per_box * per_box;

		for (i = 0; i < per_box; i++)
			if (base + i != at)
				hop(s, w, at, base + i, t);
		next = (base + per_box) % s->nranks + (at + t + 1) % per_box;
		if (b + 1 < boxes)
			hop(s, w, base + (at + t) % per_box, next, t);
		at = next;
	}
}

static struct plan_schedule *packing(const struct plan_graph *g, uint32_t k,
				     uint32_t per_box)
{
	struct plan_schedule *s = plan_schedule_new(PLAN_ALL_GATHER, g->nranks,
						    0);
	struct plan_ring_paths w;
	uint32_t r, t;

	plan_ring_paths_init(&w, g);
	for (r = 0; r < g->nranks; r++)
		for (t = 0; t < k; t++) {
			plan_schedule_chunk(s, r, r * k + t, 1);
			tree(s, &w, r, t, per_box);
		}
	plan_ring_paths_free(&w);
	plan_schedule_finish(s);
	return s;
}

static void report(const char *what, const struct plan_graph *g,
		   const struct plan_schedule *s, uint64_t bytes)
{
	struct plan_timing t = plan_timing_default();
	struct plan_job job = { s, bytes, 0 };
	struct plan_error e = { 0 };
	struct plan_played out;
	struct plan_ratio rate;
	struct rusage u;
	double begin = seconds();
	int err = plan_simulate(g, &job, 1, &t, &out, NULL, &e);

	begin = seconds() - begin;
	getrusage(RUSAGE_SELF, &u);
	plan_schedule_rate(s, g, &rate, NULL);
	printf("%5u GPUs %5llu MiB %-10s %9llu transfers: %8.3f s, %5ld MB; ",
	       g->nranks, (unsigned long long)(bytes >> 20), what,
	       (unsigned long long)s->ntransfers, begin, u.ru_maxrss / 1024);
	if (err)
		printf("%s\n", e.text);
	else
		printf("%.1f of %.1f GB/s, pieces of %llu KiB\n", out.algbw,
		       plan_ratio_value(rate) / 1e3,
		       (unsigned long long)(out.piece_bytes >> 10));
	fflush(stdout);
}

static void one(uint32_t boxes, uint32_t gpus, uint32_t switches, uint32_t k)
{
	struct fabric_shape shape = fabric_shape(boxes, gpus, switches,
						 FABRIC_FAT_TREE);
	struct plan_graph *g = fabric_columbas(&shape);
	struct plan_schedule *s = packing(g, k, gpus);
	struct plan_error e = { 0 };
	struct plan_rings r;

	report("trees", g, s, 256 << 20);
	report("trees", g, s, 4ull << 30);
	plan_schedule_free(s);
	if (!plan_rings(g, PLAN_ALL_REDUCE, 0, NULL, &r, &e)) {
		report("rings", g, r.schedule, 256 << 20);
		report("rings", g, r.schedule, 4ull << 30);
		plan_rings_free(&r);
	}
	plan_graph_free(g);
}

int main(int argc, char **argv)
{
	one(2, 8, 2, 9);
	one(4, 8, 4, 9);
	one(16, 8, 8, 4);
	one(16, 16, 16, 4);
	if (argc > 1 && argv[1])
		one(64, 16, 32, (uint32_t)atoi(argv[1]));
	else
		one(64, 16, 32, 2);
	return 0;
}
