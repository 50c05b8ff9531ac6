// SPDX-License-Identifier: GPL-2.0-only
/*
 * What happens to operations under way when keys, links, queues or ports go, and
 * how queues fail.
 */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "rig/pair.h"
#include "tap.h"

/* ---- Revocation under way ---- */

/* A slow link keeps the operation long enough under way. */
static void start_slow(uint64_t rate)
{
	struct fabrex_sqe s = entry(FABREX_OP_WRITE);

	s.length = LEN;
	fabric_link_slow(&rig_fabric, B->port->link, rate);
	rig_push(&qa, &s);
	rig_ring(&qa);
	while (!atomic_load(&B->port->link->pace.next_ns))
		usleep(100);
}

static void test_revoked_under_way(void)
{
	struct fabrex_cqe c;

	BEGIN();
	start_slow(20000);
	CHECK_EQ(rig_admin(B, rig_cmd(DRACO_ADM_MR_INVALIDATE, rmr, 0),
			   NULL), 0);
	remember();
	CHECK(rig_poll(&qa, &c, RIG_HUNG));
	CHECK_EQ(c.status, FABREX_WC_ABORTED);
	CHECK_EQ(c.length, 0);
	usleep(50000);
	CHECK(unchanged());
	END();
}

static void test_link_lost_under_way(void)
{
	struct fabrex_sqe s;
	struct fabrex_cqe c;

	BEGIN();
	start_slow(20000);
	fabric_link_break(&rig_fabric, B->port->link, true);
	CHECK(rig_poll(&qa, &c, RIG_HUNG));
	CHECK_EQ(c.status, FABREX_WC_ABORTED);
	REFUSE(FABREX_OP_WRITE, , FABREX_WC_UNREACHABLE);
	fabric_link_break(&rig_fabric, B->port->link, false);
	fabric_link_slow(&rig_fabric, B->port->link, 0);
	s = entry(FABREX_OP_WRITE);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	END();
}

static void test_destroyed_under_way(void)
{
	struct fabrex_cqe c;

	BEGIN();
	start_slow(20000);
	CHECK_EQ(rig_queue_destroy(&qa), 0);
	remember();
	CHECK(!rig_poll(&qa, &c, 50));
	CHECK(unchanged());
	CHECK_EQ(rig_queue_create(&qa), 0);
	END();
}

static void test_target_disabled_under_way(void)
{
	struct fabrex_cqe c;

	BEGIN();
	start_slow(20000);
	CHECK(rig_disable(B));
	remember();
	CHECK(rig_poll(&qa, &c, RIG_HUNG));
	CHECK_EQ(c.status, FABREX_WC_ABORTED);
	END();
}

static void test_initiator_disabled_under_way(void)
{
	BEGIN();
	start_slow(20000);
	CHECK(rig_disable(A));
	remember();
	usleep(50000);
	CHECK(unchanged());
	END();
}

static void *invalidate_often(void *arg)
{
	struct draco_acmd cmd = rig_cmd(DRACO_ADM_MR_PAGES, rmr,
					LEN / 4096 * 8);

	for (int i = 0; i < 200; i++) {
		uint64_t *pages = rig_data(B);

		if (rig_admin(B, rig_cmd(DRACO_ADM_MR_INVALIDATE, rmr, 0),
			      NULL))
			return NULL;
		for (unsigned int p = 0; p < LEN / 4096; p++)
			pages[p] = DST + p * 4096;
		cmd.cid = 0;
		if (rig_admin(B, cmd, NULL))
			return NULL;
	}
	return arg;
}

static void test_revoke_and_write_race(void)
{
	struct fabrex_sqe s;
	pthread_t t;
	void *ok;

	BEGIN();
	pthread_create(&t, NULL, invalidate_often, &ok);
	s = entry(FABREX_OP_WRITE);
	s.length = LEN;
	for (int i = 0; i < 2000; i++) {
		int wc = rig_do(&qa, &s, NULL);

		CHECK(wc == FABREX_WC_OK || wc == FABREX_WC_RKEY ||
		      wc == FABREX_WC_ABORTED);
	}
	pthread_join(t, &ok);
	CHECK(ok);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	END();
}

/* ---- Queue errors ---- */

static void test_bad_index(void)
{
	struct fabrex_sqe s;
	struct fabrex_cqe c;

	BEGIN();
	ring_with(&qb, 65);
	CHECK(in_error(&qb, FABREX_QERR_SQ_INDEX));
	CHECK(!rig_poll(&qb, &c, 10));
	/* Nobody else's queue is disturbed. */
	s = entry(FABREX_OP_WRITE);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	s = entry(FABREX_OP_SEND);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_BAD_QUEUE);
	CHECK_EQ(rig_queue_destroy(&qb), 0);
	/* The number may be the same, the key is not. */
	CHECK_EQ(rig_queue_create(&qb), 0);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_BAD_QUEUE);
	s.dest_key = qb.key;
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	END();
}

static void test_completion_overrun(void)
{
	struct fabrex_sqe s;

	BEGIN();
	s = entry(FABREX_OP_WRITE);
	s.length = 8;
	for (unsigned int round = 0; round < 3; round++) {
		for (unsigned int i = 0; i < 63; i++)
			rig_push(&qa, &s);
		rig_ring(&qa);
		for (int i = 0; i < RIG_HUNG && ctrl(&qa, 0x80) != qa.sq_tail &&
		     ctrl(&qa, 0xc0) == 0; i++)
			usleep(1000);
	}
	CHECK(in_error(&qa, FABREX_QERR_CQ_OVERRUN));
	for (int i = 0; i < RIG_HUNG && ctrl(&qa, 0x80) == 128; i++)
		usleep(1000);
	CHECK_EQ(ctrl(&qa, 0x80), 128 + 1);
	END();
}

static void test_ring_fault(void)
{
	BEGIN();
	/* The guest takes away what the queue lives in. */
	dma_map_clear(function_dma(A->port->fn));
	port_function_ops.bar_write(A->port, DRACO_BAR_DOORBELL,
				    qa.number * 4096ull, "\1\0\0\0", 4);
	for (int i = 0; i < RIG_HUNG && !rig_read(A, DRACO_REG_ERROR); i++) {
		struct queue *q = A->port->queues.slots[qa.number].q;

		if (atomic_load(&q->state) == FABREX_QUEUE_ERROR)
			break;
		usleep(1000);
	}
	CHECK_EQ(atomic_load(&A->port->queues.slots[qa.number].q->state),
		 FABREX_QUEUE_ERROR);
	/* The admin ring is gone as well. */
	rig_write(A, DRACO_REG_ADMIN_SQ_TAIL, 5);
	CHECK(rig_wait_status(A, DRACO_STATUS_FATAL, DRACO_STATUS_FATAL));
	CHECK_EQ(rig_read(A, DRACO_REG_ERROR), DRACO_FATAL_ADMIN_RING);
	END();
}

static void test_interrupts(void)
{
	uint32_t head = 0;
	struct fabrex_sqe s;
	uint64_t before;

	BEGIN();
	s = entry(FABREX_OP_WRITE);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	CHECK_EQ(rig_raised(A, qa.vector), 0);
	/* At once: a completion beyond 0 exists. */
	port_function_ops.bar_write(A->port, DRACO_BAR_DOORBELL,
				    qa.number * 4096ull + 4, &head, 4);
	CHECK_EQ(rig_raised(A, qa.vector), 1);
	head = 1;
	port_function_ops.bar_write(A->port, DRACO_BAR_DOORBELL,
				    qa.number * 4096ull + 4, &head, 4);
	CHECK_EQ(rig_raised(A, qa.vector), 1);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	CHECK_EQ(rig_raised(A, qa.vector), 2);
	before = rig_raised(A, qa.vector);
	head = 3;
	port_function_ops.bar_write(A->port, DRACO_BAR_DOORBELL,
				    qa.number * 4096ull + 4, &head, 4);
	ring_with(&qa, 1000);
	CHECK(in_error(&qa, FABREX_QERR_SQ_INDEX));
	for (int i = 0; i < RIG_HUNG && rig_raised(A, qa.vector) == before; i++)
		usleep(1000);
	CHECK_EQ(rig_raised(A, qa.vector), before + 1);
	END();
}

#define T(n) { #n, test_ ## n }

static const struct tap_test tests[] = {
	T(revoked_under_way), T(link_lost_under_way), T(destroyed_under_way),
	T(target_disabled_under_way),
	T(initiator_disabled_under_way), T(revoke_and_write_race), T(bad_index),
	T(completion_overrun), T(ring_fault), T(interrupts),
};

int main(int argc, char **argv)
{
	return tap_run(tests, sizeof(tests) / sizeof(tests[0]),
		       argc > 1 ? argv[1] : NULL);
}
