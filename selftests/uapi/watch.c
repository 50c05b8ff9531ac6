// SPDX-License-Identifier: GPL-2.0-only
/*
 * The watch page: what counts, what does not, and that nothing is missed.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "bench.h"

#define ENTRIES	1024
#define PAGES	16
#define LENGTH	(PAGES * RAW_PAGE)

static int watch_make(int fd, uint32_t entries, struct fabrex_watch *watch)
{
	memset(watch, 0, sizeof(*watch));
	watch->size = sizeof(*watch);
	watch->entries = entries;
	return raw_ioctl(fd, FABREX_IOCTL_WATCH, watch);
}

static int watch_mr(int fd, void *addr, size_t length, uint32_t entry,
		    uint32_t access, struct raw_mr *mr)
{
	struct fabrex_mr_register arg = {
		.size = sizeof(arg), .flags = FABREX_MR_WATCH,
		.addr = (uintptr_t)addr, .length = length, .access = access,
		.watch = entry,
	};
	int err = raw_ioctl(fd, FABREX_IOCTL_MR_REGISTER, &arg);

	memset(mr, 0, sizeof(*mr));
	mr->fd = fd;
	mr->id = arg.out_id;
	mr->key = arg.out_key;
	return err;
}

FIXTURE(watch) {
	struct bench b;
	struct bench_count before;
	struct fabrex_watch info;
	volatile uint32_t *page;
	uint8_t *mem;
};

FIXTURE_SETUP(watch)
{
	struct raw_mr mr;
	int err;

	ASSERT_EQ(bench_open(&self->b), 0);
	ASSERT_EQ(bench_count(&self->before), 0);
	ASSERT_EQ(watch_make(self->b.fd, ENTRIES, &self->info), 0);
	self->page = mmap(NULL, self->info.out_length, PROT_READ, MAP_SHARED,
			  self->b.fd, self->info.out_mmap);
	ASSERT_NE(self->page, MAP_FAILED);
	self->mem = raw_pages(LENGTH);
	ASSERT_NE(self->mem, NULL);
	memset(self->mem, 1, LENGTH);
	err = watch_mr(self->b.fd, self->mem, LENGTH, 0, 0, &mr);
	if (err == -EOPNOTSUPP)
		SKIP(return, "the kernel has no MMU_NOTIFIER");
	ASSERT_EQ(err, 0);
	ASSERT_EQ(raw_destroy(self->b.fd, mr.id), 0);
}

FIXTURE_TEARDOWN(watch)
{
	struct bench_count after;

	ASSERT_EQ(bench_count(&after), 0);
	EXPECT_EQ(memcmp(&self->before, &after, sizeof(after)), 0);
	munmap(self->mem, LENGTH);
	bench_close(&self->b);
	/* It outlives the file. */
	EXPECT_EQ(self->page[ENTRIES - 1], 0);
	munmap((void *)self->page, self->info.out_length);
}

TEST(sizes)
{
	struct fabrex_watch watch;
	int fd = raw_open();

	ASSERT_GE(fd, 0);
	EXPECT_EQ(watch_make(fd, 0, &watch), -EINVAL);
	EXPECT_EQ(watch_make(fd, 65537, &watch), -EINVAL);
	EXPECT_EQ(watch_make(fd, UINT32_MAX, &watch), -EINVAL);
	EXPECT_EQ(watch_make(fd, 65536, &watch), 0);
	EXPECT_EQ(watch.out_length, 65536 * 4);
	EXPECT_EQ(watch_make(fd, 65536, &watch), -EEXIST);
	EXPECT_EQ(watch_make(fd, 1, &watch), -EEXIST);
	close(fd);
	fd = raw_open();
	EXPECT_EQ(watch_make(fd, 1, &watch), 0);
	EXPECT_EQ(watch.out_length, RAW_PAGE);
	close(fd);
}

/* Nobody writes it but the kernel. */
TEST_F(watch, read_only)
{
	int fd = self->b.fd;
	uint64_t at = self->info.out_mmap;

	EXPECT_EQ(self->info.out_length, RAW_PAGE);
	EXPECT_EQ(mmap(NULL, RAW_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		       at), MAP_FAILED);
	EXPECT_EQ(errno, EACCES);
	EXPECT_EQ(mmap(NULL, RAW_PAGE, PROT_READ, MAP_PRIVATE, fd, at),
		  MAP_FAILED);
	EXPECT_EQ(errno, EINVAL);
	EXPECT_EQ(mprotect((void *)self->page, RAW_PAGE,
			   PROT_READ | PROT_WRITE), -1);
	EXPECT_EQ(errno, EACCES);
	for (int i = 0; i < ENTRIES; i++)
		ASSERT_EQ(self->page[i], 0);
}

TEST_F(watch, entries)
{
	struct fabrex_mr_register arg = { .size = sizeof(arg),
		.addr = (uintptr_t)self->mem, .length = LENGTH, .watch = 1 };
	struct raw_mr mr;
	int fd = raw_open();

	EXPECT_EQ(watch_mr(self->b.fd, self->mem, LENGTH, ENTRIES, 0, &mr),
		  -EINVAL);
	EXPECT_EQ(watch_mr(self->b.fd, self->mem, LENGTH, UINT32_MAX, 0, &mr),
		  -EINVAL);
	/* Without the flag; of a file that has no page. */
	EXPECT_EQ(raw_ioctl(self->b.fd, FABREX_IOCTL_MR_REGISTER, &arg),
		  -EINVAL);
	EXPECT_EQ(watch_mr(fd, self->mem, LENGTH, 0, 0, &mr), -EINVAL);
	EXPECT_EQ(watch_mr(self->b.fd, self->mem, 0, 0, 0, &mr), -EINVAL);
	arg.flags = FABREX_MR_WATCH;
	arg.addr = UINT64_MAX - 4095;
	EXPECT_EQ(raw_ioctl(self->b.fd, FABREX_IOCTL_MR_REGISTER, &arg),
		  -EINVAL);
	EXPECT_EQ(watch_mr(self->b.fd, NULL, LENGTH, 0, 0, &mr), -EFAULT);
	EXPECT_EQ(self->page[0], 0);
	close(fd);
}

/* What a process may do to memory, and whether it counts. */
static void do_munmap(uint8_t *p) { munmap(p, LENGTH); }
static void do_munmap_part(uint8_t *p) { munmap(p + 3 * RAW_PAGE, RAW_PAGE); }
static void do_munmap_around(uint8_t *p)
{
	munmap(p - RAW_PAGE, LENGTH + 2 * RAW_PAGE);
}
static void do_munmap_tail(uint8_t *p)
{
	munmap(p + LENGTH - RAW_PAGE, 2 * RAW_PAGE);
}
static void do_dontneed(uint8_t *p) { madvise(p, LENGTH, MADV_DONTNEED); }
static void do_dontneed_page(uint8_t *p)
{
	madvise(p + LENGTH - RAW_PAGE, RAW_PAGE, MADV_DONTNEED);
}
static void do_protect(uint8_t *p) { mprotect(p, LENGTH, PROT_READ); }
static void do_fixed(uint8_t *p)
{
	mmap(p + RAW_PAGE, RAW_PAGE, PROT_READ | PROT_WRITE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}
static void do_mremap(uint8_t *p)
{
	mremap(p, LENGTH, LENGTH, MREMAP_MAYMOVE | MREMAP_FIXED,
	       p + 2 * LENGTH);
}
static void do_shrink(uint8_t *p) { mremap(p, LENGTH, RAW_PAGE, 0); }

static void do_nothing(uint8_t *p) { }
static void do_write(uint8_t *p) { memset(p, 3, LENGTH); }
static void do_neighbours(uint8_t *p)
{
	munmap(p - RAW_PAGE, RAW_PAGE);
	munmap(p + LENGTH, RAW_PAGE);
}
static void do_fork(uint8_t *p)
{
	pid_t pid = fork();

	if (!pid) {
		memset(p, 7, LENGTH);
		munmap(p, LENGTH);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	memset(p, 2, LENGTH);
}

static const struct change {
	const char *name;
	void (*change)(uint8_t *p);
	bool counts;
} changes[] = {
	{ "munmap", do_munmap, true },
	{ "munmap of a page", do_munmap_part, true },
	{ "munmap of more", do_munmap_around, true },
	{ "munmap across the end", do_munmap_tail, true },
	{ "MADV_DONTNEED", do_dontneed, true },
	{ "MADV_DONTNEED of the last page", do_dontneed_page, true },
	{ "mprotect", do_protect, true },
	{ "MAP_FIXED", do_fixed, true },
	{ "mremap", do_mremap, true },
	{ "mremap to less", do_shrink, true },
	{ "nothing", do_nothing, false },
	{ "writing", do_write, false },
	{ "neighbours", do_neighbours, false },
	{ "fork", do_fork, false },
};

TEST_F_TIMEOUT(watch, changes, 180)
{
	int n = sizeof(changes) / sizeof(changes[0]);

	for (int i = 0; i < n; i++) {
		const struct change *c = &changes[i];
		uint8_t *all = raw_pages(4 * LENGTH), *p = all + RAW_PAGE;
		uint32_t was;
		struct raw_mr mr;

		ASSERT_NE(all, NULL);
		memset(all, 1, 4 * LENGTH);
		ASSERT_EQ(watch_mr(self->b.fd, p + 5, LENGTH - 10, i, RAW_ALL,
				   &mr), 0);
		EXPECT_EQ(self->page[i], 0) TH_LOG("%s: registration", c->name);
		c->change(p);
		was = self->page[i];
		EXPECT_EQ(was > 0, c->counts)
			TH_LOG("%s: counted %u", c->name, was);
		ASSERT_EQ(raw_destroy(self->b.fd, mr.id), 0);
		was = self->page[i];
		munmap(all, 4 * LENGTH);
		EXPECT_EQ(self->page[i], was)
			TH_LOG("%s: counts after its end", c->name);
	}
	for (int i = n; i < ENTRIES; i++)
		ASSERT_EQ(self->page[i], 0);
}

/* Breaking copy-on-write for the pin is no change. */
TEST_F(watch, own_copy_on_write)
{
	volatile uint8_t *p = raw_pages(LENGTH);
	struct fabrex_sqe sqe;
	uint8_t sum = 0;
	struct raw_mr mr;

	for (int i = 0; i < LENGTH; i += RAW_PAGE)
		sum |= p[i];	/* the page of zeroes everywhere */
	ASSERT_EQ(sum, 0);
	ASSERT_EQ(watch_mr(self->b.fd, (void *)p, LENGTH, 3, RAW_ALL, &mr), 0);
	EXPECT_EQ(self->page[3], 0);
	sqe = raw_rw(FABREX_OP_WRITE, self->b.self, &self->b.src, 0, mr.key, 0,
		     LENGTH);
	EXPECT_EQ(raw_do(&self->b.q, &sqe, NULL), FABREX_WC_OK);
	EXPECT_EQ(raw_differs((void *)p, LENGTH, 1), -1);
	EXPECT_EQ(raw_destroy(self->b.fd, mr.id), 0);
	munmap((void *)p, LENGTH);
}

TEST_F(watch, shared_entry)
{
	struct raw_mr one, two;

	ASSERT_EQ(watch_mr(self->b.fd, self->mem, RAW_PAGE, 9, 0, &one), 0);
	ASSERT_EQ(watch_mr(self->b.fd, self->mem, LENGTH, 9, 0, &two), 0);
	madvise(self->mem, RAW_PAGE, MADV_DONTNEED);
	EXPECT_EQ(self->page[9], 2);
	madvise(self->mem + RAW_PAGE, RAW_PAGE, MADV_DONTNEED);
	EXPECT_EQ(self->page[9], 3);
	EXPECT_EQ(raw_destroy(self->b.fd, two.id), 0);
	madvise(self->mem, RAW_PAGE, MADV_DONTNEED);
	EXPECT_EQ(self->page[9], 4);
	EXPECT_EQ(raw_destroy(self->b.fd, one.id), 0);
}

/* What was pinned stays what the device reaches. */
TEST_F(watch, pin_stays)
{
	struct raw_mr mr;
	struct fabrex_sqe sqe;

	raw_fill(self->mem, LENGTH, 5);
	ASSERT_EQ(watch_mr(self->b.fd, self->mem, LENGTH, 2, RAW_ALL, &mr), 0);
	ASSERT_EQ(munmap(self->mem, LENGTH), 0);
	EXPECT_GT(self->page[2], 0);
	self->mem = raw_pages(LENGTH);
	sqe = raw_rw(FABREX_OP_READ, self->b.self, &self->b.dst, 0, mr.key, 0,
		     LENGTH);
	EXPECT_EQ(raw_do(&self->b.q, &sqe, NULL), FABREX_WC_OK);
	EXPECT_EQ(raw_differs(self->b.dst.addr, LENGTH, 5), -1);
	EXPECT_EQ(raw_destroy(self->b.fd, mr.id), 0);
}

struct racer {
	uint8_t *mem;
	unsigned int us;
};

static void *discard(void *arg)
{
	struct racer *r = arg;
	uint64_t end = raw_now_ns() + r->us * 1000ull;

	while (raw_now_ns() < end)
		;
	madvise(r->mem, LENGTH, MADV_DONTNEED);
	memset(r->mem, 4, LENGTH);
	return NULL;
}

/* If the counter has not moved, the device reaches what the process sees. */
TEST_F_TIMEOUT(watch, nothing_is_missed, 180)
{
	struct racer r = { .mem = self->mem };
	int same = 0, moved = 0;
	uint32_t seed = 1;

	for (int i = 0; i < 300; i++) {
		uint32_t was = self->page[0];
		struct fabrex_sqe sqe;
		pthread_t thread;
		struct raw_mr mr;
		bool good;

		r.us = raw_random(&seed) % 4000;
		ASSERT_EQ(pthread_create(&thread, NULL, discard, &r), 0);
		ASSERT_EQ(watch_mr(self->b.fd, self->mem, LENGTH, 0, RAW_ALL,
				   &mr), 0);
		pthread_join(thread, NULL);
		sqe = raw_rw(FABREX_OP_WRITE, self->b.self, &self->b.src, 0,
			     mr.key, 0, LENGTH);
		ASSERT_EQ(raw_do(&self->b.q, &sqe, NULL), FABREX_WC_OK);
		good = raw_differs(self->mem, LENGTH, 1) == -1;
		if (self->page[0] == was) {
			same++;
			ASSERT_TRUE(good) TH_LOG("round %d", i);
		} else {
			moved++;
		}
		ASSERT_EQ(raw_destroy(self->b.fd, mr.id), 0);
	}
	TH_LOG("%d rounds changed nothing, %d did", same, moved);
	EXPECT_GT(moved, 0);
}

/* exec(): the memory is gone, the file and its regions are not. */
__attribute__((constructor)) static void after_exec(int argc, char **argv)
{
	volatile uint32_t *page;
	int fd;

	if (argc != 4 || strcmp(argv[1], "after-exec"))
		return;
	fd = atoi(argv[2]);
	page = mmap(NULL, RAW_PAGE, PROT_READ, MAP_SHARED, fd,
		    strtoull(argv[3], NULL, 0));
	_exit(page == MAP_FAILED ? 2 : page[4] ? 0 : 3);
}

TEST_F(watch, exec)
{
	char fd[16], at[32];
	struct raw_mr mr;
	int status;
	pid_t pid;

	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		snprintf(fd, sizeof(fd), "%d", self->b.fd);
		snprintf(at, sizeof(at), "%llu",
			 (unsigned long long)self->info.out_mmap);
		fcntl(self->b.fd, F_SETFD, 0);
		if (watch_mr(self->b.fd, self->mem, LENGTH, 4, 0, &mr))
			_exit(1);
		execl("/proc/self/exe", "watch", "after-exec", fd, at, NULL);
		_exit(4);
	}
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(WEXITSTATUS(status), 0);
	/* Its region is the file's, which is ours as well. */
	EXPECT_GT(self->page[4], 0);
	for (uint32_t id = 1; id < 64; id++)
		if (id != self->b.q.info.out_id && id != self->b.src.id &&
		    id != self->b.dst.id)
			raw_destroy(self->b.fd, id);
}

/* A process that ends in the midst of it. */
TEST_F_TIMEOUT(watch, killed, 180)
{
	for (int i = 0; i < 20; i++) {
		struct raw_mr mr;
		pid_t pid = fork();

		ASSERT_GE(pid, 0);
		if (!pid) {
			int fd = raw_open();
			struct fabrex_watch w;

			if (watch_make(fd, 1, &w))
				_exit(1);
			for (;;) {
				watch_mr(fd, self->mem, LENGTH, 0, RAW_ALL,
					 &mr);
				madvise(self->mem, LENGTH, MADV_DONTNEED);
				raw_destroy(fd, mr.id);
			}
		}
		usleep(3000 + i * 700);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
}

TEST_HARNESS_MAIN
