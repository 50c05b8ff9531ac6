// SPDX-License-Identifier: GPL-2.0-only
/* mmap cookies: of this file, of this object, of this size, and no others. */

#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "bench.h"

FIXTURE(mmap) {
	struct bench b;
	int other;
};

FIXTURE_SETUP(mmap)
{
	ASSERT_EQ(bench_open(&self->b), 0);
	self->other = raw_open();
	ASSERT_GE(self->other, 0);
}

FIXTURE_TEARDOWN(mmap)
{
	close(self->other);
	bench_close(&self->b);
}

/* 0, or -errno; whatever was mapped is unmapped. */
static int map(int fd, size_t length, int prot, int flags, uint64_t offset)
{
	void *p = mmap64(NULL, length, prot, flags, fd, offset);

	if (p == MAP_FAILED)
		return -errno;
	munmap(p, length);
	return 0;
}

#define RW (PROT_READ | PROT_WRITE)

TEST_F(mmap, whole_objects)
{
	struct fabrex_queue_create *i = &self->b.q.info;

	EXPECT_EQ(map(self->b.fd, i->out_ring_size, RW, MAP_SHARED,
		      i->out_ring_mmap), 0);
	EXPECT_EQ(map(self->b.fd, RAW_PAGE, PROT_WRITE, MAP_SHARED,
		      i->out_db_mmap), 0);
	EXPECT_EQ(map(self->b.fd, RAW_PAGE, RW, MAP_SHARED, i->out_db_mmap),
		  0);
}

TEST_F(mmap, wrong_size)
{
	struct fabrex_queue_create *i = &self->b.q.info;

	EXPECT_EQ(map(self->b.fd, i->out_ring_size + RAW_PAGE, RW, MAP_SHARED,
		      i->out_ring_mmap), -EINVAL);
	EXPECT_EQ(map(self->b.fd, 2 * RAW_PAGE, RW, MAP_SHARED,
		      i->out_db_mmap), -EINVAL);
	EXPECT_EQ(map(self->b.fd, RAW_PAGE, RW, MAP_SHARED,
		      i->out_db_mmap + RAW_PAGE), -EINVAL);
	EXPECT_EQ(map(self->b.fd, i->out_ring_size, RW, MAP_SHARED,
		      i->out_ring_mmap + RAW_PAGE), -EINVAL);
}

TEST_F(mmap, wrong_kind)
{
	struct fabrex_queue_create *i = &self->b.q.info;

	EXPECT_EQ(map(self->b.fd, i->out_ring_size, RW, MAP_PRIVATE,
		      i->out_ring_mmap), -EINVAL);
	EXPECT_EQ(map(self->b.fd, RAW_PAGE, PROT_WRITE, MAP_PRIVATE,
		      i->out_db_mmap), -EINVAL);
	EXPECT_LT(map(self->b.fd, RAW_PAGE, PROT_WRITE | PROT_EXEC, MAP_SHARED,
		      i->out_db_mmap), 0);
	EXPECT_LT(map(self->b.fd, i->out_ring_size, RW | PROT_EXEC, MAP_SHARED,
		      i->out_ring_mmap), 0);
	EXPECT_NE(mprotect((void *)self->b.q.db, RAW_PAGE,
			   PROT_WRITE | PROT_EXEC), 0);
}

TEST_F(mmap, cookies_of_another_file)
{
	struct fabrex_queue_create *i = &self->b.q.info;

	EXPECT_EQ(map(self->other, i->out_ring_size, RW, MAP_SHARED,
		      i->out_ring_mmap), -EINVAL);
	EXPECT_EQ(map(self->other, RAW_PAGE, PROT_WRITE, MAP_SHARED,
		      i->out_db_mmap), -EINVAL);
}

TEST_F(mmap, guessed_cookies)
{
	uint32_t seed = 20;

	for (uint64_t page = 0; page < 4096; page++)
		ASSERT_NE(map(self->other, RAW_PAGE, RW, MAP_SHARED,
			      page * RAW_PAGE), 0);
	for (int i = 0; i < 4096; i++) {
		uint64_t at = (uint64_t)raw_random(&seed) << 32 |
			      raw_random(&seed);

		ASSERT_NE(map(self->other, RAW_PAGE, RW, MAP_SHARED,
			      (at >> 1) & ~4095ull), 0);
	}
}

TEST_F(mmap, cookies_are_not_reused)
{
	uint64_t last_ring = 0, last_db = 0;

	for (int i = 0; i < 50; i++) {
		struct raw_queue q;

		ASSERT_EQ(raw_queue(self->other, 8, 8, 0, &q), 0);
		EXPECT_NE(q.info.out_ring_mmap, last_ring);
		EXPECT_NE(q.info.out_db_mmap, last_db);
		EXPECT_NE(q.info.out_ring_mmap, q.info.out_db_mmap);
		last_ring = q.info.out_ring_mmap;
		last_db = q.info.out_db_mmap;
		ASSERT_EQ(raw_queue_free(&q), 0);
		EXPECT_EQ(map(self->other, q.info.out_ring_size, RW,
			      MAP_SHARED, last_ring), -EINVAL);
		EXPECT_EQ(map(self->other, RAW_PAGE, PROT_WRITE, MAP_SHARED,
			      last_db), -EINVAL);
	}
}

/* Mappings of a destroyed queue stay safe to touch and reach nothing. */
TEST_F(mmap, destroyed_queue_is_harmless)
{
	struct bench *b = &self->b;
	struct fabrex_sqe sqe;
	struct raw_queue q;

	ASSERT_EQ(raw_queue(b->fd, 8, 8, 0, &q), 0);
	ASSERT_EQ(raw_destroy(b->fd, q.info.out_id), 0);
	EXPECT_EQ(q.ctrl->state, FABREX_QUEUE_DEAD);
	sqe = bench_write(b, 0, 0, 64);
	raw_put(&q, &sqe);
	q.ctrl->sq_tail = q.sq_tail;
	q.db[FABREX_DB_SQ / 4] = q.sq_tail;
	q.db[FABREX_DB_ARM / 4] = 0;
	usleep(20000);
	EXPECT_TRUE(bench_untouched(b));
	EXPECT_EQ(q.ctrl->sq_head, 0);
	munmap(q.ring, q.info.out_ring_size);
	munmap((void *)q.db, RAW_PAGE);
}

/* The next owner of a doorbell page is out of reach of the last one's map. */
TEST_F(mmap, old_doorbell_does_not_ring)
{
	struct fabrex_sqe nop = { .opcode = FABREX_OP_NOP };
	struct raw_queue old, next;

	ASSERT_EQ(raw_queue(self->b.fd, 8, 8, 0, &old), 0);
	ASSERT_EQ(raw_destroy(self->b.fd, old.info.out_id), 0);
	ASSERT_EQ(raw_queue(self->other, 8, 8, 0, &next), 0);
	raw_put(&next, &nop);
	old.db[FABREX_DB_SQ / 4] = 1;
	usleep(20000);
	EXPECT_EQ(next.ctrl->sq_head, 0);
	raw_submit(&next);
	EXPECT_TRUE(raw_drain(&next, RAW_WAIT_MS));
	munmap(old.ring, old.info.out_ring_size);
	munmap((void *)old.db, RAW_PAGE);
	raw_queue_free(&next);
}

TEST_F(mmap, cannot_grow)
{
	void *p = mremap((void *)self->b.q.db, RAW_PAGE, 2 * RAW_PAGE,
			 MREMAP_MAYMOVE);

	EXPECT_EQ(p, MAP_FAILED);
	p = mremap(self->b.q.ring, self->b.q.info.out_ring_size,
		   self->b.q.info.out_ring_size + RAW_PAGE, MREMAP_MAYMOVE);
	EXPECT_EQ(p, MAP_FAILED);
}

TEST_F(mmap, window_rights)
{
	struct fabrex_window_create w = { .size = sizeof(w),
		.peer = self->b.self, .access = FABREX_ACCESS_REMOTE_READ,
		.rkey = self->b.dst.key, .length = 5000 };

	ASSERT_EQ(raw_ioctl(self->b.fd, FABREX_IOCTL_WINDOW_CREATE, &w), 0);
	EXPECT_EQ(w.out_length, 2 * RAW_PAGE);
	EXPECT_EQ(map(self->b.fd, w.out_length, PROT_READ, MAP_SHARED,
		      w.out_mmap), 0);
	EXPECT_LT(map(self->b.fd, w.out_length, RW, MAP_SHARED, w.out_mmap),
		  0);
	EXPECT_LT(map(self->b.fd, w.out_length, PROT_WRITE, MAP_SHARED,
		      w.out_mmap), 0);
	EXPECT_EQ(map(self->b.fd, w.out_length + RAW_PAGE, PROT_READ,
		      MAP_SHARED, w.out_mmap), -EINVAL);
	EXPECT_EQ(map(self->other, w.out_length, PROT_READ, MAP_SHARED,
		      w.out_mmap), -EINVAL);
	EXPECT_EQ(raw_destroy(self->b.fd, w.out_id), 0);
	EXPECT_EQ(map(self->b.fd, w.out_length, PROT_READ, MAP_SHARED,
		      w.out_mmap), -EINVAL);
}

TEST_F(mmap, read_only_map_cannot_become_writable)
{
	struct fabrex_window_create w = { .size = sizeof(w),
		.peer = self->b.self, .access = FABREX_ACCESS_REMOTE_READ,
		.rkey = self->b.dst.key, .length = RAW_PAGE };
	void *p;

	ASSERT_EQ(raw_ioctl(self->b.fd, FABREX_IOCTL_WINDOW_CREATE, &w), 0);
	p = mmap64(NULL, RAW_PAGE, PROT_READ, MAP_SHARED, self->b.fd,
		   w.out_mmap);
	ASSERT_NE(p, MAP_FAILED);
	EXPECT_EQ(mprotect(p, RAW_PAGE, RW), -1);
	munmap(p, RAW_PAGE);
	EXPECT_EQ(raw_destroy(self->b.fd, w.out_id), 0);
}

TEST_HARNESS_MAIN
