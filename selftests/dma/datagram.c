// SPDX-License-Identifier: GPL-2.0-only
/* SEND: inline and from memory, cells, RNR, queue keys, sizes. */

#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "bench.h"

#define CELLS	16

FIXTURE(datagram) {
	struct bench b;
	struct raw_queue rx;
};

FIXTURE_SETUP(datagram)
{
	ASSERT_EQ(bench_open(&self->b), 0);
	ASSERT_EQ(raw_queue(self->b.fd, 8, 32, CELLS, &self->rx), 0);
}

FIXTURE_TEARDOWN(datagram)
{
	raw_queue_free(&self->rx);
	bench_close(&self->b);
}

static struct fabrex_sqe in_line(struct bench *b, struct raw_queue *to,
				 const char *text)
{
	struct fabrex_sqe sqe = { .opcode = FABREX_OP_SEND,
				  .flags = FABREX_SQE_INLINE,
				  .peer = b->self, .imm = 17 };

	sqe.length = strlen(text);
	memcpy(sqe.inline_data, text, strlen(text));
	sqe.dest_key = to->info.out_key;
	return sqe;
}

TEST_F(datagram, inline_data)
{
	static const char *const texts[] = { "", "x", "hello", "eight ch",
					     "exactly twenty-four chrs" };
	struct fabrex_cqe cqe;

	for (int i = 0; i < 5; i++) {
		struct fabrex_sqe sqe = in_line(&self->b, &self->rx, texts[i]);

		ASSERT_EQ(raw_do(&self->b.q, &sqe, &cqe), FABREX_WC_OK);
		EXPECT_EQ(cqe.length, strlen(texts[i]));
		ASSERT_TRUE(raw_poll(&self->rx, &cqe, RAW_WAIT_MS));
		EXPECT_EQ(cqe.opcode, FABREX_OP_RECV);
		EXPECT_EQ(cqe.status, FABREX_WC_OK);
		EXPECT_EQ(cqe.imm, 17);
		EXPECT_EQ(cqe.peer, self->b.self);
		EXPECT_EQ(cqe.src_queue, self->b.q.info.out_queue);
		EXPECT_EQ(cqe.index, i);
		ASSERT_EQ(cqe.length, strlen(texts[i]));
		EXPECT_EQ(memcmp(raw_cell(&self->rx, cqe.index), texts[i],
				 cqe.length), 0);
	}
	raw_recv_done(&self->rx, 5);
}

TEST_F(datagram, from_memory)
{
	struct bench *b = &self->b;
	struct fabrex_cqe cqe;

	for (uint32_t n = 0; n <= 256; n += 32) {
		struct fabrex_sqe sqe = raw_send(b->self, &self->rx, &b->src,
						 n + 3, n);

		ASSERT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_OK);
		ASSERT_TRUE(raw_poll(&self->rx, &cqe, RAW_WAIT_MS));
		ASSERT_EQ(cqe.length, n);
		EXPECT_EQ(memcmp(raw_cell(&self->rx, cqe.index),
				 b->src.addr + n + 3, n), 0);
		raw_recv_done(&self->rx, 1);
	}
}

TEST_F(datagram, too_long)
{
	static const uint32_t lengths[] = { 257, 4096, 4097, BENCH_SIZE };
	struct bench *b = &self->b;
	struct fabrex_sqe sqe;
	struct fabrex_cqe cqe;

	memset(self->rx.rq, 0x5c, 256 * CELLS);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		sqe = raw_send(b->self, &self->rx, &b->src, 0, lengths[i]);
		EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_TOO_LONG);
		sqe.dest_key ^= 1ull << 40;
		EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_BAD_QUEUE);
	}
	EXPECT_FALSE(raw_poll(&self->rx, &cqe, 20));
	EXPECT_TRUE(raw_all(self->rx.rq, 256 * CELLS, 0x5c));
}

/* Who is destroyed in the middle of a long WRITE_IMM gives the cell back. */
TEST_F(datagram, write_imm_abandoned)
{
	struct bench *b = &self->b;
	size_t n = 8u << 20;
	struct raw_mr from, to;
	struct fabrex_cqe cqe;
	struct fabrex_sqe sqe;

	ASSERT_EQ(raw_mr(b->fd, n, RAW_ALL, &from), 0);
	ASSERT_EQ(raw_mr(b->fd, n, RAW_ALL, &to), 0);
	sqe = raw_rw(FABREX_OP_WRITE_IMM, b->self, &from, 0, to.key, 0, n);
	sqe.dest_key = self->rx.info.out_key;
	for (int i = 0; i < 2 * CELLS; i++) {
		struct raw_queue q;

		ASSERT_EQ(raw_queue(b->fd, 8, 8, 0, &q), 0);
		raw_post(&q, &sqe);
		usleep(300 * (i % 8));
		ASSERT_EQ(raw_queue_free(&q), 0);
		/* Or it was complete before. */
		if (raw_poll(&self->rx, &cqe, 0))
			raw_recv_done(&self->rx, 1);
	}
	for (int i = 0; i < CELLS; i++) {
		struct fabrex_sqe text = in_line(b, &self->rx, "room");

		ASSERT_EQ(raw_do(&b->q, &text, NULL), FABREX_WC_OK);
	}
	EXPECT_EQ(raw_mr_free(&from), 0);
	EXPECT_EQ(raw_mr_free(&to), 0);
}

TEST_F(datagram, bad_queue)
{
	struct bench *b = &self->b;
	struct fabrex_sqe good = in_line(b, &self->rx, "hi"), sqe;
	struct raw_queue deaf;

	for (int bit = 0; bit < 64; bit++) {
		sqe = good;
		sqe.dest_key ^= 1ull << bit;
		ASSERT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_BAD_QUEUE);
	}
	sqe = good;
	sqe.dest_key = self->rx.info.out_queue;
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_BAD_QUEUE);
	sqe.dest_key = ~0ull;
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_BAD_QUEUE);
	/* A queue without cells receives nothing. */
	ASSERT_EQ(raw_queue(b->fd, 8, 8, 0, &deaf), 0);
	sqe = in_line(b, &deaf, "hi");
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_BAD_QUEUE);
	/* Nor does one that is gone. */
	ASSERT_EQ(raw_queue_free(&deaf), 0);
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_BAD_QUEUE);
}

TEST_F(datagram, receiver_not_ready)
{
	struct bench *b = &self->b;
	struct fabrex_sqe sqe = in_line(b, &self->rx, "a");
	struct fabrex_cqe cqe;

	for (int i = 0; i < CELLS; i++) {
		sqe.inline_data[0] = 'a' + i;
		ASSERT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_OK);
	}
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_RNR);
	/* The RNR damaged nothing and one cell given back makes room for one. */
	for (int i = 0; i < CELLS; i++) {
		ASSERT_TRUE(raw_poll(&self->rx, &cqe, RAW_WAIT_MS));
		EXPECT_EQ(*(char *)raw_cell(&self->rx, cqe.index), 'a' + i);
	}
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_RNR);
	raw_recv_done(&self->rx, 1);
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_OK);
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_RNR);
}

/* A WRITE_IMM that finds no cell writes nothing. */
TEST_F(datagram, write_imm_not_ready)
{
	struct bench *b = &self->b;
	struct fabrex_sqe fill = in_line(b, &self->rx, "a");
	struct fabrex_sqe sqe = bench_write(b, 0, 0, 4096);

	for (int i = 0; i < CELLS; i++)
		ASSERT_EQ(raw_do(&b->q, &fill, NULL), FABREX_WC_OK);
	sqe.opcode = FABREX_OP_WRITE_IMM;
	sqe.dest_key = self->rx.info.out_key;
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_RNR);
	EXPECT_TRUE(bench_untouched(b));
	sqe.dest_key ^= 1ull << 63;
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_BAD_QUEUE);
	EXPECT_TRUE(bench_untouched(b));
}

/* A receiver that lies about its heads harms itself only. */
TEST_F(datagram, hostile_receiver)
{
	struct bench *b = &self->b;
	struct fabrex_sqe sqe = in_line(b, &self->rx, "a");
	struct fabrex_sqe ok = bench_write(b, 0, 0, 64);
	uint32_t seed = 9;

	for (int i = 0; i < 200; i++) {
		int got;

		self->rx.ctrl->rq_head = raw_random(&seed);
		self->rx.ctrl->cq_head = raw_random(&seed);
		got = raw_do(&b->q, &sqe, NULL);
		ASSERT_TRUE(got == FABREX_WC_OK || got == FABREX_WC_RNR ||
			    got == FABREX_WC_BAD_QUEUE) TH_LOG("%d", got);
	}
	EXPECT_EQ(raw_do(&b->q, &ok, NULL), FABREX_WC_OK);
}

TEST_F(datagram, many_in_order)
{
	struct bench *b = &self->b;
	uint32_t sent = 0, got = 0;
	struct fabrex_cqe cqe;

	while (got < 2000) {
		while (sent < 2000 && sent - got < CELLS) {
			struct fabrex_sqe sqe = in_line(b, &self->rx, "");

			sqe.imm = sent++;
			sqe.flags |= FABREX_SQE_QUIET;
			raw_put(&b->q, &sqe);
		}
		raw_submit(&b->q);
		ASSERT_TRUE(raw_poll(&self->rx, &cqe, RAW_WAIT_MS));
		ASSERT_EQ(cqe.imm, got);
		got++;
		raw_recv_done(&self->rx, 1);
	}
	EXPECT_FALSE(raw_poll(&b->q, &cqe, 20));	/* all were quiet */
}

TEST_HARNESS_MAIN
