// SPDX-License-Identifier: GPL-2.0-only
/*
 * dma-bufs of system memory (udmabuf, the system heap): what the ABI says of
 * them, transfers into and out of them, and that nothing stays behind.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>

#include "kselftest_harness.h"
#include "bench.h"

#define SIZE	(1u << 20)
#define BLANK	0x5a
#define THREADS	8

static long usage(const char *name)
{
	char path[128];
	long value = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/fabrex/%s/usage/%s",
		 strrchr(raw_path(), '/') + 1, name);
	f = fopen(path, "r");
	if (f && fscanf(f, "%ld", &value) != 1)
		value = -1;
	if (f)
		fclose(f);
	return value;
}

/* A dma-buf of memory that is mapped at *map, too; -1: not on this machine. */
static int udmabuf(size_t size, uint8_t **map)
{
	struct udmabuf_create create = { .size = size };
	int dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), fd = -1, mem;

	if (dev < 0)
		return -1;
	mem = memfd_create("udmabuf", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	if (mem >= 0 && !ftruncate(mem, size) &&
	    !fcntl(mem, F_ADD_SEALS, F_SEAL_SHRINK)) {
		*map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED,
			    mem, 0);
		create.memfd = mem;
		if (*map != MAP_FAILED)
			fd = ioctl(dev, UDMABUF_CREATE, &create);
	}
	if (mem >= 0)
		close(mem);
	close(dev);
	return fd;
}

static int import_flags(int dev, int fd, uint64_t offset, uint64_t length,
			uint32_t access, uint32_t flags, struct raw_mr *mr)
{
	struct fabrex_mr_register arg = {
		.size = sizeof(arg), .flags = FABREX_MR_DMABUF | flags,
		.addr = offset, .length = length, .access = access, .fd = fd,
	};
	int err = raw_ioctl(dev, FABREX_IOCTL_MR_REGISTER, &arg);

	memset(mr, 0, sizeof(*mr));
	mr->fd = dev;
	mr->id = arg.out_id;
	mr->key = arg.out_key;
	mr->length = length;
	return err;
}

static int import(int dev, int fd, uint64_t offset, uint64_t length,
		  struct raw_mr *mr)
{
	return import_flags(dev, fd, offset, length, RAW_ALL, 0, mr);
}

/* Register it and give it up again: 0 or the error. */
static int attempt(int dev, int fd, uint64_t offset, uint64_t length,
		   uint32_t access, uint32_t flags)
{
	struct raw_mr mr;
	int err = import_flags(dev, fd, offset, length, access, flags, &mr);

	return err ?: raw_destroy(dev, mr.id);
}

FIXTURE(udmabuf) {
	struct bench b;
	struct bench_count before;
	long bytes;
	uint8_t *map;
	int fd;
};

FIXTURE_SETUP(udmabuf)
{
	ASSERT_EQ(bench_open(&self->b), 0);
	self->fd = udmabuf(SIZE, &self->map);
	if (self->fd < 0)
		SKIP(return, "no /dev/udmabuf: %s", strerror(errno));
	memset(self->map, BLANK, SIZE);
	ASSERT_EQ(bench_count(&self->before), 0);
	self->bytes = usage("dmabuf_bytes");
	ASSERT_EQ(self->bytes, 0);
}

FIXTURE_TEARDOWN(udmabuf)
{
	struct bench_count after;

	EXPECT_EQ(usage("dmabuf_bytes"), self->bytes);
	ASSERT_EQ(bench_count(&after), 0);
	EXPECT_EQ(memcmp(&self->before, &after, sizeof(after)), 0);
	if (self->fd >= 0)
		close(self->fd);
	munmap(self->map, SIZE);
	bench_close(&self->b);
}

static int put(struct bench *b, const struct raw_mr *mr, uint64_t offset,
	       uint64_t length)
{
	struct fabrex_sqe sqe = raw_rw(FABREX_OP_WRITE, b->self, &b->src, 0,
				       mr->key, offset, length);

	return raw_do(&b->q, &sqe, NULL);
}

static int get(struct bench *b, const struct raw_mr *mr, uint64_t offset,
	       uint64_t length)
{
	struct fabrex_sqe sqe = raw_rw(FABREX_OP_READ, b->self, &b->dst, 0,
				       mr->key, offset, length);

	return raw_do(&b->q, &sqe, NULL);
}

TEST_F(udmabuf, into_and_out_of)
{
	struct bench *b = &self->b;
	struct fabrex_sqe sqe;
	struct raw_mr mr;

	ASSERT_EQ(import(b->fd, self->fd, 0, SIZE, &mr), 0);
	EXPECT_EQ(usage("dmabuf_bytes"), SIZE);
	for (uint32_t at = 0; at < SIZE; at += BENCH_SIZE)
		ASSERT_EQ(put(b, &mr, at, BENCH_SIZE), FABREX_WC_OK);
	for (uint32_t at = 0; at < SIZE; at += BENCH_SIZE)
		ASSERT_EQ(raw_differs(self->map + at, BENCH_SIZE, 1), -1);
	raw_fill(self->map + SIZE / 2, BENCH_SIZE, 9);
	ASSERT_EQ(get(b, &mr, SIZE / 2, BENCH_SIZE), FABREX_WC_OK);
	EXPECT_EQ(raw_differs(b->dst.addr, BENCH_SIZE, 9), -1);
	/* As the local side as well. */
	sqe = raw_rw(FABREX_OP_WRITE, b->self, &mr, SIZE / 2, b->dst.key, 0,
		     4096);
	memset(b->dst.addr, 0, 4096);
	EXPECT_EQ(raw_do(&b->q, &sqe, NULL), FABREX_WC_OK);
	EXPECT_EQ(memcmp(b->dst.addr, self->map + SIZE / 2, 4096), 0);
	EXPECT_EQ(raw_destroy(b->fd, mr.id), 0);
	EXPECT_EQ(put(b, &mr, 0, 64), FABREX_WC_RKEY);
}

/* Any offset and length: exactly these bytes, and no others. */
TEST_F_TIMEOUT(udmabuf, unaligned_ranges, 180)
{
	static const uint64_t offsets[] = { 0, 1, 7, 4095, 4096, 4097, 12288,
					    65535, SIZE - 70000 };
	static const uint64_t lengths[] = { 1, 2, 63, 4095, 4096, 4097, 20000,
					    65536 };
	struct bench *b = &self->b;
	struct raw_mr mr;

	for (int i = 0; i < 9; i++) {
		for (int j = 0; j < 8; j++) {
			uint64_t off = offsets[i], len = lengths[j];

			memset(self->map, BLANK, SIZE);
			ASSERT_EQ(import(b->fd, self->fd, off, len, &mr), 0);
			ASSERT_EQ(put(b, &mr, 0, len), FABREX_WC_OK);
			EXPECT_EQ(raw_differs(self->map + off, len, 1), -1)
				TH_LOG("offset %lu length %lu", (long)off,
				       (long)len);
			EXPECT_TRUE(raw_all(self->map, off, BLANK));
			EXPECT_TRUE(raw_all(self->map + off + len,
					    SIZE - off - len, BLANK));
			EXPECT_EQ(put(b, &mr, len - 1, 2), FABREX_WC_RBOUNDS);
			EXPECT_EQ(put(b, &mr, len, 1), FABREX_WC_RBOUNDS);
			ASSERT_EQ(raw_destroy(b->fd, mr.id), 0);
		}
	}
	/* Up to its last byte. */
	ASSERT_EQ(import(b->fd, self->fd, SIZE - 5, 5, &mr), 0);
	EXPECT_EQ(put(b, &mr, 0, 5), FABREX_WC_OK);
	EXPECT_EQ(raw_destroy(b->fd, mr.id), 0);
}

TEST_F(udmabuf, refused)
{
	int dev = self->b.fd, fd = self->fd, null, mem;

	null = open("/dev/null", O_RDWR);
	mem = memfd_create("no dma-buf", 0);
	ASSERT_GE(null, 0);
	ASSERT_GE(mem, 0);
	EXPECT_EQ(attempt(dev, -1, 0, 4096, 0, 0), -EBADF);
	EXPECT_EQ(attempt(dev, 9999, 0, 4096, 0, 0), -EBADF);
	EXPECT_EQ(attempt(dev, INT32_MIN, 0, 4096, 0, 0), -EBADF);
	EXPECT_EQ(attempt(dev, null, 0, 4096, 0, 0), -EINVAL);
	EXPECT_EQ(attempt(dev, mem, 0, 4096, 0, 0), -EINVAL);
	EXPECT_EQ(attempt(dev, dev, 0, 4096, 0, 0), -EINVAL);
	EXPECT_EQ(attempt(dev, fd, 0, 0, 0, 0), -EINVAL);
	EXPECT_EQ(attempt(dev, fd, 0, SIZE + 1, 0, 0), -EINVAL);
	EXPECT_EQ(attempt(dev, fd, SIZE, 1, 0, 0), -EINVAL);
	EXPECT_EQ(attempt(dev, fd, SIZE - 1, 2, 0, 0), -EINVAL);
	EXPECT_EQ(attempt(dev, fd, UINT64_MAX, 1, 0, 0), -EINVAL);
	EXPECT_EQ(attempt(dev, fd, 1, UINT64_MAX, 0, 0), -EINVAL);
	EXPECT_EQ(attempt(dev, fd, UINT64_MAX - 4096, 4097, 0, 0), -EINVAL);
	EXPECT_EQ(attempt(dev, fd, 0, 4096, 1u << 4, 0), -EINVAL);
	EXPECT_EQ(attempt(dev, fd, 0, 4096, 0, 1u << 4), -EINVAL);
	/* No watch page. */
	EXPECT_EQ(attempt(dev, fd, 0, 4096, 0, FABREX_MR_WATCH), -EINVAL);
	EXPECT_EQ(attempt(dev, fd, 0, SIZE, RAW_ALL, 0), 0);
	EXPECT_EQ(attempt(dev, fd, 0, SIZE, RAW_ALL, FABREX_MR_PIN), 0);
	close(null);
	close(mem);
}

/* A dma-buf that was opened for reading gives no right to write. */
TEST_F(udmabuf, read_only)
{
	struct dma_heap_allocation_data heap = { .len = SIZE,
						 .fd_flags = O_RDONLY };
	int dev = open("/dev/dma_heap/system", O_RDONLY | O_CLOEXEC);

	if (dev < 0 || ioctl(dev, DMA_HEAP_IOCTL_ALLOC, &heap))
		SKIP(return, "no system heap: %s", strerror(errno));
	EXPECT_EQ(attempt(self->b.fd, heap.fd, 0, SIZE,
			  FABREX_ACCESS_REMOTE_READ, 0), 0);
	EXPECT_EQ(attempt(self->b.fd, heap.fd, 0, SIZE, 0, 0), 0);
	EXPECT_EQ(attempt(self->b.fd, heap.fd, 0, SIZE,
			  FABREX_ACCESS_LOCAL_WRITE, 0), -EACCES);
	EXPECT_EQ(attempt(self->b.fd, heap.fd, 0, SIZE,
			  FABREX_ACCESS_REMOTE_WRITE, 0), -EACCES);
	EXPECT_EQ(attempt(self->b.fd, heap.fd, 0, SIZE,
			  FABREX_ACCESS_REMOTE_ATOMIC, 0), -EACCES);
	close(heap.fd);
	close(dev);
}

/* The region keeps the memory, whoever closes and unmaps what. */
TEST_F(udmabuf, descriptor_closed_early)
{
	struct bench *b = &self->b;
	struct raw_mr mr;

	ASSERT_EQ(import(b->fd, self->fd, 4096, 8192, &mr), 0);
	close(self->fd);
	self->fd = -1;
	ASSERT_EQ(put(b, &mr, 0, 8192), FABREX_WC_OK);
	EXPECT_EQ(raw_differs(self->map + 4096, 8192, 1), -1);
	ASSERT_EQ(munmap(self->map, SIZE), 0);
	self->map = raw_pages(SIZE);
	ASSERT_NE(self->map, NULL);
	ASSERT_EQ(get(b, &mr, 0, 8192), FABREX_WC_OK);
	EXPECT_EQ(raw_differs(b->dst.addr, 8192, 1), -1);
	EXPECT_EQ(raw_destroy(b->fd, mr.id), 0);
}

TEST_F(udmabuf, fork)
{
	struct bench *b = &self->b;
	struct raw_mr mr;
	int status;
	pid_t pid;

	ASSERT_EQ(import(b->fd, self->fd, 0, SIZE, &mr), 0);
	pid = fork();
	ASSERT_GE(pid, 0);
	if (!pid)	/* the rings are shared, so is the file */
		_exit(put(b, &mr, 100, 5000) || close(self->fd) ||
		      raw_differs(self->map + 100, 5000, 1) != -1);
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
	EXPECT_EQ(raw_differs(self->map + 100, 5000, 1), -1);
	/* Our copies of the indices are older than the child's operation. */
	b->q.sq_tail = b->q.ctrl->sq_tail;
	b->q.cq_head = b->q.ctrl->cq_head;
	EXPECT_EQ(usage("dmabuf_bytes"), SIZE);
	EXPECT_EQ(get(b, &mr, 100, 5000), FABREX_WC_OK);
	EXPECT_EQ(raw_destroy(b->fd, mr.id), 0);
}

TEST_F_TIMEOUT(udmabuf, many_of_one, 180)
{
	static struct raw_mr mr[1000];
	struct bench *b = &self->b;

	for (int i = 0; i < 1000; i++)
		ASSERT_EQ(import(b->fd, self->fd, i * 997, 4096 + i, &mr[i]),
			  0);
	EXPECT_EQ(usage("mrs"), self->before.mrs + 1000);
	for (int i = 0; i < 1000; i += 37) {
		EXPECT_EQ(put(b, &mr[i], 0, 4096 + i), FABREX_WC_OK);
		EXPECT_EQ(raw_differs(self->map + i * 997, 4096 + i, 1), -1);
	}
	for (int i = 0; i < 1000; i += 2)
		EXPECT_EQ(raw_destroy(b->fd, mr[i].id), 0);
	EXPECT_EQ(put(b, &mr[37], 0, 4096), FABREX_WC_OK);
	for (int i = 1; i < 1000; i += 2)
		EXPECT_EQ(raw_destroy(b->fd, mr[i].id), 0);
}

struct worker {
	int dev;
	int fd;
	int failed;
};

static void *churn(void *arg)
{
	struct worker *w = arg;

	for (int i = 0; i < 100; i++)
		if (attempt(w->dev, w->fd, i & 1 ? 0 : 12345, SIZE / 2,
			    RAW_ALL, 0))
			w->failed++;
	return NULL;
}

TEST_F_TIMEOUT(udmabuf, threads, 180)
{
	struct worker w[THREADS];
	pthread_t thread[THREADS];

	for (int i = 0; i < THREADS; i++) {
		w[i] = (struct worker){ .dev = self->b.fd, .fd = self->fd };
		ASSERT_EQ(pthread_create(&thread[i], NULL, churn, &w[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		EXPECT_EQ(w[i].failed, 0);
	}
}

/* Nothing moves this memory: its entry stays 0. */
TEST_F(udmabuf, watched)
{
	struct fabrex_watch watch = { .size = sizeof(watch), .entries = 8 };
	struct fabrex_mr_register arg = {
		.size = sizeof(arg), .flags = FABREX_MR_DMABUF | FABREX_MR_WATCH,
		.length = SIZE, .access = RAW_ALL, .fd = self->fd, .watch = 7,
	};
	volatile uint32_t *page;

	ASSERT_EQ(raw_ioctl(self->b.fd, FABREX_IOCTL_WATCH, &watch), 0);
	page = mmap(NULL, watch.out_length, PROT_READ, MAP_SHARED, self->b.fd,
		    watch.out_mmap);
	ASSERT_NE(page, MAP_FAILED);
	ASSERT_EQ(raw_ioctl(self->b.fd, FABREX_IOCTL_MR_REGISTER, &arg), 0);
	ASSERT_EQ(munmap(self->map, SIZE), 0);
	self->map = raw_pages(SIZE);
	EXPECT_EQ(page[7], 0);
	EXPECT_EQ(raw_destroy(self->b.fd, arg.out_id), 0);
	arg.watch = 8;
	EXPECT_EQ(raw_ioctl(self->b.fd, FABREX_IOCTL_MR_REGISTER, &arg),
		  -EINVAL);
	munmap((void *)page, watch.out_length);
}

static void wait_for_zero(struct __test_metadata *_metadata, long bytes)
{
	for (int i = 0; i < RAW_WAIT_MS && usage("dmabuf_bytes") != bytes; i++)
		usleep(1000);
	EXPECT_EQ(usage("dmabuf_bytes"), bytes);
}

/* Killed while operations are in flight. */
TEST_F_TIMEOUT(udmabuf, killed_in_transfer, 180)
{
	uint32_t seed = 11;

	for (int i = 0; i < 20; i++) {
		int ready[2], status;
		pid_t pid;
		char c;

		ASSERT_EQ(pipe(ready), 0);
		pid = fork();
		ASSERT_GE(pid, 0);
		if (!pid) {
			struct raw_mr mr;
			struct bench b;

			if (bench_open(&b) ||
			    import(b.fd, self->fd, 333, SIZE - 333, &mr) ||
			    write(ready[1], "r", 1) != 1)
				_exit(1);
			for (;;)
				put(&b, &mr, 5, BENCH_SIZE);
		}
		close(ready[1]);
		EXPECT_EQ(read(ready[0], &c, 1), 1);
		usleep(raw_random(&seed) % 20000);
		kill(pid, SIGKILL);
		ASSERT_EQ(waitpid(pid, &status, 0), pid);
		EXPECT_TRUE(WIFSIGNALED(status));
		close(ready[0]);
	}
	wait_for_zero(_metadata, self->bytes);
}

/* Killed in the midst of a registration. */
TEST_F_TIMEOUT(udmabuf, killed_in_registration, 180)
{
	uint32_t seed = 12;

	for (int i = 0; i < 40; i++) {
		int ready[2], status;
		pid_t pid;
		char c;

		ASSERT_EQ(pipe(ready), 0);
		pid = fork();
		ASSERT_GE(pid, 0);
		if (!pid) {
			int dev = raw_open();

			if (dev < 0 || write(ready[1], "r", 1) != 1)
				_exit(1);
			for (;;)
				attempt(dev, self->fd, 1, SIZE - 1, RAW_ALL,
					FABREX_MR_PIN);
		}
		close(ready[1]);
		EXPECT_EQ(read(ready[0], &c, 1), 1);
		usleep(raw_random(&seed) % 15000);
		kill(pid, SIGKILL);
		ASSERT_EQ(waitpid(pid, &status, 0), pid);
		EXPECT_TRUE(WIFSIGNALED(status));
		close(ready[0]);
	}
	wait_for_zero(_metadata, self->bytes);
}

TEST_HARNESS_MAIN
