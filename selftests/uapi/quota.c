// SPDX-License-Identifier: GPL-2.0-only
/*
 * What one user may take: RLIMIT_MEMLOCK for pinned memory, and quotas of
 * queues, regions, windows and bytes. Runs as an unprivileged user (the runner
 * gives it one of the device's group, /dev/udmabuf, and a quota of bytes that
 * can be used up); root is not limited by RLIMIT_MEMLOCK.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
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

/* One of the sysfs attributes of the port; ~0 if there is none. */
static uint64_t port_attr(const char *name)
{
	char path[128], text[32] = "";
	int fd, n;

	snprintf(path, sizeof(path), "/sys/class/fabrex/%s/%s",
		 basename(raw_path()), name);
	fd = open(path, O_RDONLY);
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	return n > 0 ? strtoull(text, NULL, 10) : ~0ull;
}

struct leaver {
	int fd;
	int ret;
};

static int register_and_leave(void *arg)
{
	struct leaver *l = arg;
	struct raw_mr mr;

	l->ret = raw_mr(l->fd, LIMIT / 4, 0, &mr);
	return 0;
}

/* One that closes the descriptor, or shares the table, before it ends. */
static int run_leaver(struct leaver *l, bool shared)
{
	static char stack[65536] __attribute__((aligned(16)));
	int status;
	pid_t pid;

	if (shared) {
		pid = clone(register_and_leave, stack + sizeof(stack),
			    CLONE_FILES | SIGCHLD, l);
	} else {
		pid = fork();
		if (!pid) {
			register_and_leave(l);
			close(l->fd);
			_exit(0);
		}
	}
	return pid < 0 || waitpid(pid, &status, 0) != pid || status;
}

/*
 * What processes that are gone have made stays with the file: so does what it
 * locks, in the account of its user.
 */
static void leave(struct __test_metadata *_metadata, int fd, bool shared)
{
	struct leaver *l = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t before = port_attr("usage/pinned_bytes");

	ASSERT_NE(l, MAP_FAILED);
	l->fd = fd;
	for (int i = 0; i < 8; i++) {
		ASSERT_EQ(run_leaver(l, shared), 0);
		EXPECT_EQ(l->ret, i < 4 ? 0 : -ENOMEM) TH_LOG("%d", i);
	}
	EXPECT_EQ(port_attr("usage/pinned_bytes") - before, LIMIT);
	munmap(l, 4096);
}

TEST_F(quota, memlock_of_those_who_have_left)
{
	struct raw_mr mr;

	leave(_metadata, self->fd, false);
	EXPECT_EQ(raw_mr(self->fd, RAW_PAGE, 0, &mr), -ENOMEM);
	close(self->fd);
	self->fd = raw_open();
	EXPECT_EQ(raw_mr(self->fd, LIMIT, 0, &mr), 0);
}

TEST_F(quota, memlock_of_those_who_share_descriptors)
{
	leave(_metadata, self->fd, true);
}

/* Files, too, of whatever process: it is the user who has the limit. */
TEST_F(quota, memlock_of_two_files)
{
	int second = raw_open();
	struct raw_mr one, two;

	ASSERT_GE(second, 0);
	ASSERT_EQ(raw_mr(self->fd, LIMIT / 2, 0, &one), 0);
	ASSERT_EQ(raw_mr(second, LIMIT / 2, 0, &two), 0);
	EXPECT_EQ(raw_mr(second, RAW_PAGE, 0, &two), -ENOMEM);
	close(second);
}

static int udmabuf(size_t length)
{
	struct udmabuf_create create = { .flags = UDMABUF_FLAGS_CLOEXEC };
	int dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), mem, fd = -1;

	mem = memfd_create("quota", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (dev >= 0 && mem >= 0 && !ftruncate(mem, length) &&
	    !fcntl(mem, F_ADD_SEALS, F_SEAL_SHRINK)) {
		create.memfd = mem;
		create.size = length;
		fd = ioctl(dev, UDMABUF_CREATE, &create);
	}
	close(mem);
	close(dev);
	return fd;
}

/* A page of it. */
static int import(int fd, int dmabuf, uint32_t flags, uint32_t *id)
{
	struct fabrex_mr_register mr = {
		.size = sizeof(mr), .flags = FABREX_MR_DMABUF | flags,
		.length = RAW_PAGE, .fd = dmabuf,
	};
	int err = raw_ioctl(fd, FABREX_IOCTL_MR_REGISTER, &mr);

	*id = mr.out_id;
	return err;
}

/* An exporter that may move its memory has nothing locked; pinned, all of it. */
TEST_F(quota, memlock_of_dmabufs)
{
	int large = udmabuf(2 * LIMIT), small = udmabuf(LIMIT / 2);
	uint32_t id, ids[2];

	ASSERT_GE(large, 0);
	ASSERT_GE(small, 0);
	EXPECT_EQ(import(self->fd, large, FABREX_MR_PIN, &id), -ENOMEM);
	EXPECT_EQ(import(self->fd, large, 0, &id), 0);
	ASSERT_EQ(import(self->fd, small, FABREX_MR_PIN, &ids[0]), 0);
	ASSERT_EQ(import(self->fd, small, FABREX_MR_PIN, &ids[1]), 0);
	EXPECT_EQ(import(self->fd, small, FABREX_MR_PIN, &id), -ENOMEM);
	EXPECT_EQ(raw_destroy(self->fd, ids[0]), 0);
	EXPECT_EQ(import(self->fd, small, FABREX_MR_PIN, &id), 0);
	close(large);
	close(small);
}

/* A dma-buf is mapped as a whole for each of its regions. */
TEST_F(quota, bytes_of_dmabufs)
{
	uint64_t most = port_attr("quota/bytes") / LIMIT, n;
	uint64_t before = port_attr("usage/bytes");
	int dmabuf = udmabuf(LIMIT);
	uint32_t id, last = 0;

	ASSERT_GE(dmabuf, 0);
	ASSERT_GE(most, 2);
	ASSERT_LE(most, 1000);
	for (n = 0; n < most; n++)
		ASSERT_EQ(import(self->fd, dmabuf, 0, &last), 0);
	EXPECT_EQ(port_attr("usage/bytes") - before, most * LIMIT);
	EXPECT_EQ(import(self->fd, dmabuf, 0, &id), -EDQUOT);
	EXPECT_EQ(port_attr("usage/bytes") - before, most * LIMIT);
	EXPECT_EQ(raw_destroy(self->fd, last), 0);
	EXPECT_EQ(import(self->fd, dmabuf, 0, &id), 0);
	close(self->fd);
	EXPECT_EQ(port_attr("usage/bytes"), before);
	self->fd = raw_open();
	close(dmabuf);
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
