// SPDX-License-Identifier: LGPL-2.1-or-later
#include <sys/mman.h>
#include <sys/random.h>

#include "core/core.h"
#include "site.h"

uint32_t site_random(uint32_t n)
{
	uint32_t value;

	CHECK_EQ(getrandom(&value, sizeof(value), 0), sizeof(value));
	return value % n;
}

void site_open(struct site *s, const char *name, struct card *card)
{
	const struct fabrex_queue_attr attr = {
		.sq_entries = 64, .rq_entries = 64, .cell_size = 256,
		.flags = FABREX_QUEUE_EVENTFD,
	};

	CHECK_EQ(fabrex_open(loop_name(name), &s->port), 0);
	CHECK_EQ(fabrex_mr_alloc(s->port, LENGTH, FABREX_MR_ALL, &s->heap), 0);
	s->memory = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(s->memory != MAP_FAILED);
	CHECK_EQ(fabrex_mr_register(s->port, s->memory, LENGTH, FABREX_MR_ALL,
				    &s->plain), 0);
	CHECK_EQ(fabrex_queue_create(s->port, &attr, sizeof(attr), &s->queue),
		 0);
	fabrex_mr_remote(s->heap, &card->heap);
	fabrex_mr_remote(s->plain, &card->plain);
	card->queue = fabrex_queue_number(s->queue);
	card->key = fabrex_queue_key(s->queue);
}

/* Something against the other side: anything, of any size. */
struct fabrex_op site_any_op(const struct site *s, const struct card *to)
{
	static const uint8_t opcodes[] = {
		FABREX_OP_WRITE, FABREX_OP_READ, FABREX_OP_WRITE_IMM,
		FABREX_OP_FETCH_ADD, FABREX_OP_CMP_SWAP, FABREX_OP_SEND,
	};
	bool plain = site_random(2);
	struct fabrex_op op = {
		.opcode = opcodes[site_random(sizeof(opcodes))],
		.peer = (uint16_t)to->heap.peer,
		.mr = site_random(2) ? s->heap : s->plain,
		.length = site_random(4) ? site_random(256) :
					    site_random(LENGTH),
	};

	if (op.opcode == FABREX_OP_SEND) {
		op.length %= 256;
	} else {
		op.rkey = plain ? to->plain.rkey : to->heap.rkey;
		if (op.opcode == FABREX_OP_FETCH_ADD ||
		    op.opcode == FABREX_OP_CMP_SWAP)
			op.length = 0;
	}
	if (op.opcode == FABREX_OP_SEND || op.opcode == FABREX_OP_WRITE_IMM)
		op.dest_key = to->key;
	return op;
}

/* Status of it; takes what has come meanwhile. */
int site_do(struct site *s, const struct fabrex_op *op)
{
	int i, n, status = -1;
	struct fabrex_wc wc[16];

	CHECK_EQ(fabrex_post(s->queue, op, 1), 1);
	while (status < 0) {
		n = fabrex_poll(s->queue, wc, 16);
		CHECK(n >= 0);
		for (i = 0; i < n; i++)
			if (wc[i].opcode & FABREX_OP_RECV)
				fabrex_recv_done(s->queue, 1);
			else
				status = wc[i].status;
	}
	return status;
}

void site_drain(struct site *s)
{
	struct fabrex_wc wc;

	while (fabrex_poll(s->queue, &wc, 1) == 1)
		fabrex_recv_done(s->queue, 1);
}

/* Writes and messages still come through from elsewhere: no lock is held. */
void site_check_alive(struct site *a, struct site *b, const struct card *to)
{
	struct fabrex_op send = {
		.opcode = FABREX_OP_SEND, .peer = (uint16_t)to->heap.peer,
		.mr = b->heap, .length = 100, .dest_key = to->key,
	};
	struct fabrex_wc wc;

	site_drain(a);
	CHECK_EQ(site_do(b, &send), FABREX_WC_OK);
	CHECK_EQ(fabrex_wait(a->queue, HANG_MS), 1);
	CHECK_EQ(fabrex_poll(a->queue, &wc, 1), 1);
	CHECK_EQ(wc.opcode, FABREX_OP_RECV);
	CHECK_EQ(wc.peer, b->port->attr.peer);
	fabrex_recv_done(a->queue, 1);
}
