// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tests of posting and polling: what is moved, statuses, accounting of ring
 * space, the doorbell protocol, wrap-around. Run by main.c.
 */
#include <errno.h>

#include "core/core.h"
#include "transport/ring/ring.h"
#include "test.h"

TEST(write_and_read)
{
	struct fabrex_wc wc;
	struct pair p;

	pair_open(&p, NULL);
	memset(p.pa, 0x5a, PAIR_SIZE);
	CHECK_EQ(fabrex_post_write(p.qa, p.ma, 16, &p.rb, 32, 1000, 0, 77), 0);
	poll_n(p.qa, &wc, 1);
	CHECK_EQ(wc.status, FABREX_WC_OK);
	CHECK_EQ(wc.user_data, 77);
	CHECK_EQ(wc.length, 1000);
	CHECK_EQ(wc.opcode, FABREX_OP_WRITE);
	CHECK(p.pb[31] == 0 && p.pb[32] == 0x5a && p.pb[1031] == 0x5a &&
	      p.pb[1032] == 0);
	memset(p.pb, 0x33, PAIR_SIZE);
	CHECK_EQ(fabrex_post_read(p.qa, p.ma, 0, &p.rb, 0, 64, 0, 78), 0);
	poll_n(p.qa, &wc, 1);
	CHECK_EQ(wc.status, FABREX_WC_OK);
	CHECK(p.pa[63] == 0x33 && p.pa[64] == 0x5a);
	pair_close(&p);
}

TEST(write_immediate_and_send)
{
	struct fabrex_op op = {
		.opcode = FABREX_OP_WRITE_IMM, .peer = 1, .imm = 0xabcd,
		.user_data = 5, .length = 100,
	};
	struct fabrex_wc wc;
	struct pair p;

	pair_open(&p, NULL);
	op.mr = p.ma;
	op.rkey = p.rb.rkey;
	op.dest_key = fabrex_queue_key(p.qb);
	memset(p.pa, 9, 100);
	CHECK_EQ(fabrex_post(p.qa, &op, 1), 1);
	poll_n(p.qb, &wc, 1);
	CHECK_EQ(wc.opcode, FABREX_OP_RECV_IMM);
	CHECK_EQ(wc.imm, 0xabcd);
	CHECK_EQ(wc.src_queue, fabrex_queue_number(p.qa));
	CHECK(!wc.data && p.pb[99] == 9);
	fabrex_recv_done(p.qb, 1);
	poll_n(p.qa, &wc, 1);
	CHECK_EQ(wc.status, 0);

	CHECK_EQ(fabrex_post_send(p.qa, 1, op.dest_key, p.ma, 0, 60, 7, 6), 0);
	op.opcode = FABREX_OP_SEND;
	op.inline_data = "twenty-four bytes inline";
	op.length = 24;
	op.mr = NULL;
	CHECK_EQ(fabrex_post(p.qa, &op, 1), 1);
	poll_n(p.qb, &wc, 1);
	CHECK(wc.opcode == FABREX_OP_RECV && wc.length == 60 && wc.imm == 7);
	CHECK(!memcmp(wc.data, p.pa, 60));
	poll_n(p.qb, &wc, 1);
	CHECK(wc.length == 24 && !memcmp(wc.data, op.inline_data, 24));
	pair_close(&p);
}

TEST(atomics)
{
	struct fabrex_op op = {
		.opcode = FABREX_OP_FETCH_ADD, .peer = 1, .operand = 5,
	};
	struct fabrex_wc wc;
	struct pair p;

	pair_open(&p, NULL);
	op.mr = p.ma;
	op.rkey = p.rb.rkey;
	op.roffset = 8;
	*(uint64_t *)(p.pb + 8) = 37;
	CHECK_EQ(fabrex_post(p.qa, &op, 1), 1);
	poll_n(p.qa, &wc, 1);
	CHECK(*(uint64_t *)p.pa == 37 && *(uint64_t *)(p.pb + 8) == 42);
	op.opcode = FABREX_OP_CMP_SWAP;
	op.compare = 42;
	op.operand = 1;
	CHECK_EQ(fabrex_post(p.qa, &op, 1), 1);
	CHECK_EQ(fabrex_post(p.qa, &op, 1), 1);
	poll_n(p.qa, &wc, 1);
	poll_n(p.qa, &wc, 1);
	CHECK(*(uint64_t *)p.pa == 1 && *(uint64_t *)(p.pb + 8) == 1);
	pair_close(&p);
}

/* Statuses reach the caller, and the queue goes on. */
TEST(errors_complete)
{
	struct fabrex_remote bad;
	struct fabrex_wc wc[4];
	struct pair p;

	pair_open(&p, NULL);
	bad = p.rb;
	bad.rkey ^= 1ull << 40;
	CHECK_EQ(fabrex_post_write(p.qa, p.ma, 0, &bad, 0, 8, 0, 1), 0);
	CHECK_EQ(fabrex_post_write(p.qa, p.ma, 0, &p.rb, PAIR_SIZE - 4, 8,
				   FABREX_SQE_QUIET, 2), 0);
	CHECK_EQ(post_small(&p, FABREX_SQE_FENCE, 3), 0);
	CHECK_EQ(post_small(&p, FABREX_SQE_FENCE, 4), 0);
	poll_n(p.qa, wc, 4);
	CHECK_EQ(wc[0].status, FABREX_WC_RKEY);
	CHECK(wc[1].status == FABREX_WC_RBOUNDS && wc[1].user_data == 2);
	CHECK_EQ(wc[2].status, FABREX_WC_FENCED);
	CHECK_EQ(wc[3].status, FABREX_WC_OK);
	CHECK(!strcmp(fabrex_wc_str(FABREX_WC_RKEY), "bad remote key"));
	CHECK(!strcmp(fabrex_wc_str(99), "unknown status"));
	CHECK(!strcmp(fabrex_wc_str(-1), "unknown status"));
	pair_close(&p);
}

TEST(refused_when_prepared)
{
	struct fabrex_op op = { .opcode = 0x40 };
	struct pair p;

	pair_open(&p, NULL);
	CHECK_EQ(fabrex_prep(p.qa, &op), -EINVAL);
	CHECK_SAYS("unknown opcode");
	CHECK_SAYS("a.0");
	op.opcode = FABREX_OP_WRITE;
	CHECK_EQ(fabrex_prep(p.qa, &op), -EINVAL);
	CHECK_SAYS("without a local region");
	op.flags = FABREX_SQE_INLINE;
	CHECK_EQ(fabrex_prep(p.qa, &op), -EINVAL);
	op.flags = 0x80;
	CHECK_EQ(fabrex_prep(p.qa, &op), -EINVAL);
	CHECK_SAYS("unknown flags");
	op = (struct fabrex_op){ .opcode = FABREX_OP_SEND, .length = 25,
				 .inline_data = &op };
	CHECK_EQ(fabrex_prep(p.qa, &op), -EINVAL);
	CHECK_SAYS("24 bytes");
	CHECK_EQ(fabrex_submit(p.qa), 0);
	CHECK_EQ(fabrex_post(p.qa, &op, 1), -EINVAL);
	pair_close(&p);
}

/* The rings hold sq_entries; the next is refused until one was polled. */
TEST(ring_full)
{
	struct fabrex_wc wc[16];
	struct pair p;
	int i;

	pair_open(&p, NULL);
	fake_hold();
	for (i = 0; i < 16; i++)
		CHECK_EQ(post_small(&p, 0, (uint64_t)i), 0);
	CHECK_EQ(post_small(&p, 0, 16), -EAGAIN);
	CHECK_SAYS("fabrex_poll");
	fake_step(16);
	CHECK_EQ(post_small(&p, 0, 16), -EAGAIN);
	CHECK_EQ(fabrex_poll(p.qa, wc, 3), 3);
	for (i = 0; i < 3; i++)
		CHECK_EQ(post_small(&p, 0, (uint64_t)(16 + i)), 0);
	CHECK_EQ(post_small(&p, 0, 19), -EAGAIN);
	fake_run();
	for (i = 3; i < 19; i++) {
		poll_n(p.qa, wc, 1);
		CHECK_EQ(wc[0].user_data, i);
	}
	pair_close(&p);
}

/* A batch is accepted as far as it fits. */
TEST(batch_partly_accepted)
{
	struct fabrex_op ops[20];
	struct fabrex_wc wc[16];
	struct pair p;
	int i;

	pair_open(&p, NULL);
	fake_hold();
	memset(ops, 0, sizeof(ops));
	for (i = 0; i < 20; i++)
		ops[i].user_data = (uint64_t)i;
	CHECK_EQ(fabrex_post(p.qa, ops, 20), 16);
	CHECK_EQ(fabrex_post(p.qa, ops + 16, 4), -EAGAIN);
	fake_run();
	poll_n(p.qa, wc, 16);
	CHECK_EQ(wc[15].user_data, 15);
	CHECK_EQ(fabrex_post(p.qa, ops + 16, 4), 4);
	poll_n(p.qa, wc, 4);
	CHECK_EQ(wc[3].user_data, 19);
	pair_close(&p);
}

/* Quiet ones free their entries without any completion being polled. */
TEST(quiet_only)
{
	struct fabrex_wc wc;
	struct pair p;
	int i, again = 0;

	pair_open(&p, NULL);
	for (i = 0; i < 1000; i++)
		while (post_small(&p, FABREX_SQE_QUIET, 1)) {
			CHECK_EQ(fabrex_poll(p.qa, &wc, 1), 0);
			again++;
		}
	CHECK(again > 0);
	while (post_small(&p, 0, 2))
		CHECK_EQ(fabrex_poll(p.qa, &wc, 1), 0);
	poll_n(p.qa, &wc, 1);
	CHECK_EQ(wc.user_data, 2);
	pair_close(&p);
}

/* A quiet failure in the ring must not be taken for a success. */
TEST(quiet_failure_kept)
{
	struct fabrex_remote bad;
	struct fabrex_wc wc[2];
	struct pair p;
	int i;

	pair_open(&p, NULL);
	bad = p.rb;
	bad.rkey++;
	fake_hold();
	for (i = 0; i < 15; i++)
		CHECK_EQ(post_small(&p, FABREX_SQE_QUIET, 1), 0);
	CHECK_EQ(fabrex_post_write(p.qa, p.ma, 0, &bad, 0, 8, FABREX_SQE_QUIET,
				   2), 0);
	fake_step(16);
	/* Its completion is not polled: nothing may be freed behind it. */
	CHECK_EQ(post_small(&p, FABREX_SQE_QUIET, 3), -EAGAIN);
	CHECK_EQ(fabrex_poll(p.qa, wc, 2), 1);
	CHECK(wc[0].user_data == 2 && wc[0].status == FABREX_WC_RKEY);
	CHECK_EQ(post_small(&p, 0, 3), 0);
	fake_run();
	poll_n(p.qa, wc, 1);
	CHECK(wc[0].user_data == 3 && !wc[0].status);
	pair_close(&p);
}

/* Own completions and messages together never overrun the ring. */
TEST(completions_cannot_overrun)
{
	const struct fabrex_queue_attr attr = {
		.sq_entries = 8, .cq_entries = 16, .rq_entries = 8,
		.cell_size = 64,
	};
	struct fabrex_wc wc[16];
	struct fabrex_op op = { .opcode = FABREX_OP_SEND, .peer = 0,
				.inline_data = "x", .length = 1 };
	struct pair p;
	int i, rnr = 0;

	pair_open(&p, &attr);
	op.dest_key = fabrex_queue_key(p.qa);
	for (i = 0; i < 8; i++) {
		CHECK_EQ(fabrex_post(p.qb, &op, 1), 1);
		CHECK_EQ(post_small(&p, 0, 1), 0);
	}
	poll_n(p.qb, wc, 8);
	for (i = 0; i < 8; i++)
		rnr += wc[i].status == FABREX_WC_RNR;
	CHECK_EQ(rnr, 0);
	CHECK_EQ(fabrex_post(p.qb, &op, 1), 1);
	poll_n(p.qb, wc, 1);
	CHECK_EQ(wc[0].status, FABREX_WC_RNR);
	poll_n(p.qa, wc, 16);
	CHECK_EQ(ring_queue_of(p.qa)->ctrl->state, FABREX_QUEUE_OK);
	/* Completions are taken, but the cells are still held. */
	CHECK_EQ(fabrex_post(p.qb, &op, 1), 1);
	poll_n(p.qb, wc, 1);
	CHECK_EQ(wc[0].status, FABREX_WC_RNR);
	fabrex_recv_done(p.qa, 100);
	CHECK_EQ(ring_queue_of(p.qa)->ctrl->rq_head, 8);
	pair_close(&p);
}

/* Rings wrap many times; the 16-bit index of completions does once. */
TEST(indices_wrap)
{
	struct fabrex_wc wc[16];
	struct pair p;
	uint64_t next = 0, seen = 0;
	int i, n;

	pair_open(&p, NULL);
	while (seen < 70000) {
		struct fabrex_op ops[16];

		memset(ops, 0, sizeof(ops));
		for (i = 0; i < 16; i++)
			ops[i].user_data = next + (uint64_t)i;
		n = fabrex_post(p.qa, ops, 16);
		CHECK(n > 0 || n == -EAGAIN);
		next += n > 0 ? (uint64_t)n : 0;
		n = fabrex_poll(p.qa, wc, 16);
		for (i = 0; i < n; i++)
			CHECK_EQ(wc[i].user_data, seen++);
	}
	pair_close(&p);
}

/* With db_needed the doorbell is rung, without it is not. */
TEST(doorbell_protocol)
{
	struct fabrex_qctrl *ctrl;
	struct fabrex_wc wc[16];
	struct pair p;
	uint32_t *db;

	pair_open(&p, NULL);
	fake_hold();
	ctrl = ring_queue_of(p.qa)->ctrl;
	db = ring_queue_of(p.qa)->doorbell;
	CHECK_EQ(ctrl->db_needed, 1);
	CHECK_EQ(post_small(&p, 0, 1), 0);
	CHECK_EQ(*db, 1);
	ring_release(&ctrl->db_needed, 0);
	CHECK_EQ(post_small(&p, 0, 1), 0);
	CHECK_EQ(ctrl->sq_tail, 2);
	CHECK_EQ(*db, 1);
	ring_release(&ctrl->db_needed, 1);
	CHECK_EQ(fabrex_prep(p.qa, &(struct fabrex_op){ 0 }), 0);
	CHECK_EQ(ctrl->sq_tail, 2);
	CHECK_EQ(fabrex_prep(p.qa, &(struct fabrex_op){ 0 }), 0);
	CHECK_EQ(fabrex_submit(p.qa), 2);
	CHECK_EQ(*db, 4);
	CHECK_EQ(fabrex_submit(p.qa), 0);
	fake_run();
	poll_n(p.qa, wc, 4);
	pair_close(&p);
}

TEST(sleeping)
{
	struct fabrex_wc wc;
	struct pair p;

	pair_open(&p, NULL);
	CHECK_EQ(fabrex_wait(p.qa, 0), 0);
	CHECK_EQ(fabrex_wait(p.qa, 20), 0);
	CHECK_EQ(post_small(&p, 0, 1), 0);
	CHECK_EQ(fabrex_wait(p.qa, -1), 1);
	CHECK_EQ(fabrex_poll(p.qa, &wc, 1), 1);
	CHECK_EQ(fabrex_wait(p.qa, 10), 0);
	CHECK(fabrex_queue_fd(p.qa) >= 0);
	pair_close(&p);
}
