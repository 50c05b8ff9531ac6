// SPDX-License-Identifier: GPL-2.0-only
/*
 * The DMA engine through rings: every operation, fences, check sums, atomics,
 * injected faults, several queues at once.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "rig/pair.h"
#include "tap.h"

static void test_crc32c(void)
{
	unsigned char buf[40000];
	uint32_t crc = 0;

	CHECK_EQ(fxi_crc32c(0, "123456789", 9), 0xe3069283u);
	CHECK_EQ(fxi_crc32c_table(0, "123456789", 9), 0xe3069283u);
	CHECK_EQ(fxi_crc32c(0, "", 0), 0);
	for (size_t i = 0; i < sizeof(buf); i++)
		buf[i] = (unsigned char)(i * i >> 3);
	CHECK_EQ(fxi_crc32c(0, buf, sizeof(buf)),
		 fxi_crc32c_table(0, buf, sizeof(buf)));
	for (size_t i = 0; i < sizeof(buf); i += 1000)
		crc = fxi_crc32c(crc, buf + i, 1000);
	CHECK_EQ(crc, fxi_crc32c_table(0, buf, sizeof(buf)));
}

static void test_write_and_read(void)
{
	struct fabrex_sqe s;
	struct fabrex_cqe c;

	BEGIN();
	s = entry(FABREX_OP_WRITE);
	s.loffset = 3;
	s.roffset = 5001;
	s.length = 20000;
	CHECK_EQ(rig_do(&qa, &s, &c), FABREX_WC_OK);
	CHECK_EQ(c.user_data, 0xfeed);
	CHECK_EQ(c.length, 20000);
	CHECK_EQ(c.peer, 1);
	CHECK_EQ(c.index, 0);
	CHECK_EQ(c.opcode, FABREX_OP_WRITE);
	CHECK(!memcmp(A->mem + SRC + 3, B->mem + DST + 5001, 20000));
	fill(B, DST, LEN, 55);
	s = entry(FABREX_OP_READ);
	s.roffset = 17;
	s.loffset = 9000;
	s.length = 30000;
	CHECK_EQ(rig_do(&qa, &s, &c), FABREX_WC_OK);
	CHECK_EQ(c.index, 1);
	CHECK(!memcmp(A->mem + SRC + 9000, B->mem + DST + 17, 30000));
	CHECK_EQ(count_get(&A->port->counters, CNT_TX_BYTES), 20000);
	CHECK_EQ(count_get(&A->port->counters, CNT_RX_BYTES), 30000);
	CHECK_EQ(count_get(&A->port->counters, CNT_HOST_BYTES), 50000);
	END();
}

static void test_zero_length_and_nop(void)
{
	struct fabrex_sqe s;

	BEGIN();
	s = entry(FABREX_OP_WRITE);
	s.length = 0;
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	s.rkey ^= 1ull << 40;
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_RKEY);
	memset(&s, 0, sizeof(s));
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	END();
}

static void test_large_and_loopback(void)
{
	uint64_t big = 8u << 20, key, from = 0x1000000, to = 0x1800000;
	struct fabrex_sqe s;
	struct fabrex_cqe c;

	BEGIN();
	fill(A, from, big, 3);
	key = rig_mr(A, from, 2 * big, RIG_ALL, PD, NULL);
	s = entry(FABREX_OP_WRITE);
	s.peer = 0;
	s.lkey = s.rkey = key;
	s.roffset = to - from;
	s.length = big;
	s.flags = FABREX_SQE_CHECK;
	CHECK_EQ(rig_do(&qa, &s, &c), FABREX_WC_OK);
	CHECK_EQ(c.length, big);
	CHECK(!memcmp(A->mem + from, A->mem + to, big));
	CHECK_EQ(c.crc, fxi_crc32c_table(0, A->mem + from, big));
	END();
}

/* Pages in no order, as a process's memory is. */
static void test_scattered_pages(void)
{
	struct draco_mr_create *m;
	struct draco_acpl cpl;
	uint64_t *pages;
	struct fabrex_sqe s;

	BEGIN();
	m = rig_data(B);
	memset(m, 0, sizeof(*m));
	*m = (struct draco_mr_create){
		.pd = PD, .access = RIG_ALL, .length = 16 * 4096 - 100,
		.first = 100, .page_shift = 12, .npages = 16,
		.peers = { ~0ull },
	};
	CHECK_EQ(rig_admin(B, rig_cmd(DRACO_ADM_MR_CREATE, 0, sizeof(*m)),
			   &cpl), 0);
	pages = rig_data(B);
	for (unsigned int i = 0; i < 16; i++)
		pages[i] = DST + (i * 7 % 16) * 4096;
	CHECK_EQ(rig_admin(B, rig_cmd(DRACO_ADM_MR_PAGES, cpl.id, 128), NULL),
		 0);
	s = entry(FABREX_OP_WRITE);
	s.rkey = cpl.result;
	s.length = 16 * 4096 - 100;
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	for (unsigned int o = 0; o < s.length; o++) {
		unsigned int page = (100 + o) / 4096;
		uint64_t at = DST + (page * 7 % 16) * 4096 + (100 + o) % 4096;

		CHECK_EQ(B->mem[at], A->mem[SRC + o]);
	}
	END();
}

static void test_write_imm(void)
{
	struct fabrex_sqe s;
	struct fabrex_cqe c;

	BEGIN();
	s = entry(FABREX_OP_WRITE_IMM);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	CHECK(rig_poll(&qb, &c, RIG_HUNG));
	CHECK_EQ(c.opcode, FABREX_OP_RECV_IMM);
	CHECK_EQ(c.imm, 0xabcd);
	CHECK_EQ(c.length, 4096);
	CHECK_EQ(c.peer, 0);
	CHECK_EQ(c.src_queue, qa.number);
	CHECK_EQ(c.index, 0);
	CHECK(!memcmp(A->mem + SRC, B->mem + DST, 4096));
	END();
}

static void test_send(void)
{
	struct fabrex_sqe s;
	struct fabrex_cqe c;

	BEGIN();
	s = entry(FABREX_OP_SEND);
	s.loffset = 11;
	CHECK_EQ(rig_do(&qa, &s, &c), FABREX_WC_OK);
	CHECK_EQ(c.length, 100);
	CHECK(rig_poll(&qb, &c, RIG_HUNG));
	CHECK_EQ(c.opcode, FABREX_OP_RECV);
	CHECK_EQ(c.length, 100);
	CHECK(!memcmp(B->mem + qb.rq, A->mem + SRC + 11, 100));
	memset(&s.inline_data, 0x5a, 24);
	s.flags = FABREX_SQE_INLINE;
	s.length = 24;
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	CHECK(rig_poll(&qb, &c, RIG_HUNG));
	CHECK_EQ(c.index, 1);
	CHECK_EQ(c.length, 24);
	CHECK(!memcmp(B->mem + qb.rq + 256, s.inline_data, 24));
	END();
}

static void test_receiver_not_ready(void)
{
	struct fabrex_sqe s;
	struct fabrex_cqe c;

	BEGIN();
	s = entry(FABREX_OP_SEND);
	for (unsigned int i = 0; i < 16; i++)
		CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_RNR);
	s = entry(FABREX_OP_WRITE_IMM);
	fill(B, DST, LEN, 99);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_RNR);
	CHECK_EQ(B->mem[DST], 99);
	for (unsigned int i = 0; i < 16; i++)
		CHECK(rig_poll(&qb, &c, RIG_HUNG));
	atomic_store(rig_ctrl(&qb, offsetof(struct fabrex_qctrl, rq_head)), 1);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_RNR);
	/* A nonsense head gives no cell away. */
	atomic_store(rig_ctrl(&qb, offsetof(struct fabrex_qctrl, rq_head)),
		     1000);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_RNR);
	END();
}

static void test_atomics(void)
{
	uint64_t v = 40;
	struct fabrex_sqe s;
	struct fabrex_cqe c;

	BEGIN();
	memcpy(B->mem + DST + 64, &v, 8);
	s = entry(FABREX_OP_FETCH_ADD);
	s.roffset = 64;
	s.operand = 2;
	CHECK_EQ(rig_do(&qa, &s, &c), FABREX_WC_OK);
	CHECK_EQ(c.length, 8);
	CHECK_EQ(word(A, SRC), 40);
	CHECK_EQ(word(B, DST + 64), 42);
	s = entry(FABREX_OP_CMP_SWAP);
	s.roffset = 64;
	s.operand = 7;
	s.compare = 41;
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	CHECK_EQ(word(A, SRC), 42);
	CHECK_EQ(word(B, DST + 64), 42);
	s.compare = 42;
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	CHECK_EQ(word(B, DST + 64), 7);
	/* The old value may go to an odd place. */
	s.loffset = 4093;
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	memcpy(&v, A->mem + SRC + 4093, 8);
	CHECK_EQ(v, 7);
	END();
}

#define ADDS	2000u

static void *add_from_cpu(void *arg)
{
	for (unsigned int i = 0; i < ADDS; i++)
		__atomic_fetch_add((uint64_t *)arg, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void *add_from_queue(void *arg)
{
	struct rig_queue *q = arg;
	struct fabrex_sqe s = entry(FABREX_OP_FETCH_ADD);
	struct fabrex_cqe c;

	s.operand = 1;
	if (q->g == C)
		s.lkey = rig_mr(C, SRC, 4096, RIG_ALL, PD, NULL);
	for (unsigned int i = 0; i < ADDS; i++) {
		s.flags = i + 1 < ADDS && i % 32 != 31 ? FABREX_SQE_QUIET : 0;
		rig_push(q, &s);
		if (s.flags)
			continue;
		rig_ring(q);
		if (!rig_poll(q, &c, RIG_HUNG) || c.status)
			return arg;
	}
	return NULL;
}

static void test_atomics_together(void)
{
	pthread_t t[3];
	struct rig_queue qc;
	void *bad = NULL, *ret;

	BEGIN();
	memset(B->mem + DST, 0, 8);
	rig_queue_init(&qc, C, PD);
	CHECK_EQ(rig_queue_create(&qc), 0);
	pthread_create(&t[0], NULL, add_from_cpu, B->mem + DST);
	pthread_create(&t[1], NULL, add_from_queue, &qa);
	pthread_create(&t[2], NULL, add_from_queue, &qc);
	for (int i = 0; i < 3; i++) {
		pthread_join(t[i], &ret);
		bad = ret ? ret : bad;
	}
	CHECK(!bad);
	CHECK_EQ(word(B, DST), 3 * ADDS);
	END();
}

/* ---- Fence, quiet, check ---- */

static void test_fence(void)
{
	struct fabrex_sqe s;

	BEGIN();
	s = entry(FABREX_OP_WRITE);
	s.flags = FABREX_SQE_FENCE;
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	s.flags = 0;
	s.rkey = 0;
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_RKEY);
	s = entry(FABREX_OP_WRITE);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	s.flags = FABREX_SQE_FENCE;
	fill(B, DST, LEN, 77);
	CHECK_EQ(refused(&s), FABREX_WC_FENCED);
	/* Told once. */
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	END();
}

static void test_quiet(void)
{
	struct fabrex_sqe s;
	struct fabrex_cqe c;

	BEGIN();
	s = entry(FABREX_OP_WRITE);
	s.flags = FABREX_SQE_QUIET;
	rig_push(&qa, &s);
	rig_push(&qa, &s);
	s.rkey = 0;
	s.user_data = 5;
	rig_push(&qa, &s);
	s = entry(FABREX_OP_WRITE);
	rig_push(&qa, &s);
	rig_ring(&qa);
	CHECK(rig_poll(&qa, &c, RIG_HUNG));
	CHECK_EQ(c.status, FABREX_WC_RKEY);
	CHECK_EQ(c.user_data, 5);
	CHECK_EQ(c.index, 2);
	CHECK(rig_poll(&qa, &c, RIG_HUNG));
	CHECK_EQ(c.index, 3);
	CHECK(!rig_poll(&qa, &c, 5));
	for (int i = 0; i < RIG_HUNG && atomic_load(rig_ctrl(&qa, 0x80)) != 4; i++)
		usleep(1000);
	CHECK_EQ(atomic_load(rig_ctrl(&qa, 0x80)), 4);
	END();
}

static void test_check_and_corruption(void)
{
	struct fabrex_sqe s;
	struct fabrex_cqe c;

	BEGIN();
	s = entry(FABREX_OP_WRITE);
	s.flags = FABREX_SQE_CHECK;
	CHECK_EQ(rig_do(&qa, &s, &c), FABREX_WC_OK);
	CHECK_EQ(c.crc, fxi_crc32c_table(0, A->mem + SRC, 4096));
	fault_arm(&A->port->faults, DRACO_FAULT_CORRUPT_PAYLOAD,
		  FAULT_ANY_QUEUE, 1);
	CHECK_EQ(rig_do(&qa, &s, &c), FABREX_WC_DATA);
	CHECK_EQ(c.crc, fxi_crc32c_table(0, A->mem + SRC, 4096));
	CHECK_EQ(count_get(&A->port->counters, CNT_CRC_ERRORS), 1);
	CHECK_EQ(rig_do(&qa, &s, &c), FABREX_WC_OK);
	/* Without CHECK it is silent. */
	fault_arm(&A->port->faults, DRACO_FAULT_CORRUPT_PAYLOAD, qa.number, 1);
	s.flags = 0;
	CHECK_EQ(rig_do(&qa, &s, &c), FABREX_WC_OK);
	CHECK(memcmp(A->mem + SRC, B->mem + DST, 4096));
	END();
}

static void test_injected_completions(void)
{
	struct fabrex_sqe s;
	struct fabrex_cqe c;

	BEGIN();
	s = entry(FABREX_OP_WRITE);
	fault_arm(&A->port->faults, DRACO_FAULT_STUCK_COMPLETION, qa.number, 1);
	rig_push(&qa, &s);
	rig_ring(&qa);
	CHECK(!rig_poll(&qa, &c, 50));
	CHECK_EQ(rig_do(&qa, &s, &c), FABREX_WC_OK);
	CHECK_EQ(c.index, 1);
	fault_arm(&A->port->faults, DRACO_FAULT_CORRUPT_COMPLETION,
		  FAULT_ANY_QUEUE, 1);
	CHECK(rig_do(&qa, &s, &c) != FABREX_WC_OK);
	CHECK(c.user_data != 0xfeed);
	END();
}

/* The next queue of that number did nothing to deserve it. */
static void test_fault_ends_with_its_queue(void)
{
	struct faults *f;
	struct fabrex_sqe s;
	uint32_t number;

	BEGIN();
	f = &A->port->faults;
	number = qa.number;
	s = entry(FABREX_OP_WRITE);
	s.flags = FABREX_SQE_CHECK;
	fault_arm(f, DRACO_FAULT_CORRUPT_PAYLOAD, number, 2);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_DATA);
	CHECK_EQ(fault_taken(f, DRACO_FAULT_CORRUPT_PAYLOAD), 1);
	CHECK_EQ(rig_queue_destroy(&qa), 0);
	CHECK_EQ(rig_queue_create(&qa), 0);
	CHECK_EQ(qa.number, number);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	CHECK_EQ(fault_taken(f, DRACO_FAULT_CORRUPT_PAYLOAD), 1);
	END();
}

/* ---- Slow links and two queues at once ---- */

static void test_slow_link(void)
{
	uint64_t start, ns;
	struct fabrex_sqe s;

	BEGIN();
	fabric_link_slow(&rig_fabric, A->port->link, 1000000);
	s = entry(FABREX_OP_WRITE);
	s.length = LEN;
	start = engine_now_ns();
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	CHECK_EQ(rig_do(&qa, &s, NULL), FABREX_WC_OK);
	ns = engine_now_ns() - start;
	CHECK(ns > 100000000 && ns < 2000000000);
	CHECK(!memcmp(A->mem + SRC, B->mem + DST, LEN));
	END();
}

static void test_dropped_doorbell(void)
{
	struct fabrex_sqe s;
	struct fabrex_cqe c;

	BEGIN();
	fault_arm(&A->port->faults, DRACO_FAULT_DROP_DOORBELL, FAULT_ANY_QUEUE,
		  1);
	s = entry(FABREX_OP_WRITE);
	rig_push(&qa, &s);
	rig_ring(&qa);
	CHECK(!rig_poll(&qa, &c, 50));
	rig_ring(&qa);
	CHECK(rig_poll(&qa, &c, RIG_HUNG));
	CHECK_EQ(c.status, FABREX_WC_OK);
	END();
}

#define MANY	20000u

static void *send_many(void *arg)
{
	struct rig_queue *q = arg;
	struct fabrex_sqe s = entry(FABREX_OP_WRITE);
	struct fabrex_cqe c;
	unsigned int sent = 0, got = 0;

	s.length = 64;
	if (q->g == C) {
		s.lkey = rig_mr(C, SRC, 4096, RIG_ALL, PD, NULL);
		s.roffset = 4096;
	}
	while (got < MANY) {
		while (sent < MANY && sent - got < 32) {
			s.user_data = sent++;
			rig_push(q, &s);
		}
		rig_ring(q);
		if (!rig_poll(q, &c, RIG_HUNG) || c.status || c.user_data != got)
			return arg;
		got++;
	}
	return NULL;
}

static void test_many_from_two(void)
{
	struct rig_queue qc;
	void *bad[2];
	pthread_t t[2];

	BEGIN();
	rig_queue_init(&qc, C, PD);
	CHECK_EQ(rig_queue_create(&qc), 0);
	pthread_create(&t[0], NULL, send_many, &qa);
	pthread_create(&t[1], NULL, send_many, &qc);
	pthread_join(t[0], &bad[0]);
	pthread_join(t[1], &bad[1]);
	CHECK(!bad[0] && !bad[1]);
	CHECK(count_get(&A->port->counters, CNT_DOORBELLS) < MANY);
	END();
}

#define T(n) { #n, test_ ## n }

static const struct tap_test tests[] = {
	T(crc32c), T(write_and_read), T(zero_length_and_nop),
	T(large_and_loopback), T(scattered_pages), T(write_imm), T(send),
	T(receiver_not_ready), T(atomics), T(atomics_together), T(fence),
	T(quiet), T(check_and_corruption), T(injected_completions),
	T(fault_ends_with_its_queue),
	T(slow_link), T(dropped_doorbell), T(many_from_two),
};

int main(int argc, char **argv)
{
	return tap_run(tests, sizeof(tests) / sizeof(tests[0]),
		       argc > 1 ? argv[1] : NULL);
}
