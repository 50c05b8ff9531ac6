// SPDX-License-Identifier: GPL-2.0-only
/*
 * Operations that are refused: every status, in the order of the checks, and
 * no byte of any memory has changed.
 */
#include <string.h>

#include "rig/pair.h"
#include "tap.h"

static void test_bad_entries(void)
{
	struct fabrex_sqe s;

	BEGIN();
	REFUSE(0x07, , FABREX_WC_BAD_OPCODE);
	REFUSE(0x80, , FABREX_WC_BAD_OPCODE);
	REFUSE(0xff, s.flags = 0xfe, FABREX_WC_BAD_OPCODE);
	REFUSE(FABREX_OP_WRITE, s.flags = 0x10, FABREX_WC_BAD_DESC);
	REFUSE(FABREX_OP_WRITE, s.flags = FABREX_SQE_INLINE,
	       FABREX_WC_BAD_DESC);
	REFUSE(FABREX_OP_WRITE, s.imm = 1, FABREX_WC_BAD_DESC);
	REFUSE(FABREX_OP_READ, s.dest_key = 1, FABREX_WC_BAD_DESC);
	REFUSE(FABREX_OP_READ, s.dest_key = 1ull << 63, FABREX_WC_BAD_DESC);
	REFUSE(FABREX_OP_WRITE, s.length = PORT_MAX_TRANSFER + 1,
	       FABREX_WC_BAD_DESC);
	REFUSE(FABREX_OP_NOP, , FABREX_WC_BAD_DESC);
	REFUSE(FABREX_OP_SEND, s.rkey = 1, FABREX_WC_BAD_DESC);
	REFUSE(FABREX_OP_SEND, s.roffset = 1, FABREX_WC_BAD_DESC);
	REFUSE(FABREX_OP_SEND, s.flags = FABREX_SQE_CHECK, FABREX_WC_BAD_DESC);
	REFUSE(FABREX_OP_SEND, (s.flags = FABREX_SQE_INLINE, s.length = 25),
	       FABREX_WC_BAD_DESC);
	REFUSE(FABREX_OP_FETCH_ADD, s.roffset = 4, FABREX_WC_BAD_DESC);
	REFUSE(FABREX_OP_FETCH_ADD, s.compare = 4, FABREX_WC_BAD_DESC);
	REFUSE(FABREX_OP_FETCH_ADD, s.flags = FABREX_SQE_CHECK,
	       FABREX_WC_BAD_DESC);
	END();
}

static void test_local_refusals(void)
{
	struct fabrex_sqe s;
	uint64_t other, readonly;

	BEGIN();
	other = rig_mr(A, SRC, 4096, RIG_ALL, PD + 1, NULL);
	readonly = rig_mr(A, SRC, 4096, DRACO_ACCESS_REMOTE_READ, PD, NULL);
	REFUSE(FABREX_OP_WRITE, s.lkey = 0, FABREX_WC_LKEY);
	REFUSE(FABREX_OP_WRITE, s.lkey = ~0ull, FABREX_WC_LKEY);
	REFUSE(FABREX_OP_WRITE, s.lkey ^= 1ull << 63, FABREX_WC_LKEY);
	REFUSE(FABREX_OP_WRITE, s.lkey = rkey ^ 1, FABREX_WC_LKEY);
	REFUSE(FABREX_OP_SEND, s.lkey = 5, FABREX_WC_LKEY);
	/* Another process's region. */
	REFUSE(FABREX_OP_WRITE, s.lkey = other, FABREX_WC_LKEY);
	REFUSE(FABREX_OP_WRITE, s.loffset = LEN - 4095, FABREX_WC_LBOUNDS);
	REFUSE(FABREX_OP_WRITE, s.loffset = ~0ull - 100, FABREX_WC_LBOUNDS);
	REFUSE(FABREX_OP_WRITE, s.length = LEN + 1, FABREX_WC_LBOUNDS);
	REFUSE(FABREX_OP_SEND, s.loffset = LEN, FABREX_WC_LBOUNDS);
	REFUSE(FABREX_OP_CMP_SWAP, s.loffset = LEN - 7, FABREX_WC_LBOUNDS);
	REFUSE(FABREX_OP_READ, s.lkey = readonly, FABREX_WC_LACCESS);
	REFUSE(FABREX_OP_FETCH_ADD, s.lkey = readonly, FABREX_WC_LACCESS);
	s = entry(FABREX_OP_WRITE);
	s.lkey = readonly;
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	END();
}

static uint64_t with_access(uint32_t access)
{
	return rig_mr(B, DST, 8192, access, PD, NULL);
}

static void test_remote_refusals(void)
{
	uint64_t ro, wo, none;
	struct fabrex_sqe s;

	BEGIN();
	ro = with_access(DRACO_ACCESS_REMOTE_READ);
	wo = with_access(DRACO_ACCESS_REMOTE_WRITE);
	none = with_access(DRACO_ACCESS_LOCAL_WRITE);
	REFUSE(FABREX_OP_WRITE, s.peer = 77, FABREX_WC_UNREACHABLE);
	REFUSE(FABREX_OP_WRITE, s.peer = 0xffff, FABREX_WC_UNREACHABLE);
	REFUSE(FABREX_OP_WRITE, s.peer = 3, FABREX_WC_UNREACHABLE);
	REFUSE(FABREX_OP_WRITE, s.peer = 2, FABREX_WC_RKEY);
	REFUSE(FABREX_OP_WRITE, s.rkey = 0, FABREX_WC_RKEY);
	REFUSE(FABREX_OP_READ, s.rkey ^= 1ull << 30, FABREX_WC_RKEY);
	REFUSE(FABREX_OP_WRITE, s.roffset = LEN, FABREX_WC_RBOUNDS);
	REFUSE(FABREX_OP_READ, s.roffset = ~0ull, FABREX_WC_RBOUNDS);
	REFUSE(FABREX_OP_WRITE_IMM, s.roffset = LEN, FABREX_WC_RBOUNDS);
	REFUSE(FABREX_OP_FETCH_ADD, s.roffset = LEN, FABREX_WC_RBOUNDS);
	REFUSE(FABREX_OP_WRITE, s.rkey = ro, FABREX_WC_RACCESS);
	REFUSE(FABREX_OP_WRITE_IMM, s.rkey = ro, FABREX_WC_RACCESS);
	REFUSE(FABREX_OP_READ, s.rkey = wo, FABREX_WC_RACCESS);
	REFUSE(FABREX_OP_FETCH_ADD, s.rkey = wo, FABREX_WC_RACCESS);
	REFUSE(FABREX_OP_CMP_SWAP, s.rkey = none, FABREX_WC_RACCESS);
	END();
}

static void test_closed_to_peer(void)
{
	struct draco_mr_create *m;
	struct draco_acpl cpl;
	struct fabrex_sqe s;
	uint64_t *pages;

	BEGIN();
	m = rig_data(B);
	*m = (struct draco_mr_create){
		.pd = PD, .access = RIG_ALL, .length = 4096, .page_shift = 12,
		.npages = 1, .peers = { 1 << 2 },
	};
	CHECK_EQ(rig_admin(B, rig_cmd(DRACO_ADM_MR_CREATE, 0, sizeof(*m)),
			   &cpl), 0);
	/* Not valid until it has its page. */
	REFUSE(FABREX_OP_WRITE, s.rkey = cpl.result, FABREX_WC_RKEY);
	pages = rig_data(B);
	pages[0] = DST;
	CHECK_EQ(rig_admin(B, rig_cmd(DRACO_ADM_MR_PAGES, cpl.id, 8), NULL),
		 0);
	REFUSE(FABREX_OP_WRITE, s.rkey = cpl.result, FABREX_WC_RPEER);
	REFUSE(FABREX_OP_FETCH_ADD, s.rkey = cpl.result, FABREX_WC_RPEER);
	END();
}

static void test_odd_word(void)
{
	struct fabrex_sqe s;
	uint64_t odd;

	BEGIN();
	odd = rig_mr(B, DST + 4, 4096, RIG_ALL, PD, NULL);
	REFUSE(FABREX_OP_FETCH_ADD, s.rkey = odd, FABREX_WC_BAD_DESC);
	END();
}

static void test_target_queue_refusals(void)
{
	struct fabrex_sqe s;
	struct rig_queue deaf;

	BEGIN();
	rig_queue_init(&deaf, B, PD);
	deaf.rq_entries = deaf.cell = 0;
	CHECK_EQ(rig_queue_create(&deaf), 0);
	for (unsigned int bit = 0; bit < 64; bit++)
		REFUSE(FABREX_OP_SEND, s.dest_key ^= 1ull << bit,
		       FABREX_WC_BAD_QUEUE);
	REFUSE(FABREX_OP_SEND, s.dest_key = qb.number, FABREX_WC_BAD_QUEUE);
	REFUSE(FABREX_OP_SEND, s.dest_key = ~0ull, FABREX_WC_BAD_QUEUE);
	REFUSE(FABREX_OP_SEND, s.dest_key = deaf.key, FABREX_WC_BAD_QUEUE);
	REFUSE(FABREX_OP_WRITE_IMM, s.dest_key ^= 1ull << 63,
	       FABREX_WC_BAD_QUEUE);
	REFUSE(FABREX_OP_SEND, s.length = 257, FABREX_WC_TOO_LONG);
	CHECK_EQ(rig_queue_destroy(&qb), 0);
	REFUSE(FABREX_OP_SEND, , FABREX_WC_BAD_QUEUE);
	END();
}

/* Regions whose pages are not in the DMA map. */
static void test_memory_faults(void)
{
	uint64_t nowhere_l, nowhere_r;
	struct fabrex_sqe s;

	BEGIN();
	nowhere_l = rig_mr(A, RIG_MEM + 0x1000, 8192, RIG_ALL, PD, NULL);
	nowhere_r = rig_mr(B, RIG_MEM + 0x1000, 8192, RIG_ALL, PD, NULL);
	REFUSE(FABREX_OP_WRITE, s.lkey = nowhere_l, FABREX_WC_LFAULT);
	REFUSE(FABREX_OP_WRITE, s.rkey = nowhere_r, FABREX_WC_RFAULT);
	REFUSE(FABREX_OP_READ, s.lkey = nowhere_l, FABREX_WC_LFAULT);
	REFUSE(FABREX_OP_READ, s.rkey = nowhere_r, FABREX_WC_RFAULT);
	REFUSE(FABREX_OP_SEND, s.lkey = nowhere_l, FABREX_WC_LFAULT);
	REFUSE(FABREX_OP_FETCH_ADD, s.rkey = nowhere_r, FABREX_WC_RFAULT);
	END();
}

static void test_stale_keys(void)
{
	struct fabrex_sqe s;

	BEGIN();
	CHECK_EQ(rig_admin(B, rig_cmd(DRACO_ADM_MR_INVALIDATE, rmr, 0),
			   NULL), 0);
	REFUSE(FABREX_OP_WRITE, , FABREX_WC_RKEY);
	CHECK_EQ(rig_admin(B, rig_cmd(DRACO_ADM_MR_DESTROY, rmr, 0), NULL),
		 0);
	/* The same index, another key. */
	CHECK(rig_mr(B, DST, LEN, RIG_ALL, PD, NULL) != rkey);
	REFUSE(FABREX_OP_WRITE, , FABREX_WC_RKEY);
	rkey = rig_mr(B, DST, LEN, RIG_ALL, PD, NULL);
	CHECK(rig_disable(B));
	REFUSE(FABREX_OP_WRITE, , FABREX_WC_UNREACHABLE);
	CHECK(rig_enable(B));
	REFUSE(FABREX_OP_WRITE, , FABREX_WC_RKEY);
	END();
}

#define T(n) { #n, test_ ## n }

static const struct tap_test tests[] = {
	T(bad_entries), T(local_refusals), T(remote_refusals),
	T(closed_to_peer), T(odd_word), T(target_queue_refusals),
	T(memory_faults), T(stale_keys),
};

int main(int argc, char **argv)
{
	return tap_run(tests, sizeof(tests) / sizeof(tests[0]),
		       argc > 1 ? argv[1] : NULL);
}
