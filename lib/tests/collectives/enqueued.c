// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What may happen while operations are enqueued: long work in other streams,
 * ranks that fail, communicators that are destroyed, calls that are refused.
 * And the progress thread, without which nothing of this would go on.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "device.h"
#include "world.h"

#define COUNT	5000u

/* ---- things that take as long as the test wants ------------------------ */

static void until(void *arg)
{
	atomic_bool *go = arg;

	while (!atomic_load(go))
		usleep(1000);
}

static void set(void *arg)
{
	atomic_store((atomic_bool *)arg, true);
}

static struct fabrex_stream *host_stream(void)
{
	return stream_of(FABREX_MEMORY_HOST, NULL);
}

static int32_t *ones(uint64_t count)
{
	int32_t *x = malloc(count * sizeof(*x));
	uint64_t i;

	CHECK(x);
	for (i = 0; i < count; i++)
		x[i] = 1;
	return x;
}

static int sum_enqueue(struct fabrex_comm *comm, const int32_t *send,
		       int32_t *recv, struct fabrex_stream *stream)
{
	return fabrex_all_reduce_enqueue(comm, send, recv, COUNT, FABREX_INT32,
					 FABREX_SUM, stream);
}

static void check_sum(const struct world *w, const int32_t *x)
{
	uint32_t i;

	for (i = 0; i < COUNT; i++)
		CHECK_EQ(x[i], (int32_t)w->size);
}

/* ---- other streams ----------------------------------------------------- */

/*
 * One stream has work that ends only when the test wants, and an operation of
 * its own communicator behind it: nothing else waits for that.
 */
static void long_work(struct world *w)
{
	struct fabrex_comm *other = world_comm(w, "all:ring");
	struct fabrex_stream *streams[2];
	void *native[2];
	atomic_bool go = false;
	int32_t *host = ones(2 * COUNT);
	struct gpu g;
	char *at;
	uint32_t i;

	gpu_cuda(&g, 4 * COUNT * sizeof(*host));
	at = g.memory;
	gpu_put(&g, at, host, 2 * COUNT * sizeof(*host));
	for (i = 0; i < 2; i++) {
		native[i] = gpu_stream(&g);
		streams[i] = stream_of(FABREX_MEMORY_CUDA, native[i]);
	}
	gpu_stream_call(&g, native[0], until, &go);
	CHECK_EQ(sum_enqueue(other, (void *)(at + 8 * COUNT),
			     (void *)(at + 12 * COUNT), streams[0]), 0);
	for (i = 0; i < 20; i++) {
		CHECK_EQ(sum_enqueue(w->comm, (void *)at,
				     (void *)(at + 4 * COUNT), streams[1]), 0);
		CHECK_EQ(fabrex_stream_wait(streams[1], -1), 0);
		gpu_stream_sync(&g, native[1]);
	}
	CHECK_EQ(fabrex_stream_wait(streams[0], 0), -ETIMEDOUT);
	CHECK_SAYS("has not ended within the time");
	atomic_store(&go, true);
	CHECK_EQ(fabrex_stream_wait(streams[0], -1), 0);
	gpu_get(&g, host, at + 4 * COUNT, COUNT * sizeof(*host));
	check_sum(w, host);
	for (i = 0; i < 2; i++) {
		fabrex_stream_destroy(streams[i]);
		gpu_stream_end(&g, native[i]);
	}
	fabrex_comm_destroy(other);
}

/*
 * A handle is waited for, for longer than the progress thread looks on. Then it
 * has to come back for what is enqueued: nobody calls the library any more.
 */
static void waited_work(struct world *w)
{
	int32_t *x = ones(3 * COUNT);
	struct fabrex_collective what = {
		.kind = FABREX_ALL_REDUCE, .type = FABREX_INT32,
		.op = FABREX_SUM, .send = x, .recv = x + COUNT,
		.count = COUNT,
	};
	struct fabrex_stream *stream = host_stream();
	atomic_bool done = false;
	struct fabrex_coll *coll;
	uint32_t i;

	for (i = 0; i < 2; i++) {
		atomic_store(&done, false);
		if (w->rank)
			usleep(300000);
		CHECK_EQ(fabrex_coll_start(w->comm, &what, sizeof(what),
					   &coll), 0);
		CHECK_EQ(sum_enqueue(w->comm, x, x + 2 * COUNT, stream), 0);
		CHECK_EQ(fabrex_stream_call(stream, set, &done), 0);
		CHECK_EQ(fabrex_coll_wait(coll, -1), 0);
		while (!atomic_load(&done))
			usleep(1000);
	}
	fabrex_stream_destroy(stream);
	free(x);
}

TEST(the_progress_thread_comes_back)
{
	world_run(2, waited_work, NULL);
}

/*
 * What is abandoned in one stream comes to its turn after another stream has
 * taken its place in the library.
 */
static void abandoned_work(struct world *w)
{
	struct fabrex_comm *other = world_comm(w, NULL);
	struct fabrex_stream *stream;
	void *native[2];
	atomic_bool go = false;
	struct gpu g;
	uint32_t i;

	gpu_cuda(&g, 4096);
	native[0] = gpu_stream(&g);
	native[1] = gpu_stream(&g);
	stream = stream_of(FABREX_MEMORY_CUDA, native[0]);
	gpu_stream_call(&g, native[0], until, &go);
	for (i = 0; i < 3; i++)
		CHECK_EQ(fabrex_barrier_enqueue(other, stream), 0);
	fabrex_comm_destroy(other);
	fabrex_stream_destroy(stream);
	stream = stream_of(FABREX_MEMORY_CUDA, native[1]);
	for (i = 0; i < 4; i++)
		CHECK_EQ(fabrex_barrier_enqueue(w->comm, stream), 0);
	atomic_store(&go, true);
	gpu_stream_sync(&g, native[0]);
	if (w->rank)
		usleep(20000);
	for (i = 0; i < 4; i++)
		CHECK_EQ(fabrex_barrier_enqueue(w->comm, stream), 0);
	gpu_stream_sync(&g, native[1]);
	CHECK_EQ(fabrex_stream_wait(stream, -1), 0);
	fabrex_stream_destroy(stream);
	for (i = 0; i < 2; i++)
		gpu_stream_end(&g, native[i]);
}

TEST(abandoned_operations_disturb_no_other_stream)
{
	world_run(2, abandoned_work, NULL);
}

TEST(work_in_another_stream_may_be_long)
{
	world_run(3, long_work, NULL);
}

/*
 * A rank enqueues more than a stream takes, before any of it can be performed:
 * the call that waits for room holds up nothing that makes room.
 */
static void many_work(struct world *w)
{
	struct fabrex_stream *stream;
	struct gpu g;
	void *native;
	uint32_t i;

	gpu_cuda(&g, 4096);
	native = gpu_stream(&g);
	stream = stream_of(FABREX_MEMORY_CUDA, native);
	if (!w->rank)
		usleep(200000);
	for (i = 0; i < 2000; i++) {
		if (i % 3) {
			CHECK_EQ(fabrex_barrier_enqueue(w->comm, stream), 0);
			continue;
		}
		CHECK_EQ(fabrex_group_begin(w->comm), 0);
		CHECK_EQ(fabrex_barrier_enqueue(w->comm, stream), 0);
		CHECK_EQ(fabrex_group_end(w->comm), 0);
	}
	CHECK_EQ(fabrex_stream_wait(stream, -1), 0);
	fabrex_stream_destroy(stream);
	gpu_stream_end(&g, native);
}

TEST(streams_may_be_full)
{
	world_run(2, many_work, NULL);
}

/* ---- memory that is needed meanwhile ----------------------------------- */

#define LARGEST	(1u << 18)

/*
 * Each needs more scratch memory than the one before, and is enqueued while
 * that one has not ended.
 */
static void growing_work(struct world *w)
{
	struct fabrex_comm *comm = world_comm(w, "all:tree");
	uint64_t bytes = LARGEST * sizeof(int32_t);
	struct fabrex_stream *stream;
	int32_t *host = ones(LARGEST);
	void *native;
	struct gpu g;
	uint64_t n, i;

	gpu_cuda(&g, 2 * bytes);
	gpu_put(&g, g.memory, host, bytes);
	native = gpu_stream(&g);
	stream = stream_of(FABREX_MEMORY_CUDA, native);
	for (n = 16; n <= LARGEST; n *= 4) {
		CHECK_EQ(fabrex_all_reduce_enqueue(comm, g.memory,
						   g.memory + bytes, n,
						   FABREX_INT32, FABREX_SUM,
						   stream), 0);
		gpu_stream_copy(&g, native, g.memory, g.memory + bytes,
				n * sizeof(*host));
	}
	fabrex_stream_destroy(stream);
	gpu_stream_sync(&g, native);
	gpu_get(&g, host, g.memory, bytes);
	/* Elements took part in all operations that were long enough. */
	for (i = 0; i < LARGEST; i++) {
		int32_t expected = 1;

		for (n = 16; n <= LARGEST; n *= 4)
			if (i < n)
				expected *= (int32_t)w->size;
		CHECK_EQ(host[i], expected);
	}
	gpu_stream_end(&g, native);
	fabrex_comm_destroy(comm);
}

TEST(enqueued_operations_may_need_more_memory)
{
	world_run(2, growing_work, NULL);
	world_run(5, growing_work, NULL);
}

/* ---- the progress thread ----------------------------------------------- */

/* The result appears while the program does not call the library. */
static void background_work(struct world *w)
{
	int32_t *x = ones(2 * COUNT);
	struct fabrex_collective what = {
		.kind = FABREX_ALL_REDUCE, .type = FABREX_INT32,
		.op = FABREX_SUM, .send = x, .recv = x + COUNT,
		.count = COUNT,
	};
	volatile int32_t *seen = x + COUNT;
	struct fabrex_coll *coll;
	uint32_t i, j;

	for (i = 0; i < 50; i++) {
		memset(x + COUNT, 0, COUNT * sizeof(*x));
		CHECK_EQ(fabrex_barrier(w->comm), 0);
		CHECK_EQ(fabrex_coll_start(w->comm, &what, sizeof(what),
					   &coll), 0);
		for (j = 0; j < COUNT; j++)
			while (seen[j] != (int32_t)w->size)
				usleep(10);
		CHECK_EQ(fabrex_coll_wait(coll, -1), 0);
	}
	free(x);
}

TEST(operations_go_on_without_calls)
{
	world_run(1, background_work, NULL);
	world_run(3, background_work, NULL);
	world_run_far(2, background_work, NULL);
}

/* The application's own threads are to do it all. */
static void alone_work(struct world *w)
{
	struct fabrex_comm *comm = world_comm_alone(w, NULL), *part;
	struct fabrex_stream *stream = host_stream();
	int32_t *x = ones(2 * COUNT);
	atomic_bool go;
	uint32_t i;

	CHECK_EQ(fabrex_comm_split(comm, 0, 0, &part), 0);
	for (i = 0; i < 20; i++) {
		memset(x + COUNT, 0, COUNT * sizeof(*x));
		atomic_store(&go, false);
		CHECK_EQ(fabrex_stream_call(stream, until, &go), 0);
		CHECK_EQ(sum_enqueue(i % 2 ? part : comm, x, x + COUNT, stream),
			 0);
		atomic_store(&go, true);
		usleep(2000);
		CHECK_EQ(x[2 * COUNT - 1], 0);
		CHECK_EQ(fabrex_stream_wait(stream, -1), 0);
		check_sum(w, x + COUNT);
	}
	fabrex_stream_destroy(stream);
	fabrex_comm_destroy(part);
	fabrex_comm_destroy(comm);
	free(x);
}

/* A split waits for an operation that waits for one of another communicator. */
static void split_behind_work(struct world *w)
{
	struct fabrex_comm *first = world_comm_alone(w, NULL);
	struct fabrex_comm *second = world_comm_alone(w, NULL), *part;
	struct fabrex_stream *stream = host_stream();
	int32_t *x = ones(3 * COUNT);

	CHECK_EQ(sum_enqueue(first, x, x + COUNT, stream), 0);
	CHECK_EQ(sum_enqueue(second, x, x + 2 * COUNT, stream), 0);
	CHECK_EQ(fabrex_comm_split(second, 0, 0, &part), 0);
	check_sum(w, x + COUNT);
	check_sum(w, x + 2 * COUNT);
	fabrex_stream_destroy(stream);
	fabrex_comm_destroy(part);
	fabrex_comm_destroy(second);
	fabrex_comm_destroy(first);
	free(x);
}

TEST(split_advances_other_communicators)
{
	world_run(2, split_behind_work, NULL);
}

TEST(communicators_may_do_without_the_thread)
{
	world_run(2, alone_work, NULL);
}

/* ---- groups ------------------------------------------------------------ */

/* One place in each stream; the others of the group are waited for. */
static void groups_work(struct world *w)
{
	struct fabrex_stream *a = host_stream(), *b = host_stream();
	int32_t *x = ones(4 * COUNT), *own = x + 3 * COUNT;
	atomic_bool go = false;
	uint32_t i;

	CHECK_EQ(fabrex_stream_call(a, until, &go), 0);
	own[0] = 7;
	own[1] = 0;
	CHECK_EQ(fabrex_group_begin(w->comm), 0);
	CHECK_EQ(fabrex_send_enqueue(w->comm, own, 1, FABREX_INT32, w->rank,
				     a), 0);
	CHECK_EQ(fabrex_recv_enqueue(w->comm, own + 1, 1, FABREX_INT32,
				     w->rank, b), 0);
	for (i = 0; i < w->size; i++) {
		if (i == w->rank)
			continue;
		CHECK_EQ(fabrex_send_enqueue(w->comm, x, COUNT, FABREX_INT32,
					     i, a), 0);
		CHECK_EQ(fabrex_recv_enqueue(w->comm, x + COUNT, COUNT,
					     FABREX_INT32, i, a), 0);
	}
	CHECK_EQ(fabrex_group_end(w->comm), 0);
	CHECK_EQ(own[1], 0);
	atomic_store(&go, true);
	CHECK_EQ(fabrex_stream_wait(a, -1), 0);
	CHECK_EQ(fabrex_stream_wait(b, -1), 0);
	CHECK_EQ(own[1], 7);
	for (i = 0; i < COUNT; i++)
		CHECK_EQ(x[COUNT + i], 1);
	fabrex_stream_destroy(a);
	fabrex_stream_destroy(b);
	free(x);
}

TEST(groups_may_be_enqueued)
{
	world_run(1, groups_work, NULL);
	world_run(3, groups_work, NULL);
}

/* The stream is destroyed before the group ends: its operations are performed. */
static void destroyed_in_group_work(struct world *w)
{
	struct fabrex_stream *stream = host_stream();
	int32_t *x = ones(2 * COUNT);
	struct fabrex_coll *coll;

	CHECK_EQ(fabrex_group_begin(w->comm), 0);
	CHECK_EQ(sum_enqueue(w->comm, x, x + COUNT, stream), 0);
	fabrex_stream_destroy(stream);
	CHECK_EQ(fabrex_group_end(w->comm), 0);
	CHECK_EQ(fabrex_barrier(w->comm), 0);
	check_sum(w, x + COUNT);
	/* The same for one that is abandoned. */
	stream = host_stream();
	CHECK_EQ(fabrex_group_begin(w->comm), 0);
	CHECK_EQ(fabrex_coll_enqueue(w->comm, &(struct fabrex_collective){
			.kind = FABREX_BARRIER,
		}, sizeof(struct fabrex_collective), stream, &coll), 0);
	fabrex_stream_destroy(stream);
	free(x);
}

TEST(stream_may_be_destroyed_in_a_group)
{
	world_run(2, destroyed_in_group_work, NULL);
}

/*
 * Some are enqueued, at each rank others: the order is that of the calls. And a
 * schedule that one of them may follow stays.
 */
static void mixed_work(struct world *w)
{
	struct fabrex_stream *stream = host_stream();
	int32_t *x = ones(4 * COUNT);
	uint32_t i;

	CHECK_EQ(fabrex_group_begin(w->comm), 0);
	for (i = 1; i <= 3; i++) {
		if (i % 2 == w->rank)
			CHECK_EQ(fabrex_all_reduce(w->comm, x, x + i * COUNT,
						   100 * i, FABREX_INT32,
						   FABREX_SUM), 0);
		else
			CHECK_EQ(fabrex_all_reduce_enqueue(
					 w->comm, x, x + i * COUNT, 100 * i,
					 FABREX_INT32, FABREX_SUM, stream), 0);
	}
	CHECK_EQ(fabrex_comm_schedule(w->comm, FABREX_ALL_REDUCE, NULL),
		 -EBUSY);
	CHECK_EQ(fabrex_group_end(w->comm), 0);
	CHECK_EQ(fabrex_stream_wait(stream, -1), 0);
	for (i = 1; i <= 3; i++)
		CHECK_EQ(x[i * COUNT + 100 * i - 1], (int32_t)w->size);
	fabrex_stream_destroy(stream);
	free(x);
}

TEST(groups_keep_the_order_of_the_calls)
{
	world_run(2, mixed_work, NULL);
}

/* The arrays of one with blocks belong to the caller again. */
static void blocks_work(struct world *w)
{
	struct fabrex_stream *stream = host_stream();
	uint64_t *counts = calloc(w->size, sizeof(*counts)), total = 0;
	int32_t *x = ones(COUNT), *all = ones(COUNT);
	struct fabrex_collective what = {
		.kind = FABREX_ALL_GATHERV, .type = FABREX_INT32, .send = x,
		.recv = all, .count = w->rank + 1, .recv_counts = counts,
	};
	atomic_bool go = false;
	uint32_t i;

	CHECK(counts);
	for (i = 0; i < w->size; i++) {
		counts[i] = i + 1;
		total += i + 1;
	}
	x[0] = (int32_t)w->rank + 5;
	CHECK_EQ(fabrex_stream_call(stream, until, &go), 0);
	CHECK_EQ(fabrex_coll_enqueue(w->comm, &what, sizeof(what), stream,
				     NULL), 0);
	memset(counts, 0xff, w->size * sizeof(*counts));
	atomic_store(&go, true);
	CHECK_EQ(fabrex_stream_wait(stream, -1), 0);
	CHECK_EQ(all[0], 5);
	CHECK_EQ(all[total - w->size], (int32_t)w->size + 4);
	fabrex_stream_destroy(stream);
	free(counts);
	free(all);
	free(x);
}

TEST(blocks_may_be_enqueued)
{
	world_run(3, blocks_work, NULL);
}

/* ---- failures ---------------------------------------------------------- */

/* What follows in the stream is performed, and the stream says what failed. */
static void check_goes_on(struct fabrex_stream *stream, int error)
{
	atomic_bool reached = false;

	CHECK_EQ(fabrex_stream_call(stream, set, &reached), 0);
	CHECK_EQ(fabrex_stream_wait(stream, -1), error);
	CHECK(atomic_load(&reached));
	CHECK_EQ(fabrex_stream_error(stream), error);
	CHECK_EQ(fabrex_stream_wait(stream, -1), 0);
}

/* Ranks other than 0 that have enqueued theirs. */
static const atomic_uint *count_make(void)
{
	void *count = mmap(NULL, sizeof(atomic_uint), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(count != MAP_FAILED);
	return count;
}

static void await_others(const struct world *w)
{
	const atomic_uint *count = w->arg;

	while (atomic_load(count) < w->size - 1)
		usleep(1000);
}

static void count_me(const struct world *w)
{
	atomic_fetch_add((atomic_uint *)(uintptr_t)w->arg, 1);
}

/* Rank 0 never comes: it aborts, while the others wait in their streams. */
static void aborted_work(struct world *w)
{
	struct fabrex_stream *stream = host_stream();
	atomic_bool go = false;
	int32_t *x = ones(2 * COUNT);
	struct fabrex_comm *rest;

	if (!w->rank) {
		CHECK_EQ(fabrex_stream_call(stream, until, &go), 0);
		CHECK_EQ(sum_enqueue(w->comm, x, x + COUNT, stream), 0);
		await_others(w);
		CHECK_EQ(fabrex_comm_abort(w->comm), 0);
		atomic_store(&go, true);
		check_goes_on(stream, -ECANCELED);
		CHECK_EQ(sum_enqueue(w->comm, x, x + COUNT, stream),
			 -ECANCELED);
	} else {
		CHECK_EQ(sum_enqueue(w->comm, x, x + COUNT, stream), 0);
		count_me(w);
		check_goes_on(stream, -ECONNRESET);
		CHECK_SAYS("rank 0");
		CHECK_EQ(fabrex_comm_shrink(w->comm, -1, &rest), 0);
		CHECK_EQ(fabrex_comm_size(rest), w->size - 1);
		CHECK_EQ(sum_enqueue(rest, x, x + COUNT, stream), 0);
		CHECK_EQ(fabrex_stream_wait(stream, -1), 0);
		CHECK_EQ(x[COUNT], (int32_t)w->size - 1);
		fabrex_comm_destroy(rest);
	}
	fabrex_stream_destroy(stream);
	free(x);
}

TEST(streams_go_on_after_an_abort)
{
	world_run(3, aborted_work, count_make());
	world_run_far(3, aborted_work, count_make());
}

static void dead_work(struct world *w)
{
	struct fabrex_stream *stream = host_stream();
	int32_t *x = ones(2 * COUNT);

	if (!w->rank) {
		await_others(w);
		_exit(0);
	}
	CHECK_EQ(sum_enqueue(w->comm, x, x + COUNT, stream), 0);
	count_me(w);
	check_goes_on(stream, -ECONNRESET);
	CHECK_SAYS("rank 0");
	fabrex_stream_destroy(stream);
}

TEST(streams_go_on_after_a_death)
{
	world_run(3, dead_work, count_make());
}

/* Two of them, the first in the stream last. */
static void destroyed_work(struct world *w)
{
	struct fabrex_comm *first = world_comm(w, NULL);
	struct fabrex_comm *second = world_comm(w, NULL);
	struct fabrex_stream *stream = host_stream();
	atomic_bool go = false, early = false;
	int32_t *x = ones(2 * COUNT);

	CHECK_EQ(fabrex_stream_call(stream, until, &go), 0);
	CHECK_EQ(sum_enqueue(first, x, x + COUNT, stream), 0);
	CHECK_EQ(fabrex_stream_call(stream, set, &early), 0);
	CHECK_EQ(sum_enqueue(second, x, x + COUNT, stream), 0);
	fabrex_comm_destroy(second);
	atomic_store(&go, true);
	while (!atomic_load(&early))
		usleep(1000);
	check_sum(w, x + COUNT);
	check_goes_on(stream, -ECANCELED);
	CHECK_SAYS("its communicator was destroyed");
	fabrex_stream_destroy(stream);
	fabrex_comm_destroy(first);
	free(x);
}

TEST(communicators_are_destroyed_before_their_turn)
{
	world_run(1, destroyed_work, NULL);
	world_run(2, destroyed_work, NULL);
}

/* A failed operation that leaves its communicator as it is. */
static void lengths_work(struct world *w)
{
	struct fabrex_stream *stream = host_stream();
	struct fabrex_coll *coll = NULL;
	int32_t *x = ones(2 * COUNT);
	struct fabrex_collective what = {
		.kind = FABREX_RECV, .type = FABREX_INT32, .recv = x,
		.count = 2,
	};

	if (!w->rank) {
		CHECK_EQ(fabrex_send_enqueue(w->comm, x, 1, FABREX_INT32, 1,
					     stream), 0);
		CHECK_EQ(fabrex_stream_wait(stream, -1), 0);
	} else {
		CHECK_EQ(fabrex_coll_enqueue(w->comm, &what, sizeof(what),
					     stream, &coll), 0);
		CHECK_EQ(fabrex_coll_wait(coll, -1), -EMSGSIZE);
		check_goes_on(stream, -EMSGSIZE);
		CHECK_SAYS("counts and types");
	}
	CHECK_EQ(fabrex_barrier(w->comm), 0);
	fabrex_stream_destroy(stream);
	free(x);
}

TEST(streams_tell_of_single_failures)
{
	world_run(2, lengths_work, NULL);
}

/* ---- refusals ---------------------------------------------------------- */

#define REFUSED(change, text) \
	do { \
		memset(&a, 0, sizeof(a)); \
		a.kind = FABREX_MEMORY_HOST; \
		change; \
		CHECK_EQ(fabrex_stream_create(&a, sizeof(a), &none), -EINVAL); \
		CHECK_SAYS(text); \
	} while (0)

static void refused_work(struct world *w)
{
	struct fabrex_stream *stream = host_stream(), *none = NULL;
	struct fabrex_stream_attr a;
	int32_t x = 1, y = 0;
	pid_t child;
	int status;

	REFUSED(a.native = &x, "native has to be NULL");
	REFUSED(a.kind = 99, "no streams of kind 99");
	REFUSED(a.flags = 1, "unknown flags");
	REFUSED(a.reserved[1] = 1, "reserved[1]");
	CHECK_EQ(fabrex_stream_create(NULL, 0, &none), -EINVAL);
	CHECK_EQ(fabrex_stream_create(&a, sizeof(a), NULL), -EINVAL);
	CHECK_EQ(fabrex_stream_wait(NULL, 0), -EINVAL);
	CHECK_EQ(fabrex_stream_error(NULL), -EINVAL);
	CHECK_EQ(fabrex_stream_call(stream, NULL, NULL), -EINVAL);
	CHECK_EQ(fabrex_stream_call(NULL, set, NULL), -EINVAL);
	CHECK_EQ(fabrex_barrier_enqueue(w->comm, NULL), -EINVAL);
	CHECK_SAYS("no stream");
	CHECK_EQ(fabrex_all_reduce_enqueue(w->comm, &x, &y, 1, 99, FABREX_SUM,
					   stream), -EINVAL);
	CHECK_EQ(fabrex_send_enqueue(w->comm, &x, 1, FABREX_INT32, w->rank,
				     stream), -EDEADLK);
	CHECK_SAYS("put both ends into a group");
	CHECK_EQ(fabrex_group_begin(w->comm), 0);
	CHECK_EQ(fabrex_recv_enqueue(w->comm, &y, 1, FABREX_INT32, w->rank,
				     stream), 0);
	CHECK_EQ(fabrex_group_end(w->comm), -EDEADLK);
	CHECK_SAYS("receive from this rank itself");
	child = fork();
	if (!child)
		_exit(fabrex_barrier_enqueue(w->comm, stream) != -EINVAL ||
		      fabrex_stream_wait(stream, -1) != -EINVAL);
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	fabrex_stream_destroy(NULL);
	CHECK_EQ(fabrex_barrier_enqueue(w->comm, stream), 0);
	CHECK_EQ(fabrex_stream_wait(stream, -1), 0);
	fabrex_stream_destroy(stream);
}

TEST(streams_refuse_what_cannot_be)
{
	world_run(1, refused_work, NULL);
}

/* Of both vendors: begin in mode global, and end. */
typedef int begin_capture(void *stream, int mode);
typedef int end_capture(void *stream, void **graph);

/* The graph is as good as before. */
static void captured_work(struct world *w)
{
	bool hip = w->arg;
	struct fabrex_stream *stream;
	begin_capture *begin;
	end_capture *end;
	struct gpu g;
	void *native, *graph;

	if (hip)
		gpu_hip(&g, 4096);
	else
		gpu_cuda(&g, 4096);
	*(void **)&begin = hip ? dlsym(g.hip, "hipStreamBeginCapture") :
				 dlsym(g.cuda, "cuStreamBeginCapture_v2");
	*(void **)&end = hip ? dlsym(g.hip, "hipStreamEndCapture") :
			       dlsym(g.cuda, "cuStreamEndCapture");
	CHECK(begin && end);
	native = gpu_stream(&g);
	stream = gpu_stream_known(&g, native);
	CHECK_EQ(fabrex_stream_call(stream, set, &g), -EOPNOTSUPP);
	CHECK_SAYS(hip ? "hipLaunchHostFunc" : "cuLaunchHostFunc");
	CHECK_EQ(begin(native, 0), 0);
	CHECK_EQ(fabrex_barrier_enqueue(w->comm, stream), -EOPNOTSUPP);
	CHECK_SAYS("captured into a graph");
	CHECK_EQ(fabrex_group_begin(w->comm), 0);
	CHECK_EQ(fabrex_barrier_enqueue(w->comm, stream), -EOPNOTSUPP);
	CHECK_EQ(fabrex_group_end(w->comm), 0);
	/* What is not in that stream goes on, and leaves the capture alone. */
	CHECK_EQ(fabrex_barrier(w->comm), 0);
	CHECK_EQ(end(native, &graph), 0);
	CHECK_EQ(fabrex_barrier_enqueue(w->comm, stream), 0);
	gpu_stream_sync(&g, native);
	CHECK_EQ(fabrex_stream_error(stream), 0);
	fabrex_stream_destroy(stream);
	gpu_stream_end(&g, native);
}

TEST(captured_streams_are_refused)
{
	world_run(2, captured_work, NULL);
	world_run(2, captured_work, "hip");
}
