// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Runs the tests that registered themselves, each in its own process, and prints
 * TAP. Arguments select tests by name. For programs that link it: lib/tests and
 * lib/tests/collectives.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fabrex/fabrex.h>

#include "base/clock.h"
#include "harness.h"

static struct test *first, **last = &first;
static char note[256];

void test_register(struct test *test)
{
	*last = test;
	last = &test->next;
}

void test_note(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(note, sizeof(note), fmt, args);
	va_end(args);
}

void test_fail(const char *file, int line, const char *what, long long a,
	       long long b)
{
	printf("# %s:%d: not true: %s (%lld, %lld); %s%slast error: %s\n",
	       file, line, what, a, b, note, *note ? "; " : "",
	       fabrex_strerror_last());
	fflush(stdout);
	_exit(1);
}

static bool run_one(const struct test *test)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		alarm(test_limit_s);
		test->run();
		if (test_objects()) {
			printf("# %u objects left\n", test_objects());
			exit(1);
		}
		exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return false;
	if (WIFSIGNALED(status))
		printf("# %s: signal %d\n", test->name, WTERMSIG(status));
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static bool wanted(const struct test *test, int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		if (!strcmp(argv[i], test->name))
			return true;
	return argc < 2 && !test->named;
}

int main(int argc, char **argv)
{
	int n = 0, failed = 0;
	struct test *test;

	for (test = first; test; test = test->next) {
		uint64_t start = fxi_now_ns();
		bool ok;

		if (!wanted(test, argc, argv))
			continue;
		ok = run_one(test);
		printf("%sok %d %s # %.1f s\n", ok ? "" : "not ", ++n,
		       test->name, (double)(fxi_now_ns() - start) / 1e9);
		failed += !ok;
	}
	printf("1..%d\n", n);
	return failed || !n;
}
