// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * SEND and RECV, and groups of them.
 */
#include <errno.h>

#include "world.h"

#define MOST	(3u << 20)

/* Memory that others reach, and memory that they do not. */
static char *get(struct world *w, bool reached)
{
	struct fabrex_mr *mr;
	char *p = malloc(2 * (size_t)MOST);

	if (!reached) {
		CHECK(p);
		return p;
	}
	free(p);
	CHECK_EQ(fabrex_mr_alloc(w->port, 2 * (size_t)MOST, FABREX_MR_ALL,
				 &mr), 0);
	return fabrex_mr_addr(mr);
}

static void fill(char *p, uint64_t n, uint32_t seed)
{
	uint64_t i;

	for (i = 0; i < n; i++)
		p[i] = (char)(i * 31 + (i >> 8) + seed);
}

static void check(const char *p, uint64_t n, uint32_t seed)
{
	uint64_t i;

	for (i = 0; i < n; i++)
		if (p[i] != (char)(i * 31 + (i >> 8) + seed))
			CHECK_EQ((long long)i, -1);
}

static void lengths_with(struct world *w, char *p)
{
	static const uint64_t lengths[] = {
		0, 1, 7, 8, 40, 41, 64, 1000, 4096, 32767, 32768, 65536,
		65537, 200001, 1 << 20, MOST - 5,
	};
	uint32_t i, peer = 1 - w->rank;

	for (i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		test_note("length %llu", (unsigned long long)lengths[i]);
		fill(p, lengths[i], i);
		memset(p + MOST, 0, lengths[i]);
		if (w->rank) {
			CHECK_EQ(fabrex_send(w->comm, p, lengths[i],
					     FABREX_UINT8, peer), 0);
			CHECK_EQ(fabrex_recv(w->comm, p + MOST, lengths[i],
					     FABREX_UINT8, peer), 0);
		} else {
			CHECK_EQ(fabrex_recv(w->comm, p + MOST, lengths[i],
					     FABREX_UINT8, peer), 0);
			CHECK_EQ(fabrex_send(w->comm, p, lengths[i],
					     FABREX_UINT8, peer), 0);
		}
		check(p + MOST, lengths[i], i);
	}
}

static void lengths_work(struct world *w)
{
	lengths_with(w, get(w, true));
	lengths_with(w, get(w, false));
	lengths_with(w, get(w, w->rank));
}

TEST(all_lengths_arrive)
{
	world_run(2, lengths_work, NULL);
	world_run_far(2, lengths_work, NULL);
}

/* Everybody to the next, and from the one before; also to itself. */
static void shift_work(struct world *w)
{
	uint32_t next = (w->rank + 1) % w->size;
	uint32_t before = (w->rank + w->size - 1) % w->size, round;
	char *p = get(w, w->rank % 2);
	uint64_t n = MOST / 2;

	for (round = 0; round < 3; round++) {
		fill(p, n, w->rank + round);
		CHECK_EQ(fabrex_group_begin(w->comm), 0);
		CHECK_EQ(fabrex_send(w->comm, p, n, FABREX_INT8, next), 0);
		CHECK_EQ(fabrex_send(w->comm, p, 3, FABREX_INT8, next), 0);
		CHECK_EQ(fabrex_recv(w->comm, p + MOST, n, FABREX_INT8,
				     before), 0);
		CHECK_EQ(fabrex_recv(w->comm, p + n, 3, FABREX_INT8, before),
			 0);
		CHECK_EQ(fabrex_group_end(w->comm), 0);
		check(p + MOST, n, before + round);
		check(p + n, 3, before + round);
	}
}

TEST(groups_shift_around)
{
	world_run(1, shift_work, NULL);
	world_run(2, shift_work, NULL);
	world_run(5, shift_work, NULL);
	world_run_far(3, shift_work, NULL);
	world_run_bridged(3, shift_work, NULL);
}

/* A group may mix directions, peers, and collectives. */
static void mixed_work(struct world *w)
{
	uint64_t mine = w->rank, sum = 0, theirs[RANKS], rank;

	CHECK_EQ(fabrex_group_begin(w->comm), 0);
	CHECK_EQ(fabrex_all_reduce(w->comm, &mine, &sum, 1, FABREX_UINT64,
				   FABREX_SUM), 0);
	for (rank = 0; rank < w->size; rank++) {
		CHECK_EQ(fabrex_recv(w->comm, &theirs[rank], 1, FABREX_UINT64,
				     (uint32_t)rank), 0);
		CHECK_EQ(fabrex_send(w->comm, &mine, 1, FABREX_UINT64,
				     (uint32_t)rank), 0);
	}
	CHECK_EQ(fabrex_group_end(w->comm), 0);
	CHECK_EQ(sum, w->size * (w->size - 1) / 2);
	for (rank = 0; rank < w->size; rank++)
		CHECK_EQ(theirs[rank], rank);
}

TEST(groups_mix)
{
	world_run(4, mixed_work, NULL);
}

/* More than there are slots, before anybody takes them. */
static void many_work(struct world *w)
{
	struct fabrex_coll *sends[100];
	struct fabrex_collective what = {
		.kind = FABREX_SEND, .type = FABREX_UINT32, .count = 1,
		.root = 1 - w->rank,
	};
	uint32_t values[100], i, got;

	for (i = 0; i < 100; i++) {
		values[i] = i + w->rank;
		what.send = &values[i];
		CHECK_EQ(fabrex_coll_start(w->comm, &what, sizeof(what),
					   &sends[i]), 0);
	}
	for (i = 0; i < 100; i++) {
		CHECK_EQ(fabrex_recv(w->comm, &got, 1, FABREX_UINT32,
				     1 - w->rank), 0);
		CHECK_EQ(got, i + 1 - w->rank);
	}
	for (i = 0; i < 100; i++)
		CHECK_EQ(fabrex_coll_wait(sends[i], -1), 0);
}

TEST(many_are_sent_before_any_is_taken)
{
	world_run(2, many_work, NULL);
}

/* A large one ends though a small one before it was not taken yet. */
static void rendezvous_work(struct world *w)
{
	char *p = get(w, true), small = 1;

	fill(p, MOST, 9);
	if (!w->rank) {
		CHECK_EQ(fabrex_send(w->comm, p, MOST, FABREX_UINT8, 1), 0);
		CHECK_EQ(fabrex_recv(w->comm, &small, 1, FABREX_UINT8, 1), 0);
		CHECK_EQ(small, 1);
	} else {
		CHECK_EQ(fabrex_send(w->comm, &small, 1, FABREX_UINT8, 0), 0);
		CHECK_EQ(fabrex_recv(w->comm, p + MOST, MOST, FABREX_UINT8,
				     0), 0);
		check(p + MOST, MOST, 9);
	}
}

TEST(large_ones_wait_for_their_receiver_only)
{
	world_run(2, rendezvous_work, NULL);
}

static void self_work(struct world *w)
{
	const struct fabrex_collective recv = {
		.kind = FABREX_RECV, .type = FABREX_INT32, .count = 1,
		.recv = &(int32_t){ 0 }, .root = w->rank,
	};
	struct fabrex_coll *coll;
	int32_t x = 7;

	CHECK_EQ(fabrex_send(w->comm, &x, 1, FABREX_INT32, w->rank), -EDEADLK);
	CHECK_SAYS("waits for itself");
	CHECK_EQ(fabrex_recv(w->comm, &x, 1, FABREX_INT32, w->rank), -EDEADLK);
	CHECK_EQ(fabrex_coll_start(w->comm, &recv, sizeof(recv), &coll), 0);
	CHECK_EQ(fabrex_send(w->comm, &x, 1, FABREX_INT32, w->rank), 0);
	CHECK_EQ(fabrex_coll_test(coll), 1);
	CHECK_EQ(*(int32_t *)recv.recv, 7);
	CHECK_EQ(fabrex_group_begin(w->comm), 0);
	CHECK_EQ(fabrex_barrier(w->comm), 0);
	CHECK_EQ(fabrex_send(w->comm, &x, 1, FABREX_INT32, w->rank), 0);
	CHECK_EQ(fabrex_group_end(w->comm), -EDEADLK);
	CHECK_SAYS("waits for itself");
	CHECK_EQ(fabrex_barrier(w->comm), 0);
}

TEST(nobody_waits_for_itself)
{
	world_run(2, self_work, NULL);
}

static void length_work(struct world *w)
{
	static const uint64_t sent[] = { 8, 9, 1000, 200000, 5, MOST };
	static const uint64_t wanted[] = { 9, 8, 70000, 100, MOST, 200000 };
	char *p = get(w, w->arg != NULL);
	uint32_t i;

	for (i = 0; i < 6; i++) {
		if (!w->rank) {
			CHECK_EQ(fabrex_send(w->comm, p, sent[i],
					     FABREX_UINT8, 1), 0);
			continue;
		}
		CHECK_EQ(fabrex_recv(w->comm, p, wanted[i], FABREX_UINT8, 0),
			 -EMSGSIZE);
		CHECK_SAYS("rank 0 has sent");
	}
	/* It hurts nothing else. */
	fill(p, 100, w->rank);
	if (!w->rank)
		CHECK_EQ(fabrex_send(w->comm, p, 100, FABREX_UINT8, 1), 0);
	else
		CHECK_EQ(fabrex_recv(w->comm, p, 100, FABREX_UINT8, 0), 0);
	check(p, 100, 0);
	CHECK_EQ(fabrex_barrier(w->comm), 0);
}

/*
 * More pieces than there is room for, and no RECV behind it: the sender ends
 * all the same, by what the receiver does next, be it in another communicator.
 */
static void refused_work(struct world *w)
{
	struct fabrex_comm *other;
	char *p = get(w, false);
	uint32_t i;

	CHECK_EQ(fabrex_comm_split(w->comm, 0, 0, &other), 0);
	for (i = 0; i < 4; i++) {
		if (!w->rank)
			CHECK_EQ(fabrex_send(w->comm, p, MOST, FABREX_UINT8,
					     1), 0);
		else
			CHECK_EQ(fabrex_recv(w->comm, p, 100, FABREX_UINT8, 0),
				 -EMSGSIZE);
		CHECK_EQ(fabrex_barrier(i % 2 ? other : w->comm), 0);
	}
	fabrex_comm_destroy(other);
}

TEST(refused_sends_come_to_an_end)
{
	world_run(2, refused_work, NULL);
	world_run_far(2, refused_work, NULL);
}

/*
 * The receiver ends its communicator while much of the message is still on its
 * way. What comes of the SEND is the sender's to find out; the receiver forgets
 * the communicator, and the memory may be another's.
 */
static void refused_end_work(struct world *w)
{
	struct fabrex_comm *other;
	char *p = get(w, false);
	uint32_t i;

	for (i = 0; i < 4; i++) {
		CHECK_EQ(fabrex_comm_split(w->comm, 0, 0, &other), 0);
		if (!w->rank)
			fabrex_send(other, p, MOST, FABREX_UINT8, 1);
		else
			CHECK_EQ(fabrex_recv(other, p, 100, FABREX_UINT8, 0),
				 -EMSGSIZE);
		fabrex_comm_destroy(other);
		CHECK_EQ(fabrex_barrier(w->comm), 0);
	}
}

TEST(refused_send_of_a_communicator_that_ends)
{
	world_run(2, refused_end_work, NULL);
	world_run_far(2, refused_end_work, NULL);
}

TEST(wrong_lengths_are_told)
{
	world_run(2, length_work, NULL);
	world_run(2, length_work, "reached");
	world_run_far(2, length_work, "reached");
}
