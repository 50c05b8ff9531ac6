// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guessing keys: it is paid for by the queue that guesses, and by the user who
 * has the kernel try, and by nobody else. docs/draco.md, section 10.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "kselftest_harness.h"
#include "bench.h"

#define BURST		16384u	/* misses of a port at once, */
#define RATE_NS		10000000u /* and then one in that time */
#define SQ		256u
#define GUESSERS	8u

FIXTURE(guess) {
	struct bench b;
	struct raw_queue q[GUESSERS];
	uint64_t next;		/* key to be tried */
	uint64_t misses;
};

FIXTURE_SETUP(guess)
{
	ASSERT_EQ(bench_open(&self->b), 0);
	for (unsigned int i = 0; i < GUESSERS; i++)
		ASSERT_EQ(raw_queue(self->b.fd, SQ, SQ, 0, &self->q[i]), 0);
	self->next = self->b.dst.key;
	self->misses = 0;
}

FIXTURE_TEARDOWN(guess)
{
	for (unsigned int i = 0; i < GUESSERS; i++)
		raw_queue_free(&self->q[i]);
	bench_close(&self->b);
}

/* The index is right, as whoever has a region of his own can make out. */
static void guess(FIXTURE_DATA(guess) *self, struct raw_queue *q)
{
	struct fabrex_sqe sqe = bench_write(&self->b, 0, 0, 8);

	self->next += 1ull << 40;
	sqe.rkey = self->next;
	raw_post(q, &sqe);
}

/* Completions that are there, each followed by one more guess. */
static int go_on(FIXTURE_DATA(guess) *self, struct raw_queue *q)
{
	struct fabrex_cqe cqe;
	int n = 0;

	while (raw_poll(q, &cqe, 0)) {
		if (cqe.status != FABREX_WC_RKEY)
			return -1;
		self->misses++;
		n++;
		guess(self, q);
	}
	return n;
}

static void start(FIXTURE_DATA(guess) *self)
{
	for (unsigned int i = 0; i < GUESSERS; i++)
		for (unsigned int k = 0; k < SQ / 2; k++)
			guess(self, &self->q[i]);
}

/* All together for a while: false if a guess was right. */
static bool guess_for(FIXTURE_DATA(guess) *self, uint64_t ns)
{
	uint64_t end = raw_now_ns() + ns;

	while (raw_now_ns() < end)
		for (unsigned int i = 0; i < GUESSERS; i++)
			if (go_on(self, &self->q[i]) < 0)
				return false;
	return true;
}

TEST_F_TIMEOUT(guess, beside_a_working_queue, 600)
{
	struct fabrex_sqe good = bench_write(&self->b, 0, 0, 64);
	uint64_t begin = raw_now_ns(), before, since, limit;

	ASSERT_EQ(raw_do(&self->b.q, &good, NULL), FABREX_WC_OK);
	start(self);
	while (self->misses < BURST && raw_now_ns() - begin < 300000000000ull)
		ASSERT_TRUE(guess_for(self, 1000000));
	/* It is spent: what a queue does that does not guess is not slowed. */
	before = self->misses;
	since = raw_now_ns();
	for (int i = 0; i < 3000; i++) {
		ASSERT_EQ(raw_do(&self->b.q, &good, NULL), FABREX_WC_OK);
		ASSERT_GE(go_on(self, &self->q[i % GUESSERS]), 0);
	}
	limit = BURST + GUESSERS + 1 + (raw_now_ns() - begin) / RATE_NS;
	EXPECT_LE(self->misses, limit);
	TH_LOG("%llu misses, then %llu while 3000 operations of another queue took %llu ms",
	       (unsigned long long)before,
	       (unsigned long long)(self->misses - before),
	       (unsigned long long)((raw_now_ns() - since) / 1000000));
	EXPECT_LT(self->misses - before, 3000);
}

/* Who waits can be destroyed at once, and the next one begins where it was. */
TEST_F_TIMEOUT(guess, new_queues_do_not_help, 600)
{
	uint64_t begin = raw_now_ns();
	struct raw_queue q;

	start(self);
	while (raw_now_ns() - begin < 2000000000ull) {
		ASSERT_TRUE(guess_for(self, 1000000));
		ASSERT_EQ(raw_queue(self->b.fd, 8, 8, 0, &q), 0);
		guess(self, &q);
		go_on(self, &q);
		ASSERT_EQ(raw_queue_free(&q), 0);
	}
	/* Those of queues that are gone were not even looked at, or counted. */
	EXPECT_LE(self->misses, BURST + 2 * GUESSERS +
		  (raw_now_ns() - begin) / RATE_NS);
}

/* After each wrong key of a window its user waits for 10 ms. */
TEST_F_TIMEOUT(guess, windows, 600)
{
	struct fabrex_window_create w;
	uint64_t begin = raw_now_ns(), took;

	for (int i = 0; i < 50; i++) {
		memset(&w, 0, sizeof(w));
		w.size = sizeof(w);
		w.peer = self->b.self;
		w.access = FABREX_ACCESS_REMOTE_READ;
		w.rkey = self->b.dst.key + ((i + 1ull) << 40);
		w.length = 4096;
		ASSERT_EQ(raw_ioctl(self->b.fd, FABREX_IOCTL_WINDOW_CREATE,
				    &w), -EACCES);
	}
	took = raw_now_ns() - begin;
	EXPECT_GE(took, 49 * 9000000ull);
	w.rkey = self->b.dst.key;
	ASSERT_EQ(raw_ioctl(self->b.fd, FABREX_IOCTL_WINDOW_CREATE, &w), 0);
	EXPECT_EQ(raw_destroy(self->b.fd, w.out_id), 0);
}

#define THREADS		64u

struct guessers {
	pthread_barrier_t barrier;
	struct bench *b;
	uint32_t refused;
};

static void *guess_once(void *arg)
{
	struct guessers *g = arg;
	struct fabrex_window_create w = {
		.size = sizeof(w), .peer = g->b->self,
		.access = FABREX_ACCESS_REMOTE_READ,
		.rkey = g->b->dst.key + (1ull << 40), .length = 4096,
	};

	pthread_barrier_wait(&g->barrier);
	if (raw_ioctl(g->b->fd, FABREX_IOCTL_WINDOW_CREATE, &w) == -EACCES)
		__atomic_add_fetch(&g->refused, 1, __ATOMIC_RELAXED);
	return NULL;
}

/* Many threads are no way around it: none tries before others have paid. */
TEST_F_TIMEOUT(guess, windows_at_once, 600)
{
	struct guessers g = { .b = &self->b };
	pthread_t threads[THREADS];
	uint64_t begin;

	pthread_barrier_init(&g.barrier, NULL, THREADS + 1);
	for (unsigned int i = 0; i < THREADS; i++)
		ASSERT_EQ(pthread_create(&threads[i], NULL, guess_once, &g), 0);
	begin = raw_now_ns();
	pthread_barrier_wait(&g.barrier);
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	TH_LOG("%u keys in %llu ms", g.refused,
	       (unsigned long long)(raw_now_ns() - begin) / 1000000);
	/* Window slots are few: those for whom there was none have not tried. */
	EXPECT_GT(g.refused, 8);
	EXPECT_GE(raw_now_ns() - begin, (g.refused - 1) * 9000000ull);
	pthread_barrier_destroy(&g.barrier);
}

TEST_HARNESS_MAIN
