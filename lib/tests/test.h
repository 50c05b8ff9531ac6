/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The harness, and pairs of ports (pair.c). For the tests of lib/tests. */
#ifndef LIB_TESTS_TEST_H
#define LIB_TESTS_TEST_H

#include "fake.h"
#include "harness.h"

/*
 * What ends a test that hangs, and nothing else: no test is to fail because a
 * machine is slow, or has much else to do.
 */
#define HANG_S	600
#define HANG_MS	300000

/* Two ports, a queue at each, regions of one page. */
struct pair {
	struct fabrex_port *a, *b;
	struct fabrex_queue *qa, *qb;
	struct fabrex_mr *ma, *mb;
	struct fabrex_remote rb;
	uint8_t *pa, *pb;
};

#define PAIR_SIZE	4096u

void pair_open(struct pair *p, const struct fabrex_queue_attr *attr);
void pair_close(struct pair *p);
/* Polls until n completions came. */
void poll_n(struct fabrex_queue *queue, struct fabrex_wc *wc, int n);
/* A write of 8 bytes from a to b. */
int post_small(struct pair *p, uint8_t flags, uint64_t user_data);
/* How many descriptors this process has. */
int open_files(void);

#endif
