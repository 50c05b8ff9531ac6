// SPDX-License-Identifier: GPL-2.0-only
/*
 * Answers to the parts of operations: payload and old values are stored, and what
 * has failed is noted. Called by wires; part.c and self.c use the look-up of local
 * regions.
 */
#include <linux/crc32c.h>

#include "part.h"
#include "resolve.h"
#include "worker.h"

/**
 * engine_op_local() - checks 3 to 5: look up the local region of an operation
 * @q:     queue
 * @op:    operation
 * @found: result, to be put
 *
 * Context: Any.
 * Return: %FABREX_WC_OK, or why not
 */
u8 engine_op_local(const struct engine_queue *q, const struct engine_op *op,
		   struct engine_region **found)
{
	const struct engine_entry *e = &op->entry;
	struct engine_region *region;
	u8 status = FABREX_WC_OK;

	region = engine_region_get(q->engine, e->lkey);
	if (!region)
		return FABREX_WC_LKEY;
	if (region->pd != q->pd)
		status = FABREX_WC_LKEY;
	else if (!engine_covers(region->length, e->loffset, e->length))
		status = FABREX_WC_LBOUNDS;
	else if ((region->access & e->local) != e->local)
		status = FABREX_WC_LACCESS;
	else if (e->local &&
		 !engine_device_suits(region, e->loffset, e->length))
		status = FABREX_WC_BAD_DESC;
	if (status)
		engine_region_put(region);
	else
		*found = region;
	return status;
}

/* Payload of a READ has come. */
static u8 engine_op_store(struct engine_queue *q, struct engine_op *op,
			  const struct fabrex_call *call,
			  const struct fabrex_answer *answer,
			  const void *payload)
{
	bool check = op->entry.flags & FABREX_SQE_CHECK;
	u64 offset = op->entry.loffset + call->at;
	u32 part = ENGINE_CRC_BEGIN, stored = ENGINE_CRC_BEGIN;
	struct engine_region *region;
	u8 status;

	/* A queue that was stopped gets nothing more. */
	if (READ_ONCE(q->state) != FABREX_QUEUE_OK)
		return FABREX_WC_ABORTED;
	status = engine_op_local(q, op, &region);
	if (status)
		return FABREX_WC_ABORTED;
	if (check) {
		op->crc = crc32c(op->crc, payload, call->bytes);
		part = crc32c(part, payload, call->bytes);
		if (part != le32_to_cpu(answer->crc))
			status = FABREX_WC_DATA;
	}
	if (!status)
		status = engine_region_write(region, offset, payload,
					     call->bytes);
	if (!status && check)
		status = engine_region_crc(region, offset, call->bytes,
					   &stored);
	if (!status && check && stored != part)
		status = FABREX_WC_DATA;
	status = engine_local_status(status);
	engine_region_put(region);
	atomic64_add(call->bytes, &q->counters.rx_bytes);
	atomic64_add(call->bytes, &q->engine->counters.rx_bytes);
	return status;
}

/**
 * engine_op_store_old() - store the old value that an atomic operation returns
 * @q:      queue
 * @op:     operation
 * @answer: of the peer
 *
 * Context: Process.
 * Return: %FABREX_WC_OK, %FABREX_WC_ABORTED or %FABREX_WC_LFAULT
 */
u8 engine_op_store_old(struct engine_queue *q, struct engine_op *op,
		       const struct fabrex_answer *answer)
{
	struct engine_region *region;
	u8 status;

	if (READ_ONCE(q->state) != FABREX_QUEUE_OK ||
	    engine_op_local(q, op, &region))
		return FABREX_WC_ABORTED;
	status = engine_region_write(region, op->entry.loffset, &answer->value,
				     sizeof(answer->value));
	engine_region_put(region);
	return engine_local_status(status);
}

static void engine_op_answer(struct engine_queue *q,
			     const struct fabrex_call *call,
			     const struct fabrex_answer *answer,
			     const void *payload)
{
	struct engine_op *op = engine_queue_op(q, call->op);
	u8 status = answer ? answer->status : FABREX_WC_ABORTED;

	/* The peer's word. */
	if (status > FABREX_WC_ABORTED)
		status = FABREX_WC_RFAULT;
	if (answer && answer->flags & ENGINE_ANS_MISS)
		op->miss = true;
	if (!status && call->read && call->bytes)
		status = engine_op_store(q, op, call, answer, payload);
	if (!status && engine_is_atomic(op->entry.opcode))
		status = engine_op_store_old(q, op, answer);
	if (!status)
		WRITE_ONCE(op->moved, true);
	engine_op_fail(op, engine_in_the_middle(call->at, status));
	/* Whoever sees that nothing is waited for sees all this. */
	smp_mb__before_atomic();
	atomic_dec(&op->waiting);
}

/**
 * fabrex_engine_answered() - hand over what has become of a request
 * @wire:    wire
 * @call:    as it was passed to ->request()
 * @answer:  a copy, which the peer cannot change any more; NULL: the link was lost
 * @payload: with an answer to a READ: &fabrex_call.bytes, which the peer may
 *           change
 *
 * For requests of one queue in the order in which these were sent, and by one
 * thread at a time.
 *
 * Context: Process; sleeps.
 */
void fabrex_engine_answered(struct fabrex_wire *wire,
			    const struct fabrex_call *call,
			    const struct fabrex_answer *answer,
			    const void *payload)
{
	struct engine_queue *q = call->queue;

	if (call->resolve) {
		if (answer)
			call->resolve->answer = *answer;
		complete(&call->resolve->done);
		return;
	}
	engine_op_answer(q, call, answer, payload);
	/* Whoever destroys the queue may free it as soon as nothing is waited
	 * for.
	 */
	rcu_read_lock();
	engine_worker_kick(q->worker);
	if (atomic_dec_and_test(&q->waiting))
		wake_up(&q->idle);
	rcu_read_unlock();
}
FABREX_EXPORT(fabrex_engine_answered);
