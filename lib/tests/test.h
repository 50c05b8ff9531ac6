/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A few lines of test harness: TEST() registers itself, CHECK() ends the test
 * with file and line, main() in main.c prints TAP.
 */
#ifndef LIB_TESTS_TEST_H
#define LIB_TESTS_TEST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <fabrex/fabrex.h>

#include "fake.h"

/*
 * What ends a test that hangs, and nothing else: no test is to fail because a
 * machine is slow, or has much else to do.
 */
#define HANG_S	600
#define HANG_MS	300000

struct test {
	const char *name;
	void (*run)(void);
	struct test *next;
};

void test_register(struct test *test);
/* Does not return. */
void test_fail(const char *file, int line, const char *what, long long a,
	       long long b) __attribute__((noreturn));

#define TEST(id) \
	static void id(void); \
	static struct test test_##id = { .name = #id, .run = id }; \
	__attribute__((constructor)) static void register_##id(void) \
	{ \
		test_register(&test_##id); \
	} \
	static void id(void)

#define CHECK(cond) \
	do { \
		if (!(cond)) \
			test_fail(__FILE__, __LINE__, #cond, 0, 0); \
	} while (0)
#define CHECK_EQ(x, y) \
	do { \
		long long x_ = (long long)(x), y_ = (long long)(y); \
		if (x_ != y_) \
			test_fail(__FILE__, __LINE__, #x " == " #y, x_, y_); \
	} while (0)
/* The sentence must name these. */
#define CHECK_SAYS(text) \
	do { \
		if (!strstr(fabrex_strerror_last(), text)) { \
			printf("# sentence: %s\n", fabrex_strerror_last()); \
			test_fail(__FILE__, __LINE__, "says " #text, 0, 0); \
		} \
	} while (0)

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

#endif
