// SPDX-License-Identifier: GPL-2.0-only
/* Waking of workers. Called by op.c, when answers have come, and by worker.c. */
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/rcupdate.h>

#include "task.h"
#include "worker.h"

/**
 * engine_worker_kick() - there may be something to do
 * @worker: worker
 *
 * Context: Any.
 */
void engine_worker_kick(struct engine_worker *worker)
{
	WRITE_ONCE(worker->kicked, 1);
	/* Either this sees that it goes to sleep, or it sees the kick. */
	smp_mb();
	if (READ_ONCE(worker->awake))
		return;
	/* Its thread may be ending just now. */
	rcu_read_lock();
	if (!READ_ONCE(worker->killed))
		fabrex_task_wake(worker->task);
	rcu_read_unlock();
}

static void engine_worker_alarm(struct timer_list *timer)
{
	engine_worker_kick(container_of(timer, struct engine_worker, alarm));
}

/**
 * engine_worker_kick_at() - there will be something to do
 * @worker: worker, for one of its queues
 * @ns:     when, by ktime_get_ns(); if there are several, the first is kept
 *
 * Context: Any.
 */
void engine_worker_kick_at(struct engine_worker *worker, u64 ns)
{
	u64 now = ktime_get_ns();
	unsigned long at = jiffies + 1;

	if (ns > now)
		at += nsecs_to_jiffies(ns - now);
	if (!timer_pending(&worker->alarm) ||
	    time_before(at, worker->alarm.expires))
		mod_timer(&worker->alarm, at);
}

/**
 * engine_worker_wake_init() - prepare the alarm
 * @worker: worker
 *
 * Context: Any.
 */
void engine_worker_wake_init(struct engine_worker *worker)
{
	timer_setup(&worker->alarm, engine_worker_alarm, 0);
}
