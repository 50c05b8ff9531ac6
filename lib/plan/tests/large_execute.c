// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Plans executed: what the planner writes is what libfabrex's executor takes,
 * between 16 processes over the loopback transport. The bytes are right, each
 * rank has counted exactly the bytes for each other rank that the plan has for
 * it, and so each link carries the plan's load.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fabrex/coll.h>

#include "plan/draw.h"
#include "plan/optimum.h"
#include "plan/read.h"
#include "tests/tap.h"

#define LIMIT_S		120
#define GRAIN		64	/* bytes, to which chunks are rounded */
#define SIZE		(1 << 20)	/* bytes of a collective, about */

/* What the ranks' processes know, and where they write what they have found. */
struct run {
	uint32_t n;
	enum plan_collective collective;
	uint32_t root;
	struct fabrex_schedule *schedule;
	uint64_t count;		/* int32s */
	uint64_t *traffic;	/* bytes, from * n + to; shared */
	uint32_t *right;	/* of each rank; shared */
};

static uint32_t kind_of(enum plan_collective c)
{
	switch (c) {
	case PLAN_ALL_GATHER:
		return FABREX_ALL_GATHER;
	case PLAN_REDUCE_SCATTER:
		return FABREX_REDUCE_SCATTER;
	case PLAN_ALL_REDUCE:
		return FABREX_ALL_REDUCE;
	case PLAN_BROADCAST:
		return FABREX_BROADCAST;
	default:
		return FABREX_REDUCE;
	}
}

/* ---- one rank ----------------------------------------------------------- */

/* Element @i of what @rank puts in. */
static uint32_t value(uint32_t rank, uint64_t i)
{
	uint32_t x = rank * 2654435761u + (uint32_t)i * 2246822519u;

	x ^= x >> 15;
	x *= 2654435761u;
	return x ^ x >> 13;
}

static uint32_t sum(uint32_t n, uint64_t i)
{
	uint32_t rank, s = 0;

	for (rank = 0; rank < n; rank++)
		s += value(rank, i);
	return s;
}

/* Element @i of what @rank has to get. */
static uint32_t expected(const struct run *r, uint32_t rank, uint64_t i)
{
	switch (r->collective) {
	case PLAN_ALL_GATHER:
		return value((uint32_t)(i / r->count), i % r->count);
	case PLAN_REDUCE_SCATTER:
		return sum(r->n, rank * r->count + i);
	case PLAN_BROADCAST:
		return value(r->root, i);
	default:
		return sum(r->n, i);
	}
}

static bool all_right(const struct run *r, uint32_t rank, const uint32_t *recv)
{
	uint64_t i, n = r->collective == PLAN_ALL_GATHER ? r->n * r->count :
			r->count;

	if (r->collective == PLAN_REDUCE && rank != r->root)
		return true;
	for (i = 0; i < n; i++)
		if (recv[i] != expected(r, rank, i))
			return false;
	return true;
}

static void need(int ret, const char *what)
{
	if (ret >= 0)
		return;
	printf("# %s: %s\n", what, fabrex_strerror_last());
	fflush(stdout);
	_exit(1);
}

static void perform(struct fabrex_comm *comm, const struct run *r,
		    uint32_t rank)
{
	uint64_t most = r->n * r->count, i;
	uint32_t *send = malloc(most * sizeof(*send));
	uint32_t *recv = calloc(most, sizeof(*recv));
	struct fabrex_collective what = {
		.kind = kind_of(r->collective), .type = FABREX_UINT32,
		.op = r->collective == PLAN_ALL_GATHER ||
		      r->collective == PLAN_BROADCAST ? 0 : FABREX_SUM,
		.root = r->root, .send = send, .recv = recv, .count = r->count,
	};
	struct fabrex_coll *coll;

	if (!send || !recv)
		_exit(1);
	for (i = 0; i < most; i++)
		send[i] = value(rank, i);
	need(fabrex_comm_schedule(comm, what.kind, r->schedule), "schedule");
	need(fabrex_coll_start(comm, &what, sizeof(what), &coll), "start");
	need(fabrex_coll_wait(coll, -1), "wait");
	r->right[rank] = all_right(r, rank, recv);
	free(send);
	free(recv);
}

static void rank_main(const struct run *r, uint32_t rank)
{
	struct fabrex_comm_attr attr = {
		.rank = rank, .size = r->n, .bootstrap = "fabric:4242",
		.timeout_ms = 60000,
	};
	struct fabrex_traffic traffic;
	struct fabrex_port *port;
	struct fabrex_comm *comm;
	char name[64];
	uint32_t to;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(LIMIT_S);
	snprintf(name, sizeof(name), "loopback:plan-%d", (int)getppid());
	need(fabrex_open(name, &port), "port");
	need(fabrex_comm_create(port, &attr, sizeof(attr), &comm),
	     "communicator");
	perform(comm, r, rank);
	for (to = 0; to < r->n; to++) {
		need(fabrex_comm_traffic(comm, to, &traffic, sizeof(traffic)),
		     "traffic");
		r->traffic[rank * r->n + to] = traffic.bytes;
	}
	need(fabrex_barrier(comm), "barrier");
	fabrex_comm_destroy(comm);
	fabrex_close(port);
	_exit(0);
}

/* All ranks as processes. Did all end well? */
static bool run_ranks(const struct run *r)
{
	uint32_t i, good = 0;
	pid_t *pids = calloc(r->n, sizeof(*pids));
	int status;

	fflush(stdout);
	for (i = 0; pids && i < r->n; i++) {
		pids[i] = fork();
		if (!pids[i])
			rank_main(r, i);
	}
	for (i = 0; pids && i < r->n; i++)
		if (pids[i] > 0 && waitpid(pids[i], &status, 0) == pids[i])
			good += WIFEXITED(status) && !WEXITSTATUS(status);
	free(pids);
	return good == r->n;
}

/* ---- the plan and what was counted -------------------------------------- */

/* Weight that the plan sends over each route. */
static uint64_t *route_weights(const struct plan_schedule *s)
{
	uint64_t *w = calloc(s->nroutes + 1, sizeof(*w)), i, k;

	for (i = 0; w && i < s->nchunks; i++)
		for (k = 0; k < s->chunks[i].ntransfers; k++)
			w[s->transfers[s->chunks[i].first + k].route] +=
				s->chunks[i].weight;
	return w;
}

/* Of each pair of ranks: weight planned. */
static uint64_t *pair_weights(const struct plan_schedule *s, const uint64_t *w)
{
	uint64_t *pairs = calloc((size_t)s->nranks * s->nranks, sizeof(*pairs));
	uint64_t i;

	for (i = 0; pairs && i < s->nroutes; i++)
		pairs[s->routes[i].from * s->nranks + s->routes[i].to] += w[i];
	return pairs;
}

static void check_pairs(const struct run *r, const uint64_t *pairs,
			uint64_t unit)
{
	uint64_t i, used = 0, wrong = 0;

	for (i = 0; i < (uint64_t)r->n * r->n; i++) {
		used += pairs[i] != 0;
		wrong += r->traffic[i] != pairs[i] * unit;
	}
	ok(used && !wrong, "%llu pairs of ranks have sent what was planned, to the byte",
	   (unsigned long long)used);
}

/*
 * Bytes counted on each link: a pair's are those of its routes, by the plan's
 * weights where it has several.
 */
static void map_to_links(const struct run *r, const struct plan_schedule *s,
			 const uint64_t *w, const uint64_t *pairs,
			 uint64_t *counted)
{
	uint64_t i, k, pair, bytes;

	for (i = 0; i < s->nroutes; i++) {
		pair = (uint64_t)s->routes[i].from * r->n + s->routes[i].to;
		if (!pairs[pair])
			continue;
		bytes = (uint64_t)((unsigned __int128)r->traffic[pair] * w[i] /
				   pairs[pair]);
		for (k = 0; k < s->routes[i].nedges; k++)
			counted[s->route_edges[s->routes[i].first + k]] +=
				bytes;
	}
}

static void print_links(const struct plan_graph *g, const uint64_t *loads,
			const uint64_t *counted, uint64_t unit)
{
	uint32_t i;

	printf("# %-16s   %-16s %8s %12s %12s\n", "link", "", "GB/s",
	       "planned", "counted");
	for (i = 0; i < g->nedges; i++) {
		const struct plan_edge *x = &g->edges[i];

		if (loads[i] || counted[i])
			printf("# %-16s > %-16s %8.10g %12llu %12llu\n",
			       g->nodes[x->from].name, g->nodes[x->to].name,
			       (double)x->capacity / 1000,
			       (unsigned long long)(loads[i] * unit),
			       (unsigned long long)counted[i]);
	}
}

/* What the bytes counted make when each link runs at its capacity. */
static struct plan_ratio counted_rate(const struct plan_graph *g,
				      const uint64_t *counted, uint64_t size)
{
	struct plan_ratio rate = { 0, 1 }, of;
	uint32_t i;

	for (i = 0; i < g->nedges; i++) {
		if (!counted[i] ||
		    plan_ratio_multiply(plan_ratio(g->edges[i].capacity,
						   counted[i]),
					plan_ratio(size, 1), &of))
			continue;
		if (!rate.num || plan_ratio_compare(of, rate) < 0)
			rate = of;
	}
	return rate;
}

static void compare(const struct run *r, const struct plan_graph *g,
		    const struct plan_schedule *s, uint64_t unit)
{
	uint64_t *w = route_weights(s), *pairs = pair_weights(s, w);
	uint64_t *loads = calloc(g->nedges, sizeof(*loads));
	uint64_t *counted = calloc(g->nedges, sizeof(*counted));
	struct plan_ratio rate, got;
	uint32_t i, wrong = 0;

	plan_schedule_loads(s, g, loads);
	plan_schedule_rate(s, g, &rate, NULL);
	check_pairs(r, pairs, unit);
	map_to_links(r, s, w, pairs, counted);
	for (i = 0; i < g->nedges; i++)
		wrong += counted[i] != loads[i] * unit;
	print_links(g, loads, counted, unit);
	ok(!wrong, "each link has carried what was planned");
	got = counted_rate(g, counted, s->shard_weight * unit * s->nshards);
	ok(!plan_ratio_compare(got, rate), "that is %.6g GB/s algbw at the links' capacities, as claimed",
	   plan_ratio_value(got) / 1000);
	free(w);
	free(pairs);
	free(loads);
	free(counted);
}

/* ---- plans -------------------------------------------------------------- */

static struct fabrex_schedule *parse(const struct plan_graph *g,
				     const struct plan_schedule *s)
{
	struct fabrex_schedule *schedule = NULL;
	struct plan_error e = { 0 };
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	int err = plan_schedule_write(g, s, f, &e);

	fclose(f);
	ok(!err, "%s: %llu chunks, %llu transfers written%s",
	   plan_collective_name(s->collective),
	   (unsigned long long)s->nchunks, (unsigned long long)s->ntransfers,
	   e.text);
	if (!err)
		err = fabrex_schedule_parse(text, size, "plan", &schedule);
	ok(!err, "libfabrex proves it right%s%s", err ? ": " : "",
	   err ? fabrex_strerror_last() : "");
	free(text);
	return schedule;
}

static void *share(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void execute(const struct plan_graph *g, const struct plan_schedule *s)
{
	uint64_t unit = GRAIN *	/* bytes of weight 1: nothing is rounded */
		(1 + SIZE / (GRAIN * s->shard_weight * s->nshards));
	struct run r = {
		.n = s->nranks, .collective = s->collective, .root = s->root,
		.count = s->shard_weight * unit / sizeof(uint32_t),
		.schedule = parse(g, s),
	};
	uint32_t i, right = 0;

	r.traffic = share(sizeof(*r.traffic) * r.n * r.n);
	r.right = share(sizeof(*r.right) * r.n);
	if (!r.schedule || !r.traffic || !r.right) {
		ok(0, "there is something to execute");
		return;
	}
	ok(run_ranks(&r), "%u ranks execute it with %llu bytes", r.n,
	   (unsigned long long)(s->shard_weight * unit * s->nshards));
	for (i = 0; i < r.n; i++)
		right += r.right[i];
	ok(right == r.n, "the bytes are right at %u of them", right);
	compare(&r, g, s, unit);
	munmap(r.traffic, sizeof(*r.traffic) * r.n * r.n);
	munmap(r.right, sizeof(*r.right) * r.n);
	fabrex_schedule_free(r.schedule);
}

static void rings(const struct plan_graph *g, enum plan_collective c)
{
	struct plan_error e = { 0 };
	struct plan_rings r = { 0 };

	if (plan_rings(g, c, 0, NULL, &r, &e)) {
		ok(0, "%s", e.text);
		return;
	}
	printf("# %u rings\n", r.nrings);
	execute(g, r.schedule);
	plan_rings_free(&r);
}

/* The best there is, and it is proved. */
static void best(const struct plan_graph *g, enum plan_collective c,
		 uint32_t root, double gbps)
{
	struct plan_optimum o = { 0 };
	struct plan_error e = { 0 };

	if (plan_optimum(g, c, root, &o, &e)) {
		ok(0, "%s", e.text);
		return;
	}
	ok(o.proved && plan_ratio_value(o.algbw) / 1000 == gbps,
	   "%s: %.6g GB/s algbw, %.6g GB/s busbw, the bound itself",
	   plan_collective_name(c), plan_ratio_value(o.algbw) / 1000,
	   plan_ratio_value(o.busbw) / 1000);
	execute(g, o.schedule);
	plan_optimum_free(&o);
}

static struct plan_graph *read_graph(const char *path)
{
	struct plan_error e = { 0 };
	struct plan_graph *g = plan_graph_read(path, NULL, &e);

	ok(g, "%s%s", path, e.text);
	return g;
}

int main(void)
{
	struct plan_graph *g = read_graph("topologies/2s-2rp-split-flat.topo");

	if (g) {
		best(g, PLAN_ALL_GATHER, 0, 216);
		best(g, PLAN_REDUCE_SCATTER, 0, 216);
		best(g, PLAN_ALL_REDUCE, 0, 108);
		best(g, PLAN_BROADCAST, 5, 108);
		best(g, PLAN_REDUCE, 12, 108);
		rings(g, PLAN_ALL_GATHER);
		rings(g, PLAN_ALL_REDUCE);
	}
	plan_graph_free(g);
	g = read_graph("topologies/1s-2rp-std-cascade.topo");
	if (g)	/* over the root complex */
		best(g, PLAN_ALL_REDUCE, 0, 27);
	plan_graph_free(g);
	g = read_graph("topologies/graphs/hypercube-8.graph");
	if (g)
		best(g, PLAN_ALL_GATHER, 0, 30 * 8 / 7.0);
	plan_graph_free(g);
	return tap_done();
}
