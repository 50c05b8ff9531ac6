// SPDX-License-Identifier: GPL-2.0-only
/*
 * The DMA engine's scheduler: N workers, one line of ready works served in
 * turn, and at most one worker that polls works which went dry a moment ago.
 */
#include "engine.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "log.h"

#define ALONE_TURNS	4	/* before the other lists are looked at */
#define POLL_NS		1000000	/* likewise, for the poller */
#define POLL_HOT_NS	5000	/* without giving the CPU to others */

enum work_state {
	WORK_IDLE,
	WORK_READY,	/* in a list */
	WORK_RUNNING,	/* with a worker */
	WORK_AGAIN,	/* with a worker, and kicked since it started */
};

uint64_t engine_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static void list_init(struct work_list *l)
{
	l->head = NULL;
	l->tail = &l->head;
	l->n = 0;
}

static void list_push(struct work_list *l, struct work *w)
{
	w->next = NULL;
	*l->tail = w;
	l->tail = &w->next;
	l->n++;
}

static void list_push_front(struct work_list *l, struct work *w)
{
	w->next = l->head;
	l->head = w;
	if (l->tail == &l->head)
		l->tail = &w->next;
	l->n++;
}

static struct work *list_pop(struct work_list *l)
{
	struct work *w = l->head;

	if (w) {
		l->head = w->next;
		if (!l->head)
			l->tail = &l->head;
		l->n--;
	}
	return w;
}

static void list_splice(struct work_list *to, struct work_list *from)
{
	if (!from->head)
		return;
	*to->tail = from->head;
	to->tail = from->tail;
	to->n += from->n;
	list_init(from);
}

/* lock held, after ready has changed */
static void note_ready(struct engine *e)
{
	atomic_store_explicit(&e->nready, e->ready.n, memory_order_relaxed);
}

/* lock held */
static void push_ready(struct engine *e, struct work *w)
{
	if (w->urgent)
		list_push_front(&e->ready, w);
	else
		list_push(&e->ready, w);
	note_ready(e);
	if (!e->poller && e->sleepers)
		pthread_cond_signal(&e->wake);
}

/* IDLE -> READY or RUNNING -> AGAIN; true if it is to be put into a list. */
static bool mark_kicked(struct work *w)
{
	unsigned int s;

	/* What the kick is about is stored; pairs with run_once(). */
	atomic_thread_fence(memory_order_seq_cst);
	s = atomic_load(&w->state);
	for (;;) {
		unsigned int next = s == WORK_IDLE ? WORK_READY : WORK_AGAIN;

		if (s == WORK_READY || s == WORK_AGAIN)
			return false;
		if (atomic_compare_exchange_weak(&w->state, &s, next))
			return s == WORK_IDLE;
	}
}

void engine_kick(struct engine *e, struct work *w)
{
	if (!mark_kicked(w))
		return;
	if (w->get)
		w->get(w);
	pthread_mutex_lock(&e->lock);
	push_ready(e, w);
	pthread_mutex_unlock(&e->lock);
}

static void enqueue(struct engine *e, struct work *w)
{
	pthread_mutex_lock(&e->lock);
	atomic_store(&w->state, WORK_READY);
	push_ready(e, w);
	pthread_mutex_unlock(&e->lock);
}

/* A turn ended with nothing to do. */
static void finish(struct engine *e, struct work *w)
{
	unsigned int s = WORK_RUNNING;

	if (!atomic_compare_exchange_strong(&w->state, &s, WORK_IDLE))
		enqueue(e, w);
	else if (w->put)
		w->put(w);
}

static void delay(struct engine *e, struct work *w)
{
	pthread_mutex_lock(&e->lock);
	atomic_store(&w->state, WORK_READY);
	w->next = e->delayed;
	e->delayed = w;
	if (w->due_ns < e->due_ns)
		e->due_ns = w->due_ns;
	/* Someone has to sleep no longer than until then. */
	if (e->sleepers)
		pthread_cond_signal(&e->wake);
	pthread_mutex_unlock(&e->lock);
}

static void watch(struct engine *e, struct work *w)
{
	pthread_mutex_lock(&e->lock);
	list_push(&e->watched, w);
	pthread_mutex_unlock(&e->lock);
}

static enum run_result run_once(struct work *w, bool light)
{
	atomic_store(&w->state, WORK_RUNNING);
	return w->run(w, light);
}

/* Where a work goes after a turn; not for RUN_HEAVY. */
static void settle(struct engine *e, struct work *w, enum run_result r)
{
	switch (r) {
	case RUN_IDLE:
		finish(e, w);
		break;
	case RUN_WATCH:
		watch(e, w);
		break;
	case RUN_DELAY:
		delay(e, w);
		break;
	default:
		enqueue(e, w);
	}
}

static void run_full(struct engine *e, struct work *w)
{
	unsigned int turns = ALONE_TURNS;
	enum run_result r;

	/* Alone in the line: go on without asking for the lock. */
	do {
		r = run_once(w, false);
	} while (r == RUN_MORE && --turns &&
		 !atomic_load_explicit(&e->nready, memory_order_relaxed));
	settle(e, w, r);
}

/* lock held: delayed works whose time has come; the earliest other one. */
static uint64_t promote_delayed(struct engine *e)
{
	struct work **p = &e->delayed;
	uint64_t next = UINT64_MAX;
	uint64_t now;

	if (!e->delayed)
		return next;
	now = engine_now_ns();
	/* Many may wait, and for long: no others are to pay for that. */
	if (now < e->due_ns)
		return e->due_ns;
	while (*p) {
		struct work *w = *p;

		if (w->due_ns <= now) {
			*p = w->next;
			push_ready(e, w);
		} else {
			next = w->due_ns < next ? w->due_ns : next;
			p = &w->next;
		}
	}
	e->due_ns = next;
	return next;
}

/* lock held */
static void sleep_until(struct engine *e, uint64_t ns)
{
	struct timespec ts = {
		.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000
	};

	e->sleepers++;
	if (ns == UINT64_MAX)
		pthread_cond_wait(&e->wake, &e->lock);
	else
		pthread_cond_timedwait(&e->wake, &e->lock, &ts);
	e->sleepers--;
}

static void end_polling(struct engine *e, struct work_list *mine)
{
	pthread_mutex_lock(&e->lock);
	list_splice(&e->watched, mine);
	e->poller = false;
	if ((e->watched.head || e->ready.head) && e->sleepers)
		pthread_cond_signal(&e->wake);
	pthread_mutex_unlock(&e->lock);
}

/*
 * One look at every work of @mine. A work that turns out to have much to do is
 * returned, taken out of the list, for this worker to run.
 */
static struct work *poll_round(struct engine *e, struct work_list *mine,
			       enum run_result *result)
{
	struct work_list keep;
	struct work *w;

	list_init(&keep);
	while ((w = list_pop(mine))) {
		enum run_result r = run_once(w, true);

		if (r == RUN_WATCH) {
			list_push(&keep, w);
		} else if (r == RUN_IDLE) {
			finish(e, w);
		} else {
			list_splice(mine, &keep);
			*result = r;
			return w;
		}
	}
	list_splice(mine, &keep);
	return NULL;
}

static void poll_watched(struct engine *e, struct work_list *mine)
{
	uint64_t start = engine_now_ns(), spent = 0;
	enum run_result r = RUN_IDLE;
	struct work *w = NULL;

	while (mine->head && !w && spent < POLL_NS &&
	       !atomic_load_explicit(&e->nready, memory_order_relaxed)) {
		w = poll_round(e, mine, &r);
		spent = engine_now_ns() - start;
		/* Guests may want this CPU more than we do. */
		if (!w && spent > POLL_HOT_NS)
			sched_yield();
	}
	end_polling(e, mine);
	if (w && r == RUN_HEAVY)
		run_full(e, w);
	else if (w)
		settle(e, w, r);
}

/* lock held: what to do next, or NULL with @mine filled, or NULL to stop. */
static struct work *next_work(struct engine *e, struct work_list *mine)
{
	for (;;) {
		uint64_t due = promote_delayed(e);
		struct work *w;

		if (atomic_load(&e->stop))
			return NULL;
		/* Nobody is free to poll: watched ones take their turns. */
		if (e->ready.head && !e->poller && !e->sleepers)
			list_splice(&e->ready, &e->watched);
		w = list_pop(&e->ready);
		note_ready(e);
		if (w) {
			if ((e->ready.head || e->watched.head) && !e->poller &&
			    e->sleepers)
				pthread_cond_signal(&e->wake);
			return w;
		}
		if (e->watched.head && !e->poller) {
			e->poller = true;
			list_splice(mine, &e->watched);
			return NULL;
		}
		sleep_until(e, due);
	}
}

static void *worker(void *arg)
{
	struct engine *e = arg;

	for (;;) {
		struct work_list mine;
		struct work *w;

		list_init(&mine);
		pthread_mutex_lock(&e->lock);
		w = next_work(e, &mine);
		pthread_mutex_unlock(&e->lock);
		if (w)
			run_full(e, w);
		else if (mine.head)
			poll_watched(e, &mine);
		else
			return NULL;
	}
}

int engine_init(struct engine *e)
{
	pthread_condattr_t attr;

	list_init(&e->ready);
	list_init(&e->watched);
	e->due_ns = UINT64_MAX;
	pthread_mutex_init(&e->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&e->wake, &attr);
	pthread_condattr_destroy(&attr);
	return 0;
}

int engine_start(struct engine *e, unsigned int threads)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (!threads)
		threads = cpus < 1 ? 1 : cpus;
	e->threads = calloc(threads, sizeof(*e->threads));
	if (!e->threads)
		return -ENOMEM;
	for (; e->nthreads < threads; e->nthreads++) {
		int err = pthread_create(&e->threads[e->nthreads], NULL,
					 worker, e);

		if (err) {
			log_error("engine: worker %u of %u not started: error %d; use fewer --threads",
				  e->nthreads + 1, threads, err);
			engine_stop(e);
			return -err;
		}
	}
	return 0;
}

static void drop_all(struct work *w)
{
	while (w) {
		struct work *next = w->next;

		atomic_store(&w->state, WORK_IDLE);
		if (w->put)
			w->put(w);
		w = next;
	}
}

void engine_stop(struct engine *e)
{
	pthread_mutex_lock(&e->lock);
	atomic_store(&e->stop, true);
	pthread_cond_broadcast(&e->wake);
	pthread_mutex_unlock(&e->lock);
	for (unsigned int i = 0; i < e->nthreads; i++)
		pthread_join(e->threads[i], NULL);
	e->nthreads = 0;
	free(e->threads);
	e->threads = NULL;
	drop_all(e->ready.head);
	drop_all(e->watched.head);
	drop_all(e->delayed);
	list_init(&e->ready);
	list_init(&e->watched);
	e->delayed = NULL;
}

void engine_free(struct engine *e)
{
	pthread_cond_destroy(&e->wake);
	pthread_mutex_destroy(&e->lock);
}
