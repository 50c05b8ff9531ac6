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
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <linux/udmabuf.h>

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

/* A dma-buf of system memory; -1: not on this machine. */
static int udmabuf_make(void)
{
	struct udmabuf_create create = { .size = 16 * RAW_PAGE };
	int dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), fd = -1;
	int mem = memfd_create("udmabuf", MFD_ALLOW_SEALING | MFD_CLOEXEC);

	create.memfd = mem;
	if (dev >= 0 && !ftruncate(mem, create.size) &&
	    !fcntl(mem, F_ADD_SEALS, F_SEAL_SHRINK))
		fd = ioctl(dev, UDMABUF_CREATE, &create);
	close(mem);
	close(dev);
	return fd;
}

static int shared_fd;

/* Memory of an exporter, memory that is watched, and both. */
static int shared_sequence(void)
{
	struct fabrex_watch watch = { .size = sizeof(watch), .entries = 2048 };
	struct fabrex_mr_register mr = {
		.size = sizeof(mr), .addr = 100, .length = 9 * RAW_PAGE,
		.flags = FABREX_MR_DMABUF | FABREX_MR_WATCH, .fd = shared_fd,
		.access = RAW_ALL,
	};
	struct fabrex_mr_register own = {
		.size = sizeof(own), .length = 16 * RAW_PAGE,
		.flags = FABREX_MR_WATCH, .access = RAW_ALL,
	};
	int fd = raw_open(), err;
	void *mem;

	if (fd < 0)
		return -errno;
	mem = raw_pages(own.length);
	own.addr = (uintptr_t)mem;
	err = raw_ioctl(fd, FABREX_IOCTL_WATCH, &watch);
	err = err ?: raw_ioctl(fd, FABREX_IOCTL_MR_REGISTER, &mr);
	err = err ?: raw_destroy(fd, mr.out_id);
	mr.flags |= FABREX_MR_PIN;
	err = err ?: raw_ioctl(fd, FABREX_IOCTL_MR_REGISTER, &mr);
	if (!err) {
		err = raw_ioctl(fd, FABREX_IOCTL_MR_REGISTER, &own);
		if (err == -EOPNOTSUPP)	/* no MMU_NOTIFIER */
			err = 0;
	}
	if (mem)
		munmap(mem, own.length);
	close(fd);
	return err;
}

static bool ready(void)
{
	nth_fd = open("/proc/self/fail-nth", O_RDWR);
	if (nth_fd < 0 ||
	    !set_knob("/sys/kernel/debug/failslab/ignore-gfp-wait", "N"))
		return false;
	set_knob("/sys/kernel/debug/failslab/verbose", "0");
	set_knob("/sys/kernel/debug/fail_page_alloc/verbose", "0");
	set_knob("/sys/kernel/debug/fail_page_alloc/ignore-gfp-wait", "N");
	return true;
}

static bool expected(int err)
{
	return err == -ENOMEM || err == -EFAULT || err == -EAGAIN ||
	       err == -ENOSPC;
}

static void sweep(struct __test_metadata *_metadata, int (*try)(void))
{
	struct bench_count before, after;
	int failed = 0, n;

	ASSERT_EQ(try(), 0);
	ASSERT_EQ(bench_count(&before), 0);
	for (n = 1; n < MOST; n++) {
		int err;

		ASSERT_TRUE(arm(n));
		err = try();
		if (unused()) {
			EXPECT_EQ(err, 0);
			break;	/* the sequence has fewer allocations */
		}
		if (err) {
			failed++;
			EXPECT_TRUE(expected(err))
				TH_LOG("allocation %d: %s", n, strerror(-err));
		}
		ASSERT_EQ(bench_count(&after), 0);
		ASSERT_EQ(memcmp(&before, &after, sizeof(after)), 0)
			TH_LOG("allocation %d leaves something behind", n);
		ASSERT_EQ(try(), 0)
			TH_LOG("after allocation %d", n);
	}
	TH_LOG("%d allocations, %d of them make the sequence fail", n - 1,
	       failed);
	EXPECT_LT(n, MOST);
	EXPECT_GT(failed, 5);
}

FIXTURE(fail_nth) {
};

FIXTURE_SETUP(fail_nth)
{
	if (!ready())
		SKIP(return, "the kernel has no FAULT_INJECTION with FAILSLAB");
}

FIXTURE_TEARDOWN(fail_nth)
{
	close(nth_fd);
}

TEST_F_TIMEOUT(fail_nth, every_allocation, 400)
{
	sweep(_metadata, sequence);
}

TEST_F_TIMEOUT(fail_nth, shared_and_watched, 400)
{
	shared_fd = udmabuf_make();
	if (shared_fd < 0)
		SKIP(return, "no /dev/udmabuf");
	sweep(_metadata, shared_sequence);
	close(shared_fd);
}

TEST_HARNESS_MAIN
