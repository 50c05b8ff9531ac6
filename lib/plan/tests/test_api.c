// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The public API: layouts that programs were compiled with, structures of other
 * versions, errors, fabrics by calls against the same in a file, and texts that
 * come back. What the planner finds is tested elsewhere.
 */
#include <errno.h>
#include <fabrex/plan.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"

#define FLAT	"topologies/2s-2rp-split-flat.topo"
#define CASCADE	"topologies/1s-1rp-std-cascade.topo"

/* A number that has to be changed here is an incompatible change. */
#ifdef __LP64__
#define SIZE(type, n) \
	_Static_assert(sizeof(struct fabrex_plan_##type) == (n), #type)
#define AT(type, member, n) \
	_Static_assert(offsetof(struct fabrex_plan_##type, member) == (n), \
		       #type "." #member)

SIZE(select, 32);
SIZE(graph_attr, 32);
AT(graph_attr, warnings, 24);
SIZE(node, 32);
AT(node, up, 20);
SIZE(edge, 32);
AT(edge, reverse, 24);
SIZE(fabric_attr, 40);
SIZE(port, 16);
SIZE(gpu, 40);
AT(gpu, host_port, 20);
SIZE(ring_attr, 24);
SIZE(attr, 128);
AT(attr, bound_busbw, 64);
AT(attr, proved, 80);
AT(attr, trees, 104);
SIZE(part, 40);
AT(part, inward, 28);
SIZE(timing, 48);
SIZE(job, 24);
SIZE(time, 32);
SIZE(work, 104);
AT(work, parameters, 32);
AT(work, nplans, 96);
SIZE(step, 64);
AT(step, bytes, 48);
SIZE(inventory, 56);
AT(inventory, link, 32);
SIZE(design, 40);
#endif
_Static_assert(FABREX_PLAN_NET == 9 && FABREX_PLAN_OTHER == 8 &&
	       FABREX_PLAN_REDUCE == 5 && FABREX_PLAN_RINGS == 3 &&
	       FABREX_PLAN_SVG == 7 && FABREX_PLAN_TENSOR_PREFILL == 5,
	       "numbers of version 1.2");

static struct fabrex_plan_graph *graph_of(const char *path)
{
	struct fabrex_plan_graph *g = NULL;
	int r = fabrex_plan_graph_read(path, NULL, 0, &g);

	ok(!r && g, "%s is read %s", path,
	   r ? fabrex_plan_strerror_last() : "");
	return g;
}

static char *text_of(const struct fabrex_plan_graph *g,
		     const struct fabrex_plan *p, int format)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	int r = g ? fabrex_plan_graph_write(g, format, f)
		  : fabrex_plan_write(p, format, f);

	ok(!fclose(f) && !r && n, "format %d %s", format,
	   r ? fabrex_plan_strerror_last() : "");
	return text;
}

/* ---- structures of other versions ---------------------------------------- */

static void sizes(void)
{
	struct fabrex_plan_graph *g = graph_of(FLAT);
	struct {
		struct fabrex_plan_select v;
		uint64_t newer;
	} select = { .v = { .devices = "0,1" } };
	struct {
		struct fabrex_plan_node v;
		uint64_t newer;
	} node;

	memset(&node, 0xff, sizeof(node));
	ok(!fabrex_plan_node_query(g, 0, &node.v, 12) && node.v.kind &&
	   node.v.rank == UINT32_MAX, "an older caller gets what it has");
	ok(!fabrex_plan_node_query(g, 0, &node.v, sizeof(node)) && !node.newer,
	   "a newer one gets 0 for what is not known");
	ok(!fabrex_plan_graph_select(g, &select.v, sizeof(select)),
	   "what is 0 need not be known");
	select.newer = 1;
	ok(fabrex_plan_graph_select(g, &select.v, sizeof(select)) == -E2BIG,
	   "what is set has to be");
	has(fabrex_plan_strerror_last(), "update libfabrex-plan");
	select.v.reserved[1] = 1;
	ok(fabrex_plan_graph_select(g, &select.v, sizeof(select.v)) == -EINVAL,
	   "reserved fields are 0");
	fabrex_plan_graph_free(g);
}

/* ---- errors --------------------------------------------------------------- */

static void bad_graphs(void)
{
	static char marker;
	struct fabrex_plan_graph *none = (void *)&marker, *g = none;
	struct fabrex_plan_edge edge;
	struct fabrex_plan_node node;

	ok(fabrex_plan_graph_read("/no/such", NULL, 0, &g) == -ENOENT &&
	   g == none, "there is no such file");
	has(fabrex_plan_strerror_last(), "/no/such");
	ok(fabrex_plan_graph_parse("fabric = ;", 10, "text", NULL, 0, &g) ==
	   -EINVAL && g == none, "that is no topology");
	has(fabrex_plan_strerror_last(), "text:1");
	ok(fabrex_plan_graph_create("", &g) == -EINVAL && g == none,
	   "a graph has a name");
	ok(!fabrex_plan_graph_create("x\033[31m", &g), "any name");
	ok(fabrex_plan_graph_check(g) == -EINVAL, "there are no ranks");
	ok(fabrex_plan_node_add(g, 0, "a", 0, FABREX_PLAN_NONE) == -EINVAL &&
	   fabrex_plan_node_add(g, 10, "a", 0, FABREX_PLAN_NONE) == -EINVAL &&
	   fabrex_plan_node_add(g, FABREX_PLAN_GPU, "a", 1u << 31,
				FABREX_PLAN_NONE) == -EINVAL &&
	   fabrex_plan_node_add(g, FABREX_PLAN_GPU, "a", 0, 0) == -EINVAL &&
	   fabrex_plan_node_add(g, FABREX_PLAN_GPU, "a b", 0,
				FABREX_PLAN_NONE) == -EINVAL,
	   "kinds, boxes, nodes above and names are checked");
	ok(!fabrex_plan_node_add(g, FABREX_PLAN_GPU, "a", 0,
				 FABREX_PLAN_NONE) &&
	   fabrex_plan_node_add(g, FABREX_PLAN_GPU, "a", 0,
				FABREX_PLAN_NONE) == -EEXIST &&
	   fabrex_plan_node_add(g, FABREX_PLAN_GPU, "b", 0, 0) == 1,
	   "names are unique, indices returned");
	ok(fabrex_plan_link_add(g, 0, 2, 1, 0, FABREX_PLAN_PCIE) == -EINVAL &&
	   fabrex_plan_link_add(g, 0, 1, 0, 0, FABREX_PLAN_PCIE) == -EINVAL &&
	   fabrex_plan_link_add(g, 0, 1, 1, 0, 9) == -EINVAL &&
	   !fabrex_plan_link_add(g, 0, 1, 7, 0, FABREX_PLAN_XGMI),
	   "ends, capacity and kind of a link, too");
	ok(!fabrex_plan_edge_query(g, 1, &edge, sizeof(edge)) &&
	   edge.from == 1 && !edge.to && edge.capacity == 7 && edge.latency &&
	   !edge.reverse, "both directions are there");
	ok(fabrex_plan_edge_query(g, 2, &edge, sizeof(edge)) == -ENOENT &&
	   fabrex_plan_node_query(g, 2, &node, sizeof(node)) == -ENOENT &&
	   fabrex_plan_node_set(g, 2, "k", "v") == -EINVAL &&
	   !fabrex_plan_node_get(g, 2, "k") &&
	   !fabrex_plan_graph_warning(g, 0) &&
	   fabrex_plan_rank_node(g, 2) == FABREX_PLAN_NONE &&
	   fabrex_plan_node_find(g, "c") == FABREX_PLAN_NONE,
	   "what is not there is told");
	ok(!fabrex_plan_graph_warn(g, "odd\a") &&
	   !strcmp(fabrex_plan_graph_warning(g, 0), "odd?"),
	   "control characters are not shown");
	ok(!fabrex_plan_graph_check(g), "two GPUs and a link can be planned");
	fabrex_plan_graph_free(g);
	fabrex_plan_graph_free(NULL);
}

static void bad_plans(void)
{
	struct fabrex_plan_graph *g = graph_of(FLAT);
	const struct fabrex_plan_ring_attr odd = { .reserved = 1 };
	struct fabrex_plan *p = NULL, *b = NULL;
	struct fabrex_plan_job job = { 0 };
	struct fabrex_plan_time time;
	struct fabrex_plan_part part;
	FILE *f = tmpfile();

	ok(fabrex_plan_optimal(g, 0, 0, &p) == -EINVAL &&
	   fabrex_plan_rings(g, 6, 0, NULL, 0, &p) == -EINVAL && !p,
	   "collectives are checked");
	ok(fabrex_plan_bound(g, FABREX_PLAN_REDUCE, 99, &p) == -EINVAL && !p,
	   "so is the root");
	ok(fabrex_plan_rings(g, FABREX_PLAN_ALL_REDUCE, 0, &odd, sizeof(odd),
			     &p) == -EINVAL && !p, "and reserved fields");
	ok(fabrex_plan_rings_parse(g, FABREX_PLAN_ALL_REDUCE, 0, "0 1 0", 5,
				   "x", &p) == -EINVAL && !p,
	   "a ring goes through all GPUs");
	ok(!fabrex_plan_bound(g, FABREX_PLAN_ALL_REDUCE, 0, &b),
	   "there is a bound");
	ok(fabrex_plan_write(b, FABREX_PLAN_SCHEDULE, f) == -ENOTSUP &&
	   fabrex_plan_write(b, FABREX_PLAN_NCCL_RINGS, f) == -ENOTSUP &&
	   fabrex_plan_graph_write(g, FABREX_PLAN_SCHEDULE, f) == -ENOTSUP &&
	   fabrex_plan_write(b, 99, f) == -ENOTSUP, "but no schedule");
	job.plan = b;
	ok(fabrex_plan_simulate(g, &job, sizeof(job), 1, NULL, 0, &time,
				sizeof(time)) == -EINVAL,
	   "so it cannot be simulated");
	ok(fabrex_plan_part_query(b, 99, &part, sizeof(part)) == -ENOENT &&
	   !fabrex_plan_ring(b, 0), "nor has it 100 parts, nor rings");
	fabrex_plan_free(b);
	fabrex_plan_free(NULL);
	fabrex_plan_graph_free(g);
	fclose(f);
}

/* ---- by calls, and from a file ------------------------------------------- */

/* What CASCADE says, but for @speed, MT/s, of the first uplink. */
static struct fabrex_plan_fabric *cascade(uint32_t speed)
{
	const struct fabrex_plan_fabric_attr attr = {
		.name = "1s-1rp-std-cascade", .link = 27000,
		.root_complex = 27000,
	};
	const struct fabrex_plan_port server = { .port = 1 };
	struct fabrex_plan_fabric *f = NULL;
	char name[32];
	uint32_t box, i;

	ok(!fabrex_plan_fabric_create(&attr, sizeof(attr), &f) &&
	   !fabrex_plan_fabric_switch(f, "draco1", 6, 16, 16) &&
	   !fabrex_plan_fabric_host(f, "server", 0, &server, 1,
				    sizeof(server)), "a switch and a host");
	for (box = 0; box < 2; box++) {
		const struct fabrex_plan_port up[] = {
			{ .port = 3 + 2 * box, .speed = box ? 0 : speed },
			{ .port = 4 + 2 * box },
		};

		snprintf(name, sizeof(name), "columba%u", box + 1);
		ok(fabrex_plan_fabric_appliance(f, name, 0, up, 2,
						sizeof(up[0]), "xgmi",
						48000) == (int)box,
		   "%s", name);
		for (i = 0; i < 8; i++) {
			struct fabrex_plan_gpu gpu = {
				.name = name, .appliance = box,
				.uplink = i / 4,
			};

			snprintf(name, sizeof(name), "columba%u.gpu%u",
				 box + 1, i);
			if (fabrex_plan_fabric_gpu(f, &gpu, sizeof(gpu)) < 0)
				ok(false, "%s", fabrex_plan_strerror_last());
		}
	}
	return f;
}

static void same_as_file(void)
{
	struct fabrex_plan_graph *file = graph_of(CASCADE), *calls = NULL;
	struct fabrex_plan_fabric *f = cascade(0);
	char *a, *b;

	ok(!fabrex_plan_fabric_graph(f, NULL, 0, &calls), "calls make a graph");
	a = text_of(file, NULL, FABREX_PLAN_GRAPH);
	b = text_of(calls, NULL, FABREX_PLAN_GRAPH);
	ok(!strcmp(a, b), "the same as the file's");
	free(a);
	free(b);
	fabrex_plan_graph_free(calls);
	fabrex_plan_fabric_free(f);
	f = cascade(8000);
	ok(!fabrex_plan_fabric_graph(f, NULL, 0, &calls), "a slow uplink");
	a = text_of(file, NULL, FABREX_PLAN_GRAPH);
	b = text_of(calls, NULL, FABREX_PLAN_GRAPH);
	ok(strcmp(a, b) && strstr(b, "13.5"), "carries half");
	free(a);
	free(b);
	fabrex_plan_graph_free(calls);
	fabrex_plan_fabric_free(f);
	fabrex_plan_graph_free(file);
}

static void bad_fabrics(void)
{
	const struct fabrex_plan_port used = { .port = 3 }, far = { .port = 7 };
	const struct fabrex_plan_port odd = { .port = 2, .speed = 17 };
	const struct fabrex_plan_port free_port = { .port = 2 };
	const struct fabrex_plan_port both[] = { { .port = 2 }, { .port = 2 } };
	const struct fabrex_plan_port elsewhere = { .sw = 1, .port = 1 };
	struct fabrex_plan_gpu gpu = { .name = "g", .uplink = 2 };
	struct fabrex_plan_fabric *f = cascade(0);

	ok(fabrex_plan_fabric_switch(f, "draco1", 6, 16, 16) == -EEXIST &&
	   fabrex_plan_fabric_switch(f, "", 6, 16, 16) == -EINVAL &&
	   fabrex_plan_fabric_switch(f, "d", 65, 16, 16) == -EINVAL &&
	   fabrex_plan_fabric_switch(f, "d", 6, 15, 16) == -EINVAL,
	   "switches are checked");
	ok(fabrex_plan_fabric_host(f, "h", 0, &used, 1, sizeof(used)) ==
	   -EINVAL, "a port has one cable");
	has(fabrex_plan_strerror_last(), "draco1:3");
	ok(fabrex_plan_fabric_host(f, "h", 0, &far, 1, sizeof(far)) ==
	   -EINVAL &&
	   fabrex_plan_fabric_host(f, "h", 0, &odd, 1, sizeof(odd)) ==
	   -EINVAL &&
	   fabrex_plan_fabric_host(f, "h", 0, both, 2, sizeof(both[0])) ==
	   -EINVAL &&
	   fabrex_plan_fabric_host(f, "h", 0, &elsewhere, 1,
				   sizeof(elsewhere)) == -EINVAL &&
	   fabrex_plan_fabric_host(f, "h", 2, &free_port, 1,
				   sizeof(free_port)) == -EINVAL,
	   "it is there, its speed exists, it is named once; so are flags");
	ok(fabrex_plan_fabric_isl(f, both, sizeof(both[0])) == -EINVAL,
	   "an inter-switch link has two switches");
	ok(fabrex_plan_fabric_appliance(f, "a", 0, &free_port, 1,
					sizeof(free_port), "yarn", 1) ==
	   -EINVAL, "a mesh is of links that there are");
	gpu.appliance = 1;
	ok(fabrex_plan_fabric_gpu(f, &gpu, sizeof(gpu)) == -EINVAL,
	   "an uplink is its appliance's");
	gpu.uplink = 0;
	gpu.host_port = 1;
	ok(fabrex_plan_fabric_gpu(f, &gpu, sizeof(gpu)) == -EINVAL,
	   "a port is its host's");
	gpu.host_port = 0;
	gpu.appliance = 0;
	ok(fabrex_plan_fabric_gpu(f, &gpu, sizeof(gpu)) == -EINVAL,
	   "GPUs of an appliance come together");
	gpu.appliance = 1;
	ok(fabrex_plan_fabric_gpu(f, &gpu, sizeof(gpu)) == 16, "one more");
	fabrex_plan_fabric_free(f);
	fabrex_plan_fabric_free(NULL);
}

/* ---- what plans say ------------------------------------------------------- */

static uint64_t cut_capacity(const struct fabrex_plan_graph *g,
			     const struct fabrex_plan_part *part)
{
	struct fabrex_plan_edge e;
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < part->nedges; i++) {
		fabrex_plan_edge_query(g, part->edges[i], &e, sizeof(e));
		sum += e.capacity;
	}
	return sum;
}

static void certificate(void)
{
	struct fabrex_plan_graph *g = graph_of(FLAT);
	struct fabrex_plan_attr trees, bound;
	struct fabrex_plan *p = NULL, *b = NULL;
	struct fabrex_plan_part part;

	ok(!fabrex_plan_optimal(g, FABREX_PLAN_ALL_GATHER, 0, &p) &&
	   !fabrex_plan_bound(g, FABREX_PLAN_ALL_GATHER, 0, &b), "planned");
	fabrex_plan_query(p, &trees, sizeof(trees));
	fabrex_plan_query(b, &bound, sizeof(bound));
	ok(trees.kind == FABREX_PLAN_TREES && trees.ranks == 16 &&
	   trees.trees && trees.chunks && trees.transfers && !trees.rings,
	   "trees");
	ok(bound.kind == FABREX_PLAN_NO_SCHEDULE && !bound.chunks &&
	   !bound.algbw.num && bound.algbw.den == 1, "a bound alone");
	ok(!fabrex_plan_ratio_compare(trees.bound_busbw, bound.bound_busbw) &&
	   trees.proved == !fabrex_plan_ratio_compare(trees.busbw,
						      trees.bound_busbw),
	   "the bound is the same, and proves the trees");
	ok(trees.bound_kind == FABREX_PLAN_BOUND_CUT && trees.parts == 1 &&
	   !fabrex_plan_part_query(p, 0, &part, sizeof(part)) &&
	   part.nnodes && part.capacity == cut_capacity(g, &part) &&
	   bound.bound_algbw.num * part.ranks ==
	   part.capacity * trees.ranks * bound.bound_algbw.den,
	   "C N / k: %llu of %u edges, %u inside",
	   (unsigned long long)part.capacity, part.nedges, part.ranks);
	fabrex_plan_graph_free(g);
	ok(!fabrex_plan_query(p, &trees, sizeof(trees)),
	   "plans outlive their graph");
	free(text_of(NULL, p, FABREX_PLAN_SCHEDULE));
	free(text_of(NULL, p, FABREX_PLAN_EXPLANATION));
	free(text_of(NULL, b, FABREX_PLAN_SVG));
	fabrex_plan_free(p);
	fabrex_plan_free(b);
}

/* Rings as XML and as a string come back as the same rings. */
static void rings_back(void)
{
	const struct fabrex_plan_select one = { .host = "server" };
	static const int formats[] = { FABREX_PLAN_NCCL, FABREX_PLAN_RCCL,
				       FABREX_PLAN_NCCL_RINGS };
	struct fabrex_plan_attr ring, back;
	struct fabrex_plan *p = NULL, *q;
	struct fabrex_plan_graph *g = graph_of(FLAT);
	char *text;
	size_t i;

	ok(!fabrex_plan_graph_select(g, &one, sizeof(one)) &&
	   !fabrex_plan_rings(g, FABREX_PLAN_ALL_REDUCE, 0, NULL, 0, &p),
	   "rings");
	fabrex_plan_query(p, &ring, sizeof(ring));
	ok(ring.kind == FABREX_PLAN_RINGS && ring.rings && ring.nccl_dev &&
	   fabrex_plan_ring(p, ring.rings - 1) &&
	   !fabrex_plan_ring(p, ring.rings) && !*fabrex_plan_ring(p, 0),
	   "%u of them", ring.rings);
	for (i = 0; i < 3; i++) {
		text = text_of(NULL, p, formats[i]);
		ok(formats[i] == FABREX_PLAN_NCCL_RINGS ||
		   !fabrex_plan_nccl_check(text, strlen(text), "graph"),
		   "the library takes it");
		q = NULL;
		ok(!fabrex_plan_rings_parse(g, FABREX_PLAN_ALL_REDUCE, 0, text,
					    strlen(text), "rings", &q),
		   "they are read again");
		fabrex_plan_query(q, &back, sizeof(back));
		ok(back.rings == ring.rings &&
		   !fabrex_plan_ratio_compare(back.busbw, ring.busbw) &&
		   !memcmp(fabrex_plan_ring(q, 0), fabrex_plan_ring(p, 0),
			   ring.ranks * sizeof(uint32_t)), "the same");
		fabrex_plan_free(q);
		free(text);
	}
	text = text_of(g, NULL, FABREX_PLAN_RCCL);
	ok(!fabrex_plan_nccl_check(text, strlen(text), "topology"),
	   "the topology, too");
	*strstr(text, "link_width") = 'X';
	ok(fabrex_plan_nccl_check(text, strlen(text), "topology") == -EINVAL,
	   "but not with a broken attribute");
	has(fabrex_plan_strerror_last(), "topology:");
	free(text);
	fabrex_plan_free(p);
	fabrex_plan_graph_free(g);
}

/* ---- times ---------------------------------------------------------------- */

static void times(void)
{
	struct fabrex_plan_graph *g = graph_of(FLAT);
	struct fabrex_plan *p = NULL;
	struct fabrex_plan_time alone, two[2];
	struct fabrex_plan_job jobs[2] = { { 0 } };
	const struct fabrex_plan *plans[2];
	const uint64_t bytes = 1 << 28;
	struct fabrex_plan_timing timing;
	struct fabrex_plan_work w = {
		.parallel = FABREX_PLAN_DATA_PARALLEL, .layers = 8,
		.hidden = 1024, .batch = 16, .sequence = 512,
		.parameters = 1e9, .bytes_per_value = 2, .flops = 1e14,
		.plans = plans, .nplans = 1, .other_bytes = &bytes,
	};
	struct fabrex_plan_step step, beside;

	ok(!fabrex_plan_optimal(g, FABREX_PLAN_ALL_REDUCE, 0, &p), "planned");
	jobs[0].plan = jobs[1].plan = plans[0] = plans[1] = p;
	jobs[0].bytes = jobs[1].bytes = 1 << 28;
	ok(!fabrex_plan_simulate(g, jobs, sizeof(*jobs), 1, NULL, 0, &alone,
				 sizeof(alone)) &&
	   !fabrex_plan_simulate(g, jobs, sizeof(*jobs), 2, NULL, 0, two,
				 sizeof(*two)), "simulated");
	ok(two[0].seconds > 1.5 * alone.seconds &&
	   two[1].seconds > 1.5 * alone.seconds && alone.busbw > 0,
	   "two at once share the links");
	fabrex_plan_timing(&timing, sizeof(timing));
	timing.launch += 1;
	ok(!fabrex_plan_simulate(g, jobs, sizeof(*jobs), 1, &timing,
				 sizeof(timing), two, sizeof(*two)) &&
	   two[0].seconds > 1 && alone.seconds < 1, "a launch takes its time");
	timing.reserved = 1;
	ok(fabrex_plan_simulate(g, jobs, sizeof(*jobs), 1, &timing,
				sizeof(timing), two, sizeof(*two)) == -EINVAL,
	   "reserved fields are 0");
	ok(!fabrex_plan_predict(g, &w, sizeof(w), NULL, 0, &step,
				sizeof(step)) && step.seconds > 0 &&
	   step.collectives, "a step");
	w.others = plans;
	w.nothers = 1;
	ok(!fabrex_plan_predict(g, &w, sizeof(w), NULL, 0, &beside,
				sizeof(beside)) &&
	   beside.seconds > step.seconds, "takes longer beside others");
	w.nplans = 2;
	ok(fabrex_plan_predict(g, &w, sizeof(w), NULL, 0, &step,
			       sizeof(step)) == -EINVAL,
	   "one plan of a collective");
	w.nplans = 0;
	ok(fabrex_plan_predict(g, &w, sizeof(w), NULL, 0, &step,
			       sizeof(step)) == -EINVAL, "and not none");
	fabrex_plan_free(p);
	fabrex_plan_graph_free(g);
}

static void words(void)
{
	ok(!strcmp(fabrex_plan_version(), "1.2"), "version");
	ok(!strcmp(fabrex_plan_collective_str(FABREX_PLAN_ALL_GATHER),
		   "all-gather") &&
	   fabrex_plan_collective_parse("all_gather") ==
	   FABREX_PLAN_ALL_GATHER && !fabrex_plan_collective_parse("x") &&
	   !strcmp(fabrex_plan_collective_str(99), "unknown"), "collectives");
	ok(!strcmp(fabrex_plan_parallel_str(FABREX_PLAN_ZERO_1), "zero-1") &&
	   fabrex_plan_parallel_parse("zero_1") == FABREX_PLAN_ZERO_1 &&
	   !strcmp(fabrex_plan_parallel_str(-1), "unknown"), "parallelisms");
	ok(!strcmp(fabrex_plan_node_kind_str(FABREX_PLAN_GPU), "gpu") &&
	   !strcmp(fabrex_plan_node_kind_str(0), "unknown") &&
	   !strcmp(fabrex_plan_link_kind_str(FABREX_PLAN_XGMI), "xgmi") &&
	   !strcmp(fabrex_plan_link_kind_str(-1), "unknown"), "kinds");
}

int main(void)
{
	words();
	sizes();
	bad_graphs();
	bad_plans();
	same_as_file();
	bad_fabrics();
	certificate();
	rings_back();
	times();
	return tap_done();
}
