// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tests of the loopback transport's wake-ups: whoever sleeps on a queue is
 * woken, whatever else the connection carries, and without any time being up.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "hooks.h"
#include "core/core.h"
#include "party.h"
#include "transport/loopback/state.h"

#define QUEUES	40

/* Two ports of this process. */
struct pairing {
	struct fabrex_port *a, *b;
	struct fabrex_mr *mr;		/* a's */
	struct fabrex_queue *from;	/* a's */
	struct fabrex_queue *to[QUEUES];
};

static const struct fabrex_queue_attr sleeps = {
	.rq_entries = 8, .cell_size = 64, .flags = FABREX_QUEUE_EVENTFD,
};

static void pairing_open(struct pairing *p)
{
	int i;

	CHECK_EQ(fabrex_open(loop_name("a"), &p->a), 0);
	CHECK_EQ(fabrex_open(loop_name("b"), &p->b), 0);
	CHECK_EQ(fabrex_mr_alloc(p->a, 4096, FABREX_MR_ALL, &p->mr), 0);
	CHECK_EQ(fabrex_queue_create(p->a, NULL, 0, &p->from), 0);
	for (i = 0; i < QUEUES; i++)
		CHECK_EQ(fabrex_queue_create(p->b, &sleeps, sizeof(sleeps),
					     &p->to[i]), 0);
}

static void pairing_close(struct pairing *p)
{
	CHECK_EQ(fabrex_close(p->a), 0);
	CHECK_EQ(fabrex_close(p->b), 0);
}

static void send_to(struct pairing *p, int i)
{
	struct fabrex_op op = {
		.opcode = FABREX_OP_SEND, .mr = p->mr, .length = 8,
		.peer = (uint16_t)p->b->attr.peer,
		.dest_key = fabrex_queue_key(p->to[i]),
	};

	CHECK_EQ(operate(p->from, &op), FABREX_WC_OK);
}

/* However long it takes; the test's own time is limited. */
static void await_signal(const struct fabrex_queue *q)
{
	struct pollfd pfd = { .fd = fabrex_queue_fd(q), .events = POLLIN };

	CHECK_EQ(poll(&pfd, 1, -1), 1);
}

/* What the service thread waits for it is told of. */
static void check_told(struct fabrex_port *port)
{
	pthread_mutex_lock(&port->transport->lock);
	CHECK_EQ(port->transport->state->untold, 0);
	pthread_mutex_unlock(&port->transport->lock);
}

/* ---- links that take no more --------------------------------------------- */

/* Fewer messages fill it than the other side reads in a row. */
TEST(loop_wakes_over_a_full_link)
{
	const int little = 1;
	struct pairing p;
	int i;

	pairing_open(&p);
	CHECK(!setsockopt(p.a->transport->peers[p.b->attr.peer].sock,
			  SOL_SOCKET, SO_SNDBUF, &little, sizeof(little)));
	for (i = 0; i < QUEUES; i++)
		CHECK_EQ(fabrex_arm(p.to[i]), 0);
	/* b reads nothing. */
	pthread_mutex_lock(&p.b->transport->lock);
	for (i = 0; i < QUEUES; i++)
		send_to(&p, i);
	pthread_mutex_unlock(&p.b->transport->lock);
	for (i = 0; i < QUEUES; i++)
		await_signal(p.to[i]);
	check_told(p.a);
	check_told(p.b);
	pairing_close(&p);
}

static bool is_wake(const void *message, size_t length)
{
	return length == sizeof(struct loop_message) &&
	       ((const struct loop_message *)message)->type == LOOP_WAKE;
}

/* The system may be short of memory for a while. */
TEST(loop_wakes_without_memory)
{
	static const int errors[] = { EAGAIN, ENOBUFS, ENOMEM };
	struct pairing p;
	int i;

	pairing_open(&p);
	for (i = 0; i < 3; i++) {
		CHECK_EQ(fabrex_arm(p.to[i]), 0);
		hook_send(4, errors[i], is_wake);
		send_to(&p, i);
		await_signal(p.to[i]);
		CHECK_EQ(hook_send_left(), 0);
	}
	pairing_close(&p);
}

/* ---- senders that die ---------------------------------------------------- */

static void opens(int fd, void *unused)
{
	struct fabrex_port *port;
	char order;

	(void)unused;
	CHECK_EQ(fabrex_open(loop_name("dies"), &port), 0);
	tell(fd, "", 1);
	hear_maybe(fd, &order, 1);
}

/*
 * A sender has found the receiver asleep, and dies before it tells its service
 * thread. In between the receiver's own operation has come to its end.
 */
TEST(loop_wakes_after_own_completion)
{
	struct fabrex_op op = { .opcode = FABREX_OP_NOP };
	struct fabrex_queue *q;
	struct fabrex_port *port;
	struct party p;
	char ready;

	loop_name_set();
	party_start(&p, opens, NULL);
	hear(p.fd, &ready, 1);
	CHECK_EQ(fabrex_open(loop_name("sleeps"), &port), 0);
	CHECK_EQ(fabrex_queue_create(port, &sleeps, sizeof(sleeps), &q), 0);
	CHECK_EQ(fabrex_arm(q), 0);
	CHECK_EQ(__atomic_exchange_n(&port->transport->segment->queues[
			fabrex_queue_number(q) - 1].armed, 0,
			__ATOMIC_SEQ_CST), 1);
	CHECK_EQ(fabrex_post(q, &op, 1), 1);
	party_kill(&p);
	await_signal(q);
	CHECK_EQ(fabrex_close(port), 0);
}

/* ---- many ---------------------------------------------------------------- */

#define ROUNDS	100000
#define ENOUGH_NS 3000000000u

struct address {
	uint32_t peer, queue;
	uint64_t key;
};

static void address_of(struct fabrex_port *port, struct fabrex_queue *q,
		       struct address *a)
{
	a->peer = port->attr.peer;
	a->queue = fabrex_queue_number(q);
	a->key = fabrex_queue_key(q);
}

/* Sleeps until something has come. */
static void take(struct fabrex_queue *q)
{
	struct fabrex_wc wc;
	int ret;

	while (!(ret = fabrex_poll(q, &wc, 1)))
		CHECK_EQ(fabrex_wait(q, -1), 1);
	CHECK_EQ(ret, 1);
	CHECK_EQ(wc.opcode, FABREX_OP_RECV);
	fabrex_recv_done(q, 1);
}

static void give(struct fabrex_queue *q, const struct address *to,
		 struct fabrex_mr *mr)
{
	const struct fabrex_op op = {
		.opcode = FABREX_OP_SEND, .flags = FABREX_SQE_QUIET,
		.mr = mr, .length = 8, .peer = (uint16_t)to->peer,
		.dest_key = to->key,
	};

	CHECK_EQ(fabrex_post(q, &op, 1), 1);
}

static void answers(int fd, void *unused)
{
	struct fabrex_port *port;
	struct fabrex_queue *q;
	struct fabrex_mr *mr;
	struct address a;

	(void)unused;
	CHECK_EQ(fabrex_open(loop_name("answers"), &port), 0);
	CHECK_EQ(fabrex_mr_alloc(port, 4096, FABREX_MR_ALL, &mr), 0);
	CHECK_EQ(fabrex_queue_create(port, &sleeps, sizeof(sleeps), &q), 0);
	address_of(port, q, &a);
	tell(fd, &a, sizeof(a));
	hear(fd, &a, sizeof(a));
	for (;;) {
		take(q);
		give(q, &a, mr);
	}
}

/* Both fall asleep and are woken each time, for ever if one is not. */
TEST(loop_wakes_many_times)
{
	uint64_t end = fxi_now_ns() + ENOUGH_NS;
	struct fabrex_port *port;
	struct fabrex_queue *q;
	struct address a, other;
	struct fabrex_mr *mr;
	struct party p;
	int i;

	loop_name_set();
	party_start(&p, answers, NULL);
	hear(p.fd, &other, sizeof(other));
	CHECK_EQ(fabrex_open(loop_name("asks"), &port), 0);
	CHECK_EQ(fabrex_mr_alloc(port, 4096, FABREX_MR_ALL, &mr), 0);
	CHECK_EQ(fabrex_queue_create(port, &sleeps, sizeof(sleeps), &q), 0);
	address_of(port, q, &a);
	tell(p.fd, &a, sizeof(a));
	for (i = 0; i < ROUNDS && fxi_now_ns() < end; i++) {
		give(q, &other, mr);
		take(q);
	}
	printf("# %d times\n", i);
	check_told(port);
	party_kill(&p);
	CHECK_EQ(fabrex_close(port), 0);
}
