// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Plain operations between host memory and mapped segments. What they find out
 * about their target is remembered for the fast path (fast.h). Whatever is not
 * plain, or wrong, is left to engine.c. Called by post.c.
 */
#include "fast.h"

static const struct loop_peer *peer_of(const struct transport *t,
				       uint32_t number)
{
	if (number >= SEGMENT_PEERS || !loop_up(&t->peers[number]))
		return NULL;
	return &t->peers[number];
}

/* Where a region of a peer is, after all checks. */
struct found {
	const struct loop_peer *peer;
	const struct segment_mr *mr;
	char *base;
	uint64_t length;
};

static char *remote_of(const struct loop_queue *q, const struct fabrex_op *op,
		       uint32_t right, struct found *f)
{
	const struct transport *t = q->transport;
	const struct segment_mr *mr;
	uint64_t place;

	f->peer = peer_of(t, op->peer);
	mr = f->peer ? loop_key(f->peer->segment, op->rkey) : NULL;
	if (!mr || mr->kind != SEGMENT_MR_HEAP ||
	    !(mr->peers[t->number / 64] >> t->number % 64 & 1))
		return NULL;
	place = __atomic_load_n(&mr->place, __ATOMIC_RELAXED);
	f->length = __atomic_load_n(&mr->length, __ATOMIC_RELAXED);
	if (!loop_inside(place, f->length, f->peer->size) ||
	    !(mr->access & right) ||
	    !loop_inside(op->roffset, op->length, f->length))
		return NULL;
	f->mr = mr;
	f->base = (char *)f->peer->segment + place;
	return f->base + op->roffset;
}

static char *local_of(const struct loop_queue *q, const struct fabrex_op *op,
		      bool written)
{
	const struct fabrex_mr *mr = op->mr;

	if (!mr || mr->kind != FABREX_MEMORY_HOST ||
	    mr->object.port->transport != q->transport ||
	    !loop_key(q->transport->segment, mr->key) ||
	    !loop_inside(op->offset, op->length, mr->length) ||
	    (written && !(mr->access & FABREX_MR_LOCAL_WRITE)))
		return NULL;
	return (char *)mr->addr + op->offset;
}

/* ---- for the next time ------------------------------------------------- */

/* Words are expected at multiples of 8 from the base. */
static bool has_words(const void *base, uint64_t length)
{
	return length >= 8 && !((uintptr_t)base & 7);
}

static void remember_local(struct loop_queue *q, const struct fabrex_mr *mr)
{
	struct segment_mr *mrs = q->transport->segment->mrs;
	struct loop_last_local *l = &q->local;

	l->mr = mr;
	l->key = mr->key;
	l->entry = &mrs[mr->key & (SEGMENT_MRS - 1)].key;
	l->base = mr->addr;
	l->length = mr->length;
	l->last_word = mr->length - 8;
	if (!has_words(mr->addr, mr->length))
		q->region.number = 0;
}

static void remember_region(struct loop_queue *q, const struct fabrex_op *op,
			    const struct found *f)
{
	struct loop_last_region *r = &q->region;

	r->number = has_words(f->base, f->length) ?
		    loop_known_as(op->peer) : 0;
	r->rkey = op->rkey;
	r->base = f->base;
	r->last_word = f->length - 8;
	r->peer = f->peer;
	r->segment = f->peer->segment;
	r->entry = &f->mr->key;
}

/* ---- operations -------------------------------------------------------- */

static bool plain_write(struct loop_queue *q, const struct fabrex_op *op)
{
	struct found f;
	char *to = remote_of(q, op, FABREX_MR_REMOTE_WRITE, &f);
	const char *from = local_of(q, op, false);

	if (!to || !from)
		return false;
	__atomic_thread_fence(__ATOMIC_RELEASE);
	loop_copy(q, to, from, op->length);
	remember_region(q, op, &f);
	remember_local(q, op->mr);
	return true;
}

static bool plain_read(struct loop_queue *q, const struct fabrex_op *op)
{
	struct found f;
	const char *from = remote_of(q, op, FABREX_MR_REMOTE_READ, &f);
	char *to = local_of(q, op, true);

	if (!to || !from)
		return false;
	loop_copy(q, to, from, op->length);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return true;
}

static bool plain_send(struct loop_queue *q, const struct fabrex_op *op)
{
	const struct loop_datagram datagram = {
		.opcode = FABREX_OP_RECV, .length = op->length, .imm = op->imm,
		.data = op->inline_data ? op->inline_data :
					  local_of(q, op, false),
	};
	struct loop_ring ring;

	if (!datagram.data ||
	    (op->inline_data && op->length > FABREX_INLINE_MAX) ||
	    !peer_of(q->transport, op->peer) ||
	    fxi_loop_ring_open(q, op->peer, op->dest_key, op->length,
			       &ring))
		return false;
	if (!op->inline_data)
		remember_local(q, op->mr);
	fxi_loop_ring_fill(q, &ring, &datagram);
	return true;
}

bool fxi_loop_plain(struct loop_queue *q, const struct fabrex_op *op)
{
	bool done = false, read = op->opcode == FABREX_OP_READ;

	/* Length 0 is rare. */
	if (op->flags & ~FABREX_SQE_QUIET || !op->length ||
	    op->length > LOOP_MAX_TRANSFER)
		return false;
	loop_enter(q);
	if (op->opcode == FABREX_OP_WRITE)
		done = plain_write(q, op);
	else if (read)
		done = plain_read(q, op);
	else if (op->opcode == FABREX_OP_SEND)
		done = plain_send(q, op);
	loop_leave(q);
	if (done)
		loop_count(q, read ? &q->stats.rx_bytes : &q->stats.tx_bytes,
			   op->length);
	return done;
}
