/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A few lines of test harness: TEST() registers itself, CHECK() ends the test
 * with file and line, main() in main.c prints TAP.
 */
#ifndef LIB_TESTS_HARNESS_H
#define LIB_TESTS_HARNESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <fabrex/fabrex.h>

struct test {
	const char *name;
	void (*run)(void);
	bool named;		/* runs only if it is asked for */
	struct test *next;
};

/* Each program defines these: limit of a test (0: none), objects that are left. */
extern const unsigned int test_limit_s;
unsigned int test_objects(void);

void test_register(struct test *test);
/* Ends this process, and with it the test. */
void test_fail(const char *file, int line, const char *what, long long a,
	       long long b) __attribute__((noreturn));
/* What failures are reported with, besides the place. */
void test_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#define TEST(id)	TEST_(id, false)
#define TEST_NAMED(id)	TEST_(id, true)
#define TEST_(id, only) \
	static void id(void); \
	static struct test test_##id = { \
		.name = #id, .run = id, .named = only, \
	}; \
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
/* The last error message contains @text. */
#define CHECK_SAYS(text) \
	do { \
		if (!strstr(fabrex_strerror_last(), text)) \
			test_fail(__FILE__, __LINE__, "says " #text, 0, 0); \
	} while (0)

#endif
