/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keeps transfers to the rates of the links that they cross, times a factor.
 * Off unless asked for.
 *
 * Each direction of a link remembers when all that was admitted to it will have
 * crossed. A flow (a queue) reserves its next bytes on every link of their
 * route at once and waits until the last of these times, and only then are the
 * bytes moved. So the slowest link determines the rate, links that two flows
 * have in common carry their pieces in turn, and whoever waits holds no memory.
 *
 * Locks: throttle.lock is a leaf. A flow belongs to whoever runs it.
 */
#ifndef EMU_THROTTLE_H
#define EMU_THROTTLE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "traffic.h"

#define THROTTLE_LEAST		1e-9	/* factor */
#define THROTTLE_PIECE_NS	1000000u	/* reserved at a time, or */
#define THROTTLE_PIECE_MIN	4096u		/* bytes, if that is longer */
/* Not worth sleeping for: made up for by the flow's next bytes. */
#define THROTTLE_SLACK_NS	50000u
/* Nobody waits longer at a time: then it is looked again. */
#define THROTTLE_MOST_NS	1000000000000u
/* The emulator may be that much late without losing bandwidth. */
#define THROTTLE_LATE_NS	20000000u

struct throttle {
	pthread_mutex_t lock;
	double factor;			/* lock; 0: off */
	atomic_bool on;
	_Atomic uint32_t sets;		/* factors there have been */
	uint64_t (*clock)(void);	/* nanoseconds; tests have their own */
};

/* What is transferred one after the other. Begins as zeroes. */
struct flow {
	struct place from, to;
	struct oneway *way;		/* all of the route, instead of these */
	uint64_t bytes;			/* reserved and not moved */
	double due_ns;			/* then they have crossed; 0: idle */
	uint32_t set;			/* throttle.sets, as they were reserved */
};

/* @f has its links: gives them their rates. Off. */
void throttle_init(struct fabric *f);
void throttle_free(struct fabric *f);

/*
 * Any thread: rates times @factor, 0 for no limit. What waits may go on, with
 * what it has reserved.
 */
void throttle_set(struct fabric *f, double factor);
double throttle_factor(struct fabric *f);

static inline bool throttle_is_on(struct throttle *t)
{
	return atomic_load_explicit(&t->on, memory_order_relaxed);
}

/*
 * A flow with nothing reserved wants @bytes to cross: as many as it should move
 * at once are reserved.
 */
void throttle_reserve(struct fabric *f, struct flow *w,
		      const struct place *from, const struct place *to,
		      uint64_t bytes);
/* Likewise, over a link that leads to nothing else. */
void throttle_reserve_way(struct fabric *f, struct flow *w, struct oneway *way,
			  uint64_t bytes);
/*
 * Nanoseconds until what is reserved may be moved, or until it is to be asked
 * again; 0: now.
 */
uint64_t throttle_wait(struct fabric *f, const struct flow *w);
/* It is moved: at most *bytes, which becomes less if less was reserved. */
void throttle_take(struct flow *w, uint64_t *bytes);
/* It will not be moved: the links are free for others. */
void throttle_release(struct fabric *f, struct flow *w);
/* Nothing is left to do: what comes next has not been waiting till now. */
static inline void throttle_idle(struct flow *w)
{
	w->due_ns = 0;
}

#endif
