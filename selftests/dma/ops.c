// SPDX-License-Identifier: GPL-2.0-only
/* Every operation does what it says: bytes, completions, CRC, flags. */

#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "kselftest_harness.h"
#include "bench.h"

FIXTURE(ops) {
	struct bench b;
};

FIXTURE_SETUP(ops)
{
	ASSERT_EQ(bench_open(&self->b), 0);
}

FIXTURE_TEARDOWN(ops)
{
	bench_close(&self->b);
}

TEST_F(ops, nop)
{
	struct fabrex_sqe sqe = { .opcode = FABREX_OP_NOP, .user_data = 99 };
	struct fabrex_cqe cqe;

	for (int i = 0; i < 200; i++) {
		ASSERT_EQ(raw_do(&self->b.q, &sqe, &cqe), FABREX_WC_OK);
		EXPECT_EQ(cqe.user_data, 99);
		EXPECT_EQ(cqe.opcode, FABREX_OP_NOP);
		EXPECT_EQ(cqe.index, i);
		EXPECT_EQ(cqe.length, 0);
		EXPECT_EQ(cqe.crc, 0);
	}
}

TEST_F(ops, write_moves_exactly_that)
{
	static const size_t lengths[] = { 1, 7, 8, 64, 100, 4095, 4096, 4097,
					  12345, 60000 };
	struct bench *b = &self->b;
	struct fabrex_cqe cqe;

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		size_t n = lengths[i], from = 11 * i, to = 4093 - 3 * i;
		struct fabrex_sqe sqe = bench_write(b, from, to, n);

		memset(b->dst.addr, BENCH_BLANK, BENCH_SIZE);
		ASSERT_EQ(raw_do(&b->q, &sqe, &cqe), FABREX_WC_OK);
		EXPECT_EQ(cqe.user_data, sqe.user_data);
		EXPECT_EQ(cqe.length, n);
		EXPECT_EQ(cqe.peer, b->self);
		EXPECT_EQ(cqe.opcode, FABREX_OP_WRITE);
		EXPECT_EQ(memcmp(b->dst.addr + to, b->src.addr + from, n), 0);
		EXPECT_TRUE(raw_all(b->dst.addr, to, BENCH_BLANK));
		EXPECT_TRUE(raw_all(b->dst.addr + to + n, BENCH_SIZE - to - n,
				    BENCH_BLANK));
	}
	EXPECT_EQ(raw_differs(b->src.addr, BENCH_SIZE, 1), -1);
}

TEST_F(ops, read_moves_exactly_that)
{
	struct bench *b = &self->b;
	struct fabrex_sqe sqe = bench_read(b, 1001, 2003, 30007);
	struct fabrex_cqe cqe;

	ASSERT_EQ(raw_do(&b->q, &sqe, &cqe), FABREX_WC_OK);
	EXPECT_EQ(cqe.length, 30007);
	EXPECT_EQ(memcmp(b->dst.addr + 1001, b->src.addr + 2003, 30007), 0);
	EXPECT_TRUE(raw_all(b->dst.addr, 1001, BENCH_BLANK));
	EXPECT_TRUE(raw_all(b->dst.addr + 31008, BENCH_SIZE - 31008,
			    BENCH_BLANK));
}

TEST_F(ops, zero_length)
{
	struct bench *b = &self->b;
	struct fabrex_sqe w = bench_write(b, 0, BENCH_SIZE, 0);
	struct fabrex_sqe r = bench_read(b, BENCH_SIZE, 0, 0);

	EXPECT_EQ(raw_do(&b->q, &w, NULL), FABREX_WC_OK);
	EXPECT_EQ(raw_do(&b->q, &r, NULL), FABREX_WC_OK);
	w.rkey ^= 1ull << 33;
	EXPECT_EQ(raw_do(&b->q, &w, NULL), FABREX_WC_RKEY);
	r.loffset = BENCH_SIZE + 1;
	EXPECT_EQ(raw_do(&b->q, &r, NULL), FABREX_WC_LBOUNDS);
	EXPECT_TRUE(bench_untouched(b));
}

TEST_F(ops, check_returns_crc)
{
	struct bench *b = &self->b;
	struct fabrex_sqe w = bench_write(b, 5, 77, 4000);
	struct fabrex_sqe r = bench_read(b, 9000, 33, 5001);
	struct fabrex_cqe cqe;

	ASSERT_EQ(raw_crc32c("123456789", 9), 0xe3069283u);
	w.flags = FABREX_SQE_CHECK;
	ASSERT_EQ(raw_do(&b->q, &w, &cqe), FABREX_WC_OK);
	EXPECT_EQ(cqe.crc, raw_crc32c(b->src.addr + 5, 4000));
	r.flags = FABREX_SQE_CHECK;
	ASSERT_EQ(raw_do(&b->q, &r, &cqe), FABREX_WC_OK);
	EXPECT_EQ(cqe.crc, raw_crc32c(b->src.addr + 33, 5001));
}

TEST_F(ops, write_imm)
{
	struct bench *b = &self->b;
	struct fabrex_sqe sqe = bench_write(b, 0, 100, 5000);
	struct fabrex_cqe cqe[2], *own, *arrival;

	sqe.opcode = FABREX_OP_WRITE_IMM;
	sqe.imm = 0xfeedbeef;
	sqe.dest_key = b->q.info.out_key;
	raw_post(&b->q, &sqe);
	ASSERT_TRUE(raw_poll(&b->q, &cqe[0], RAW_WAIT_MS));
	ASSERT_TRUE(raw_poll(&b->q, &cqe[1], RAW_WAIT_MS));
	arrival = &cqe[cqe[0].opcode != FABREX_OP_RECV_IMM];
	own = &cqe[cqe[0].opcode == FABREX_OP_RECV_IMM];
	EXPECT_EQ(own->opcode, FABREX_OP_WRITE_IMM);
	EXPECT_EQ(own->status, FABREX_WC_OK);
	EXPECT_EQ(arrival->opcode, FABREX_OP_RECV_IMM);
	EXPECT_EQ(arrival->status, FABREX_WC_OK);
	EXPECT_EQ(arrival->imm, 0xfeedbeef);
	EXPECT_EQ(arrival->length, 5000);
	EXPECT_EQ(arrival->peer, b->self);
	EXPECT_EQ(arrival->src_queue, b->q.info.out_queue);
	EXPECT_EQ(arrival->user_data, 0);
	EXPECT_EQ(memcmp(b->dst.addr + 100, b->src.addr, 5000), 0);
	raw_recv_done(&b->q, 1);
}

TEST_F(ops, fetch_add)
{
	struct bench *b = &self->b;
	uint64_t *word = (uint64_t *)(b->dst.addr + 64);
	struct fabrex_sqe sqe = raw_rw(FABREX_OP_FETCH_ADD, b->self, &b->src,
				       16, b->dst.key, 64, 0);
	struct fabrex_cqe cqe;

	*word = 40;
	sqe.operand = 2;
	ASSERT_EQ(raw_do(&b->q, &sqe, &cqe), FABREX_WC_OK);
	EXPECT_EQ(*word, 42);
	EXPECT_EQ(*(uint64_t *)(b->src.addr + 16), 40);
	EXPECT_EQ(cqe.length, 8);
	sqe.operand = -43ull;
	ASSERT_EQ(raw_do(&b->q, &sqe, &cqe), FABREX_WC_OK);
	EXPECT_EQ(*word, -1ull);
}

TEST_F(ops, cmp_swap)
{
	struct bench *b = &self->b;
	uint64_t *word = (uint64_t *)(b->dst.addr + 8);
	uint64_t *old = (uint64_t *)(b->src.addr + 8);
	struct fabrex_sqe sqe = raw_rw(FABREX_OP_CMP_SWAP, b->self, &b->src, 8,
				       b->dst.key, 8, 0);

	*word = 7;
	sqe.compare = 7;
	sqe.operand = 0x1122334455667788ull;
	ASSERT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_OK);
	EXPECT_EQ(*word, 0x1122334455667788ull);
	EXPECT_EQ(*old, 7);
	sqe.operand = 1;
	ASSERT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_OK);
	EXPECT_EQ(*word, 0x1122334455667788ull);
	EXPECT_EQ(*old, 0x1122334455667788ull);
}

TEST_F(ops, quiet)
{
	struct bench *b = &self->b;
	struct fabrex_sqe sqe = bench_write(b, 0, 0, 64);
	struct fabrex_cqe cqe;

	sqe.flags = FABREX_SQE_QUIET;
	for (int i = 0; i < 40; i++)
		raw_put(&b->q, &sqe);
	raw_submit(&b->q);
	ASSERT_TRUE(raw_drain(&b->q, RAW_WAIT_MS));
	EXPECT_FALSE(raw_poll(&b->q, &cqe, 20));
	EXPECT_EQ(memcmp(b->dst.addr, b->src.addr, 64), 0);
	sqe.rkey = 1;
	ASSERT_EQ(raw_do(&b->q, &sqe, &cqe), FABREX_WC_RKEY);
	EXPECT_EQ(cqe.index, 40);
}

/* Regions need not be aligned; page boundaries inside are crossed right. */
TEST_F(ops, unaligned_regions)
{
	struct bench *b = &self->b;
	struct raw_mr from, to;
	struct fabrex_sqe sqe;

	ASSERT_EQ(raw_mr_at(b->fd, b->src.addr + 4091, 9001, RAW_ALL, &from),
		  0);
	ASSERT_EQ(raw_mr_at(b->fd, b->dst.addr + 1, 9001, RAW_ALL, &to), 0);
	sqe = raw_rw(FABREX_OP_WRITE, b->self, &from, 1, to.key, 2, 8999);
	ASSERT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_OK);
	EXPECT_EQ(memcmp(b->dst.addr + 3, b->src.addr + 4092, 8999), 0);
	EXPECT_EQ(b->dst.addr[2], BENCH_BLANK);
	EXPECT_EQ(b->dst.addr[3 + 8999], BENCH_BLANK);
	EXPECT_EQ(raw_destroy(b->fd, from.id), 0);
	EXPECT_EQ(raw_destroy(b->fd, to.id), 0);
}

/* Bytes that go through memory not yet touched, larger than a page table. */
TEST_F(ops, large_transfer)
{
	struct bench *b = &self->b;
	size_t n = 8u << 20;
	struct fabrex_sqe sqe;
	struct fabrex_cqe cqe;
	struct raw_mr from, to;

	ASSERT_EQ(raw_mr(b->fd, n, RAW_ALL, &from), 0);
	ASSERT_EQ(raw_mr(b->fd, n, RAW_ALL, &to), 0);
	raw_fill(from.addr, n, 9);
	sqe = raw_rw(FABREX_OP_WRITE, b->self, &from, 0, to.key, 0, n);
	sqe.flags = FABREX_SQE_CHECK;
	ASSERT_EQ(raw_do(&b->q, &sqe, &cqe), FABREX_WC_OK);
	EXPECT_EQ(cqe.length, n);
	EXPECT_EQ(memcmp(from.addr, to.addr, n), 0);
	EXPECT_EQ(raw_mr_free(&from), 0);
	EXPECT_EQ(raw_mr_free(&to), 0);
}

/* Several times round both rings. */
TEST_F(ops, rings_wrap)
{
	struct bench *b = &self->b;
	uint32_t done = 0, posted = 0;
	struct fabrex_cqe cqe;

	while (done < 1000) {
		while (posted < 1000 && posted - done < 60) {
			struct fabrex_sqe sqe = bench_write(b, posted, posted,
							    1);

			sqe.user_data = posted++;
			raw_put(&b->q, &sqe);
		}
		raw_submit(&b->q);
		ASSERT_TRUE(raw_poll(&b->q, &cqe, RAW_WAIT_MS));
		ASSERT_EQ(cqe.status, FABREX_WC_OK);
		ASSERT_EQ(cqe.user_data, done);
		done++;
	}
	EXPECT_EQ(memcmp(b->dst.addr, b->src.addr, 1000), 0);
	EXPECT_EQ(b->dst.addr[1000], BENCH_BLANK);
}

TEST_HARNESS_MAIN
