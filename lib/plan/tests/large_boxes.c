// SPDX-License-Identifier: LGPL-2.1-or-later
/* 16, 128 and 1,024 GPUs: exact, verified, in the time that is promised. */
#include <sys/resource.h>
#include <time.h>

#include "check.h"
#include "fabrics.h"
#include "plan/optimum.h"
#include "tests/tap.h"

/* Of the processor: other work on the machine does not count. */
static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The greatest size of this process so far, MiB. */
static double memory(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)usage.ru_maxrss / 1024;
}

static void optimum(const struct plan_graph *g, enum plan_collective c,
		    double limit)
{
	struct plan_optimum o = { 0 };
	struct plan_error e = { 0 };
	char why[CHECK_WHY] = "";
	double took = now();
	int err = plan_optimum(g, c, 0, &o, &e);
	bool good;

	took = now() - took;
	if (err)
		snprintf(why, sizeof(why), "%.200s", e.text);
	good = !err && check_optimum(g, c, 0, &o, why) && o.proved;
	ok(good, "%u GPUs, %s, %s: the bound is met and verified", g->nranks,
	   g->name, plan_collective_name(c));
	if (!good)
		printf("# %s\n", *why ? why : "not proved");
	ok(took < limit, "in %.3f s of %.2f s", took, limit);
	plan_optimum_free(&o);
}

static void all(struct plan_graph *g, double limit)
{
	optimum(g, PLAN_ALL_GATHER, limit);
	optimum(g, PLAN_REDUCE_SCATTER, limit);
	optimum(g, PLAN_ALL_REDUCE, 2 * limit);
	optimum(g, PLAN_BROADCAST, limit);
	plan_graph_free(g);
}

static struct plan_graph *columbas(uint32_t boxes, uint32_t gpus,
				   uint32_t switches,
				   enum fabric_pattern pattern)
{
	struct fabric_shape s = fabric_shape(boxes, gpus, switches, pattern);

	return fabric_columbas(&s);
}

/* 128 GPUs with less inside boxes than between them. */
static struct plan_graph *meshed(uint64_t mesh)
{
	struct fabric_shape s = fabric_shape(8, 16, 8, FABRIC_STRIPED);
	struct plan_graph *g;

	s.mesh = mesh;
	g = fabric_columbas(&s);
	snprintf(g->name, sizeof(g->name), "striped with a mesh of %u MB/s",
		 (unsigned int)mesh);
	return g;
}

/*
 * Each GPU has an uplink and hardly any other link: trees of the optimum come
 * back to a box often. What is not met is not said to be proved.
 */
static void unmet(void)
{
	struct fabric_shape s = fabric_shape(36, 4, 8, FABRIC_STRIPED);
	struct plan_optimum o = { 0 };
	struct plan_error e = { 0 };
	char why[CHECK_WHY] = "";
	struct plan_graph *g;

	s.mesh = 1000;
	g = fabric_columbas(&s);
	ok(!plan_optimum(g, PLAN_ALL_GATHER, 0, &o, &e) &&
	   check_optimum(g, PLAN_ALL_GATHER, 0, &o, why) && !o.proved,
	   "144 GPUs behind uplinks of their own: not proved");
	if (*why || e.code)
		printf("# %s%s\n", why, e.text);
	printf("# %.1f of %.1f GB/s\n", plan_ratio_value(o.algbw) / 1000,
	       plan_ratio_value(o.bound.algbw) / 1000);
	plan_optimum_free(&o);
	plan_graph_free(g);
}

int main(void)
{
	struct plan_graph *g;
	uint32_t p;

	all(columbas(2, 8, 4, FABRIC_STRIPED), 0.05);
	for (p = 0; p < FABRIC_PATTERNS; p++)
		all(columbas(8, 16, 8, p), 2);
	all(fabric_dgx(16, 4, 300000, 25000), 2);
	all(meshed(0), 2);
	all(meshed(1000), 2);
	all(fabric_hosts(4, 4, 8, 0), 2);
	all(fabric_hosts(4, 8, 4, 48000), 2);
	unmet();
	g = columbas(64, 16, 32, FABRIC_STRIPED);
	optimum(g, PLAN_ALL_GATHER, 60);
	ok(memory() < 2048, "in %.0f MiB of 2048", memory());
	plan_graph_free(g);
	g = fabric_hosts(32, 8, 4, 48000);
	optimum(g, PLAN_ALL_GATHER, 20);
	plan_graph_free(g);
	return tap_done();
}
