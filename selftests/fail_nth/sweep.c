// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every allocation of a good sequence fails once: the call it belongs to must
 * report it, leave nothing behind, and work the next time. Needs a kernel with
 * CONFIG_FAULT_INJECTION and CONFIG_FAILSLAB (the debug kernel).
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "bench.h"

#define MOST 2000

static int nth_fd = -1;

static bool arm(int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", n);

	return pwrite(nth_fd, text, len, 0) == len;
}

/* Was the failure armed before still to come? Disarms it. */
static bool unused(void)
{
	char text[16] = "";

	if (pread(nth_fd, text, sizeof(text) - 1, 0) < 0)
		return false;
	arm(0);
	return atoi(text) != 0;
}

static bool set_knob(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY);
	bool good = fd >= 0 && write(fd, value, strlen(value)) > 0;

	if (fd >= 0)
		close(fd);
	return good;
}

/* Everything a process can make, once. 0 or the first error. */
static int sequence(void)
{
	struct fabrex_window_create w = { .size = sizeof(w), .length = 4096,
		.access = FABREX_ACCESS_REMOTE_READ };
	struct fabrex_port_query port;
	struct raw_queue q;
	struct raw_mr mr = { 0 };
	int fd = raw_open(), err;

	if (fd < 0)
		return -errno;
	memset(&q, 0, sizeof(q));
	err = raw_query(fd, &port);
	err = err ?: raw_mr(fd, 16 * RAW_PAGE, RAW_ALL, &mr);
	err = err ?: raw_queue(fd, 8, 16, 8, &q);
	if (!err) {
		w.peer = port.out_peer;
		w.rkey = mr.key;
		err = raw_ioctl(fd, FABREX_IOCTL_WINDOW_CREATE, &w);
	}
	err = err ?: raw_destroy(fd, w.out_id);
	if (q.ring && q.ring != MAP_FAILED) {
		munmap(q.ring, q.info.out_ring_size);
		munmap((void *)q.db, RAW_PAGE);
	}
	if (mr.addr)
		munmap(mr.addr, mr.length);
	close(fd);
	return err;
}

TEST(every_allocation)
{
	struct bench_count before, after;
	int failed = 0, n;

	nth_fd = open("/proc/self/fail-nth", O_RDWR);
	if (nth_fd < 0 ||
	    !set_knob("/sys/kernel/debug/failslab/ignore-gfp-wait", "N"))
		SKIP(return, "the kernel has no FAULT_INJECTION with FAILSLAB");
	set_knob("/sys/kernel/debug/failslab/verbose", "0");
	set_knob("/sys/kernel/debug/fail_page_alloc/verbose", "0");
	set_knob("/sys/kernel/debug/fail_page_alloc/ignore-gfp-wait", "N");
	ASSERT_EQ(sequence(), 0);
	ASSERT_EQ(bench_count(&before), 0);
	for (n = 1; n < MOST; n++) {
		int err;

		ASSERT_TRUE(arm(n));
		err = sequence();
		if (unused()) {
			EXPECT_EQ(err, 0);
			break;	/* the sequence has fewer allocations */
		}
		if (err) {
			failed++;
			EXPECT_TRUE(err == -ENOMEM || err == -EFAULT ||
				    err == -EAGAIN || err == -ENOSPC)
				TH_LOG("allocation %d: %s", n, strerror(-err));
		}
		ASSERT_EQ(bench_count(&after), 0);
		ASSERT_EQ(memcmp(&before, &after, sizeof(after)), 0)
			TH_LOG("allocation %d leaves something behind", n);
		ASSERT_EQ(sequence(), 0)
			TH_LOG("after allocation %d", n);
	}
	TH_LOG("%d allocations, %d of them make the sequence fail", n - 1,
	       failed);
	EXPECT_LT(n, MOST);
	EXPECT_GT(failed, 5);
}

TEST_HARNESS_MAIN
