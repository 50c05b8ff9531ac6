// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tests of queues that die and of devices that lie: each accepted entry is
 * reported exactly once, and nothing outside the rings is touched.
 */
#include <errno.h>

#include "core/core.h"
#include "transport/ring/ring.h"
#include "test.h"

static int count(const struct fabrex_wc *wc, int n, uint8_t status)
{
	int i, found = 0;

	for (i = 0; i < n; i++)
		found += wc[i].status == status;
	return found;
}

static void dies(uint32_t state, uint32_t error, const char *says)
{
	struct fabrex_wc wc[32];
	struct pair p;
	int i;

	pair_open(&p, NULL);
	fake_hold();
	for (i = 0; i < 6; i++)
		CHECK_EQ(post_small(&p, i == 0 ? FABREX_SQE_QUIET : 0,
				    (uint64_t)i), 0);
	fake_step(3);	/* 0 quietly, 1 and 2 with completions */
	CHECK_EQ(fabrex_prep(p.qa, &(struct fabrex_op){ .user_data = 6 }), 0);
	fake_kill(fabrex_queue_number(p.qa), state, error);
	CHECK_EQ(fabrex_submit(p.qa), -ENETDOWN);
	CHECK_SAYS(says);
	CHECK_EQ(fabrex_wait(p.qa, -1), 1);
	CHECK_EQ(fabrex_poll(p.qa, wc, 4), 4);
	CHECK_EQ(fabrex_poll(p.qa, wc + 4, 28), 2);
	for (i = 0; i < 6; i++)
		CHECK_EQ(wc[i].user_data, i + 1);
	CHECK(!wc[0].status && !wc[1].status);
	CHECK_EQ(count(wc, 6, FABREX_WC_ABORTED), 3);
	CHECK_EQ(wc[5].status, FABREX_WC_FLUSHED);
	CHECK_EQ(fabrex_poll(p.qa, wc, 1), -ENETDOWN);
	CHECK_SAYS(says);
	CHECK_EQ(post_small(&p, 0, 1), -ENETDOWN);
	CHECK_EQ(fabrex_prep(p.qa, &(struct fabrex_op){ 0 }), -ENETDOWN);
	pair_close(&p);
}

TEST(flush_error)
{
	dies(FABREX_QUEUE_ERROR, FABREX_QERR_RING_FAULT,
	     "ring memory did not answer");
}

TEST(flush_reset)
{
	dies(FABREX_QUEUE_ERROR, FABREX_QERR_RESET, "reset");
}

TEST(flush_dead)
{
	dies(FABREX_QUEUE_DEAD, FABREX_QERR_RESET, "the port is gone");
}

/* The device scribbles over the submission ring: user_data is ours. */
TEST(flush_uses_private_copy)
{
	struct fabrex_wc wc[4];
	struct pair p;
	int i;

	pair_open(&p, NULL);
	fake_hold();
	for (i = 0; i < 4; i++)
		CHECK_EQ(post_small(&p, 0, 0x100 + (uint64_t)i), 0);
	memset(ring_queue_of(p.qa)->sq, 0xff, 16 * sizeof(struct fabrex_sqe));
	ring_queue_of(p.qa)->ctrl->sq_head = 0x12345;
	fake_kill(fabrex_queue_number(p.qa), FABREX_QUEUE_ERROR, 1);
	CHECK_EQ(fabrex_poll(p.qa, wc, 4), 4);
	for (i = 0; i < 4; i++)
		CHECK(wc[i].user_data == 0x100 + (uint64_t)i &&
		      wc[i].opcode == FABREX_OP_WRITE && wc[i].peer == 1 &&
		      wc[i].status == FABREX_WC_ABORTED);
	pair_close(&p);
}

/* sq_head below an entry that failed to be reported: still once. */
TEST(executed_without_completion)
{
	struct fabrex_wc wc[4];
	struct pair p;

	pair_open(&p, NULL);
	fake_hold();
	CHECK_EQ(post_small(&p, 0, 1), 0);
	CHECK_EQ(post_small(&p, FABREX_SQE_QUIET, 2), 0);
	CHECK_EQ(post_small(&p, 0, 3), 0);
	fake_fault(FAKE_LOSE_COMPLETION);
	fake_step(2);
	fake_kill(fabrex_queue_number(p.qa), FABREX_QUEUE_ERROR, 1);
	CHECK_EQ(fabrex_poll(p.qa, wc, 4), 2);
	CHECK(wc[0].user_data == 1 && wc[0].status == FABREX_WC_ABORTED);
	CHECK(wc[1].user_data == 3 && wc[1].status == FABREX_WC_ABORTED);
	pair_close(&p);
}

TEST(lost_completion_is_reported)
{
	struct fabrex_wc wc[4];
	struct pair p;

	pair_open(&p, NULL);
	fake_hold();
	CHECK_EQ(post_small(&p, 0, 1), 0);
	CHECK_EQ(post_small(&p, FABREX_SQE_QUIET, 2), 0);
	CHECK_EQ(post_small(&p, 0, 3), 0);
	fake_fault(FAKE_LOSE_COMPLETION);
	fake_run();
	poll_n(p.qa, wc, 2);
	CHECK(wc[0].user_data == 1 && wc[0].status == FABREX_WC_ABORTED);
	CHECK(wc[1].user_data == 3 && wc[1].status == FABREX_WC_OK);
	CHECK_EQ(fabrex_poll(p.qa, wc, 4), 0);
	pair_close(&p);
}

static void lies(enum fake_fault fault)
{
	struct fabrex_wc wc[4];
	struct pair p;
	int i;

	pair_open(&p, NULL);
	fake_hold();
	for (i = 1; i <= 3; i++)
		CHECK_EQ(post_small(&p, 0, (uint64_t)i), 0);
	fake_step(1);
	fake_fault(fault);
	fake_step(2);
	CHECK_EQ(fabrex_poll(p.qa, wc, 4), 3);
	CHECK(wc[0].user_data == 1 && !wc[0].status);
	CHECK(wc[1].user_data == 2 && wc[1].status == FABREX_WC_ABORTED);
	CHECK(wc[2].user_data == 3 && wc[2].status == FABREX_WC_ABORTED);
	CHECK_EQ(fabrex_poll(p.qa, wc, 4), -ENETDOWN);
	CHECK_SAYS("nothing that was posted");
	pair_close(&p);
}

TEST(lie_index)
{
	lies(FAKE_BAD_INDEX);
}

TEST(lie_opcode)
{
	lies(FAKE_BAD_OPCODE);
}

TEST(lie_user_data)
{
	struct fabrex_wc wc;
	struct pair p;

	pair_open(&p, NULL);
	fake_fault(FAKE_BAD_USER_DATA);
	CHECK_EQ(post_small(&p, 0, 0x1234), 0);
	poll_n(p.qa, &wc, 1);
	CHECK_EQ(wc.user_data, 0x1234);
	pair_close(&p);
}

static void lies_receiving(enum fake_fault fault)
{
	struct fabrex_wc wc;
	struct pair p;

	pair_open(&p, NULL);
	fake_fault(fault);
	CHECK_EQ(fabrex_post_send(p.qa, 1, fabrex_queue_key(p.qb), p.ma, 0, 64,
				  0, 1), 0);
	poll_n(p.qa, &wc, 1);
	CHECK_EQ(fabrex_poll(p.qb, &wc, 1), -ENETDOWN);
	CHECK_SAYS("nothing that was posted");
	pair_close(&p);
}

TEST(lie_cell)
{
	lies_receiving(FAKE_BAD_CELL);
}

TEST(lie_length)
{
	lies_receiving(FAKE_BAD_LENGTH);
}

TEST(lie_rings_outside)
{
	struct fabrex_queue *q;
	struct fabrex_port *port;

	CHECK_EQ(fabrex_open(NULL, &port), 0);
	fake_bad_rings();
	CHECK_EQ(fabrex_queue_create(port, NULL, 0, &q), -EPROTO);
	CHECK_SAYS("rings outside");
	CHECK_EQ(fabrex_queue_create(port, NULL, 0, &q), 0);
	fabrex_close(port);
}

/* Messages that were there when the queue died are not lost. */
TEST(messages_before_death)
{
	struct fabrex_wc wc[4];
	struct pair p;

	pair_open(&p, NULL);
	CHECK_EQ(fabrex_post_send(p.qa, 1, fabrex_queue_key(p.qb), p.ma, 0, 64,
				  3, 1), 0);
	poll_n(p.qa, wc, 1);
	fake_kill(fabrex_queue_number(p.qb), FABREX_QUEUE_DEAD, 0);
	CHECK_EQ(fabrex_poll(p.qb, wc, 4), 1);
	CHECK(wc[0].opcode == FABREX_OP_RECV && wc[0].imm == 3);
	CHECK_EQ(fabrex_poll(p.qb, wc, 4), -ENETDOWN);
	pair_close(&p);
}

/* Everybody who sleeps wakes up when the port goes. */
TEST(port_gone)
{
	struct fabrex_port_event ev;
	struct fabrex_wc wc;
	struct pair p;

	pair_open(&p, NULL);
	fake_gone(0, true);
	CHECK_EQ(fabrex_wait(p.qa, -1), 1);
	CHECK_EQ(fabrex_poll(p.qa, &wc, 1), -ENETDOWN);
	CHECK_EQ(fabrex_event_read(p.a, &ev, -1), -ENODEV);
	CHECK_EQ(fabrex_mr_deregister(p.ma), 0);
	CHECK_EQ(fabrex_queue_destroy(p.qa), 0);
	pair_close(&p);
}
