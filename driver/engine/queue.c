// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queues: life cycle, look-up and errors. Called by port.c, and by op.c and
 * agent.c. The completion side is in cq.c, the submission side in op.c.
 */
#include <linux/slab.h>

#include "key.h"
#include "queue.h"

/**
 * engine_queue_alloc() - allocate a queue that nobody can find yet
 * @engine: engine
 * @params: from the core
 *
 * Context: Process; sleeps.
 * Return: the queue, to be put; NULL
 */
struct engine_queue *
engine_queue_alloc(struct fabrex_engine *engine,
		   const struct fabrex_queue_params *params)
{
	struct engine_queue *queue;

	queue = kvzalloc(sizeof(*queue), GFP_KERNEL_ACCOUNT);
	if (!queue)
		return NULL;
	kref_init(&queue->ref);
	INIT_LIST_HEAD(&queue->node);
	init_waitqueue_head(&queue->idle);
	spin_lock_init(&queue->cq_lock);
	queue->engine = engine;
	queue->pd = params->pd;
	queue->service = params->service;
	queue->serial = params->serial;
	queue->sq_entries = params->sq_entries;
	queue->cq_entries = params->cq_entries;
	queue->rq_entries = params->rq_entries;
	queue->cell_size = params->cell_size;
	queue->ctrl = params->ctrl.va;
	queue->sq = params->sq.va;
	queue->cq = params->cq.va;
	queue->rq = params->rq.va;
	queue->doorbell = params->doorbell;
	queue->bell = params->bell;
	return queue;
}

/* engine->lock is held. */
static bool engine_service_taken(struct fabrex_engine *engine, u64 service)
{
	struct engine_queue *queue;
	unsigned long number;

	if (!service)
		return false;
	xa_for_each(&engine->queues, number, queue)
		if (queue->service == service)
			return true;
	return false;
}

/**
 * engine_queue_insert() - give a queue its number and key
 * @queue: from engine_queue_alloc(); senders may find it even before this
 *         returns
 *
 * Context: Process; sleeps. &fabrex_engine.lock is held.
 * Return: 0; -EADDRINUSE if its service is taken; -ENOSPC if there are too many;
 * -ENOMEM
 */
int engine_queue_insert(struct engine_queue *queue)
{
	struct fabrex_engine *engine = queue->engine;
	int ret;

	if (engine_service_taken(engine, queue->service))
		return -EADDRINUSE;
	ret = xa_alloc_cyclic(&engine->queues, &queue->number, NULL,
			      XA_LIMIT(0, ENGINE_MAX_QUEUES - 1),
			      &engine->next_queue, GFP_KERNEL_ACCOUNT);
	if (ret < 0)
		return ret == -EBUSY ? -ENOSPC : ret;
	queue->key = engine_key_new(queue->number);
	engine_gate_open(&queue->gate);
	xa_store(&engine->queues, queue->number, queue, GFP_KERNEL_ACCOUNT);
	return 0;
}

/**
 * engine_queue_remove() - take a queue out of the table
 * @engine: engine
 * @number: of the queue
 *
 * When this returns, nobody delivers into it any more.
 *
 * Context: Process; sleeps.
 * Return: the queue; NULL if there is none
 */
struct engine_queue *engine_queue_remove(struct fabrex_engine *engine,
					 u32 number)
{
	struct engine_queue *queue = xa_erase(&engine->queues, number);

	if (queue)
		engine_gate_close(&queue->gate);
	return queue;
}

/**
 * engine_queue_get() - look up a queue by its key
 * @engine: engine
 * @key:    of whatever origin
 *
 * Context: Any.
 * Return: the queue, to be left soon; NULL if there is none
 */
struct engine_queue *engine_queue_get(struct fabrex_engine *engine, u64 key)
{
	struct engine_queue *queue;

	rcu_read_lock();
	queue = xa_load(&engine->queues, engine_key_number(key));
	if (queue && (queue->key != key || !engine_gate_enter(&queue->gate)))
		queue = NULL;
	rcu_read_unlock();
	return queue;
}

/**
 * engine_queue_serving() - look up a queue by its service
 * @engine:  engine
 * @service: not 0
 *
 * Context: Any.
 * Return: the queue, to be left soon; NULL if there is none
 */
struct engine_queue *engine_queue_serving(struct fabrex_engine *engine,
					  u64 service)
{
	struct engine_queue *queue, *found = NULL;
	unsigned long number;

	rcu_read_lock();
	xa_for_each(&engine->queues, number, queue) {
		if (queue->service != service ||
		    !engine_gate_enter(&queue->gate))
			continue;
		found = queue;
		break;
	}
	rcu_read_unlock();
	return found;
}

/**
 * engine_queue_leave() - let go of a queue that was looked up
 * @queue: queue
 *
 * Context: Any.
 */
void engine_queue_leave(struct engine_queue *queue)
{
	engine_gate_leave(&queue->gate);
}

/**
 * engine_queue_hold() - take a reference, which keeps the memory of the struct
 * @queue: queue
 *
 * Context: Any.
 */
void engine_queue_hold(struct engine_queue *queue)
{
	kref_get(&queue->ref);
}

static void engine_queue_release(struct kref *ref)
{
	struct engine_queue *queue = container_of(ref, struct engine_queue,
						  ref);

	kvfree_rcu(queue, rcu);
}

/**
 * engine_queue_put() - drop a reference
 * @queue: queue
 *
 * Context: Any.
 */
void engine_queue_put(struct engine_queue *queue)
{
	kref_put(&queue->ref, engine_queue_release);
}

/**
 * engine_queue_error() - stop a queue, once
 * @queue: queue
 * @error: FABREX_QERR_*
 *
 * Context: Process; sleeps.
 */
void engine_queue_error(struct engine_queue *queue, u32 error)
{
	if (cmpxchg(&queue->state, FABREX_QUEUE_OK, FABREX_QUEUE_ERROR) !=
	    FABREX_QUEUE_OK)
		return;
	WRITE_ONCE(queue->ctrl->error, cpu_to_le32(error));
	/* Whoever sees the state sees the error. */
	smp_store_release(&queue->ctrl->state,
			  cpu_to_le32(FABREX_QUEUE_ERROR));
	fabrex_port_queue_error(queue->engine->port, queue->number,
				queue->serial, error);
	fabrex_port_queue_irq(queue->engine->port, queue->number);
}
