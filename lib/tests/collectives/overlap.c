// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Several operations and communicators at a time: nothing waits for more than
 * it needs.
 */
#include <errno.h>
#include <pthread.h>

#include "world.h"

#define MANY	40u
#define LONG	50000u

static struct fabrex_coll *start_sum(struct fabrex_comm *comm, float *buffer,
				     uint64_t count)
{
	const struct fabrex_collective what = {
		.kind = FABREX_ALL_REDUCE, .type = FABREX_FLOAT32,
		.op = FABREX_SUM, .send = buffer, .recv = buffer,
		.count = count,
	};
	struct fabrex_coll *coll;

	CHECK_EQ(fabrex_coll_start(comm, &what, sizeof(what), &coll), 0);
	return coll;
}

static void set(float *buffer, uint64_t count, float value)
{
	while (count--)
		buffer[count] = value;
}

static void check(const float *buffer, uint64_t count, float value)
{
	while (count--)
		CHECK_EQ(buffer[count], value);
}

static float sum_of(const struct world *w)
{
	return (float)(w->size * (w->size + 1) / 2);
}

/* In the order of starting; tested in another at every rank. */
static void many_work(struct world *w)
{
	struct fabrex_coll *colls[MANY];
	float *buffers = malloc(MANY * LONG * sizeof(float));
	uint32_t i, left = MANY, which;
	int ret;

	for (i = 0; i < MANY; i++) {
		set(buffers + i * LONG, i % 3 ? 10 : LONG, (float)w->rank + 1);
		colls[i] = start_sum(w->comm, buffers + i * LONG,
				     i % 3 ? 10 : LONG);
	}
	for (which = w->rank; left; which = (which + 7) % MANY) {
		if (!colls[which])
			continue;
		ret = fabrex_coll_test(colls[which]);
		CHECK(ret >= 0);
		if (ret) {
			colls[which] = NULL;
			left--;
		}
	}
	for (i = 0; i < MANY; i++)
		check(buffers + i * LONG, i % 3 ? 10 : LONG, sum_of(w));
	free(buffers);
}

TEST(many_are_under_way)
{
	world_run(2, many_work, NULL);
	world_run(4, many_work, NULL);
}

/*
 * Rank 0 starts on a and waits for b, rank 1 starts on b and waits for a: both
 * end, as who waits advances what was started.
 */
static void crossed_work(struct world *w)
{
	struct fabrex_comm *other = world_comm(w, NULL);
	struct fabrex_comm *first = w->rank ? other : w->comm;
	struct fabrex_comm *second = w->rank ? w->comm : other;
	float *x = malloc(LONG * sizeof(float)), y;
	struct fabrex_coll *started;
	uint32_t i;

	for (i = 0; i < 50; i++) {
		uint64_t long_or_not = i % 2 ? LONG : 1;

		set(x, LONG, (float)w->rank + 1);
		started = start_sum(first, x, 1);
		CHECK_EQ(fabrex_all_reduce(second, x + 1, x + 1, 1,
					   FABREX_FLOAT32, FABREX_SUM), 0);
		CHECK_EQ(fabrex_coll_wait(started, -1), 0);
		check(x, 2, sum_of(w));
		set(x, LONG, (float)w->rank + 1);
		y = (float)w->rank + 1;
		started = start_sum(w->comm, x, long_or_not);
		CHECK_EQ(fabrex_all_reduce(other, &y, &y, 1, FABREX_FLOAT32,
					   FABREX_SUM), 0);
		CHECK_EQ(fabrex_coll_wait(started, -1), 0);
		check(x, long_or_not, sum_of(w));
		CHECK_EQ(y, sum_of(w));
	}
	fabrex_comm_destroy(other);
	free(x);
}

TEST(communicators_do_not_wait_for_each_other)
{
	world_run(2, crossed_work, NULL);
}

struct part {
	struct fabrex_comm *comm;
	uint32_t ranks;
};

static void *thread_main(void *arg)
{
	const struct part *part = arg;
	float x[100];
	uint32_t i;

	for (i = 0; i < 300; i++) {
		set(x, 100, 1);
		if (i % 2) {
			CHECK_EQ(fabrex_all_reduce(part->comm, x, x, 100,
						   FABREX_FLOAT32,
						   FABREX_SUM), 0);
		} else {
			struct fabrex_coll *c = start_sum(part->comm, x, 100);

			CHECK_EQ(fabrex_coll_wait(c, -1), 0);
		}
		check(x, 100, (float)part->ranks);
	}
	return NULL;
}

/* A communicator for each thread. */
static void threads_work(struct world *w)
{
	struct part parts[3];
	pthread_t threads[3];
	uint32_t i;

	for (i = 0; i < 3; i++) {
		parts[i].comm = world_comm(w, NULL);
		parts[i].ranks = w->size;
	}
	for (i = 0; i < 3; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, thread_main,
					&parts[i]), 0);
	for (i = 0; i < 3; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	for (i = 0; i < 3; i++)
		fabrex_comm_destroy(parts[i].comm);
}

TEST(threads_have_communicators_of_their_own)
{
	world_run(2, threads_work, NULL);
}

/* Rows and columns of a grid, and all, at the same time. */
static void grid_work(struct world *w)
{
	struct fabrex_comm *row, *column, *none;
	float x = (float)w->rank + 1, y = x, z = x;
	struct fabrex_coll *colls[3];
	uint32_t i;

	CHECK_EQ(fabrex_comm_split(w->comm, (int)w->rank / 2, 0, &row), 0);
	CHECK_EQ(fabrex_comm_split(w->comm, (int)w->rank % 2, 0, &column), 0);
	CHECK_EQ(fabrex_comm_split(w->comm, w->rank ? -1 : 1, 0, &none), 0);
	CHECK_EQ(none != NULL, w->rank == 0);
	CHECK_EQ(fabrex_comm_size(row), 2);
	CHECK_EQ(fabrex_comm_size(column), w->size / 2);
	for (i = 0; i < 20; i++) {
		x = y = z = (float)w->rank + 1;
		colls[0] = start_sum(row, &x, 1);
		colls[1] = start_sum(column, &y, 1);
		colls[2] = start_sum(w->comm, &z, 1);
		CHECK_EQ(fabrex_coll_wait(colls[(w->rank + i) % 3], -1), 0);
		CHECK_EQ(fabrex_coll_wait(colls[(w->rank + i + 1) % 3], -1),
			 0);
		CHECK_EQ(fabrex_coll_wait(colls[(w->rank + i + 2) % 3], -1),
			 0);
		CHECK_EQ(x, w->rank / 2 * 4 + 3);
		CHECK_EQ(z, sum_of(w));
	}
	fabrex_comm_destroy(row);
	fabrex_comm_destroy(column);
	fabrex_comm_destroy(none);
}

TEST(parts_and_the_whole)
{
	world_run(4, grid_work, NULL);
}

static void patience_work(struct world *w)
{
	float x = 1;
	struct fabrex_coll *coll;

	if (w->rank) {
		usleep(200000);
		CHECK_EQ(fabrex_all_reduce(w->comm, &x, &x, 1, FABREX_FLOAT32,
					   FABREX_SUM), 0);
		return;
	}
	coll = start_sum(w->comm, &x, 1);
	CHECK_EQ(fabrex_coll_test(coll), 0);
	CHECK_EQ(fabrex_coll_wait(coll, 20), -ETIMEDOUT);
	CHECK_EQ(fabrex_coll_wait(coll, -1), 0);
	CHECK_EQ(x, 2);
}

TEST(waits_end_in_time)
{
	world_run(2, patience_work, NULL);
}

/* ---- a part of the work in each call ------------------------------------ */

#define HUGE_COUNT	(1u << 22)	/* floats */
#define MOST		(5u << 18)	/* bytes that one call may send */

static uint64_t sent_by(const struct world *w)
{
	struct fabrex_stats stats;

	CHECK_EQ(fabrex_stats(w->port, NULL, &stats, sizeof(stats)), 0);
	return stats.tx_bytes;
}

/* The other rank does all it can, so that there is always something to do. */
static void part_of(struct world *w, const char *algorithms, float *buffer)
{
	struct fabrex_comm *comm = world_comm_alone(w, algorithms);
	uint64_t start, before, after, most = 0;
	struct fabrex_coll *coll;
	int ret;

	test_note("%s", algorithms);
	set(buffer, HUGE_COUNT, (float)w->rank + 1);
	CHECK_EQ(fabrex_barrier(comm), 0);
	start = after = sent_by(w);
	coll = start_sum(comm, buffer, HUGE_COUNT);
	if (w->rank) {
		CHECK_EQ(fabrex_coll_wait(coll, -1), 0);
	} else {
		do {
			before = sent_by(w);
			ret = fabrex_coll_test(coll);
			CHECK(ret >= 0);
			after = sent_by(w);
			if (after - before > most)
				most = after - before;
		} while (!ret);
		test_note("%s: %llu bytes in one call", algorithms,
			  (unsigned long long)most);
		CHECK(after - start >= 8ull << 20);
		CHECK(most <= MOST);
	}
	check(buffer, HUGE_COUNT, sum_of(w));
	fabrex_comm_destroy(comm);
}

static void parts_work(struct world *w)
{
	float *buffer = malloc(HUGE_COUNT * sizeof(float));
	uint32_t i;

	CHECK(buffer);
	for (i = 0; i < 5; i++) {
		part_of(w, "all:flat", buffer);
		part_of(w, "all:staged", buffer);
		part_of(w, "all:ring", buffer);
		part_of(w, "all:tree", buffer);
	}
	free(buffer);
}

TEST(tests_do_a_part_of_the_work)
{
	world_run_far(2, parts_work, NULL);
}

/* Destroyed with operations under way, which nobody takes part in. */
static void destroy_work(struct world *w)
{
	struct fabrex_comm *comm = world_comm(w, NULL);
	const struct fabrex_collective what = {
		.kind = FABREX_RECV, .type = FABREX_INT8, .count = 1,
		.recv = w, .root = 1,
	};
	struct fabrex_coll *coll;
	float x = 1;

	if (!w->rank) {
		start_sum(comm, &x, 1);
		start_sum(comm, &x, 1);
		CHECK_EQ(fabrex_coll_start(comm, &what, sizeof(what), &coll),
			 0);
		CHECK_EQ(fabrex_group_begin(comm), 0);
		CHECK_EQ(fabrex_barrier(comm), 0);
	}
	fabrex_comm_destroy(comm);
	CHECK_EQ(fabrex_barrier(w->comm), 0);
}

TEST(destruction_gives_up)
{
	world_run(2, destroy_work, NULL);
}
