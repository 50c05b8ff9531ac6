// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Rings: what they are, what they carry, and the bound, each worked out again in
 * a plain way.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabrics.h"
#include "plan/optimum.h"
#include "plan/read.h"
#include "plan/rings/set.h"
#include "tests/tap.h"

/* ---- graphs ------------------------------------------------------------- */

static struct plan_graph *gpus(uint32_t n, uint32_t box)
{
	struct plan_graph *g = plan_graph_new("graph");
	char name[16];
	uint32_t i;

	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "gpu%u", i);
		plan_graph_add_node(g, PLAN_GPU, name, box, NULL);
	}
	return g;
}

static void join(struct plan_graph *g, uint32_t a, uint32_t b, uint64_t mbps)
{
	plan_graph_add_link(g, a, b, mbps, 100, PLAN_XGMI, NULL);
}

static struct plan_graph *mesh(uint32_t n)
{
	struct plan_graph *g = gpus(n, 0);
	uint32_t i, k;

	for (i = 0; i < n; i++)
		for (k = 0; k < i; k++)
			join(g, k, i, 48000);
	return g;
}

static struct plan_graph *cube(uint32_t dimensions)
{
	struct plan_graph *g = gpus(1u << dimensions, 0);
	uint32_t i, k;

	for (i = 0; i < g->nranks; i++)
		for (k = 0; k < dimensions; k++)
			if (!(i >> k & 1))
				join(g, i, i | 1u << k, 100);
	return g;
}

static struct plan_graph *circle(uint32_t n)
{
	struct plan_graph *g = gpus(n, PLAN_NONE);
	uint32_t i;

	for (i = 0; i < n; i++)
		join(g, i, (i + 1) % n, 100);
	return g;
}

static struct plan_graph *torus(uint32_t a, uint32_t b)
{
	struct plan_graph *g = gpus(a * b, 0);
	uint32_t i;

	for (i = 0; i < a * b; i++) {
		join(g, i, i / b * b + (i + 1) % b, 100);
		join(g, i, (i + b) % (a * b), 100);
	}
	return g;
}

static struct plan_graph *star(uint32_t n)
{
	struct plan_graph *g = gpus(n, 0);
	uint32_t i;

	plan_graph_add_node(g, PLAN_GPU_SWITCH, "switch", 0, NULL);
	for (i = 0; i < n; i++)
		join(g, i, n, 100 + i);
	return g;
}

static struct plan_graph *petersen(void)
{
	struct plan_graph *g = gpus(10, 0);
	uint32_t i;

	for (i = 0; i < 5; i++) {
		join(g, i, (i + 1) % 5, 100);
		join(g, i, i + 5, 100);
		join(g, i + 5, (i + 2) % 5 + 5, 100);
	}
	return g;
}

/* ---- plain checks ------------------------------------------------------- */

/* Is each ring all ranks once, from rank 0? */
static bool rings_good(const struct plan_graph *g, const struct plan_rings *r)
{
	uint32_t k, i, rank;
	bool good = r->nrings > 0;

	for (k = 0; k < r->nrings; k++) {
		bool *seen = calloc(g->nranks, sizeof(*seen));

		good = good && !r->order[k * g->nranks];
		for (i = 0; i < g->nranks; i++) {
			rank = r->order[k * g->nranks + i];
			good = good && rank < g->nranks && !seen[rank];
			if (rank < g->nranks)
				seen[rank] = true;
		}
		free(seen);
	}
	return good;
}

static uint32_t next_in_ring(const struct plan_graph *g, const uint32_t *order,
			     uint32_t rank)
{
	uint32_t i;

	for (i = 0; order[i] != rank; i++)
		;
	return order[(i + 1) % g->nranks];
}

/* Play one chunk with sets of ranks; up to 64 of them. */
static bool chunk_good(const struct plan_graph *g, const struct plan_rings *r,
		       const struct plan_chunk *c)
{
	const struct plan_schedule *s = r->schedule;
	bool adds = s->collective != PLAN_ALL_GATHER &&
		    s->collective != PLAN_BROADCAST;
	uint64_t all = g->nranks == 64 ? ~0ull : (1ull << g->nranks) - 1, k;
	uint64_t have[64] = { 0 };
	bool good = true;
	uint32_t i;

	for (i = 0; i < g->nranks; i++)
		have[i] = adds ? 1ull << i : 0;
	if (!adds)
		have[s->nshards > 1 ? c->shard : s->root] = all;
	for (k = c->first; k < c->first + c->ntransfers; k++) {
		const struct plan_route *way =
			&s->routes[s->transfers[k].route];

		good = good && have[way->from] &&
		       way->to == next_in_ring(g, r->order +
					       c->tree * g->nranks, way->from);
		if (s->transfers[k].reduce) {
			good = good && !(have[way->to] & have[way->from]);
			have[way->to] |= have[way->from];
		} else {
			have[way->to] = have[way->from];
		}
	}
	for (i = 0; i < g->nranks; i++)
		if (s->collective == PLAN_REDUCE_SCATTER ? i == c->shard :
		    s->collective == PLAN_REDUCE ? i == s->root : true)
			good = good && have[i] == all;
	return good;
}

static bool schedule_good(const struct plan_graph *g,
			  const struct plan_rings *r)
{
	uint64_t i;

	for (i = 0; i < r->schedule->nchunks; i++)
		if (!chunk_good(g, r, &r->schedule->chunks[i]))
			return false;
	return true;
}

/*
 * Is busbw what the hops' routes make it: rings times the least of capacity
 * over hops?
 */
static bool rate_good(const struct plan_graph *g, const struct plan_rings *r)
{
	const struct plan_schedule *s = r->schedule;
	uint64_t *hops = calloc(g->nedges, sizeof(*hops)), i, k, e;
	bool *seen = calloc(s->nroutes * r->nrings, sizeof(*seen));
	struct plan_ratio least = { 0, 1 }, x;

	for (i = 0; i < s->nchunks; i++)
		for (k = 0; k < s->chunks[i].ntransfers; k++)
			seen[s->transfers[s->chunks[i].first + k].route *
			     r->nrings + s->chunks[i].tree] = true;
	for (i = 0; i < s->nroutes * r->nrings; i++)
		for (k = 0; seen[i] && k < s->routes[i / r->nrings].nedges; k++)
			hops[s->route_edges[s->routes[i / r->nrings].first +
					    k]]++;
	for (e = 0; e < g->nedges; e++) {
		x = plan_ratio(g->edges[e].capacity * r->nrings,
			       hops[e] ? hops[e] : 1);
		if (hops[e] && (!least.num || plan_ratio_compare(x, least) < 0))
			least = x;
	}
	free(seen);
	free(hops);
	return !plan_ratio_compare(least, r->busbw);
}

/* Do the edges of the cut bound what is inside, with the bound as capacity? */
static bool cut_good(const struct plan_graph *g, const struct plan_rings *r)
{
	uint64_t capacity = 0;
	uint32_t i, n = 0, inside = 0;

	for (i = 0; i < g->nedges; i++)
		if (r->cut.inside[g->edges[i].from] &&
		    !r->cut.inside[g->edges[i].to]) {
			capacity += g->edges[i].capacity;
			if (n >= r->cut.nedges || r->cut.edges[n] != i)
				return false;
			n++;
		}
	for (i = 0; i < g->nranks; i++)
		inside += r->cut.inside[g->gpus[i]];
	return n == r->cut.nedges && capacity == r->cut.capacity &&
	       !plan_ratio_compare(plan_ratio(capacity, 1), r->bound) &&
	       inside == r->cut.ninside && inside && inside < g->nranks;
}

static bool all_good(const struct plan_graph *g, const struct plan_rings *r)
{
	return rings_good(g, r) && schedule_good(g, r) && rate_good(g, r) &&
	       cut_good(g, r) && plan_ratio_compare(r->busbw, r->bound) <= 0 &&
	       r->proved == !plan_ratio_compare(r->busbw, r->bound);
}

/* ---- known graphs ------------------------------------------------------- */

/* @mbps: of all rings; 0: only say whether it is proved. Frees @g. */
static void expect(const char *name, struct plan_graph *g, uint64_t mbps,
		   bool proved)
{
	enum plan_collective c;
	struct plan_error e = { 0 };
	struct plan_rings r;
	int err;

	for (c = PLAN_ALL_GATHER; c < PLAN_COLLECTIVES; c++) {
		err = plan_rings(g, c, g->nranks - 1, NULL, &r, &e);
		ok(!err && all_good(g, &r) && r.proved == proved &&
		   (!mbps || r.busbw.num == mbps * r.busbw.den),
		   "%s, %s: %u rings of together %.0f MB/s%s%s", name,
		   plan_collective_name(c), err ? 0 : r.nrings,
		   err ? 0.0 : plan_ratio_value(r.busbw),
		   proved ? ", proved" : "", err ? e.text : "");
		if (!err)
			plan_rings_free(&r);
	}
	plan_graph_free(g);
}

static void known(void)
{
	expect("two GPUs", mesh(2), 48000, true);
	expect("star", star(5), 100, true);
	expect("hypercube of 16", cube(4), 400, true);
	expect("full mesh of 7", mesh(7), 6 * 48000, true);
	expect("full mesh of 8", mesh(8), 7 * 48000, true);
	expect("torus", torus(3, 5), 400, true);
	expect("two switches, 16 GPUs", fabric_columbas(&(struct fabric_shape){
		.boxes = 2, .gpus = 8, .uplinks = 4, .switches = 2,
		.pattern = FABRIC_STRIPED, .mesh = 48000, .link = 27000,
		.isl = 27000 }), 108000, true);
	expect("two servers with NVSwitch", fabric_dgx(2, 2, 450000, 50000),
	       400000, true);
}

/* A chain along a circle needs no way back, but then one direction is left. */
static void circles(void)
{
	struct plan_graph *g = circle(8);
	struct plan_rings r;

	ok(!plan_rings(g, PLAN_ALL_REDUCE, 0, NULL, &r, NULL) && r.nrings == 2
	   && r.busbw.num == 200 && r.proved && all_good(g, &r),
	   "a circle has a ring each way");
	plan_rings_free(&r);
	ok(!plan_rings(g, PLAN_BROADCAST, 3, NULL, &r, NULL) && r.proved &&
	   all_good(g, &r), "and a chain each way");
	plan_rings_free(&r);
	plan_graph_free(g);
}

static void wirings(void)
{
	static const struct {
		const char *name;
		uint32_t rings;
		uint64_t mbps;
	} of[] = {
		{ "1s-1rp-std-cascade", 2, 54000 },
		{ "1s-2rp-std-cascade", 2, 27000 },
		{ "1s-2rp-split-cascade", 2, 54000 },
		{ "2s-2rp-std-flat", 4, 27000 },
		{ "2s-2rp-split-flat", 4, 108000 },
	};
	struct plan_graph *g;
	struct plan_rings r;
	char path[128];
	size_t i;

	for (i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		snprintf(path, sizeof(path), "topologies/%s.topo", of[i].name);
		g = plan_graph_read(path, NULL, NULL);
		ok(g && !plan_rings(g, PLAN_ALL_REDUCE, 0, NULL, &r, NULL) &&
		   all_good(g, &r) && r.proved && r.nrings == of[i].rings &&
		   r.busbw.num == of[i].mbps, "%s: %u rings, proved",
		   of[i].name, of[i].rings);
		if (g)
			plan_rings_free(&r);
		plan_graph_free(g);
	}
}

/* ---- what cannot be ----------------------------------------------------- */

static void not_proved(void)
{
	struct plan_graph *g = gpus(4, 0);
	struct plan_error e = { 0 };
	struct plan_rings r;
	uint32_t i;

	/* of 27 and 48 only whole rings count: 25 rings of 3, not 4 of 13.5 */
	plan_graph_add_node(g, PLAN_PCI_SWITCH, "a", 0, NULL);
	plan_graph_add_node(g, PLAN_PCI_SWITCH, "b", 0, NULL);
	for (i = 0; i < 4; i++) {
		join(g, i, 4, 27000);
		join(g, i, 5, 48000);
	}
	ok(!plan_rings(g, PLAN_ALL_GATHER, 0, &(struct plan_ring_options){
		.rings = 4 }, &r, &e) && all_good(g, &r) && !r.proved &&
	   r.nrings == 1 && r.busbw.num == 48000 && r.bound.num == 75000,
	   "routes are the widest alone, and 48 of 75 GB/s are not proved");
	plan_rings_free(&r);
	plan_graph_free(g);

	g = mesh(4);	/* its arcs are no 3 disjoint rings (Tillson) */
	ok(!plan_rings(g, PLAN_ALL_GATHER, 0, &(struct plan_ring_options){
		.rings = 3 }, &r, &e) && all_good(g, &r) && !r.proved &&
	   r.busbw.num == 96000, "3 rings in a mesh of 4 are not the best");
	plan_rings_free(&r);
	ok(!plan_rings(g, PLAN_ALL_GATHER, 0, NULL, &r, &e) && r.nrings == 6 &&
	   r.proved, "but 6 are");
	plan_rings_free(&r);
	plan_graph_free(g);
}

static void none(void)
{
	struct plan_graph *g = petersen();
	struct plan_error e = { 0 };
	struct plan_rings r = { .nrings = 77 };

	ok(plan_rings(g, PLAN_ALL_GATHER, 0, NULL, &r, &e) == -EINVAL &&
	   r.nrings == 77, "Petersen's graph has no ring");
	has(e.text, "there is no ring through all 10 GPUs");
	ok(plan_rings(g, PLAN_BROADCAST, 10, NULL, &r, &e) == -EINVAL,
	   "a root has to be there");
	has(e.text, "no rank 10");
	plan_graph_free(g);

	g = gpus(3, 0);
	join(g, 0, 1, 100);
	join(g, 1, 2, 100);
	ok(plan_rings(g, PLAN_ALL_GATHER, 0, NULL, &r, &e) == -EINVAL,
	   "a line has no ring");
	has(e.text, "gpu0: it has routes to gpu1 alone");
	ok(!plan_rings(g, PLAN_BROADCAST, 0, NULL, &r, &e) && r.proved &&
	   all_good(g, &r), "but a chain from its end");
	plan_rings_free(&r);
	plan_graph_free(g);
}

/* ---- given -------------------------------------------------------------- */

static void given(void)
{
	static const uint32_t order[] = { 3, 4, 5, 6, 7, 0, 1, 2,
					  0, 7, 6, 5, 4, 3, 2, 1 };
	uint32_t bad[8] = { 0, 1, 2, 3, 4, 5, 6, 6 };
	struct plan_graph *g = circle(8);
	struct plan_error e = { 0 };
	struct plan_rings r = { 0 };

	ok(!plan_rings_given(g, PLAN_ALL_REDUCE, 0, order, 2, &r, &e) &&
	   all_good(g, &r) && r.proved && r.busbw.num == 200 &&
	   r.order[7] == 7, "both ways round a circle, from rank 0");
	plan_rings_free(&r);
	ok(!plan_rings_given(g, PLAN_ALL_GATHER, 0, order, 1, &r, &e) &&
	   all_good(g, &r) && !r.proved && r.busbw.num == 100,
	   "one of them is half of it");
	plan_rings_free(&r);
	ok(plan_rings_given(g, PLAN_ALL_GATHER, 0, bad, 1, &r, &e) == -EINVAL,
	   "a rank twice");
	has(e.text, "ring 0 visits rank 6 (gpu6) twice");
	bad[7] = 8;
	ok(plan_rings_given(g, PLAN_ALL_GATHER, 0, bad, 1, &r, &e) == -EINVAL,
	   "a rank that is not there");
	has(e.text, "ring 0: there is no rank 8");
	bad[7] = 5;
	bad[5] = 7;
	ok(plan_rings_given(g, PLAN_ALL_GATHER, 0, bad, 1, &r, &e) == -EINVAL,
	   "a hop without a link");
	has(e.text, "no route from rank 4 (gpu4) to rank 7 (gpu7)");
	ok(plan_rings_given(g, PLAN_ALL_GATHER, 0, bad, 0, &r, &e) == -EINVAL,
	   "no rings");
	has(e.text, "0 rings");
	plan_graph_free(g);
}

/* ---- at random ---------------------------------------------------------- */

static uint64_t state = 1;

static uint32_t below(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 33) % n;
}

static struct plan_graph *random_graph(void)
{
	uint32_t n = 2 + below(4), switches = below(3), i, k;
	struct plan_graph *g = gpus(n, PLAN_NONE);
	char name[16];

	for (i = 0; i < switches; i++) {
		snprintf(name, sizeof(name), "switch%u", i);
		plan_graph_add_node(g, PLAN_PCI_SWITCH, name, PLAN_NONE, NULL);
	}
	for (i = 0; i < g->nnodes; i++)
		for (k = 0; k < i; k++)
			if (below(3))
				join(g, i, k, 1 + below(9));
	for (i = 0; i < n; i++)	/* one-way links between GPUs are allowed */
		if (!below(3))
			plan_graph_add_edge(g, i, (i + 1) % n, 1 + below(9), 1,
					    PLAN_XGMI, NULL);
	return g;
}

/* The least cut over all sets of nodes, with a rank inside and one outside. */
static uint64_t least_cut(const struct plan_graph *g)
{
	uint64_t least = UINT64_MAX, capacity;
	uint32_t set, ranks = (1u << g->nranks) - 1, i;	/* the first nodes */

	for (set = 1; set < 1u << g->nnodes; set++) {
		if (!(set & ranks) || (set & ranks) == ranks)
			continue;
		for (capacity = 0, i = 0; i < g->nedges; i++)
			if (set >> g->edges[i].from & 1 &&
			    !(set >> g->edges[i].to & 1))
				capacity += g->edges[i].capacity;
		if (capacity < least)
			least = capacity;
	}
	return least;
}

/* One direction of each hop is enough: try all orders of up to 5 ranks. */
static bool some_ring(const struct plan_graph *g, uint32_t *order, uint32_t at)
{
	struct plan_rings r;
	uint32_t i, x;

	if (at == g->nranks) {
		if (plan_rings_given(g, PLAN_ALL_GATHER, 0, order, 1, &r, NULL))
			return false;
		plan_rings_free(&r);
		return true;
	}
	for (i = at; i < g->nranks; i++) {
		x = order[at];
		order[at] = order[i];
		order[i] = x;
		if (some_ring(g, order, at + 1))
			return true;
		x = order[at];
		order[at] = order[i];
		order[i] = x;
	}
	return false;
}

static void at_random(void)
{
	uint32_t i, n = 0, wrong = 0, proved = 0, none_there = 0;
	uint32_t order[5];
	struct plan_graph *g;
	struct plan_rings r;
	int err;

	for (i = 0; i < 150; i++) {
		g = random_graph();
		if (!plan_graph_check(g, NULL)) {
			err = plan_rings(g, PLAN_ALL_GATHER, 0, NULL, &r, NULL);
			n++;
			memcpy(order, (uint32_t[]){ 0, 1, 2, 3, 4 },
			       sizeof(order));
			if (err) {
				none_there++;
				wrong += some_ring(g, order, 1);
			} else {
				wrong += !all_good(g, &r) ||
					 r.bound.num != least_cut(g);
				proved += r.proved;
				plan_rings_free(&r);
			}
		}
		plan_graph_free(g);
	}
	ok(n > 50 && !wrong && none_there,
	   "%u random graphs: rings, rate and least cut (%u proved), %u without",
	   n, proved, none_there);
}

/* A pool that holds few ways gives the same as one that holds all. */
static void forgotten(void)
{
	struct plan_graph *g = plan_graph_read("topologies/2s-2rp-split-flat"
					       ".topo", NULL, NULL);
	struct plan_ring_paths all, few;
	struct plan_ring_path x, y;
	uint32_t u, v, same = 0, round;

	ok(!plan_ring_paths_init(&all, g) && !plan_ring_paths_init(&few, g) &&
	   few.most == PLAN_PATHS_POOL, "256 MiB of paths at most");
	few.most = 300;
	for (round = 0; round < 2; round++)
		for (u = 0; u < g->nranks; u++)
			for (v = 0; v < g->nranks; v++) {
				if (u == v)
					continue;
				x = plan_ring_paths_of(&all, u, v);
				y = plan_ring_paths_of(&few, u, v);
				same += x.count && x.count == y.count &&
					x.length == y.length &&
					!memcmp(x.edges, y.edges, x.count *
						x.length * sizeof(*x.edges));
			}
	ok(same == 2 * g->nranks * (g->nranks - 1), "%u ways are the same",
	   same);
	ok(few.turnovers > 10 && few.room == 300 && few.npool <= 300 &&
	   !all.turnovers, "%u times forgotten", few.turnovers);
	plan_ring_paths_free(&all);
	plan_ring_paths_free(&few);
	plan_graph_free(g);
}

static void deterministic(void)
{
	struct plan_graph *g = cube(3);
	struct plan_rings a, b;

	plan_rings(g, PLAN_ALL_GATHER, 0, NULL, &a, NULL);
	plan_rings(g, PLAN_ALL_GATHER, 0, NULL, &b, NULL);
	ok(a.nrings == b.nrings &&
	   !memcmp(a.order, b.order, a.nrings * 8 * sizeof(*a.order)),
	   "the same rings each time");
	plan_rings_free(&a);
	plan_rings_free(&b);
	plan_graph_free(g);
}

int main(void)
{
	known();
	circles();
	wirings();
	not_proved();
	none();
	given();
	at_random();
	forgotten();
	deterministic();
	return tap_done();
}
