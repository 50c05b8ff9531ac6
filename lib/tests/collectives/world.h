/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Collectives between real processes: ranks of a loopback fabric that only
 * they know. Tests register themselves; the program is its own, as those of
 * lib/tests run on a fake fabric.
 */
#ifndef LIB_TESTS_WORLD_H
#define LIB_TESTS_WORLD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <fabrex/coll.h>

#define RANKS	8u		/* that most tests go up to */
#define RANKS_MOST	16u

/* One rank. */
struct world {
	struct fabrex_port *port;
	struct fabrex_comm *comm;
	uint32_t rank, size;
	const void *arg;
};

struct test {
	const char *name;
	void (*run)(void);
	bool named;		/* only if it is asked for */
	struct test *next;
};

void test_register(struct test *test);
#define TEST(id)	TEST_(id, false)
/* What takes a GPU that is real: make check-cuda asks for it. */
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

/* Ends this process, and with it the test. */
void test_fail(const char *file, int line, const char *what, long long a,
	       long long b) __attribute__((noreturn));
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
#define CHECK_SAYS(text) \
	do { \
		if (!strstr(fabrex_strerror_last(), text)) \
			test_fail(__FILE__, __LINE__, "says " text, 0, 0); \
	} while (0)

/* What failures are reported with, besides the place. */
void test_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * @work in @size processes at once, with a communicator of all; returns when
 * all have ended well.
 */
void world_run(uint32_t size, void (*work)(struct world *world),
	       const void *arg);
/* Everything through queues, as with the kernel transport. */
void world_run_far(uint32_t size, void (*work)(struct world *world),
		   const void *arg);
/* Another communicator of all, which performs by that table. */
struct fabrex_comm *world_comm(struct world *world, const char *algorithms);

/* Perform it by its own function. */
int world_call(struct fabrex_comm *comm, const struct fabrex_collective *c);

/* ---- values.c ---------------------------------------------------------- */

/* What ranks put in: small whole numbers, or any. */
struct values {
	uint32_t type, op, seed;
	bool whole;
};

/* Elements from @first on, of what @rank sends. */
void values_fill(const struct values *v, uint32_t rank, uint64_t first,
		 uint64_t count, void *to);
/* The same elements of all ranks reduced, from rank 0 on. */
void values_reduce(const struct values *v, uint32_t ranks, uint64_t first,
		   uint64_t count, void *to);

/* How many times count. */
uint64_t send_parts(const struct world *w, uint32_t kind);
uint64_t recv_parts(const struct world *w, uint32_t kind);
/* What recv has to be afterwards, where there is a result. */
void values_expect(const struct world *w, const struct fabrex_collective *what,
		   const struct values *v, char *to);

static inline bool reduces(uint32_t kind)
{
	return kind == FABREX_ALL_REDUCE || kind == FABREX_REDUCE_SCATTER ||
	       kind == FABREX_REDUCE;
}

#endif
