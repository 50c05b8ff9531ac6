// SPDX-License-Identifier: GPL-2.0-only
/*
 * Parts of operations, as they are sent to a peer: payload is copied, or put where
 * the wire wants it; and which keys may be tried. Called by op.c.
 */
#include <linux/crc32c.h>
#include <linux/hash.h>
#include <linux/log2.h>

#include "part.h"
#include "worker.h"

/* Does its payload travel with the request? */
static bool engine_op_gives(const struct engine_op *op)
{
	return op->entry.opcode != FABREX_OP_READ &&
	       !engine_is_atomic(op->entry.opcode);
}

/* May payload be stored before its request is served? Not before that of earlier
 * operations, nor where these look: unless all that is under way has been stored
 * early, too, by the processor. And there has to be a cell for a WRITE_IMM first.
 */
static bool engine_part_early(struct engine_part *part)
{
	const struct engine_op *op = part->op;
	struct engine_queue *q = part->q;
	int waiting;

	if (op->entry.opcode != FABREX_OP_WRITE &&
	    (op->entry.opcode != FABREX_OP_WRITE_IMM || !op->sent))
		return false;
	/* In this order: answers are subtracted from the operation first. */
	waiting = atomic_read_acquire(&q->waiting);
	if (waiting == atomic_read(&op->waiting))
		return true;
	part->call.stores = true;
	return q->stores;
}

/* A request is sent: is all that is under way stored early by the processor? */
static void engine_part_stored(struct engine_part *part)
{
	bool stores = part->call.direct && !part->call.marker &&
		      !(part->op->entry.flags & FABREX_SQE_CHECK);

	part->q->stores = stores && (part->q->stores ||
				     !atomic_read(&part->q->waiting));
}

/**
 * engine_part_init() - begin with the next part of an operation
 * @part: result
 * @q:    queue
 * @op:   operation
 * @wire: to the peer
 * @most: bytes
 *
 * Context: Any.
 */
void engine_part_init(struct engine_part *part, struct engine_queue *q,
		      struct engine_op *op, struct fabrex_wire *wire, u32 most)
{
	u64 left = op->entry.length - op->sent;

	part->q = q;
	part->op = op;
	part->wire = wire;
	part->drawn = false;
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
	if (engine_part_early(part)) {
		part->call.key = op->entry.rkey;
		part->call.offset = op->entry.roffset;
		part->call.length = op->entry.length;
	}
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

/**
 * engine_part_fill() - fill in the request, but for the payload and its CRC
 * @part: part, with its place
 *
 * Context: Any.
 */
void engine_part_fill(struct engine_part *part)
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

static u8 engine_extent_draw(void *ctx, dma_addr_t addr, u32 at, u32 bytes)
{
	struct engine_part *part = ctx;

	if (!part->wire->ops->draw(part->wire, &part->call, part->call.place,
				   at, addr, bytes))
		return ENGINE_NO_MEMORY;
	part->drawn = true;
	return 0;
}

/* Past the processor if that is possible, and it need not see the payload. */
static u8 engine_part_copy(struct engine_part *part,
			   struct engine_region *region)
{
	u64 offset = part->op->entry.loffset + part->call.at;
	u32 bytes = part->call.bytes;
	u8 status;

	if (region->far && part->call.placed && part->wire->ops->draw &&
	    !(part->op->entry.flags & FABREX_SQE_CHECK)) {
		status = engine_device_each(region, offset, bytes,
					    engine_extent_draw, part);
		if (!status || part->drawn)
			return status;
	}
	return engine_region_each(region, offset, bytes, engine_piece_put,
				  part);
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
	status = engine_local_status(engine_part_copy(part, region));
	if (part->call.placed &&
	    !part->wire->ops->settle(part->wire, &part->call))
		status = FABREX_WC_LFAULT;
	engine_region_put(region);
	part->req.crc = cpu_to_le32(part->op->crc);
	return status;
}

/**
 * engine_part_count() - count what is sent
 * @part: part
 *
 * Context: Any.
 */
void engine_part_count(const struct engine_part *part)
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
	if (!op->asked)
		op->epoch = READ_ONCE(part->wire->epoch);
	op->asked = true;
	op->sent += part->call.bytes;
	part->q->budget -= min(part->q->budget, part->call.bytes);
	engine_part_count(part);
	engine_part_stored(part);
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

static bool engine_op_knows(struct engine_queue *q, const struct engine_op *op,
			    const struct fabrex_wire *wire)
{
	const struct engine_known *known = engine_known(q, op);

	return known->epoch == READ_ONCE(wire->epoch) &&
	       known->peer == op->entry.peer &&
	       known->rkey == engine_key_of(op) &&
	       known->dest == engine_dest_of(op) &&
	       (known->rkey || known->dest);
}

/**
 * engine_op_may_ask() - may the next part be sent?
 * @q:  queue
 * @op: its operation at &engine_queue.next
 * @wire: to the peer
 *
 * A key that is not known to be right goes alone, and a queue whose last one was
 * wrong waits until the budget allows that; a WRITE_IMM goes on when its peer has
 * kept a cell.
 *
 * Context: Process.
 * Return: whether it may; otherwise the queue is served again in time
 */
bool engine_op_may_ask(struct engine_queue *q, struct engine_op *op,
		       const struct fabrex_wire *wire)
{
	if (READ_ONCE(op->moved))
		return true;
	if (op->asked && op->entry.opcode == FABREX_OP_WRITE_IMM)
		return false;
	if (!op->asked)
		op->known = engine_op_knows(q, op, wire);
	if (op->known)
		return true;
	if (op->asked || q->done != op->index)
		return false;
	if (engine_guess_may(&q->guesser, q->engine))
		return true;
	engine_worker_kick_at(q->worker, q->guesser.due_ns);
	return false;
}

/* Was each key of the operation looked up, and right? */
static bool engine_keys_were_right(const struct engine_op *op, u32 status)
{
	switch (status) {
	case FABREX_WC_OK:
	case FABREX_WC_RNR:
	case FABREX_WC_TOO_LONG:
	case FABREX_WC_DATA:
		return true;
	case FABREX_WC_RBOUNDS:
	case FABREX_WC_RACCESS:
	case FABREX_WC_RPEER:
		/* Before the queue is. */
		return op->entry.opcode != FABREX_OP_WRITE_IMM;
	}
	return false;
}

/**
 * engine_op_judge() - learn from what has become of an operation
 * @q:      queue
 * @op:     operation that is complete, or will not be
 * @status: of it
 *
 * A key that was known to be right and is not any more is no guess but the first
 * time.
 *
 * Context: Process.
 */
void engine_op_judge(struct engine_queue *q, const struct engine_op *op,
		     u32 status)
{
	struct engine_known *known = engine_known(q, op);

	if (op->miss && (!op->known || known->epoch == op->epoch)) {
		engine_guess_miss(&q->guesser, q->engine);
		known->epoch = 0;
	}
	if (!op->asked || !engine_keys_were_right(op, status))
		return;
	engine_guess_hit(&q->guesser, q->engine);
	*known = (struct engine_known) {
		.epoch = op->epoch,
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

/**
 * engine_op_send() - send parts of an operation to its peer, for a turn
 * @q:    queue
 * @op:   its operation at &engine_queue.next
 * @wire: to the peer
 *
 * Context: Process.
 * Return: whether all are sent
 */
enum engine_turn engine_op_send(struct engine_queue *q, struct engine_op *op,
				struct fabrex_wire *wire)
{
	struct engine_part part;
	int ret;

	do {
		/* What has been lost in between cannot be gone on with. */
		if (op->asked && op->epoch != READ_ONCE(wire->epoch))
			engine_op_fail(op, FABREX_WC_ABORTED);
		if (engine_op_failed(op))
			return TURN_SENT;
		if (!q->budget)
			return TURN_MORE;
		if (!engine_op_may_ask(q, op, wire))
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

/**
 * engine_op_cancel() - tell the peer of a WRITE_IMM whose rest will not come
 * @q:    queue
 * @op:   its operation at &engine_queue.next
 * @wire: to the peer; NULL if it cannot be reached, and so keeps nothing
 *
 * Context: Process.
 * Return: false if there is no room now
 */
bool engine_op_cancel(struct engine_queue *q, struct engine_op *op,
		      struct fabrex_wire *wire)
{
	struct fabrex_answer answer;
	struct engine_part part;
	int ret;

	if (op->entry.opcode != FABREX_OP_WRITE_IMM || !op->asked ||
	    op->sent >= op->entry.length || !wire ||
	    op->epoch != READ_ONCE(wire->epoch))
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
