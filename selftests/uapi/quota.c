// SPDX-License-Identifier: GPL-2.0-only
/*
 * What one user may take: RLIMIT_MEMLOCK for pinned memory, and quotas of
 * queues, regions and windows. Runs as an unprivileged user (the runner gives
 * it one of the device's group); root is not limited by RLIMIT_MEMLOCK.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "bench.h"

#define LIMIT	(1u << 20)
#define MOST	70000	/* no port has more of anything */

FIXTURE(quota) {
	int fd;
	struct fabrex_port_query port;
};

FIXTURE_SETUP(quota)
{
	struct rlimit limit = { LIMIT, LIMIT };

	if (!geteuid())
		SKIP(return, "root has no limits; run as a user of the group");
	ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	self->fd = raw_open();
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(raw_query(self->fd, &self->port), 0);
}

FIXTURE_TEARDOWN(quota)
{
	close(self->fd);
}

TEST_F(quota, memlock)
{
	struct raw_mr half, rest, more;

	EXPECT_EQ(raw_mr(self->fd, 2 * LIMIT, 0, &more), -ENOMEM);
	ASSERT_EQ(raw_mr(self->fd, LIMIT / 2, 0, &half), 0);
	EXPECT_EQ(raw_mr(self->fd, LIMIT / 2 + RAW_PAGE, 0, &more), -ENOMEM);
	ASSERT_EQ(raw_mr(self->fd, LIMIT / 4, 0, &rest), 0);
	EXPECT_EQ(raw_mr(self->fd, LIMIT / 4 + RAW_PAGE, 0, &more), -ENOMEM);
	EXPECT_EQ(raw_mr_free(&half), 0);
	EXPECT_EQ(raw_mr(self->fd, LIMIT / 2 + RAW_PAGE, 0, &more), 0);
	EXPECT_EQ(raw_mr_free(&more), 0);
	EXPECT_EQ(raw_mr_free(&rest), 0);
}

/* The charge ends with the file, also when the process does not end. */
TEST_F(quota, memlock_returns_on_close)
{
	for (int i = 0; i < 8; i++) {
		struct raw_mr mr;
		int fd = raw_open();

		ASSERT_GE(fd, 0);
		ASSERT_EQ(raw_mr(fd, LIMIT / 2, RAW_ALL, &mr), 0);
		munmap(mr.addr, mr.length);
		close(fd);
	}
}

/* The same page twice is charged twice: it may outlive either. */
TEST_F(quota, same_memory_twice)
{
	uint8_t *p = raw_pages(LIMIT * 3 / 4);
	struct raw_mr one, two;

	ASSERT_NE(p, NULL);
	ASSERT_EQ(raw_mr_at(self->fd, p, LIMIT * 3 / 4, 0, &one), 0);
	EXPECT_EQ(raw_mr_at(self->fd, p, LIMIT * 3 / 4, 0, &two), -ENOMEM);
	ASSERT_EQ(raw_destroy(self->fd, one.id), 0);
	ASSERT_EQ(raw_mr_at(self->fd, p, LIMIT * 3 / 4, 0, &two), 0);
	EXPECT_EQ(raw_destroy(self->fd, two.id), 0);
	munmap(p, LIMIT * 3 / 4);
}

static int fill_queues(int fd, unsigned int *n)
{
	struct fabrex_queue_create arg;
	int err;

	for (*n = 0; *n < MOST; ++*n) {
		memset(&arg, 0, sizeof(arg));
		arg.size = sizeof(arg);
		arg.sq_entries = 8;
		arg.cq_entries = 8;
		arg.eventfd = -1;
		err = raw_ioctl(fd, FABREX_IOCTL_QUEUE_CREATE, &arg);
		if (err)
			return err;
	}
	return 0;
}

static int fill_mrs(int fd, unsigned int *n)
{
	struct raw_mr mr;
	uint8_t *p = raw_pages(RAW_PAGE);
	int err;

	for (*n = 0; *n < MOST; ++*n) {
		err = raw_mr_at(fd, p, 16, 0, &mr);
		if (err)
			return err;
	}
	return 0;
}

/* One user cannot take everything, and gets it all again after closing. */
TEST_F(quota, queues)
{
	unsigned int n, again;
	struct raw_queue q;
	int err = fill_queues(self->fd, &n), second;

	EXPECT_TRUE(err == -EDQUOT || err == -ENOMEM) TH_LOG("%d", err);
	EXPECT_GT(n, 0);
	EXPECT_LT(n, self->port.out_max_queues);
	second = raw_open();
	ASSERT_GE(second, 0);
	EXPECT_EQ(fill_queues(second, &again), err);
	EXPECT_EQ(again, 0);
	close(self->fd);
	ASSERT_EQ(raw_queue(second, 8, 8, 0, &q), 0);
	EXPECT_EQ(raw_queue_free(&q), 0);
	close(second);
	self->fd = raw_open();
	EXPECT_EQ(fill_queues(self->fd, &again), err);
	EXPECT_EQ(again, n);
}

TEST_F(quota, mrs)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	unsigned int n;
	int err;

	setrlimit(RLIMIT_MEMLOCK, &limit);	/* fails, as it should */
	err = fill_mrs(self->fd, &n);
	EXPECT_TRUE(err == -EDQUOT || err == -ENOMEM) TH_LOG("%d", err);
	EXPECT_GT(n, 0);
	EXPECT_LT(n, self->port.out_max_mrs);
}

/* A user at the limit does not keep others out. */
TEST_F(quota, others_still_served)
{
	struct raw_queue q;
	unsigned int n;
	int to[2], from[2], status;
	char c = 0;
	pid_t pid;

	ASSERT_EQ(pipe(to), 0);
	ASSERT_EQ(pipe(from), 0);
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		int fd = raw_open();

		_exit(fd < 0 || fill_queues(fd, &n) == 0 ||
		      write(from[1], &c, 1) != 1 || read(to[0], &c, 1) != 1);
	}
	ASSERT_EQ(read(from[0], &c, 1), 1);
	EXPECT_EQ(raw_queue(self->fd, 8, 8, 0, &q), -EDQUOT);
	ASSERT_EQ(write(to[1], &c, 1), 1);
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
	EXPECT_EQ(raw_queue(self->fd, 8, 8, 0, &q), 0);
}

TEST_HARNESS_MAIN
