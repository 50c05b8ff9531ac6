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
	struct fabrex_comm *comm = world_comm(w, "all_reduce:0-=direct");
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
	struct fabrex_comm *comm = world_comm(w, NULL);
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
