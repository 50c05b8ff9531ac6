// SPDX-License-Identifier: GPL-2.0-only
/*
 * "plan-collective --tuner-file": rings are simulated with the protocols of NCCL,
 * at sizes between which the faster one changes. What the planner has no model of
 * is not written: NCCL's trees, which inside one host are chains and need as many
 * steps as rings do, and LL128, which not all links can carry.
 */
#include <stdlib.h>

#include "graph.h"
#include "source.h"
#include "tuner.h"

/* Sizes that are looked at: powers of two, then between two of these. */
#define SMALLEST	(1ull << 10)
#define LARGEST		(1ull << 30)
#define HALVINGS	4

/* In NCCL's order; the names are those of its file. */
static const struct {
	int collective;
	const char *name;
} collectives[] = {
	{ FABREX_PLAN_BROADCAST, "broadcast" },
	{ FABREX_PLAN_REDUCE, "reduce" },
	{ FABREX_PLAN_ALL_GATHER, "allgather" },
	{ FABREX_PLAN_REDUCE_SCATTER, "reducescatter" },
	{ FABREX_PLAN_ALL_REDUCE, "allreduce" },
};

/* Seconds with each protocol. */
struct times {
	double ll, simple;
};

struct tuning {
	struct ctl *c;
	const char *name;
	const struct fabrex_plan_graph *graph;
	struct fabrex_plan_timing ll, simple;
	FILE *f;
};

/*
 * The default figures are those of Simple. With LL, each 8 bytes on the links have
 * 4 of data and 4 that say that it is there, so nobody waits for a flag. Sources, in
 * NCCL: base latency of a ring 6.6 us; 0.6 us for a step over NVLink, of which 0.3 are
 * the link's; a slot of 512 threads with 8 lines of 16 bytes.
 */
static void timings(struct tuning *t)
{
	fabrex_plan_timing(&t->simple, sizeof(t->simple));
	t->ll = t->simple;
	t->ll.launch = 6.6e-6;
	t->ll.send = 0.15e-6;
	t->ll.notice = 0.15e-6;
	t->ll.slice = 64 << 10;
}

static int simulate(const struct tuning *t, const struct fabrex_plan *plan,
		    uint64_t bytes, const struct fabrex_plan_timing *timing,
		    double *seconds)
{
	const struct fabrex_plan_job job = { .plan = plan, .bytes = bytes };
	struct fabrex_plan_time time;
	int r = fabrex_plan_simulate(t->graph, &job, sizeof(job), 1, timing,
				     sizeof(*timing), &time, sizeof(time));

	if (r)
		return source_error(t->c, t->name, r);
	*seconds = time.seconds;
	return 0;
}

static int both(const struct tuning *t, const struct fabrex_plan *plan,
		uint64_t bytes, struct times *out)
{
	int r = simulate(t, plan, 2 * bytes, &t->ll, &out->ll);

	return r ? r : simulate(t, plan, bytes, &t->simple, &out->simple);
}

/* The largest size found at which LL is faster; 0: there is none. */
static int last_of_ll(const struct tuning *t, const struct fabrex_plan *plan,
		      uint64_t *last)
{
	uint64_t good = 0, bad = SMALLEST;
	struct times times;
	int i, r = 0;

	for (; bad <= LARGEST; bad *= 2) {
		r = both(t, plan, bad, &times);
		if (r || times.ll >= times.simple)
			break;
		good = bad;
	}
	for (i = 0; i < HALVINGS && good && bad <= LARGEST && !r; i++) {
		uint64_t middle = good + (bad - good) / 2;

		r = both(t, plan, middle, &times);
		if (times.ll < times.simple)
			good = middle;
		else
			bad = middle;
	}
	*last = good;
	return r;
}

static void put_rule(const struct tuning *t, const char *name, uint64_t first,
		     uint64_t last, const char *protocol)
{
	/* Rings are those of one host, and of all ranks. */
	fprintf(t->f, "%s,%llu,%llu,ring,%s,-1,1,%u\n", name,
		(unsigned long long)first, (unsigned long long)last, protocol,
		graph_attr(t->graph).ranks);
}

static int put_collective(const struct tuning *t, const char *name,
			  const struct fabrex_plan *plan)
{
	static const uint64_t shown[] = { 1ull << 10, 1ull << 20, 1ull << 26 };
	uint64_t last;
	size_t i;
	int r = last_of_ll(t, plan, &last);

	for (i = 0; i < ARRAY_SIZE(shown) && !r; i++) {
		struct times times;

		r = both(t, plan, shown[i], &times);
		if (!r)
			fprintf(t->f, "# %s of %llu bytes: ll %.1f us, simple "
				"%.1f us\n", name, (unsigned long long)shown[i],
				1e6 * times.ll, 1e6 * times.simple);
	}
	if (r)
		return r;
	if (last)
		put_rule(t, name, 0, last, "ll");
	put_rule(t, name, last ? last + 1 : 0, UINT64_MAX, "simple");
	return 0;
}

/* The same rings, for each collective. */
static int put_all(const struct tuning *t, const char *xml, size_t len)
{
	size_t i;
	int r = 0;

	fprintf(t->f, "# For NCCL_TUNER_CONFIG_FILE: %u GPUs of %s, predicted by fabrexctl\n"
		"# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks\n",
		graph_attr(t->graph).ranks, graph_attr(t->graph).name);
	for (i = 0; i < ARRAY_SIZE(collectives) && !r; i++) {
		struct fabrex_plan *plan;

		r = fabrex_plan_rings_parse(t->graph, collectives[i].collective,
					    0, xml, len, "rings", &plan);
		if (r)
			return source_error(t->c, t->name, r);
		r = put_collective(t, collectives[i].name, plan);
		fabrex_plan_free(plan);
	}
	return r;
}

/* Of several hosts, NCCL has rings of its own between them. */
static int check_host(struct ctl *c, const char *name,
		      const struct fabrex_plan_graph *graph)
{
	int r;

	free(graph_text(graph, FABREX_PLAN_NCCL, NULL, &r));
	if (!r)
		return 0;
	source_error(c, name, r);
	err_prefix(&c->err, "--tuner-file is for the GPUs of one host: ");
	return r;
}

char *tuner_rules(struct ctl *c, const char *name,
		  const struct fabrex_plan_graph *graph,
		  const struct fabrex_plan *rings, size_t *len)
{
	struct tuning t = { .c = c, .name = name, .graph = graph };
	char *xml, *text = NULL;
	size_t length;
	int r;

	if (check_host(c, name, graph))
		return NULL;
	xml = plan_text(rings, FABREX_PLAN_NCCL, &length, &r);
	if (!xml) {
		source_error(c, name, r);
		return NULL;
	}
	timings(&t);
	t.f = xchecked(open_memstream(&text, len));
	r = put_all(&t, xml, length);
	xchecked(fclose(t.f) ? NULL : text);
	free(xml);
	if (!r)
		return text;
	free(text);
	return NULL;
}
