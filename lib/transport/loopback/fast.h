/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The fast path: writes of a word and messages to where the last one went, from
 * host memory. Every check is made; whatever is different, or wrong, is left to
 * fast.c and engine.c. For post.c, fast.c and send.c.
 */
#ifndef LIB_LOOPBACK_FAST_H
#define LIB_LOOPBACK_FAST_H

#include "engine.h"

/* A peer is remembered by its number + 1, so that 0 means none. */
static inline uint64_t loop_known_as(uint32_t number)
{
	return (uint64_t)number + 1;
}

/* Checked before anything else of a peer is read. */
static inline bool loop_up(const struct loop_peer *peer)
{
	if (unlikely(!__atomic_load_n(&peer->up, __ATOMIC_ACQUIRE)))
		return false;
	if (unlikely(peer->fence))
		barrier_full();
	return true;
}

static inline bool loop_reachable(const struct loop_peer *peer,
				  const struct segment *segment)
{
	return loop_up(peer) && peer->segment == segment;
}

static inline bool loop_has_key(const uint64_t *entry, uint64_t key)
{
	return __atomic_load_n(entry, __ATOMIC_ACQUIRE) == key;
}

/* Local memory of an operation, if the region is the same as last time. */
static inline char *loop_local(const struct loop_queue *q,
			       const struct fabrex_mr *mr, uint64_t offset,
			       uint64_t length)
{
	const struct loop_last_local *l = &q->local;

	if (unlikely(mr != l->mr || !mr || !loop_has_key(l->entry, l->key) ||
		     !loop_inside(offset, length, l->length)))
		return NULL;
	return l->base + offset;
}

static inline void loop_count(struct loop_queue *q, uint64_t *bytes,
			      uint64_t length)
{
	q->stats.tx_ops++;
	*bytes += length;
}

/*
 * A word of 8 bytes: the case in which latency counts. If a remote region is
 * remembered (its number is not 0), so is a local one. True: done. False:
 * nothing was done.
 */
static __always_inline bool
loop_write_word(struct loop_queue *q, const struct fabrex_mr *mr,
		uint64_t offset, uint32_t number, uint64_t rkey,
		uint64_t roffset)
{
	const struct loop_last_region *r = &q->region;
	const struct loop_last_local *l = &q->local;

	if (unlikely(rkey != r->rkey || loop_known_as(number) != r->number))
		return false;
	fxi_path_fetch(r->base + roffset);
	if (unlikely(mr != l->mr || offset > l->last_word ||
		     roffset > r->last_word || (offset | roffset) & 7))
		return false;
	loop_enter(q);
	if (unlikely(!loop_reachable(r->peer, r->segment) ||
		     !loop_has_key(r->entry, rkey) ||
		     !loop_has_key(l->entry, l->key))) {
		loop_leave(q);
		return false;
	}
	/* After earlier entries; on x86 for the compiler only. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	loop_move_word(r->base + roffset, l->base + offset);
	loop_leave(q);
	loop_count(q, &q->stats.tx_bytes, 8);
	return true;
}

/* ---- messages ---------------------------------------------------------- */

/* Its key: number and random part are adjacent, so one load reads both. */
static inline bool loop_is_target(const struct segment_queue *queue,
				  uint64_t target)
{
	typedef uint64_t __attribute__((may_alias)) both;

	return __atomic_load_n((const both *)&queue->number,
			       __ATOMIC_ACQUIRE) == target;
}

static inline bool loop_lock(struct segment_queue *queue, uint64_t old,
			     uint64_t new)
{
	return __atomic_compare_exchange_n(&queue->lock, &old, new, false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline void loop_unlock(struct segment_queue *queue)
{
	__atomic_store_n(&queue->lock, 0, __ATOMIC_RELEASE);
}

/* Under the lock. The receiver's cache line is read only if necessary. */
static inline bool loop_has_cell(struct segment_queue *queue, uint32_t entries)
{
	if (likely(queue->rq_tail - queue->rq_seen < entries))
		return true;
	queue->rq_seen = __atomic_load_n(&queue->rq_head, __ATOMIC_ACQUIRE);
	return queue->rq_tail - queue->rq_seen < entries;
}

/* length to status have the same order as in a completion. */
static inline void loop_fill(const struct loop_queue *q,
			     const struct loop_ring *ring,
			     const struct loop_datagram *d)
{
	struct segment_cell *cell = ring->cell;

	if (likely(d->length <= SEGMENT_SMALL && d->data))
		fxi_path_copy_few(cell->small, d->data, d->length);
	else if (d->data)
		memcpy(ring->payload, d->data, d->length);
	cell->length = (uint32_t)d->length;
	cell->imm = d->imm;
	cell->crc = d->crc;
	cell->src_queue = q->queue.number;
	cell->peer = (uint16_t)q->transport->number;
	cell->opcode = d->opcode;
	cell->status = FABREX_WC_OK;
	__atomic_store_n(&cell->seq, (uint64_t)(ring->tail + 1),
			 __ATOMIC_RELEASE);
}

void fxi_loop_ring_wake(struct loop_queue *q, uint32_t number,
			struct segment_queue *queue);

/* The cell is filled: release the lock and wake the receiver. */
static inline void loop_ring_done(struct loop_queue *q,
				  const struct loop_ring *ring)
{
	struct segment_queue *queue = ring->queue;

	__atomic_store_n(&queue->rq_tail, ring->tail + 1, __ATOMIC_RELAXED);
	loop_unlock(queue);
	q->ring.sent++;
	if (unlikely(q->ring.peer->fence))
		barrier_full();
	__asm__ volatile("" ::: "memory");
	if (unlikely(__atomic_load_n(&queue->armed, __ATOMIC_RELAXED)))
		fxi_loop_ring_wake(q, (uint32_t)(q->ring.number - 1), queue);
}

/* Under the lock. False: none is free. */
static inline bool loop_ring_cell(struct loop_queue *q, struct loop_ring *ring)
{
	struct loop_last_ring *r = &q->ring;
	uint32_t slot;

	if (unlikely(!loop_has_cell(r->queue, r->entries)))
		return false;
	ring->queue = r->queue;
	ring->tail = r->queue->rq_tail;
	slot = ring->tail & (r->entries - 1);
	ring->cell = &r->cells[slot];
	ring->payload = r->payload + (size_t)slot * r->cell_size;
	r->cell = &r->cells[(slot + 1) & (r->entries - 1)];
	return true;
}

/* Only the queue of last time, unlocked; else see fxi_loop_ring_open(). */
static inline bool loop_ring_open(struct loop_queue *q, uint64_t target,
				  uint64_t length, struct loop_ring *ring)
{
	const struct loop_last_ring *r = &q->ring;

	if (unlikely(target != r->target || !loop_is_target(r->queue, target) ||
		     length > r->cell_size ||
		     !loop_lock(r->queue, 0, q->lock_word)))
		return false;
	if (likely(loop_ring_cell(q, ring)))
		return true;
	loop_unlock(r->queue);
	return false;
}

/* True: done. False: nothing was done. */
static __always_inline bool
loop_send(struct loop_queue *q, const struct fabrex_mr *mr, uint64_t offset,
	  uint32_t number, uint64_t target, uint64_t length, uint32_t imm)
{
	struct loop_datagram datagram = {
		.opcode = FABREX_OP_RECV, .length = length, .imm = imm,
	};
	struct loop_ring ring;

	fxi_path_fetch(q->ring.cell);
	loop_enter(q);
	if (unlikely(loop_known_as(number) != q->ring.number ||
		     !loop_reachable(q->ring.peer, q->ring.segment)))
		goto no;
	datagram.data = loop_local(q, mr, offset, length);
	if (unlikely(!datagram.data ||
		     !loop_ring_open(q, target, length, &ring)))
		goto no;
	loop_fill(q, &ring, &datagram);
	loop_ring_done(q, &ring);
	loop_leave(q);
	loop_count(q, &q->stats.tx_bytes, length);
	return true;
no:
	loop_leave(q);
	return false;
}

#endif
