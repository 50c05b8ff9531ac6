// SPDX-License-Identifier: GPL-2.0-only
/* Windows: loads and stores reach the region, within rights, until revoked. */

#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "bench.h"

#define RW (FABREX_ACCESS_REMOTE_READ | FABREX_ACCESS_REMOTE_WRITE)

struct window {
	struct fabrex_window_create info;
	volatile uint8_t *at;
};

FIXTURE(window) {
	struct bench b;
};

FIXTURE_SETUP(window)
{
	ASSERT_EQ(bench_open(&self->b), 0);
}

FIXTURE_TEARDOWN(window)
{
	bench_close(&self->b);
}

static int aim(struct bench *b, uint64_t rkey, uint64_t offset,
	       uint64_t length, uint32_t access, struct window *w)
{
	int prot = (access & FABREX_ACCESS_REMOTE_READ ? PROT_READ : 0) |
		   (access & FABREX_ACCESS_REMOTE_WRITE ? PROT_WRITE : 0);
	int err;

	memset(w, 0, sizeof(*w));
	w->info.size = sizeof(w->info);
	w->info.peer = b->self;
	w->info.access = access;
	w->info.rkey = rkey;
	w->info.offset = offset;
	w->info.length = length;
	err = raw_ioctl(b->fd, FABREX_IOCTL_WINDOW_CREATE, &w->info);
	if (err)
		return err;
	w->at = mmap64(NULL, w->info.out_length, prot, MAP_SHARED, b->fd,
		       w->info.out_mmap);
	return w->at == MAP_FAILED ? -errno : 0;
}

static int drop(struct bench *b, struct window *w)
{
	munmap((void *)w->at, w->info.out_length);
	return raw_destroy(b->fd, w->info.out_id);
}

/* A load through a window pushes earlier stores to the peer. */
static void flush(struct window *w)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	(void)w->at[0];
}

TEST_F(window, stores_arrive)
{
	struct bench *b = &self->b;
	struct window w;

	ASSERT_EQ(aim(b, b->dst.key, 4096, 8192, RW, &w), 0);
	*(volatile uint8_t *)(w.at + 1) = 0x11;
	*(volatile uint16_t *)(w.at + 2) = 0x2222;
	*(volatile uint32_t *)(w.at + 4) = 0x33333333;
	*(volatile uint64_t *)(w.at + 8) = 0x4444444444444444ull;
	*(volatile uint32_t *)(w.at + 8188) = 0x55555555;
	flush(&w);
	EXPECT_EQ(b->dst.addr[4096], BENCH_BLANK);
	EXPECT_EQ(b->dst.addr[4097], 0x11);
	EXPECT_EQ(*(uint16_t *)(b->dst.addr + 4098), 0x2222);
	EXPECT_EQ(*(uint32_t *)(b->dst.addr + 4100), 0x33333333);
	EXPECT_EQ(*(uint64_t *)(b->dst.addr + 4104), 0x4444444444444444ull);
	EXPECT_EQ(*(uint32_t *)(b->dst.addr + 12284), 0x55555555);
	EXPECT_TRUE(raw_all(b->dst.addr, 4096, BENCH_BLANK));
	EXPECT_TRUE(raw_all(b->dst.addr + 12288, BENCH_SIZE - 12288,
			    BENCH_BLANK));
	EXPECT_EQ(drop(b, &w), 0);
}

TEST_F(window, loads_return)
{
	struct bench *b = &self->b;
	struct window w;

	ASSERT_EQ(aim(b, b->src.key, 8192, 4096, FABREX_ACCESS_REMOTE_READ,
		      &w), 0);
	for (int i = 0; i < 4096; i += 97)
		ASSERT_EQ(w.at[i], b->src.addr[8192 + i]);
	EXPECT_EQ(*(volatile uint64_t *)(w.at + 16),
		  *(uint64_t *)(b->src.addr + 8208));
	EXPECT_EQ(drop(b, &w), 0);
}

TEST_F(window, rights_of_the_region)
{
	struct bench *b = &self->b;
	struct raw_mr read, write;
	struct window w;

	ASSERT_EQ(raw_mr_at(b->fd, b->dst.addr, 4096,
			    FABREX_ACCESS_REMOTE_READ, &read), 0);
	ASSERT_EQ(raw_mr_at(b->fd, b->dst.addr, 4096,
			    FABREX_ACCESS_REMOTE_WRITE, &write), 0);
	EXPECT_EQ(aim(b, read.key, 0, 4096, RW, &w), -EACCES);
	EXPECT_EQ(aim(b, write.key, 0, 4096, RW, &w), -EACCES);
	EXPECT_EQ(aim(b, read.key, 0, 4096, FABREX_ACCESS_REMOTE_WRITE, &w),
		  -EACCES);
	ASSERT_EQ(aim(b, read.key, 0, 4096, FABREX_ACCESS_REMOTE_READ, &w),
		  0);
	EXPECT_EQ(w.at[0], BENCH_BLANK);
	EXPECT_EQ(drop(b, &w), 0);
	EXPECT_EQ(raw_destroy(b->fd, read.id), 0);
	EXPECT_EQ(raw_destroy(b->fd, write.id), 0);
}

static int window_fault(struct bench *b, uint32_t *id, uint32_t *error)
{
	struct pollfd p = { .fd = b->fd, .events = POLLIN };
	struct fabrex_event ev;

	if (poll(&p, 1, RAW_WAIT_MS) != 1 ||
	    read(b->fd, &ev, sizeof(ev)) != sizeof(ev) ||
	    ev.type != FABREX_EVENT_WINDOW_FAULT)
		return -1;
	*id = ev.id;
	*error = ev.error;
	return 0;
}

/* The key is revoked: loads return all ones, stores go nowhere, one event. */
TEST_F(window, revoked)
{
	struct bench *b = &self->b;
	uint8_t *mem = raw_pages(RAW_PAGE);
	struct pollfd p = { .fd = b->fd, .events = POLLIN };
	uint32_t id = 0, error = 0;
	struct raw_mr mr;
	struct window w;

	ASSERT_NE(mem, NULL);
	ASSERT_EQ(raw_mr_at(b->fd, mem, RAW_PAGE, RAW_ALL, &mr), 0);
	ASSERT_EQ(aim(b, mr.key, 0, RAW_PAGE, RW, &w), 0);
	*(volatile uint32_t *)w.at = 7;
	flush(&w);
	ASSERT_EQ(*(uint32_t *)mem, 7);
	ASSERT_EQ(raw_destroy(b->fd, mr.id), 0);
	*(volatile uint32_t *)w.at = 8;
	EXPECT_EQ(*(volatile uint32_t *)w.at, 0xffffffff);
	EXPECT_EQ(*(uint32_t *)mem, 7);
	ASSERT_EQ(window_fault(b, &id, &error), 0);
	EXPECT_EQ(id, w.info.out_id);
	EXPECT_EQ(error, FABREX_WC_RKEY);
	for (int i = 0; i < 100; i++)
		EXPECT_EQ(w.at[i], 0xff);
	EXPECT_EQ(poll(&p, 1, 50), 0);	/* told once */
	EXPECT_EQ(drop(b, &w), 0);
	munmap(mem, RAW_PAGE);
}

/* The window itself is destroyed while it is mapped. */
TEST_F(window, destroyed_while_mapped)
{
	struct bench *b = &self->b;
	struct window w, next;

	ASSERT_EQ(aim(b, b->dst.key, 0, 4096, RW, &w), 0);
	ASSERT_EQ(raw_destroy(b->fd, w.info.out_id), 0);
	ASSERT_EQ(aim(b, b->dst.key, 8192, 4096, RW, &next), 0);
	*(volatile uint32_t *)w.at = 0x12345678;
	(void)*(volatile uint32_t *)w.at;
	flush(&next);
	EXPECT_TRUE(bench_untouched(b));
	munmap((void *)w.at, w.info.out_length);
	EXPECT_EQ(drop(b, &next), 0);
}

TEST_F(window, past_the_end)
{
	struct bench *b = &self->b;
	struct window w;

	ASSERT_EQ(aim(b, b->dst.key, 0, 100, RW, &w), 0);
	*(volatile uint32_t *)(w.at + 200) = 0x99999999;
	EXPECT_EQ(*(volatile uint32_t *)(w.at + 200), 0xffffffff);
	*(volatile uint32_t *)(w.at + 96) = 0x77777777;
	flush(&w);
	EXPECT_EQ(*(uint32_t *)(b->dst.addr + 96), 0x77777777);
	EXPECT_TRUE(raw_all(b->dst.addr + 100, 1000, BENCH_BLANK));
	EXPECT_EQ(drop(b, &w), 0);
}

/* The aperture runs out with ENOSPC or a quota, and is whole again after. */
TEST_F(window, exhaustion)
{
	struct bench *b = &self->b;
	struct fabrex_window_create w;
	uint32_t ids[1024];
	int n[2], err = 0;

	for (int round = 0; round < 2; round++) {
		for (n[round] = 0; n[round] < 1024; n[round]++) {
			memset(&w, 0, sizeof(w));
			w.size = sizeof(w);
			w.peer = b->self;
			w.access = FABREX_ACCESS_REMOTE_READ;
			w.rkey = b->dst.key;
			w.length = 4096;
			err = raw_ioctl(b->fd, FABREX_IOCTL_WINDOW_CREATE, &w);
			if (err)
				break;
			ids[n[round]] = w.out_id;
		}
		EXPECT_TRUE(err == -ENOSPC || err == -EDQUOT);
		for (int i = 0; i < n[round]; i++)
			EXPECT_EQ(raw_destroy(b->fd, ids[i]), 0);
	}
	EXPECT_GT(n[0], 0);
	EXPECT_EQ(n[0], n[1]);
}

TEST_F(window, several_slots)
{
	struct bench *b = &self->b;
	uint64_t slot = b->port.out_window_slot_size;
	struct raw_mr big;
	struct window w;

	ASSERT_LE(slot, 16u << 20);
	ASSERT_EQ(raw_mr(b->fd, slot + 8192, RAW_ALL, &big), 0);
	ASSERT_EQ(aim(b, big.key, 4096, slot + 4096, RW, &w), 0);
	*(volatile uint64_t *)(w.at + slot - 8) = 1;
	*(volatile uint64_t *)(w.at + slot) = 2;
	flush(&w);
	EXPECT_EQ(*(uint64_t *)(big.addr + 4096 + slot - 8), 1);
	EXPECT_EQ(*(uint64_t *)(big.addr + 4096 + slot), 2);
	EXPECT_EQ(drop(b, &w), 0);
	EXPECT_EQ(raw_mr_free(&big), 0);
}

TEST_HARNESS_MAIN
