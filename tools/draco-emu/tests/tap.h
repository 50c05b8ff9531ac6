/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tests in TAP: a table of functions, each of which fails at its first check
 * that does not hold. That is also the end of the program, as whatever the test
 * has started still runs. Included by one file of each test program.
 */
#ifndef EMU_TAP_H
#define EMU_TAP_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct tap_test {
	const char *name;
	void (*fn)(void);
};

static bool tap_failed;

#define CHECK(cond) do {						\
	if (!(cond)) {							\
		printf("# %s:%d: %s\n", __FILE__, __LINE__, #cond);	\
		tap_failed = true;					\
		return;							\
	}								\
} while (0)

#define CHECK_EQ(a, b) do {						\
	long long a_ = (long long)(a), b_ = (long long)(b);		\
									\
	if (a_ != b_) {							\
		printf("# %s:%d: %s is %lld, not %s (%lld)\n",		\
		       __FILE__, __LINE__, #a, a_, #b, b_);		\
		tap_failed = true;					\
		return;							\
	}								\
} while (0)

/* Exit code for main(). @only (may be NULL) picks one test. */
static inline int tap_run(const struct tap_test *t, unsigned int n,
			  const char *only)
{
	unsigned int i;

	printf("TAP version 13\n1..%u\n", n);
	for (i = 0; i < n; i++) {
		if (only && strcmp(only, t[i].name)) {
			printf("ok %u %s # SKIP\n", i + 1, t[i].name);
			continue;
		}
		tap_failed = false;
		t[i].fn();
		printf("%sok %u %s\n", tap_failed ? "not " : "", i + 1,
		       t[i].name);
		if (tap_failed)
			printf("Bail out! %s has left its threads behind\n",
			       t[i].name);
		fflush(stdout);
		if (tap_failed)
			_exit(1);
	}
	return 0;
}

#endif
