/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tests of the driver's pure parts: TEST() registers itself, a file's main is
 * in tap.c and prints TAP. Included by every *_test.c here.
 */
#ifndef DRIVER_TESTS_TAP_H
#define DRIVER_TESTS_TAP_H

#include <stdbool.h>
#include <stdio.h>

struct tap_test {
	const char *name;
	void (*run)(void);
	struct tap_test *next;
};

void tap_register(struct tap_test *test);
void tap_check(bool ok, const char *file, int line, const char *what,
	       long long a, long long b);

#define TEST(id) \
	static void id(void); \
	static struct tap_test tap_##id = { .name = #id, .run = id }; \
	__attribute__((constructor)) static void tap_register_##id(void) \
	{ \
		tap_register(&tap_##id); \
	} \
	static void id(void)

#define CHECK(cond) \
	tap_check(!!(cond), __FILE__, __LINE__, #cond, !!(cond), 1)

#define CHECK_EQ(a, b) \
	do { \
		long long a_ = (a), b_ = (b); \
		tap_check(a_ == b_, __FILE__, __LINE__, #a " == " #b, a_, b_); \
	} while (0)

#endif
