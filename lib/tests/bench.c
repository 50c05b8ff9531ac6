// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * bench N [plain]: N times post a batch of 8 small writes and poll their
 * completions, with the device played in line so that only the library's own
 * work and a few stores are counted. bench-instructions runs it twice.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "internal.h"
#include "ring.h"
#include "test.h"

#define BATCH	8u

void test_register(struct test *test)
{
	(void)test;
}

/* What the device would write for entries first .. first + n - 1. */
static void answer(struct fabrex_queue *q, uint32_t first, uint32_t n)
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

static void round_trip(struct fabrex_queue *q, const struct fabrex_op *ops,
		       uint32_t first, bool library)
{
	struct fabrex_wc wc[BATCH];

	if (library && fabrex_post(q, ops, BATCH) != (int)BATCH)
		abort();
	answer(q, first, BATCH);
	if (library && fabrex_poll(q, wc, BATCH) != (int)BATCH)
		abort();
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	unsigned long i, n = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000;
	bool library = argc < 3;
	struct fabrex_op ops[BATCH];
	struct fabrex_queue *q;
	struct fabrex_port *port;
	struct fabrex_mr *mr;
	double start;

	if (fabrex_open("a.0", &port) ||
	    fabrex_mr_alloc(port, 4096, FABREX_MR_ALL, &mr) ||
	    fabrex_queue_create(port, NULL, 0, &q))
		return 1;
	fake_hold();
	q->ctrl->db_needed = 0;
	memset(ops, 0, sizeof(ops));
	for (i = 0; i < BATCH; i++) {
		ops[i].opcode = FABREX_OP_WRITE;
		ops[i].mr = mr;
		ops[i].rkey = fabrex_mr_key(mr);
		ops[i].length = 8;
	}
	start = seconds();
	for (i = 0; i < n; i++)
		round_trip(q, ops, (uint32_t)(i * BATCH), library);
	printf("%.1f ns for each operation\n",
	       (seconds() - start) * 1e9 / (double)(n * BATCH));
	fabrex_close(port);
	return 0;
}
