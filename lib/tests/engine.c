// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tests of the loopback transport's engine: every opcode, flag and status as
 * docs/draco.md section 12 has them, between two ports in one process. Run by
 * main.c.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/core.h"
#include "loop.h"
#include "party.h"
#include "transport/loopback/loopback.h"

/* An operation from a to b with everything set that its opcode needs. */
struct fabrex_op loop_op(const struct pair *p, uint8_t opcode, uint64_t length)
{
	struct fabrex_op op = {
		.opcode = opcode, .peer = (uint16_t)p->rb.peer,
		.user_data = 4711, .mr = p->ma, .length = length,
	};

	if (opcode != FABREX_OP_SEND)
		op.rkey = p->rb.rkey;
	if (opcode == FABREX_OP_SEND || opcode == FABREX_OP_WRITE_IMM)
		op.dest_key = fabrex_queue_key(p->qb);
	return op;
}

/* Posted, executed, and reported at once. */
static struct fabrex_wc run(struct pair *p, const struct fabrex_op *op)
{
	struct fabrex_wc wc[2];

	CHECK_EQ(fabrex_post(p->qa, op, 1), 1);
	CHECK_EQ(fabrex_poll(p->qa, wc, 2), 1);
	CHECK_EQ(wc[0].user_data, op->user_data);
	CHECK_EQ(wc[0].opcode, op->opcode);
	return wc[0];
}

static void run_is(struct pair *p, const struct fabrex_op *op, int status)
{
	CHECK_EQ(run(p, op).status, status);
}

/* ---- what is moved ----------------------------------------------------- */

static void fill(uint8_t *p, size_t n, unsigned int seed)
{
	size_t i;

	for (i = 0; i < n; i++)
		p[i] = (uint8_t)(i * 7 + seed + (i >> 8));
}

static void write_one(struct pair *p, size_t offset, size_t roffset, size_t n)
{
	struct fabrex_op op = loop_op(p, FABREX_OP_WRITE, n);
	struct fabrex_wc wc;

	op.offset = offset;
	op.roffset = roffset;
	memset(p->pb, 0xee, PAIR_SIZE);
	wc = run(p, &op);
	CHECK_EQ(wc.status, FABREX_WC_OK);
	CHECK_EQ(wc.length, n);
	CHECK(!memcmp(p->pb + roffset, p->pa + offset, n));
	CHECK(!roffset || p->pb[roffset - 1] == 0xee);
	CHECK(roffset + n == PAIR_SIZE || p->pb[roffset + n] == 0xee);
}

TEST(loop_write_sizes)
{
	struct pair p;
	size_t n;

	loop_open(&p, NULL);
	fill(p.pa, PAIR_SIZE, 3);
	for (n = 0; n < 300; n++)
		write_one(&p, n % 5, n % 3, n);
	write_one(&p, 0, 0, PAIR_SIZE);
	write_one(&p, 8, 16, 8);
	loop_close(&p);
}

TEST(loop_read_and_own_peer)
{
	struct fabrex_remote self;
	struct fabrex_wc wc;
	struct pair p;

	loop_open(&p, NULL);
	fill(p.pb, PAIR_SIZE, 9);
	CHECK_EQ(fabrex_post_read(p.qa, p.ma, 3, &p.rb, 5, 1001, 0, 1), 0);
	CHECK_EQ(fabrex_poll(p.qa, &wc, 1), 1);
	CHECK(!wc.status && wc.length == 1001 && wc.peer == p.rb.peer);
	CHECK(!memcmp(p.pa + 3, p.pb + 5, 1001) && !p.pa[2] && !p.pa[1004]);
	fabrex_mr_remote(p.ma, &self);
	CHECK_EQ(fabrex_post_write(p.qa, p.ma, 3, &self, 2048, 100, 0, 2), 0);
	CHECK_EQ(fabrex_poll(p.qa, &wc, 1), 1);
	CHECK(!wc.status && !memcmp(p.pa + 2048, p.pb + 5, 100));
	loop_close(&p);
}

/* Memory of the caller's own, at either side. */
TEST(loop_other_memory)
{
	uint8_t *mine = malloc(100000), *theirs = malloc(100000);
	struct fabrex_mr *ma, *mb;
	struct fabrex_op op;
	struct pair p;

	loop_open(&p, NULL);
	fill(mine, 100000, 1);
	CHECK_EQ(fabrex_mr_register(p.a, mine, 100000, FABREX_MR_ALL, &ma), 0);
	CHECK_EQ(fabrex_mr_register(p.b, theirs, 100000, FABREX_MR_ALL, &mb), 0);
	op = loop_op(&p, FABREX_OP_WRITE, 4000);
	op.mr = ma;
	op.offset = 77;
	run_is(&p, &op, FABREX_WC_OK);
	CHECK(!memcmp(p.pb, mine + 77, 4000));
	op.rkey = fabrex_mr_key(mb);
	op.length = 99000;
	op.flags = FABREX_SQE_CHECK;
	run_is(&p, &op, FABREX_WC_OK);
	CHECK(!memcmp(theirs, mine + 77, 99000));
	op.opcode = FABREX_OP_READ;
	memset(mine, 0, 100000);
	run_is(&p, &op, FABREX_WC_OK);
	CHECK(!memcmp(theirs, mine + 77, 99000) && !mine[76]);
	loop_close(&p);
	free(mine);
	free(theirs);
}

TEST(loop_atomics)
{
	struct fabrex_op op;
	uint64_t *word, *old;
	struct pair p;

	loop_open(&p, NULL);
	word = (uint64_t *)(void *)(p.pb + 64);
	old = (uint64_t *)(void *)(p.pa + 8);
	*word = 37;
	op = loop_op(&p, FABREX_OP_FETCH_ADD, 0);
	op.offset = 8;
	op.roffset = 64;
	op.operand = 5;
	CHECK_EQ(run(&p, &op).length, 8);
	CHECK(*old == 37 && *word == 42);
	op.opcode = FABREX_OP_CMP_SWAP;
	op.compare = 42;
	op.operand = 1;
	run_is(&p, &op, FABREX_WC_OK);
	CHECK(*old == 42 && *word == 1);
	run_is(&p, &op, FABREX_WC_OK);
	CHECK(*old == 1 && *word == 1);
	op.roffset = 4;
	run_is(&p, &op, FABREX_WC_BAD_DESC);
	op.roffset = 64;
	op.offset = 13;
	run_is(&p, &op, FABREX_WC_OK);
	loop_close(&p);
}

TEST(loop_check_sums)
{
	static const char text[] = "123456789";
	struct fabrex_op op;
	struct fabrex_wc wc;
	struct pair p;

	loop_open(&p, NULL);
	memcpy(p.pa, text, 9);
	op = loop_op(&p, FABREX_OP_WRITE, 9);
	op.flags = FABREX_SQE_CHECK;
	CHECK_EQ(run(&p, &op).crc, 0xe3069283u);
	CHECK(!memcmp(p.pb, text, 9));
	op.opcode = FABREX_OP_READ;
	memset(p.pa, 0, 16);
	CHECK_EQ(run(&p, &op).crc, 0xe3069283u);
	op = loop_op(&p, FABREX_OP_WRITE_IMM, 9);
	op.flags = FABREX_SQE_CHECK;
	op.imm = 5;
	CHECK_EQ(run(&p, &op).crc, 0xe3069283u);
	CHECK_EQ(fabrex_poll(p.qb, &wc, 1), 1);
	CHECK(wc.crc == 0xe3069283u && wc.imm == 5 && wc.length == 9);
	op = loop_op(&p, FABREX_OP_WRITE, 0);
	op.flags = FABREX_SQE_CHECK;
	CHECK_EQ(run(&p, &op).crc, 0);
	loop_close(&p);
}

/* ---- messages ---------------------------------------------------------- */

TEST(loop_messages)
{
	struct fabrex_op op;
	struct fabrex_wc wc;
	struct pair p;
	size_t n;

	loop_open(&p, NULL);
	fill(p.pa, PAIR_SIZE, 1);
	for (n = 0; n <= 256; n++) {
		op = loop_op(&p, FABREX_OP_SEND, n);
		op.offset = n;
		op.imm = (uint32_t)n + 1;
		run_is(&p, &op, FABREX_WC_OK);
		CHECK_EQ(fabrex_poll(p.qb, &wc, 1), 1);
		CHECK(wc.opcode == FABREX_OP_RECV && wc.length == n);
		CHECK(!wc.status && wc.imm == n + 1 && wc.data);
		CHECK_EQ(wc.src_queue, fabrex_queue_number(p.qa));
		CHECK_EQ(wc.cell, n);
		CHECK(!memcmp(wc.data, p.pa + n, n));
		fabrex_recv_done(p.qb, 1);
	}
	op = loop_op(&p, FABREX_OP_SEND, 24);
	op.inline_data = "twenty-four bytes inline";
	op.mr = NULL;
	run_is(&p, &op, FABREX_WC_OK);
	CHECK_EQ(fabrex_poll(p.qb, &wc, 1), 1);
	CHECK(wc.length == 24 && !memcmp(wc.data, op.inline_data, 24));
	loop_close(&p);
}

TEST(loop_write_immediate)
{
	struct fabrex_op op;
	struct fabrex_wc wc;
	struct pair p;

	loop_open(&p, NULL);
	fill(p.pa, PAIR_SIZE, 5);
	op = loop_op(&p, FABREX_OP_WRITE_IMM, 100);
	op.imm = 0xabcd;
	run_is(&p, &op, FABREX_WC_OK);
	CHECK_EQ(fabrex_poll(p.qb, &wc, 1), 1);
	CHECK(wc.opcode == FABREX_OP_RECV_IMM && wc.imm == 0xabcd);
	CHECK(wc.length == 100 && !wc.data && !wc.user_data);
	CHECK(!memcmp(p.pa, p.pb, 100));
	loop_close(&p);
}

/* Cells are the receiver's until given back; then in order, any number. */
TEST(loop_receiver_not_ready)
{
	struct fabrex_op op, write;
	struct fabrex_wc wc[9];
	struct pair p;
	int round, i;

	loop_open(&p, NULL);
	op = loop_op(&p, FABREX_OP_SEND, 8);
	write = loop_op(&p, FABREX_OP_WRITE_IMM, 8);
	memset(p.pa, 1, 8);
	for (round = 0; round < 50; round++) {
		for (i = 0; i < 8; i++) {
			op.imm = (uint32_t)i;
			run_is(&p, &op, FABREX_WC_OK);
		}
		memset(p.pb, 0, 8);
		run_is(&p, &op, FABREX_WC_RNR);
		run_is(&p, &write, FABREX_WC_RNR);
		CHECK(!p.pb[0]);
		CHECK_EQ(fabrex_poll(p.qb, wc, 9), 8);
		for (i = 0; i < 8; i++)
			CHECK_EQ(wc[i].imm, i);
		run_is(&p, &op, FABREX_WC_RNR);
		fabrex_recv_done(p.qb, 1);
		run_is(&p, &op, FABREX_WC_OK);
		run_is(&p, &op, FABREX_WC_RNR);
		CHECK_EQ(fabrex_poll(p.qb, wc, 9), 1);
		fabrex_recv_done(p.qb, 100);
	}
	loop_close(&p);
}

/* A cell that no sender of ours writes: the queue ends, and says so. */
TEST(loop_message_that_cannot_be)
{
	static const struct segment_cell bad[] = {
		{ .seq = 1, .opcode = FABREX_OP_RECV, .length = 257 },
		{ .seq = 1, .opcode = FABREX_OP_RECV, .length = UINT32_MAX },
		{ .seq = 1, .opcode = FABREX_OP_SEND, .length = 8 },
	};
	struct fabrex_wc wc;
	struct pair p;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		loop_open(&p, NULL);
		loop_queue_of(p.qb)->cells[0] = bad[i];
		CHECK_EQ(fabrex_poll(p.qb, &wc, 1), -ENETDOWN);
		CHECK_SAYS("cannot be");
		CHECK_EQ(fabrex_wait(p.qb, 0), 1);
		CHECK_EQ(fabrex_poll(p.qb, &wc, 1), -ENETDOWN);
		loop_close(&p);
	}
}

/* A key that has ended is refused where it was used a moment ago. */
TEST(loop_keys_that_ended)
{
	struct fabrex_mr *mr;
	struct fabrex_op op;
	struct pair p;

	loop_open(&p, NULL);
	op = loop_op(&p, FABREX_OP_WRITE, 8);
	run_is(&p, &op, FABREX_WC_OK);
	run_is(&p, &op, FABREX_WC_OK);
	CHECK_EQ(fabrex_mr_deregister(p.mb), 0);
	run_is(&p, &op, FABREX_WC_RKEY);
	CHECK_EQ(fabrex_mr_alloc(p.b, PAIR_SIZE, FABREX_MR_ALL, &p.mb), 0);
	run_is(&p, &op, FABREX_WC_RKEY);
	op.rkey = fabrex_mr_key(p.mb);
	run_is(&p, &op, FABREX_WC_OK);
	/* A region inside an allocation ends with it, its handle does not. */
	CHECK_EQ(fabrex_mr_register(p.a, p.pa + 64, 64, 0, &mr), 0);
	op.mr = mr;
	run_is(&p, &op, FABREX_WC_OK);
	run_is(&p, &op, FABREX_WC_OK);
	CHECK_EQ(fabrex_mr_deregister(p.ma), 0);
	run_is(&p, &op, FABREX_WC_LKEY);
	loop_close(&p);
}

/* ---- statuses ---------------------------------------------------------- */

TEST(loop_statuses_local)
{
	struct fabrex_mr *plain;
	struct fabrex_op op;
	struct pair p;

	loop_open(&p, NULL);
	CHECK_EQ(fabrex_mr_alloc(p.a, 4096, 0, &plain), 0);
	op = loop_op(&p, FABREX_OP_WRITE, 8);
	op.mr = p.mb;
	run_is(&p, &op, FABREX_WC_LKEY);
	op.mr = p.ma;
	op.offset = PAIR_SIZE - 7;
	run_is(&p, &op, FABREX_WC_LBOUNDS);
	op.offset = UINT64_MAX;
	run_is(&p, &op, FABREX_WC_LBOUNDS);
	op.offset = PAIR_SIZE;
	op.length = 0;
	run_is(&p, &op, FABREX_WC_OK);
	op = loop_op(&p, FABREX_OP_READ, 8);
	op.mr = plain;
	run_is(&p, &op, FABREX_WC_LACCESS);
	op.opcode = FABREX_OP_FETCH_ADD;
	op.operand = 0;
	run_is(&p, &op, FABREX_WC_LACCESS);
	op = loop_op(&p, FABREX_OP_WRITE, 8);
	op.mr = plain;
	run_is(&p, &op, FABREX_WC_OK);
	op.length = (1ull << 31) + 1;
	run_is(&p, &op, FABREX_WC_BAD_DESC);
	loop_close(&p);
}

TEST(loop_statuses_remote)
{
	static const uint8_t opcodes[] = {
		FABREX_OP_READ, FABREX_OP_WRITE, FABREX_OP_WRITE_IMM,
		FABREX_OP_FETCH_ADD, FABREX_OP_CMP_SWAP,
	};
	static const uint32_t rights[] = {
		FABREX_MR_REMOTE_READ, FABREX_MR_REMOTE_WRITE,
		FABREX_MR_REMOTE_WRITE, FABREX_MR_REMOTE_ATOMIC,
		FABREX_MR_REMOTE_ATOMIC,
	};
	struct fabrex_mr *none, *other;
	struct fabrex_op op;
	uint32_t own;
	struct pair p;
	size_t i;

	loop_open(&p, NULL);
	own = p.rb.peer;
	CHECK_EQ(fabrex_mr_register_for(p.b, p.pb, 64, FABREX_MR_ALL, &own, 1,
					&other), 0);
	for (i = 0; i < 5; i++) {
		op = loop_op(&p, opcodes[i], 8);
		op.peer = 200;
		run_is(&p, &op, FABREX_WC_UNREACHABLE);
		op.peer = 60000;
		run_is(&p, &op, FABREX_WC_UNREACHABLE);
		op = loop_op(&p, opcodes[i], 8);
		op.rkey ^= 1ull << 40;
		run_is(&p, &op, FABREX_WC_RKEY);
		op.rkey = 0;
		run_is(&p, &op, FABREX_WC_RKEY);
		op.rkey = UINT64_MAX;
		run_is(&p, &op, FABREX_WC_RKEY);
		op.rkey = p.rb.rkey;
		op.roffset = PAIR_SIZE;
		run_is(&p, &op, FABREX_WC_RBOUNDS);
		op.roffset = UINT64_MAX - 7;
		run_is(&p, &op, FABREX_WC_RBOUNDS);
		op.roffset = 0;
		CHECK_EQ(fabrex_mr_alloc(p.b, 4096, FABREX_MR_ALL & ~rights[i],
					 &none), 0);
		op.rkey = fabrex_mr_key(none);
		run_is(&p, &op, FABREX_WC_RACCESS);
		op.rkey = fabrex_mr_key(other);
		run_is(&p, &op, FABREX_WC_RPEER);
		fabrex_mr_deregister(none);
		op.rkey = p.rb.rkey;
		run_is(&p, &op, FABREX_WC_OK);
	}
	fabrex_mr_deregister(p.mb);
	op = loop_op(&p, FABREX_OP_WRITE, 8);
	run_is(&p, &op, FABREX_WC_RKEY);
	loop_close(&p);
}

TEST(loop_statuses_queue)
{
	struct fabrex_queue *deaf;
	struct fabrex_op op;
	unsigned int bit;
	struct pair p;

	loop_open(&p, NULL);
	CHECK_EQ(fabrex_queue_create(p.b, NULL, 0, &deaf), 0);
	op = loop_op(&p, FABREX_OP_SEND, 8);
	for (bit = 0; bit < 64; bit++) {
		op.dest_key = fabrex_queue_key(p.qb) ^ 1ull << bit;
		run_is(&p, &op, FABREX_WC_BAD_QUEUE);
	}
	op.dest_key = fabrex_queue_number(p.qb);
	run_is(&p, &op, FABREX_WC_BAD_QUEUE);
	op.dest_key = UINT64_MAX;
	run_is(&p, &op, FABREX_WC_BAD_QUEUE);
	op.dest_key = fabrex_queue_key(deaf);
	run_is(&p, &op, FABREX_WC_BAD_QUEUE);
	op = loop_op(&p, FABREX_OP_SEND, 257);
	run_is(&p, &op, FABREX_WC_TOO_LONG);
	op.flags = FABREX_SQE_CHECK;
	run_is(&p, &op, FABREX_WC_BAD_DESC);
	op = loop_op(&p, FABREX_OP_SEND, 8);
	op.peer = 77;
	run_is(&p, &op, FABREX_WC_UNREACHABLE);
	op = loop_op(&p, FABREX_OP_SEND, 8);
	fabrex_queue_destroy(p.qb);
	run_is(&p, &op, FABREX_WC_BAD_QUEUE);
	fabrex_close(p.b);
	peer_await_down(p.a, p.rb.peer);
	run_is(&p, &op, FABREX_WC_UNREACHABLE);
	fabrex_close(p.a);
}

/* Before and after anything is known of a peer, with and without words. */
TEST(loop_peers_that_cannot_be)
{
	static const uint32_t bad[] = { UINT32_MAX, 0x10000, 0x10001 };
	struct fabrex_remote r;
	struct fabrex_wc wc;
	struct pair p;
	size_t i, round;

	loop_open(&p, NULL);
	r = p.rb;
	for (round = 0; round < 2; round++) {
		for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
			r.peer = bad[i];
			CHECK_EQ(fabrex_post_write(p.qa, p.ma, 0, &r, 0, 8, 0,
						   0), -EINVAL);
			CHECK_EQ(fabrex_post_read(p.qa, p.ma, 0, &r, 0, 8, 0,
						  0), -EINVAL);
			CHECK_EQ(fabrex_post_send(p.qa, bad[i],
						  fabrex_queue_key(p.qb), p.ma,
						  0, 8, 0, 0), -EINVAL);
		}
		CHECK_EQ(fabrex_post_write(p.qa, p.ma, 0, &p.rb, 0, 3 + round,
					   0, 0), 0);
		CHECK_EQ(fabrex_poll(p.qa, &wc, 1), 1);
	}
	CHECK_EQ(fabrex_poll(p.qa, &wc, 1), 0);
	CHECK_EQ(fabrex_poll(p.qb, &wc, 1), 0);
	loop_close(&p);
}

/* What post.c cannot make, but an entry can say. */
TEST(loop_entries_that_cannot_be)
{
	static const struct fabrex_sqe bad[] = {
		{ .opcode = 0x07 }, { .opcode = 0x80 },
		{ .opcode = FABREX_OP_NOP, .peer = 1 },
		{ .opcode = FABREX_OP_NOP, .flags = FABREX_SQE_CHECK },
		{ .opcode = FABREX_OP_WRITE, .imm = 1 },
		{ .opcode = FABREX_OP_WRITE, .dest_key = 1 },
		{ .opcode = FABREX_OP_READ, .flags = 0x10 },
		{ .opcode = FABREX_OP_READ, .flags = FABREX_SQE_INLINE },
		{ .opcode = FABREX_OP_FETCH_ADD, .compare = 1 },
		{ .opcode = FABREX_OP_FETCH_ADD, .flags = FABREX_SQE_CHECK },
		{ .opcode = FABREX_OP_CMP_SWAP, .imm = 1 },
		{ .opcode = FABREX_OP_SEND, .rkey = 1 },
		{ .opcode = FABREX_OP_SEND, .roffset = 1 },
		{ .opcode = FABREX_OP_SEND, .flags = FABREX_SQE_INLINE,
		  .length = 25 },
		{ .opcode = FABREX_OP_SEND, .flags = FABREX_SQE_INLINE,
		  .roffset = 8 },
	};
	struct fabrex_op nop = { .opcode = FABREX_OP_NOP };
	struct loop_queue *q;
	struct fabrex_wc wc;
	struct pair p;
	size_t i;

	loop_open(&p, NULL);
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		CHECK_EQ(fabrex_prep(p.qa, &nop), 0);
		q = loop_queue_of(p.qa);
		q->sq[(q->sq_next - 1) & q->sq_mask] = bad[i];
		CHECK_EQ(fabrex_submit(p.qa), 1);
		CHECK_EQ(fabrex_poll(p.qa, &wc, 1), 1);
		CHECK_EQ(wc.status, i < 2 ? FABREX_WC_BAD_OPCODE :
					    FABREX_WC_BAD_DESC);
		CHECK_EQ(wc.length, 0);
	}
	loop_close(&p);
}

/* ---- flags, order, accounting ------------------------------------------ */

TEST(loop_fence_and_quiet)
{
	struct fabrex_wc wc[8];
	struct fabrex_remote bad;
	struct pair p;

	loop_open(&p, NULL);
	bad = p.rb;
	bad.rkey ^= 1ull << 40;
	CHECK_EQ(post_small(&p, FABREX_SQE_QUIET, 1), 0);
	CHECK_EQ(fabrex_poll(p.qa, wc, 8), 0);
	CHECK_EQ(post_small(&p, FABREX_SQE_FENCE, 2), 0);
	CHECK_EQ(post_small(&p, FABREX_SQE_QUIET, 3), 0);
	CHECK_EQ(fabrex_post_write(p.qa, p.ma, 0, &bad, 0, 8, FABREX_SQE_QUIET,
				   4), 0);
	CHECK_EQ(post_small(&p, 0, 5), 0);
	CHECK_EQ(post_small(&p, FABREX_SQE_FENCE | FABREX_SQE_QUIET, 6), 0);
	CHECK_EQ(post_small(&p, FABREX_SQE_FENCE, 7), 0);
	CHECK_EQ(fabrex_poll(p.qa, wc, 8), 5);
	CHECK(wc[0].user_data == 2 && wc[0].status == FABREX_WC_OK);
	CHECK(wc[1].user_data == 4 && wc[1].status == FABREX_WC_RKEY);
	CHECK(wc[2].user_data == 5 && wc[2].status == FABREX_WC_OK);
	CHECK(wc[3].user_data == 6 && wc[3].status == FABREX_WC_FENCED);
	CHECK(wc[4].user_data == 7 && wc[4].status == FABREX_WC_OK);
	CHECK_EQ(fabrex_poll(p.qa, wc, 8), 0);
	loop_close(&p);
}

TEST(loop_accounting)
{
	struct fabrex_op op;
	struct fabrex_wc wc[20];
	struct pair p;
	int i, round;

	loop_open(&p, NULL);
	op = loop_op(&p, FABREX_OP_WRITE, 8);
	for (round = 0; round < 10; round++) {
		for (i = 0; i < 16; i++)
			CHECK_EQ(post_small(&p, 0, (uint64_t)i), 0);
		CHECK_EQ(post_small(&p, 0, 99), -EAGAIN);
		CHECK_SAYS("fabrex_poll()");
		CHECK_EQ(fabrex_prep(p.qa, &op), -EAGAIN);
		CHECK_EQ(fabrex_poll(p.qa, wc, 5), 5);
		for (i = 0; i < 5; i++) {
			op.user_data = 16 + (uint64_t)i;
			CHECK_EQ(fabrex_prep(p.qa, &op), 0);
		}
		CHECK_EQ(fabrex_prep(p.qa, &op), -EAGAIN);
		CHECK_EQ(fabrex_poll(p.qa, wc + 5, 15), 11);
		CHECK_EQ(fabrex_submit(p.qa), 5);
		CHECK_EQ(fabrex_submit(p.qa), 0);
		CHECK_EQ(fabrex_poll(p.qa, wc + 16, 4), 4);
		for (i = 0; i < 20; i++)
			CHECK_EQ(wc[i].user_data, i);
		CHECK_EQ(fabrex_poll(p.qa, wc, 4), 1);
		/* Quiet ones do not fill it. */
		for (i = 0; i < 100; i++)
			CHECK_EQ(post_small(&p, FABREX_SQE_QUIET, 1), 0);
	}
	loop_close(&p);
}

static void counted_are(struct fabrex_port *port, struct fabrex_queue *queue,
			uint64_t tx, uint64_t rx, uint64_t host)
{
	struct fabrex_stats stats;

	CHECK_EQ(fabrex_stats(port, queue, &stats, sizeof(stats)), 0);
	CHECK_EQ(stats.tx_bytes, tx);
	CHECK_EQ(stats.rx_bytes, rx);
	CHECK_EQ(stats.host_bytes, host);
	CHECK_EQ(stats.p2p_bytes, 0);
}

/* What moved is counted once as such, where the operation was posted. */
TEST(loop_counted_bytes)
{
	struct fabrex_op op;
	struct fabrex_wc wc;
	struct pair p;

	loop_open(&p, NULL);
	op = loop_op(&p, FABREX_OP_WRITE, 1000);
	run_is(&p, &op, FABREX_WC_OK);
	op = loop_op(&p, FABREX_OP_READ, 300);
	run_is(&p, &op, FABREX_WC_OK);
	op = loop_op(&p, FABREX_OP_SEND, 50);
	run_is(&p, &op, FABREX_WC_OK);
	CHECK_EQ(fabrex_poll(p.qb, &wc, 1), 1);
	counted_are(p.a, p.qa, 1050, 300, 1350);
	counted_are(p.b, p.qb, 0, 50, 0);
	/* What was ended stays counted. */
	CHECK_EQ(fabrex_queue_destroy(p.qb), 0);
	counted_are(p.b, NULL, 0, 50, 0);
	CHECK_EQ(fabrex_queue_create(p.b, NULL, 0, &p.qb), 0);
	loop_close(&p);
}

/* A burst is executed in order, and posting after prep takes it along. */
TEST(loop_bursts)
{
	struct fabrex_op op[3];
	struct fabrex_wc wc[8];
	struct pair p;
	int i;

	loop_open(&p, NULL);
	for (i = 0; i < 3; i++) {
		op[i] = loop_op(&p, i == 2 ? FABREX_OP_READ : FABREX_OP_WRITE,
				8);
		op[i].user_data = (uint64_t)i;
		op[i].offset = (uint64_t)i * 8;
	}
	memset(p.pa, 1, 8);
	memset(p.pa + 8, 2, 8);
	CHECK_EQ(fabrex_prep(p.qa, &op[0]), 0);
	CHECK_EQ(fabrex_poll(p.qa, wc, 8), 0);
	CHECK(!p.pb[0]);
	CHECK_EQ(fabrex_post(p.qa, op + 1, 2), 2);
	CHECK_EQ(fabrex_poll(p.qa, wc, 8), 3);
	for (i = 0; i < 3; i++)
		CHECK_EQ(wc[i].user_data, i);
	CHECK(p.pb[0] == 2 && p.pa[16] == 2);
	CHECK_EQ(fabrex_prep(p.qa, &op[0]), 0);
	CHECK_EQ(post_small(&p, 0, 1), 0);
	CHECK_EQ(fabrex_poll(p.qa, wc, 8), 2);
	CHECK(wc[0].user_data == 0 && wc[1].user_data == 1);
	op[1].opcode = 0x55;
	CHECK_EQ(fabrex_post(p.qa, op, 3), 1);
	CHECK_SAYS("unknown opcode");
	CHECK_EQ(fabrex_poll(p.qa, wc, 8), 1);
	loop_close(&p);
}

/* ---- sleeping ---------------------------------------------------------- */

TEST(loop_wait)
{
	struct fabrex_op op;
	struct fabrex_wc wc;
	struct pair p;

	loop_open(&p, NULL);
	op = loop_op(&p, FABREX_OP_SEND, 8);
	CHECK_EQ(fabrex_wait(p.qb, 20), 0);
	CHECK_EQ(fabrex_post(p.qa, &op, 1), 1);
	CHECK_EQ(fabrex_wait(p.qb, HANG_MS), 1);
	CHECK_EQ(fabrex_poll(p.qb, &wc, 1), 1);
	CHECK_EQ(fabrex_wait(p.qa, HANG_MS), 1);
	CHECK_EQ(fabrex_poll(p.qa, &wc, 1), 1);
	CHECK_EQ(fabrex_wait(p.qa, 0), 0);
	CHECK_EQ(post_small(&p, FABREX_SQE_QUIET, 0), 0);
	CHECK_EQ(fabrex_wait(p.qa, 10), 0);
	loop_close(&p);
}

static bool readable(const struct fabrex_queue *q, int ms)
{
	struct pollfd pfd = { .fd = fabrex_queue_fd(q), .events = POLLIN };

	return poll(&pfd, 1, ms) == 1;
}

/* With a poll(2) of one's own; what is armed is told once. */
TEST(loop_arm)
{
	struct fabrex_op op;
	struct fabrex_wc wc[4];
	struct pair p;

	loop_open(&p, NULL);
	op = loop_op(&p, FABREX_OP_SEND, 8);
	CHECK_EQ(fabrex_post(p.qa, &op, 1), 1);
	CHECK(!readable(p.qb, 20));
	CHECK_EQ(fabrex_poll(p.qb, wc, 4), 1);
	CHECK_EQ(fabrex_arm(p.qb), 0);
	CHECK_EQ(fabrex_poll(p.qb, wc, 4), 0);
	CHECK(!readable(p.qb, 20));
	CHECK_EQ(fabrex_post(p.qa, &op, 1), 1);
	CHECK(readable(p.qb, HANG_MS));
	CHECK_EQ(fabrex_poll(p.qb, wc, 4), 1);
	CHECK_EQ(fabrex_arm(p.qb), 0);
	CHECK(!readable(p.qb, 0));
	/* Own completions, too. */
	fabrex_poll(p.qa, wc, 4);
	CHECK_EQ(fabrex_arm(p.qa), 0);
	CHECK_EQ(post_small(&p, FABREX_SQE_QUIET, 0), 0);
	CHECK(!readable(p.qa, 0));
	CHECK_EQ(post_small(&p, 0, 0), 0);
	CHECK(readable(p.qa, 0));
	loop_close(&p);
}

/* Neither kind of completion keeps the other away. */
TEST(loop_fair)
{
	struct fabrex_op op;
	struct fabrex_wc wc;
	struct pair p;
	int i, own = 0;

	loop_open(&p, NULL);
	op = loop_op(&p, FABREX_OP_SEND, 8);
	for (i = 0; i < 8; i++)
		CHECK_EQ(fabrex_post(p.qa, &op, 1), 1);
	fabrex_poll(p.qa, &wc, 1);
	for (i = 0; i < 16; i++) {
		struct fabrex_op nop = { .opcode = FABREX_OP_NOP };

		CHECK_EQ(fabrex_post(p.qb, &nop, 1), 1);
		CHECK_EQ(fabrex_poll(p.qb, &wc, 1), 1);
		own += wc.opcode == FABREX_OP_NOP;
	}
	CHECK_EQ(own, 8);
	loop_close(&p);
}
