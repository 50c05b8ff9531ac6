// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Posting: an operation becomes one 64-byte store burst into the ring. No
 * system call, lock or allocation here. Public half: fabrex_post(3).
 */
#include <errno.h>
#include <string.h>

#include "internal.h"
#include "ring.h"

#define POST_FLAGS	(FABREX_SQE_FENCE | FABREX_SQE_QUIET | FABREX_SQE_CHECK)

static int bad_op(const struct fabrex_queue *q, const char *why)
{
	return fxi_error(EINVAL, "port %s: queue %u: %s",
			 q->object.port->attr.name, q->shared.number, why);
}

static int fill_local(const struct fabrex_queue *q, struct fabrex_sqe *sqe,
		      const struct fabrex_op *op)
{
	if (unlikely(!op->mr))
		return bad_op(q, "operation without a local region; set mr");
	sqe->lkey = htole64(op->mr->key);
	sqe->loffset = htole64(op->offset);
	return 0;
}

static int fill_rdma(const struct fabrex_queue *q, struct fabrex_sqe *sqe,
		     const struct fabrex_op *op)
{
	sqe->rkey = htole64(op->rkey);
	sqe->roffset = htole64(op->roffset);
	sqe->length = htole64(op->length);
	return fill_local(q, sqe, op);
}

static void fill_target(struct fabrex_sqe *sqe, const struct fabrex_op *op)
{
	sqe->imm = htole32(op->imm);
	sqe->dest_queue = htole32(op->dest_queue);
	sqe->dest_qkey = htole32(op->dest_key);
}

static int fill_atomic(const struct fabrex_queue *q, struct fabrex_sqe *sqe,
		       const struct fabrex_op *op)
{
	sqe->rkey = htole64(op->rkey);
	sqe->roffset = htole64(op->roffset);
	sqe->operand = htole64(op->operand);
	if (op->opcode == FABREX_OP_CMP_SWAP)
		sqe->compare = htole64(op->compare);
	return fill_local(q, sqe, op);
}

static int fill_send(const struct fabrex_queue *q, struct fabrex_sqe *sqe,
		     const struct fabrex_op *op)
{
	fill_target(sqe, op);
	sqe->length = htole64(op->length);
	if (!op->inline_data && op->length)
		return fill_local(q, sqe, op);
	if (unlikely(op->length > FABREX_INLINE_MAX))
		return bad_op(q, "inline datagram of more than 24 bytes; send it from a region");
	sqe->flags |= FABREX_SQE_INLINE;
	if (op->length)
		memcpy(sqe->inline_data, op->inline_data, op->length);
	return 0;
}

static int fill(const struct fabrex_queue *q, struct fabrex_sqe *sqe,
		const struct fabrex_op *op)
{
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = op->opcode;
	sqe->flags = op->flags;
	sqe->peer = htole16(op->peer);
	sqe->user_data = htole64(op->user_data);
	if (unlikely(op->flags & ~POST_FLAGS))
		return bad_op(q, "unknown flags; use FABREX_SQE_FENCE, _QUIET and _CHECK");
	switch (op->opcode) {
	case FABREX_OP_WRITE_IMM:
		fill_target(sqe, op);
		return fill_rdma(q, sqe, op);
	case FABREX_OP_WRITE:
	case FABREX_OP_READ:
		return fill_rdma(q, sqe, op);
	case FABREX_OP_SEND:
		return fill_send(q, sqe, op);
	case FABREX_OP_FETCH_ADD:
	case FABREX_OP_CMP_SWAP:
		return fill_atomic(q, sqe, op);
	case FABREX_OP_NOP:
		sqe->peer = 0;
		return 0;
	}
	return bad_op(q, "unknown opcode; use FABREX_OP_*");
}

/* Room for one more entry, after a look at what has succeeded quietly. */
static int has_room(struct fabrex_queue *q)
{
	if (likely(q->sq_next - q->sq_done < q->limit))
		return 0;
	if (fxi_retire_quiet(q))
		return 0;
	return fxi_error_static(EAGAIN, "queue: as many entries are outstanding as the rings hold; call fabrex_poll() first");
}

static inline int prep(struct fabrex_queue *q, const struct fabrex_op *op)
{
	struct fabrex_sqe sqe;
	struct shadow *shadow;
	int ret;

	if (unlikely(q->stopped))
		return fxi_queue_stopped(q);
	ret = has_room(q);
	if (ret)
		return ret;
	ret = fill(q, &sqe, op);
	if (unlikely(ret))
		return ret;
	q->sq[q->sq_next & q->sq_mask] = sqe;
	shadow = &q->shadow[q->sq_next & q->sq_mask];
	shadow->user_data = op->user_data;
	shadow->peer = op->peer;
	shadow->opcode = op->opcode;
	shadow->flags = op->flags;
	q->sq_next++;
	return 0;
}

EXPORT int fabrex_prep(struct fabrex_queue *q, const struct fabrex_op *op)
{
	return prep(q, op);
}

static inline int publish(struct fabrex_queue *q)
{
	uint32_t n = q->sq_next - q->sq_tail;

	if (!n)
		return 0;
	q->sq_tail = q->sq_next;
	ring_publish_sq(q->ctrl, q->doorbell, q->sq_tail);
	return (int)n;
}

EXPORT int fabrex_submit(struct fabrex_queue *q)
{
	if (unlikely(q->stopped || ring_is_dead(q->ctrl)))
		return fxi_queue_stopped(q);
	return publish(q);
}

EXPORT int fabrex_post(struct fabrex_queue *q, const struct fabrex_op *ops,
		       unsigned int n)
{
	unsigned int i;
	int ret = 0;

	if (unlikely(q->stopped || ring_is_dead(q->ctrl)))
		return fxi_queue_stopped(q);
	for (i = 0; i < n; i++) {
		ret = prep(q, &ops[i]);
		if (ret)
			break;
	}
	publish(q);
	return i ? (int)i : ret;
}

static int post_one(struct fabrex_queue *q, const struct fabrex_op *op)
{
	int ret;

	if (unlikely(q->stopped || ring_is_dead(q->ctrl)))
		return fxi_queue_stopped(q);
	ret = prep(q, op);
	if (likely(!ret))
		publish(q);
	return ret;
}

EXPORT int fabrex_post_write(struct fabrex_queue *q,
			     const struct fabrex_mr *mr, uint64_t offset,
			     const struct fabrex_remote *remote,
			     uint64_t roffset, uint64_t length, uint8_t flags,
			     uint64_t user_data)
{
	const struct fabrex_op op = {
		.opcode = FABREX_OP_WRITE, .flags = flags,
		.peer = (uint16_t)remote->peer, .user_data = user_data,
		.mr = mr, .offset = offset, .length = length,
		.rkey = remote->rkey, .roffset = roffset,
	};

	return post_one(q, &op);
}

EXPORT int fabrex_post_read(struct fabrex_queue *q,
			    const struct fabrex_mr *mr, uint64_t offset,
			    const struct fabrex_remote *remote,
			    uint64_t roffset, uint64_t length, uint8_t flags,
			    uint64_t user_data)
{
	const struct fabrex_op op = {
		.opcode = FABREX_OP_READ, .flags = flags,
		.peer = (uint16_t)remote->peer, .user_data = user_data,
		.mr = mr, .offset = offset, .length = length,
		.rkey = remote->rkey, .roffset = roffset,
	};

	return post_one(q, &op);
}

EXPORT int fabrex_post_send(struct fabrex_queue *q, uint32_t peer,
			    uint32_t dest_queue, uint32_t dest_key,
			    const struct fabrex_mr *mr, uint64_t offset,
			    uint64_t length, uint32_t imm, uint64_t user_data)
{
	const struct fabrex_op op = {
		.opcode = FABREX_OP_SEND, .peer = (uint16_t)peer,
		.imm = imm, .user_data = user_data, .mr = mr,
		.offset = offset, .length = length,
		.dest_queue = dest_queue, .dest_key = dest_key,
	};

	return post_one(q, &op);
}
