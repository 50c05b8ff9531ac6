// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs fabrex-perf's tests against its server on the fake fabric inside one
 * process: every kind completes, verifies, prints JSON, and says what fails.
 */
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fake.h"

int perf_main(int argc, char **argv);
extern atomic_int interrupted;

static int number, failed;

static int perf(const char *args)
{
	char copy[256] = "", *argv[32], *p;
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", args);
	argv[0] = copy + sizeof(copy) - 1;
	for (p = strtok(copy, " "); p && argc < 31; p = strtok(NULL, " "))
		argv[argc++] = p;
	argv[argc] = NULL;
	__atomic_store_n(&optind, 0, __ATOMIC_SEQ_CST);
	return perf_main(argc, argv);
}

static void expect(int code, const char *args)
{
	int ret = perf(args);

	fflush(stdout);
	printf("%sok %d %s (exit code %d)\n", ret == code ? "" : "not ",
	       ++number, args, ret);
	failed += ret != code;
}

static void *server(void *unused)
{
	(void)unused;
	return (void *)(intptr_t)perf("server -d b.0");
}

/* The test run times, where the server has host memory. */
static void gpu_memory(void)
{
	expect(1, "write-bw -p b --memory tape");
	expect(1, "window-bw -p b --memory hip");
	if (!getenv("FABREX_TEST_RUNTIME"))
		return;
	setenv("FABREX_TEST_GPUS", "1", 1);
	expect(0, "write-bw -p b -m hip -n 300 --size 4K --verify");
	expect(0, "read-bw -p b -m cuda -n 300 --size 4K --verify -j");
	expect(0, "transfer -p b -m cuda --size 3M --check");
	expect(0, "transfer -p b -m hip --file lib/libfabrex.map -j");
	expect(0, "atomic-lat -p b -m hip -n 50 --verify");
	setenv("FABREX_TEST_FAIL", "hipMalloc=2", 1);
	expect(2, "write-bw -p b -m hip");
	unsetenv("FABREX_TEST_FAIL");
}

static void lying_device(void)
{
	fake_fault(FAKE_BAD_OPCODE);
	expect(2, "write-lat -p b -n 50 -w 0 --size 8");
}

int main(void)
{
	pthread_t thread;
	void *ret;

	alarm(1200);
	expect(1, "nonsense");
	expect(1, "write-bw");
	expect(1, "write-bw -p b --size 0");
	expect(1, "write-bw -p b --sizes 64:32:2");
	expect(1, "write-bw -p b --depth 99999999");
	expect(1, "write-bw -p b --duration abc");
	expect(1, "atomic-lat -p b --size 16");
	expect(0, "--version");
	expect(2, "write-bw -p nobody");
	expect(2, "write-bw -p b --timeout 0.05");
	if (pthread_create(&thread, NULL, server, NULL))
		return 1;
	nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	expect(0, "write-bw -p b -t 0.05 -w 0.01 --sizes 64:64K:16 --verify");
	expect(0, "write-bw -p b -n 500 -q 3 --size 100 --verify --check");
	expect(0, "read-bw -p b -n 100 --sizes 4K:64K:4 --verify -j");
	expect(0, "write-bw -p b -n 3 --size 1M --depth 3 --verify");
	expect(0, "msg-rate -p b -t 0.05 --reference-gbps 10 -j");
	expect(0, "write-lat -p b -n 20");
	expect(0, "write-bw -p b -n 200 --size 4K --events --verify");
	expect(0, "read-lat -p b -n 20 --size 8 --events");
	expect(0, "transfer -p b --size 9M --events");
	expect(0, "read-lat -p b -n 20 --size 64 -j");
	expect(0, "atomic-lat -p b -n 50 --verify");
	expect(0, "send-lat -p b -n 20");
	expect(1, "send-lat -p b -n 20 --size 8K");
	expect(0, "window-lat -p b -n 20 --verify");
	expect(0, "window-bw -p b -n 2000 --verify");
	expect(0, "transfer -p b --size 3M --check");
	expect(0, "transfer -p b --size 1234567 -j");
	expect(0, "transfer -p b --file lib/libfabrex.map");
	expect(1, "transfer -p b --file /nonexistent");
	gpu_memory();
	lying_device();
	expect(0, "write-lat -p b -n 20 --size 8");
	fake_end_queues(1);
	expect(0, "write-lat -p b -n 20 --size 8");
	interrupted = 1;
	pthread_join(thread, &ret);
	if (ret || fake_objects()) {
		printf("# server ended with %ld, %u objects left\n",
		       (long)(intptr_t)ret, fake_objects());
		failed++;
	}
	printf("1..%d\n", number);
	return !!failed;
}
