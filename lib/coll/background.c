// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The progress thread: one for the process, which performs operations while
 * their callers do something else. It is started when the first operation with
 * a handle, or in a stream, begins. It polls, then yields, then sleeps, so that
 * those that could go on get the processors.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include "base/debug.h"
#include "coll/coll.h"
#include "coll/stream/waker.h"

#define POLLS		64u	/* rounds in vain before it yields, */
#define YIELDS		128u	/* and before it sleeps */
#define NAP_NS		20000u	/* grows with the time that it waits: */
#define NAP_LONGEST_NS	200000u	/* a stream may have got there meanwhile */
#define IDLE_NS		1000000u
#define IDLE_NAPS	100u	/* of that, before it parks */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t thread;
static atomic_bool running;	/* under lock, but for looks */
static atomic_bool ending;
static bool failed;		/* could not be started: callers do it all */
static bool over;		/* exit() has begun: it is not started again */

/* ---- the thread -------------------------------------------------------- */

/* After @waits rounds in which nothing moved. */
static void pause_waiting(uint32_t waits, uint32_t seen)
{
	uint64_t ns;

	if (waits < POLLS) {
		cpu_relax();
	} else if (waits < YIELDS) {
		sched_yield();
	} else {
		ns = (uint64_t)NAP_NS * (1 + (waits - YIELDS) / 32);
		fxi_waker_sleep(seen, ns < NAP_LONGEST_NS ? ns :
							    NAP_LONGEST_NS);
	}
}

static void *background_main(void *arg)
{
	uint32_t waits = 0, idle = 0, seen;

	(void)arg;
	while (!atomic_load(&ending)) {
		seen = fxi_waker_seen();
		switch (fxi_busy_round(fxi_comm_progress_unwaited)) {
		case BUSY_MOVED:
			waits = idle = 0;
			break;
		case BUSY_WAITS:
			idle = 0;
			pause_waiting(waits++, seen);
			break;
		case BUSY_OTHERS:
			waits = idle = 0;
			fxi_waker_sleep(seen, IDLE_NS);
			break;
		case BUSY_NOTHING:
			waits = 0;
			fxi_waker_sleep(seen, idle++ < IDLE_NAPS ? IDLE_NS :
								   0);
			break;
		}
	}
	return NULL;
}

/* ---- its life ---------------------------------------------------------- */

/* What it uses, of other libraries, too, is gone after that. */
static void stop(void)
{
	pthread_mutex_lock(&lock);
	if (atomic_load(&running) && !pthread_equal(thread, pthread_self())) {
		atomic_store(&ending, true);
		fxi_waker_wake();
		pthread_join(thread, NULL);
	}
	over = true;
	atomic_store(&running, false);
	pthread_mutex_unlock(&lock);
}

/* Signals of the application are not for it. */
static int create(void)
{
	sigset_t all, old;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(&thread, NULL, background_main, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return ret;
}

/* @again: although it could not be started before. */
static void start(bool again)
{
	static bool registered;

	pthread_mutex_lock(&lock);
	if (!atomic_load(&running) && !over && (again || !failed)) {
		if (!registered)
			registered = !atexit(stop);
		failed = !registered || create();
		atomic_store(&running, !failed);
		if (failed)
			fxi_debug(FXI_DEBUG_COLL, 0, "no progress thread: operations make progress inside calls only");
	}
	pthread_mutex_unlock(&lock);
}

int fxi_background_need(void)
{
	if (unlikely(!atomic_load_explicit(&running, memory_order_relaxed)))
		start(true);
	if (likely(atomic_load(&running)))
		return 0;
	return fxi_error_static(EAGAIN, "the progress thread cannot be started, so nothing can be enqueued; is the limit of threads (ulimit -u) reached?");
}

void fxi_background_notice(const struct fabrex_comm *comm, bool enqueued)
{
	if (comm->no_thread)
		return;
	if (unlikely(!atomic_load_explicit(&running, memory_order_relaxed)))
		start(false);
	else if (enqueued)
		fxi_waker_wake();
	else
		fxi_waker_note();
}

/* Handlers are called in the reverse order, and stop() more than once. */
void fxi_background_uses_runtime(uint32_t kind)
{
	static uint32_t known;		/* bits of kinds, under lock */

	pthread_mutex_lock(&lock);
	if (!(known >> kind & 1) && !atexit(stop))
		known |= 1u << kind;
	pthread_mutex_unlock(&lock);
}

void fxi_background_forked(void)
{
	pthread_mutex_init(&lock, NULL);
	atomic_store(&running, false);
	atomic_store(&ending, false);
	failed = over = false;
}
