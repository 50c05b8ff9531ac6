// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Runs the tests that registered themselves, starts ranks as processes, prints
 * TAP. Arguments select tests by name.
 */
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "core/core.h"
#include "world.h"

#define LIMIT_S	900	/* of what hangs */
#define SERVICE	"fabric:4242"

static struct test *first, **last = &first;
static char note[256];
static bool far;

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
	printf("# %s:%d: not true: %s (%lld, %lld); %s; last error: %s\n",
	       file, line, what, a, b, note, fabrex_strerror_last());
	fflush(stdout);
	_exit(1);
}

struct fabrex_comm *world_comm(struct world *w, const char *algorithms)
{
	const struct fabrex_comm_attr attr = {
		.rank = w->rank, .size = w->size, .bootstrap = SERVICE,
		.algorithms = algorithms, .timeout_ms = 300000,
	};
	struct fabrex_comm *comm;

	CHECK_EQ(fabrex_comm_create(w->port, &attr, sizeof(attr), &comm), 0);
	return comm;
}

int world_call(struct fabrex_comm *comm, const struct fabrex_collective *c)
{
	switch (c->kind) {
	case FABREX_ALL_REDUCE:
		return fabrex_all_reduce(comm, c->send, c->recv, c->count,
					 c->type, c->op);
	case FABREX_ALL_GATHER:
		return fabrex_all_gather(comm, c->send, c->recv, c->count,
					 c->type);
	case FABREX_REDUCE_SCATTER:
		return fabrex_reduce_scatter(comm, c->send, c->recv, c->count,
					     c->type, c->op);
	case FABREX_BROADCAST:
		return fabrex_broadcast(comm, c->send, c->recv, c->count,
					c->type, c->root);
	case FABREX_REDUCE:
		return fabrex_reduce(comm, c->send, c->recv, c->count,
				     c->type, c->op, c->root);
	default:
		return fabrex_all_to_all(comm, c->send, c->recv, c->count,
					 c->type);
	}
}

/* The same fabric, as one whose windows are not ordinary memory. */
static void go_far(struct fabrex_port *port)
{
	static struct transport_ops ops;

	ops = *port->ops;
	ops.coherent = false;
	port->ops = &ops;
}

static void rank_main(struct world *w, void (*work)(struct world *world))
{
	char name[64];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(LIMIT_S);
	snprintf(name, sizeof(name), "loopback:test-%d", (int)getppid());
	CHECK_EQ(fabrex_open(name, &w->port), 0);
	if (far)
		go_far(w->port);
	w->comm = world_comm(w, NULL);
	work(w);
	fabrex_comm_destroy(w->comm);
	fabrex_close(w->port);
	exit(0);
}

static void end_all(pid_t *pids, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (pids[i] > 0)
			kill(pids[i], SIGKILL);
}

void world_run(uint32_t size, void (*work)(struct world *world),
	       const void *arg)
{
	pid_t pids[RANKS_MOST], pid;
	struct world w = { .size = size, .arg = arg };
	uint32_t i, left = size;
	bool bad = false;
	int status;

	fflush(stdout);
	for (i = 0; i < size; i++) {
		w.rank = i;
		pids[i] = fork();
		if (!pids[i])
			rank_main(&w, work);
		CHECK(pids[i] > 0);
	}
	while (left && (pid = wait(&status)) > 0) {
		for (i = 0; i < size; i++)
			if (pids[i] == pid)
				pids[i] = 0;
		left--;
		if (!WIFEXITED(status) || WEXITSTATUS(status)) {
			if (!bad && WIFSIGNALED(status))
				printf("# signal %d\n", WTERMSIG(status));
			bad = true;
			end_all(pids, size);
		}
	}
	if (bad)
		_exit(1);
}

void world_run_far(uint32_t size, void (*work)(struct world *world),
		   const void *arg)
{
	far = true;
	world_run(size, work, arg);
	far = false;
}

static bool run_one(const struct test *test)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		test->run();
		exit(0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid &&
	       WIFEXITED(status) && !WEXITSTATUS(status);
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
		struct timespec a, b;
		bool ok;

		if (!wanted(test, argc, argv))
			continue;
		clock_gettime(CLOCK_MONOTONIC, &a);
		ok = run_one(test);
		clock_gettime(CLOCK_MONOTONIC, &b);
		printf("%sok %d %s # %.1f s\n", ok ? "" : "not ", ++n,
		       test->name, (double)(b.tv_sec - a.tv_sec) +
		       (double)(b.tv_nsec - a.tv_nsec) / 1e9);
		failed += !ok;
	}
	printf("1..%d\n", n);
	return failed || !n;
}
