// SPDX-License-Identifier: GPL-2.0-only
/*
 * Open files: what belongs to one is out of reach of another, and goes away
 * with it; read() and poll() of the event stream.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "bench.h"

FIXTURE(files) {
	struct bench b;
	int other;
};

FIXTURE_SETUP(files)
{
	ASSERT_EQ(bench_open(&self->b), 0);
	self->other = raw_open();
	ASSERT_GE(self->other, 0);
}

FIXTURE_TEARDOWN(files)
{
	close(self->other);
	bench_close(&self->b);
}

TEST_F(files, ids_are_private)
{
	EXPECT_EQ(raw_destroy(self->other, self->b.q.info.out_id), -ENOENT);
	EXPECT_EQ(raw_destroy(self->other, self->b.src.id), -ENOENT);
	for (uint32_t id = 0; id < 4096; id++)
		ASSERT_EQ(raw_destroy(self->other, id), -ENOENT);
	EXPECT_EQ(raw_destroy(self->other, 0xffffffff), -ENOENT);
	EXPECT_EQ(raw_destroy(self->other, 0x80000000), -ENOENT);
}

TEST_F(files, counters_are_private)
{
	struct fabrex_counters c;

	EXPECT_EQ(raw_counters(self->other, self->b.q.info.out_id, &c),
		  -ENOENT);
	EXPECT_EQ(raw_counters(self->other, 0, &c), 0);
}

TEST_F(files, destroy_once)
{
	struct raw_mr mr;

	ASSERT_EQ(raw_mr(self->b.fd, 4096, 0, &mr), 0);
	EXPECT_EQ(raw_destroy(self->b.fd, mr.id), 0);
	EXPECT_EQ(raw_destroy(self->b.fd, mr.id), -ENOENT);
}

/* Everything an open file owns ends with it. */
TEST_F(files, close_destroys)
{
	struct bench_count before, during, after;
	struct raw_queue q;
	struct raw_mr mr;
	int fd = raw_open();

	ASSERT_GE(fd, 0);
	ASSERT_EQ(bench_count(&before), 0);
	ASSERT_EQ(raw_queue(fd, 8, 16, 8, &q), 0);
	ASSERT_EQ(raw_mr(fd, 1 << 20, RAW_ALL, &mr), 0);
	ASSERT_EQ(bench_count(&during), 0);
	EXPECT_EQ(during.queues, before.queues + 1);
	EXPECT_EQ(during.mrs, before.mrs + 1);
	EXPECT_EQ(during.pinned, before.pinned + (1 << 20));
	munmap(q.ring, q.info.out_ring_size);
	munmap((void *)q.db, RAW_PAGE);
	close(fd);
	ASSERT_EQ(bench_count(&after), 0);
	EXPECT_EQ(after.queues, before.queues);
	EXPECT_EQ(after.mrs, before.mrs);
	EXPECT_EQ(after.pinned, before.pinned);
}

/* A mapping keeps the file: the queue works on after close(). */
TEST_F(files, mapping_outlives_descriptor)
{
	struct fabrex_sqe nop = { .opcode = FABREX_OP_NOP, .user_data = 5 };
	struct fabrex_cqe cqe;
	struct raw_queue q;
	int fd = raw_open();

	ASSERT_GE(fd, 0);
	ASSERT_EQ(raw_queue(fd, 8, 8, 0, &q), 0);
	close(fd);
	EXPECT_EQ(raw_do(&q, &nop, &cqe), FABREX_WC_OK);
	EXPECT_EQ(cqe.user_data, 5);
	munmap(q.ring, q.info.out_ring_size);
	munmap((void *)q.db, RAW_PAGE);
}

TEST_F(files, child_shares_the_file)
{
	int status;
	pid_t pid = fork();

	ASSERT_GE(pid, 0);
	if (!pid) {
		struct raw_mr mr;

		_exit(raw_mr(self->b.fd, 4096, 0, &mr) ||
		      raw_destroy(self->b.fd, mr.id));
	}
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
}

TEST_F(files, read_events)
{
	struct pollfd p = { .fd = self->other, .events = POLLIN };
	struct fabrex_event ev[4];

	ASSERT_EQ(fcntl(self->other, F_SETFL, O_NONBLOCK), 0);
	EXPECT_EQ(read(self->other, ev, FABREX_EVENT_SIZE_MIN - 1), -1);
	EXPECT_EQ(errno, EINVAL);
	EXPECT_EQ(read(self->other, ev, 0), -1);
	EXPECT_EQ(errno, EINVAL);
	EXPECT_EQ(poll(&p, 1, 0), 0);
	EXPECT_EQ(read(self->other, ev, sizeof(ev)), -1);
	EXPECT_EQ(errno, EAGAIN);
	EXPECT_EQ(write(self->other, ev, sizeof(ev)), -1);
	EXPECT_EQ(errno, EINVAL);
}

/* A queue that breaks tells its own file and nobody else. */
TEST_F(files, queue_error_event)
{
	struct pollfd p = { .fd = self->b.fd, .events = POLLIN };
	struct fabrex_event ev;

	self->b.q.ctrl->sq_tail = self->b.q.info.sq_entries + 1;
	self->b.q.db[FABREX_DB_SQ / 4] = self->b.q.info.sq_entries + 1;
	ASSERT_EQ(poll(&p, 1, RAW_WAIT_MS), 1);
	EXPECT_TRUE(p.revents & POLLIN);
	ASSERT_EQ(read(self->b.fd, &ev, sizeof(ev)), sizeof(ev));
	EXPECT_EQ(ev.type, FABREX_EVENT_QUEUE_ERROR);
	EXPECT_EQ(ev.id, self->b.q.info.out_id);
	EXPECT_EQ(ev.error, FABREX_QERR_SQ_INDEX);
	EXPECT_EQ(ev.size, sizeof(ev));
	EXPECT_EQ(ev.seq, 1);
	EXPECT_GT(ev.time_ns, 0);
	EXPECT_EQ(self->b.q.ctrl->state, FABREX_QUEUE_ERROR);
	EXPECT_EQ(self->b.q.ctrl->error, FABREX_QERR_SQ_INDEX);
	p.fd = self->other;
	EXPECT_EQ(poll(&p, 1, 0), 0);
}

#define PREDECESSORS	200

/* Nobody is told of the error of a queue that had the number before. */
TEST_F(files, queue_error_of_predecessor)
{
	struct pollfd p = { .fd = self->other, .events = POLLIN };
	struct raw_queue q, next;
	int same = 0;

	for (int i = 0; i < PREDECESSORS; i++) {
		ASSERT_EQ(raw_queue(self->b.fd, 8, 8, 0, &q), 0);
		q.ctrl->sq_tail = 1000;
		q.db[FABREX_DB_SQ / 4] = 1000;
		while (q.ctrl->state == FABREX_QUEUE_OK)
			usleep(100);
		ASSERT_EQ(raw_queue_free(&q), 0);
		ASSERT_EQ(raw_queue(self->other, 8, 8, 0, &next), 0);
		same += next.info.out_queue == q.info.out_queue;
		ASSERT_EQ(raw_queue_free(&next), 0);
		/* It would have come before the next one can be made. */
	}
	EXPECT_GT(same, 0);
	EXPECT_EQ(poll(&p, 1, 0), 0);
}

/*
 * n queues that break, one event each. They stay: one that is destroyed takes
 * an event that has not been sent yet along.
 */
static int events(FIXTURE_DATA(files) *self, int n)
{
	struct pollfd p = { .fd = self->b.fd, .events = POLLIN };

	for (int i = 0; i < n; i++) {
		struct raw_queue q;

		if (raw_queue(self->b.fd, 8, 8, 0, &q))
			return -1;
		q.ctrl->sq_tail = 9;
		q.db[FABREX_DB_SQ / 4] = 9;
		while (!q.ctrl->state)
			usleep(1000);
	}
	return poll(&p, 1, RAW_WAIT_MS);
}

/*
 * A reader compiled with a structure that ended behind time_ns gets one event
 * each time, and knows how long it is.
 */
TEST_F_TIMEOUT(files, older_reader, 300)
{
	struct fabrex_event ev;

	ASSERT_EQ(events(self, 3), 1);
	for (int i = 0; i < 3; i++) {
		memset(&ev, 0x5a, sizeof(ev));
		ASSERT_EQ(read(self->b.fd, &ev, FABREX_EVENT_SIZE_MIN),
			  FABREX_EVENT_SIZE_MIN);
		EXPECT_EQ(ev.size, FABREX_EVENT_SIZE_MIN);
		EXPECT_EQ(ev.type, FABREX_EVENT_QUEUE_ERROR);
		EXPECT_GT(ev.time_ns, 0);
		EXPECT_EQ(ev.seq, 0x5a5a5a5a5a5a5a5aull);
	}
	ASSERT_EQ(events(self, 1), 1);
	ASSERT_EQ(read(self->b.fd, &ev, sizeof(ev) - 1), FABREX_EVENT_SIZE_MIN);
	EXPECT_EQ(ev.size, FABREX_EVENT_SIZE_MIN);
}

/* One with a structure that is longer than the kernel's finds its way too. */
TEST_F_TIMEOUT(files, newer_reader, 300)
{
	char buf[4 * sizeof(struct fabrex_event) + 24];
	struct fabrex_event *ev;
	ssize_t n, at;
	int seen = 0;

	ASSERT_EQ(events(self, 3), 1);
	while (seen < 3) {
		n = read(self->b.fd, buf, sizeof(buf));
		ASSERT_GT(n, 0);
		for (at = 0; at < n; at += ev->size) {
			ev = (struct fabrex_event *)(buf + at);
			ASSERT_GE(ev->size, FABREX_EVENT_SIZE_MIN);
			ASSERT_LE(at + ev->size, n);
			EXPECT_EQ(ev->type, FABREX_EVENT_QUEUE_ERROR);
			EXPECT_EQ(ev->seq, ++seen);
		}
	}
	EXPECT_EQ(seen, 3);
}

TEST_F(files, read_into_bad_pointer)
{
	struct pollfd p = { .fd = self->b.fd, .events = POLLIN };
	void *none = mmap(NULL, RAW_PAGE, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(none, MAP_FAILED);
	self->b.q.ctrl->sq_tail = self->b.q.info.sq_entries + 1;
	self->b.q.db[FABREX_DB_SQ / 4] = self->b.q.info.sq_entries + 1;
	ASSERT_EQ(poll(&p, 1, RAW_WAIT_MS), 1);
	EXPECT_EQ(read(self->b.fd, none, sizeof(struct fabrex_event)), -1);
	EXPECT_EQ(errno, EFAULT);
}

TEST_HARNESS_MAIN
