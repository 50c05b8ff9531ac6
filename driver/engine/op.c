// SPDX-License-Identifier: GPL-2.0-only
/*
 * Operations of this port's queues: taken from the ring, checked, sent to the
 * peer in parts or performed here, completed in order. Called by worker.c with
 * &engine_worker.lock held, by port.c, and by wires for answers.
 *
 * An operation has up to 2^32 bytes, and many parts; the next one is begun when
 * all parts of this have been sent. Since a wire keeps their order, and the peer
 * performs them one after the other, operations to one peer take effect in order.
 */
#include <linux/crc32c.h>
#include <linux/delay.h>
#include <linux/hash.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/sched/signal.h>

#include "op.h"
#include "region.h"
#include "worker.h"

/* Bytes that a queue moves, and entries that it takes, before others have a turn. */
#define TURN_BYTES	(1u << 20)
#define TURN_ENTRIES	64u
/* How long to wait for room for what ends something. */
#define PATIENCE	(5 * HZ)

enum engine_turn {
	TURN_SENT,	/* all that there is to send; or it has failed */
	TURN_WAIT,	/* for an answer, for room, or for time */
	TURN_MORE,	/* others have a turn first */
};

static void engine_op_fail(struct engine_op *op, u8 status)
{
	if (status)
		cmpxchg(&op->status, FABREX_WC_OK, status);
}

static bool engine_op_failed(const struct engine_op *op)
{
	return READ_ONCE(op->status) != FABREX_WC_OK;
}

/* Checks 3 to 5. */
static u8 engine_op_local(const struct engine_queue *q,
			  const struct engine_op *op,
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
	if (status)
		engine_region_put(region);
	else
		*found = region;
	return status;
}

/* Lost in the middle: what would refuse a new operation cuts this one short. */
static u8 engine_in_the_middle(u32 at, u8 status)
{
	if (at && status >= FABREX_WC_LKEY && status <= FABREX_WC_BAD_QUEUE)
		return FABREX_WC_ABORTED;
	return status;
}

/* ---- answers ----------------------------------------------------------- */

/* Payload of a READ has come. */
static u8 engine_op_store(struct engine_queue *q, struct engine_op *op,
			  const struct fabrex_call *call,
			  const struct fabrex_answer *answer,
			  const void *payload)
{
	bool check = op->entry.flags & FABREX_SQE_CHECK;
	u64 offset = op->entry.loffset + call->at;
	u32 part = ENGINE_CRC_BEGIN;
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
		engine_region_write(region, offset, payload, call->bytes);
	if (!status && check &&
	    engine_region_crc(region, offset, call->bytes,
			      ENGINE_CRC_BEGIN) != part)
		status = FABREX_WC_DATA;
	engine_region_put(region);
	atomic64_add(call->bytes, &q->counters.rx_bytes);
	atomic64_add(call->bytes, &q->engine->counters.rx_bytes);
	return status;
}

static u8 engine_op_store_old(struct engine_queue *q, struct engine_op *op,
			      const struct fabrex_answer *answer)
{
	struct engine_region *region;

	if (READ_ONCE(q->state) != FABREX_QUEUE_OK ||
	    engine_op_local(q, op, &region))
		return FABREX_WC_ABORTED;
	engine_region_write(region, op->entry.loffset, &answer->value,
			    sizeof(answer->value));
	engine_region_put(region);
	return FABREX_WC_OK;
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
		atomic_inc(&q->misses);
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

/* ---- parts ------------------------------------------------------------- */

/**
 * struct engine_part - a part that is about to be sent
 * @q:    queue
 * @op:   operation
 * @wire: to the peer
 * @call: for the wire
 * @req:  likewise
 * @data: payload, if it was not placed
 */
struct engine_part {
	struct engine_queue *q;
	struct engine_op *op;
	struct fabrex_wire *wire;
	struct fabrex_call call;
	struct fabrex_request req;
	u8 data[ENGINE_INLINE_MAX] __aligned(8);
};

/* Does its payload travel with the request? */
static bool engine_op_gives(const struct engine_op *op)
{
	return op->entry.opcode != FABREX_OP_READ &&
	       !engine_is_atomic(op->entry.opcode);
}

/* Operations that are not cut into parts. */
static bool engine_op_whole(const struct engine_op *op)
{
	return engine_is_atomic(op->entry.opcode) ||
	       op->entry.opcode == FABREX_OP_SEND;
}

static bool engine_op_all_sent(const struct engine_op *op)
{
	return op->asked &&
	       (engine_op_whole(op) || op->sent >= op->entry.length);
}

static void engine_part_init(struct engine_part *part, struct engine_queue *q,
			     struct engine_op *op, struct fabrex_wire *wire,
			     u32 most)
{
	u64 left = op->entry.length - op->sent;

	part->q = q;
	part->op = op;
	part->wire = wire;
	part->call = (struct fabrex_call) {
		.queue = q,
		.op = op->index,
		.at = op->sent,
		.read = op->entry.opcode == FABREX_OP_READ,
	};
	if (!engine_op_whole(op))
		part->call.bytes = min_t(u64, left, most);
	/* One that is too long for any cell goes without its payload. */
	else if (op->entry.opcode == FABREX_OP_SEND &&
		 op->entry.length <= FABREX_CELL_MAX)
		part->call.bytes = op->entry.length;
}

static u8 engine_part_flags(const struct engine_part *part)
{
	const struct engine_entry *e = &part->op->entry;
	u8 flags = 0;

	if (e->flags & FABREX_SQE_CHECK)
		flags |= ENGINE_REQ_CHECK;
	if (!part->call.at)
		flags |= ENGINE_REQ_FIRST;
	if (part->call.at + part->call.bytes >= e->length)
		flags |= ENGINE_REQ_LAST;
	return flags;
}

/* The request, but for the payload and its CRC. */
static void engine_part_fill(struct engine_part *part)
{
	const struct engine_op *op = part->op;
	const struct engine_entry *e = &op->entry;

	part->req = (struct fabrex_request) {
		.opcode = e->opcode,
		.flags = engine_part_flags(part),
		.ticket = cpu_to_le32(op->ticket),
		.offset = cpu_to_le64(e->roffset),
		.length = cpu_to_le64(e->operand),
		.dest = cpu_to_le64(e->dest),
		.at = cpu_to_le32(part->call.at),
		.bytes = cpu_to_le32(part->call.bytes),
		.place = cpu_to_le32(part->call.place),
		.src_queue = cpu_to_le32(part->q->number),
		.imm = cpu_to_le32(e->imm),
		.crc_from = cpu_to_le32(ENGINE_CRC_BEGIN),
	};
	/* Of an inline datagram, data is in the place of keys. */
	if (e->opcode != FABREX_OP_SEND)
		part->req.key = cpu_to_le64(e->rkey);
}

static u8 engine_piece_put(void *ctx, void *va, u32 at, u32 bytes)
{
	struct engine_part *part = ctx;

	if (part->op->entry.flags & FABREX_SQE_CHECK)
		part->op->crc = crc32c(part->op->crc, va, bytes);
	if (part->call.placed)
		part->wire->ops->put(part->wire, &part->call, at, va, bytes);
	else if (bytes == sizeof(u64) && !at &&
		 IS_ALIGNED((unsigned long)va, sizeof(u64)))
		*(u64 *)part->data = READ_ONCE(*(u64 *)va);
	else
		memcpy(part->data + at, va, bytes);
	return 0;
}

/* Payload from the local region, or out of the entry. */
static u8 engine_part_load(struct engine_part *part)
{
	struct engine_entry *e = &part->op->entry;
	struct engine_region *region;
	u8 status;

	if (!engine_op_gives(part->op))
		return FABREX_WC_OK;
	part->req.crc_from = cpu_to_le32(part->op->crc);
	if (e->flags & FABREX_SQE_INLINE) {
		engine_piece_put(part, e->inline_data, 0, part->call.bytes);
		return FABREX_WC_OK;
	}
	status = engine_op_local(part->q, part->op, &region);
	if (status)
		return engine_in_the_middle(part->call.at, status);
	engine_region_each(region, e->loffset + part->call.at,
			   part->call.bytes, engine_piece_put, part);
	engine_region_put(region);
	part->req.crc = cpu_to_le32(part->op->crc);
	return FABREX_WC_OK;
}

static void engine_part_count(const struct engine_part *part)
{
	u64 n = engine_op_gives(part->op) ? part->call.bytes : 0;

	if (engine_is_atomic(part->op->entry.opcode))
		n = sizeof(u64);
	atomic64_add(n, &part->q->counters.tx_bytes);
	atomic64_add(n, &part->q->engine->counters.tx_bytes);
}

/* The wire has it, or the operation has failed. */
static void engine_part_send(struct engine_part *part)
{
	struct engine_op *op = part->op;
	u8 status;

	engine_part_fill(part);
	status = engine_part_load(part);
	if (status) {
		part->wire->ops->cancel(part->wire, &part->call);
		engine_op_fail(op, status);
		return;
	}
	op->asked = true;
	op->sent += part->call.bytes;
	engine_part_count(part);
	atomic_inc(&op->waiting);
	atomic_inc(&part->q->waiting);
	part->wire->ops->request(part->wire, &part->req, part->data,
				 &part->call);
}

static u64 engine_key_of(const struct engine_op *op)
{
	return op->entry.opcode == FABREX_OP_SEND ? 0 : op->entry.rkey;
}

static u64 engine_dest_of(const struct engine_op *op)
{
	return op->entry.opcode == FABREX_OP_CMP_SWAP ? 0 : op->entry.dest;
}

static struct engine_known *engine_known(struct engine_queue *q,
					 const struct engine_op *op)
{
	u64 what = engine_key_of(op) ^ engine_dest_of(op) ^ op->entry.peer;

	return &q->known[hash_64(what, ilog2(ENGINE_KNOWN))];
}

static bool engine_op_knows(struct engine_queue *q, const struct engine_op *op)
{
	const struct engine_known *known = engine_known(q, op);

	return q->guesser.trusted && known->peer == op->entry.peer &&
	       known->rkey == engine_key_of(op) &&
	       known->dest == engine_dest_of(op) &&
	       (known->rkey || known->dest);
}

/* A key that is not known to be right goes alone, and a queue whose last one was
 * wrong waits until the budget allows that; a WRITE_IMM goes on when its peer has
 * kept a cell.
 */
static bool engine_op_may_ask(struct engine_queue *q, struct engine_op *op)
{
	if (READ_ONCE(op->moved))
		return true;
	if (op->asked && op->entry.opcode == FABREX_OP_WRITE_IMM)
		return false;
	if (engine_op_knows(q, op))
		return true;
	if (op->asked || q->done != op->index)
		return false;
	if (engine_guess_may(&q->guesser, q->engine))
		return true;
	engine_worker_kick_at(q->worker, q->guesser.due_ns);
	return false;
}

/* Did the peer look at more than the key? */
static bool engine_key_was_right(u32 status)
{
	switch (status) {
	case FABREX_WC_OK:
	case FABREX_WC_RBOUNDS:
	case FABREX_WC_RACCESS:
	case FABREX_WC_RPEER:
	case FABREX_WC_RNR:
	case FABREX_WC_TOO_LONG:
	case FABREX_WC_DATA:
	case FABREX_WC_RFAULT:
		return true;
	}
	return false;
}

static void engine_op_judge(struct engine_queue *q, const struct engine_op *op,
			    u32 status)
{
	int misses = atomic_xchg(&q->misses, 0);

	while (misses--)
		engine_guess_miss(&q->guesser, q->engine);
	if (!op->asked || !engine_key_was_right(status))
		return;
	engine_guess_hit(&q->guesser, q->engine);
	*engine_known(q, op) = (struct engine_known) {
		.peer = op->entry.peer,
		.rkey = engine_key_of(op),
		.dest = engine_dest_of(op),
	};
}

/* Room on a wire; if there is none now, the queue is served when there is. */
static int engine_part_reserve(struct engine_part *part)
{
	const struct fabrex_wire_ops *ops = part->wire->ops;
	int ret = ops->reserve(part->wire, &part->call);

	if (ret != -EAGAIN)
		return ret;
	atomic_set(&part->q->engine->starved, 1);
	/* Room may have been made just before. */
	smp_mb__after_atomic();
	return ops->reserve(part->wire, &part->call);
}

static enum engine_turn engine_op_send(struct engine_queue *q,
				       struct engine_op *op,
				       struct fabrex_wire *wire)
{
	u64 end = (u64)op->sent + TURN_BYTES;
	struct engine_part part;
	int ret;

	do {
		if (engine_op_failed(op))
			return TURN_SENT;
		if (op->sent >= end)
			return TURN_MORE;
		if (!engine_op_may_ask(q, op))
			return TURN_WAIT;
		engine_part_init(&part, q, op, wire, wire->chunk);
		ret = engine_part_reserve(&part);
		if (ret == -EAGAIN)
			return TURN_WAIT;
		if (ret) {
			engine_op_fail(op, op->asked ? FABREX_WC_ABORTED :
						       FABREX_WC_UNREACHABLE);
			return TURN_SENT;
		}
		engine_part_send(&part);
	} while (!engine_op_all_sent(op));
	return TURN_SENT;
}

/* The peer keeps a cell for the rest of a WRITE_IMM, which will not come. */
static bool engine_op_cancel(struct engine_queue *q, struct engine_op *op,
			     struct fabrex_wire *wire)
{
	struct fabrex_answer answer;
	struct engine_part part;
	int ret;

	if (op->entry.opcode != FABREX_OP_WRITE_IMM || !op->asked ||
	    op->sent >= op->entry.length || !wire)
		return true;
	engine_part_init(&part, q, op, wire, 0);
	part.call.urgent = true;
	ret = wire->ops ? engine_part_reserve(&part) : 0;
	if (ret == -EAGAIN)
		return false;
	if (ret)
		return true;
	engine_part_fill(&part);
	part.req.flags |= ENGINE_REQ_CANCEL;
	op->sent = op->entry.length;
	if (!wire->ops) {
		fabrex_engine_serve(wire, &part.req, NULL, &answer);
		return true;
	}
	atomic_inc(&op->waiting);
	atomic_inc(&q->waiting);
	wire->ops->request(wire, &part.req, NULL, &part.call);
	wire->ops->flush(wire);
	return true;
}

/* ---- within the port --------------------------------------------------- */

static u8 engine_piece_self(void *ctx, void *va, u32 at, u32 bytes)
{
	struct engine_part *part = ctx;
	struct engine_op *op = part->op;
	struct fabrex_answer answer;

	if (op->entry.flags & FABREX_SQE_CHECK &&
	    op->entry.opcode != FABREX_OP_READ) {
		part->req.crc_from = cpu_to_le32(op->crc);
		op->crc = crc32c(op->crc, va, bytes);
		part->req.crc = cpu_to_le32(op->crc);
	}
	fabrex_engine_serve(part->wire, &part->req, va, &answer);
	if (answer.flags & ENGINE_ANS_MISS)
		atomic_inc(&part->q->misses);
	op->asked = true;
	if (!answer.status && op->entry.opcode == FABREX_OP_READ &&
	    op->entry.flags & FABREX_SQE_CHECK) {
		op->crc = crc32c(op->crc, va, bytes);
		if (crc32c(ENGINE_CRC_BEGIN, va, bytes) !=
		    le32_to_cpu(answer.crc))
			return FABREX_WC_DATA;
	}
	if (!answer.status && engine_is_atomic(op->entry.opcode))
		answer.status = engine_op_store_old(part->q, op, &answer);
	return answer.status;
}

/* A part lies in one page. */
static u8 engine_self_part(struct engine_part *part)
{
	struct engine_entry *e = &part->op->entry;
	void *buffer = part->q->worker->buffer;
	struct engine_region *region;
	u8 status;

	if (engine_is_atomic(e->opcode))
		return engine_piece_self(part, NULL, 0, 0);
	if (e->flags & FABREX_SQE_INLINE)
		return engine_piece_self(part, e->inline_data, 0, e->length);
	status = engine_op_local(part->q, part->op, &region);
	if (status)
		return status;
	if (e->opcode == FABREX_OP_SEND) {
		engine_region_read(region, e->loffset, buffer,
				   part->call.bytes);
		status = engine_piece_self(part, buffer, 0, part->call.bytes);
	} else if (!part->call.bytes) {
		status = engine_piece_self(part, buffer, 0, 0);
	} else {
		status = engine_region_each(region, e->loffset + part->call.at,
					    part->call.bytes,
					    engine_piece_self, part);
	}
	engine_region_put(region);
	return status;
}

/* Bytes up to the end of the page of the local region. */
static u8 engine_self_room(const struct engine_queue *q,
			   const struct engine_op *op, u32 *room)
{
	struct engine_region *region;
	u8 status;

	*room = 0;
	if (engine_op_whole(op))
		return FABREX_WC_OK;
	status = engine_op_local(q, op, &region);
	if (status)
		return status;
	*room = PAGE_SIZE - offset_in_page(region->first + op->entry.loffset +
					   op->sent);
	engine_region_put(region);
	return FABREX_WC_OK;
}

static enum engine_turn engine_op_self(struct engine_queue *q,
				       struct engine_op *op,
				       struct fabrex_wire *wire)
{
	u64 end = (u64)op->sent + TURN_BYTES;
	struct engine_part part;
	u8 status;
	u32 room;

	do {
		if (op->sent >= end)
			return TURN_MORE;
		if (!op->asked && !engine_op_may_ask(q, op))
			return TURN_WAIT;
		status = engine_self_room(q, op, &room);
		if (!status) {
			engine_part_init(&part, q, op, wire, room);
			engine_part_fill(&part);
			status = engine_self_part(&part);
		}
		engine_op_fail(op, engine_in_the_middle(op->sent, status));
		if (status)
			break;
		op->moved = true;
		op->sent += part.call.bytes;
		engine_part_count(&part);
	} while (!engine_op_all_sent(op));
	return TURN_SENT;
}

/* ---- entries ----------------------------------------------------------- */

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

static void engine_op_finish(struct engine_queue *q, struct engine_op *op)
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
	if (engine_reports(op, status))
		engine_cq_complete(q, &cqe);
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
		engine_op_finish(q, op);
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
	int misses;

	if (queue->fetched && op->begun && !op->over)
		engine_op_give_up(queue, op);
	wait_event(queue->idle, !atomic_read(&queue->waiting));
	misses = atomic_xchg(&queue->misses, 0);
	while (misses--)
		engine_guess_miss(&queue->guesser, queue->engine);
	engine_guess_end(&queue->guesser, queue->engine);
}

/* ---- services ---------------------------------------------------------- */

static int engine_resolve_ask(struct fabrex_wire *wire,
			      const struct fabrex_request *req,
			      struct engine_resolve *resolve)
{
	struct fabrex_call call = { .resolve = resolve, .urgent = true };
	unsigned long end = jiffies + PATIENCE;
	int ret;

	init_completion(&resolve->done);
	resolve->answer.status = FABREX_WC_UNREACHABLE;
	while ((ret = wire->ops->reserve(wire, &call)) == -EAGAIN) {
		if (fatal_signal_pending(current))
			return -EINTR;
		if (time_after(jiffies, end))
			return -EAGAIN;
		msleep(1);
	}
	if (ret)
		return -EHOSTUNREACH;
	wire->ops->request(wire, req, NULL, &call);
	wire->ops->flush(wire);
	/* The wire does not let this take longer than its patience. */
	wait_for_completion(&resolve->done);
	return 0;
}

/**
 * engine_resolve() - find a queue by its service
 * @engine:  engine
 * @peer:    number
 * @service: service
 * @queue:   result: number of the queue
 * @key:     result: its key
 *
 * Context: Process; sleeps, for as long as the peer takes to answer.
 * Return: 0; -ENOENT if the peer does not offer the service; -EHOSTUNREACH if it
 * is down; -EAGAIN if there is too much to do; -EINTR
 */
int engine_resolve(struct fabrex_engine *engine, u32 peer, u64 service,
		   u32 *queue, u64 *key)
{
	struct fabrex_wire *wire = engine_wire(engine, peer);
	const struct fabrex_request req = {
		.opcode = ENGINE_OP_RESOLVE,
		.length = cpu_to_le64(service),
	};
	struct engine_resolve resolve = {};
	int ret = 0;

	if (!wire)
		return -EHOSTUNREACH;
	if (wire->ops)
		ret = engine_resolve_ask(wire, &req, &resolve);
	else
		fabrex_engine_serve(wire, &req, NULL, &resolve.answer);
	if (ret)
		return ret;
	if (resolve.answer.status == FABREX_WC_UNREACHABLE)
		return -EHOSTUNREACH;
	if (resolve.answer.status)
		return -ENOENT;
	*queue = le32_to_cpu(resolve.answer.number);
	*key = le64_to_cpu(resolve.answer.value);
	return 0;
}
