// SPDX-License-Identifier: GPL-2.0-only
/* Atomics under contention: several queues, and the target's own CPU. */

#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "kselftest_harness.h"
#include "bench.h"

#define QUEUES	4
#define ADDS	5000

FIXTURE(atomics) {
	struct bench b;
	uint64_t *word;
};

FIXTURE_SETUP(atomics)
{
	ASSERT_EQ(bench_open(&self->b), 0);
	self->word = (uint64_t *)self->b.dst.addr;
	*self->word = 0;
}

FIXTURE_TEARDOWN(atomics)
{
	bench_close(&self->b);
}

static struct fabrex_sqe add(struct bench *b, uint64_t result, uint64_t n)
{
	struct fabrex_sqe sqe = raw_rw(FABREX_OP_FETCH_ADD, b->self, &b->src,
				       result, b->dst.key, 0, 0);

	sqe.operand = n;
	return sqe;
}

/* Adds until the next completion of the queue is there; how often. */
static uint64_t add_until(struct raw_queue *q, uint64_t *word,
			  struct fabrex_cqe *cqe)
{
	uint64_t end = raw_now_ns() + RAW_WAIT_MS * 1000000ull, adds = 0;

	while (!raw_poll(q, cqe, 0) && raw_now_ns() < end)
		for (int i = 0; i < 64; i++, adds++)
			__atomic_fetch_add(word, 1000000, __ATOMIC_RELAXED);
	return adds;
}

/*
 * All queues and the CPU add at once: no increment is lost. That takes a
 * virtual machine whose locked instructions are atomic for its devices, too.
 */
TEST_F_TIMEOUT(atomics, fetch_add_contention, 600)
{
	struct bench *b = &self->b;
	struct raw_queue q[QUEUES];
	uint64_t adds = 0;

	for (int i = 0; i < QUEUES; i++)
		ASSERT_EQ(raw_queue(b->fd, 32, 32, 0, &q[i]), 0);
	for (int n = 0; n < ADDS; n += 25) {
		for (int i = 0; i < QUEUES; i++) {
			for (int k = 0; k < 25; k++) {
				struct fabrex_sqe sqe = add(b, 8 * i, 1);

				raw_put(&q[i], &sqe);
			}
			raw_submit(&q[i]);
		}
		for (int i = 0; i < QUEUES; i++)
			for (int k = 0; k < 25; k++) {
				struct fabrex_cqe cqe = { .status = 0xff };

				adds += add_until(&q[i], self->word, &cqe);
				ASSERT_EQ(cqe.status, FABREX_WC_OK);
			}
	}
	TH_LOG("%llu additions by the processor", (unsigned long long)adds);
	EXPECT_EQ(*self->word, (uint64_t)QUEUES * ADDS + 1000000ull * adds);
	for (int i = 0; i < QUEUES; i++)
		EXPECT_EQ(raw_queue_free(&q[i]), 0);
}

/* Every old value is returned exactly once. */
TEST_F(atomics, tickets_are_unique)
{
	struct bench *b = &self->b;
	static uint8_t taken[QUEUES * 30];
	struct raw_queue q[QUEUES];
	struct fabrex_cqe cqe;

	memset(taken, 0, sizeof(taken));
	for (int i = 0; i < QUEUES; i++) {
		ASSERT_EQ(raw_queue(b->fd, 32, 32, 0, &q[i]), 0);
		for (int k = 0; k < 30; k++) {
			struct fabrex_sqe sqe = add(b, 8 * (30 * i + k), 1);

			raw_put(&q[i], &sqe);
		}
	}
	for (int i = 0; i < QUEUES; i++)
		raw_submit(&q[i]);
	for (int i = 0; i < QUEUES; i++) {
		for (int k = 0; k < 30; k++)
			ASSERT_TRUE(raw_poll(&q[i], &cqe, RAW_WAIT_MS));
		EXPECT_EQ(raw_queue_free(&q[i]), 0);
	}
	for (int i = 0; i < QUEUES * 30; i++) {
		uint64_t ticket = ((uint64_t *)b->src.addr)[i];

		ASSERT_LT(ticket, sizeof(taken));
		EXPECT_EQ(taken[ticket]++, 0);
	}
}

/* A lock made of compare-and-swap, contended by two queues. */
TEST_F(atomics, cmp_swap_lock)
{
	struct bench *b = &self->b;
	struct fabrex_sqe take[2], drop = bench_write(b, 1024, 0, 8);
	struct raw_queue q[2];
	int holders = 0, wins[2] = { 0, 0 };

	*(uint64_t *)(b->src.addr + 1024) = 0;
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(raw_queue(b->fd, 8, 8, 0, &q[i]), 0);
		take[i] = raw_rw(FABREX_OP_CMP_SWAP, b->self, &b->src, 8 * i,
				 b->dst.key, 0, 0);
		take[i].compare = 0;
		take[i].operand = i + 1;
	}
	for (int round = 0; round < 200; round++) {
		struct fabrex_cqe cqe;

		holders = 0;
		for (int i = 0; i < 2; i++)
			raw_post(&q[(round + i) & 1], &take[(round + i) & 1]);
		for (int i = 0; i < 2; i++)
			ASSERT_TRUE(raw_poll(&q[i], &cqe, RAW_WAIT_MS));
		for (int i = 0; i < 2; i++) {
			if (((uint64_t *)b->src.addr)[i])
				continue;
			holders++;
			wins[i]++;
		}
		ASSERT_EQ(holders, 1);
		ASSERT_EQ(raw_do(&b->q, &drop, NULL), FABREX_WC_OK);
	}
	EXPECT_EQ(wins[0] + wins[1], 200);
	for (int i = 0; i < 2; i++)
		EXPECT_EQ(raw_queue_free(&q[i]), 0);
}

TEST_HARNESS_MAIN
