// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A kernel that does not end before the test wants it, and everything else that
 * a rank may do meanwhile on that GPU: nothing waits for the kernel but what is
 * behind it in its stream. So communication overlaps with computing; how much is
 * a named test, which prints it.
 */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "device.h"
#include "world.h"

#define COUNT	20011u
#define AREA	((size_t)COUNT * RANKS * sizeof(uint32_t))

static const char *const algorithms[] = {
	"all:flat", "all:direct", "all:staged", "all:ring", "all:tree",
	"all:halving;all:ring", NULL,
};

#define ALGORITHMS	(sizeof(algorithms) / sizeof(*algorithms))

struct setting {
	bool hip;
	bool blocking;	/* streams that the default one waits for */
};

struct rank {
	struct world *w;
	struct gpu gpu;
	struct fabrex_comm *comms[ALGORITHMS];
	void *busy, *native;		/* with the kernel; for operations */
	struct fabrex_stream *stream, *behind;
	struct spin spin;
	uint32_t *host;
};

static char *send_area(const struct rank *r)
{
	return r->gpu.memory;
}

static char *recv_area(const struct rank *r)
{
	return r->gpu.memory + AREA;
}

static void open_rank(struct rank *r, struct world *w)
{
	const struct setting *s = w->arg;
	uint32_t i;

	memset(r, 0, sizeof(*r));
	r->w = w;
	for (i = 0; i < ALGORITHMS; i++)
		r->comms[i] = world_comm(w, algorithms[i]);
	if (s->hip)
		gpu_hip(&r->gpu, 2 * AREA);
	else
		gpu_cuda(&r->gpu, 2 * AREA);
	gpu_kernels(&r->gpu);
	r->host = malloc(AREA);
	CHECK(r->host);
	for (i = 0; i < AREA / sizeof(*r->host); i++)
		r->host[i] = w->rank + 1;
	gpu_put(&r->gpu, send_area(r), r->host, AREA);
	gpu_stream_sync(&r->gpu, NULL);
	r->busy = s->blocking ? gpu_stream_blocking(&r->gpu) :
				gpu_stream(&r->gpu);
	r->native = s->blocking ? gpu_stream_blocking(&r->gpu) :
				  gpu_stream(&r->gpu);
	r->stream = gpu_stream_known(&r->gpu, r->native);
	r->behind = gpu_stream_known(&r->gpu, r->busy);
}

static void close_rank(struct rank *r)
{
	uint32_t i;

	fabrex_stream_destroy(r->stream);
	fabrex_stream_destroy(r->behind);
	gpu_stream_end(&r->gpu, r->native);
	gpu_stream_end(&r->gpu, r->busy);
	for (i = 0; i < ALGORITHMS; i++)
		fabrex_comm_destroy(r->comms[i]);
	free(r->host);
}

/* ---- what goes on meanwhile -------------------------------------------- */

static void sizes(const struct rank *r, struct fabrex_collective *what,
		  uint64_t *counts)
{
	uint32_t i;

	for (i = 0; i < r->w->size; i++)
		counts[i] = COUNT / (i + 1);
	what->recv_counts = counts;
	what->count = 0;
	if (what->kind == FABREX_ALL_GATHERV)
		what->count = counts[r->w->rank];
	if (what->kind != FABREX_ALL_TO_ALLV)
		return;
	/* All send and get the same. */
	for (i = 0; i < r->w->size; i++)
		counts[i] = COUNT / 2;
	what->send_counts = counts;
}

/* The first and the last element of the first block. */
static void check(const struct rank *r, const struct fabrex_collective *what)
{
	uint32_t n = r->w->size, sum = n * (n + 1) / 2, expected = 1, at;

	if (what->kind == FABREX_REDUCE && r->w->rank)
		return;
	if (what->op)
		expected = sum;
	gpu_stream_get(&r->gpu, r->native, r->host, recv_area(r), AREA);
	gpu_stream_sync(&r->gpu, r->native);
	at = what->recv_counts ? (uint32_t)what->recv_counts[
			what->kind == FABREX_REDUCE_SCATTERV ? r->w->rank : 0] :
			(uint32_t)what->count;
	CHECK_EQ(r->host[0], expected);
	CHECK_EQ(r->host[at - 1], expected);
}

/* In the other stream, started, or called. */
static void perform(struct rank *r, struct fabrex_comm *comm,
		    const struct fabrex_collective *what, uint32_t way)
{
	struct fabrex_coll *coll;

	if (way < 2) {
		CHECK_EQ(fabrex_coll_enqueue(comm, what, sizeof(*what),
					     r->stream, NULL), 0);
		if (way)
			CHECK_EQ(fabrex_stream_wait(r->stream, -1), 0);
		else
			gpu_stream_sync(&r->gpu, r->native);
		return;
	}
	CHECK_EQ(fabrex_coll_start(comm, what, sizeof(*what), &coll), 0);
	CHECK_EQ(fabrex_coll_wait(coll, -1), 0);
}

static void one(struct rank *r, uint32_t algorithm, uint32_t kind, uint32_t way)
{
	uint64_t counts[RANKS];
	struct fabrex_collective what = {
		.kind = kind, .type = FABREX_UINT32, .send = send_area(r),
		.recv = recv_area(r), .count = COUNT,
	};

	test_note("%s, kind %u, way %u",
		  algorithms[algorithm] ? algorithms[algorithm] : "default",
		  kind, way);
	if (kind == FABREX_BARRIER) {
		CHECK_EQ(fabrex_barrier_enqueue(r->comms[algorithm],
						r->stream), 0);
		gpu_stream_sync(&r->gpu, r->native);
		return;
	}
	if (reduces(kind) || kind == FABREX_REDUCE_SCATTERV)
		what.op = FABREX_SUM;
	if (kind >= FABREX_ALL_GATHERV)
		sizes(r, &what, counts);
	perform(r, r->comms[algorithm], &what, way);
	check(r, &what);
}

static bool is_pair(uint32_t kind)
{
	return kind == FABREX_SEND || kind == FABREX_RECV;
}

/*
 * The first operations of each communicator, too, with all that is made for
 * them. Then the kernel still runs, and what is behind it has not begun.
 */
static void long_work(struct world *w)
{
	struct fabrex_comm *last;
	uint32_t i, kind;
	struct rank r;

	open_rank(&r, w);
	last = r.comms[ALGORITHMS - 1];
	gpu_stream_spin(&r.gpu, r.busy, &r.spin);
	spin_await(&r.spin);
	CHECK_EQ(fabrex_barrier_enqueue(w->comm, r.behind), 0);
	for (i = 0; i < ALGORITHMS; i++)
		for (kind = FABREX_ALL_REDUCE; kind <= FABREX_ALL_TO_ALLV;
		     kind++)
			if (!is_pair(kind))
				one(&r, i, kind, (i + kind) % 3);
	CHECK_EQ(fabrex_stream_wait(r.behind, 0), -ETIMEDOUT);
	CHECK_EQ(*r.spin.end, 0);
	/* All have come so far while all the kernels ran. */
	CHECK_EQ(fabrex_barrier(last), 0);
	spin_end(&r.spin);
	CHECK_EQ(fabrex_stream_wait(r.behind, -1), 0);
	close_rank(&r);
}

TEST(long_kernels_delay_nothing)
{
	static const struct setting settings[] = {
		{ .hip = false }, { .hip = true },
		{ .blocking = true }, { .hip = true, .blocking = true },
	};
	uint32_t i;

	for (i = 0; i < 4; i++)
		world_run(i % 2 ? 2 : 3, long_work, &settings[i]);
	world_run_far(3, long_work, &settings[0]);
	world_run_far(2, long_work, &settings[1]);
}

/* ---- behind the default stream ------------------------------------------ */

/*
 * A kernel in the default stream holds up the blocking streams, as the runtimes
 * document it, and nothing else: neither non-blocking streams, nor what is
 * performed without any.
 */
static void default_work(struct world *w)
{
	struct fabrex_stream *free_stream;
	struct rank r;
	void *other;

	open_rank(&r, w);
	other = gpu_stream(&r.gpu);
	free_stream = gpu_stream_known(&r.gpu, other);
	gpu_stream_spin(&r.gpu, NULL, &r.spin);
	spin_await(&r.spin);
	CHECK_EQ(fabrex_barrier_enqueue(r.comms[0], r.stream), 0);
	CHECK_EQ(fabrex_all_reduce_enqueue(r.comms[3], send_area(&r),
					   recv_area(&r), COUNT, FABREX_UINT32,
					   FABREX_SUM, free_stream), 0);
	gpu_stream_sync(&r.gpu, other);
	CHECK_EQ(fabrex_all_reduce(r.comms[4], send_area(&r), recv_area(&r),
				   COUNT, FABREX_UINT32, FABREX_SUM), 0);
	CHECK_EQ(fabrex_barrier(r.comms[ALGORITHMS - 1]), 0);
	CHECK_EQ(fabrex_stream_wait(r.stream, 0), -ETIMEDOUT);
	spin_end(&r.spin);
	CHECK_EQ(fabrex_stream_wait(r.stream, -1), 0);
	fabrex_stream_destroy(free_stream);
	gpu_stream_end(&r.gpu, other);
	close_rank(&r);
}

TEST(default_streams_delay_blocking_ones_only)
{
	static const struct setting settings[] = {
		{ .blocking = true }, { .hip = true, .blocking = true },
	};

	world_run(3, default_work, &settings[0]);
	world_run(2, default_work, &settings[1]);
}

/* ---- how much ----------------------------------------------------------- */

#define TIMES	20u

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct timed {
	pthread_t thread;
	struct spin *spins;
	double seconds;		/* that each kernel takes */
};

/* Kernels that take a given time, and on a GPU of the tests no processor. */
static void *timer_main(void *arg)
{
	struct timed *t = arg;
	uint32_t i;

	for (i = 0; i < TIMES; i++) {
		spin_await(&t->spins[i]);
		usleep((useconds_t)(t->seconds * 1e6));
		spin_end(&t->spins[i]);
	}
	return NULL;
}

static double series(struct rank *r, double kernel, bool communicate)
{
	struct spin spins[TIMES];
	struct timed t = { .spins = spins, .seconds = kernel };
	double start;
	uint32_t i;

	CHECK_EQ(fabrex_barrier(r->w->comm), 0);
	start = now();
	for (i = 0; i < TIMES; i++) {
		if (kernel > 0)
			gpu_stream_spin(&r->gpu, r->busy, &spins[i]);
		if (communicate)
			CHECK_EQ(fabrex_all_reduce_enqueue(
					 r->comms[3], send_area(r),
					 recv_area(r), COUNT, FABREX_UINT32,
					 FABREX_SUM, r->stream), 0);
	}
	if (kernel > 0) {
		CHECK(!pthread_create(&t.thread, NULL, timer_main, &t));
		CHECK(!pthread_join(t.thread, NULL));
	}
	gpu_stream_sync(&r->gpu, r->busy);
	gpu_stream_sync(&r->gpu, r->native);
	return now() - start;
}

/* Kernels take as long as operations do. */
static void ratio_work(struct world *w)
{
	double alone, computing, both;
	struct rank r;

	open_rank(&r, w);
	series(&r, 0, true);
	alone = series(&r, 0, true);
	CHECK_EQ(fabrex_all_reduce(w->comm, &alone, &alone, 1, FABREX_FLOAT64,
				   FABREX_MAX), 0);
	computing = series(&r, alone / TIMES, false);
	both = series(&r, alone / TIMES, true);
	if (!w->rank)
		printf("# %u times, an all-reduce of %u bytes takes %.1f ms, computing %.1f ms, both at once %.1f ms: %.2f of their sum\n",
		       TIMES, COUNT * 4, alone * 1e3, computing * 1e3,
		       both * 1e3, both / (alone + computing));
	CHECK_EQ(fabrex_barrier(w->comm), 0);
	close_rank(&r);
}

TEST_NAMED(overlap_of_computing_and_communication)
{
	static const struct setting settings[] = {
		{ .hip = false }, { .hip = true },
	};

	world_run(2, ratio_work, &settings[0]);
	world_run(2, ratio_work, &settings[1]);
}
