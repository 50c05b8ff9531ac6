// SPDX-License-Identifier: GPL-2.0-only
/*
 * The extensible-structure rules, for every ioctl alike: sizes, tails, unknown
 * flags, reserved fields, pointers. What is inside is tested by values.c.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "bench.h"

#define BIG	8192	/* room for any structure and a tail */

struct reserved {
	size_t offset;
	size_t size;
};

struct call {
	const char *name;
	unsigned int cmd;
	size_t size;
	size_t flags;		/* offset, 0: has none */
	uint32_t known;		/* flags that exist */
	struct reserved reserved[3];
	void (*fill)(struct bench *b, void *arg);
	size_t id;		/* offset of an id to destroy after success */
};

#define OFF(type, member) { offsetof(struct type, member), \
			    sizeof(((struct type *)0)->member) }

static void fill_nothing(struct bench *b, void *arg)
{
}

static void fill_peer(struct bench *b, void *arg)
{
	struct fabrex_peer_query *p = arg;

	p->peer = b->self;
}

static void fill_mr(struct bench *b, void *arg)
{
	struct fabrex_mr_register *p = arg;

	p->addr = (uintptr_t)b->src.addr;
	p->length = 4096;
	p->access = FABREX_ACCESS_REMOTE_READ;
}

static void fill_queue(struct bench *b, void *arg)
{
	struct fabrex_queue_create *p = arg;

	p->sq_entries = 8;
	p->cq_entries = 8;
	p->eventfd = -1;
}

static void fill_window(struct bench *b, void *arg)
{
	struct fabrex_window_create *p = arg;

	p->peer = b->self;
	p->access = FABREX_ACCESS_REMOTE_READ;
	p->rkey = b->dst.key;
	p->length = 4096;
}

static void fill_destroy(struct bench *b, void *arg)
{
	struct fabrex_destroy *p = arg;
	struct raw_mr mr;

	if (!raw_mr_at(b->fd, b->src.addr, 4096, 0, &mr))
		p->id = mr.id;
}

static void fill_resolve(struct bench *b, void *arg)
{
	struct fabrex_resolve *p = arg;

	p->peer = b->self;
	p->service = 77777;
}

static void fill_watch(struct bench *b, void *arg)
{
	struct fabrex_watch *p = arg;

	p->entries = 16;
}

static const struct call calls[] = {
	{ "PORT_QUERY", FABREX_IOCTL_PORT_QUERY,
	  sizeof(struct fabrex_port_query),
	  offsetof(struct fabrex_port_query, flags), 0,
	  {}, fill_nothing },
	{ "PEER_QUERY", FABREX_IOCTL_PEER_QUERY,
	  sizeof(struct fabrex_peer_query),
	  offsetof(struct fabrex_peer_query, flags),
	  FABREX_PEER_BY_NAME | FABREX_PEER_NEXT,
	  { OFF(fabrex_peer_query, __reserved), OFF(fabrex_peer_query, name) },
	  fill_peer },
	{ "MR_REGISTER", FABREX_IOCTL_MR_REGISTER,
	  sizeof(struct fabrex_mr_register),
	  offsetof(struct fabrex_mr_register, flags),
	  FABREX_MR_PEERS | FABREX_MR_DMABUF | FABREX_MR_WATCH,
	  { OFF(fabrex_mr_register, fd), OFF(fabrex_mr_register, watch),
	    OFF(fabrex_mr_register, __reserved) }, fill_mr,
	  offsetof(struct fabrex_mr_register, out_id) },
	{ "QUEUE_CREATE", FABREX_IOCTL_QUEUE_CREATE,
	  sizeof(struct fabrex_queue_create),
	  offsetof(struct fabrex_queue_create, flags), 0,
	  { OFF(fabrex_queue_create, __reserved) }, fill_queue,
	  offsetof(struct fabrex_queue_create, out_id) },
	{ "WINDOW_CREATE", FABREX_IOCTL_WINDOW_CREATE,
	  sizeof(struct fabrex_window_create),
	  offsetof(struct fabrex_window_create, flags), 0,
	  { OFF(fabrex_window_create, __reserved) }, fill_window,
	  offsetof(struct fabrex_window_create, out_id) },
	{ "DESTROY", FABREX_IOCTL_DESTROY, sizeof(struct fabrex_destroy),
	  0, 0, {}, fill_destroy },
	{ "COUNTERS", FABREX_IOCTL_COUNTERS, sizeof(struct fabrex_counters),
	  0, 0, {}, fill_nothing },
	{ "RESOLVE", FABREX_IOCTL_RESOLVE, sizeof(struct fabrex_resolve),
	  0, 0, { OFF(fabrex_resolve, __reserved) }, fill_resolve },
	{ "WATCH", FABREX_IOCTL_WATCH, sizeof(struct fabrex_watch),
	  offsetof(struct fabrex_watch, flags), 0,
	  { OFF(fabrex_watch, __reserved) }, fill_watch },
	{ "P2P_QUERY", FABREX_IOCTL_P2P_QUERY, sizeof(struct fabrex_p2p_query),
	  offsetof(struct fabrex_p2p_query, flags), 0, {},
	  fill_nothing },	/* of the host bridge, 0000:00:00.0 */
};

#define CALLS	(sizeof(calls) / sizeof(calls[0]))

FIXTURE(abi) {
	struct bench b;
	struct raw_queue service;
	uint8_t *arg;
};

FIXTURE_SETUP(abi)
{
	ASSERT_EQ(bench_open(&self->b), 0);
	memset(&self->service, 0, sizeof(self->service));
	self->service.info.sq_entries = 8;
	self->service.info.cq_entries = 8;
	self->service.info.eventfd = -1;
	self->service.info.service = 77777;
	ASSERT_EQ(raw_queue_create(self->b.fd, &self->service), 0);
	self->arg = raw_pages(BIG);
	ASSERT_NE(self->arg, NULL);
}

FIXTURE_TEARDOWN(abi)
{
	raw_queue_free(&self->service);
	bench_close(&self->b);
	munmap(self->arg, BIG);
}

/* A call that is right in all but what the test changes. */
static void good(struct bench *b, const struct call *c, void *arg)
{
	memset(arg, 0, BIG);
	c->fill(b, arg);
	*(uint32_t *)arg = c->size;
}

/* There is one watch page for each open file: each time another one. */
static int issue_watch(void *arg)
{
	int fd = raw_open(), err = raw_ioctl(fd, FABREX_IOCTL_WATCH, arg);

	close(fd);
	return err;
}

static int issue(struct bench *b, const struct call *c, void *arg)
{
	int err = c->cmd == FABREX_IOCTL_WATCH ? issue_watch(arg) :
		  raw_ioctl(b->fd, c->cmd, arg);

	if (!err && c->id)
		raw_destroy(b->fd, *(uint32_t *)((uint8_t *)arg + c->id));
	return err;
}

#define EACH(c) \
	for (const struct call *c = calls; c < calls + CALLS; c++)

TEST_F(abi, good_calls_succeed)
{
	EACH(c) {
		good(&self->b, c, self->arg);
		EXPECT_EQ(issue(&self->b, c, self->arg), 0)
			TH_LOG("%s", c->name);
	}
}

TEST_F(abi, too_small)
{
	EACH(c) {
		for (uint32_t size = 0; size < c->size; size++) {
			good(&self->b, c, self->arg);
			*(uint32_t *)self->arg = size;
			EXPECT_EQ(issue(&self->b, c, self->arg), -EINVAL)
				TH_LOG("%s: size %u", c->name, size);
		}
	}
}

TEST_F(abi, longer_with_zero_tail)
{
	EACH(c) {
		for (uint32_t more = 1; more <= 64; more += 7) {
			good(&self->b, c, self->arg);
			*(uint32_t *)self->arg = c->size + more;
			EXPECT_EQ(issue(&self->b, c, self->arg), 0)
				TH_LOG("%s: %u more", c->name, more);
		}
	}
}

TEST_F(abi, longer_with_other_tail)
{
	EACH(c) {
		for (uint32_t at = 0; at < 64; at += 9) {
			good(&self->b, c, self->arg);
			*(uint32_t *)self->arg = c->size + 64;
			self->arg[c->size + at] = 1;
			EXPECT_EQ(issue(&self->b, c, self->arg), -E2BIG)
				TH_LOG("%s: tail byte %u", c->name, at);
		}
	}
}

TEST_F(abi, absurd_size)
{
	EACH(c) {
		int err;

		good(&self->b, c, self->arg);
		*(uint32_t *)self->arg = 0xffffffffu;
		err = issue(&self->b, c, self->arg);
		EXPECT_TRUE(err == -E2BIG || err == -EFAULT)
			TH_LOG("%s: %d", c->name, err);
	}
}

TEST_F(abi, unknown_flags)
{
	EACH(c) {
		for (int bit = 0; c->flags && bit < 32; bit++) {
			if (c->known & 1u << bit)
				continue;
			good(&self->b, c, self->arg);
			*(uint32_t *)(self->arg + c->flags) = 1u << bit;
			EXPECT_EQ(issue(&self->b, c, self->arg), -EINVAL)
				TH_LOG("%s: flag bit %d", c->name, bit);
		}
	}
}

TEST_F(abi, reserved_fields)
{
	EACH(c) {
		for (int i = 0; i < 3; i++) {
			const struct reserved *r = &c->reserved[i];

			for (size_t at = 0; at < r->size; at++) {
				good(&self->b, c, self->arg);
				self->arg[r->offset + at] = 0x80;
				EXPECT_EQ(issue(&self->b, c, self->arg),
					  -EINVAL)
					TH_LOG("%s: byte %zu", c->name,
					       r->offset + at);
			}
		}
	}
}

TEST_F(abi, unknown_numbers)
{
	for (unsigned int nr = 0; nr < 256; nr++) {
		if (nr <= FABREX_CMD_P2P_QUERY)
			continue;
		EXPECT_EQ(raw_ioctl(self->b.fd, _IO(FABREX_TYPE, nr),
				    self->arg), -ENOTTY);
	}
	EXPECT_EQ(raw_ioctl(self->b.fd, _IO(0x12, 1), self->arg), -ENOTTY);
	EXPECT_EQ(raw_ioctl(self->b.fd, _IOWR(FABREX_TYPE, 0, uint64_t),
			    self->arg), -ENOTTY);
	EXPECT_EQ(raw_ioctl(self->b.fd, _IOR(FABREX_TYPE, 5, uint32_t),
			    self->arg), -ENOTTY);
}

TEST_F(abi, bad_pointers)
{
	void *none = mmap(NULL, RAW_PAGE, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(none, MAP_FAILED);
	EACH(c) {
		EXPECT_EQ(raw_ioctl(self->b.fd, c->cmd, NULL), -EFAULT)
			TH_LOG("%s: NULL", c->name);
		EXPECT_EQ(raw_ioctl(self->b.fd, c->cmd, none), -EFAULT)
			TH_LOG("%s: PROT_NONE", c->name);
		EXPECT_EQ(raw_ioctl(self->b.fd, c->cmd, (void *)-4096l),
			  -EFAULT)
			TH_LOG("%s: kernel address", c->name);
	}
	munmap(none, RAW_PAGE);
}

/* The structure begins on a page and ends on one that is not there. */
TEST_F(abi, straddles_a_hole)
{
	uint8_t *two = raw_pages(2 * RAW_PAGE);

	ASSERT_NE(two, NULL);
	ASSERT_EQ(mprotect(two + RAW_PAGE, RAW_PAGE, PROT_NONE), 0);
	EACH(c) {
		uint8_t *at = two + RAW_PAGE - 4;

		*(uint32_t *)at = c->size;
		EXPECT_EQ(raw_ioctl(self->b.fd, c->cmd, at), -EFAULT)
			TH_LOG("%s: straddling", c->name);
	}
	munmap(two, 2 * RAW_PAGE);
}

/* Results cannot be stored: an error, and no object is left behind. */
TEST_F(abi, result_not_writable)
{
	struct bench_count before, after;

	ASSERT_EQ(bench_count(&before), 0);
	EACH(c) {
		int expected = c->cmd == FABREX_IOCTL_DESTROY ? 0 : -EFAULT;

		good(&self->b, c, self->arg);
		ASSERT_EQ(mprotect(self->arg, BIG, PROT_READ), 0);
		EXPECT_EQ(raw_ioctl(self->b.fd, c->cmd, self->arg), expected)
			TH_LOG("%s: read-only structure", c->name);
		ASSERT_EQ(mprotect(self->arg, BIG, PROT_READ | PROT_WRITE), 0);
	}
	ASSERT_EQ(bench_count(&after), 0);
	EXPECT_EQ(before.queues, after.queues);
	EXPECT_EQ(before.mrs, after.mrs);
	EXPECT_EQ(before.windows, after.windows);
	EXPECT_EQ(before.pinned, after.pinned);
}

/* A file open for reading only can ask, and make or destroy nothing. */
TEST_F(abi, read_only_file)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", self->b.fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ASSERT_GE(fd, 0);
	EACH(c) {
		int asks = c->cmd == FABREX_IOCTL_PORT_QUERY ||
			   c->cmd == FABREX_IOCTL_PEER_QUERY ||
			   c->cmd == FABREX_IOCTL_COUNTERS ||
			   c->cmd == FABREX_IOCTL_P2P_QUERY;

		good(&self->b, c, self->arg);
		EXPECT_EQ(raw_ioctl(fd, c->cmd, self->arg), asks ? 0 : -EBADF)
			TH_LOG("%s", c->name);
	}
	close(fd);
}

/* What user space leaves in out_ members does not matter. */
TEST_F(abi, garbage_in_results)
{
	struct fabrex_queue_create q = { .size = sizeof(q), .sq_entries = 8,
					 .cq_entries = 8, .eventfd = -1 };
	struct fabrex_mr_register mr = { .size = sizeof(mr),
		.addr = (uintptr_t)self->b.src.addr, .length = 100 };

	memset(&q.out_id, 0xee, 12);
	memset(&q.out_ring_mmap, 0xee, sizeof(q) -
	       offsetof(struct fabrex_queue_create, out_ring_mmap));
	ASSERT_EQ(raw_ioctl(self->b.fd, FABREX_IOCTL_QUEUE_CREATE, &q), 0);
	EXPECT_EQ(raw_destroy(self->b.fd, q.out_id), 0);
	memset(&mr.out_key, 0xee, 12);
	ASSERT_EQ(raw_ioctl(self->b.fd, FABREX_IOCTL_MR_REGISTER, &mr), 0);
	EXPECT_EQ(raw_destroy(self->b.fd, mr.out_id), 0);
}

TEST_HARNESS_MAIN
