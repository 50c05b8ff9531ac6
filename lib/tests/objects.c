// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tests of ports, regions, windows, events, counters and fork, and of the
 * sentences that refusals come with.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/core.h"
#include "transport/ring/ring.h"
#include "test.h"

TEST(open_names)
{
	struct fabrex_port_attr attr;
	struct fabrex_port *port;

	CHECK_EQ(fabrex_open("nowhere", &port), -ENOENT);
	CHECK_SAYS("nowhere");
	CHECK_EQ(fabrex_open("kernel:/dev/null/fabrex9", &port), -ENOTDIR);
	CHECK_EQ(fabrex_open("kernel:fabrex255", &port), -ENOENT);
	CHECK_SAYS("/dev/fabrex255");
	CHECK_SAYS("fabrex_draco");
	CHECK_EQ(fabrex_open("fake:c.0", &port), 0);
	CHECK_EQ(fabrex_query(port, &attr, sizeof(attr)), 0);
	CHECK(attr.peer == 2 && !strcmp(attr.host, "c") && attr.emulated);
	fabrex_close(port);
	setenv("FABREX_PORT", "b.0", 1);
	CHECK_EQ(fabrex_open(NULL, &port), 0);
	CHECK_EQ(fabrex_query(port, &attr, sizeof(attr)), 0);
	CHECK_EQ(attr.peer, 1);
	fabrex_close(port);
	CHECK(!strcmp(fabrex_version(), "1.2"));
}

/* Callers compiled against an older or a newer header. */
TEST(sizes_of_callers)
{
	struct {
		struct fabrex_port_attr attr;
		uint64_t newer[2];
	} big = { .newer = { 1, 2 } };
	struct {
		struct fabrex_queue_attr attr;
		uint64_t newer;
	} q = { .newer = 0 };
	uint32_t small[2] = { 7, 0xdead };
	struct fabrex_queue *queue;
	struct fabrex_port *port;

	CHECK_EQ(fabrex_open("c.0", &port), 0);
	CHECK_EQ(fabrex_query(port, (void *)small, 4), 0);
	CHECK(small[0] == 2 && small[1] == 0xdead);
	CHECK_EQ(fabrex_query(port, &big.attr, sizeof(big)), 0);
	CHECK(big.newer[0] == 0 && big.newer[1] == 0);
	CHECK_EQ(fabrex_queue_create(port, &q.attr, sizeof(q), &queue), 0);
	q.newer = 1;
	CHECK_EQ(fabrex_queue_create(port, &q.attr, sizeof(q), &queue),
		 -E2BIG);
	q.attr.sq_entries = 32;
	CHECK_EQ(fabrex_queue_create(port, &q.attr, 4, &queue), 0);
	CHECK_EQ(ring_queue_of(queue)->limit, 32);
	fabrex_close(port);
}

static void refused(struct fabrex_port *port, struct fabrex_queue_attr attr,
		    const char *says)
{
	struct fabrex_queue *queue;

	CHECK_EQ(fabrex_queue_create(port, &attr, sizeof(attr), &queue),
		 -EINVAL);
	CHECK_SAYS(says);
	CHECK_SAYS("port a.0");
}

TEST(queue_attributes)
{
	struct fabrex_port *port;

	CHECK_EQ(fabrex_open("a.0", &port), 0);
	refused(port, (struct fabrex_queue_attr){ .sq_entries = 100 },
		"sq_entries = 100");
	refused(port, (struct fabrex_queue_attr){ .sq_entries = 4 },
		"from 8 to 1024");
	refused(port, (struct fabrex_queue_attr){ .sq_entries = 2048 },
		"sq_entries = 2048");
	refused(port, (struct fabrex_queue_attr){ .rq_entries = 3 },
		"rq_entries = 3");
	refused(port, (struct fabrex_queue_attr){ .rq_entries = 8,
						  .cell_size = 8192 },
		"cell_size = 8192");
	refused(port, (struct fabrex_queue_attr){ .cell_size = 64 },
		"no rq_entries");
	refused(port, (struct fabrex_queue_attr){ .sq_entries = 8,
						  .cq_entries = 8,
						  .rq_entries = 8 },
		"use 16 or 0");
	refused(port, (struct fabrex_queue_attr){ .flags = 2 },
		"unknown flags");
	refused(port, (struct fabrex_queue_attr){ .reserved = 1 },
		"reserved");
	CHECK_EQ(fake_objects(), 0);
	fabrex_close(port);
}

TEST(no_eventfd)
{
	struct fabrex_queue *queue;
	struct fabrex_port *port;

	CHECK_EQ(fabrex_open("a.0", &port), 0);
	CHECK_EQ(fabrex_queue_create(port, NULL, 0, &queue), 0);
	CHECK_EQ(fabrex_queue_fd(queue), -EINVAL);
	CHECK_EQ(fabrex_arm(queue), -EINVAL);
	CHECK_EQ(fabrex_wait(queue, 10), -EINVAL);
	CHECK_SAYS("FABREX_QUEUE_EVENTFD");
	fabrex_close(port);
}

TEST(peers)
{
	struct fabrex_port *port;
	struct fabrex_peer peer;
	uint32_t from = 0;
	int n = 0;

	CHECK_EQ(fabrex_open("a.0", &port), 0);
	CHECK_EQ(fabrex_peer_find(port, "b", &peer), 0);
	CHECK(peer.peer == 1 && peer.up && !strcmp(peer.name, "b.0"));
	CHECK_EQ(fabrex_peer_find(port, "c.0", &peer), 0);
	CHECK_EQ(peer.peer, 2);
	CHECK_EQ(fabrex_peer_find(port, "1", &peer), 0);
	CHECK(!strcmp(peer.host, "b"));
	CHECK_EQ(fabrex_peer_find(port, "7", &peer), -ENOENT);
	CHECK_EQ(fabrex_peer_find(port, "-1", &peer), -ENOENT);
	CHECK_EQ(fabrex_peer_find(port, "4294967297", &peer), -ENOENT);
	CHECK_EQ(fabrex_peer_find(port, "", &peer), -EINVAL);
	CHECK_EQ(fabrex_peer_find(port, "a name that is longer than a field",
				  &peer), -EINVAL);
	while (!fabrex_peer_next(port, from, &peer)) {
		from = peer.peer + 1;
		n++;
	}
	CHECK_EQ(n, 3);
	fabrex_close(port);
}

TEST(regions)
{
	const uint32_t both[] = { 0, 1 }, wrong[] = { 8 };
	struct fabrex_remote r;
	struct fabrex_port *port;
	struct fabrex_mr *mr;
	char buffer[100];
	uint8_t *p;
	size_t i;

	CHECK_EQ(fabrex_open("b.0", &port), 0);
	CHECK_EQ(fabrex_mr_register(port, buffer, sizeof(buffer),
				    FABREX_MR_ALL, &mr), 0);
	fabrex_mr_remote(mr, &r);
	CHECK(r.peer == 1 && r.length == 100 && r.generation == 1 &&
	      r.rkey == fabrex_mr_key(mr) && !r.flags && !r.reserved);
	CHECK(fabrex_mr_addr(mr) == buffer);
	CHECK_EQ(fabrex_mr_deregister(mr), 0);
	CHECK_EQ(fabrex_mr_register_for(port, buffer, 4, 0, both, 2, &mr), 0);
	CHECK_EQ(fabrex_mr_register_for(port, buffer, 4, 0, wrong, 1, &mr),
		 -EINVAL);
	CHECK_SAYS("below 8");
	CHECK_EQ(fabrex_mr_register_for(port, buffer, 4, 0, both, 0, &mr),
		 -EINVAL);
	CHECK_EQ(fabrex_mr_register(port, buffer, 0, 0, &mr), -EINVAL);
	CHECK_EQ(fabrex_mr_register(port, NULL, 4, 0, &mr), -EINVAL);
	CHECK_EQ(fabrex_mr_register(port, buffer, SIZE_MAX, 0, &mr), -EINVAL);
	CHECK_SAYS("wraps around");
	CHECK_EQ(fabrex_mr_register(port, buffer, 4, 0x10, &mr), -EINVAL);
	CHECK_SAYS("0x10");
	CHECK_EQ(fabrex_mr_alloc(port, 0, 0, &mr), -EINVAL);
	CHECK_EQ(fabrex_mr_alloc(port, SIZE_MAX - 5, 0, &mr), -EINVAL);
	CHECK_EQ(fabrex_mr_alloc(port, (5u << 20) + 1, 0, &mr), 0);
	CHECK_EQ(fabrex_mr_length(mr), (5u << 20) + 1);
	p = fabrex_mr_addr(mr);
	CHECK_EQ((uintptr_t)p % 4096, 0);
	for (i = 0; i < fabrex_mr_length(mr); i += 4096)
		CHECK_EQ(p[i], 0);
	p[fabrex_mr_length(mr) - 1] = 1;
	fabrex_close(port);
}

TEST(windows)
{
	struct fabrex_window *w;
	volatile uint32_t *v;
	struct fabrex_remote bad;
	struct pair p;

	pair_open(&p, NULL);
	CHECK_EQ(fabrex_window_map(p.a, &p.rb, 100, 16,
				   FABREX_MR_REMOTE_READ |
				   FABREX_MR_REMOTE_WRITE, &w), 0);
	v = fabrex_window_addr(w);
	v[1] = 0x12345678;
	CHECK_EQ(fabrex_window_flush(w), 0);
	CHECK_EQ(*(uint32_t *)(p.pb + 104), 0x12345678);
	CHECK_EQ(fabrex_window_unmap(w), 0);
	CHECK_EQ(fabrex_window_map(p.a, &p.rb, 0, PAIR_SIZE,
				   FABREX_MR_REMOTE_WRITE, &w), 0);
	CHECK_EQ(fabrex_window_flush(w), -EOPNOTSUPP);
	CHECK_EQ(fabrex_window_map(p.a, &p.rb, 1, PAIR_SIZE,
				   FABREX_MR_REMOTE_WRITE, &w), -EINVAL);
	CHECK_SAYS("has 4096 bytes");
	CHECK_EQ(fabrex_window_map(p.a, &p.rb, 0, 8, FABREX_MR_LOCAL_WRITE,
				   &w), -EINVAL);
	CHECK_EQ(fabrex_window_map(p.a, &p.rb, 0, 8, 0, &w), -EINVAL);
	bad = p.rb;
	bad.rkey++;
	CHECK_EQ(fabrex_window_map(p.a, &bad, 0, 8, FABREX_MR_REMOTE_READ,
				   &w), -EACCES);
	pair_close(&p);
}

static void emit(uint32_t type, uint32_t id)
{
	const struct transport_event e = {
		.type = type, .peer = 1, .generation = 4, .id = id,
		.time_ns = 123,
	};

	fake_event(0, &e);
}

TEST(events)
{
	struct fabrex_port_event ev;
	struct fabrex_window *w;
	struct pollfd pfd;
	struct pair p;

	pair_open(&p, NULL);
	CHECK_EQ(fabrex_window_map(p.a, &p.rb, 0, 8, FABREX_MR_REMOTE_READ,
				   &w), 0);
	CHECK_EQ(fabrex_event_read(p.a, &ev, 0), -EAGAIN);
	CHECK_EQ(fabrex_event_read(p.a, &ev, 10), -EAGAIN);
	emit(FABREX_EV_PEER_DOWN, 0);
	pfd = (struct pollfd){ .fd = fabrex_event_fd(p.a), .events = POLLIN };
	CHECK_EQ(poll(&pfd, 1, HANG_MS), 1);
	CHECK_EQ(fabrex_event_read(p.a, &ev, -1), 0);
	CHECK(ev.type == FABREX_EV_PEER_DOWN && ev.peer == 1 &&
	      ev.generation == 4 && !ev.queue && !ev.window &&
	      ev.time_ns == 123);
	emit(FABREX_EV_QUEUE_ERROR,
	     fake_queue_id(fabrex_queue_number(p.qa)));
	CHECK_EQ(fabrex_event_read(p.a, &ev, 0), 0);
	CHECK(ev.queue == p.qa && !ev.window);
	emit(FABREX_EV_WINDOW_FAULT, w->object.id);
	CHECK_EQ(fabrex_event_read(p.a, &ev, 0), 0);
	CHECK(ev.window == w && !ev.queue);
	/* About something that is gone: not reported. */
	emit(FABREX_EV_QUEUE_ERROR, 4000);
	emit(FABREX_EV_LINK_UP, 0);
	CHECK_EQ(fabrex_event_read(p.a, &ev, 0), 0);
	CHECK_EQ(ev.type, FABREX_EV_LINK_UP);
	pair_close(&p);
}

TEST(counters)
{
	struct fabrex_stats stats;
	struct fabrex_wc wc;
	struct pair p;

	pair_open(&p, NULL);
	CHECK_EQ(post_small(&p, 0, 1), 0);
	poll_n(p.qa, &wc, 1);
	CHECK_EQ(fabrex_stats(p.a, NULL, &stats, sizeof(stats)), 0);
	CHECK_EQ(stats.tx_ops, 1);
	CHECK_EQ(fabrex_stats(p.a, p.qb, &stats, sizeof(stats)), -EINVAL);
	CHECK_SAYS("port b.0");
	pair_close(&p);
}

/* A child that closes what it inherited leaves the parent's objects alone. */
TEST(fork_and_close)
{
	struct fabrex_wc wc;
	struct pair p;
	int status;
	pid_t pid;

	pair_open(&p, NULL);
	pid = fork();
	if (!pid) {
		fabrex_close(p.a);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(fake_objects(), 4);
	CHECK_EQ(post_small(&p, 0, 1), 0);
	poll_n(p.qa, &wc, 1);
	CHECK_EQ(wc.status, 0);
	pair_close(&p);
}

TEST(errors_are_per_thread_and_whole)
{
	CHECK(!strcmp(fabrex_strerror_last(), "no error"));
	CHECK_EQ(fxi_error(EIO, "first"), -EIO);
	CHECK_EQ(fxi_error(EIO, "second after %s", fabrex_strerror_last()),
		 -EIO);
	CHECK(!strcmp(fabrex_strerror_last(), "second after first"));
	CHECK_EQ(fxi_error_static(EAGAIN, "still"), -EAGAIN);
	CHECK(!strcmp(fabrex_strerror_last(), "still"));
}
