// SPDX-License-Identifier: GPL-2.0-only
/*
 * The target side: performs parts of operations on regions and queues of this
 * port, for peers and for the port itself, after all checks. Called by wires, by one
 * thread for each peer, and by self.c.
 */
#include <linux/crc32c.h>
#include <linux/kernel.h>

#include "check.h"
#include "queue.h"
#include "region.h"

/* Cells that are kept for WRITE_IMMs of a peer at most. */
#define MAX_HELD	256

/**
 * struct agent_part - a request, decoded
 * @wire:   where it has come from
 * @engine: engine
 * @answer: to be given
 * @opcode: FABREX_OP_*
 * @flags:  ENGINE_REQ_*
 * @ticket: of the operation
 * @key:    of the region
 * @offset: of the operation
 * @length: of the operation, or its operand
 * @dest:   key of the queue, or the expected value
 * @at:     begin of the part
 * @bytes:  its length
 * @payload: of a WRITE or SEND; where a READ by the port itself goes
 * @place:  where a READ by a peer goes
 * @drawn:  the wire has begun to fetch it itself
 * @cqe:    for the queue
 * @crc:    state of the CRC32C after the part
 * @crc_from: before it
 * @missed: key that nothing has, or 0
 */
struct agent_part {
	struct fabrex_wire *wire;
	struct fabrex_engine *engine;
	struct fabrex_answer *answer;
	u8 opcode;
	u8 flags;
	u32 ticket;
	u64 key;
	u64 offset;
	u64 length;
	u64 dest;
	u32 at;
	u32 bytes;
	const void *payload;
	u32 place;
	bool drawn;
	struct fabrex_cqe cqe;
	u32 crc;
	u32 crc_from;
	u64 missed;
};

static void agent_decode(struct agent_part *part, struct fabrex_wire *wire,
			 const struct fabrex_request *req, const void *payload,
			 struct fabrex_answer *answer)
{
	bool message = req->opcode == FABREX_OP_SEND;

	*part = (struct agent_part) {
		.wire = wire,
		.engine = wire->engine,
		.answer = answer,
		.opcode = req->opcode,
		.flags = req->flags,
		.ticket = le32_to_cpu(req->ticket),
		.key = le64_to_cpu(req->key),
		.offset = le64_to_cpu(req->offset),
		.length = le64_to_cpu(req->length),
		.dest = le64_to_cpu(req->dest),
		.at = le32_to_cpu(req->at),
		.bytes = le32_to_cpu(req->bytes),
		.payload = payload,
		.place = le32_to_cpu(req->place),
		.cqe = {
			.imm = req->imm,
			.src_queue = req->src_queue,
			.peer = cpu_to_le16(wire->peer),
			.opcode = message ? FABREX_OP_RECV : FABREX_OP_RECV_IMM,
		},
		.crc = le32_to_cpu(req->crc),
		.crc_from = le32_to_cpu(req->crc_from),
	};
}

static bool agent_open_to(const struct engine_region *region, u32 peer)
{
	return region->peers[peer / 64] >> (peer % 64) & 1;
}

/* What has become of an access to a region. */
static u8 agent_status(u8 status)
{
	return status == ENGINE_NO_MEMORY ? FABREX_WC_RFAULT : status;
}

/* Checks 7 to 10. */
static u8 agent_region(struct agent_part *part, u64 length,
		       struct engine_region **found)
{
	u32 right = engine_remote_right(part->opcode);
	struct engine_region *region;
	u8 status = FABREX_WC_OK;

	region = engine_region_get(part->engine, part->key);
	if (!region) {
		if (!engine_region_exists(part->engine, part->key))
			part->missed = part->key;
		return FABREX_WC_RKEY;
	}
	if (!engine_covers(region->length, part->offset, length))
		status = FABREX_WC_RBOUNDS;
	else if (!(region->access & right))
		status = FABREX_WC_RACCESS;
	else if (!agent_open_to(region, part->wire->peer))
		status = FABREX_WC_RPEER;
	else if (part->opcode != FABREX_OP_READ &&
		 !engine_device_suits(region, part->offset, length))
		status = FABREX_WC_BAD_DESC;
	/* No engine sends a part that is outside of its operation. */
	else if (!engine_covers(length, part->at, part->bytes))
		status = FABREX_WC_BAD_DESC;
	if (status)
		engine_region_put(region);
	else
		*found = region;
	return status;
}

/* Checks 12 to 14: the queue, to be left. */
static u8 agent_reserve(struct agent_part *part, struct engine_queue **found)
{
	struct engine_queue *queue;
	u8 status;

	queue = engine_queue_get(part->engine, part->dest);
	if (!queue) {
		part->missed = part->dest;
		return FABREX_WC_BAD_QUEUE;
	}
	status = engine_cq_reserve(queue, part->opcode == FABREX_OP_SEND,
				   part->length);
	if (status)
		engine_queue_leave(queue);
	else
		*found = queue;
	return status;
}

/* Keep what was reserved until the last part. */
static u8 agent_hold(struct agent_part *part, struct engine_queue *queue)
{
	struct fabrex_wire *wire = part->wire;

	if (atomic_inc_return(&wire->nheld) > MAX_HELD)
		goto refuse;
	engine_queue_hold(queue);
	/* Inside the gate of a region, which others wait for. */
	if (!xa_insert(&wire->held, part->ticket, queue,
		       GFP_NOWAIT | __GFP_NOWARN))
		return FABREX_WC_OK;
	engine_queue_put(queue);
refuse:
	atomic_dec(&wire->nheld);
	engine_cq_unreserve(queue);
	return FABREX_WC_RNR;
}

static struct engine_queue *agent_held(struct fabrex_wire *wire, u32 ticket)
{
	struct engine_queue *queue = xa_erase(&wire->held, ticket);

	if (queue)
		atomic_dec(&wire->nheld);
	return queue;
}

static void agent_drop(struct engine_queue *queue)
{
	engine_cq_unreserve(queue);
	engine_queue_put(queue);
}

/* The first part makes sure that there is a cell; so does one that is the only one,
 * which tells the queue itself.
 */
static u8 agent_first(struct agent_part *part, struct engine_queue **only)
{
	struct engine_queue *queue;
	u8 status;

	*only = NULL;
	if (part->opcode != FABREX_OP_WRITE_IMM ||
	    !(part->flags & ENGINE_REQ_FIRST))
		return FABREX_WC_OK;
	status = agent_reserve(part, &queue);
	if (status)
		return status;
	if (part->flags & ENGINE_REQ_LAST) {
		*only = queue;
		return FABREX_WC_OK;
	}
	status = agent_hold(part, queue);
	engine_queue_leave(queue);
	return status;
}

/* The only part of a WRITE_IMM ends. */
static u8 agent_only(struct agent_part *part, struct engine_queue *queue,
		     u8 status)
{
	if (status)
		engine_cq_unreserve(queue);
	else
		status = engine_cq_deliver(queue, NULL, part->length,
					   &part->cqe);
	engine_queue_leave(queue);
	return status;
}

static u8 agent_notify(struct agent_part *part, struct engine_queue *held)
{
	struct engine_queue *queue = engine_queue_get(part->engine, part->dest);
	u8 status = FABREX_WC_BAD_QUEUE;

	if (queue == held) {
		status = engine_cq_deliver(held, NULL, part->length,
					   &part->cqe);
		engine_queue_put(held);
	} else {
		agent_drop(held);
	}
	if (queue)
		engine_queue_leave(queue);
	return status;
}

/* The last of several parts, or one that has failed, ends it. */
static u8 agent_last(struct agent_part *part, u8 status)
{
	struct engine_queue *held;

	if (part->opcode != FABREX_OP_WRITE_IMM ||
	    (!status && !(part->flags & ENGINE_REQ_LAST)))
		return status;
	held = agent_held(part->wire, part->ticket);
	if (!held)
		return status ?: FABREX_WC_BAD_QUEUE;
	if (!status)
		return agent_notify(part, held);
	agent_drop(held);
	return status;
}

static u8 agent_store(struct agent_part *part, struct engine_region *region)
{
	u64 offset = part->offset + part->at;
	u32 crc = part->crc_from;
	u8 status;

	/* Since the region is valid now, it was linked when the peer stored. */
	if (!(part->flags & ENGINE_REQ_DIRECT))
		status = engine_region_write(region, offset, part->payload,
					     part->bytes);
	else
		status = engine_region_linked(region, part->wire) ?
			 FABREX_WC_OK : FABREX_WC_BAD_DESC;
	if (status)
		return agent_status(status);
	atomic64_add(part->bytes, &part->engine->counters.rx_bytes);
	if (!(part->flags & ENGINE_REQ_CHECK))
		return FABREX_WC_OK;
	status = engine_region_crc(region, offset, part->bytes, &crc);
	if (!status && crc != part->crc)
		status = FABREX_WC_DATA;
	return agent_status(status);
}

/* From the next part on, the peer may store to the region by itself. */
static void agent_link(struct agent_part *part, struct engine_region *region)
{
	if (!(part->flags & ENGINE_REQ_LINK) ||
	    !engine_region_link(region, part->wire))
		return;
	part->answer->flags |= ENGINE_ANS_LINKED;
	part->answer->value = cpu_to_le64(region->where + region->first);
	part->answer->number = cpu_to_le32(region->length);
}

static u8 agent_write(struct agent_part *part)
{
	struct engine_queue *only = NULL;
	struct engine_region *region;
	u8 status;

	if (part->flags & ENGINE_REQ_CANCEL)
		return agent_last(part, FABREX_WC_ABORTED);
	status = agent_region(part, part->length, &region);
	if (!status) {
		status = agent_first(part, &only);
		if (!status)
			status = agent_store(part, region);
		if (!status)
			agent_link(part, region);
		engine_region_put(region);
	}
	return only ? agent_only(part, only, status) :
		      agent_last(part, status);
}

static u8 agent_piece_reply(void *ctx, void *va, u32 at, u32 bytes)
{
	struct agent_part *part = ctx;
	struct fabrex_wire *wire = part->wire;

	if (part->flags & ENGINE_REQ_CHECK)
		part->crc = crc32c(part->crc, va, bytes);
	return wire->ops->reply(wire, part->place, at, va, bytes) ?
	       FABREX_WC_OK : FABREX_WC_LFAULT;
}

static u8 agent_extent_draw(void *ctx, dma_addr_t addr, u32 at, u32 bytes)
{
	struct agent_part *part = ctx;
	struct fabrex_wire *wire = part->wire;

	if (!wire->ops->draw(wire, NULL, part->place, at, addr, bytes))
		return ENGINE_NO_MEMORY;
	part->drawn = true;
	return 0;
}

/* Past the processor if that is possible, and it need not see the payload. */
static u8 agent_copy(struct agent_part *part, struct engine_region *region,
		     u64 offset)
{
	u8 status;

	if (region->far && part->wire->ops->draw &&
	    !(part->flags & ENGINE_REQ_CHECK)) {
		status = engine_device_each(region, offset, part->bytes,
					    agent_extent_draw, part);
		if (!status || part->drawn)
			return status;
	}
	return engine_region_each(region, offset, part->bytes,
				  agent_piece_reply, part);
}

/* To a peer. */
static u8 agent_reply(struct agent_part *part, struct engine_region *region,
		      u64 offset)
{
	struct fabrex_wire *wire = part->wire;
	u8 status = agent_copy(part, region, offset);

	if (!wire->ops->reply(wire, part->place, part->bytes, NULL, 0) &&
	    !status)
		status = ENGINE_NO_MEMORY;
	return status;
}

/* To a process of this host. */
static u8 agent_reply_self(struct agent_part *part,
			   struct engine_region *region, u64 offset)
{
	u8 status;

	status = engine_region_read(region, offset, (void *)part->payload,
				    part->bytes);
	if (!status && part->flags & ENGINE_REQ_CHECK)
		status = engine_region_crc(region, offset, part->bytes,
					   &part->crc);
	return status;
}

static u8 agent_read(struct agent_part *part)
{
	u64 offset = part->offset + part->at;
	struct engine_region *region;
	u8 status;

	status = agent_region(part, part->length, &region);
	if (status)
		return status;
	part->crc = part->crc_from;
	status = agent_status(part->wire->ops ?
			      agent_reply(part, region, offset) :
			      agent_reply_self(part, region, offset));
	engine_region_put(region);
	part->answer->crc = cpu_to_le32(part->crc);
	if (!status)
		atomic64_add(part->bytes, &part->engine->counters.tx_bytes);
	return status;
}

static u8 agent_atomic(struct agent_part *part)
{
	struct engine_region *region;
	u8 status;
	u64 old;

	status = agent_region(part, 8, &region);
	if (status)
		return status;
	if (region->far) {
		status = FABREX_WC_RFAULT;
	} else if (IS_ALIGNED(region->first + part->offset, 8)) {
		old = engine_region_atomic(region, part->offset, part->opcode,
					   part->length, part->dest);
		part->answer->value = cpu_to_le64(old);
		atomic64_add(8, &part->engine->counters.rx_bytes);
	} else {
		status = FABREX_WC_BAD_DESC;
	}
	engine_region_put(region);
	return status;
}

static u8 agent_send(struct agent_part *part)
{
	struct engine_queue *queue;
	u8 status;

	/* One that is too long for any cell comes without its payload. */
	status = agent_reserve(part, &queue);
	if (status)
		return status;
	if (part->at || part->bytes != part->length) {
		engine_cq_unreserve(queue);
		engine_queue_leave(queue);
		return FABREX_WC_BAD_DESC;
	}
	status = engine_cq_deliver(queue, part->payload, part->bytes,
				   &part->cqe);
	engine_queue_leave(queue);
	if (!status)
		atomic64_add(part->bytes, &part->engine->counters.rx_bytes);
	return status;
}

static u8 agent_resolve(struct agent_part *part)
{
	struct engine_queue *queue = NULL;

	if (part->length)
		queue = engine_queue_serving(part->engine, part->length);
	if (!queue)
		return FABREX_WC_BAD_QUEUE;
	part->answer->number = cpu_to_le32(queue->number);
	part->answer->value = cpu_to_le64(queue->key);
	engine_queue_leave(queue);
	return FABREX_WC_OK;
}

static u8 agent_perform(struct agent_part *part)
{
	switch (part->opcode) {
	case FABREX_OP_WRITE:
	case FABREX_OP_WRITE_IMM:
		return agent_write(part);
	case FABREX_OP_READ:
		return agent_read(part);
	case FABREX_OP_FETCH_ADD:
	case FABREX_OP_CMP_SWAP:
		return agent_atomic(part);
	case FABREX_OP_SEND:
		return agent_send(part);
	case ENGINE_OP_RESOLVE:
		return agent_resolve(part);
	}
	return FABREX_WC_BAD_OPCODE;
}

/* The initiator counts a miss once for an operation; this side does not rely on that,
 * but the same key once more is no guess.
 */
static bool agent_missed(struct agent_part *part)
{
	struct fabrex_wire *wire = part->wire;

	if (!part->missed)
		return true;
	if (!part->at)
		part->answer->flags |= ENGINE_ANS_MISS;
	if (!wire->ops || wire->missed == part->missed)
		return true;
	wire->missed = part->missed;
	return engine_guess_peer(wire);
}

/**
 * fabrex_engine_serve() - perform a request
 * @wire:    that has brought it
 * @req:     a copy, which the peer cannot change any more
 * @payload: &fabrex_request.bytes of it, which the peer may change; NULL if it
 *           has none. Of a READ by the port itself, where it goes
 * @answer:  result
 *
 * What it has stored is visible to whoever sees the answer after a barrier.
 *
 * Context: Process; sleeps. One at a time for a peer.
 * Return: false if the peer has presented more wrong keys than an engine would;
 * @answer is valid all the same
 */
bool fabrex_engine_serve(struct fabrex_wire *wire,
			 const struct fabrex_request *req, const void *payload,
			 struct fabrex_answer *answer)
{
	struct agent_part part;

	*answer = (struct fabrex_answer) {};
	agent_decode(&part, wire, req, payload, answer);
	answer->status = agent_perform(&part);
	if (!part.at && part.opcode <= FABREX_OP_SEND)
		atomic64_inc(&wire->engine->counters.rx_ops);
	return agent_missed(&part);
}
FABREX_EXPORT(fabrex_engine_serve);

/**
 * fabrex_engine_forget() - end what a peer has begun and will not go on with
 * @wire: wire, whose requests are not served at this time
 *
 * Context: Process; sleeps.
 */
void fabrex_engine_forget(struct fabrex_wire *wire)
{
	struct engine_queue *queue;
	unsigned long ticket;

	xa_for_each(&wire->held, ticket, queue)
		agent_drop(agent_held(wire, ticket));
}
FABREX_EXPORT(fabrex_engine_forget);
