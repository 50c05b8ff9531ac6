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
#include "resolve.h"
#include "task.h"
#include "worker.h"

/* So long others may have to wait for its lock, but for a queue's turn. */
#define ROUND_NS	NSEC_PER_MSEC

static struct workqueue_struct *engine_endings;

/* ---- watching ---------------------------------------------------------- */

static void engine_queue_rung(void *arg)
{
	struct engine_queue *q = arg;

	atomic64_inc(&q->counters.doorbells);
	atomic64_inc(&q->engine->counters.doorbells);
	WRITE_ONCE(q->rung, 1);
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

	if (READ_ONCE(q->rung) && xchg(&q->rung, 0))
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

/* Requests that were sent, and answers. */
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

/* What a round has found. */
struct engine_round {
	bool busy;	/* something was done */
	bool awake;	/* a queue is watched */
	bool waiting;	/* answers are to come */
};

/* A turn for each queue, or for as many as there is time for: the others are the
 * first in the next round.
 */
static void engine_worker_turns(struct engine_worker *worker, u64 now,
				u64 patience, struct engine_round *round)
{
	struct engine_queue *q, *next;
	LIST_HEAD(served);

	list_for_each_entry_safe(q, next, &worker->queues, node) {
		round->busy |= engine_queue_turn(q, now, patience);
		round->awake |= engine_queue_awake(q);
		round->waiting |= atomic_read(&q->waiting);
		list_move_tail(&q->node, &served);
		if (round->busy && ktime_get_ns() - now > ROUND_NS)
			break;
	}
	list_splice_tail(&served, &worker->queues);
}

/* True: stay awake. */
static bool engine_worker_round(struct engine_worker *worker)
{
	struct fabrex_engine *engine = worker->engine;
	u64 patience = engine->poll_us * (u64)NSEC_PER_USEC;
	struct engine_round round = {};
	u64 now = ktime_get_ns();

	engine_worker_turns(worker, now, patience, &round);
	round.busy |= engine_wires_turn(engine);
	if (round.busy)
		worker->busy_ns = now;
	if (round.busy || round.awake ||
	    (round.waiting && now - worker->busy_ns <= patience))
		return true;
	if (round.waiting)
		engine_wires_wait(engine);
	return false;
}

/* Called again and again by its thread, in TASK_INTERRUPTIBLE. */
static bool engine_worker_run(void *arg)
{
	struct engine_worker *worker = arg;
	bool awake;

	if (!xchg(&worker->kicked, 0))
		return false;
	__set_current_state(TASK_RUNNING);
	WRITE_ONCE(worker->awake, true);
	mutex_lock(&worker->lock);
	awake = worker->engine && engine_worker_round(worker);
	mutex_unlock(&worker->lock);
	if (awake) {
		WRITE_ONCE(worker->kicked, 1);
		fabrex_task_breathe();
		return true;
	}
	WRITE_ONCE(worker->awake, false);
	/* The counterpart of engine_worker_kick(): the thread looks again. */
	smp_mb();
	return true;
}

/* Its process has died, or has become another program: nobody serves the queues,
 * if somebody still has them.
 */
static void engine_worker_killed(void *arg)
{
	struct engine_worker *worker = arg;
	struct engine_queue *q;

	WRITE_ONCE(worker->killed, true);
	/* Nobody wakes this thread any more. */
	synchronize_rcu();
	mutex_lock(&worker->lock);
	list_for_each_entry(q, &worker->queues, node) {
		engine_queue_error(q, FABREX_QERR_RESET);
		/* Peers need not keep cells. */
		engine_op_serve(q);
	}
	if (worker->engine)
		engine_wires_wait(worker->engine);
	mutex_unlock(&worker->lock);
}

/* ---- life -------------------------------------------------------------- */

static void engine_worker_free(struct engine_worker *worker)
{
	put_pid(worker->owner);
	kfree(worker->buffer);
	kfree(worker);
}

static void engine_worker_ending(struct work_struct *work)
{
	struct engine_worker *worker = container_of(work, struct engine_worker,
						    ending);

	fabrex_task_stop(worker->task);
	engine_worker_free(worker);
}

static struct engine_worker *engine_worker_new(struct fabrex_engine *engine,
					       u32 pd)
{
	struct engine_worker *worker;
	struct fabrex_task *task;

	worker = kzalloc(sizeof(*worker), GFP_KERNEL_ACCOUNT);
	if (!worker)
		return ERR_PTR(-ENOMEM);
	mutex_init(&worker->lock);
	INIT_LIST_HEAD(&worker->queues);
	INIT_WORK(&worker->ending, engine_worker_ending);
	engine_worker_wake_init(worker);
	worker->engine = engine;
	worker->pd = pd;
	worker->users = 1;
	worker->owner = get_pid(task_tgid(current));
	worker->buffer = kmalloc(ENGINE_BUFFER, GFP_KERNEL_ACCOUNT);
	task = worker->buffer ?
	       fabrex_task_start(engine_worker_run, engine_worker_killed,
				 worker, "fabrex") : ERR_PTR(-ENOMEM);
	if (IS_ERR(task)) {
		engine_worker_free(worker);
		return ERR_CAST(task);
	}
	worker->task = task;
	return worker;
}

/* workers_lock is held. */
static struct engine_worker *engine_worker_find(struct fabrex_engine *engine,
						u32 pd)
{
	struct engine_worker *worker;

	list_for_each_entry(worker, &engine->workers, node)
		if (worker->pd == pd && worker->owner == task_tgid(current) &&
		    !READ_ONCE(worker->killed))
			return worker;
	return NULL;
}

/**
 * engine_worker_get() - get the worker of the calling process
 * @engine: engine
 * @pd:     protection domain
 *
 * Two threads that come at the same time may make two.
 *
 * Context: Process; sleeps.
 * Return: the worker, to be put; an ERR_PTR()
 */
struct engine_worker *engine_worker_get(struct fabrex_engine *engine, u32 pd)
{
	struct engine_worker *worker;

	spin_lock(&engine->workers_lock);
	worker = engine_worker_find(engine, pd);
	if (worker)
		worker->users++;
	spin_unlock(&engine->workers_lock);
	if (worker)
		return worker;
	worker = engine_worker_new(engine, pd);
	if (IS_ERR(worker))
		return worker;
	spin_lock(&engine->workers_lock);
	list_add_tail(&worker->node, &engine->workers);
	spin_unlock(&engine->workers_lock);
	return worker;
}

/**
 * engine_worker_put() - let go of a worker, which ends with its last queue
 * @worker: worker
 *
 * Context: Process; sleeps, for as long as a round takes.
 */
void engine_worker_put(struct engine_worker *worker)
{
	struct fabrex_engine *engine = worker->engine;
	bool last;

	spin_lock(&engine->workers_lock);
	last = !--worker->users;
	if (last)
		list_del(&worker->node);
	spin_unlock(&engine->workers_lock);
	if (!last)
		return;
	mutex_lock(&worker->lock);
	worker->engine = NULL;
	mutex_unlock(&worker->lock);
	timer_shutdown_sync(&worker->alarm);
	queue_work(engine_endings, &worker->ending);
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
	if (worker->killed)
		engine_queue_error(queue, FABREX_QERR_RESET);
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
 * Context: Any but interrupts.
 */
void fabrex_engine_room(struct fabrex_engine *engine)
{
	struct engine_worker *worker;

	if (!atomic_read(&engine->starved) || !atomic_xchg(&engine->starved, 0))
		return;
	spin_lock(&engine->workers_lock);
	list_for_each_entry(worker, &engine->workers, node)
		engine_worker_kick(worker);
	spin_unlock(&engine->workers_lock);
}
FABREX_EXPORT(fabrex_engine_room);

/**
 * engine_workers_init() - prepare, when the module is loaded
 *
 * Context: Module init.
 * Return: 0 or -ENOMEM
 */
int __init engine_workers_init(void)
{
	engine_endings = alloc_workqueue("fabrex_engine", WQ_UNBOUND, 0);
	return engine_endings ? 0 : -ENOMEM;
}

/**
 * engine_workers_exit() - wait until all threads have ended
 *
 * Context: Module exit; no engine exists.
 */
void engine_workers_exit(void)
{
	destroy_workqueue(engine_endings);
}
