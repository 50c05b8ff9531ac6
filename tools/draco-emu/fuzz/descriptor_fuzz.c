// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzer: submission entries, ring indices and doorbells as a hostile process
 * writes them. Memory that no region covers must never change.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/rig/pair.h"

#define MAX_ENTRIES	16
#define GUARD		4096u

static const uint64_t guards[] = { SRC - GUARD, SRC + LEN, DST - GUARD,
				   DST + LEN };
static uint64_t keys[8];

static void make_keys(void)
{
	keys[0] = 0;
	keys[1] = lkey;
	keys[2] = rkey;
	keys[3] = rig_mr(A, SRC + 100, 5000, DRACO_ACCESS_REMOTE_READ, PD, NULL);
	keys[4] = rig_mr(B, DST + 24, 8192, RIG_ALL, PD, NULL);
	keys[5] = rig_mr(A, RIG_MEM - 4096, 16384, RIG_ALL, PD, NULL);
	keys[6] = rig_mr(A, SRC, LEN, RIG_ALL, PD + 1, NULL);
	keys[7] = rig_mr(B, DST, LEN, DRACO_ACCESS_REMOTE_WRITE, PD, NULL);
}

static void start(void)
{
	static bool started;

	if (started)
		return;
	started = true;
	if (!pair_start())
		abort();
	make_keys();
}

/* Some values have to be right for the entry to get anywhere. */
static void help(struct fabrex_sqe *s, unsigned char how)
{
	if (how & 1)
		s->lkey = keys[s->lkey & 7];
	if (how & 2)
		s->rkey = keys[s->rkey & 7];
	if (how & 4)
		s->opcode %= 8;
	if (how & 8)
		s->peer %= 4;
	if (how & 16) {
		s->loffset %= LEN;
		s->roffset %= LEN;
		s->length %= LEN;
	}
	if (how & 32)
		s->dest_key = qb.key;
	if (how & 64)
		s->imm = 0;
	if (how & 128)
		s->compare = 0;
}

static void push_all(const unsigned char **data, size_t *size)
{
	for (int i = 0; i < MAX_ENTRIES && *size >= 65; i++) {
		struct fabrex_sqe s;

		memcpy(&s, *data + 1, 64);
		help(&s, **data);
		rig_push(&qa, &s);
		*data += 65;
		*size -= 65;
	}
}

/* What is left over: nonsense in the control page and on the doorbell. */
static void scribble(const unsigned char *data, size_t size)
{
	static const size_t where[] = { 0x00, 0x40, 0x44, 0x80, 0x84, 0xc0 };
	uint32_t v;

	for (; size >= 6; data += 6, size -= 6) {
		struct rig_queue *q = data[0] & 1 ? &qa : &qb;

		memcpy(&v, data + 2, 4);
		if (data[0] & 2)
			v = data[2];
		if (data[0] & 4)
			port_function_ops.bar_write(q->g->port,
						    DRACO_BAR_DOORBELL,
						    data[1] * 4ull, &v, 4);
		else
			atomic_store(rig_ctrl(q, where[data[1] % 6]), v);
	}
}

static bool settled(void)
{
	for (int i = 0; i < 20000; i++) {
		if (ctrl(&qa, 0xc0) == FABREX_QUEUE_ERROR ||
		    ctrl(&qa, 0x80) == qa.sq_tail)
			return true;
		nanosleep(&(struct timespec){ 0, 10000 }, NULL);
	}
	return false;
}

static void renew(struct rig_queue *q)
{
	if (rig_queue_destroy(q) || rig_queue_create(q))
		abort();
}

static void check_guards(void)
{
	static const unsigned char zero[GUARD];

	for (int g = 0; g < 2; g++) {
		for (int i = 0; i < 4; i++) {
			if (memcmp(rig_guest[g].mem + guards[i], zero, GUARD))
				abort();
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	start();
	push_all(&data, &size);
	rig_ring(&qa);
	if (!settled())
		abort();
	scribble(data, size);
	renew(&qa);
	renew(&qb);
	check_guards();
	return 0;
}
