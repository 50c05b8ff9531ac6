// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tests of threads that are cancelled: functions that say they are no
 * cancellation points return, the others leave nothing behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fabrex/coll.h>
#include <fabrex/p2p.h>

#include "core/core.h"
#include "party.h"

#define SERVICE	4242

struct cancel_scene {
	struct fabrex_port *port;
	struct fabrex_listener *listener;
	struct fabrex_queue *queue;
	struct fabrex_comm *comm;
	struct fabrex_coll *recv;
	char schedule[32];
	void (*call)(struct cancel_scene *s);
	bool returned;
};

/* ---- no cancellation points --------------------------------------------- */

static void open_and_close(struct cancel_scene *s)
{
	struct fabrex_port *port;

	(void)s;
	CHECK_EQ(fabrex_open(loop_name("other"), &port), 0);
	CHECK_EQ(fabrex_close(port), 0);
}

static void queue(struct cancel_scene *s)
{
	const struct fabrex_queue_attr attr = {
		.flags = FABREX_QUEUE_EVENTFD,
	};
	struct fabrex_queue *q;

	CHECK_EQ(fabrex_queue_create(s->port, &attr, sizeof(attr), &q), 0);
	CHECK_EQ(fabrex_queue_destroy(q), 0);
}

static void arms(struct cancel_scene *s)
{
	CHECK_EQ(fabrex_arm(s->queue), 0);
}

static void regions(struct cancel_scene *s)
{
	static char memory[8192];
	struct fabrex_window *window;
	struct fabrex_remote remote;
	struct fabrex_mr *mr;

	CHECK_EQ(fabrex_mr_register(s->port, memory, sizeof(memory), 0, &mr),
		 0);
	CHECK_EQ(fabrex_mr_deregister(mr), 0);
	CHECK_EQ(fabrex_mr_alloc(s->port, 4096, FABREX_MR_ALL, &mr), 0);
	fabrex_mr_remote(mr, &remote);
	CHECK_EQ(fabrex_window_map(s->port, &remote, 0, 4096,
				   FABREX_MR_REMOTE_READ, &window), 0);
	CHECK_EQ(fabrex_window_unmap(window), 0);
	CHECK_EQ(fabrex_mr_deregister(mr), 0);
}

static void file_region(struct cancel_scene *s)
{
	struct fabrex_mr_attr attr = {
		.length = 4096, .kind = FABREX_MEMORY_DMABUF,
		.access = FABREX_MR_ALL,
	};
	struct fabrex_mr *mr;

	attr.fd = memfd_create("test", MFD_CLOEXEC);
	CHECK(attr.fd >= 0 && !ftruncate(attr.fd, 4096));
	CHECK_EQ(fabrex_mr_register_attr(s->port, &attr, sizeof(attr), &mr),
		 0);
	CHECK_EQ(fabrex_mr_deregister(mr), 0);
}

static void answer(struct cancel_scene *s)
{
	struct fabrex_request request = {
		.peer = s->port->attr.peer,
		.key = fabrex_queue_key(s->queue) ^ 1ull << 63,
	};

	CHECK_EQ(fabrex_request_answer(s->listener, &request, "x", 1, HANG_MS),
		 -ECONNRESET);
}

static void listen_and_close(struct cancel_scene *s)
{
	struct fabrex_listener *l;

	CHECK_EQ(fabrex_listen(s->port, SERVICE + 1, &l), 0);
	fabrex_listener_close(l);
}

static void meet_by(struct cancel_scene *s, const char *bootstrap, uint32_t rank)
{
	const struct fabrex_comm_attr attr = {
		.rank = rank, .size = 2, .timeout_ms = 50,
		.bootstrap = bootstrap,
	};
	struct fabrex_comm *comm;

	CHECK_EQ(fabrex_comm_create(s->port, &attr, sizeof(attr), &comm),
		 -ETIMEDOUT);
}

static void meet(struct cancel_scene *s)
{
	meet_by(s, "fabric:77", 0);
	meet_by(s, "fabric:78", 1);
	meet_by(s, "tcp:127.0.0.1:1", 1);
}

static void collectives(struct cancel_scene *s)
{
	struct fabrex_comm *part;

	CHECK_EQ(fabrex_barrier(s->comm), 0);
	CHECK_EQ(fabrex_coll_wait(s->recv, 20), -ETIMEDOUT);
	CHECK_EQ(fabrex_comm_split(s->comm, 0, 0, &part), 0);
	fabrex_comm_destroy(part);
	CHECK_EQ(fabrex_comm_failed(s->comm, NULL, 0), 0);
}

static void schedules(struct cancel_scene *s)
{
	struct fabrex_schedule *schedule;

	CHECK_EQ(fabrex_schedule_read(s->schedule, &schedule), -EINVAL);
}

static void machine(struct cancel_scene *s)
{
	struct fabrex_memory memory;
	struct fabrex_stats stats;
	struct fabrex_p2p p2p;

	CHECK_EQ(fabrex_memory_query(s, &memory, sizeof(memory)), 0);
	CHECK_EQ(fabrex_stats(s->port, NULL, &stats, sizeof(stats)), 0);
	CHECK(fabrex_p2p_query("0000:ff:1f.7", "0000:ff:1f.6", &p2p,
			       sizeof(p2p)) <= 0);
}

/* Asked to end before the call: the first chance that there is takes it. */
static void *cancelled(void *arg)
{
	struct cancel_scene *s = arg;

	pthread_cancel(pthread_self());
	s->call(s);
	s->returned = true;
	pthread_testcancel();
	return NULL;
}

static bool returns(struct cancel_scene *s, void (*call)(struct cancel_scene *s))
{
	pthread_t thread;
	void *result;

	s->call = call;
	s->returned = false;
	CHECK(!pthread_create(&thread, NULL, cancelled, s));
	CHECK(!pthread_join(thread, &result));
	CHECK(result == PTHREAD_CANCELED);
	return s->returned;
}

static void cancel_open(struct cancel_scene *s)
{
	const struct fabrex_queue_attr eventfd = {
		.flags = FABREX_QUEUE_EVENTFD,
	};
	const struct fabrex_comm_attr alone = { .size = 1 };
	static int32_t word;
	const struct fabrex_collective what = {
		.kind = FABREX_RECV, .type = FABREX_INT32, .count = 1,
		.recv = &word,
	};
	int fd;

	*s = (struct cancel_scene){ .schedule = "/tmp/fabrex-XXXXXX" };
	fd = mkstemp(s->schedule);
	CHECK(fd >= 0 && !close(fd));
	CHECK_EQ(fabrex_open(loop_name("a"), &s->port), 0);
	CHECK_EQ(fabrex_listen(s->port, SERVICE, &s->listener), 0);
	CHECK_EQ(fabrex_queue_create(s->port, &eventfd, sizeof(eventfd),
				     &s->queue), 0);
	CHECK_EQ(fabrex_comm_create(s->port, &alone, sizeof(alone), &s->comm),
		 0);
	CHECK_EQ(fabrex_coll_start(s->comm, &what, sizeof(what), &s->recv), 0);
}

/* Nobody waits for anything: it can all be ended. */
static void cancel_close(struct cancel_scene *s)
{
	fabrex_comm_destroy(s->comm);
	fabrex_listener_close(s->listener);
	CHECK_EQ(fabrex_close(s->port), 0);
	CHECK(!unlink(s->schedule));
}

TEST(cancel_points_elsewhere)
{
	static void (*const calls[])(struct cancel_scene *s) = {
		open_and_close, queue, arms, regions, file_region, answer,
		listen_and_close, meet, collectives, schedules, machine,
	};
	struct cancel_scene s;
	size_t i;

	cancel_open(&s);
	for (i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		CHECK(returns(&s, calls[i]));
	}
	cancel_close(&s);
}

/* ---- cancellation points ------------------------------------------------ */

static void waits(struct cancel_scene *s)
{
	fabrex_wait(s->queue, -1);
}

static void reads_event(struct cancel_scene *s)
{
	struct fabrex_port_event event;

	fabrex_event_read(s->port, &event, -1);
}

static void accepts(struct cancel_scene *s)
{
	fabrex_accept(s->listener, NULL, 0, NULL, NULL, NULL, -1);
}

static void takes_request(struct cancel_scene *s)
{
	struct fabrex_request request;

	fabrex_request_next(s->listener, &request, NULL, NULL, -1);
}

static void connects(struct cancel_scene *s)
{
	fabrex_connect(s->port, s->port->attr.peer, SERVICE, "x", 1, NULL,
		       NULL, -1);
}

static void connects_to_nobody(struct cancel_scene *s)
{
	fabrex_connect(s->port, s->port->attr.peer, SERVICE + 1, "x", 1, NULL,
		       NULL, -1);
}

TEST(cancel_while_waiting)
{
	static void (*const calls[])(struct cancel_scene *s) = {
		waits, reads_event, accepts, takes_request, connects,
		connects_to_nobody,
	};
	struct cancel_scene s;
	size_t i;

	cancel_open(&s);
	for (i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		CHECK(!returns(&s, calls[i]));
	}
	cancel_close(&s);
}
