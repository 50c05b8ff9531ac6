// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queues as such: overruns, hostile control pages, arming and sleeping,
 * destruction with operations in flight.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "bench.h"

FIXTURE(queues) {
	struct bench b;
};

FIXTURE_SETUP(queues)
{
	ASSERT_EQ(bench_open(&self->b), 0);
}

FIXTURE_TEARDOWN(queues)
{
	bench_close(&self->b);
}

static bool wait_state(struct raw_queue *q, uint32_t state)
{
	uint64_t end = raw_now_ns() + RAW_WAIT_MS * 1000000ull;

	while (q->ctrl->state != state) {
		if (raw_now_ns() > end)
			return false;
		usleep(1000);
	}
	return true;
}

TEST_F(queues, completion_overrun)
{
	struct fabrex_sqe nop = { .opcode = FABREX_OP_NOP };
	struct raw_queue q;
	struct fabrex_cqe cqe;
	int n = 0;

	ASSERT_EQ(raw_queue(self->b.fd, 8, 8, 0, &q), 0);
	for (int i = 0; i < 8; i++)
		raw_put(&q, &nop);
	raw_submit(&q);
	ASSERT_TRUE(raw_drain(&q, RAW_WAIT_MS));
	EXPECT_EQ(q.ctrl->state, FABREX_QUEUE_OK);
	raw_post(&q, &nop);	/* a ninth, and nothing consumed */
	ASSERT_TRUE(wait_state(&q, FABREX_QUEUE_ERROR));
	EXPECT_EQ(q.ctrl->error, FABREX_QERR_CQ_OVERRUN);
	while (raw_poll(&q, &cqe, 0))
		n++;
	EXPECT_EQ(n, 8);	/* none of them was overwritten */
	EXPECT_EQ(raw_queue_free(&q), 0);
}

TEST_F(queues, submission_index)
{
	static const uint32_t bad[] = { 9, 100, 0x7fffffff, 0x80000000,
					0xffffffff };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct raw_queue q;

		ASSERT_EQ(raw_queue(self->b.fd, 8, 8, 0, &q), 0);
		q.ctrl->sq_tail = bad[i];
		q.db[FABREX_DB_SQ / 4] = bad[i];
		ASSERT_TRUE(wait_state(&q, FABREX_QUEUE_ERROR));
		EXPECT_EQ(q.ctrl->error, FABREX_QERR_SQ_INDEX);
		EXPECT_EQ(q.ctrl->sq_head, 0);
		EXPECT_EQ(raw_queue_free(&q), 0);
	}
}

/* A process that takes back what it has submitted harms itself only. */
TEST_F(queues, tail_moved_back)
{
	struct bench *b = &self->b;
	size_t n = 4u << 20;
	struct raw_mr from, to;
	struct fabrex_sqe sqe;

	ASSERT_EQ(raw_mr(b->fd, n, RAW_ALL, &from), 0);
	ASSERT_EQ(raw_mr(b->fd, n, RAW_ALL, &to), 0);
	sqe = raw_rw(FABREX_OP_WRITE, b->self, &from, 0, to.key, 0, n);
	sqe.flags = FABREX_SQE_QUIET;
	for (int i = 0; i < 8; i++) {
		struct raw_queue q;

		ASSERT_EQ(raw_queue(b->fd, 8, 8, 0, &q), 0);
		for (int k = 0; k < 6; k++)
			raw_put(&q, &sqe);
		raw_submit(&q);
		usleep(500 * i);
		q.ctrl->sq_tail = i % 6;
		q.db[FABREX_DB_SQ / 4] = i % 6;
		usleep(2000);
		ASSERT_EQ(raw_queue_free(&q), 0);
	}
	sqe = bench_write(b, 0, 0, 64);
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_OK);
	EXPECT_EQ(raw_mr_free(&from), 0);
	EXPECT_EQ(raw_mr_free(&to), 0);
}

/* Nothing is executed after the error. */
TEST_F(queues, error_stops_everything)
{
	struct bench *b = &self->b;
	struct fabrex_sqe sqe = bench_write(b, 0, 0, 64);

	b->q.ctrl->sq_tail = 1000;
	b->q.db[FABREX_DB_SQ / 4] = 1000;
	ASSERT_TRUE(wait_state(&b->q, FABREX_QUEUE_ERROR));
	b->q.ctrl->sq_tail = 0;
	raw_post(&b->q, &sqe);
	b->q.db[FABREX_DB_SQ / 4] = 1;
	usleep(50000);
	EXPECT_TRUE(bench_untouched(b));
	EXPECT_EQ(b->q.ctrl->sq_head, 0);
}

/* The process writes what it likes into the device's words. */
TEST_F(queues, hostile_control_page)
{
	struct fabrex_sqe nop = { .opcode = FABREX_OP_NOP };
	uint32_t seed = 5;

	for (int i = 0; i < 20; i++) {
		struct raw_queue q;

		ASSERT_EQ(raw_queue(self->b.fd, 8, 16, 8, &q), 0);
		raw_put(&q, &nop);
		for (int n = 0; n < 200; n++)
			((volatile uint32_t *)q.ctrl)[raw_random(&seed) % 64] =
				raw_random(&seed);
		for (int n = 0; n < 20; n++) {
			q.db[FABREX_DB_SQ / 4] = raw_random(&seed);
			q.db[FABREX_DB_ARM / 4] = raw_random(&seed);
			q.db[raw_random(&seed) % 1024] = raw_random(&seed);
		}
		EXPECT_EQ(raw_queue_free(&q), 0);
	}
	EXPECT_EQ(raw_do(&self->b.q, &nop, NULL), FABREX_WC_OK);
}

/* Random descriptors: all complete, none does harm, the queue lives. */
TEST_F(queues, random_descriptors)
{
	struct bench *b = &self->b;
	struct fabrex_cqe cqe;
	struct fabrex_sqe sqe;
	uint32_t seed = 77;

	for (int i = 0; i < 3000; i++) {
		uint32_t *w = (uint32_t *)&sqe;

		for (size_t n = 0; n < sizeof(sqe) / 4; n++)
			w[n] = raw_random(&seed);
		sqe.opcode %= 9;
		sqe.flags &= ~FABREX_SQE_QUIET;
		if (i & 1)
			sqe.peer = b->self;
		if (i & 2)
			sqe.lkey = b->src.key;
		if (i & 4)
			sqe.flags = 0;
		ASSERT_TRUE(raw_do(&b->q, &sqe, &cqe) >= 0);
		if (cqe.opcode != FABREX_OP_NOP)
			ASSERT_NE(cqe.status, FABREX_WC_OK);
	}
	EXPECT_TRUE(bench_untouched(b));
	EXPECT_EQ(raw_differs(b->src.addr, BENCH_SIZE, 1), -1);
}

static int armed_queue(struct bench *b, int efd, struct raw_queue *q)
{
	memset(q, 0, sizeof(*q));
	q->info.sq_entries = 8;
	q->info.cq_entries = 8;
	q->info.eventfd = efd;
	return raw_queue_create(b->fd, q);
}

static int readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms);
}

TEST_F(queues, arm_then_complete)
{
	struct fabrex_sqe nop = { .opcode = FABREX_OP_NOP };
	int efd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct fabrex_cqe cqe;
	struct raw_queue q;
	uint64_t n;

	ASSERT_EQ(armed_queue(&self->b, efd, &q), 0);
	/* Not armed: no signal. */
	ASSERT_EQ(raw_do(&q, &nop, NULL), FABREX_WC_OK);
	EXPECT_EQ(readable(efd, 50), 0);
	for (int i = 0; i < 20; i++) {
		raw_arm(&q);
		EXPECT_EQ(read(efd, &n, 8), -1);
		raw_post(&q, &nop);
		ASSERT_EQ(readable(efd, RAW_WAIT_MS), 1);
		ASSERT_EQ(read(efd, &n, 8), 8);
		EXPECT_EQ(n, 1);
		ASSERT_TRUE(raw_poll(&q, &cqe, RAW_WAIT_MS));
	}
	/* One-shot. */
	ASSERT_EQ(raw_do(&q, &nop, NULL), FABREX_WC_OK);
	EXPECT_EQ(readable(efd, 50), 0);
	EXPECT_EQ(raw_queue_free(&q), 0);
	close(efd);
}

/* A completion that is there already signals at once: no lost wake-up. */
TEST_F(queues, complete_then_arm)
{
	struct fabrex_sqe nop = { .opcode = FABREX_OP_NOP };
	int efd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct raw_queue q;

	ASSERT_EQ(armed_queue(&self->b, efd, &q), 0);
	raw_post(&q, &nop);
	ASSERT_TRUE(raw_drain(&q, RAW_WAIT_MS));
	raw_arm(&q);
	EXPECT_EQ(readable(efd, RAW_WAIT_MS), 1);
	EXPECT_EQ(raw_queue_free(&q), 0);
	close(efd);
}

TEST_F(queues, error_wakes_sleeper)
{
	int efd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct raw_queue q;

	ASSERT_EQ(armed_queue(&self->b, efd, &q), 0);
	raw_arm(&q);
	q.ctrl->sq_tail = 100;
	q.db[FABREX_DB_SQ / 4] = 100;
	EXPECT_EQ(readable(efd, RAW_WAIT_MS), 1);
	EXPECT_EQ(raw_queue_free(&q), 0);
	close(efd);
}

/* Destroying with work in flight returns, and afterwards nothing moves. */
TEST_F(queues, destroy_in_flight)
{
	struct bench *b = &self->b;
	size_t n = 4u << 20;
	struct raw_mr from, to;

	ASSERT_EQ(raw_mr(b->fd, n, RAW_ALL, &from), 0);
	ASSERT_EQ(raw_mr(b->fd, n, RAW_ALL, &to), 0);
	for (int i = 0; i < 8; i++) {
		struct fabrex_sqe sqe = raw_rw(FABREX_OP_WRITE, b->self, &from,
					       0, to.key, 0, n);
		struct raw_queue q;

		memset(from.addr, i + 1, n);
		ASSERT_EQ(raw_queue(b->fd, 64, 64, 0, &q), 0);
		for (int k = 0; k < 60; k++)
			raw_put(&q, &sqe);
		raw_submit(&q);
		ASSERT_EQ(raw_destroy(b->fd, q.info.out_id), 0);
		memset(to.addr, 0, n);
		usleep(5000);
		EXPECT_TRUE(raw_all(to.addr, n, 0));
		munmap(q.ring, q.info.out_ring_size);
		munmap((void *)q.db, RAW_PAGE);
	}
	EXPECT_EQ(raw_mr_free(&from), 0);
	EXPECT_EQ(raw_mr_free(&to), 0);
}

/* The same for a region: no byte arrives after destroy has returned. */
TEST_F(queues, region_gone_in_flight)
{
	struct bench *b = &self->b;
	size_t n = 4u << 20;
	struct raw_mr from, to;
	uint8_t *mem = raw_pages(n);

	ASSERT_NE(mem, NULL);
	ASSERT_EQ(raw_mr(b->fd, n, RAW_ALL, &from), 0);
	memset(from.addr, 0x77, n);
	for (int i = 0; i < 8; i++) {
		struct fabrex_cqe cqe;
		struct fabrex_sqe sqe;

		ASSERT_EQ(raw_mr_at(b->fd, mem, n, RAW_ALL, &to), 0);
		sqe = raw_rw(FABREX_OP_WRITE, b->self, &from, 0, to.key, 0, n);
		for (int k = 0; k < 30; k++)
			raw_put(&b->q, &sqe);
		raw_submit(&b->q);
		ASSERT_EQ(raw_destroy(b->fd, to.id), 0);
		memset(mem, 0, n);
		for (int k = 0; k < 30; k++) {
			ASSERT_TRUE(raw_poll(&b->q, &cqe, RAW_WAIT_MS));
			EXPECT_TRUE(cqe.status == FABREX_WC_OK ||
				    cqe.status == FABREX_WC_RKEY ||
				    cqe.status == FABREX_WC_ABORTED)
				TH_LOG("status %d", cqe.status);
		}
		EXPECT_TRUE(raw_all(mem, n, 0));
	}
	EXPECT_EQ(raw_mr_free(&from), 0);
	munmap(mem, n);
}

TEST_F(queues, many)
{
	struct fabrex_sqe nop = { .opcode = FABREX_OP_NOP };
	struct raw_queue q[48];

	for (int i = 0; i < 48; i++) {
		ASSERT_EQ(raw_queue(self->b.fd, 8, 8, 0, &q[i]), 0);
		for (int j = 0; j < i; j++)
			ASSERT_NE(q[i].info.out_queue, q[j].info.out_queue);
	}
	for (int i = 0; i < 48; i++)
		raw_post(&q[i], &nop);
	for (int i = 0; i < 48; i++) {
		EXPECT_TRUE(raw_drain(&q[i], RAW_WAIT_MS));
		EXPECT_EQ(raw_queue_free(&q[i]), 0);
	}
}

TEST_HARNESS_MAIN
