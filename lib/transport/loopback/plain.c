// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What is executed most, straight from the caller's structure: writes, reads
 * and messages between memory that this process has mapped. Whatever is not
 * plain, or not right, is left to engine.c. Called by post.c.
 */
#include "engine.h"

static inline const struct loop_peer *peer_of(const struct transport *t,
					      uint32_t number)
{
	const struct loop_peer *peer = &t->peers[number];

	if (unlikely(number >= SEGMENT_PEERS ||
		     !__atomic_load_n(&peer->up, __ATOMIC_ACQUIRE) ||
		     peer->fence))
		return NULL;
	return peer;
}

static inline bool may(const struct segment_mr *mr, uint32_t right,
		       uint32_t number)
{
	return mr->access & right &&
	       mr->peers[number / 64] >> number % 64 & 1;
}

static inline char *remote_of(struct loop_queue *q, const struct fabrex_op *op,
			      uint32_t right)
{
	const struct transport *t = q->transport;
	const struct loop_peer *peer = peer_of(t, op->peer);
	const struct segment_mr *mr;
	uint64_t place, length;
	char *base;

	if (unlikely(!peer))
		return NULL;
	mr = loop_key(peer->segment, op->rkey);
	if (unlikely(!mr))
		return NULL;
	place = __atomic_load_n(&mr->place, __ATOMIC_RELAXED);
	length = __atomic_load_n(&mr->length, __ATOMIC_RELAXED);
	base = (char *)peer->segment + place;
	if (unlikely(mr->kind != SEGMENT_MR_HEAP || !may(mr, right, t->number) ||
		     !loop_inside(place, length, peer->size) ||
		     !loop_inside(op->roffset, op->length, length)))
		return NULL;
	q->last.rkey = op->rkey;
	q->last.base = base;
	return base + op->roffset;
}

static inline char *local_of(const struct loop_queue *q,
			     const struct fabrex_op *op, uint32_t right)
{
	const struct fabrex_mr *mr = op->mr;

	if (unlikely(!mr || mr->kind != FABREX_MEMORY_HOST ||
		     mr->object.port->transport != q->transport ||
		     (mr->access & right) != right ||
		     !loop_inside(op->offset, op->length, mr->length)))
		return NULL;
	return (char *)mr->addr + op->offset;
}

static inline bool plain_write(struct loop_queue *q, const struct fabrex_op *op)
{
	char *to = remote_of(q, op, FABREX_MR_REMOTE_WRITE);
	const char *from = local_of(q, op, 0);

	if (unlikely(!to || !from))
		return false;
	/* After earlier entries; on x86 for the compiler only. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	loop_copy(to, from, op->length);
	return true;
}

static inline bool plain_read(struct loop_queue *q, const struct fabrex_op *op)
{
	const char *from = remote_of(q, op, FABREX_MR_REMOTE_READ);
	char *to = local_of(q, op, FABREX_MR_LOCAL_WRITE);

	if (unlikely(!to || !from))
		return false;
	loop_copy(to, from, op->length);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return true;
}

static inline bool plain_send(struct loop_queue *q, const struct fabrex_op *op)
{
	const struct loop_datagram datagram = {
		.opcode = FABREX_OP_RECV, .length = op->length, .imm = op->imm,
		.data = op->inline_data ? op->inline_data : local_of(q, op, 0),
	};
	const struct loop_peer *peer = peer_of(q->transport, op->peer);
	struct loop_ring ring;

	if (unlikely(!peer || !datagram.data ||
		     (op->inline_data && op->length > FABREX_INLINE_MAX)))
		return false;
	if (unlikely(fxi_loop_ring_open(q, peer, loop_target(op->dest_queue,
							     op->dest_key),
					op->length, &ring)))
		return false;
	fxi_loop_ring_fill(q, &ring, &datagram);
	return true;
}

bool fxi_loop_plain(struct loop_queue *q, const struct fabrex_op *op)
{
	uint64_t *bytes = &q->stats.tx_bytes;
	bool done = false;

	/* Length 0 is neither more nor less than rare. */
	if (unlikely(op->flags & ~FABREX_SQE_QUIET ||
		     op->length - 1 >= LOOP_MAX_TRANSFER))
		return false;
	loop_enter(q);
	if (likely(op->opcode == FABREX_OP_WRITE)) {
		done = plain_write(q, op);
	} else if (op->opcode == FABREX_OP_SEND) {
		done = plain_send(q, op);
	} else if (op->opcode == FABREX_OP_READ) {
		done = plain_read(q, op);
		bytes = &q->stats.rx_bytes;
	}
	loop_leave(q);
	if (unlikely(!done))
		return false;
	q->stats.tx_ops++;
	q->stats.host_bytes += op->length;
	*bytes += op->length;
	return true;
}
