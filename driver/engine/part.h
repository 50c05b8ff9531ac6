/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Parts of operations: what is sent to a peer at once, or performed here. For the
 * files that together make up op.c: part.c, self.c, answer.c.
 */
#ifndef _ENGINE_PART_H
#define _ENGINE_PART_H

#include "queue.h"
#include "region.h"

enum engine_turn {
	TURN_SENT,	/* all that there is to send; or it has failed */
	TURN_WAIT,	/* for an answer, for room, or for time */
	TURN_MORE,	/* others have a turn first */
};

/**
 * struct engine_part - a part that is about to be sent
 * @q:    queue
 * @op:   operation
 * @wire: to the peer
 * @call: for the wire
 * @req:  likewise
 * @drawn: the wire has begun to fetch the payload itself
 * @data: payload, if it was not placed
 */
struct engine_part {
	struct engine_queue *q;
	struct engine_op *op;
	struct fabrex_wire *wire;
	struct fabrex_call call;
	struct fabrex_request req;
	bool drawn;
	u8 data[ENGINE_INLINE_MAX] __aligned(8);
};

static inline void engine_op_fail(struct engine_op *op, u8 status)
{
	if (status)
		cmpxchg(&op->status, FABREX_WC_OK, status);
}

static inline bool engine_op_failed(const struct engine_op *op)
{
	return READ_ONCE(op->status) != FABREX_WC_OK;
}

/* What has become of an access to a local region. */
static inline u8 engine_local_status(u8 status)
{
	return status == ENGINE_NO_MEMORY ? FABREX_WC_LFAULT : status;
}

/* Operations that are not cut into parts. */
static inline bool engine_op_whole(const struct engine_op *op)
{
	return engine_is_atomic(op->entry.opcode) ||
	       op->entry.opcode == FABREX_OP_SEND;
}

static inline bool engine_op_all_sent(const struct engine_op *op)
{
	return op->asked &&
	       (engine_op_whole(op) || op->sent >= op->entry.length);
}

/* Lost in the middle: what would refuse a new operation cuts this one short. */
static inline u8 engine_in_the_middle(u32 at, u8 status)
{
	if (at && status >= FABREX_WC_LKEY && status <= FABREX_WC_BAD_QUEUE)
		return FABREX_WC_ABORTED;
	return status;
}

/* answer.c */
u8 engine_op_local(const struct engine_queue *queue, const struct engine_op *op,
		   struct engine_region **found);
u8 engine_op_store_old(struct engine_queue *queue, struct engine_op *op,
		       const struct fabrex_answer *answer);

/* part.c */
void engine_part_init(struct engine_part *part, struct engine_queue *queue,
		      struct engine_op *op, struct fabrex_wire *wire, u32 most);
void engine_part_fill(struct engine_part *part);
void engine_part_count(const struct engine_part *part);
bool engine_op_may_ask(struct engine_queue *queue, struct engine_op *op,
		       const struct fabrex_wire *wire);
void engine_op_judge(struct engine_queue *queue, const struct engine_op *op,
		     u32 status);
enum engine_turn engine_op_send(struct engine_queue *queue,
				struct engine_op *op, struct fabrex_wire *wire);
bool engine_op_cancel(struct engine_queue *queue, struct engine_op *op,
		      struct fabrex_wire *wire);

/* self.c */
enum engine_turn engine_op_self(struct engine_queue *queue,
				struct engine_op *op, struct fabrex_wire *wire);

#endif
