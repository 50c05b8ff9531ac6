// SPDX-License-Identifier: GPL-2.0-only
/*
 * Workers, one for each process and open file with queues: a thread of that
 * process serves them, so the time it takes is charged to the process, and
 * it ends with it. Called by port.c; wakes up for op.c.
 *
 * A queue that has nothing to do for a while is parked: its doorbell is asked
 * for again, and its page taken away. When all are, the worker sleeps. Its rounds
 * are short, for those who wait for the lock.
 */
#include <linux/ktime.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "op.h"
#include "task.h"
#include "worker.h"

/* ---- watching ---------------------------------------------------------- */

static void engine_queue_rung(void *arg)
{
	struct engine_queue *q = arg;

	atomic64_inc(&q->counters.doorbells);
	atomic64_inc(&q->engine->counters.doorbells);
	WRITE_ONCE(q->rung, true);
	engine_worker_kick(q->worker);
}

static void engine_queue_watch(struct engine_queue *q, u64 now)
{
	q->watching = true;
	q->busy_ns = now;
	WRITE_ONCE(q->ctrl->db_needed, 0);
}

/* The counterpart of a process that stores sq_tail, then looks at db_needed: see
 * docs/draco.md, "Submission without losing a wake-up".
 */
static void engine_queue_park(struct engine_queue *q, u64 now)
{
	q->watching = false;
	WRITE_ONCE(q->ctrl->db_needed, cpu_to_le32(1));
	/* Takes the page away, before the last look. */
	fabrex_doorbell_park(q->bell, engine_queue_rung, q);
	smp_mb();
	if (engine_op_pending(q))
		engine_queue_watch(q, now);
	engine_cq_look(q);
}

/* One turn of a queue; true: something was done. */
static bool engine_queue_turn(struct engine_queue *q, u64 now, u64 patience)
{
	bool busy;

	if (READ_ONCE(q->rung) && xchg(&q->rung, false))
		engine_queue_watch(q, now);
	busy = engine_op_serve(q);
	if (!q->watching)
		return busy;
	engine_cq_look(q);
	if (busy)
		q->busy_ns = now;
	else if (now - q->busy_ns > patience)
		engine_queue_park(q, now);
	return busy;
}

static bool engine_queue_awake(const struct engine_queue *q)
{
	return q->watching || READ_ONCE(q->rung);
}

/* Requests that were sent, and answers. Not with worker->lock held. */
static bool engine_wires_turn(struct fabrex_engine *engine)
{
	struct fabrex_wire *wire;
	bool any = false;

	list_for_each_entry(wire, &engine->list, node) {
		wire->ops->flush(wire);
		any |= wire->ops->poll(wire);
	}
	return any;
}

/* The worker will sleep: answers have to wake it. */
static void engine_wires_wait(struct fabrex_engine *engine)
{
	struct fabrex_wire *wire;

	list_for_each_entry(wire, &engine->list, node)
		wire->ops->wait(wire);
}

/* Serves all queues once; true: stay awake. */
static bool engine_worker_round(struct engine_worker *worker)
{
	u64 patience = worker->engine->poll_us * (u64)NSEC_PER_USEC;
	bool busy = false, awake = false, waiting = false;
	u64 now = ktime_get_ns();
	struct engine_queue *q;

	mutex_lock(&worker->lock);
	list_for_each_entry(q, &worker->queues, node) {
		busy |= engine_queue_turn(q, now, patience);
		awake |= engine_queue_awake(q);
		waiting |= atomic_read(&q->waiting);
	}
	mutex_unlock(&worker->lock);
	busy |= engine_wires_turn(worker->engine);
	if (busy)
		worker->busy_ns = now;
	if (busy || awake || (waiting && now - worker->busy_ns <= patience))
		return true;
	if (waiting)
		engine_wires_wait(worker->engine);
	return false;
}

/* Called again and again by its thread, in TASK_INTERRUPTIBLE. */
static bool engine_worker_run(void *arg)
{
	struct engine_worker *worker = arg;

	if (!xchg(&worker->kicked, 0))
		return false;
	__set_current_state(TASK_RUNNING);
	WRITE_ONCE(worker->awake, true);
	if (engine_worker_round(worker)) {
		WRITE_ONCE(worker->kicked, 1);
		cond_resched();
		return true;
	}
	WRITE_ONCE(worker->awake, false);
	/* The counterpart of engine_worker_kick(): the thread looks again. */
	smp_mb();
	return true;
}

static void engine_worker_killed(void *arg)
{
	struct engine_worker *worker = arg;

	WRITE_ONCE(worker->killed, true);
}

/* ---- life -------------------------------------------------------------- */

static struct engine_worker *engine_worker_new(struct fabrex_engine *engine,
					       u32 pd)
{
	struct engine_worker *worker;
	struct fabrex_task *task;

	worker = kzalloc(sizeof(*worker), GFP_KERNEL_ACCOUNT);
	if (!worker)
		return ERR_PTR(-ENOMEM);
	worker->buffer = kmalloc(FABREX_CELL_MAX, GFP_KERNEL_ACCOUNT);
	if (!worker->buffer) {
		kfree(worker);
		return ERR_PTR(-ENOMEM);
	}
	mutex_init(&worker->lock);
	INIT_LIST_HEAD(&worker->queues);
	engine_worker_wake_init(worker);
	worker->engine = engine;
	worker->pd = pd;
	worker->owner = get_pid(task_tgid(current));
	task = fabrex_task_start(engine_worker_run, engine_worker_killed,
				 worker, "fabrex");
	if (IS_ERR(task)) {
		put_pid(worker->owner);
		kfree(worker->buffer);
		kfree(worker);
		return ERR_CAST(task);
	}
	worker->task = task;
	return worker;
}

/**
 * engine_worker_get() - get the worker of the calling process
 * @engine: engine
 * @pd:     protection domain
 *
 * Context: Process; sleeps. &fabrex_engine.lock is held.
 * Return: the worker, to be put; an ERR_PTR()
 */
struct engine_worker *engine_worker_get(struct fabrex_engine *engine, u32 pd)
{
	struct engine_worker *worker;

	list_for_each_entry(worker, &engine->workers, node) {
		if (worker->pd != pd || worker->owner != task_tgid(current) ||
		    READ_ONCE(worker->killed))
			continue;
		worker->users++;
		return worker;
	}
	worker = engine_worker_new(engine, pd);
	if (IS_ERR(worker))
		return worker;
	worker->users = 1;
	list_add_tail(&worker->node, &engine->workers);
	return worker;
}

/**
 * engine_worker_put() - let go of a worker, which ends with its last queue
 * @worker: worker
 *
 * Context: Process; sleeps. Not with &fabrex_engine.lock held, which the worker
 * may wait for.
 */
void engine_worker_put(struct engine_worker *worker)
{
	bool last;

	mutex_lock(&worker->engine->lock);
	last = !--worker->users;
	if (last)
		list_del(&worker->node);
	mutex_unlock(&worker->engine->lock);
	if (!last)
		return;
	fabrex_task_stop(worker->task);
	timer_shutdown_sync(&worker->alarm);
	put_pid(worker->owner);
	kfree(worker->buffer);
	kfree(worker);
}

/**
 * engine_worker_add() - have a queue served
 * @worker: worker
 * @queue:  of its process
 *
 * Context: Process; sleeps.
 */
void engine_worker_add(struct engine_worker *worker,
		       struct engine_queue *queue)
{
	queue->worker = worker;
	fabrex_doorbell_park(queue->bell, engine_queue_rung, queue);
	mutex_lock(&worker->lock);
	list_add_tail(&queue->node, &worker->queues);
	mutex_unlock(&worker->lock);
}

/**
 * engine_worker_remove() - have a queue no longer served
 * @worker: worker
 * @queue:  queue
 *
 * Context: Process; sleeps, for as long as a round takes.
 */
void engine_worker_remove(struct engine_worker *worker,
			  struct engine_queue *queue)
{
	mutex_lock(&worker->lock);
	list_del_init(&queue->node);
	mutex_unlock(&worker->lock);
}

/**
 * fabrex_engine_room() - there is room for requests again
 * @engine: engine
 *
 * Context: Process; sleeps.
 */
void fabrex_engine_room(struct fabrex_engine *engine)
{
	struct engine_worker *worker;

	if (!atomic_read(&engine->starved) || !atomic_xchg(&engine->starved, 0))
		return;
	mutex_lock(&engine->lock);
	list_for_each_entry(worker, &engine->workers, node)
		engine_worker_kick(worker);
	mutex_unlock(&engine->lock);
}
FABREX_EXPORT(fabrex_engine_room);
