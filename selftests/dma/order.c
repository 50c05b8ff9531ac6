// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ordering rules of docs/draco.md, section 13: in submission order to one
 * peer, data before the message about it, fences, completions in order.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "kselftest_harness.h"
#include "bench.h"

FIXTURE(order) {
	struct bench b;
};

FIXTURE_SETUP(order)
{
	ASSERT_EQ(bench_open(&self->b), 0);
}

FIXTURE_TEARDOWN(order)
{
	bench_close(&self->b);
}

/* The last of several writes to one place wins. */
TEST_F(order, writes_in_order)
{
	struct bench *b = &self->b;
	struct fabrex_cqe cqe;

	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 50; i++) {
			struct fabrex_sqe sqe = bench_write(b, 64 * i, 0,
				i & 1 ? 64 : 20000);

			raw_put(&b->q, &sqe);
		}
		raw_submit(&b->q);
		for (int i = 0; i < 50; i++) {
			ASSERT_TRUE(raw_poll(&b->q, &cqe, RAW_WAIT_MS));
			ASSERT_EQ(cqe.status, FABREX_WC_OK);
			ASSERT_EQ(cqe.index, (round * 50 + i) & 0xffff);
		}
		EXPECT_EQ(memcmp(b->dst.addr, b->src.addr + 64 * 49, 64), 0);
		EXPECT_EQ(memcmp(b->dst.addr + 64, b->src.addr + 64 * 48 + 64,
				 20000 - 64), 0);
	}
}

/* A read sees the writes before it and not those after it. */
TEST_F(order, read_between_writes)
{
	struct bench *b = &self->b;
	uint64_t *result = (uint64_t *)(b->src.addr + 32768);
	struct fabrex_cqe cqe;

	for (uint64_t i = 1; i < 200; i++) {
		struct fabrex_sqe w1 = bench_write(b, 0, 512, 8);
		struct fabrex_sqe r = raw_rw(FABREX_OP_READ, b->self, &b->src,
					     32768, b->dst.key, 512, 8);
		struct fabrex_sqe w2 = bench_write(b, 8, 512, 8);

		*(uint64_t *)b->src.addr = i;
		*(uint64_t *)(b->src.addr + 8) = ~i;
		raw_put(&b->q, &w1);
		raw_put(&b->q, &r);
		raw_put(&b->q, &w2);
		raw_submit(&b->q);
		for (int k = 0; k < 3; k++)
			ASSERT_TRUE(raw_poll(&b->q, &cqe, RAW_WAIT_MS));
		ASSERT_EQ(*result, i);
		ASSERT_EQ(*(uint64_t *)(b->dst.addr + 512), ~i);
	}
}

struct watch {
	struct bench *b;
	bool stop;
	unsigned long seen;
	unsigned long wrong;
};

/* Whoever sees the flag sees all of the data written before it. */
static void *watcher(void *arg)
{
	struct watch *w = arg;
	volatile uint64_t *data = (uint64_t *)w->b->dst.addr;
	volatile uint64_t *flag = (uint64_t *)(w->b->dst.addr + 32768);

	while (!__atomic_load_n(&w->stop, __ATOMIC_ACQUIRE)) {
		uint64_t f = __atomic_load_n(flag, __ATOMIC_ACQUIRE);

		if (f > 1ull << 40)
			continue;	/* still blank */
		for (int i = 511; i >= 0; i--)
			w->wrong += data[i] < f;
		w->seen++;
	}
	return NULL;
}

TEST_F(order, data_before_flag)
{
	struct bench *b = &self->b;
	struct watch w = { .b = b };
	struct fabrex_cqe cqe;
	pthread_t thread;

	memset(b->dst.addr, 0, 8192);
	ASSERT_EQ(pthread_create(&thread, NULL, watcher, &w), 0);
	for (uint64_t n = 1; n < 400; n++) {
		struct fabrex_sqe data = bench_write(b, 0, 0, 4096);
		struct fabrex_sqe flag = bench_write(b, 0, 32768, 8);

		for (int i = 0; i < 512; i++)
			((uint64_t *)b->src.addr)[i] = n;
		data.flags = FABREX_SQE_QUIET;
		raw_put(&b->q, &data);
		raw_put(&b->q, &flag);
		raw_submit(&b->q);
		ASSERT_TRUE(raw_poll(&b->q, &cqe, RAW_WAIT_MS));
		ASSERT_EQ(cqe.status, FABREX_WC_OK);
	}
	__atomic_store_n(&w.stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	EXPECT_GT(w.seen, 0);
	EXPECT_EQ(w.wrong, 0);
}

/* When the message is here the bytes written before it are, too. */
TEST_F(order, data_before_message)
{
	struct bench *b = &self->b;
	struct raw_queue rx;
	struct fabrex_cqe cqe;

	ASSERT_EQ(raw_queue(b->fd, 8, 128, 64, &rx), 0);
	for (uint64_t n = 1; n < 200; n++) {
		struct fabrex_sqe data = bench_write(b, 0, 0, 30000);
		struct fabrex_sqe msg = { .opcode = FABREX_OP_SEND,
					  .flags = FABREX_SQE_INLINE,
					  .peer = b->self };

		memset(b->src.addr, n, 30000);
		msg.length = 8;
		memcpy(msg.inline_data, &n, 8);
		msg.dest_key = rx.info.out_key;
		raw_put(&b->q, &data);
		raw_put(&b->q, &msg);
		raw_submit(&b->q);
		ASSERT_TRUE(raw_poll(&rx, &cqe, RAW_WAIT_MS));
		ASSERT_EQ(*(uint64_t *)raw_cell(&rx, cqe.index), n);
		ASSERT_TRUE(raw_all(b->dst.addr, 30000, n));
		raw_recv_done(&rx, 1);
		ASSERT_TRUE(raw_poll(&b->q, &cqe, RAW_WAIT_MS));
		ASSERT_TRUE(raw_poll(&b->q, &cqe, RAW_WAIT_MS));
	}
	EXPECT_EQ(raw_queue_free(&rx), 0);
}

TEST_F(order, completion_means_visible)
{
	struct bench *b = &self->b;

	for (int i = 0; i < 300; i++) {
		struct fabrex_sqe sqe = bench_write(b, 0, 0, 16384);

		memset(b->src.addr, i, 16384);
		ASSERT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_OK);
		ASSERT_TRUE(raw_all(b->dst.addr, 16384, i));
	}
}

/* Post n entries in one go and return their statuses. */
static bool batch(struct bench *b, const struct fabrex_sqe *sqe, int n,
		  uint8_t *status)
{
	struct fabrex_cqe cqe;

	for (int i = 0; i < n; i++)
		raw_put(&b->q, &sqe[i]);
	raw_submit(&b->q);
	for (int i = 0; i < n; i++) {
		if (!raw_poll(&b->q, &cqe, RAW_WAIT_MS))
			return false;
		status[i] = cqe.status;
	}
	return true;
}

TEST_F(order, fence_after_failure)
{
	struct bench *b = &self->b;
	struct fabrex_sqe s[5];
	uint8_t got[5];

	for (int i = 0; i < 5; i++)
		s[i] = bench_write(b, 0, 64 * i, 64);
	s[0].rkey = 1;				/* fails */
	s[2].flags = FABREX_SQE_FENCE;		/* not started */
	s[4].flags = FABREX_SQE_FENCE;		/* nothing failed since */
	ASSERT_TRUE(batch(b, s, 5, got));
	EXPECT_EQ(got[0], FABREX_WC_RKEY);
	EXPECT_EQ(got[1], FABREX_WC_OK);
	EXPECT_EQ(got[2], FABREX_WC_FENCED);
	EXPECT_EQ(got[3], FABREX_WC_OK);
	EXPECT_EQ(got[4], FABREX_WC_OK);
	EXPECT_TRUE(raw_all(b->dst.addr + 128, 64, BENCH_BLANK));
	EXPECT_EQ(memcmp(b->dst.addr + 256, b->src.addr, 64), 0);
}

TEST_F(order, fence_without_failure)
{
	struct bench *b = &self->b;
	struct fabrex_sqe s[3];
	uint8_t got[3];

	for (int i = 0; i < 3; i++) {
		s[i] = bench_write(b, 0, 64 * i, 64);
		s[i].flags = FABREX_SQE_FENCE;
	}
	ASSERT_TRUE(batch(b, s, 3, got));
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(got[i], FABREX_WC_OK);
}

/* A fenced operation that itself fails is remembered by the next fence; one
 * that was FENCED is not.
 */
TEST_F(order, fence_chain)
{
	struct bench *b = &self->b;
	struct fabrex_sqe s[4];
	uint8_t got[4];

	for (int i = 0; i < 4; i++) {
		s[i] = bench_write(b, 0, 64 * i, 64);
		s[i].flags = FABREX_SQE_FENCE;
	}
	s[0].roffset = BENCH_SIZE;
	ASSERT_TRUE(batch(b, s, 4, got));
	EXPECT_EQ(got[0], FABREX_WC_RBOUNDS);
	EXPECT_EQ(got[1], FABREX_WC_FENCED);
	EXPECT_EQ(got[2], FABREX_WC_OK);
	EXPECT_EQ(got[3], FABREX_WC_OK);
}

TEST_F(order, quiet_failure_counts_for_fence)
{
	struct bench *b = &self->b;
	struct fabrex_sqe s[2] = { bench_write(b, 0, 0, 64),
				   bench_write(b, 0, 64, 64) };
	uint8_t got[2];

	s[0].rkey = 1;
	s[0].flags = FABREX_SQE_QUIET;
	s[1].flags = FABREX_SQE_FENCE;
	ASSERT_TRUE(batch(b, s, 2, got));
	EXPECT_EQ(got[0], FABREX_WC_RKEY);
	EXPECT_EQ(got[1], FABREX_WC_FENCED);
}

/* An aligned word is never seen half written. */
TEST_F(order, words_are_whole)
{
	struct bench *b = &self->b;
	volatile uint64_t *word = (uint64_t *)b->dst.addr;
	struct fabrex_cqe cqe;
	unsigned long torn = 0;

	*word = 0;
	*(uint64_t *)b->src.addr = 0;
	*(uint64_t *)(b->src.addr + 8) = -1ull;
	for (int round = 0; round < 100; round++) {
		for (int i = 0; i < 60; i++) {
			struct fabrex_sqe sqe = bench_write(b, 8 * (i & 1), 0,
							    8);

			sqe.flags = i < 59 ? FABREX_SQE_QUIET : 0;
			raw_put(&b->q, &sqe);
		}
		raw_submit(&b->q);
		do {
			uint64_t v = *word;

			torn += v != 0 && v != -1ull;
		} while (!raw_poll(&b->q, &cqe, 0) &&
			 b->q.ctrl->state == FABREX_QUEUE_OK);
	}
	EXPECT_EQ(torn, 0);
}

TEST_HARNESS_MAIN
