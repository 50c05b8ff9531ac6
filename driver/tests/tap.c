// SPDX-License-Identifier: GPL-2.0-only
/*
 * main() of the tests: runs all that have registered, prints TAP. A check that
 * fails does not end its test.
 */
#include "tap.h"

static struct tap_test *tests, **last = &tests;
static bool failed;

void tap_register(struct tap_test *test)
{
	*last = test;
	last = &test->next;
}

void tap_check(bool ok, const char *file, int line, const char *what,
	       long long a, long long b)
{
	if (ok)
		return;
	failed = true;
	printf("# %s:%d: %s: %lld, %lld\n", file, line, what, a, b);
}

int main(void)
{
	struct tap_test *test;
	int n = 0, bad = 0;

	printf("TAP version 13\n");
	for (test = tests; test; test = test->next)
		n++;
	printf("1..%d\n", n);
	n = 0;
	for (test = tests; test; test = test->next) {
		failed = false;
		test->run();
		printf("%sok %d %s\n", failed ? "not " : "", ++n, test->name);
		bad += failed;
	}
	return bad ? 1 : 0;
}
