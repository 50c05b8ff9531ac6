// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tests of processes that fork while collectives are under way: the child has
 * none of them, and may have some of its own.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crowd.h"

#define FORKS	40u

static int32_t word;

static struct fabrex_coll *receive_from(struct fabrex_comm *comm, uint32_t rank)
{
	const struct fabrex_collective what = {
		.kind = FABREX_RECV, .type = FABREX_INT32, .count = 1,
		.recv = &word, .root = rank,
	};
	struct fabrex_coll *coll;

	CHECK_EQ(fabrex_coll_start(comm, &what, sizeof(what), &coll), 0);
	return coll;
}

/* A communicator of one, with an operation that somebody has to wait for. */
static void child_works(void)
{
	const struct fabrex_comm_attr attr = { .size = 1 };
	struct fabrex_coll *recv;
	struct fabrex_comm *comm;
	struct fabrex_port *port;
	char name[48];

	alarm(HANG_S);
	snprintf(name, sizeof(name), "loopback:child-%d", (int)getpid());
	CHECK_EQ(fabrex_open(name, &port), 0);
	CHECK_EQ(fabrex_comm_create(port, &attr, sizeof(attr), &comm), 0);
	recv = receive_from(comm, 0);
	CHECK_EQ(fabrex_coll_wait(recv, 0), -ETIMEDOUT);
	fabrex_comm_destroy(comm);
	CHECK_EQ(fabrex_close(port), 0);
}

static void fork_one(void)
{
	pid_t pid;
	int status;

	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		child_works();
		fflush(stdout);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

static int forking_work(struct member *m)
{
	struct fabrex_comm *comm = crowd_create(m);
	struct fabrex_coll *recv;

	if (m->rank) {
		word = 7;
		CHECK_EQ(fabrex_send(comm, &word, 1, FABREX_INT32, 0), 0);
	} else {
		recv = receive_from(comm, 1);
		fork_one();
		CHECK_EQ(fabrex_coll_wait(recv, HANG_MS), 0);
		CHECK_EQ(word, 7);
	}
	CHECK_EQ(crowd_sum(comm), 0);
	fabrex_comm_destroy(comm);
	return 0;
}

TEST(comm_fork_while_busy)
{
	crowd_run(2, forking_work, NULL);
	crowd_gone();
}

/* ---- beside a thread that advances them --------------------------------- */

struct waiter {
	struct fabrex_comm *comm;
	bool stop;
};

static void *waits(void *arg)
{
	struct waiter *w = arg;
	struct fabrex_coll *recv = receive_from(w->comm, 0);

	while (!__atomic_load_n(&w->stop, __ATOMIC_RELAXED))
		CHECK_EQ(fabrex_coll_wait(recv, 0), -ETIMEDOUT);
	return NULL;
}

static int forking_beside_work(struct member *m)
{
	const struct fabrex_comm_attr alone = { .size = 1 };
	struct fabrex_comm *comm = crowd_create(m);
	struct waiter w = { .stop = false };
	struct fabrex_coll *recv;
	pthread_t thread;
	uint32_t i;

	if (!m->rank) {
		CHECK_EQ(fabrex_comm_create(m->port, &alone, sizeof(alone),
					    &w.comm), 0);
		recv = receive_from(comm, 1);
		CHECK(!pthread_create(&thread, NULL, waits, &w));
		for (i = 0; i < FORKS; i++)
			fork_one();
		__atomic_store_n(&w.stop, true, __ATOMIC_RELAXED);
		CHECK(!pthread_join(thread, NULL));
		fabrex_comm_destroy(w.comm);
		CHECK_EQ(fabrex_coll_wait(recv, HANG_MS), 0);
	} else {
		word = 9;
		CHECK_EQ(fabrex_send(comm, &word, 1, FABREX_INT32, 0), 0);
	}
	CHECK_EQ(crowd_sum(comm), 0);
	fabrex_comm_destroy(comm);
	return 0;
}

TEST(comm_fork_beside_a_thread)
{
	crowd_run(2, forking_beside_work, NULL);
	crowd_gone();
}
