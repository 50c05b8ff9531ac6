// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Posting on a loopback queue: the thread that posts executes, at once or, what
 * was only prepared, when it submits. What was executed waits in the queue's
 * own records to be polled (poll.c): no lock, and no memory that others have.
 * Called through queue_ops.
 */
#include "fast.h"
#include "transport/entry.h"

static inline struct loop_record *record_of(const struct loop_queue *q,
					    uint32_t at)
{
	return &q->records[at & q->sq_mask];
}

/* The newest entry, @at, is not reported; as the oldest, it is done at once. */
static __attribute__((noinline)) void silence(struct loop_queue *q, uint32_t at)
{
	record_of(q, at)->state = LOOP_RECORD_SILENT;
	if (at == q->sq_done)
		q->sq_done++;
}

/* ---- without an entry -------------------------------------------------- */

/* There is room for one, and none is prepared that would have to go first. */
static inline bool is_ready(const struct loop_queue *q)
{
	return q->sq_tail == q->sq_next && q->sq_next - q->sq_done < q->limit;
}

/* Of an operation that was executed although there is no entry of it. */
static inline void record(struct loop_queue *q, uint64_t user_data,
			  uint32_t peer, uint8_t opcode, uint8_t flags,
			  uint32_t length)
{
	uint32_t at = q->sq_next;
	struct loop_record *r = record_of(q, at);

	q->sq_next = at + 1;
	r->user_data = user_data;
	r->peer = (uint16_t)peer;
	r->opcode = opcode;
	r->state = FABREX_WC_OK;
	r->length = length;
	q->sq_tail = at + 1;
	if (flags & FABREX_SQE_QUIET)
		silence(q, at);
	else if (unlikely(q->armed))
		fxi_loop_completed(q);
}

/* False, of all that follow: nothing was done. */
static __always_inline bool
write_fast(struct loop_queue *q, const struct fabrex_mr *mr, uint64_t offset,
	   uint32_t peer, uint64_t rkey, uint64_t roffset, uint64_t length,
	   uint8_t flags, uint64_t user_data)
{
	if (unlikely(length != 8 || flags & ~FABREX_SQE_QUIET ||
		     !is_ready(q) ||
		     !loop_write_word(q, mr, offset, peer, rkey, roffset)))
		return false;
	record(q, user_data, peer, FABREX_OP_WRITE, flags, 8);
	return true;
}

static __always_inline bool
send_fast(struct loop_queue *q, uint32_t peer, uint64_t dest_key,
	  const struct fabrex_mr *mr, uint64_t offset, uint64_t length,
	  uint8_t flags, uint32_t imm, uint64_t user_data)
{
	if (unlikely(!length || flags & ~FABREX_SQE_QUIET || !is_ready(q) ||
		     !loop_send(q, mr, offset, peer, dest_key, length, imm)))
		return false;
	record(q, user_data, peer, FABREX_OP_SEND, flags, (uint32_t)length);
	return true;
}

static __always_inline bool post_fast(struct loop_queue *q,
				      const struct fabrex_op *op)
{
	if (op->opcode == FABREX_OP_WRITE)
		return write_fast(q, op->mr, op->offset, op->peer, op->rkey,
				  op->roffset, op->length, op->flags,
				  op->user_data);
	if (op->opcode == FABREX_OP_SEND && !op->inline_data)
		return send_fast(q, op->peer, op->dest_key, op->mr, op->offset,
				 op->length, op->flags, op->imm,
				 op->user_data);
	return false;
}

static bool post_plain(struct loop_queue *q, const struct fabrex_op *op)
{
	if (!is_ready(q) || !fxi_loop_plain(q, op))
		return false;
	record(q, op->user_data, op->peer, op->opcode, op->flags,
	       (uint32_t)op->length);
	return true;
}

/* ---- by way of an entry ------------------------------------------------ */

static void execute(struct loop_queue *q)
{
	struct fabrex_sqe *sqe = &q->sq[q->sq_tail & q->sq_mask];
	struct loop_record *r = record_of(q, q->sq_tail);
	bool sum = sqe->flags & FABREX_SQE_CHECK;
	uint8_t status;
	uint32_t crc;

	status = fxi_loop_execute(q, sqe, &r->length, &crc);
	sqe->imm = crc;
	r->peer = sqe->peer;
	r->opcode = sqe->opcode;
	r->state = status | (sum ? LOOP_RECORD_CRC : 0);
	q->sq_tail++;
	if (!status && sqe->flags & FABREX_SQE_QUIET)
		silence(q, q->sq_tail - 1);
	else if (q->armed)
		fxi_loop_completed(q);
}

static int submit(struct loop_queue *q)
{
	uint32_t n = q->sq_next - q->sq_tail;

	while (q->sq_tail != q->sq_next)
		execute(q);
	return (int)n;
}

static int prep(struct loop_queue *q, const struct fabrex_op *op)
{
	int ret;

	if (unlikely(q->sq_next - q->sq_done >= q->limit) &&
	    !fxi_loop_retire(q))
		return fxi_queue_full();
	ret = fxi_entry_put(&q->queue, &q->sq[q->sq_next & q->sq_mask], op);
	if (unlikely(ret))
		return ret;
	record_of(q, q->sq_next)->user_data = op->user_data;
	q->sq_next++;
	return 0;
}

/* What is not plain, and what is wrong: errors have one place. */
static __attribute__((noinline)) int post_entry(struct loop_queue *q,
						const struct fabrex_op *op)
{
	int ret;

	if (post_plain(q, op))
		return 0;
	ret = prep(q, op);
	if (likely(!ret))
		submit(q);
	return ret;
}

/* ---- operations of the queue ------------------------------------------- */

int fxi_loop_prep(struct fabrex_queue *queue, const struct fabrex_op *op)
{
	return prep(loop_queue_of(queue), op);
}

int fxi_loop_submit(struct fabrex_queue *queue)
{
	return submit(loop_queue_of(queue));
}

int fxi_loop_post(struct fabrex_queue *queue, const struct fabrex_op *ops,
		  unsigned int n)
{
	struct loop_queue *q = loop_queue_of(queue);
	unsigned int i;
	int ret = 0;

	submit(q);
	for (i = 0; i < n; i++) {
		if (likely(post_fast(q, &ops[i])))
			continue;
		ret = post_entry(q, &ops[i]);
		if (ret)
			break;
	}
	return i ? (int)i : ret;
}

static inline int post_move(struct fabrex_queue *queue, uint8_t opcode,
			    const struct fabrex_mr *mr, uint64_t offset,
			    const struct fabrex_remote *remote,
			    uint64_t roffset, uint64_t length, uint8_t flags,
			    uint64_t user_data)
{
	struct fabrex_op op;

	if (unlikely(remote->peer > UINT16_MAX))
		return fxi_entry_no_peer(queue);
	entry_op_move(&op, opcode, mr, offset, remote, roffset, length, flags,
		      user_data);
	return post_entry(loop_queue_of(queue), &op);
}

/*
 * Apart and with the arguments of who calls it, which the compiler must not
 * change (used), so that the fast path jumps here and needs no frame.
 */
static __attribute__((noinline, used)) int
write_slow(struct fabrex_queue *queue, const struct fabrex_mr *mr,
	   uint64_t offset, const struct fabrex_remote *remote,
	   uint64_t roffset, uint64_t length, uint8_t flags, uint64_t user_data)
{
	return post_move(queue, FABREX_OP_WRITE, mr, offset, remote, roffset,
			 length, flags, user_data);
}

int fxi_loop_post_write(struct fabrex_queue *queue, const struct fabrex_mr *mr,
			uint64_t offset, const struct fabrex_remote *remote,
			uint64_t roffset, uint64_t length, uint8_t flags,
			uint64_t user_data)
{
	if (likely(write_fast(loop_queue_of(queue), mr, offset, remote->peer,
			      remote->rkey, roffset, length, flags,
			      user_data)))
		return 0;
	return write_slow(queue, mr, offset, remote, roffset, length, flags,
			  user_data);
}

int fxi_loop_post_read(struct fabrex_queue *queue, const struct fabrex_mr *mr,
		       uint64_t offset, const struct fabrex_remote *remote,
		       uint64_t roffset, uint64_t length, uint8_t flags,
		       uint64_t user_data)
{
	return post_move(queue, FABREX_OP_READ, mr, offset, remote, roffset,
			 length, flags, user_data);
}

static __attribute__((noinline, used)) int
send_slow(struct fabrex_queue *queue, uint32_t peer, uint64_t dest_key,
	  const struct fabrex_mr *mr, uint64_t offset, uint64_t length,
	  uint32_t imm, uint64_t user_data)
{
	struct fabrex_op op;

	if (unlikely(peer > UINT16_MAX))
		return fxi_entry_no_peer(queue);
	entry_op_send(&op, peer, dest_key, mr, offset, length, imm, user_data);
	return post_entry(loop_queue_of(queue), &op);
}

int fxi_loop_post_send(struct fabrex_queue *queue, uint32_t peer,
		       uint64_t dest_key, const struct fabrex_mr *mr,
		       uint64_t offset, uint64_t length, uint32_t imm,
		       uint64_t user_data)
{
	if (likely(send_fast(loop_queue_of(queue), peer, dest_key, mr, offset,
			     length, 0, imm, user_data)))
		return 0;
	return send_slow(queue, peer, dest_key, mr, offset, length, imm,
			 user_data);
}
