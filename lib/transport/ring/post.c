// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Posting into a ring: an operation becomes one burst of stores of 64 bytes. No
 * system call, lock or allocation here. Called through queue_ops.
 */
#include "transport/entry.h"
#include "transport/ring/ring.h"

static inline void note(struct ring_shadow *s, const struct fabrex_op *op)
{
	s->user_data = op->user_data;
	s->who = ring_who(op->peer, op->opcode, op->flags);
}

static inline int prep(struct ring_queue *q, const struct fabrex_op *op)
{
	uint32_t at = q->sq_next & q->sq_mask;
	int ret;

	if (unlikely(q->sq_next - q->sq_done >= q->limit) &&
	    !fxi_ring_retire(q))
		return fxi_queue_full();
	ret = fxi_entry_put(&q->queue, &q->sq[at], op);
	if (unlikely(ret))
		return ret;
	note(&q->shadow[at], op);
	q->sq_next++;
	return 0;
}

int fxi_ring_prep(struct fabrex_queue *queue, const struct fabrex_op *op)
{
	struct ring_queue *q = ring_queue_of(queue);

	if (unlikely(q->stopped))
		return fxi_ring_ended(q);
	return prep(q, op);
}

static inline int publish(struct ring_queue *q)
{
	uint32_t n = q->sq_next - q->sq_tail;

	if (!n)
		return 0;
	q->sq_tail = q->sq_next;
	ring_publish_sq(q->ctrl, q->doorbell, q->sq_tail);
	return (int)n;
}

static inline bool is_over(const struct ring_queue *q)
{
	return q->stopped || ring_is_dead(q->ctrl);
}

int fxi_ring_submit(struct fabrex_queue *queue)
{
	struct ring_queue *q = ring_queue_of(queue);

	if (unlikely(is_over(q)))
		return fxi_ring_ended(q);
	return publish(q);
}

/* Plain ones up to the end of the ring, for as many as there is room. */
static inline unsigned int prep_run(struct ring_queue *q,
				    const struct fabrex_op *op, unsigned int n)
{
	uint32_t at = q->sq_next & q->sq_mask, i;
	uint32_t room = q->limit - (q->sq_next - q->sq_done);
	uint32_t left = q->sq_mask + 1 - at;
	struct ring_shadow *s = &q->shadow[at];
	struct fabrex_sqe *entry = &q->sq[at];

	room = room < left ? room : left;
	room = room < n ? room : n;
	for (i = 0; i < room && entry_is_move(op); i++, op++, s++, entry++) {
		entry_put_move(entry, op);
		note(s, op);
	}
	q->sq_next += i;
	return i;
}

int fxi_ring_post(struct fabrex_queue *queue, const struct fabrex_op *ops,
		  unsigned int n)
{
	struct ring_queue *q = ring_queue_of(queue);
	unsigned int i;
	int ret = 0;

	if (unlikely(is_over(q)))
		return fxi_ring_ended(q);
	for (i = prep_run(q, ops, n); i < n; i++) {
		ret = prep(q, &ops[i]);
		if (ret)
			break;
	}
	publish(q);
	return i ? (int)i : ret;
}

static inline int post_one(struct fabrex_queue *queue,
			   const struct fabrex_op *op)
{
	struct ring_queue *q = ring_queue_of(queue);
	int ret;

	if (unlikely(is_over(q)))
		return fxi_ring_ended(q);
	ret = prep(q, op);
	if (likely(!ret))
		publish(q);
	return ret;
}

int fxi_ring_post_write(struct fabrex_queue *queue, const struct fabrex_mr *mr,
			uint64_t offset, const struct fabrex_remote *remote,
			uint64_t roffset, uint64_t length, uint8_t flags,
			uint64_t user_data)
{
	struct fabrex_op op;

	if (unlikely(remote->peer > UINT16_MAX))
		return fxi_entry_no_peer(queue);
	entry_op_move(&op, FABREX_OP_WRITE, mr, offset, remote, roffset, length,
		      flags, user_data);
	return post_one(queue, &op);
}

int fxi_ring_post_read(struct fabrex_queue *queue, const struct fabrex_mr *mr,
		       uint64_t offset, const struct fabrex_remote *remote,
		       uint64_t roffset, uint64_t length, uint8_t flags,
		       uint64_t user_data)
{
	struct fabrex_op op;

	if (unlikely(remote->peer > UINT16_MAX))
		return fxi_entry_no_peer(queue);
	entry_op_move(&op, FABREX_OP_READ, mr, offset, remote, roffset, length,
		      flags, user_data);
	return post_one(queue, &op);
}

int fxi_ring_post_send(struct fabrex_queue *queue, uint32_t peer,
		       uint64_t dest_key, const struct fabrex_mr *mr,
		       uint64_t offset, uint64_t length, uint32_t imm,
		       uint64_t user_data)
{
	struct fabrex_op op;

	if (unlikely(peer > UINT16_MAX))
		return fxi_entry_no_peer(queue);
	entry_op_send(&op, peer, dest_key, mr, offset, length, imm, user_data);
	return post_one(queue, &op);
}
