// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tests of ranks that die, stop, leave or abort, at any moment: the others get
 * the documented error in time, shrink, and go on; nothing is left behind.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "coll/failure/failure.h"
#include "crowd.h"

#define DEATH_MS	200
#define SLACK_MS	HANG_MS	/* of a machine that does other things */
#define BULK		20000u

static uint32_t seed = 20261121;

static uint32_t draw(uint32_t below)
{
	seed = seed * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)seed * below >> 32);
}

static void pause_us(uint32_t us)
{
	const struct timespec nap = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&nap, NULL);
}

/* ---- traffic ----------------------------------------------------------- */

static float bulk[2][BULK];

static int pass_on(struct fabrex_comm *comm, uint64_t count)
{
	uint32_t n = fabrex_comm_size(comm), r = fabrex_comm_rank(comm);
	int ret, end;

	ret = fabrex_group_begin(comm);
	if (!ret)
		ret = fabrex_send(comm, bulk[0], count, FABREX_FLOAT32,
				  (r + 1) % n);
	if (!ret)
		ret = fabrex_recv(comm, bulk[1], count, FABREX_FLOAT32,
				  (r + n - 1) % n);
	end = fabrex_group_end(comm);
	return ret ? ret : end;
}

static int split_once(struct fabrex_comm *comm)
{
	struct fabrex_comm *part;
	int ret;

	ret = fabrex_comm_split(comm, (int)fabrex_comm_rank(comm) % 2, 0,
				&part);
	if (ret)
		return ret;
	ret = crowd_sum(part);
	fabrex_comm_destroy(part);
	/* A death within the part is the whole's as well. */
	while (ret && !fabrex_comm_failed(comm, NULL, 0))
		pause_us(1000);
	return ret ? fabrex_barrier(comm) : 0;
}

static int traffic(struct fabrex_comm *comm, uint32_t i)
{
	switch (i % 8) {
	case 0:
		return fabrex_barrier(comm);
	case 1:
		return fabrex_all_reduce(comm, bulk[0], bulk[1], BULK,
					 FABREX_FLOAT32, FABREX_SUM);
	case 2:
		return pass_on(comm, 2);
	case 3:
		return pass_on(comm, BULK);
	case 4:
		return fabrex_broadcast(comm, bulk[0], bulk[1], 100,
					FABREX_FLOAT32,
					i / 8 % fabrex_comm_size(comm));
	case 5:
		return i % 5 ? 0 : split_once(comm);
	default:
		return crowd_sum(comm);
	}
}

/* Until somebody dies. */
static int work_until(struct fabrex_comm *comm)
{
	uint32_t i = 0;
	int ret;

	do {
		ret = traffic(comm, i++);
	} while (!ret);
	return ret;
}

/* The survivors: the error, shrink, and a collective that is right. */
static int go_on(struct fabrex_comm *comm, int error, int expected,
		 uint32_t dead)
{
	uint32_t failed[CROWD], size = fabrex_comm_size(comm);
	struct fabrex_comm *rest;
	char text[32];
	int i;

	CHECK_EQ(error, expected);
	snprintf(text, sizeof(text), "rank %u (", comm->culprit);
	CHECK_SAYS(text);
	CHECK(dead >> comm->culprit & 1);
	CHECK_EQ(fabrex_comm_shrink(comm, DEATH_MS + SLACK_MS, &rest), 0);
	CHECK_EQ(fabrex_comm_size(rest), size - (uint32_t)__builtin_popcount(dead));
	CHECK_EQ(fabrex_comm_failed(comm, failed, CROWD),
		 __builtin_popcount(dead));
	for (i = 0; i < __builtin_popcount(dead); i++)
		CHECK(dead >> failed[i] & 1);
	CHECK_EQ(crowd_sum(rest), 0);
	for (i = 0; i < 8; i++)
		CHECK_EQ(traffic(rest, (uint32_t)i), 0);
	/* The old one stays as it is. */
	CHECK_EQ(fabrex_barrier(comm), expected);
	fabrex_comm_destroy(rest);
	fabrex_comm_destroy(comm);
	return 0;
}

/* ---- deaths ------------------------------------------------------------ */

struct plan {
	uint32_t dead;		/* bits of ranks */
	int expected;
	uint32_t silence_ms;
};

static int victim_work(struct member *m)
{
	const struct plan *plan = m->arg;
	struct fabrex_comm *comm;
	uint64_t begin;
	int ret;

	m->attr.silence_ms = plan->silence_ms;
	m->attr.death_ms = DEATH_MS;
	comm = crowd_create(m);
	crowd_ready(m);
	ret = work_until(comm);
	begin = fxi_now_ns();
	ret = go_on(comm, ret, plan->expected, plan->dead);
	CHECK(fxi_now_ns() - begin < (DEATH_MS + SLACK_MS) * 1000000ull);
	return ret;
}

/* Ranks of @plan get the signal at a random moment. */
static void deaths(uint32_t n, const struct plan *plan, uint32_t us, int sig)
{
	struct crowd c;
	uint32_t i;

	crowd_start(&c, n, victim_work, plan);
	crowd_await(&c);
	pause_us(draw(us));
	for (i = 0; i < n; i++)
		if (plan->dead >> i & 1)
			crowd_kill(&c, i, sig);
	for (i = 0; i < n; i++)
		if (!(plan->dead >> i & 1))
			crowd_end(&c, i);
	for (i = 0; i < n && sig != SIGKILL; i++)
		if (plan->dead >> i & 1)
			crowd_kill(&c, i, SIGKILL);
	crowd_finish(&c, plan->dead);
}

TEST(comm_any_rank_killed_200_times)
{
	struct plan plan = { .expected = -ECONNRESET };
	uint32_t i, n;

	for (i = 0; i < 200; i++) {
		n = 2 + draw(5);
		plan.dead = 1u << draw(n);
		deaths(n, &plan, 8000, SIGKILL);
	}
	crowd_gone();
}

TEST(comm_two_killed_at_once)
{
	struct plan plan = { .expected = -ECONNRESET };
	uint32_t i, n, first;

	for (i = 0; i < 25; i++) {
		n = 3 + draw(4);
		first = draw(n);
		plan.dead = 1u << first | 1u << (first + 1 + draw(n - 1)) % n;
		deaths(n, &plan, 8000, SIGKILL);
	}
	crowd_gone();
}

TEST(comm_stopped_is_silent)
{
	const struct plan plan = {
		/* Much longer than a busy machine lets a process wait. */
		.dead = 2, .expected = -ETIMEDOUT, .silence_ms = 8000,
	};

	setenv("FABREX_LOOPBACK_QUIESCE_MS", "100", 1);
	deaths(3, &plan, 3000, SIGSTOP);
	deaths(4, &plan, 3000, SIGSTOP);
	crowd_gone();
}

/* The last one has a child, a data loader perhaps, that outlives it. */
static int parent_work(struct member *m)
{
	const int *hold = m->arg;
	struct fabrex_comm *comm;
	char byte;

	m->attr.death_ms = DEATH_MS;
	comm = crowd_create(m);
	close(hold[1]);
	if (m->rank == m->size - 1 && !fork())
		_exit(read(hold[0], &byte, 1) != 0);
	crowd_ready(m);
	return go_on(comm, work_until(comm), -ECONNRESET,
		     1u << (m->size - 1));
}

TEST(comm_killed_after_fork)
{
	struct crowd c;
	int hold[2];

	CHECK(!pipe(hold));
	crowd_start(&c, 3, parent_work, hold);
	crowd_await(&c);
	crowd_kill(&c, 2, SIGKILL);
	crowd_finish(&c, 4);
	close(hold[1]);
}

/* ---- one after the other ----------------------------------------------- */

/*
 * The second dies while the others shrink because of the first, or a little
 * before or after: they come to an end all the same.
 */
static int twice_work(struct member *m)
{
	struct fabrex_comm *comm, *rest;
	int ret, rounds;

	m->attr.death_ms = DEATH_MS;
	comm = crowd_create(m);
	crowd_ready(m);
	for (rounds = 0; rounds < 2 && fabrex_comm_size(comm) > m->size - 2;
	     rounds++) {
		ret = work_until(comm);
		CHECK_EQ(ret, -ECONNRESET);
		CHECK_EQ(fabrex_comm_shrink(comm, DEATH_MS + SLACK_MS, &rest),
			 0);
		fabrex_comm_destroy(comm);
		comm = rest;
	}
	CHECK_EQ(fabrex_comm_size(comm), m->size - 2);
	CHECK_EQ(crowd_sum(comm), 0);
	fabrex_comm_destroy(comm);
	return 0;
}

TEST(comm_death_while_shrinking)
{
	uint32_t i, n, first, second;
	struct crowd c;

	for (i = 0; i < 40; i++) {
		n = 3 + draw(4);
		first = draw(n);
		second = (first + 1 + draw(n - 1)) % n;
		crowd_start(&c, n, twice_work, NULL);
		crowd_await(&c);
		pause_us(draw(4000));
		crowd_kill(&c, first, SIGKILL);
		pause_us(draw(15000));
		crowd_kill(&c, second, SIGKILL);
		crowd_finish(&c, 1u << first | 1u << second);
	}
	crowd_gone();
}

/* ---- while it is made -------------------------------------------------- */

/* Either an error, or a communicator that has one: nothing hangs. */
static int create_work(struct member *m)
{
	struct fabrex_comm *comm, *rest;
	int ret;

	m->attr.timeout_ms = 600;
	m->attr.death_ms = DEATH_MS;
	ret = fabrex_comm_create(m->port, &m->attr, sizeof(m->attr), &comm);
	if (ret) {
		CHECK(ret == -ETIMEDOUT || ret == -ECONNRESET);
		return 0;
	}
	CHECK_EQ(work_until(comm), -ECONNRESET);
	ret = fabrex_comm_shrink(comm, 800, &rest);
	CHECK(!ret || ret == -ETIMEDOUT);
	fabrex_comm_destroy(rest);
	fabrex_comm_destroy(comm);
	return 0;
}

TEST(comm_death_while_created)
{
	uint32_t i, n, who;
	struct crowd c;

	for (i = 0; i < 40; i++) {
		n = 2 + draw(4);
		who = draw(n);
		crowd_start(&c, n, create_work, NULL);
		pause_us(draw(12000));
		crowd_kill(&c, who, SIGKILL);
		crowd_finish(&c, 1u << who);
	}
	crowd_gone();
}

/* ---- without any death ------------------------------------------------- */

static int abort_work(struct member *m)
{
	struct fabrex_comm *comm = crowd_create(m), *rest;

	crowd_ready(m);
	if (m->rank == 1) {
		CHECK_EQ(crowd_sum(comm), 0);
		CHECK_EQ(fabrex_comm_abort(comm), 0);
		CHECK_EQ(fabrex_barrier(comm), -ECANCELED);
		CHECK_SAYS("this rank 1");
		CHECK_EQ(fabrex_comm_shrink(comm, 1000, &rest), -ECANCELED);
		fabrex_comm_destroy(comm);
		return 0;
	}
	CHECK_EQ(crowd_sum(comm), 0);
	CHECK_EQ(fabrex_barrier(comm), -ECONNRESET);
	CHECK_SAYS("has aborted");
	return go_on(comm, fabrex_barrier(comm), -ECONNRESET, 2);
}

TEST(comm_abort)
{
	crowd_run(3, abort_work, NULL);
}

/* Who leaves when all is done is not missed; who leaves before, is. */
static int leave_work(struct member *m)
{
	struct fabrex_comm *comm = crowd_create(m);
	uint32_t i;

	CHECK_EQ(crowd_sum(comm), 0);
	if (m->rank == 2) {
		fabrex_comm_destroy(comm);
		crowd_ready(m);
		return 0;
	}
	pause_us(3 * DEATH_MS * 1000);
	for (i = 0; i < 100; i++) {
		if (m->rank)
			CHECK_EQ(fabrex_send(comm, bulk[0], BULK,
					     FABREX_FLOAT32, 0), 0);
		else
			CHECK_EQ(fabrex_recv(comm, bulk[1], BULK,
					     FABREX_FLOAT32, 1), 0);
		pause_us(m->rank ? 5000 : 0);
	}
	CHECK_EQ(fabrex_comm_failed(comm, NULL, 0), 0);
	CHECK_EQ(fabrex_barrier(comm), -ECONNRESET);
	CHECK_SAYS("destroyed the communicator");
	return go_on(comm, fabrex_barrier(comm), -ECONNRESET, 4);
}

TEST(comm_leaving)
{
	crowd_run(3, leave_work, NULL);
}

/* Nobody has failed, but one calls shrink: the others learn it and do too. */
static int healthy_work(struct member *m)
{
	struct fabrex_comm *comm = crowd_create(m), *rest;

	if (m->rank) {
		pause_us(300000);
		while (!fabrex_barrier(comm))
			;
		CHECK_SAYS("shrinks the communicator");
	} else {
		CHECK_EQ(fabrex_comm_shrink(comm, 20, &rest), -ETIMEDOUT);
		CHECK_SAYS("fabrex_comm_shrink() too");
	}
	CHECK_EQ(fabrex_comm_shrink(comm, 5000, &rest), 0);
	CHECK_EQ(fabrex_comm_size(rest), m->size);
	CHECK_EQ(fabrex_comm_rank(rest), m->rank);
	CHECK_EQ(fabrex_comm_failed(comm, NULL, 0), 0);
	CHECK_EQ(crowd_sum(rest), 0);
	fabrex_comm_destroy(rest);
	CHECK_EQ(fabrex_comm_shrink(comm, 100, &rest), -EINVAL);
	fabrex_comm_destroy(comm);
	return 0;
}

TEST(comm_shrink_of_the_healthy)
{
	crowd_run(3, healthy_work, NULL);
}

static const uint64_t nobody[FAILED_WORDS];

/*
 * A rank that has decided and met nobody in time stays with its decision,
 * whatever it has learned since; what it left of that attempt is not met.
 */
static int again_work(struct member *m)
{
	struct fabrex_comm *comm = crowd_create(m), *rest;
	uint64_t decided[FAILED_WORDS];
	int i;

	if (m->rank == 0) {
		fxi_status_state(comm, STATUS_DECIDED, nobody);
		for (i = 0; i < 2; i++) {
			comm->failed[0] |= 1u << 2;
			CHECK_EQ(fabrex_comm_shrink(comm, 20, &rest),
				 -ETIMEDOUT);
			CHECK(fxi_status_decided(comm, decided));
			CHECK(!memcmp(decided, nobody, sizeof(decided)));
			comm->failed[0] = 0;
		}
	} else {
		pause_us(300000);
	}
	CHECK_EQ(fabrex_comm_shrink(comm, 10000, &rest), 0);
	CHECK_EQ(fabrex_comm_size(rest), m->size);
	CHECK_EQ(crowd_sum(rest), 0);
	fabrex_comm_destroy(rest);
	fabrex_comm_destroy(comm);
	return 0;
}

TEST(comm_shrink_again)
{
	crowd_run(3, again_work, NULL);
}

/* Others have decided to go on without this rank, which learned it late. */
static int voted_out_work(struct member *m)
{
	const uint64_t second[FAILED_WORDS] = { 1u << 1 };
	struct fabrex_comm *comm = crowd_create(m), *rest;

	if (m->rank == 0) {
		fxi_status_state(comm, STATUS_DECIDED, second);
		pause_us(500000);
	} else {
		fxi_status_state(comm, STATUS_DECIDED, nobody);
		CHECK_EQ(fabrex_comm_shrink(comm, -1, &rest), -ECONNRESET);
		CHECK_SAYS("this rank 1");
	}
	fabrex_comm_destroy(comm);
	return 0;
}

TEST(comm_shrink_voted_out)
{
	crowd_run(2, voted_out_work, NULL);
}

#define QUEUES	65536

/* One cannot make its part: the others are told, and the old one is as good. */
static int poor_work(struct member *m)
{
	static struct fabrex_queue *queues[QUEUES];
	struct fabrex_comm *comm = crowd_create(m), *part;
	uint32_t n = 0;
	int ret;

	CHECK_EQ(crowd_sum(comm), 0);
	while (m->rank == 1 && n < QUEUES &&
	       !fabrex_queue_create(m->port, NULL, 0, &queues[n]))
		n++;
	CHECK(n < QUEUES);
	ret = fabrex_comm_split(comm, 0, 0, &part);
	while (n--)
		fabrex_queue_destroy(queues[n]);
	if (m->rank == 1) {
		CHECK(ret < 0 && ret != -ECONNRESET);
	} else {
		CHECK_EQ(ret, -ECONNRESET);
		CHECK_SAYS("rank 1 (");
	}
	CHECK_EQ(crowd_sum(comm), 0);
	CHECK_EQ(fabrex_comm_split(comm, 0, 0, &part), 0);
	CHECK_EQ(crowd_sum(part), 0);
	fabrex_comm_destroy(part);
	fabrex_comm_destroy(comm);
	return 0;
}

TEST(comm_split_of_the_poor)
{
	crowd_run(3, poor_work, NULL);
}

/* A rank that computes is not silent as long as nobody waits too long. */
static int busy_work(struct member *m)
{
	struct fabrex_comm *comm;
	uint32_t i;
	int ret;

	m->attr.silence_ms = 1000;
	comm = crowd_create(m);
	for (i = 0; i < 4; i++) {
		pause_us(m->rank == i % m->size ? 200000 : 0);
		CHECK_EQ(crowd_sum(comm), 0);
	}
	/* All away at once: nobody waits. */
	pause_us(1500000);
	CHECK_EQ(crowd_sum(comm), 0);
	if (m->rank == 1)
		pause_us(2500000);
	/* What it needed of a barrier was there for rank 1. */
	do {
		ret = fabrex_barrier(comm);
	} while (!ret && m->rank == 1);
	CHECK_EQ(ret, -ETIMEDOUT);
	CHECK_SAYS("rank 1 (");
	CHECK_SAYS(m->rank == 1 ? "taken for dead" : "silence_ms");
	fabrex_comm_destroy(comm);
	return 0;
}

TEST(comm_silence)
{
	crowd_run(3, busy_work, NULL);
}

/*
 * A chain from 2 over 0 to 1. 2 is missing; 0 takes part while it waits in
 * another communicator, so it is not 0 that is silent.
 */
static int elsewhere_work(struct member *m)
{
	struct fabrex_comm *all = crowd_create(m), *chain;
	struct fabrex_collective what = {
		.kind = FABREX_BROADCAST, .type = FABREX_INT32, .root = 2,
		.count = 1,
	};
	struct fabrex_schedule *schedule;
	struct fabrex_coll *coll;
	int32_t value = 0;
	int ret;

	m->attr.silence_ms = 4000;
	m->attr.bootstrap = "fabric:777";
	chain = crowd_create(m);
	CHECK_EQ(fabrex_schedule_make(FABREX_BROADCAST, "chain", 3, 2,
				      &schedule), 0);
	CHECK_EQ(fabrex_comm_schedule(chain, FABREX_BROADCAST, schedule), 0);
	what.send = what.recv = &value;
	if (m->rank != 2)
		CHECK_EQ(fabrex_coll_start(chain, &what, sizeof(what), &coll),
			 0);
	if (m->rank == 1) {
		ret = fabrex_coll_wait(coll, -1);
		CHECK_EQ(ret, -ETIMEDOUT);
		CHECK_SAYS("rank 2 (");
		CHECK_EQ(fabrex_send(all, &value, 1, FABREX_INT32, 0), 0);
		CHECK_EQ(fabrex_send(all, &value, 1, FABREX_INT32, 2), 0);
	} else {
		CHECK_EQ(fabrex_recv(all, &value, 1, FABREX_INT32, 1), 0);
	}
	if (!m->rank)
		CHECK_EQ(fabrex_coll_wait(coll, -1), -ETIMEDOUT);
	fabrex_schedule_free(schedule);
	fabrex_comm_destroy(chain);
	fabrex_comm_destroy(all);
	return 0;
}

TEST(comm_silence_of_who_waits_elsewhere)
{
	alarm(240);
	crowd_run(3, elsewhere_work, NULL);
}

#define MANY	1000

/* 0 and 1 are busy with each other for long; 0 waits for 2, which is away. */
static int noisy_work(struct member *m)
{
	struct fabrex_collective what = {
		.kind = FABREX_ALL_REDUCE, .type = FABREX_INT32,
		.op = FABREX_SUM, .count = 1,
	};
	struct fabrex_comm *all = crowd_create(m), *busy, *quiet = NULL;
	static int32_t in[MANY], out[MANY];
	struct fabrex_coll *colls[MANY];
	uint32_t i;

	CHECK_EQ(fabrex_comm_split(all, m->rank < 2 ? 0 : -1, 0, &busy), 0);
	m->attr.silence_ms = 500;
	m->attr.bootstrap = "fabric:778";
	m->attr.size = 2;
	m->attr.rank = m->rank == 2;
	if (m->rank != 1)
		quiet = crowd_create(m);
	for (i = 0; !m->rank && i < MANY; i++) {
		what.send = &in[i];
		what.recv = &out[i];
		CHECK_EQ(fabrex_coll_start(busy, &what, sizeof(what),
					   &colls[i]), 0);
	}
	if (!m->rank) {
		CHECK_EQ(fabrex_barrier(quiet), -ETIMEDOUT);
		CHECK_SAYS("rank 1 (");
		CHECK_EQ(fabrex_coll_test(colls[MANY - 2]), 0);
		CHECK_EQ(fabrex_send(all, in, 1, FABREX_INT32, 1), 0);
		CHECK_EQ(fabrex_send(all, in, 1, FABREX_INT32, 2), 0);
	}
	what.send = in;
	what.recv = out;
	if (m->rank) {
		CHECK_EQ(fabrex_coll_start(all, &(struct fabrex_collective){
			.kind = FABREX_RECV, .type = FABREX_INT32, .count = 1,
			.recv = &in[1] }, sizeof(what), &colls[0]), 0);
		/* Never ahead of the end of what 0 waits for in vain. */
		for (i = 0; m->rank == 1 && i < MANY - 1 &&
		     !fabrex_coll_test(colls[0]); i++) {
			CHECK_EQ(fabrex_all_reduce(busy, in, out, 1,
						   FABREX_INT32, FABREX_SUM),
				 0);
			pause_us(20000);
		}
		if (m->rank == 2)
			CHECK_EQ(fabrex_coll_wait(colls[0], -1), 0);
	}
	fabrex_comm_destroy(quiet);
	fabrex_comm_destroy(busy);
	fabrex_comm_destroy(all);
	return 0;
}

TEST(comm_silence_beside_noise)
{
	alarm(240);
	crowd_run(3, noisy_work, NULL);
}

/* ---- what others write ------------------------------------------------- */

/*
 * Rank 1 fills everything it can reach in rank 0's mailbox with noise. Rank 0
 * returns something, soon, and destroys its communicator.
 */
static int hostile_work(struct member *m)
{
	struct fabrex_comm *comm = crowd_create(m), *rest;
	uint32_t salt = *(const uint32_t *)m->arg, i, n;
	uint64_t *line;
	struct rank_status b;

	if (m->rank == 1) {
		line = (uint64_t *)(void *)fxi_link(comm, 0, LINK_COLL)->out;
		seed = salt;
		n = LINK_CHANNELS * LINK_SLOTS * sizeof(struct link_slot) / 8;
		for (i = 0; i < n; i++)
			line[i] = (uint64_t)draw(UINT32_MAX) << 32 | draw(9);
		memset(&b, 0xff, sizeof(b));
		b.state = salt % 4;
		b.culprit = draw(UINT32_MAX);
		b.error = (int32_t)draw(1000) - 500;
		b.failed[0] = salt & 2;
		b.check = fxi_hash((const char *)&b + 8, sizeof(b) - 8,
				   salt % 3);
		for (i = 0; i + 8 <= BOARD_BYTES; i += 8) {
			uint64_t noise = (uint64_t)draw(UINT32_MAX) << 32 |
					 draw(UINT32_MAX);

			fxi_link_post(comm, 0, i, &noise, 8);
		}
		fxi_link_post(comm, 0, BOARD_AT_STATUS, &b, sizeof(b));
		fxi_link_raise(comm, 0);
		crowd_ready(m);
		pause_us(100000);
		raise(SIGKILL);
	}
	while (!crowd_sum(comm))
		;
	CHECK(comm->error == -ECONNRESET || comm->error == -ETIMEDOUT ||
	      comm->error == -EPROTO);
	CHECK(fabrex_comm_failed(comm, NULL, 0) >= 0);
	if (!fabrex_comm_shrink(comm, 300, &rest))
		fabrex_comm_destroy(rest);
	fabrex_comm_destroy(comm);
	return 0;
}

TEST(comm_hostile_mailbox)
{
	struct crowd c;
	uint32_t i;

	for (i = 0; i < 24; i++) {
		crowd_start(&c, 2, hostile_work, &i);
		crowd_finish(&c, 2);
	}
}
