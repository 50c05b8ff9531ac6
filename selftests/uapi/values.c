// SPDX-License-Identifier: GPL-2.0-only
/* What is inside the structures: ranges, combinations, and what comes back. */

#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "bench.h"

FIXTURE(values) {
	struct bench b;
};

FIXTURE_SETUP(values)
{
	ASSERT_EQ(bench_open(&self->b), 0);
}

FIXTURE_TEARDOWN(values)
{
	bench_close(&self->b);
}

TEST_F(values, port_query)
{
	struct fabrex_port_query *p = &self->b.port;

	EXPECT_LT(p->out_peer, p->out_max_peers);
	EXPECT_LE(p->out_max_peers, 64 * FABREX_PEER_WORDS_MAX);
	EXPECT_GE(p->out_generation, 1);
	EXPECT_TRUE(p->out_flags & FABREX_PORT_LINK_UP);
	EXPECT_GT(p->out_max_queues, 0);
	EXPECT_GT(p->out_max_mrs, 0);
	EXPECT_GE(p->out_max_sq, FABREX_SQ_MIN);
	EXPECT_LE(p->out_max_sq, FABREX_SQ_MAX);
	EXPECT_LE(p->out_max_cq, FABREX_CQ_MAX);
	EXPECT_LE(p->out_max_cell, FABREX_CELL_MAX);
	EXPECT_GE(p->out_max_transfer, 1u << 20);
	EXPECT_EQ(p->out_page_size, (uint32_t)sysconf(_SC_PAGESIZE));
	for (unsigned int op = FABREX_OP_NOP; op <= FABREX_OP_SEND; op++)
		EXPECT_TRUE(p->out_caps & FABREX_CAP_OP(op));
	EXPECT_FALSE(p->out_caps & FABREX_CAP_OP(FABREX_OP_SEND + 1));
	EXPECT_TRUE(p->out_caps & FABREX_CAP_CHECK);
	EXPECT_TRUE(p->out_caps & FABREX_CAP_SERVICE);
	EXPECT_TRUE(p->out_caps & FABREX_CAP_DMABUF);
	EXPECT_EQ(!!(p->out_caps & FABREX_CAP_WINDOW), !!p->out_max_windows);
	EXPECT_NE(p->out_name[0], 0);
	EXPECT_NE(p->out_host[0], 0);
	EXPECT_NE(p->out_fabric[0], 0);
	EXPECT_STREQ((char *)p->out_driver, "fabrex_draco");
}

TEST_F(values, peer_query)
{
	struct fabrex_peer_query p;
	uint32_t seen = 0;

	ASSERT_EQ(raw_peer(self->b.fd, (char *)self->b.port.out_name, &p), 0);
	EXPECT_EQ(p.out_peer, self->b.self);
	EXPECT_EQ(p.out_state, FABREX_PEER_UP);
	EXPECT_EQ(p.out_generation, self->b.port.out_generation);
	ASSERT_EQ(raw_peer(self->b.fd, (char *)self->b.port.out_host, &p), 0);
	EXPECT_EQ(raw_peer(self->b.fd, "no-such-host", &p), -ENOENT);
	for (uint32_t at = 0; ; at = p.out_peer + 1) {
		memset(&p, 0, sizeof(p));
		p.size = sizeof(p);
		p.flags = FABREX_PEER_NEXT;
		p.peer = at;
		if (raw_ioctl(self->b.fd, FABREX_IOCTL_PEER_QUERY, &p))
			break;
		ASSERT_GE(p.out_peer, at);
		seen++;
	}
	EXPECT_GE(seen, 1);
	EXPECT_LE(seen, self->b.port.out_max_peers);
}

TEST_F(values, peer_query_combinations)
{
	struct fabrex_peer_query p = { .size = sizeof(p),
		.flags = FABREX_PEER_BY_NAME | FABREX_PEER_NEXT };

	p.name[0] = 'a';
	EXPECT_EQ(raw_ioctl(self->b.fd, FABREX_IOCTL_PEER_QUERY, &p), -EINVAL);
	p.flags = FABREX_PEER_BY_NAME;
	memset(p.name, 'x', sizeof(p.name));	/* not terminated */
	EXPECT_EQ(raw_ioctl(self->b.fd, FABREX_IOCTL_PEER_QUERY, &p), -EINVAL);
	memset(&p, 0, sizeof(p));
	p.size = sizeof(p);
	p.peer = 0xffffffff;
	EXPECT_EQ(raw_ioctl(self->b.fd, FABREX_IOCTL_PEER_QUERY, &p), -ENOENT);
}

static int mr_peers(struct bench *b, const void *peers, uint32_t n)
{
	struct fabrex_mr_register arg = {
		.size = sizeof(arg), .flags = FABREX_MR_PEERS,
		.addr = (uintptr_t)b->src.addr, .length = 1,
		.peers = (uintptr_t)peers, .npeers = n,
	};
	int err = raw_ioctl(b->fd, FABREX_IOCTL_MR_REGISTER, &arg);

	if (!err)
		raw_destroy(b->fd, arg.out_id);
	return err;
}

/* As many words as one likes, but only peers that exist. */
TEST_F(values, mr_peers)
{
	static uint64_t words[FABREX_PEER_WORDS_MAX + 1];
	uint32_t max = self->b.port.out_max_peers, n = FABREX_PEER_WORDS_MAX;

	EXPECT_EQ(mr_peers(&self->b, NULL, 0), 0);
	EXPECT_EQ(mr_peers(&self->b, words, 1), 0);
	EXPECT_EQ(mr_peers(&self->b, words, n), 0);
	EXPECT_EQ(mr_peers(&self->b, words, n + 1), -EINVAL);
	EXPECT_EQ(mr_peers(&self->b, words, UINT32_MAX), -EINVAL);
	words[(max - 1) / 64] = 1ull << (max - 1) % 64;
	EXPECT_EQ(mr_peers(&self->b, words, n), 0);
	EXPECT_EQ(mr_peers(&self->b, words, (max - 1) / 64 + 1), 0);
	words[max / 64] = 1ull << max % 64;
	EXPECT_EQ(mr_peers(&self->b, words, n), -EINVAL);
	words[max / 64] = 0;
	words[n - 1] = 1ull << 63;
	EXPECT_EQ(mr_peers(&self->b, words, n), -EINVAL);
	EXPECT_EQ(mr_peers(&self->b, NULL, 1), -EFAULT);
	EXPECT_EQ(mr_peers(&self->b, (void *)-4096l, 4), -EFAULT);
}

static int mr_with(struct bench *b, uint64_t addr, uint64_t length,
		   uint32_t access, uint32_t flags, uint64_t peers0)
{
	struct fabrex_mr_register arg = {
		.size = sizeof(arg), .flags = flags, .addr = addr,
		.length = length, .access = access,
		.peers = peers0 ? (uintptr_t)&peers0 : 0, .npeers = !!peers0,
	};
	int err = raw_ioctl(b->fd, FABREX_IOCTL_MR_REGISTER, &arg);

	if (!err)
		raw_destroy(b->fd, arg.out_id);
	return err;
}

TEST_F(values, mr_ranges)
{
	struct bench *b = &self->b;
	uint64_t at = (uintptr_t)b->src.addr;
	uint8_t *ro = raw_pages(RAW_PAGE);

	EXPECT_EQ(mr_with(b, at, 0, 0, 0, 0), -EINVAL);
	EXPECT_EQ(mr_with(b, at, 1, 0, 0, 0), 0);
	EXPECT_EQ(mr_with(b, at + 4095, 2, RAW_ALL, 0, 0), 0);
	EXPECT_EQ(mr_with(b, at, 1, 1u << 4, 0, 0), -EINVAL);
	EXPECT_EQ(mr_with(b, at, 1, 1u << 31, 0, 0), -EINVAL);
	EXPECT_EQ(mr_with(b, 0, 4096, 0, 0, 0), -EFAULT);
	EXPECT_NE(mr_with(b, at, UINT64_MAX - at + 1, 0, 0, 0), 0);
	EXPECT_NE(mr_with(b, at, UINT64_MAX, 0, 0, 0), 0);
	EXPECT_NE(mr_with(b, UINT64_MAX - 4095, 8192, 0, 0, 0), 0);
	EXPECT_NE(mr_with(b, 0xffff888000000000ull, 4096, 0, 0, 0), 0);
	/* Peers only with the flag. */
	EXPECT_EQ(mr_with(b, at, 1, 0, 0, 1), -EINVAL);
	EXPECT_EQ(mr_with(b, at, 1, 0, FABREX_MR_PEERS, 1), 0);
	/* Memory that the process cannot write gives no write rights. */
	ASSERT_NE(ro, NULL);
	ASSERT_EQ(mprotect(ro, RAW_PAGE, PROT_READ), 0);
	at = (uintptr_t)ro;
	EXPECT_EQ(mr_with(b, at, 1, FABREX_ACCESS_REMOTE_READ, 0, 0), 0);
	EXPECT_EQ(mr_with(b, at, 1, FABREX_ACCESS_LOCAL_WRITE, 0, 0), -EFAULT);
	EXPECT_EQ(mr_with(b, at, 1, FABREX_ACCESS_REMOTE_WRITE, 0, 0), -EFAULT);
	EXPECT_EQ(mr_with(b, at, 1, FABREX_ACCESS_REMOTE_ATOMIC, 0, 0),
		  -EFAULT);
	munmap(ro, RAW_PAGE);
	EXPECT_EQ(mr_with(b, at, 1, 0, 0, 0), -EFAULT);
}

/* A hole in the middle: refused whole, nothing stays pinned. */
TEST_F(values, mr_with_a_hole)
{
	uint8_t *p = raw_pages(16 * RAW_PAGE);
	struct bench_count before, after;

	ASSERT_NE(p, NULL);
	ASSERT_EQ(munmap(p + 8 * RAW_PAGE, RAW_PAGE), 0);
	ASSERT_EQ(bench_count(&before), 0);
	EXPECT_EQ(mr_with(&self->b, (uintptr_t)p, 16 * RAW_PAGE, 0, 0, 0),
		  -EFAULT);
	ASSERT_EQ(bench_count(&after), 0);
	EXPECT_EQ(before.pinned, after.pinned);
	EXPECT_EQ(before.mrs, after.mrs);
	munmap(p, 16 * RAW_PAGE);
}

TEST_F(values, keys_are_random)
{
	uint64_t keys[32];

	for (int i = 0; i < 32; i++) {
		struct raw_mr mr;

		ASSERT_EQ(raw_mr_at(self->b.fd, self->b.src.addr, 64, 0, &mr),
			  0);
		keys[i] = mr.key;
		ASSERT_EQ(raw_destroy(self->b.fd, mr.id), 0);
		EXPECT_NE(mr.key, 0);
		for (int j = 0; j < i; j++)
			EXPECT_NE(keys[j] >> 20, mr.key >> 20);
	}
}

static int queue_with(struct bench *b, uint32_t sq, uint32_t cq, uint32_t rq,
		      uint32_t cell, int eventfd)
{
	struct fabrex_queue_create arg = {
		.size = sizeof(arg), .sq_entries = sq, .cq_entries = cq,
		.rq_entries = rq, .cell_size = cell, .eventfd = eventfd,
	};
	int err = raw_ioctl(b->fd, FABREX_IOCTL_QUEUE_CREATE, &arg);

	if (!err)
		raw_destroy(b->fd, arg.out_id);
	return err;
}

TEST_F(values, queue_ranges)
{
	struct bench *b = &self->b;
	uint32_t most = b->port.out_max_sq;

	EXPECT_EQ(queue_with(b, 8, 8, 0, 0, -1), 0);
	EXPECT_EQ(queue_with(b, 4, 8, 0, 0, -1), -EINVAL);
	EXPECT_EQ(queue_with(b, 0, 8, 0, 0, -1), -EINVAL);
	EXPECT_EQ(queue_with(b, 12, 16, 0, 0, -1), -EINVAL);
	EXPECT_EQ(queue_with(b, 16, 8, 0, 0, -1), -EINVAL);
	EXPECT_EQ(queue_with(b, 16, 24, 0, 0, -1), -EINVAL);
	EXPECT_EQ(queue_with(b, 16, 16, 16, 64, -1), -EINVAL);
	EXPECT_EQ(queue_with(b, 16, 32, 16, 64, -1), 0);
	EXPECT_EQ(queue_with(b, 16, 32, 16, 0, -1), -EINVAL);
	EXPECT_EQ(queue_with(b, 16, 32, 0, 64, -1), -EINVAL);
	EXPECT_EQ(queue_with(b, 16, 32, 16, 32, -1), -EINVAL);
	EXPECT_EQ(queue_with(b, 16, 32, 16, 100, -1), -EINVAL);
	EXPECT_EQ(queue_with(b, 16, 32, 16, 2 * b->port.out_max_cell, -1),
		  -EINVAL);
	EXPECT_EQ(queue_with(b, 2 * most, 4 * most, 0, 0, -1), -EINVAL);
	EXPECT_EQ(queue_with(b, 0x80000000u, 0x80000000u, 0, 0, -1), -EINVAL);
	EXPECT_EQ(queue_with(b, 8, 0x80000000u, 0x80000000u, 64, -1), -EINVAL);
}

TEST_F(values, queue_eventfd)
{
	int efd = eventfd(0, EFD_CLOEXEC);

	ASSERT_GE(efd, 0);
	EXPECT_EQ(queue_with(&self->b, 8, 8, 0, 0, efd), 0);
	EXPECT_EQ(queue_with(&self->b, 8, 8, 0, 0, 9999), -EBADF);
	EXPECT_EQ(queue_with(&self->b, 8, 8, 0, 0, self->b.fd), -EINVAL);
	EXPECT_EQ(queue_with(&self->b, 8, 8, 0, 0, -2), -EINVAL);
	close(efd);
}

TEST_F(values, queue_layout)
{
	struct fabrex_queue_create *i = &self->b.q.info;
	uint64_t sq_end = i->out_sq_offset + 64ull * i->sq_entries;
	uint64_t cq_end = i->out_cq_offset + 32ull * i->cq_entries;
	uint64_t rq_end = i->out_rq_offset + (uint64_t)i->cell_size *
			  i->rq_entries;

	EXPECT_EQ(i->out_ring_size % RAW_PAGE, 0);
	EXPECT_EQ(i->out_ctrl_offset % RAW_PAGE, 0);
	EXPECT_LE(sq_end, i->out_ring_size);
	EXPECT_LE(cq_end, i->out_ring_size);
	EXPECT_LE(rq_end, i->out_ring_size);
	EXPECT_TRUE(sq_end <= i->out_cq_offset || cq_end <= i->out_sq_offset);
	EXPECT_EQ(self->b.q.ctrl->state, FABREX_QUEUE_OK);
	EXPECT_LT(i->out_queue, self->b.port.out_max_queues);
}

TEST_F(values, service)
{
	struct raw_queue q = { .info = { .sq_entries = 8, .cq_entries = 8,
			       .eventfd = -1, .service = 4711 } }, other = q;
	struct fabrex_resolve r;

	EXPECT_EQ(raw_resolve(self->b.fd, self->b.self, 4711, &r), -ENOENT);
	ASSERT_EQ(raw_queue_create(self->b.fd, &q), 0);
	ASSERT_EQ(raw_resolve(self->b.fd, self->b.self, 4711, &r), 0);
	EXPECT_EQ(r.out_queue, q.info.out_queue);
	EXPECT_EQ(r.out_key, q.info.out_key);
	EXPECT_EQ(raw_queue_create(self->b.fd, &other), -EADDRINUSE);
	ASSERT_EQ(raw_queue_free(&q), 0);
	EXPECT_EQ(raw_resolve(self->b.fd, self->b.self, 4711, &r), -ENOENT);
	EXPECT_EQ(raw_resolve(self->b.fd, 0xfffffff, 4711, &r), -EINVAL);
}

static int window_with(struct bench *b, uint32_t peer, uint32_t access,
		       uint64_t rkey, uint64_t offset, uint64_t length)
{
	struct fabrex_window_create arg = {
		.size = sizeof(arg), .peer = peer, .access = access,
		.rkey = rkey, .offset = offset, .length = length,
	};
	int err = raw_ioctl(b->fd, FABREX_IOCTL_WINDOW_CREATE, &arg);

	if (!err)
		raw_destroy(b->fd, arg.out_id);
	return err;
}

TEST_F(values, window_ranges)
{
	struct bench *b = &self->b;
	uint32_t read = FABREX_ACCESS_REMOTE_READ;
	uint64_t key = b->dst.key;

	EXPECT_EQ(window_with(b, b->self, read, key, 0, 4096), 0);
	EXPECT_EQ(window_with(b, b->self, read, key, 0, 1), 0);
	EXPECT_EQ(window_with(b, b->self, read, key, 0, 0), -EINVAL);
	EXPECT_EQ(window_with(b, b->self, 0, key, 0, 4096), -EINVAL);
	EXPECT_EQ(window_with(b, b->self, RAW_ALL, key, 0, 4096), -EINVAL);
	EXPECT_EQ(window_with(b, b->self, read, key, 100, 4096), -EINVAL);
	EXPECT_EQ(window_with(b, b->self, read, key, 4096, BENCH_SIZE),
		  -EACCES);
	EXPECT_EQ(window_with(b, b->self, read, key ^ 1ull << 40, 0, 4096),
		  -EACCES);
	EXPECT_NE(window_with(b, b->self, read, key, 0, UINT64_MAX), 0);
	EXPECT_NE(window_with(b, b->self, read, key, -4096ull, 8192), 0);
	EXPECT_NE(window_with(b, 0x10000 + b->self, read, key, 0, 4096), 0);
}

TEST_F(values, counters)
{
	struct fabrex_counters c, d;
	struct fabrex_sqe sqe = bench_write(&self->b, 0, 0, 1000);

	ASSERT_EQ(raw_counters(self->b.fd, self->b.q.info.out_id, &c), 0);
	ASSERT_EQ(raw_do(&self->b.q, &sqe, NULL), FABREX_WC_OK);
	sqe.rkey ^= 1ull << 50;
	ASSERT_EQ(raw_do(&self->b.q, &sqe, NULL), FABREX_WC_RKEY);
	ASSERT_EQ(raw_counters(self->b.fd, self->b.q.info.out_id, &d), 0);
	EXPECT_EQ(d.out_tx_bytes - c.out_tx_bytes, 1000);
	EXPECT_EQ(d.out_tx_ops - c.out_tx_ops, 2);
	EXPECT_EQ(d.out_errors - c.out_errors, 1);
	EXPECT_EQ(d.out_host_bytes - c.out_host_bytes, 1000);
	EXPECT_EQ(d.out_p2p_bytes - c.out_p2p_bytes, 0);
	EXPECT_EQ(raw_counters(self->b.fd, 0, &c), 0);
	EXPECT_GE(c.out_tx_bytes, 1000);
	EXPECT_EQ(raw_counters(self->b.fd, self->b.src.id, &c), -ENOENT);
	EXPECT_EQ(raw_counters(self->b.fd, 0x7fffffff, &c), -ENOENT);
}

TEST_HARNESS_MAIN
