// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Applications copy results to memory that is not pinned: such a call of the
 * runtime waits for the operation before it in the stream, and as long as it
 * does, the runtime makes nothing, in any thread: no event, stream or memory
 * (lib/tests/vendor/blocked.c). So operations must be able to end without.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "device.h"
#include "world.h"

#define COUNT	30011u
#define MOST	(1u << 19)	/* elements */
#define BYTES	((uint64_t)MOST * sizeof(int32_t))

struct buffers {
	struct gpu gpu;
	char *send, *recv;
	int32_t *host;
	void *native;
	struct fabrex_stream *stream;
};

static int32_t value(uint32_t rank, uint32_t i)
{
	return (int32_t)(i % 9973 * (rank + 1));
}

/* Of all ranks. */
static int32_t total(const struct world *w, uint32_t i)
{
	return value(0, i) * (int32_t)(w->size * (w->size + 1) / 2);
}

static void open_buffers(const struct world *w, struct buffers *b, bool hip)
{
	uint32_t i;

	if (hip)
		gpu_hip(&b->gpu, 2 * BYTES);
	else
		gpu_cuda(&b->gpu, 2 * BYTES);
	b->send = b->gpu.memory;
	b->recv = b->send + BYTES;
	b->host = malloc(BYTES);
	CHECK(b->host);
	for (i = 0; i < MOST; i++)
		b->host[i] = value(w->rank, i);
	gpu_put(&b->gpu, b->send, b->host, BYTES);
	gpu_stream_sync(&b->gpu, NULL);
	b->native = gpu_stream(&b->gpu);
	b->stream = gpu_stream_known(&b->gpu, b->native);
}

/* Nothing of what was before. */
static void clear(struct buffers *b)
{
	memset(b->host, 0xff, BYTES);
	gpu_put(&b->gpu, b->recv, b->host, BYTES);
	gpu_stream_sync(&b->gpu, NULL);
}

static void close_buffers(struct buffers *b)
{
	CHECK_EQ(fabrex_stream_wait(b->stream, -1), 0);
	fabrex_stream_destroy(b->stream);
	gpu_stream_end(&b->gpu, b->native);
	free(b->host);
}

static void sum(const struct buffers *b, struct fabrex_comm *comm,
		struct fabrex_stream *stream, uint32_t count)
{
	CHECK_EQ(fabrex_all_reduce_enqueue(comm, b->send, b->recv, count,
					   FABREX_INT32, FABREX_SUM, stream),
		 0);
}

static void check_sum(const struct world *w, const int32_t *host,
		      uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		CHECK_EQ(host[i], total(w, i));
}

/* The copy behind what is in the stream, into memory that is not pinned. */
static void copy_sum(const struct world *w, struct buffers *b, uint32_t count)
{
	gpu_stream_get(&b->gpu, b->native, b->host, b->recv,
		       (uint64_t)count * sizeof(*b->host));
	gpu_stream_sync(&b->gpu, b->native);
	check_sum(w, b->host, count);
}

/* ---- in the same thread ------------------------------------------------ */

static void behind_work(struct world *w)
{
	static const char *const algorithms[] = {
		"all:flat", "all:direct", "all:staged", "all:ring", "all:tree",
		"all:halving;all:ring", NULL,
	};
	struct fabrex_comm *comm;
	struct buffers b;
	size_t i, j;

	open_buffers(w, &b, w->arg);
	for (i = 0; i < sizeof(algorithms) / sizeof(*algorithms); i++) {
		test_note("%s", algorithms[i] ? algorithms[i] : "default");
		comm = world_comm(w, algorithms[i]);
		/* The others wait in their copies when rank 0 comes. */
		for (j = COUNT; j <= MOST; j *= 16) {
			clear(&b);
			if (!w->rank)
				usleep(30000);
			sum(&b, comm, b.stream, (uint32_t)j);
			copy_sum(w, &b, (uint32_t)j);
		}
		fabrex_comm_destroy(comm);
	}
	close_buffers(&b);
}

TEST(copies_behind_operations)
{
	world_run(2, behind_work, NULL);
	world_run(3, behind_work, "hip");
	world_run_far(3, behind_work, NULL);
}

/* ---- in another thread ------------------------------------------------- */

/* Of all ranks. */
struct shared {
	atomic_uint here;	/* ranks that are as far as that */
};

static struct shared *shared_make(void)
{
	void *shared = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(shared != MAP_FAILED);
	return shared;
}

struct thread {
	pthread_t id;
	struct world *w;
	struct buffers *b;
	atomic_bool copying;
};

static void *copy_main(void *arg)
{
	struct thread *t = arg;

	gpu_make_current(&t->b->gpu);
	atomic_store(&t->copying, true);
	copy_sum(t->w, t->b, COUNT);
	return NULL;
}

/* A thread that copies what has been enqueued, and waits in that. */
static void copy_begin(struct thread *t, struct world *w, struct buffers *b)
{
	*t = (struct thread){ .w = w, .b = b };
	CHECK(!pthread_create(&t->id, NULL, copy_main, t));
	while (!atomic_load(&t->copying))
		usleep(1000);
	usleep(20000);
}

/* Ranks other than 0 wait for it; rank 0 comes when they all do. */
static void others_wait(struct world *w)
{
	struct shared *shared = (struct shared *)(uintptr_t)w->arg;

	if (w->rank) {
		atomic_fetch_add(&shared->here, 1);
		return;
	}
	while (atomic_load(&shared->here) < w->size - 1)
		usleep(1000);
	usleep(50000);
	atomic_store(&shared->here, 0);
}

/*
 * Ranks other than 0 have an operation in a stream, and a thread that waits for
 * it in a copy. They enqueue another one, for which memory and more is needed;
 * rank 0 enqueues both only then.
 */
static void beside(struct world *w, struct fabrex_comm *comm,
		   struct buffers *b, struct buffers *other, uint32_t count)
{
	struct thread t;

	clear(b);
	clear(other);
	if (!w->rank)
		others_wait(w);
	sum(b, comm, b->stream, COUNT);
	if (w->rank) {
		copy_begin(&t, w, b);
		others_wait(w);
		sum(other, comm, other->stream, count);
		CHECK(!pthread_join(t.id, NULL));
	} else {
		sum(other, comm, other->stream, count);
		copy_sum(w, b, COUNT);
	}
	copy_sum(w, other, count);
	CHECK_EQ(fabrex_barrier(comm), 0);
}

static void beside_work(struct world *w)
{
	static const char *const algorithms[] = {
		"all:tree", "all:ring", "all:flat", NULL,
	};
	struct buffers one, other;
	struct fabrex_comm *comm;
	size_t i;

	open_buffers(w, &one, false);
	open_buffers(w, &other, false);
	for (i = 0; i < sizeof(algorithms) / sizeof(*algorithms); i++) {
		test_note("%s", algorithms[i] ? algorithms[i] : "default");
		comm = world_comm(w, algorithms[i]);
		beside(w, comm, &one, &other, MOST / 4);
		beside(w, comm, &one, &other, MOST);
		fabrex_comm_destroy(comm);
	}
	close_buffers(&other);
	close_buffers(&one);
}

TEST(copies_beside_new_operations)
{
	world_run(2, beside_work, shared_make());
	world_run(3, beside_work, shared_make());
}

/*
 * The same thread waits for an operation of one communicator. Another one has had
 * operations without buffers only, and is now given some on the GPU: they are
 * started, called, sent. All that they need is made without the progress thread,
 * which the first one needs.
 */
static void call(struct world *w, struct fabrex_comm *comm, struct buffers *b,
		 uint32_t way)
{
	struct fabrex_collective what = {
		.kind = FABREX_ALL_REDUCE, .type = FABREX_INT32,
		.op = FABREX_SUM, .send = b->send, .recv = b->recv,
		.count = MOST,
	};
	uint32_t next = (w->rank + 1) % w->size;
	uint32_t before = (w->rank + w->size - 1) % w->size;
	struct fabrex_coll *coll;

	if (way == 0) {
		CHECK_EQ(fabrex_coll_start(comm, &what, sizeof(what), &coll),
			 0);
		CHECK_EQ(fabrex_coll_wait(coll, -1), 0);
	} else if (way == 1) {
		CHECK_EQ(world_call(comm, &what), 0);
	} else {
		CHECK_EQ(fabrex_group_begin(comm), 0);
		CHECK_EQ(fabrex_send(comm, b->send, MOST, FABREX_INT32, next),
			 0);
		CHECK_EQ(fabrex_recv(comm, b->recv, MOST, FABREX_INT32,
				     before), 0);
		CHECK_EQ(fabrex_group_end(comm), 0);
	}
	gpu_get(&b->gpu, (char *)b->host, b->recv, BYTES);
	if (way < 2)
		check_sum(w, b->host, MOST);
	else
		CHECK_EQ(b->host[MOST - 1], value(before, MOST - 1));
}

static void calls_work(struct world *w)
{
	struct fabrex_comm *first, *second;
	struct buffers one, other;
	struct thread t;
	uint32_t way;

	open_buffers(w, &one, false);
	open_buffers(w, &other, false);
	for (way = 0; way < 3; way++) {
		test_note("way %u", way);
		first = world_comm(w, way == 2 ? "all:ring" : NULL);
		second = world_comm(w, NULL);
		CHECK_EQ(fabrex_barrier_enqueue(second, other.stream), 0);
		clear(&one);
		clear(&other);
		if (!w->rank)
			others_wait(w);
		sum(&one, first, one.stream, COUNT);
		copy_begin(&t, w, &one);
		if (w->rank)
			others_wait(w);
		call(w, second, &other, way);
		CHECK(!pthread_join(t.id, NULL));
		fabrex_comm_destroy(second);
		fabrex_comm_destroy(first);
	}
	close_buffers(&other);
	close_buffers(&one);
}

TEST(copies_beside_calls)
{
	world_run(2, calls_work, shared_make());
	world_run(3, calls_work, shared_make());
}
