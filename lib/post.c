// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Posting: an operation becomes one 64-byte store burst into the ring. No
 * system call, lock or allocation here. Public half: fabrex_post(3).
 */
#include <endian.h>
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

static int bad_flags(const struct fabrex_queue *q)
{
	return bad_op(q, "unknown flags; use FABREX_SQE_FENCE, _QUIET and _CHECK");
}

/* An entry as eight words, in the order of struct fabrex_sqe. */
struct words {
	uint64_t w[8];
};

enum { HEAD, USER_DATA, LKEY, LOFFSET, RKEY, ROFFSET, LENGTH, TARGET };

static inline uint64_t head(const struct fabrex_op *op, uint8_t flags,
			    uint32_t imm)
{
	return op->opcode | (uint64_t)flags << 8 | (uint64_t)op->peer << 16 |
	       (uint64_t)imm << 32;
}

static inline uint64_t target(const struct fabrex_op *op)
{
	return op->dest_queue | (uint64_t)op->dest_key << 32;
}

static inline int fill_local(const struct fabrex_queue *q, struct words *e,
			     const struct fabrex_op *op)
{
	if (unlikely(!op->mr))
		return bad_op(q, "operation without a local region; set mr");
	e->w[LKEY] = op->mr->key;
	e->w[LOFFSET] = op->offset;
	return 0;
}

static inline int fill_remote(const struct fabrex_queue *q, struct words *e,
			      const struct fabrex_op *op)
{
	e->w[RKEY] = op->rkey;
	e->w[ROFFSET] = op->roffset;
	return fill_local(q, e, op);
}

static int fill_inline(const struct fabrex_queue *q, struct words *e,
		       const struct fabrex_op *op)
{
	uint8_t data[FABREX_INLINE_MAX] = { 0 };

	if (op->length > sizeof(data))
		return bad_op(q, "inline datagram of more than 24 bytes; send it from a region");
	if (op->length)
		memcpy(data, op->inline_data, op->length);
	/* Bytes, not a number: the same in any byte order. */
	memcpy(&e->w[LKEY], data, sizeof(data));
	e->w[LKEY] = le64toh(e->w[LKEY]);
	e->w[LOFFSET] = le64toh(e->w[LOFFSET]);
	e->w[RKEY] = le64toh(e->w[RKEY]);
	e->w[HEAD] = head(op, op->flags | FABREX_SQE_INLINE, op->imm);
	return 0;
}

static int fill_send(const struct fabrex_queue *q, struct words *e,
		     const struct fabrex_op *op)
{
	e->w[LENGTH] = op->length;
	e->w[TARGET] = target(op);
	if (op->inline_data || !op->length)
		return fill_inline(q, e, op);
	e->w[HEAD] = head(op, op->flags, op->imm);
	return fill_local(q, e, op);
}

static inline int fill(const struct fabrex_queue *q, struct words *e,
		       const struct fabrex_op *op)
{
	if (unlikely(op->flags & ~POST_FLAGS))
		return bad_flags(q);
	*e = (struct words){ { head(op, op->flags, 0), op->user_data } };
	switch (op->opcode) {
	case FABREX_OP_WRITE_IMM:
		e->w[HEAD] = head(op, op->flags, op->imm);
		e->w[TARGET] = target(op);
		/* fallthrough */
	case FABREX_OP_WRITE:
	case FABREX_OP_READ:
		e->w[LENGTH] = op->length;
		return fill_remote(q, e, op);
	case FABREX_OP_CMP_SWAP:
		e->w[TARGET] = op->compare;
		/* fallthrough */
	case FABREX_OP_FETCH_ADD:
		e->w[LENGTH] = op->operand;
		return fill_remote(q, e, op);
	case FABREX_OP_NOP:
		e->w[HEAD] = (uint64_t)op->flags << 8;
		return 0;
	}
	return bad_op(q, "unknown opcode; use FABREX_OP_*");
}

typedef uint64_t __attribute__((may_alias)) ring_word;

/* The entry's only stores. */
static inline void store(struct fabrex_sqe *slot, const struct words *e)
{
	ring_word *to = (ring_word *)(void *)slot;
	int i;

	for (i = 0; i < 8; i++)
		to[i] = htole64(e->w[i]);
}

static int enter_send(const struct fabrex_queue *q, struct fabrex_sqe *slot,
		      const struct fabrex_op *op)
{
	struct words e = { { 0, op->user_data } };
	int ret;

	if (op->flags & ~POST_FLAGS)
		return bad_flags(q);
	ret = fill_send(q, &e, op);
	if (!ret)
		store(slot, &e);
	return ret;
}

/* Apart from sends, so that the words of the others stay in registers. */
static inline int enter(const struct fabrex_queue *q, struct fabrex_sqe *slot,
			const struct fabrex_op *op)
{
	struct words e;
	int ret;

	if (op->opcode == FABREX_OP_SEND)
		return enter_send(q, slot, op);
	ret = fill(q, &e, op);
	if (likely(!ret))
		store(slot, &e);
	return ret;
}

/* Room for one more entry, after a look at what has succeeded quietly. */
static inline int has_room(struct fabrex_queue *q)
{
	if (likely(q->sq_next - q->sq_done < q->limit))
		return 0;
	if (fxi_retire_quiet(q))
		return 0;
	return fxi_error_static(EAGAIN, "queue: as many entries are outstanding as the rings hold; call fabrex_poll() first");
}

static inline int prep(struct fabrex_queue *q, const struct fabrex_op *op)
{
	struct shadow *shadow;
	int ret;

	if (unlikely(q->stopped))
		return fxi_queue_stopped(q);
	ret = has_room(q);
	if (ret)
		return ret;
	ret = enter(q, &q->sq[q->sq_next & q->sq_mask], op);
	if (unlikely(ret))
		return ret;
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
