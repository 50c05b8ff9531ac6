// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events: what users can cause has a place of its own, and whoever has lost
 * events can ask for what they were about.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rig/pair.h"
#include "tap.h"

#define ROUNDS	12u
#define EACH	30u		/* the two of the pair are there too */

/* All events that there are, up to @max; *lost is what was dropped. */
static unsigned int take(struct rig_guest *g, struct draco_event *out,
			 unsigned int max, uint64_t *lost)
{
	unsigned int n = 0;

	*lost = 0;
	while (n < max) {
		struct draco_acmd c = rig_cmd(DRACO_ADM_GET_EVENTS, 0, 64 * 64);
		uint16_t cid = rig_post(g, &c);
		struct draco_acpl cpl;

		if (!rig_wait(g, cid, &cpl, 100)) {
			rig_admin(g, rig_cmd(DRACO_ADM_ABORT, cid, 0), NULL);
			rig_wait(g, cid, &cpl, 5000);
			if (cpl.status == DRACO_SC_ABORTED)
				break;
		}
		*lost += cpl.result2;
		for (unsigned int i = 0; i < cpl.result && n < max; i++)
			out[n++] = ((struct draco_event *)rig_data(g))[i];
	}
	return n;
}

static unsigned int of_type(const struct draco_event *ev, unsigned int n,
			    unsigned int type)
{
	unsigned int found = 0;

	for (unsigned int i = 0; i < n; i++)
		found += ev[i].type == type;
	return found;
}

/* Ring memory is shared by seven: they are stopped one after the other. */
static void break_queue(struct rig_queue *q)
{
	rig_queue_init(q, A, PD);
	q->vector = DRACO_NO_VECTOR;
	CHECK_EQ(rig_queue_create(q), 0);
	q->sq_tail = 1000;
	rig_ring(q);
	CHECK(in_error(q, FABREX_QERR_SQ_INDEX));
}

static struct draco_event got[1024];

static void test_hostile_queues(void)
{
	struct rig_queue q[EACH];
	uint64_t lost;
	unsigned int n;

	BEGIN();
	take(A, got, 1024, &lost);
	for (unsigned int r = 0; r < ROUNDS; r++) {
		for (unsigned int i = 0; i < EACH; i++)
			break_queue(&q[i]);
		for (unsigned int i = 0; i < EACH && r < ROUNDS - 1; i++)
			CHECK_EQ(rig_queue_destroy(&q[i]), 0);
	}
	fabric_link_break(&rig_fabric, C->port->link, true);
	n = take(A, got, 1024, &lost);
	CHECK_EQ(lost, 0);
	CHECK_EQ(of_type(got, n, DRACO_EV_LINK), 1);
	CHECK_EQ(of_type(got, n, DRACO_EV_PEER_DOWN), 1);
	/* What was destroyed is not reported, and each of the others once. */
	CHECK_EQ(of_type(got, n, DRACO_EV_QUEUE_ERROR), EACH);
	END();
}

/* Whoever has the number of a queue next is not told of the error before. */
static void test_report_names_instance(void)
{
	struct draco_event *ev = NULL;
	struct rig_queue q;
	uint64_t lost;
	unsigned int n;

	BEGIN();
	take(A, got, 1024, &lost);
	rig_queue_init(&q, A, PD);
	q.vector = DRACO_NO_VECTOR;
	q.serial = 0x1122334455667788;
	CHECK_EQ(rig_queue_create(&q), 0);
	q.sq_tail = 1000;
	rig_ring(&q);
	CHECK(in_error(&q, FABREX_QERR_SQ_INDEX));
	n = take(A, got, 1024, &lost);
	for (unsigned int i = 0; i < n; i++) {
		if (got[i].type == DRACO_EV_QUEUE_ERROR)
			ev = &got[i];
	}
	CHECK(ev && ev->object == q.number && ev->arg[1] == q.serial);
	CHECK(ev && ev->arg[0] == FABREX_QERR_SQ_INDEX && !ev->seq);
	CHECK_EQ(rig_queue_destroy(&q), 0);
	END();
}

/* Fabric events come first, and the log is theirs. */
static void test_fabric_first(void)
{
	struct draco_acmd c = rig_cmd(DRACO_ADM_GET_LOG, 0, 64 * 1024);
	struct draco_acpl cpl;
	struct rig_queue q;
	uint64_t lost;

	BEGIN();
	take(A, got, 1024, &lost);
	break_queue(&q);
	fabric_link_break(&rig_fabric, C->port->link, true);
	CHECK(take(A, got, 1024, &lost) >= 2);
	CHECK_EQ(got[0].type, DRACO_EV_LINK);
	CHECK_EQ(rig_admin(A, c, &cpl), 0);
	CHECK(cpl.result > 1);
	CHECK_EQ(of_type(rig_data(A), cpl.result, DRACO_EV_QUEUE_ERROR), 0);
	END();
}

static bool peer(struct rig_guest *g, unsigned int n, struct draco_peer *out,
		 uint64_t *seq)
{
	struct draco_acmd c = rig_cmd(DRACO_ADM_GET_PEERS, 0, sizeof(*out));
	struct draco_acpl cpl;

	c.arg[0] = n;
	if (rig_admin(g, c, &cpl) || cpl.result != 1)
		return false;
	*out = *(struct draco_peer *)rig_data(g);
	*seq = cpl.result2;
	return cpl.id == (n + 1 < rig_fabric.nports ? n + 1 : 0);
}

static void test_peers(void)
{
	struct draco_acmd c = rig_cmd(DRACO_ADM_GET_PEERS, 0, 15);
	struct draco_peer p;
	uint64_t seq, lost;
	unsigned int n;

	BEGIN();
	CHECK(peer(A, 0, &p, &seq));
	CHECK(p.peer == 0 && p.flags == DRACO_PEERF_UP && p.generation == 1);
	CHECK_EQ(p.port, A->port->link->id);
	CHECK(peer(A, 1, &p, &seq) && p.flags == DRACO_PEERF_UP);
	CHECK(peer(A, 3, &p, &seq) && !p.flags && !p.generation);
	CHECK(rig_disable(B));
	CHECK(peer(A, 1, &p, &seq) && !p.flags);
	CHECK(rig_enable(B));
	CHECK(peer(A, 1, &p, &seq) && p.flags && p.generation == 2);
	n = take(A, got, 1024, &lost);
	CHECK(n && got[n - 1].type == DRACO_EV_PEER_UP);
	CHECK(n && seq >= got[n - 1].seq);
	fabric_link_break(&rig_fabric, C->port->link, true);
	CHECK(peer(A, 2, &p, &seq) && !p.flags && p.generation == 1);
	CHECK(peer(C, 2, &p, &seq) && !p.flags);
	CHECK_EQ(rig_admin(A, c, NULL), DRACO_SC_BAD_FIELD);
	c.data_len = 16;
	c.arg[0] = DRACO_MAX_PEERS;
	CHECK_EQ(rig_admin(A, c, NULL), DRACO_SC_BAD_FIELD);
	END();
}

static unsigned int requests(struct rig_guest *g, struct draco_event *out)
{
	struct draco_acpl cpl;

	if (rig_admin(g, rig_cmd(DRACO_ADM_GET_REQUESTS, 0, 64 * 64), &cpl))
		return 1000;
	memcpy(out, rig_data(g), cpl.result * sizeof(*out));
	return cpl.result;
}

static struct draco_acmd command(unsigned int op, unsigned int i, uint64_t arg)
{
	struct draco_acmd c = rig_cmd(op, fabric_ep_id(&rig_fabric, i), 128);

	c.arg[0] = arg;
	return c;
}

static void test_requests(void)
{
	struct draco_event ev[8] = { 0 };
	struct draco_acpl cpl;
	struct draco_acmd c;
	uint16_t cid;

	BEGIN();
	rig_host_up(B, true);
	for (unsigned int i = 0; i < 2; i++)
		CHECK_EQ(rig_admin(A, command(DRACO_ADM_BIND, i,
					      B->port->link->id), NULL), 0);
	CHECK_EQ(requests(B, ev), 0);
	c = command(DRACO_ADM_UNBIND, 0, 60000);
	cid = rig_begin(A, &c);
	CHECK_EQ(requests(B, ev), 1);
	CHECK_EQ(ev->type, DRACO_EV_RELEASE_REQUEST);
	CHECK_EQ(ev->object, fabric_ep_id(&rig_fabric, 0));
	CHECK(ev->arg[0] && ev->arg[2] && ev->arg[2] <= 60000);
	CHECK_EQ(requests(A, ev + 1), 0);
	/* Answered: the slot alone is waited for. */
	c = command(DRACO_ADM_RELEASE_REPLY, 0, ev->arg[0]);
	CHECK_EQ(rig_admin(B, c, NULL), 0);
	rig_settle();
	CHECK_EQ(requests(B, ev), 0);
	CHECK(rig_power_off(B, 2));
	CHECK(rig_wait(A, cid, &cpl, 5000) && !cpl.status);
	/* Taken by force: until the slot is empty, also by another driver. */
	c = command(DRACO_ADM_UNBIND, 1, 0);
	c.flags = DRACO_BINDF_FORCE;
	CHECK_EQ(rig_admin(A, c, NULL), 0);
	CHECK_EQ(requests(B, ev), 1);
	CHECK(ev->flags & DRACO_EVF_FORCE && ev->arg[0] && ev->arg[1] == 3);
	CHECK(rig_disable(B) && rig_enable(B));
	CHECK_EQ(requests(B, ev), 1);
	CHECK(rig_power_off(B, 3));
	CHECK_EQ(requests(B, ev), 0);
	END();
}

/* Withdrawn, timed out, or nobody there to ask. */
static void test_requests_end(void)
{
	struct draco_event ev[8] = { 0 };
	struct draco_acpl cpl;
	struct draco_acmd c;
	uint16_t cid;

	BEGIN();
	rig_host_up(B, true);
	CHECK_EQ(rig_admin(A, command(DRACO_ADM_BIND, 0, B->port->link->id),
			   NULL), 0);
	CHECK_EQ(rig_admin(A, command(DRACO_ADM_UNBIND, 0, 20), NULL),
		 DRACO_SC_TIMEOUT);
	CHECK_EQ(requests(B, ev), 0);
	c = command(DRACO_ADM_UNBIND, 0, 60000);
	cid = rig_begin(A, &c);
	CHECK_EQ(requests(B, ev), 1);
	CHECK_EQ(rig_admin(A, rig_cmd(DRACO_ADM_ABORT, cid, 0), NULL), 0);
	CHECK(rig_wait(A, cid, &cpl, 5000));
	CHECK_EQ(requests(B, ev), 0);
	/* Given up while nobody is there: told to who comes. */
	CHECK(rig_disable(B));
	CHECK_EQ(rig_admin(A, command(DRACO_ADM_UNBIND, 0, 0), NULL), 0);
	CHECK(rig_enable(B));
	CHECK_EQ(requests(B, ev), 1);
	CHECK(ev->flags & DRACO_EVF_FORCE);
	rig_host_up(B, false);
	CHECK_EQ(requests(B, ev), 0);
	END();
}

/* A loss is told even if nothing else is there to be told. */
static void test_loss_is_told(void)
{
	struct draco_event *ev = got;
	uint64_t lost;
	unsigned int n;

	BEGIN();
	take(A, got, 1024, &lost);
	fault_arm(&A->port->faults, DRACO_FAULT_LOST_EVENT, DRACO_EV_LINK, 1);
	fabric_link_break(&rig_fabric, A->port->link, true);
	n = take(A, got, 1024, &lost);
	CHECK_EQ(lost, 1);
	CHECK_EQ(of_type(ev, n, DRACO_EV_LINK), 0);
	fabric_link_break(&rig_fabric, A->port->link, false);
	n = take(A, got, 1024, &lost);
	CHECK_EQ(lost, 0);
	CHECK_EQ(of_type(ev, n, DRACO_EV_LINK), 1);
	fault_arm(&A->port->faults, DRACO_FAULT_LOST_EVENT, FAULT_ANY_QUEUE, 1);
	fabric_link_slow(&rig_fabric, C->port->link, 1);
	n = take(A, got, 1024, &lost);
	CHECK(!n && lost == 1);
	END();
}

#define T(n) { #n, test_ ## n }

static const struct tap_test tests[] = {
	T(hostile_queues), T(report_names_instance), T(fabric_first), T(peers),
	T(requests), T(requests_end), T(loss_is_told),
};

int main(int argc, char **argv)
{
	return tap_run(tests, sizeof(tests) / sizeof(tests[0]),
		       argc > 1 ? argv[1] : NULL);
}
