// SPDX-License-Identifier: GPL-2.0-only
/*
 * Operations that must be refused: each with the right status, and with all
 * of the target's memory as it was.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "bench.h"

FIXTURE(errors) {
	struct bench b;
};

FIXTURE_SETUP(errors)
{
	ASSERT_EQ(bench_open(&self->b), 0);
}

/* The queue survived whatever was refused, and still moves bytes. */
FIXTURE_TEARDOWN(errors)
{
	struct fabrex_sqe ok = bench_write(&self->b, 0, 0, 64);

	EXPECT_TRUE(bench_untouched(&self->b));
	EXPECT_EQ(raw_differs(self->b.src.addr, BENCH_SIZE, 1), -1);
	EXPECT_EQ(raw_do(&self->b.q, &ok, NULL), FABREX_WC_OK);
	EXPECT_EQ(memcmp(self->b.dst.addr, self->b.src.addr, 64), 0);
	bench_close(&self->b);
}

static struct fabrex_sqe atomic_sqe(struct bench *b, uint8_t opcode,
				    uint64_t roffset)
{
	struct fabrex_sqe sqe = raw_rw(opcode, b->self, &b->dst, 0, b->dst.key,
				       roffset, 0);

	sqe.operand = 1;
	return sqe;
}

TEST_F(errors, opcode)
{
	struct fabrex_sqe sqe = bench_write(&self->b, 0, 0, 64);

	for (int op = 7; op < 256; op++) {
		sqe.opcode = op;
		ASSERT_EQ(raw_do(&self->b.q, &sqe, NULL), FABREX_WC_BAD_OPCODE)
			TH_LOG("opcode %d", op);
	}
}

TEST_F(errors, flags)
{
	struct fabrex_sqe sqe = bench_write(&self->b, 0, 0, 64);
	struct fabrex_sqe atomic = atomic_sqe(&self->b, FABREX_OP_FETCH_ADD, 0);

	for (int bit = 3; bit < 8; bit++) {
		sqe.flags = 1u << bit;
		EXPECT_EQ(raw_do(&self->b.q, &sqe, NULL), FABREX_WC_BAD_DESC)
			TH_LOG("flag bit %d", bit);
	}
	atomic.flags = FABREX_SQE_CHECK;
	EXPECT_EQ(raw_do(&self->b.q, &atomic, NULL), FABREX_WC_BAD_DESC);
}

TEST_F(errors, fields_that_must_be_zero)
{
	struct bench *b = &self->b;
	struct fabrex_sqe sqe = bench_write(b, 0, 0, 64);
	struct fabrex_sqe nop = { .opcode = FABREX_OP_NOP };
	struct fabrex_sqe send = raw_send(b->self, &b->q, &b->src, 0, 8);

	sqe.imm = 1;
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_BAD_DESC);
	sqe.imm = 0;
	sqe.dest_key = 1;
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_BAD_DESC);
	sqe.dest_key = 1ull << 63;
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_BAD_DESC);
	nop.length = 1;
	EXPECT_EQ(raw_do(&b->q, &nop, NULL), FABREX_WC_BAD_DESC);
	send.rkey = b->dst.key;
	EXPECT_EQ(raw_do(&b->q, &send, NULL), FABREX_WC_BAD_DESC);
	send.rkey = 0;
	send.roffset = 8;
	EXPECT_EQ(raw_do(&b->q, &send, NULL), FABREX_WC_BAD_DESC);
}

TEST_F(errors, length)
{
	struct bench *b = &self->b;
	struct fabrex_sqe sqe = bench_write(b, 0, 0, 0);
	struct fabrex_sqe send = raw_send(b->self, &b->q, &b->src, 0, 0);

	sqe.length = b->port.out_max_transfer + 1;
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_BAD_DESC);
	sqe.length = UINT64_MAX;
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_BAD_DESC);
	send.lkey = 0;
	send.flags = FABREX_SQE_INLINE;
	send.length = FABREX_INLINE_MAX + 1;
	EXPECT_EQ(raw_do(&b->q, &send, NULL), FABREX_WC_BAD_DESC);
}

TEST_F(errors, lkey)
{
	struct bench *b = &self->b;
	struct fabrex_sqe sqe = bench_write(b, 0, 0, 64);
	uint64_t good = sqe.lkey;

	for (int bit = 0; bit < 64; bit++) {
		sqe.lkey = good ^ 1ull << bit;
		ASSERT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_LKEY)
			TH_LOG("key bit %d", bit);
	}
	sqe.lkey = 0;
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_LKEY);
}

TEST_F(errors, rkey)
{
	struct bench *b = &self->b;
	struct fabrex_sqe sqe = bench_write(b, 0, 0, 64);
	uint64_t good = sqe.rkey;

	for (int bit = 0; bit < 64; bit++) {
		sqe.rkey = good ^ 1ull << bit;
		ASSERT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_RKEY)
			TH_LOG("key bit %d", bit);
	}
	sqe.rkey = 0;
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_RKEY);
}

TEST_F(errors, destroyed_keys)
{
	struct bench *b = &self->b;
	struct raw_mr mr;
	struct fabrex_sqe sqe;

	ASSERT_EQ(raw_mr(b->fd, BENCH_SIZE, RAW_ALL, &mr), 0);
	memset(mr.addr, BENCH_BLANK, BENCH_SIZE);
	ASSERT_EQ(raw_destroy(b->fd, mr.id), 0);
	sqe = raw_rw(FABREX_OP_WRITE, b->self, &b->src, 0, mr.key, 0, 64);
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_RKEY);
	sqe = raw_rw(FABREX_OP_READ, b->self, &mr, 0, b->src.key, 0, 64);
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_LKEY);
	EXPECT_TRUE(raw_all(mr.addr, BENCH_SIZE, BENCH_BLANK));
	munmap(mr.addr, BENCH_SIZE);
}

TEST_F(errors, local_bounds)
{
	struct bench *b = &self->b;
	static const struct { uint64_t offset, length; } bad[] = {
		{ BENCH_SIZE, 1 }, { BENCH_SIZE - 63, 64 }, { 0, BENCH_SIZE + 1 },
		{ BENCH_SIZE + 4096, 1 }, { UINT64_MAX, 1 },
		{ UINT64_MAX - 31, 64 }, { 1ull << 63, 64 },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct fabrex_sqe w = bench_write(b, bad[i].offset, 0,
						  bad[i].length);
		struct fabrex_sqe r = bench_read(b, bad[i].offset, 0,
						 bad[i].length);

		EXPECT_EQ(raw_do(&b->q, &w, NULL), FABREX_WC_LBOUNDS)
			TH_LOG("case %zu", i);
		EXPECT_EQ(raw_do(&b->q, &r, NULL), FABREX_WC_LBOUNDS)
			TH_LOG("case %zu", i);
	}
}

TEST_F(errors, remote_bounds)
{
	struct bench *b = &self->b;
	static const struct { uint64_t offset, length; } bad[] = {
		{ BENCH_SIZE, 1 }, { BENCH_SIZE - 63, 64 },
		{ 1, BENCH_SIZE }, { UINT64_MAX, 1 }, { UINT64_MAX - 31, 64 },
		{ 1ull << 63, 64 },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct fabrex_sqe w = bench_write(b, 0, bad[i].offset,
						  bad[i].length);
		struct fabrex_sqe r = bench_read(b, 0, bad[i].offset,
						 bad[i].length);

		EXPECT_EQ(raw_do(&b->q, &w, NULL), FABREX_WC_RBOUNDS)
			TH_LOG("case %zu", i);
		EXPECT_EQ(raw_do(&b->q, &r, NULL), FABREX_WC_RBOUNDS)
			TH_LOG("case %zu", i);
	}
}

/* A region that ends inside a page ends there, not at the page. */
TEST_F(errors, region_shorter_than_its_page)
{
	struct bench *b = &self->b;
	struct fabrex_sqe sqe;
	struct raw_mr mr;

	ASSERT_EQ(raw_mr_at(b->fd, b->dst.addr + 100, 200, RAW_ALL, &mr), 0);
	sqe = raw_rw(FABREX_OP_WRITE, b->self, &b->src, 0, mr.key, 0, 201);
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_RBOUNDS);
	sqe = raw_rw(FABREX_OP_WRITE, b->self, &b->src, 0, mr.key, 200, 1);
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_RBOUNDS);
	EXPECT_EQ(raw_destroy(b->fd, mr.id), 0);
}

TEST_F(errors, rights)
{
	struct bench *b = &self->b;

	for (uint32_t access = 0; access < 16; access++) {
		bool local = access & FABREX_ACCESS_LOCAL_WRITE;
		bool read = access & FABREX_ACCESS_REMOTE_READ;
		bool write = access & FABREX_ACCESS_REMOTE_WRITE;
		bool atomic = access & FABREX_ACCESS_REMOTE_ATOMIC;
		struct fabrex_sqe w, r, l, f;
		struct raw_mr mr;

		ASSERT_EQ(raw_mr_at(b->fd, b->dst.addr, BENCH_SIZE, access,
				    &mr), 0);
		w = raw_rw(FABREX_OP_WRITE, b->self, &b->src, 0, mr.key, 0, 64);
		r = raw_rw(FABREX_OP_READ, b->self, &b->dst, 0, mr.key, 0, 64);
		l = raw_rw(FABREX_OP_READ, b->self, &mr, 0, b->src.key, 0, 64);
		f = raw_rw(FABREX_OP_FETCH_ADD, b->self, &b->dst, 8, mr.key, 0,
			   0);
		EXPECT_EQ(raw_do(&b->q, &w, NULL),
			  write ? FABREX_WC_OK : FABREX_WC_RACCESS);
		EXPECT_EQ(raw_do(&b->q, &r, NULL),
			  read ? FABREX_WC_OK : FABREX_WC_RACCESS);
		EXPECT_EQ(raw_do(&b->q, &l, NULL),
			  local ? FABREX_WC_OK : FABREX_WC_LACCESS);
		EXPECT_EQ(raw_do(&b->q, &f, NULL),
			  atomic ? FABREX_WC_OK : FABREX_WC_RACCESS);
		EXPECT_EQ(raw_destroy(b->fd, mr.id), 0);
		if (!access)
			EXPECT_TRUE(bench_untouched(b));
		memset(b->dst.addr, BENCH_BLANK, BENCH_SIZE);
	}
}

TEST_F(errors, peers_mask)
{
	struct bench *b = &self->b;
	uint64_t others[4] = { -1ull, -1ull, -1ull, -1ull };
	uint64_t only[4] = { 0 };
	struct fabrex_sqe sqe;
	struct raw_mr mr;

	others[b->self / 64] &= ~(1ull << b->self % 64);
	only[b->self / 64] |= 1ull << b->self % 64;
	ASSERT_EQ(raw_mr_for(b->fd, b->dst.addr, BENCH_SIZE, RAW_ALL, others,
			     &mr), 0);
	sqe = raw_rw(FABREX_OP_WRITE, b->self, &b->src, 0, mr.key, 0, 64);
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_RPEER);
	sqe = raw_rw(FABREX_OP_READ, b->self, &b->dst, 0, mr.key, 0, 64);
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_RPEER);
	EXPECT_EQ(raw_destroy(b->fd, mr.id), 0);
	EXPECT_TRUE(bench_untouched(b));
	ASSERT_EQ(raw_mr_for(b->fd, b->dst.addr, BENCH_SIZE, RAW_ALL, only,
			     &mr), 0);
	sqe = raw_rw(FABREX_OP_WRITE, b->self, &b->src, 0, mr.key, 0, 64);
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_OK);
	EXPECT_EQ(raw_destroy(b->fd, mr.id), 0);
	memset(b->dst.addr, BENCH_BLANK, BENCH_SIZE);
}

TEST_F(errors, no_such_peer)
{
	struct bench *b = &self->b;
	struct fabrex_sqe sqe = bench_write(b, 0, 0, 64);

	sqe.peer = b->port.out_max_peers;
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_UNREACHABLE);
	sqe.peer = 0xffff;
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_UNREACHABLE);
}

TEST_F(errors, atomics)
{
	struct bench *b = &self->b;
	struct fabrex_sqe sqe = atomic_sqe(b, FABREX_OP_FETCH_ADD, 0);
	struct raw_mr odd;

	for (int off = 1; off < 8; off++) {
		sqe.roffset = off;
		EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_BAD_DESC);
	}
	sqe.roffset = BENCH_SIZE;
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_RBOUNDS);
	sqe.roffset = 0;
	sqe.loffset = BENCH_SIZE - 7;
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_LBOUNDS);
	sqe.loffset = 0;
	sqe.compare = 1;	/* FETCH_ADD has none */
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_BAD_DESC);
	/* A region that itself is not aligned. */
	ASSERT_EQ(raw_mr_at(b->fd, b->dst.addr + 4, 64, RAW_ALL, &odd), 0);
	sqe = atomic_sqe(b, FABREX_OP_CMP_SWAP, 0);
	sqe.rkey = odd.key;
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_BAD_DESC);
	EXPECT_EQ(raw_destroy(b->fd, odd.id), 0);
}

/* The order of checks: the first that fails names the error. */
TEST_F(errors, precedence)
{
	struct bench *b = &self->b;
	struct fabrex_sqe sqe = bench_write(b, 0, 0, 64);

	sqe.rkey = 1;
	sqe.roffset = UINT64_MAX;
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_RKEY);
	sqe.peer = 0xffff;
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_UNREACHABLE);
	sqe.loffset = UINT64_MAX;
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_LBOUNDS);
	sqe.lkey = 1;
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_LKEY);
	sqe.imm = 1;
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_BAD_DESC);
	sqe.opcode = 99;
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_BAD_OPCODE);
}

/* Local keys are good for queues of their own file only: another file of the
 * same process, and another process, are refused alike.
 */
TEST_F(errors, local_key_of_another_file)
{
	struct bench *b = &self->b, other;
	struct fabrex_sqe sqe;

	ASSERT_EQ(bench_open(&other), 0);
	sqe = bench_write(b, 0, 0, 64);
	sqe.rkey = other.dst.key;
	EXPECT_EQ(raw_do(&other.q, &sqe, NULL), FABREX_WC_LKEY);
	EXPECT_TRUE(bench_untouched(&other));
	sqe = raw_rw(FABREX_OP_READ, b->self, &b->dst, 0, other.src.key, 0, 64);
	EXPECT_EQ(raw_do(&other.q, &sqe, NULL), FABREX_WC_LKEY);
	bench_close(&other);
}

TEST_F(errors, local_key_of_another_process)
{
	struct bench *b = &self->b;
	int status;
	pid_t pid = fork();

	ASSERT_GE(pid, 0);
	if (!pid) {
		struct fabrex_sqe sqe;
		struct bench thief;
		int got;

		if (bench_open(&thief))
			_exit(1);
		sqe = raw_rw(FABREX_OP_WRITE, b->self, &b->src, 0,
			     thief.dst.key, 0, 4096);
		got = raw_do(&thief.q, &sqe, NULL);
		if (got != FABREX_WC_LKEY || !bench_untouched(&thief))
			_exit(2);
		sqe = raw_rw(FABREX_OP_READ, b->self, &b->dst, 0,
			     thief.src.key, 0, 4096);
		_exit(raw_do(&thief.q, &sqe, NULL) == FABREX_WC_LKEY ? 0 : 3);
	}
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
}

TEST_HARNESS_MAIN
