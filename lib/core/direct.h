/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Queues with shared.direct: the thread that submits executes, and completions
 * wait in its own memory. The halves of post.c and poll.c for them; nobody
 * else calls.
 */
#ifndef LIB_DIRECT_H
#define LIB_DIRECT_H

#include <stdbool.h>
#include "core/core.h"
#include "transport/loopback/plain.h"

/*
 * shadow.direct.state of an entry below sq_tail: FABREX_WC_*, and whether its
 * sum is in the entry's imm; or that there is nothing to report.
 */
#define DONE_STATUS	0x3fu
#define DONE_SUM	0x40u
#define DONE_SILENT	0x80u

/* Entry @at, the newest, needs no report. */
void fxi_direct_silent(struct fabrex_queue *q, uint32_t at);

/* There is room for one, and none waits before it. */
static inline bool direct_ready(const struct fabrex_queue *q)
{
	return q->sq_tail == q->sq_next && q->sq_next - q->sq_done < q->limit;
}

/* An operation that was executed without an entry; direct_ready() was true. */
static inline void direct_record(struct fabrex_queue *q,
				 struct loop_queue *direct, uint64_t user_data,
				 uint32_t peer, uint8_t opcode, uint8_t flags,
				 uint32_t length)
{
	uint32_t at = q->sq_next;
	struct shadow *s = &q->shadow[at & q->sq_mask];

	q->sq_next = at + 1;
	s->user_data = user_data;
	s->direct.peer = (uint16_t)peer;
	s->direct.opcode = opcode;
	s->direct.state = FABREX_WC_OK;
	s->direct.length = length;
	q->sq_tail = at + 1;
	if (flags & FABREX_SQE_QUIET)
		fxi_direct_silent(q, at);
	else if (unlikely(direct->armed))
		fxi_loop_completed(direct);
}

static __always_inline bool
direct_write(struct fabrex_queue *q, const struct fabrex_mr *mr,
	     uint64_t offset, uint32_t peer, uint64_t rkey, uint64_t roffset,
	     uint64_t length, uint8_t flags, uint64_t user_data)
{
	struct loop_queue *direct = q->shared.direct;

	if (unlikely(length != 8 || flags & ~FABREX_SQE_QUIET ||
		     !direct_ready(q) ||
		     !loop_write_word(direct, mr, offset, peer, rkey,
				      roffset)))
		return false;
	direct_record(q, direct, user_data, peer, FABREX_OP_WRITE, flags, 8);
	return true;
}

static __always_inline bool
direct_send(struct fabrex_queue *q, uint32_t peer, uint64_t dest_key,
	    const struct fabrex_mr *mr, uint64_t offset, uint64_t length,
	    uint8_t flags, uint32_t imm, uint64_t user_data)
{
	struct loop_queue *direct = q->shared.direct;

	if (unlikely(!length || flags & ~FABREX_SQE_QUIET || !direct_ready(q) ||
		     !loop_send(direct, mr, offset, peer, dest_key, length,
				imm)))
		return false;
	direct_record(q, direct, user_data, peer, FABREX_OP_SEND, flags,
		      (uint32_t)length);
	return true;
}

/*
 * Executes the operation without making an entry of it, if that can be done
 * now. False: nothing was done; prepare and submit it, which tells why.
 */
bool fxi_direct_post(struct fabrex_queue *q, const struct fabrex_op *op);

/* The same, only if it goes where the last one went. */
static inline bool direct_post(struct fabrex_queue *q,
			       const struct fabrex_op *op)
{
	if (op->opcode == FABREX_OP_WRITE &&
	    direct_write(q, op->mr, op->offset, op->peer, op->rkey, op->roffset,
			 op->length, op->flags, op->user_data))
		return true;
	if (op->opcode == FABREX_OP_SEND && !op->inline_data &&
	    direct_send(q, op->peer, op->dest_key, op->mr, op->offset,
			op->length, op->flags, op->imm, op->user_data))
		return true;
	return false;
}

/* Executes what was prepared; their number. */
int fxi_direct_submit(struct fabrex_queue *q);
int fxi_direct_poll(struct fabrex_queue *q, struct fabrex_wc *wc, int n);
/* Take entries that succeeded quietly off the books. True if there were. */
bool fxi_direct_retire(struct fabrex_queue *q);
void fxi_direct_recv_done(struct fabrex_queue *q, unsigned int n);
/* A poll would take something. */
bool fxi_direct_something(struct fabrex_queue *q);
void fxi_direct_arm(struct fabrex_queue *q);

#endif
