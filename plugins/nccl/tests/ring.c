// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Collectives as NCCL's proxies drive a net plugin: each rank receives from the one
 * before and sends to the one after it, several steps in flight.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

#define RANKS	3
#define COUNT	30000u		/* elements of a rank's part */

struct rank {
	const struct plugin *p;
	int number;
};

/* Both connections at once: whoever waits for one keeps others waiting. */
static void join(struct side *next, struct side *previous,
		 const struct plugin *p, int fd)
{
	memset(next, 0, sizeof(*next));
	memset(previous, 0, sizeof(*previous));
	next->p = previous->p = p;
	CHECK_EQ(p->init(&previous->ctx), NCCL_SUCCESS);
	CHECK_EQ(p->listen(previous->ctx, 0, previous->handle,
			   &previous->listener), NCCL_SUCCESS);
	say(fd, previous->handle, NCCL_HANDLE_MAX);
	hear(fd, next->handle, NCCL_HANDLE_MAX);
	while (!next->comm || !previous->comm) {
		if (!next->comm)
			CHECK_EQ(p->connect(previous->ctx, 0, next->handle,
					    &next->comm), NCCL_SUCCESS);
		if (!previous->comm)
			CHECK_EQ(p->accept(previous->listener, &previous->comm),
				 NCCL_SUCCESS);
		sched_yield();
	}
}

/* One step: n elements there and n from the other side. */
static void step(struct side *next, struct side *previous, uint32_t *out,
		 void *out_memory, uint32_t *in, void *in_memory)
{
	void *sent = NULL, *got = NULL, *at = in;
	size_t n = COUNT * sizeof(*in);
	int tag = 4, size = 0;

	CHECK_EQ(previous->p->irecv(previous->comm, 1, &at, &n, &tag,
				    &in_memory, &got), NCCL_SUCCESS);
	CHECK(got);
	while (!sent) {
		CHECK_EQ(next->p->isend(next->comm, out, n, tag, out_memory,
					&sent), NCCL_SUCCESS);
		sched_yield();
	}
	CHECK_EQ(finish(previous->p, got, &size), NCCL_SUCCESS);
	CHECK_EQ(size, n);
	CHECK_EQ(finish(next->p, sent, &size), NCCL_SUCCESS);
}

static void all_reduce(int fd, const void *arg)
{
	static uint32_t data[RANKS][COUNT], other[COUNT];
	const struct rank *rank = arg;
	void *of_data, *of_other, *of_next;
	struct side next, previous;
	int i, round, to, from;
	uint32_t k;

	join(&next, &previous, rank->p, fd);
	CHECK_EQ(rank->p->reg(next.comm, data, sizeof(data), NCCL_PTR_HOST,
			      &of_next), NCCL_SUCCESS);
	CHECK_EQ(rank->p->reg(previous.comm, data, sizeof(data), NCCL_PTR_HOST,
			      &of_data), NCCL_SUCCESS);
	CHECK_EQ(rank->p->reg(previous.comm, other, sizeof(other),
			      NCCL_PTR_HOST, &of_other), NCCL_SUCCESS);
	for (round = 0; round < 20; round++) {
		for (i = 0; i < RANKS; i++)
			for (k = 0; k < COUNT; k++)
				data[i][k] = (uint32_t)(rank->number + 1) *
					     (k + (uint32_t)i);
		for (i = 0; i < RANKS - 1; i++) {
			to = (rank->number - i + RANKS) % RANKS;
			from = (to - 1 + RANKS) % RANKS;
			step(&next, &previous, data[to], of_next, other,
			     of_other);
			for (k = 0; k < COUNT; k++)
				data[from][k] += other[k];
		}
		for (i = 0; i < RANKS - 1; i++) {
			to = (rank->number + 1 - i + RANKS) % RANKS;
			from = (to - 1 + RANKS) % RANKS;
			step(&next, &previous, data[to], of_next, data[from],
			     of_data);
		}
		for (i = 0; i < RANKS; i++)
			for (k = 0; k < COUNT; k++)
				CHECK_EQ(data[i][k],
					 (uint32_t)(RANKS * (RANKS + 1) / 2) *
					 (k + (uint32_t)i));
	}
	rank->p->dereg(next.comm, of_next);
	rank->p->dereg(previous.comm, of_data);
	rank->p->dereg(previous.comm, of_other);
	say(fd, "", 1);
	hear(fd, data, 1);
	CHECK_EQ(rank->p->close_send(next.comm), NCCL_SUCCESS);
	side_close(&previous, false);
}

TEST(ring_all_reduce)
{
	char handle[RANKS][NCCL_HANDLE_MAX], done;
	struct other other[RANKS];
	struct rank rank;
	int i, v;

	plugin_load();
	for (v = 0; v < PLUGINS; v++) {
		for (i = 0; i < RANKS; i++) {
			rank = (struct rank){ &plugins[v], i };
			other_start(&other[i], all_reduce, &rank);
		}
		for (i = 0; i < RANKS; i++)
			hear(other[i].fd, handle[i], NCCL_HANDLE_MAX);
		for (i = 0; i < RANKS; i++)
			say(other[i].fd, handle[(i + 1) % RANKS],
			    NCCL_HANDLE_MAX);
		for (i = 0; i < RANKS; i++)
			hear(other[i].fd, &done, 1);
		for (i = 0; i < RANKS; i++)
			say(other[i].fd, "", 1);
		for (i = 0; i < RANKS; i++)
			other_end(&other[i]);
	}
	plugin_unload();
}
