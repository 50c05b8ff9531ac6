// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Posting: an operation becomes one 64-byte store burst into the ring. No
 * system call, lock or allocation here. Public half: fabrex_post(3).
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "core/direct.h"
#include "core/core.h"
#include "core/ring.h"

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

/*
 * An entry as eight words, in the order of struct fabrex_sqe. Each is stored
 * once, and nothing is read back: the device may be looking.
 */
enum { HEAD, USER_DATA, LKEY, LOFFSET, RKEY, ROFFSET, LENGTH, TARGET };

typedef uint64_t __attribute__((may_alias)) ring_word;

static inline void put(ring_word *to, int word, uint64_t value)
{
	to[word] = htole64(value);
}

/* The order of these three is the same in struct fabrex_op. */
static inline uint32_t head(const struct fabrex_op *op, uint8_t flags)
{
	return op->opcode | (uint32_t)(op->flags | flags) << 8 |
	       (uint32_t)op->peer << 16;
}

static inline void put_head(ring_word *to, const struct fabrex_op *op,
			    uint8_t flags, uint32_t imm)
{
	put(to, HEAD, head(op, flags) | (uint64_t)imm << 32);
	put(to, USER_DATA, op->user_data);
}

static int no_region(const struct fabrex_queue *q)
{
	return bad_op(q, "operation without a local region; set mr");
}

/* All with a local and a remote region. */
static inline int put_remote(const struct fabrex_queue *q, ring_word *to,
			     const struct fabrex_op *op, uint32_t imm,
			     uint64_t length, uint64_t last)
{
	if (unlikely(!op->mr))
		return no_region(q);
	put_head(to, op, 0, imm);
	put(to, LKEY, op->mr->key);
	put(to, LOFFSET, op->offset);
	put(to, RKEY, op->rkey);
	put(to, ROFFSET, op->roffset);
	put(to, LENGTH, length);
	put(to, TARGET, last);
	return 0;
}

/* WRITE and READ, which need no more words than these. */
static inline bool is_plain(const struct fabrex_op *op)
{
	return (op->opcode == FABREX_OP_WRITE ||
		op->opcode == FABREX_OP_READ) &&
	       !(op->flags & ~POST_FLAGS) && op->mr;
}

static inline void put_plain(ring_word *to, const struct fabrex_op *op)
{
	put_head(to, op, 0, 0);
	put(to, LKEY, op->mr->key);
	put(to, LOFFSET, op->offset);
	put(to, RKEY, op->rkey);
	put(to, ROFFSET, op->roffset);
	put(to, LENGTH, op->length);
	put(to, TARGET, 0);
}

static int put_inline(const struct fabrex_queue *q, ring_word *to,
		      const struct fabrex_op *op)
{
	uint64_t data[FABREX_INLINE_MAX / 8] = { 0 };

	if (op->length > sizeof(data))
		return bad_op(q, "inline datagram of more than 24 bytes; send it from a region");
	if (op->length)
		memcpy(data, op->inline_data, op->length);
	put_head(to, op, FABREX_SQE_INLINE, op->imm);
	/* Bytes, not numbers: the same in any byte order. */
	to[LKEY] = data[0];
	to[LOFFSET] = data[1];
	to[RKEY] = data[2];
	return 0;
}

static int put_local(const struct fabrex_queue *q, ring_word *to,
		     const struct fabrex_op *op)
{
	if (!op->mr)
		return no_region(q);
	put_head(to, op, 0, op->imm);
	put(to, LKEY, op->mr->key);
	put(to, LOFFSET, op->offset);
	put(to, RKEY, 0);
	return 0;
}

static int put_send(const struct fabrex_queue *q, ring_word *to,
		    const struct fabrex_op *op)
{
	int ret;

	if (op->inline_data || !op->length)
		ret = put_inline(q, to, op);
	else
		ret = put_local(q, to, op);
	put(to, ROFFSET, 0);
	put(to, LENGTH, op->length);
	put(to, TARGET, op->dest_key);
	return ret;
}

static int put_nop(ring_word *to, const struct fabrex_op *op)
{
	int i;

	put(to, HEAD, (uint64_t)op->flags << 8);
	put(to, USER_DATA, op->user_data);
	for (i = LKEY; i <= TARGET; i++)
		put(to, i, 0);
	return 0;
}

static int put_other(const struct fabrex_queue *q, ring_word *to,
		     const struct fabrex_op *op)
{
	switch (op->opcode) {
	case FABREX_OP_WRITE:
	case FABREX_OP_READ:
		return no_region(q);
	case FABREX_OP_WRITE_IMM:
		return put_remote(q, to, op, op->imm, op->length, op->dest_key);
	case FABREX_OP_CMP_SWAP:
		return put_remote(q, to, op, 0, op->operand, op->compare);
	case FABREX_OP_FETCH_ADD:
		return put_remote(q, to, op, 0, op->operand, 0);
	case FABREX_OP_SEND:
		return put_send(q, to, op);
	case FABREX_OP_NOP:
		return put_nop(to, op);
	}
	return bad_op(q, "unknown opcode; use FABREX_OP_*");
}

static inline int enter(const struct fabrex_queue *q, struct fabrex_sqe *slot,
			const struct fabrex_op *op)
{
	ring_word *to = (ring_word *)(void *)slot;

	if (unlikely(op->flags & ~POST_FLAGS))
		return bad_flags(q);
	if (unlikely(!is_plain(op)))
		return put_other(q, to, op);
	put_plain(to, op);
	return 0;
}

/* Room for one more entry, after a look at what has succeeded quietly. */
static int make_room(struct fabrex_queue *q)
{
	if (fxi_retire_quiet(q))
		return 0;
	return fxi_error_static(EAGAIN, "queue: as many entries are outstanding as the rings hold; call fabrex_poll() first");
}

static inline void note(struct shadow *s, const struct fabrex_op *op)
{
	s->user_data = op->user_data;
	s->who = shadow_who(op->peer, op->opcode, op->flags);
}

static inline int prep(struct fabrex_queue *q, const struct fabrex_op *op)
{
	uint32_t at = q->sq_next & q->sq_mask;
	struct shadow *shadow;
	int ret;

	if (unlikely(q->stopped))
		return fxi_queue_stopped(q);
	if (unlikely(q->sq_next - q->sq_done >= q->limit)) {
		ret = make_room(q);
		if (ret)
			return ret;
	}
	ret = enter(q, &q->sq[at], op);
	if (unlikely(ret))
		return ret;
	shadow = &q->shadow[at];
	note(shadow, op);
	q->sq_next++;
	return 0;
}

/* What the caller has of an operation, if it is not what this library has. */
static int read_op(const struct fabrex_queue *q, struct fabrex_op *to,
		   const void *from, size_t size)
{
	if (size < OP_FIRST)
		return bad_op(q, "the structure of an operation is too short; give the size of struct fabrex_op");
	memset(to, 0, sizeof(*to));
	return fxi_copy_in(q->object.port, "operation", to, sizeof(*to), from,
			   size);
}

EXPORT int fabrex_prep_sized(struct fabrex_queue *q,
			     const struct fabrex_op *op, size_t size)
{
	struct fabrex_op same;
	int ret;

	if (likely(size == sizeof(*op)))
		return prep(q, op);
	ret = read_op(q, &same, op, size);
	return ret ? ret : prep(q, &same);
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
	if (q->shared.direct)
		return fxi_direct_submit(q);
	if (unlikely(q->stopped || ring_is_dead(q->ctrl)))
		return fxi_queue_stopped(q);
	return publish(q);
}

/* Prepared where it is not plain, and so that errors have one place. */
static __attribute__((noinline)) int post_direct_entry(struct fabrex_queue *q,
						       const struct fabrex_op *op)
{
	int ret;

	if (fxi_direct_post(q, op))
		return 0;
	ret = prep(q, op);
	if (likely(!ret))
		fxi_direct_submit(q);
	return ret;
}

static inline int post_direct(struct fabrex_queue *q,
			      const struct fabrex_op *op)
{
	if (likely(direct_post(q, op)))
		return 0;
	return post_direct_entry(q, op);
}

static __attribute__((noinline)) int
post_all_direct(struct fabrex_queue *q, const struct fabrex_op *ops,
		unsigned int n)
{
	unsigned int i;
	int ret = 0;

	fxi_direct_submit(q);
	for (i = 0; i < n; i++) {
		ret = post_direct(q, &ops[i]);
		if (ret)
			break;
	}
	return i ? (int)i : ret;
}

/* Plain ones up to the end of the ring, for as many as there is room. */
static inline unsigned int prep_run(struct fabrex_queue *q,
				    const struct fabrex_op *op, unsigned int n)
{
	uint32_t at = q->sq_next & q->sq_mask, i;
	ring_word *to = (ring_word *)(void *)&q->sq[at];
	uint32_t room = q->limit - (q->sq_next - q->sq_done);
	uint32_t left = q->sq_mask + 1 - at;
	struct shadow *s = &q->shadow[at];

	room = room < left ? room : left;
	room = room < n ? room : n;
	for (i = 0; i < room && is_plain(op); i++, op++, s++, to += 8) {
		put_plain(to, op);
		note(s, op);
	}
	q->sq_next += i;
	return i;
}

static __attribute__((noinline)) int
post_all_other(struct fabrex_queue *q, const void *ops, unsigned int n,
	       size_t size)
{
	struct fabrex_op op;
	unsigned int i;
	int ret = 0;

	if (q->shared.direct)
		fxi_direct_submit(q);
	else if (q->stopped || ring_is_dead(q->ctrl))
		return fxi_queue_stopped(q);
	for (i = 0; i < n; i++) {
		ret = read_op(q, &op, (const char *)ops + i * size, size);
		if (!ret)
			ret = q->shared.direct ? post_direct_entry(q, &op) :
						 prep(q, &op);
		if (ret)
			break;
	}
	if (!q->shared.direct)
		publish(q);
	return i ? (int)i : ret;
}

EXPORT int fabrex_post_sized(struct fabrex_queue *q,
			     const struct fabrex_op *ops, unsigned int n,
			     size_t size)
{
	unsigned int i;
	int ret = 0;

	if (unlikely(size != sizeof(*ops)))
		return post_all_other(q, ops, n, size);
	if (q->shared.direct)
		return post_all_direct(q, ops, n);
	if (unlikely(q->stopped || ring_is_dead(q->ctrl)))
		return fxi_queue_stopped(q);
	for (i = prep_run(q, ops, n); i < n; i++) {
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

	if (q->shared.direct)
		return post_direct_entry(q, op);
	if (unlikely(q->stopped || ring_is_dead(q->ctrl)))
		return fxi_queue_stopped(q);
	ret = prep(q, op);
	if (likely(!ret))
		publish(q);
	return ret;
}

/* Entries have 16 bits for it. */
static int no_peer(const struct fabrex_queue *q)
{
	return bad_op(q, "peer numbers end at 65535; use one that fabrex_peer_find() or fabrex_mr_remote() has given");
}

/*
 * Of these structures only what the opcode uses is filled in: most of the cost
 * of such a call would be the rest.
 */
static inline int post_move(struct fabrex_queue *q, uint8_t opcode,
			    const struct fabrex_mr *mr, uint64_t offset,
			    const struct fabrex_remote *remote,
			    uint64_t roffset, uint64_t length, uint8_t flags,
			    uint64_t user_data)
{
	struct fabrex_op op;

	if (unlikely(remote->peer > UINT16_MAX))
		return no_peer(q);
	op.opcode = opcode;
	op.flags = flags;
	op.peer = (uint16_t)remote->peer;
	op.user_data = user_data;
	op.mr = mr;
	op.offset = offset;
	op.length = length;
	op.rkey = remote->rkey;
	op.roffset = roffset;
	return post_one(q, &op);
}

/*
 * The remote region is not as it should be, or the caller's structure not as
 * long as ours: with the arguments of who calls it, which has no more to do than
 * to jump here.
 */
static __attribute__((cold, noinline)) int
post_write_other(struct fabrex_queue *q, const struct fabrex_mr *mr,
		 uint64_t offset, const struct fabrex_remote *remote,
		 uint64_t roffset, uint64_t length, uint8_t flags,
		 uint64_t user_data, size_t size)
{
	struct fabrex_remote same;
	int ret;

	ret = fxi_remote_read(q->object.port, &same, remote, size);
	return ret ? ret : post_move(q, FABREX_OP_WRITE, mr, offset, &same,
				     roffset, length, flags, user_data);
}

EXPORT int fabrex_post_write_sized(struct fabrex_queue *q,
				   const struct fabrex_mr *mr, uint64_t offset,
				   const struct fabrex_remote *remote,
				   uint64_t roffset, uint64_t length,
				   uint8_t flags, uint64_t user_data,
				   size_t size)
{
	if (unlikely(!remote_plain(remote, size)))
		return post_write_other(q, mr, offset, remote, roffset, length,
					flags, user_data, size);
	if (q->shared.direct &&
	    likely(direct_write(q, mr, offset, remote->peer, remote->rkey,
				roffset, length, flags, user_data)))
		return 0;
	return post_move(q, FABREX_OP_WRITE, mr, offset, remote, roffset,
			 length, flags, user_data);
}

EXPORT int fabrex_post_read_sized(struct fabrex_queue *q,
				  const struct fabrex_mr *mr, uint64_t offset,
				  const struct fabrex_remote *remote,
				  uint64_t roffset, uint64_t length,
				  uint8_t flags, uint64_t user_data,
				  size_t size)
{
	struct fabrex_remote same;
	int ret;

	if (unlikely(!remote_plain(remote, size))) {
		ret = fxi_remote_read(q->object.port, &same, remote, size);
		if (ret)
			return ret;
		remote = &same;
	}
	return post_move(q, FABREX_OP_READ, mr, offset, remote, roffset,
			 length, flags, user_data);
}

EXPORT int fabrex_post_send(struct fabrex_queue *q, uint32_t peer,
			    uint64_t dest_key, const struct fabrex_mr *mr,
			    uint64_t offset, uint64_t length, uint32_t imm,
			    uint64_t user_data)
{
	struct fabrex_op op;

	if (q->shared.direct &&
	    likely(direct_send(q, peer, dest_key, mr, offset, length, 0, imm,
			       user_data)))
		return 0;
	if (unlikely(peer > UINT16_MAX))
		return no_peer(q);
	op.opcode = FABREX_OP_SEND;
	op.flags = 0;
	op.peer = (uint16_t)peer;
	op.imm = imm;
	op.user_data = user_data;
	op.mr = mr;
	op.offset = offset;
	op.length = length;
	op.dest_key = dest_key;
	op.inline_data = NULL;
	return post_one(q, &op);
}
