// SPDX-License-Identifier: GPL-2.0-only
/*
 * Operations of this port's queues: taken from the ring, checked, sent to the
 * peer in parts (part.c) or performed here (self.c), completed in order when there
 * are answers (answer.c). Called by worker.c with &engine_worker.lock held, and by
 * port.c.
 *
 * An operation has up to 1 GiB, and many parts; the next one is begun when
 * all parts of this have been sent. Since a wire keeps their order, and the peer
 * performs them one after the other, operations to one peer take effect in order.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>

#include "op.h"
#include "part.h"
#include "resolve.h"

/* Entries that a queue takes, and bytes that it moves, before others have a turn. */
#define TURN_ENTRIES	64u
#define TURN_BYTES	(1u << 20)
/* How long to wait for room for what ends something. */
#define PATIENCE	(5 * HZ)

static void engine_op_fetch(struct engine_queue *q, struct engine_op *op)
{
	struct fabrex_sqe sqe;

	memcpy(&sqe, &q->sq[q->next & (q->sq_entries - 1)], sizeof(sqe));
	memset(op, 0, sizeof(*op));
	op->index = q->next;
	op->ticket = q->number << 20 | (q->next & 0xfffff);
	op->crc = ENGINE_CRC_BEGIN;
	op->status = engine_entry_check(&sqe, &op->entry);
}

/* Whatever does not need the peer. Its own status is kept until the operations
 * before it, for which a fence waits, have been completed.
 */
static bool engine_op_begin(struct engine_queue *q, struct engine_op *op)
{
	struct engine_region *region;
	u8 status;

	if (op->entry.flags & FABREX_SQE_FENCE) {
		if (q->done != op->index)
			return false;
		if (q->failed)
			op->status = FABREX_WC_FENCED;
		q->failed = false;
	}
	op->begun = true;
	op->over = op->status || op->entry.opcode == FABREX_OP_NOP;
	if (op->over || op->entry.flags & FABREX_SQE_INLINE)
		return true;
	status = engine_op_local(q, op, &region);
	if (status) {
		engine_op_fail(op, status);
		op->over = true;
	} else {
		engine_region_put(region);
	}
	return true;
}

static enum engine_turn engine_op_advance(struct engine_queue *q,
					  struct engine_op *op)
{
	struct fabrex_wire *wire;
	enum engine_turn turn;

	if (!op->begun && !engine_op_begin(q, op))
		return TURN_WAIT;
	if (op->over)
		return TURN_SENT;
	wire = engine_wire(q->engine, op->entry.peer);
	if (!wire) {
		engine_op_fail(op, op->asked ? FABREX_WC_ABORTED :
					       FABREX_WC_UNREACHABLE);
		return TURN_SENT;
	}
	turn = wire->ops ? engine_op_send(q, op, wire) :
			   engine_op_self(q, op, wire);
	if (turn == TURN_SENT && engine_op_failed(op) &&
	    !engine_op_cancel(q, op, wire))
		return TURN_WAIT;
	return turn;
}

static bool engine_reports(const struct engine_op *op, u32 status)
{
	return status || !(op->entry.flags & FABREX_SQE_QUIET);
}

/* False: there is no room for its completion. */
static bool engine_op_finish(struct engine_queue *q, struct engine_op *op)
{
	const struct engine_entry *e = &op->entry;
	u32 status = READ_ONCE(op->status);
	struct fabrex_cqe cqe = {
		.user_data = cpu_to_le64(e->user_data),
		.peer = cpu_to_le16(e->peer),
		.index = cpu_to_le16(op->index),
		.opcode = e->opcode,
		.status = status,
	};

	engine_op_judge(q, op, status);
	if (!status)
		cqe.length = cpu_to_le32(e->length);
	if (e->flags & FABREX_SQE_CHECK &&
	    (!status || status == FABREX_WC_DATA))
		cqe.crc = cpu_to_le32(~op->crc);
	if (status && status != FABREX_WC_FENCED)
		q->failed = true;
	atomic64_inc(&q->counters.tx_ops);
	atomic64_inc(&q->engine->counters.tx_ops);
	if (status) {
		atomic64_inc(&q->counters.errors);
		atomic64_inc(&q->engine->counters.errors);
	}
	if (status == FABREX_WC_DATA) {
		atomic64_inc(&q->counters.crc_errors);
		atomic64_inc(&q->engine->counters.crc_errors);
	}
	return !engine_reports(op, status) || engine_cq_complete(q, &cqe);
}

/* Complete what has been answered, in order. */
static bool engine_op_retire(struct engine_queue *q)
{
	bool any = false;
	struct engine_op *op;

	while (q->done != q->next &&
	       READ_ONCE(q->state) == FABREX_QUEUE_OK) {
		op = engine_queue_op(q, q->done);
		if (atomic_read_acquire(&op->waiting))
			break;
		if (!engine_op_finish(q, op))
			break;
		q->done++;
		smp_store_release(&q->ctrl->sq_head, cpu_to_le32(q->done));
		any = true;
	}
	return any;
}

static u32 engine_tail(const struct engine_queue *q)
{
	return le32_to_cpu(smp_load_acquire(&q->ctrl->sq_tail));
}

/* One entry; true: the one after it may follow. */
static bool engine_op_next(struct engine_queue *q)
{
	struct engine_op *op = engine_queue_op(q, q->next);
	enum engine_turn turn;

	if (!q->fetched)
		engine_op_fetch(q, op);
	q->fetched = true;
	turn = engine_op_advance(q, op);
	q->stuck = turn == TURN_WAIT;
	if (turn != TURN_SENT)
		return false;
	q->fetched = false;
	q->next++;
	return true;
}

/* A queue that was stopped goes on with nothing; a peer need not keep a cell. */
static bool engine_op_stopped(struct engine_queue *q)
{
	struct engine_op *op = engine_queue_op(q, q->next);

	if (READ_ONCE(q->state) == FABREX_QUEUE_OK)
		return false;
	if (q->fetched && op->begun && !op->over)
		op->over = engine_op_cancel(q, op, engine_wire(q->engine,
							       op->entry.peer));
	return true;
}

/* The process must not take back what has been taken. */
static bool engine_tail_ok(const struct engine_queue *q, u32 tail)
{
	return tail - q->done <= q->sq_entries &&
	       q->next + q->fetched - q->done <= tail - q->done;
}

/**
 * engine_op_serve() - go on with the operations of a queue, for a turn
 * @queue: queue
 *
 * Context: Process; sleeps. &engine_worker.lock is held.
 * Return: true if something was done
 */
bool engine_op_serve(struct engine_queue *queue)
{
	u32 tail, n = 0;
	bool busy;

	if (engine_op_stopped(queue))
		return false;
	busy = engine_op_retire(queue);
	tail = engine_tail(queue);
	if (!engine_tail_ok(queue, tail)) {
		engine_queue_error(queue, FABREX_QERR_SQ_INDEX);
		return true;
	}
	queue->stuck = false;
	queue->budget = TURN_BYTES;
	while (queue->next != tail && n < TURN_ENTRIES &&
	       READ_ONCE(queue->state) == FABREX_QUEUE_OK) {
		if (queue->next - queue->done >= ENGINE_DEPTH) {
			queue->stuck = true;
			break;
		}
		if (!engine_op_next(queue))
			break;
		/* What is done at once makes room. */
		engine_op_retire(queue);
		n++;
	}
	return busy || n || (queue->fetched && !queue->stuck);
}

/**
 * engine_op_pending() - is there something that serving could go on with?
 * @queue: queue
 *
 * Context: Any. &engine_worker.lock is held.
 * Return: whether there is
 */
bool engine_op_pending(const struct engine_queue *queue)
{
	if (READ_ONCE(queue->state) != FABREX_QUEUE_OK || queue->stuck)
		return false;
	return engine_tail(queue) != queue->next;
}

static void engine_op_give_up(struct engine_queue *q, struct engine_op *op)
{
	unsigned long end = jiffies + PATIENCE;

	while (!engine_op_cancel(q, op, engine_wire(q->engine,
						    op->entry.peer))) {
		if (time_after(jiffies, end))
			break;
		msleep(1);
	}
}

/**
 * engine_op_abandon() - end what a queue has begun
 * @queue: that no worker serves any more
 *
 * When this returns, no operation is in progress at any peer that can be reached.
 *
 * Context: Process; sleeps, for as long as peers take to answer or a wire needs to
 * find out that its link is lost.
 */
void engine_op_abandon(struct engine_queue *queue)
{
	struct engine_op *op = engine_queue_op(queue, queue->next);

	if (queue->fetched && op->begun && !op->over)
		engine_op_give_up(queue, op);
	engine_wires_wait(queue->engine);
	wait_event(queue->idle, !atomic_read(&queue->waiting));
	for (; queue->done != queue->next + queue->fetched; queue->done++) {
		op = engine_queue_op(queue, queue->done);
		if (op->miss)
			engine_op_judge(queue, op, FABREX_WC_ABORTED);
	}
	engine_guess_end(&queue->guesser, queue->engine);
}
