// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * bench N [ring | ring-one | write | send | one | one-send]: N times post a
 * batch of 8 small operations and poll their completions: writes on rings whose
 * device is played in line, or writes or messages to itself on a loopback
 * fabric; "one": one by one with fabrex_post_write() and fabrex_post_send().
 * bench-instructions counts what the library's functions take.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "core/core.h"
#include "fake.h"
#include "transport/ring/ring.h"

#define BATCH	8u

/* What the device would write for entries first .. first + n - 1. */
static void answer(const struct ring_queue *q, uint32_t first, uint32_t n)
{
	struct fabrex_cqe *cq = (struct fabrex_cqe *)(uintptr_t)q->cq;
	uint32_t i;

	for (i = first; i != first + n; i++) {
		struct fabrex_cqe *cqe = &cq[i & (q->cq_entries - 1)];

		cqe->index = (uint16_t)i;
		cqe->opcode = FABREX_OP_WRITE;
		cqe->length = 8;
		cqe->flags = !(i & q->cq_entries);
	}
}

struct bench {
	struct fabrex_port *port;
	struct fabrex_queue *q;
	struct fabrex_mr *mr;
	struct fabrex_remote self;
	struct fabrex_op ops[BATCH];
	const char *what;
	bool ring, send, one;
};

static void post_one_by_one(struct bench *b)
{
	const struct fabrex_op *op = &b->ops[0];
	unsigned int i;
	int ret = 0;

	for (i = 0; i < BATCH && !ret; i++)
		ret = b->send ? fabrex_post_send(b->q, op->peer, op->dest_key,
						 b->mr, 0, 8, 0, 0) :
				fabrex_post_write(b->q, b->mr, 0, &b->self, 64,
						  8, 0, 0);
	if (ret)
		abort();
}

static void round_trip(struct bench *b, uint32_t first)
{
	struct fabrex_wc wc[2 * BATCH];
	int n = b->send ? 2 * BATCH : BATCH;

	if (b->one)
		post_one_by_one(b);
	else if (fabrex_post(b->q, b->ops, BATCH) != (int)BATCH)
		abort();
	if (b->ring)
		answer(ring_queue_of(b->q), first, BATCH);
	if (fabrex_poll(b->q, wc, n) != n || wc[0].status)
		abort();
	if (b->send)
		fabrex_recv_done(b->q, BATCH);
}

static void prepare(struct bench *b)
{
	unsigned int i;

	memset(b->ops, 0, sizeof(b->ops));
	for (i = 0; i < BATCH; i++) {
		b->ops[i].opcode = b->send ? FABREX_OP_SEND : FABREX_OP_WRITE;
		b->ops[i].peer = (uint16_t)b->self.peer;
		b->ops[i].mr = b->mr;
		b->ops[i].rkey = b->send ? 0 : fabrex_mr_key(b->mr);
		b->ops[i].roffset = b->send ? 0 : 64;
		b->ops[i].length = 8;
		b->ops[i].dest_key = b->send ? b->q->key : 0;
	}
}

static int open_all(struct bench *b)
{
	struct fabrex_queue_attr attr = { .rq_entries = b->send ? 16 : 0 };
	char name[64] = "a.0";

	if (!b->ring)
		snprintf(name, sizeof(name), "loopback:bench-%d", getpid());
	if (fabrex_open(name, &b->port) ||
	    fabrex_mr_alloc(b->port, 4096, FABREX_MR_ALL, &b->mr) ||
	    fabrex_queue_create(b->port, &attr, sizeof(attr), &b->q))
		return -1;
	fabrex_mr_remote(b->mr, &b->self);
	if (b->ring) {
		fake_hold();
		ring_queue_of(b->q)->ctrl->db_needed = 0;
	}
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long i, n = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000;
	struct bench b = { .what = argc > 2 ? argv[2] : "ring" };
	uint64_t start;

	b.ring = !strncmp(b.what, "ring", 4);
	b.send = strstr(b.what, "send");
	b.one = strstr(b.what, "one");
	if (open_all(&b)) {
		fprintf(stderr, "bench: %s\n", fabrex_strerror_last());
		return 1;
	}
	prepare(&b);
	start = fxi_now_ns();
	for (i = 0; i < n; i++)
		round_trip(&b, (uint32_t)(i * BATCH));
	printf("%.1f ns for each operation\n",
	       (double)(fxi_now_ns() - start) / (double)(n * BATCH));
	fabrex_close(b.port);
	return 0;
}
