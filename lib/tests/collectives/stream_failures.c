// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Ranks that sleep in streams while a communicator fails: by an abort of a
 * watchdog, or because a rank is killed. All return, what is behind in the
 * streams goes on, the streams tell, and the communicator shrinks and goes on.
 * One rank's stream is held by a kernel meanwhile, so that nothing else ends it.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "device.h"
#include "world.h"

#define COUNT	3000u
#define AREA	(COUNT * sizeof(uint32_t))
#define BEHIND	6u		/* operations of one communicator in a stream */

enum memory { HOST, CUDA, HIP };
enum { MINE, SUM, LOCAL, AREAS };

/* What ranks tell each other beside the fabric. */
struct shared {
	enum memory memory;
	atomic_uint asleep, over;
};

struct rank {
	struct world *w;
	struct shared *shared;
	struct gpu gpu;
	struct fabrex_comm *others;	/* of all but rank 0 */
	struct fabrex_stream *stream;
	void *native;
	atomic_bool end;		/* of what holds a stream of the host */
	atomic_bool reached;
	struct spin spin;
};

static struct shared *shared_make(enum memory memory)
{
	struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(s != MAP_FAILED);
	s->memory = memory;
	return s;
}

static void await(atomic_uint *count, unsigned int n)
{
	while (atomic_load(count) < n)
		usleep(1000);
}

static uint32_t *area(const struct rank *r, uint32_t which)
{
	return (uint32_t *)(void *)(r->gpu.memory + which * AREA);
}

static void put(const struct rank *r, uint32_t which, uint32_t value)
{
	uint32_t host[COUNT], i;

	for (i = 0; i < COUNT; i++)
		host[i] = value;
	gpu_put(&r->gpu, (char *)area(r, which), host, AREA);
}

static void check_all(const struct rank *r, uint32_t which, uint32_t value)
{
	uint32_t host[COUNT], i;

	gpu_get(&r->gpu, host, (char *)area(r, which), AREA);
	for (i = 0; i < COUNT; i++)
		CHECK_EQ(host[i], value);
}

/* ---- what is in the stream --------------------------------------------- */

static void until_end(void *arg)
{
	struct rank *r = arg;

	while (!atomic_load(&r->end))
		usleep(1000);
}

static void mix_local(void *arg)
{
	struct rank *r = arg;

	mix(area(r, LOCAL), area(r, MINE), COUNT, 1);
}

static void reach(void *arg)
{
	struct rank *r = arg;

	atomic_store(&r->reached, true);
}

static void call(struct rank *r, void (*function)(void *arg))
{
	if (r->shared->memory == HOST)
		CHECK_EQ(fabrex_stream_call(r->stream, function, r), 0);
	else
		gpu_stream_call(&r->gpu, r->native, function, r);
}

static void hold(struct rank *r)
{
	if (r->shared->memory == HOST)
		call(r, until_end);
	else
		gpu_stream_spin(&r->gpu, r->native, &r->spin);
}

static void let_go(struct rank *r)
{
	if (r->shared->memory == HOST)
		atomic_store(&r->end, true);
	else
		spin_end(&r->spin);
}

static void work(struct rank *r)
{
	if (r->shared->memory == HOST)
		call(r, mix_local);
	else
		gpu_stream_mix(&r->gpu, r->native, area(r, LOCAL),
			       area(r, MINE), COUNT, 1);
}

static int sum(struct rank *r, struct fabrex_comm *comm)
{
	return fabrex_all_reduce_enqueue(comm, area(r, MINE), area(r, SUM),
					 COUNT, FABREX_UINT32, FABREX_SUM,
					 r->stream);
}

/* Operations that fail, work behind each of them, and one that does not fail. */
static void fill(struct rank *r)
{
	uint32_t i;

	put(r, MINE, 1);
	put(r, SUM, 0);
	put(r, LOCAL, 0);
	if (r->shared->memory == CUDA)
		gpu_stream_sync(&r->gpu, NULL);
	if (!r->w->rank)
		hold(r);
	for (i = 0; i < BEHIND; i++) {
		CHECK_EQ(sum(r, r->w->comm), 0);
		work(r);
	}
	if (r->w->rank)
		CHECK_EQ(sum(r, r->others), 0);
	call(r, reach);
}

static void open_rank(struct rank *r, struct world *w)
{
	memset(r, 0, sizeof(*r));
	r->w = w;
	r->shared = (struct shared *)(uintptr_t)w->arg;
	if (r->shared->memory == CUDA)
		gpu_cuda(&r->gpu, AREAS * AREA);
	else if (r->shared->memory == HIP)
		gpu_hip(&r->gpu, AREAS * AREA);
	else
		gpu_none(&r->gpu, AREAS * AREA);
	gpu_kernels(&r->gpu);
	if (r->shared->memory != HOST)
		r->native = gpu_stream(&r->gpu);
	r->stream = gpu_stream_known(&r->gpu, r->native);
	CHECK_EQ(fabrex_comm_split(w->comm, w->rank ? 0 : -1, 0, &r->others),
		 0);
	fill(r);
}

/* As applications do it: in the runtime, which knows nothing of ranks. */
static void sleep_in_stream(struct rank *r)
{
	if (r->shared->memory == HOST)
		fabrex_stream_wait(r->stream, -1);
	else
		gpu_stream_sync(&r->gpu, r->native);
}

/* All that is local has happened; the first failure is told once. */
static void check_passed(struct rank *r, int error)
{
	uint32_t expected = 0, i;

	CHECK(atomic_load(&r->reached));
	for (i = 0; i < BEHIND; i++)
		expected = 3 * expected + 1;
	check_all(r, LOCAL, expected);
	CHECK_EQ(fabrex_stream_error(r->stream), error);
	CHECK_SAYS("rank 0");
	CHECK_EQ(fabrex_stream_error(r->stream), 0);
	CHECK_EQ(sum(r, r->w->comm), error);
}

/* The operation of the others' own was performed behind those that failed. */
static void go_on(struct rank *r)
{
	struct fabrex_comm *rest;

	check_all(r, SUM, r->w->size - 1);
	put(r, SUM, 0);
	if (r->shared->memory == CUDA)
		gpu_stream_sync(&r->gpu, NULL);
	CHECK_EQ(fabrex_comm_shrink(r->w->comm, -1, &rest), 0);
	CHECK_EQ(fabrex_comm_size(rest), r->w->size - 1);
	CHECK_EQ(sum(r, rest), 0);
	work(r);
	sleep_in_stream(r);
	CHECK_EQ(fabrex_stream_error(r->stream), 0);
	check_all(r, SUM, r->w->size - 1);
	fabrex_comm_destroy(rest);
}

static void close_rank(struct rank *r)
{
	fabrex_comm_destroy(r->others);
	fabrex_stream_destroy(r->stream);
	if (r->native)
		gpu_stream_end(&r->gpu, r->native);
}

/* ---- abort ------------------------------------------------------------- */

/* Its kernel ends only when all others have returned. */
static void *watchdog(void *arg)
{
	struct rank *r = arg;

	await(&r->shared->asleep, r->w->size);
	CHECK_EQ(fabrex_comm_abort(r->w->comm), 0);
	await(&r->shared->over, r->w->size - 1);
	let_go(r);
	return NULL;
}

static void abort_work(struct world *w)
{
	struct rank r;
	pthread_t thread;

	open_rank(&r, w);
	if (!w->rank)
		CHECK(!pthread_create(&thread, NULL, watchdog, &r));
	atomic_fetch_add(&r.shared->asleep, 1);
	sleep_in_stream(&r);
	check_passed(&r, w->rank ? -ECONNRESET : -ECANCELED);
	if (w->rank) {
		go_on(&r);
		atomic_fetch_add(&r.shared->over, 1);
	} else {
		CHECK(!pthread_join(thread, NULL));
	}
	close_rank(&r);
}

TEST(watchdogs_abort_ranks_in_streams)
{
	world_run(3, abort_work, shared_make(CUDA));
	world_run_far(4, abort_work, shared_make(CUDA));
	world_run(4, abort_work, shared_make(HIP));
	world_run_far(3, abort_work, shared_make(HIP));
	world_run(3, abort_work, shared_make(HOST));
}

/* ---- death ------------------------------------------------------------- */

static void death_work(struct world *w)
{
	struct rank r;

	open_rank(&r, w);
	if (!w->rank) {
		await(&r.shared->asleep, w->size - 1);
		kill(getpid(), SIGKILL);
	}
	atomic_fetch_add(&r.shared->asleep, 1);
	sleep_in_stream(&r);
	check_passed(&r, -ECONNRESET);
	go_on(&r);
	close_rank(&r);
}

TEST(ranks_in_streams_outlive_others)
{
	world_run_deadly(3, death_work, shared_make(CUDA));
	world_run_deadly(4, death_work, shared_make(HIP));
	world_run_deadly(3, death_work, shared_make(HOST));
}
