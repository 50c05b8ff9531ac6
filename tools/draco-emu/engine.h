/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Worker threads of the DMA engine and what they schedule: queues and the
 * ports' own control work. Anything with a struct work can be scheduled.
 *
 * Locks: engine.lock protects the lists and is a leaf; it is taken once for
 * each turn of a work, not for each operation. A work runs on one worker at a
 * time, so what only run() touches needs no lock.
 */
#ifndef EMU_ENGINE_H
#define EMU_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum run_result {
	RUN_IDLE,	/* nothing to do until the next kick */
	RUN_MORE,	/* used up its turn */
	RUN_WATCH,	/* nothing to do now, but look again soon */
	RUN_HEAVY,	/* light turn refused: there is something big to do */
	RUN_DELAY,	/* not before due_ns */
};

/**
 * struct work - something that workers run
 * @run:    one turn. @light: at most a few small operations, else RUN_HEAVY
 * @get:    a reference for the engine, taken when the work leaves idle
 * @put:    and dropped when it is idle again; may free it. Both may be NULL
 * @urgent: goes to the head of the line
 * @due_ns: for RUN_DELAY, of CLOCK_MONOTONIC
 */
struct work {
	enum run_result (*run)(struct work *w, bool light);
	void (*get)(struct work *w);
	void (*put)(struct work *w);
	bool urgent;
	uint64_t due_ns;
	_Atomic unsigned int state;
	struct work *next;
};

struct work_list {
	struct work *head, **tail;
	unsigned int n;
};

struct engine {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct work_list ready;		/* lock */
	struct work_list watched;	/* lock; looked at by the poller */
	struct work *delayed;		/* lock; any order */
	uint64_t due_ns;		/* lock; of the first of them */
	unsigned int sleepers;		/* lock */
	bool poller;			/* lock; a worker is polling */
	_Atomic unsigned int nready;	/* length of ready, for looks without lock */
	_Atomic bool stop;
	unsigned int nthreads;
	pthread_t *threads;
};

/* @threads: 0 for one for each CPU. Works may be kicked between the two. */
int engine_init(struct engine *e);
int engine_start(struct engine *e, unsigned int threads);
/* Ends the workers; works that are not idle get their put(). */
void engine_stop(struct engine *e);
void engine_free(struct engine *e);

/* Have @w run once more, after this call at the latest. Any thread. */
void engine_kick(struct engine *e, struct work *w);

uint64_t engine_now_ns(void);

#endif
