// SPDX-License-Identifier: GPL-2.0-only
/*
 * What tests of operations start from. See pair.h.
 */
#include "pair.h"

#include <string.h>
#include <unistd.h>

struct rig_queue qa, qb;
uint64_t lkey, rkey;
uint32_t lmr, rmr;

void fill(struct rig_guest *g, uint64_t addr, size_t len, unsigned int seed)
{
	for (size_t i = 0; i < len; i++)
		g->mem[addr + i] = (unsigned char)(seed + i * 7 + (i >> 8));
}

bool pair_start(void)
{
	rig_start(NULL, 2, NULL);
	if (!rig_enable(A) || !rig_enable(B) || !rig_enable(C))
		return false;
	rig_queue_init(&qa, A, PD);
	rig_queue_init(&qb, B, PD);
	if (rig_queue_create(&qa) || rig_queue_create(&qb))
		return false;
	fill(A, SRC, LEN, 1);
	fill(B, DST, LEN, 99);
	lkey = rig_mr(A, SRC, LEN, RIG_ALL, PD, &lmr);
	rkey = rig_mr(B, DST, LEN, RIG_ALL, PD, &rmr);
	return true;
}

struct fabrex_sqe entry(unsigned int opcode)
{
	struct fabrex_sqe s = {
		.opcode = opcode, .peer = 1, .user_data = 0xfeed,
		.lkey = lkey, .rkey = rkey, .length = 4096,
	};

	if (opcode == FABREX_OP_SEND || opcode == FABREX_OP_WRITE_IMM) {
		s.dest_key = qb.key;
		s.imm = 0xabcd;
	}
	if (opcode == FABREX_OP_SEND) {
		s.rkey = 0;
		s.length = 100;
	}
	return s;
}

uint64_t word(struct rig_guest *g, uint64_t addr)
{
	return atomic_load((_Atomic uint64_t *)(g->mem + addr));
}

static unsigned char snap[3][RIG_MEM - RIG_FREE];

void remember(void)
{
	for (int i = 0; i < 3; i++)
		memcpy(snap[i], rig_guest[i].mem + RIG_FREE, sizeof(snap[i]));
}

bool unchanged(void)
{
	for (int i = 0; i < 3; i++) {
		if (memcmp(snap[i], rig_guest[i].mem + RIG_FREE,
			   sizeof(snap[i])))
			return false;
	}
	return true;
}

int refused(const struct fabrex_sqe *s)
{
	int wc;

	remember();
	wc = rig_do(&qa, s, NULL);
	return unchanged() ? wc : -2;
}

uint32_t ctrl(struct rig_queue *q, size_t offset)
{
	return atomic_load(rig_ctrl(q, offset));
}

bool in_error(struct rig_queue *q, uint32_t error)
{
	for (int i = 0; i < RIG_HUNG; i++) {
		if (ctrl(q, 0xc0) == FABREX_QUEUE_ERROR)
			return ctrl(q, 0xc4) == error;
		usleep(1000);
	}
	return false;
}

void ring_with(struct rig_queue *q, uint32_t tail)
{
	atomic_store(rig_ctrl(q, 0), tail);
	port_function_ops.bar_write(q->g->port, DRACO_BAR_DOORBELL,
				    q->number * 4096ull, &tail, 4);
}
