// SPDX-License-Identifier: GPL-2.0-only
/* Operations without end. See storm.h. */

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "storm.h"

#define STORMS	64

static struct storm {
	pthread_t thread;
	bool running;
	bool stop;
	struct raw_queue *queue;
	struct fabrex_sqe sqe;
	unsigned int depth;
	uint64_t good;
	uint64_t bad;
	struct storm_count count;
} storms[STORMS];

static void take(struct storm *s, const struct fabrex_cqe *cqe)
{
	s->count.status[cqe->status % STORM_STATUS]++;
	if (cqe->status) {
		__atomic_fetch_add(&s->bad, 1, __ATOMIC_RELAXED);
		/* What is refused at once would take all of a processor. */
		usleep(200);
		return;
	}
	s->count.relapses += !!s->bad;
	__atomic_fetch_add(&s->good, 1, __ATOMIC_RELAXED);
}

static void *run(void *arg)
{
	struct storm *s = arg;
	struct fabrex_cqe cqe;
	unsigned int out = 0;
	bool stop;

	do {
		stop = __atomic_load_n(&s->stop, __ATOMIC_ACQUIRE);
		for (; !stop && out < s->depth; out++)
			raw_put(s->queue, &s->sqe);
		raw_submit(s->queue);
		if (out && raw_poll(s->queue, &cqe, RAW_WAIT_MS)) {
			take(s, &cqe);
			out--;
		} else if (out) {
			break;
		}
	} while (!stop || out);
	s->count.lost = out;
	return NULL;
}

int storm_start(unsigned int n, struct raw_queue *queue,
		const struct fabrex_sqe *sqe, unsigned int depth)
{
	struct storm *s = &storms[n % STORMS];

	if (s->running)
		return -EBUSY;
	memset(s, 0, sizeof(*s));
	s->queue = queue;
	s->sqe = *sqe;
	s->depth = depth;
	s->running = true;
	return -pthread_create(&s->thread, NULL, run, s);
}

void storm_look(unsigned int n, uint64_t *good, uint64_t *bad)
{
	struct storm *s = &storms[n % STORMS];

	*good = __atomic_load_n(&s->good, __ATOMIC_RELAXED);
	*bad = __atomic_load_n(&s->bad, __ATOMIC_RELAXED);
}

int storm_stop(unsigned int n, struct storm_count *count)
{
	struct storm *s = &storms[n % STORMS];

	if (!s->running)
		return -ENOENT;
	__atomic_store_n(&s->stop, true, __ATOMIC_RELEASE);
	pthread_join(s->thread, NULL);
	s->running = false;
	*count = s->count;
	return 0;
}
