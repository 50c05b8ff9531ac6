// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Runs the tests that registered themselves, each in its own process with a
 * time limit, and prints TAP. Arguments select tests by name.
 */
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

static struct test *first, **last = &first;

void test_register(struct test *test)
{
	*last = test;
	last = &test->next;
}

void test_fail(const char *file, int line, const char *what, long long a,
	       long long b)
{
	printf("# %s:%d: not true: %s (%lld, %lld); last error: %s\n", file,
	       line, what, a, b, fabrex_strerror_last());
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
		alarm(HANG_S);
		test->run();
		if (fake_objects()) {
			printf("# %u objects left\n", fake_objects());
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
	return argc < 2;
}

int main(int argc, char **argv)
{
	int n = 0, failed = 0;
	struct test *test;

	for (test = first; test; test = test->next) {
		bool ok;

		if (!wanted(test, argc, argv))
			continue;
		ok = run_one(test);
		printf("%sok %d %s\n", ok ? "" : "not ", ++n, test->name);
		failed += !ok;
	}
	printf("1..%d\n", n);
	return failed || !n;
}

void pair_open(struct pair *p, const struct fabrex_queue_attr *attr)
{
	static const struct fabrex_queue_attr plain = {
		.sq_entries = 16, .rq_entries = 8, .cell_size = 256,
		.flags = FABREX_QUEUE_EVENTFD,
	};

	if (!attr)
		attr = &plain;
	CHECK_EQ(fabrex_open("a.0", &p->a), 0);
	CHECK_EQ(fabrex_open("b.0", &p->b), 0);
	CHECK_EQ(fabrex_mr_alloc(p->a, PAIR_SIZE, FABREX_MR_ALL, &p->ma), 0);
	CHECK_EQ(fabrex_mr_alloc(p->b, PAIR_SIZE, FABREX_MR_ALL, &p->mb), 0);
	CHECK_EQ(fabrex_queue_create(p->a, attr, sizeof(*attr), &p->qa), 0);
	CHECK_EQ(fabrex_queue_create(p->b, attr, sizeof(*attr), &p->qb), 0);
	fabrex_mr_remote(p->mb, &p->rb);
	p->pa = fabrex_mr_addr(p->ma);
	p->pb = fabrex_mr_addr(p->mb);
}

void pair_close(struct pair *p)
{
	fake_run();
	fabrex_close(p->a);
	fabrex_close(p->b);
}

void poll_n(struct fabrex_queue *queue, struct fabrex_wc *wc, int n)
{
	const struct timespec nap = { .tv_nsec = 20000 };
	int got = 0, ret;

	while (got < n) {
		ret = fabrex_poll(queue, wc + got, n - got);
		CHECK(ret >= 0);
		got += ret;
		nanosleep(&nap, NULL);
	}
}

int post_small(struct pair *p, uint8_t flags, uint64_t user_data)
{
	return fabrex_post_write(p->qa, p->ma, 0, &p->rb, 0, 8, flags,
				 user_data);
}
