// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What an operation says of its result when others have failed meanwhile and
 * gone on: never that it is right when it is not.
 */
#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "world.h"

#define COUNT	(3u << 19)	/* floats: several steps for each */
#define RIGHTS	(FABREX_MR_LOCAL_WRITE | FABREX_MR_REMOTE_READ | \
		 FABREX_MR_REMOTE_WRITE)

struct progress {
	atomic_uint started, ready, reused;
};

static struct progress *progress_make(void)
{
	struct progress *p = mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static void await(atomic_uint *count, unsigned int n)
{
	while (atomic_load(count) < n)
		usleep(1000);
}

static float *buffers(struct world *w)
{
	struct fabrex_mr *mr;
	float *x;
	uint32_t i;

	CHECK_EQ(fabrex_mr_alloc(w->port, 2 * COUNT * sizeof(float), RIGHTS,
				 &mr), 0);
	x = fabrex_mr_addr(mr);
	for (i = 0; i < COUNT; i++)
		x[i] = 1;
	return x;
}

static void check_all(const float *x, float value)
{
	uint32_t i;

	for (i = 0; i < COUNT; i++)
		CHECK_EQ(x[i], value);
}

/* It is in the middle of its work until rank 0 has reused its buffer. */
static void slow(struct progress *p, struct fabrex_coll *coll,
		 const float *recv, float value)
{
	int ret = fabrex_coll_test(coll);

	CHECK_EQ(ret, 0);
	atomic_fetch_add(&p->ready, 1);
	await(&p->reused, 1);
	while (!ret)
		ret = fabrex_coll_test(coll);
	if (ret > 0)
		check_all(recv, value);
	else
		CHECK_EQ(ret, -ECONNRESET);
}

static void first_fails(struct progress *p, struct fabrex_coll *coll,
			float *send)
{
	CHECK_EQ(fabrex_coll_wait(coll, -1), -ECONNRESET);
	memset(send, 0, COUNT * sizeof(float));
	atomic_fetch_add(&p->reused, 1);
}

static void tests(struct fabrex_coll *coll)
{
	int i;

	for (i = 0; i < 100; i++)
		CHECK_EQ(fabrex_coll_test(coll), 0);
}

static void reduce_work(struct world *w)
{
	struct progress *p = (struct progress *)(uintptr_t)w->arg;
	struct fabrex_comm *comm = world_comm_alone(w, "all_reduce:0-=direct");
	struct fabrex_collective what = {
		.kind = FABREX_ALL_REDUCE, .type = FABREX_FLOAT32,
		.op = FABREX_SUM, .count = COUNT,
	};
	struct fabrex_coll *coll;
	float *x = buffers(w);

	what.send = x;
	what.recv = x + COUNT;
	CHECK_EQ(fabrex_coll_start(comm, &what, sizeof(what), &coll), 0);
	atomic_fetch_add(&p->started, 1);
	await(&p->started, 3);
	if (w->rank == 1) {
		slow(p, coll, x + COUNT, 3);
	} else {
		tests(coll);
		atomic_fetch_add(&p->ready, 1);
	}
	await(&p->ready, 3);
	if (w->rank == 2)
		fabrex_comm_abort(comm);
	if (w->rank == 0)
		first_fails(p, coll, x);
	await(&p->reused, 1);
	fabrex_comm_destroy(comm);
}

/* Success of a rank that has not noticed: only with what was there before. */
TEST(no_success_with_what_was_reused)
{
	world_run(3, reduce_work, progress_make());
}

static void message_work(struct world *w)
{
	struct progress *p = (struct progress *)(uintptr_t)w->arg;
	struct fabrex_comm *comm = world_comm_alone(w, NULL);
	struct fabrex_collective what = {
		.kind = w->rank ? FABREX_RECV : FABREX_SEND,
		.type = FABREX_FLOAT32, .root = !w->rank, .count = COUNT,
	};
	struct fabrex_coll *coll = NULL;
	float *x = buffers(w);

	if (w->rank == 1) {
		await(&p->started, 2);
		what.recv = x + COUNT;
	} else {
		what.send = x;
	}
	if (w->rank < 2)
		CHECK_EQ(fabrex_coll_start(comm, &what, sizeof(what), &coll),
			 0);
	atomic_fetch_add(&p->started, 1);
	if (w->rank == 1)
		slow(p, coll, x + COUNT, 1);
	await(&p->ready, 1);
	if (w->rank == 2)
		fabrex_comm_abort(comm);
	if (w->rank == 0)
		first_fails(p, coll, x);
	await(&p->reused, 1);
	fabrex_comm_destroy(comm);
}

TEST(no_message_of_what_was_reused)
{
	world_run(3, message_work, progress_make());
}

/* ---- in the middle ----------------------------------------------------- */

#define VICTIM	5u

struct middle {
	struct progress *p;
	const char *algorithms;
	uint32_t kind;
};

/*
 * Dies with its first messages sent. The others begin after that, and it owes
 * some of them those of later rounds. Who needs none of those succeeds, once.
 */
static void middle_work(struct world *w)
{
	const struct middle *m = w->arg;
	struct fabrex_comm *comm = world_comm_alone(w, m->algorithms);
	float x[8] = { 1 }, y[8 * RANKS_MOST];
	const struct fabrex_collective what = {
		.kind = m->kind, .type = FABREX_FLOAT32, .send = x, .recv = y,
		.op = m->kind == FABREX_ALL_REDUCE ? FABREX_SUM : 0,
		.count = 8,
	};
	struct fabrex_coll *coll;
	uint32_t failed;
	int ret;

	if (w->rank == VICTIM) {
		CHECK_EQ(fabrex_coll_start(comm, &what, sizeof(what), &coll),
			 0);
		atomic_fetch_add(&m->p->started, 1);
		_exit(0);
	}
	await(&m->p->started, 1);
	ret = world_call(comm, &what);
	CHECK_EQ(ret ? ret : world_call(comm, &what), -ECONNRESET);
	CHECK(strstr(fabrex_strerror_last(), "rank 5 ("));
	CHECK_EQ(fabrex_comm_failed(comm, &failed, 1), 1);
	CHECK_EQ(failed, VICTIM);
	fabrex_comm_destroy(comm);
}

static void dies_in(const char *algorithms, uint32_t kind, uint32_t ranks)
{
	struct middle m = {
		.p = progress_make(), .algorithms = algorithms, .kind = kind,
	};

	test_note("%s, %u ranks", algorithms, ranks);
	world_run(ranks, middle_work, &m);
}

TEST(death_between_rounds)
{
	dies_in("all_reduce:bruck", FABREX_ALL_REDUCE, 9);
	dies_in("all_gather:bruck", FABREX_ALL_GATHER, 16);
	dies_in("all_reduce:doubling", FABREX_ALL_REDUCE, 9);
	dies_in("all_reduce:halving", FABREX_ALL_REDUCE, 7);
	dies_in("all_reduce:direct", FABREX_ALL_REDUCE, 9);
}
