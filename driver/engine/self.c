// SPDX-License-Identifier: GPL-2.0-only
/*
 * Operations within the port: between processes of the host, or within one, with
 * the same checks as for a peer. Called by op.c.
 */
#include <linux/crc32c.h>
#include <linux/mm.h>

#include "part.h"
#include "worker.h"

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
		op->miss = true;
	if (!op->asked)
		op->epoch = part->wire->epoch;
	op->asked = true;
	if (!answer.status && op->entry.opcode == FABREX_OP_READ &&
	    op->entry.flags & FABREX_SQE_CHECK) {
		op->crc = crc32c(op->crc, va, bytes);
		if (crc32c(ENGINE_CRC_BEGIN, va, bytes) !=
		    le32_to_cpu(answer.crc))
			return FABREX_WC_DATA;
	}
	if (!answer.status && op->entry.opcode == FABREX_OP_READ) {
		atomic64_add(bytes, &part->q->counters.rx_bytes);
		atomic64_add(bytes, &part->q->engine->counters.rx_bytes);
	}
	if (!answer.status && engine_is_atomic(op->entry.opcode))
		answer.status = engine_op_store_old(part->q, op, &answer);
	return answer.status;
}

/* Is memory at either end out of the processor's reach? */
static bool engine_self_far(const struct engine_queue *q,
			    const struct engine_op *op,
			    const struct engine_region *region)
{
	return region->far || (op->entry.opcode != FABREX_OP_SEND &&
			       engine_region_far(q->engine, op->entry.rkey));
}

/* By way of the worker's buffer. */
static u8 engine_self_buffered(struct engine_part *part,
			       struct engine_region *region, void *buffer)
{
	const struct engine_entry *e = &part->op->entry;
	u64 offset = e->loffset + part->call.at;
	u32 bytes = part->call.bytes, stored = ENGINE_CRC_BEGIN;
	u8 status = 0;

	if (e->opcode != FABREX_OP_READ)
		status = engine_region_read(region, offset, buffer, bytes);
	if (!status)
		status = engine_piece_self(part, buffer, 0, bytes);
	if (status || e->opcode != FABREX_OP_READ)
		return engine_local_status(status);
	status = engine_region_write(region, offset, buffer, bytes);
	if (!status && e->flags & FABREX_SQE_CHECK)
		status = engine_region_crc(region, offset, bytes, &stored);
	if (!status && e->flags & FABREX_SQE_CHECK &&
	    stored != crc32c(ENGINE_CRC_BEGIN, buffer, bytes))
		status = FABREX_WC_DATA;
	return engine_local_status(status);
}

/* A part lies in one page, or fits into the buffer. */
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
	if (e->opcode == FABREX_OP_SEND || !part->call.bytes ||
	    engine_self_far(part->q, part->op, region))
		status = engine_self_buffered(part, region, buffer);
	else
		status = engine_region_each(region, e->loffset + part->call.at,
					    part->call.bytes,
					    engine_piece_self, part);
	engine_region_put(region);
	return status;
}

/* Bytes up to the end of the page of the local region, or of the buffer. */
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
	*room = engine_self_far(q, op, region) ? ENGINE_BUFFER :
		PAGE_SIZE - offset_in_page(region->first + op->entry.loffset +
					   op->sent);
	engine_region_put(region);
	return FABREX_WC_OK;
}

/**
 * engine_op_self() - perform an operation within the port, for a turn
 * @q:    queue
 * @op:   its operation at &engine_queue.next
 * @wire: to the port itself
 *
 * Context: Process.
 * Return: whether it is complete
 */
enum engine_turn engine_op_self(struct engine_queue *q, struct engine_op *op,
				struct fabrex_wire *wire)
{
	struct engine_part part;
	u8 status;
	u32 room;

	do {
		if (!q->budget)
			return TURN_MORE;
		if (!op->asked && !engine_op_may_ask(q, op, wire))
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
		q->budget -= min(q->budget, part.call.bytes);
		engine_part_count(&part);
	} while (!engine_op_all_sent(op));
	return TURN_SENT;
}
