// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The simulator against what can be worked out by hand: closed forms of rings
 * and trees, limits for large and for small messages, sharing by several jobs.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "plan/optimum.h"
#include "plan/simulate.h"
#include "random.h"
#include "tests/tap.h"

#define MIB	(1ull << 20)
#define US	1e-6

static bool near(double a, double b, double within)
{
	return fabs(a - b) <= within * fabs(b);
}

/* GPUs in a circle: edge r from rank r to the next, 10 GB/s, 1 us. */
static struct plan_graph *circle(uint32_t n)
{
	struct plan_graph *g = plan_graph_new("circle");
	char name[16];
	uint32_t i;

	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "g%u", i);
		plan_graph_add_node(g, PLAN_GPU, name, 0, NULL);
	}
	for (i = 0; i < n; i++)
		plan_graph_add_edge(g, i, (i + 1) % n, 10000, 1000, PLAN_XGMI,
				    NULL);
	return g;
}

/* GPUs on one switch: edges 2r up and 2r + 1 down. */
static struct plan_graph *star(uint32_t n, uint64_t capacity)
{
	struct plan_graph *g = plan_graph_new("star");
	char name[16];
	uint32_t i;

	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "g%u", i);
		plan_graph_add_node(g, PLAN_GPU, name, 0, NULL);
	}
	plan_graph_add_node(g, PLAN_GPU_SWITCH, "s", 0, NULL);
	for (i = 0; i < n; i++)
		plan_graph_add_link(g, i, n, capacity, 500, PLAN_NVLINK, NULL);
	return g;
}

static void transfer(struct plan_schedule *s, const struct plan_graph *g,
		     const uint32_t *edges, uint32_t n, bool reduce)
{
	plan_schedule_transfer(s, (uint32_t)plan_schedule_route(s, g, edges,
								n), reduce);
}

/* Step @i of a ring from rank @r on: on a circle, or through a star. */
static void ring_step(struct plan_schedule *s, const struct plan_graph *g,
		      uint32_t r, uint32_t i, bool reduce)
{
	uint32_t n = g->nranks, from = (r + i) % n, to = (r + i + 1) % n;
	uint32_t through[2] = { 2 * from, 2 * to + 1 };

	if (g->nnodes == n)
		transfer(s, g, &from, 1, reduce);
	else
		transfer(s, g, through, 2, reduce);
}

static struct plan_schedule *ring(const struct plan_graph *g,
				  enum plan_collective c)
{
	uint32_t n = g->nranks, r, i, nchunks = c == PLAN_BROADCAST ? 1 : n;
	struct plan_schedule *s = plan_schedule_new(c, n, 0);

	for (r = 0; r < nchunks; r++) {
		plan_schedule_chunk(s, c == PLAN_ALL_GATHER ? r : 0, 0, 1);
		for (i = 0; c == PLAN_ALL_REDUCE && i < n - 1; i++)
			ring_step(s, g, r + 1, i, true);
		for (i = 0; i < n - 1; i++)
			ring_step(s, g, r, i, false);
	}
	plan_schedule_finish(s);
	return s;
}

/* One chunk over one route. */
static struct plan_schedule *over(const struct plan_graph *g,
				  const uint32_t *edges, uint32_t n)
{
	struct plan_schedule *s = plan_schedule_new(PLAN_BROADCAST, g->nranks,
						    0);

	plan_schedule_chunk(s, 0, 0, 1);
	transfer(s, g, edges, n, false);
	plan_schedule_finish(s);
	return s;
}

static double seconds(const struct plan_graph *g, const struct plan_schedule *s,
		      uint64_t bytes, struct plan_timing t)
{
	struct plan_job job = { s, bytes, 0 };
	struct plan_error e = { 0 };
	struct plan_played out;

	if (!plan_simulate(g, &job, 1, &t, &out, NULL, &e))
		return out.seconds;
	printf("# %s\n", e.text);
	return NAN;
}

static struct plan_timing no_overhead(uint64_t piece)
{
	return (struct plan_timing){ .piece_bytes = piece, .window = 8 };
}

/* T = start + (n - 1) (piece + latency + notice + M / n B), one piece each. */
static void closed_forms(void)
{
	struct plan_timing t = { .start = 8 * US, .piece = 2 * US,
				 .notice = 3 * US, .piece_bytes = 1 << 30,
				 .window = 1 };
	struct plan_graph *g = circle(8);
	struct plan_schedule *ag = ring(g, PLAN_ALL_GATHER);
	struct plan_schedule *ar = ring(g, PLAN_ALL_REDUCE);
	struct plan_schedule *bc = ring(g, PLAN_BROADCAST);
	double alpha = 6 * US, piece;

	ok(near(seconds(g, ag, 8 * MIB, t), 8 * US + 7 * (alpha + 1.048576e-4),
		1e-3), "all-gather on a ring: (n - 1)(alpha + M / nB)");
	ok(near(seconds(g, ar, 8 * MIB, t), 8 * US + 14 * (alpha + 1.048576e-4),
		1e-3), "all-reduce on a ring: 2 (n - 1)(alpha + M / nB)");
	ok(near(seconds(g, ar, 0, t), 8 * US + 14 * alpha, 1e-6),
	   "of no bytes: 2 (n - 1) alpha");
	/* P pieces over n - 1 hops: P - 1 at the hop's pace, one all the way. */
	t.piece_bytes = 1 << 20;
	t.window = 8;
	piece = 2 * US + 1.048576e-4;
	ok(near(seconds(g, bc, 16 * MIB, t), 8 * US + 15 * piece +
		7 * (piece + 4 * US), 1e-3),
	   "broadcast in P pieces: (P - 1) + (n - 1) of them");
	plan_schedule_free(ag);
	plan_schedule_free(ar);
	plan_schedule_free(bc);
	plan_graph_free(g);
}

/* Never above the links' rate, and towards it. */
static void bounds(void)
{
	static const enum plan_collective c[] = { PLAN_ALL_GATHER,
		PLAN_ALL_REDUCE, PLAN_BROADCAST };
	struct plan_timing t = plan_timing_default();
	struct plan_graph *g = circle(8);
	struct plan_ratio rate;
	uint64_t bytes;
	uint32_t i;

	for (i = 0; i < 3; i++) {
		struct plan_schedule *s = ring(g, c[i]);
		double got = 0, last = 0, most;
		bool above = false, less = false;

		plan_schedule_rate(s, g, &rate, NULL);
		most = plan_ratio_value(rate) * 1e6;
		for (bytes = 1024; bytes <= 4096 * MIB; bytes *= 4) {
			got = (double)bytes / seconds(g, s, bytes, t);
			above |= !(got <= most);
			less |= got < last;
			last = got;
		}
		ok(!above && !less && got > 0.9 * most,
		   "%s: more with size, never above the links' rate",
		   plan_collective_name(c[i]));
		got = (double)(64 * MIB) /
		      seconds(g, s, 64 * MIB, no_overhead(64 << 10));
		ok(got <= most * (1 + 1e-9) && got > 0.95 * most,
		   "%s: without overheads, the links' rate",
		   plan_collective_name(c[i]));
		plan_schedule_free(s);
	}
	plan_graph_free(g);
}

/* A piece waits for all that reduces into it; a limit to reductions holds. */
static void reductions(void)
{
	struct plan_graph *g = star(4, 10000);
	struct plan_schedule *s = plan_schedule_new(PLAN_REDUCE, 4, 0);
	struct plan_timing t = no_overhead(1 << 30);
	uint32_t r;

	plan_schedule_chunk(s, 0, 0, 1);
	for (r = 2; r < 4; r++)
		transfer(s, g, (uint32_t[]){ 2 * r, 3 }, 2, true);
	transfer(s, g, (uint32_t[]){ 2, 1 }, 2, true);
	plan_schedule_finish(s);
	/* Two at half rate into rank 1, then one whole into rank 0. */
	ok(near(seconds(g, s, 10000000, t), 2e-3 + 1e-3 + 2 * US, 1e-6),
	   "a sum is sent when both its parts have come");
	t.piece_bytes = 100000;
	ok(near(seconds(g, s, 10000000, t), 2e-3 + 1e-5, 5e-3),
	   "and piece by piece");
	t.reduce = 5e9;
	ok(near(seconds(g, s, 10000000, t), 4e-3, 2e-2),
	   "a rank that reduces 5 GB/s takes so long");
	plan_schedule_free(s);
	plan_graph_free(g);
}

/* Writes after a send make a new value: what was sent first stays so. */
static void values(void)
{
	struct plan_graph *g = circle(3);
	struct plan_schedule *s = plan_schedule_new(PLAN_ALL_REDUCE, 3, 0);
	struct plan_timing t = { .piece = US, .piece_bytes = 1 << 20,
				 .window = 4 };
	uint32_t i;

	plan_schedule_chunk(s, 0, 0, 1);
	for (i = 0; i < 2; i++)
		transfer(s, g, (uint32_t[]){ i }, 1, true);
	for (i = 2; i < 4; i++)
		transfer(s, g, (uint32_t[]){ i % 3 }, 1, false);
	plan_schedule_finish(s);
	ok(near(seconds(g, s, 0, t), 4 * 2 * US, 1e-6),
	   "four steps one after the other");
	plan_schedule_free(s);
	plan_graph_free(g);
}

static void windows(void)
{
	struct plan_graph *g = circle(2);
	struct plan_schedule *s = over(g, (uint32_t[]){ 0 }, 1);
	struct plan_timing t = { .notice = 99 * US, .piece_bytes = 100000,
				 .window = 1 };

	/* 10 us of bytes, 100 us until it has arrived. */
	ok(near(seconds(g, s, 1000000, t), 10 * 110 * US, 1e-6),
	   "one piece on its way: the next one waits");
	t.window = 11;
	ok(near(seconds(g, s, 1000000, t), 200 * US, 1e-6),
	   "enough of them: the latency is paid once");
	plan_schedule_free(s);
	plan_graph_free(g);
}

/* Gaps of a channel on its own stay; several on one link fill them. */
static void gaps(void)
{
	struct plan_graph *g = star(4, 10000);
	struct plan_schedule *s[2];
	struct plan_timing t = { .piece = 10 * US, .piece_bytes = 1000000,
				 .window = 8 };
	double one, two;
	uint32_t i, r;

	for (i = 0; i < 2; i++) {
		s[i] = plan_schedule_new(PLAN_BROADCAST, 4, 0);
		for (r = 0; r <= i; r++) {
			plan_schedule_chunk(s[i], 0, r, 1);
			transfer(s[i], g, (uint32_t[]){ 0, 3 }, 2, false);
		}
		plan_schedule_finish(s[i]);
	}
	one = seconds(g, s[0], 100000000, t);
	two = seconds(g, s[1], 100000000, t);
	ok(near(one, 0.011, 1e-3), "10 us for 100 us of bytes cost a tenth");
	ok(two < 0.0106 && two > 0.01, "half as much for two channels");
	plan_schedule_free(s[0]);
	plan_schedule_free(s[1]);
	plan_graph_free(g);
}

static void several_jobs(void)
{
	struct plan_graph *g = star(4, 10000);
	struct plan_schedule *a = over(g, (uint32_t[]){ 0, 3 }, 2);
	struct plan_schedule *b = over(g, (uint32_t[]){ 4, 3 }, 2);
	struct plan_schedule *c = over(g, (uint32_t[]){ 2, 7 }, 2);
	struct plan_timing t = no_overhead(1 << 20);
	struct plan_job jobs[] = { { a, 100000000, 0 }, { b, 100000000, 0 },
				   { c, 100000000, 0 } };
	struct plan_played out[3];
	double *busy = calloc(g->nedges, sizeof(*busy));

	ok(!plan_simulate(g, jobs, 3, &t, out, busy, NULL) &&
	   near(out[0].algbw, 5, 1e-3) && near(out[1].algbw, 5, 1e-3),
	   "two jobs on one link get half each");
	ok(near(out[2].algbw, 10, 1e-3), "a job elsewhere is not disturbed");
	ok(near(busy[3], 1, 1e-3) && near(busy[0], 0.5, 1e-3) &&
	   near(busy[7], 0.5, 1e-3) && busy[1] == 0, "links in use");
	jobs[1].begin = 1;
	ok(!plan_simulate(g, jobs, 2, &t, out, NULL, NULL) &&
	   near(out[0].algbw, 10, 1e-3) && near(out[1].algbw, 10, 1e-3),
	   "one after the other, each has all");
	plan_schedule_free(a);
	plan_schedule_free(b);
	plan_schedule_free(c);
	plan_graph_free(g);
	free(busy);
}

/* Jobs on subsets of the GPUs, planned on copies of the graph. */
static void subsets(void)
{
	struct plan_graph *g = star(8, 10000), *half[2];
	struct plan_schedule *s[2];
	struct plan_job jobs[2];
	struct plan_timing t = plan_timing_default();
	struct plan_played alone, out[2];
	uint32_t i, k, from, to;

	for (i = 0; i < 2; i++) {
		uint32_t gpus[4];

		for (k = 0; k < 4; k++)
			gpus[k] = 2 * k + i;	/* 0 2 4 6, 1 3 5 7 */
		half[i] = plan_graph_copy(g);
		plan_graph_ranks(half[i], gpus, 4, NULL);
		s[i] = plan_schedule_new(PLAN_BROADCAST, 4, 0);
		plan_schedule_chunk(s[i], 0, 0, 1);
		for (k = 0; k < 3; k++) {
			from = gpus[k];
			to = gpus[k + 1];
			transfer(s[i], half[i], (uint32_t[]){ 2 * from,
				 2 * to + 1 }, 2, false);
		}
		plan_schedule_finish(s[i]);
		jobs[i] = (struct plan_job){ s[i], 32 * MIB, 0 };
	}
	ok(!plan_simulate(g, jobs, 1, &t, &alone, NULL, NULL) &&
	   !plan_simulate(g, jobs, 2, &t, out, NULL, NULL),
	   "jobs of subsets of the GPUs share a simulation");
	ok(near(out[0].seconds, alone.seconds, 1e-9) &&
	   near(out[1].seconds, alone.seconds, 1e-9),
	   "disjoint jobs do not disturb each other");
	for (i = 0; i < 2; i++) {
		plan_schedule_free(s[i]);
		plan_graph_free(half[i]);
	}
	plan_graph_free(g);
}

/*
 * Too many pieces: fewer that stand for several, at nearly the same rate. A
 * ring's hop has a link for itself, so that each piece's gap counts.
 */
static void larger_pieces(void)
{
	struct plan_graph *g = circle(16);
	struct plan_schedule *s = ring(g, PLAN_ALL_REDUCE);
	struct plan_timing t = { .piece = 1e-7, .piece_bytes = 4096,
				 .window = 8 };
	struct plan_job job = { s, 64 * MIB, 0 };
	struct plan_played few, many;
	struct plan_error e = { 0 };

	/* 480 transfers: 1,024 pieces of each are played as they are, .. */
	ok(!plan_simulate(g, &job, 1, &t, &few, NULL, &e) &&
	   few.piece_bytes == 4096, "as many pieces as were asked for");
	/* .. sixteen times as many are not. */
	job.bytes *= 16;
	ok(!plan_simulate(g, &job, 1, &t, &many, NULL, &e) &&
	   many.piece_bytes >= 16 * 4096, "larger ones where they are too many");
	ok(near(many.busbw, few.busbw, 0.01) && few.busbw < 8.1,
	   "at the same rate: %.3f and %.3f GB/s", few.busbw, many.busbw);
	plan_schedule_free(s);
	plan_graph_free(g);
}

/* Rings of two to four jobs, of too many bytes for small pieces. */
static double mix(uint64_t seed)
{
	static const enum plan_collective c[] = { PLAN_ALL_GATHER,
		PLAN_ALL_REDUCE, PLAN_BROADCAST };
	uint64_t state = seed;
	uint32_t n = 3 + random_below(&state, 14), i;
	uint32_t njobs = 2 + random_below(&state, 3);
	struct plan_graph *g = random_below(&state, 2) ? circle(n) :
			       star(n, 10000);
	struct plan_timing t = plan_timing_default();
	struct plan_played out[4];
	struct plan_job jobs[4];
	double *busy = calloc(g->nedges, sizeof(*busy)), most = 0;

	for (i = 0; i < njobs; i++)
		jobs[i] = (struct plan_job){
			ring(g, c[random_below(&state, 3)]),
			(1ull << 38) + ((uint64_t)random_below(&state, 256)
					<< 31),
			US * random_below(&state, 100) };
	if (plan_simulate(g, jobs, njobs, &t, out, busy, NULL) ||
	    out[0].piece_bytes == t.piece_bytes)
		most = NAN;
	for (i = 0; i < g->nedges; i++)
		most = busy[i] <= most ? most : busy[i];
	for (i = 0; i < njobs; i++)
		plan_schedule_free((struct plan_schedule *)jobs[i].schedule);
	plan_graph_free(g);
	free(busy);
	return most;
}

/* Of 24, the three that once came out above what links carry, and another. */
static void mixes(void)
{
	static const uint64_t seeds[] = { 5, 15, 22, 0 };
	double most = 0, one;
	uint32_t i;

	for (i = 0; i < 4; i++) {
		one = mix(seeds[i]);
		if (!(one <= 1 + 1e-9))
			printf("# mix %u: %.9f\n", i, one);
		most = one <= most ? most : one;
	}
	ok(most > 0.9 && most <= 1 + 1e-9,
	   "several jobs in large pieces: no edge is busier than always: %.9f",
	   most);
}

/* Trees of all weights: nobody is like another, all share all links. */
static void unlike(void)
{
	struct plan_timing t = plan_timing_default();
	struct plan_graph *g = random_graph(17, 8, 5);
	struct plan_optimum o = { 0 };
	struct plan_played out[2] = { 0 };
	struct plan_error e = { 0 };
	double rate, took;
	clock_t begin;
	bool good = !plan_optimum(g, PLAN_ALL_REDUCE, 0, &o, &e);
	struct plan_job jobs[2] = { { o.schedule, 1ull << 40, 0 },
				    { o.schedule, 1ull << 40, 0 } };

	begin = clock();
	ok(good && !plan_simulate(g, jobs, 2, &t, out, NULL, &e),
	   "two jobs of %llu unlike chunks %s",
	   (unsigned long long)(good ? o.schedule->nchunks : 0), e.text);
	took = (double)(clock() - begin) / CLOCKS_PER_SEC;
	rate = plan_ratio_value(o.algbw) / 1e3;
	ok(near(2 * fmin(out[0].algbw, out[1].algbw), rate, 0.02),
	   "half of %.3f GB/s: %.3f, %.3f", rate, out[0].algbw, out[1].algbw);
	/* Below 1 s; with sanitizers, on a busy machine, rather more. */
	ok(took < 8, "played in %.1f s", took);
	plan_optimum_free(&o);
	plan_graph_free(g);
}

static void too_much(void)
{
	struct plan_graph *g = circle(2);
	struct plan_schedule *s = plan_schedule_new(PLAN_BROADCAST, 2, 0);
	struct plan_timing t = plan_timing_default();
	struct plan_job job = { s, MIB, 0 };
	struct plan_played out;
	struct plan_error e = { 0 };
	uint32_t i, route;

	route = (uint32_t)plan_schedule_route(s, g, (uint32_t[]){ 0 }, 1);
	for (i = 0; i <= 1u << 24; i++) {
		if (!(i & 1023))
			plan_schedule_chunk(s, 0, 0, 1);
		plan_schedule_transfer(s, route, false);
	}
	plan_schedule_finish(s);
	ok(plan_simulate(g, &job, 1, &t, &out, NULL, &e) == -E2BIG,
	   "too many transfers");
	has(e.text, "16777217 transfers");
	plan_schedule_free(s);
	plan_graph_free(g);
}

static void refusals(void)
{
	struct plan_graph *g = circle(3), *other = circle(2);
	struct plan_schedule *s = ring(g, PLAN_ALL_GATHER);
	struct plan_schedule *raw = plan_schedule_new(PLAN_ALL_GATHER, 3, 0);
	struct plan_timing t = plan_timing_default();
	struct plan_job job = { s, MIB, 0 };
	struct plan_played out = { .seconds = 7 };
	struct plan_error e = { 0 };

	ok(plan_simulate(g, &job, 0, &t, &out, NULL, &e) == -EINVAL, "no jobs");
	ok(plan_simulate(other, &job, 1, &t, &out, NULL, &e) == -EINVAL,
	   "another graph");
	has(e.text, "none of graph circle");
	job.begin = -1;
	ok(plan_simulate(g, &job, 1, &t, &out, NULL, &e) == -EINVAL,
	   "before time began");
	job = (struct plan_job){ raw, MIB, 0 };
	ok(plan_simulate(g, &job, 1, &t, &out, NULL, &e) == -EINVAL,
	   "a schedule that is not finished");
	job.schedule = s;
	t.window = 0;
	ok(plan_simulate(g, &job, 1, &t, &out, NULL, &e) == -EINVAL,
	   "no window");
	t.window = 1;
	t.piece = NAN;
	ok(plan_simulate(g, &job, 1, &t, &out, NULL, &e) == -EINVAL,
	   "a time that is no number");
	has(e.text, "piece is nan");
	ok(out.seconds == 7, "what was to be filled in is as it was");
	t = plan_timing_default();
	job.bytes = ~0ull;
	ok(!plan_simulate(g, &job, 1, &t, &out, NULL, &e) &&
	   out.piece_bytes > t.piece_bytes, "any size: larger pieces");
	plan_schedule_free(s);
	plan_schedule_free(raw);
	plan_graph_free(g);
	plan_graph_free(other);
}

int main(void)
{
	closed_forms();
	bounds();
	reductions();
	values();
	windows();
	gaps();
	several_jobs();
	subsets();
	larger_pieces();
	mixes();
	unlike();
	too_much();
	refusals();
	return tap_done();
}
