// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Sending messages: a receive ring has many senders and one receiver
 * (docs/loopback.md, "Messages"). Called by fast.c and engine.c; what concerns
 * senders that have died, by the service thread. The receiver is in poll.c.
 *
 * Order. A cell belongs to the sender that holds the lock until its seq is
 * stored (release) and found (acquire) by the receiver; then it is the
 * receiver's until rq_head is stored (release) and found (acquire) by a sender,
 * who holds the lock, as rq_seen is. The lock is taken with acquire and given
 * back with release, so each holder sees rq_tail and rq_seen of the one before.
 * Sleeping: the receiver stores armed, full barrier, reads seq; a sender stores
 * seq, full barrier, reads armed: one of them sees the other. Where the
 * receiver's barrier is membarrier(), the sender's is one for the compiler.
 */
#include <sched.h>
#include <string.h>

#include "base/barrier.h"
#include "fast.h"
#include "state.h"

#define SPINS	100u	/* checks of the lock between yields */

/* ---- the lock ---------------------------------------------------------- */

static inline uint64_t holder_word(uint32_t number, uint32_t generation)
{
	return (uint64_t)generation << 32 | (number + 1);
}

static inline uint64_t own_word(const struct transport *t)
{
	return holder_word(t->number, t->peers[t->number].generation);
}

/* Known to have existed and ended; a peer that is still joining is not. */
static bool is_dead(const struct transport *t, uint64_t holder)
{
	uint32_t number = (uint32_t)holder - 1;

	return number < SEGMENT_PEERS &&
	       __atomic_load_n(&t->peers[number].died, __ATOMIC_ACQUIRE) ==
		       (uint32_t)(holder >> 32);
}

/*
 * The previous holder may have died after it stored seq and before it counted
 * rq_tail up: then its message counts.
 */
static void repair(struct segment_queue *queue,
		   const struct segment_cell *cells, uint32_t mask)
{
	uint32_t tail = queue->rq_tail;

	if ((uint32_t)cells[tail & mask].seq == tail + 1)
		__atomic_store_n(&queue->rq_tail, tail + 1, __ATOMIC_RELAXED);
}

/* A stopped holder must not block the others without limit. */
static bool too_long(const struct transport *t, uint64_t *since)
{
	uint64_t now = fxi_now_ns();

	if (!*since)
		*since = now;
	return now - *since > t->state->settings.quiesce_ms * 500000ull;
}

static uint8_t lock_slowly(const struct transport *t,
			   const struct loop_last_ring *ring)
{
	struct segment_queue *queue = ring->queue;
	unsigned int spins = 0;
	uint64_t holder, since = 0;

	for (;;) {
		holder = __atomic_load_n(&queue->lock, __ATOMIC_RELAXED);
		if (!holder && loop_lock(queue, 0, own_word(t)))
			return FABREX_WC_OK;
		if (holder && is_dead(t, holder) &&
		    loop_lock(queue, holder, own_word(t))) {
			repair(queue, ring->cells, ring->entries - 1);
			return FABREX_WC_OK;
		}
		if (!loop_is_target(queue, ring->target))
			return FABREX_WC_BAD_QUEUE;
		if (!__atomic_load_n(&ring->peer->up, __ATOMIC_RELAXED))
			return FABREX_WC_UNREACHABLE;
		if (++spins % SPINS) {
			cpu_relax();
			continue;
		}
		if (too_long(t, &since))
			return FABREX_WC_RNR;
		sched_yield();
	}
}

/* ---- sending ----------------------------------------------------------- */

static bool entries_valid(uint32_t entries, uint32_t cell_size)
{
	return entries && !(entries & (entries - 1)) &&
	       entries <= FABREX_RQ_MAX && cell_size <= FABREX_CELL_MAX;
}

/* The owner's description of its queue, read once and checked. */
static bool describe(const struct loop_peer *peer, struct segment_queue *queue,
		     struct loop_last_ring *r)
{
	uint32_t entries = __atomic_load_n(&queue->rq_entries,
					   __ATOMIC_RELAXED);
	uint32_t size = __atomic_load_n(&queue->cell_size, __ATOMIC_RELAXED);
	uint64_t cells = __atomic_load_n(&queue->cells, __ATOMIC_RELAXED);
	uint64_t payload = __atomic_load_n(&queue->payload, __ATOMIC_RELAXED);

	if (!entries_valid(entries, size) ||
	    cells % sizeof(struct segment_cell) ||
	    !loop_inside(cells, entries * sizeof(struct segment_cell),
			 peer->size) ||
	    !loop_inside(payload, (uint64_t)entries * size, peer->size))
		return false;
	r->queue = queue;
	r->entries = entries;
	r->cell_size = size;
	r->cells = (struct segment_cell *)((char *)peer->segment + cells);
	r->payload = (char *)peer->segment + payload;
	return true;
}

static bool find_queue(struct loop_queue *q, uint32_t peer, uint64_t target)
{
	const struct loop_peer *p = &q->transport->peers[peer];
	struct loop_last_ring *r = &q->ring;
	struct segment_queue *queue;
	uint32_t number;

	memcpy(&number, &target, sizeof(number));
	r->number = 0;
	if (number - 1 >= SEGMENT_QUEUES)
		return false;
	queue = &p->segment->queues[number - 1];
	if (!loop_is_target(queue, target) || !describe(p, queue, r))
		return false;
	r->target = target;
	r->number = loop_known_as(peer);
	r->peer = p;
	r->segment = p->segment;
	q->lock_word = own_word(q->transport);
	return true;
}

uint8_t fxi_loop_ring_open(struct loop_queue *q, uint32_t number,
			   uint64_t target, uint64_t length,
			   struct loop_ring *ring)
{
	uint8_t status;

	if (!find_queue(q, number, target))
		return FABREX_WC_BAD_QUEUE;
	if (length > q->ring.cell_size)
		return FABREX_WC_TOO_LONG;
	status = lock_slowly(q->transport, &q->ring);
	if (status)
		return status;
	if (loop_ring_cell(q, ring))
		return FABREX_WC_OK;
	loop_unlock(q->ring.queue);
	return FABREX_WC_RNR;
}

/* The one that clears armed wakes the owner, so it is woken once. */
void fxi_loop_ring_wake(struct loop_queue *q, uint32_t number,
			struct segment_queue *queue)
{
	if (__atomic_exchange_n(&queue->armed, 0, __ATOMIC_RELAXED))
		fxi_loop_wake(q->transport, number, queue->number);
}

void fxi_loop_ring_fill(struct loop_queue *q, const struct loop_ring *ring,
			const struct loop_datagram *d)
{
	loop_fill(q, ring, d);
	loop_ring_done(q, ring);
}

void fxi_loop_ring_close(const struct loop_ring *ring)
{
	loop_unlock(ring->queue);
}

/* ---- senders that have died -------------------------------------------- */

/*
 * A sender may have died while it held the lock of one of our rings, or after
 * it stored its message and before it woke the receiver. Those that wait for
 * the lock may never have known that peer, so the ring's owner takes the lock
 * back.
 */
static void queue_recover(struct transport *t, uint32_t index, uint64_t dead)
{
	struct segment_queue *queue = &t->segment->queues[index];
	const struct loop_queue *q = t->state->queues[index];

	if (loop_lock(queue, dead, own_word(t))) {
		repair(queue, q->cells, q->rq_mask);
		loop_unlock(queue);
	}
	/* It may have cleared armed without waking us. */
	if (__atomic_load_n(&q->armed, __ATOMIC_SEQ_CST)) {
		__atomic_store_n(&queue->armed, 0, __ATOMIC_SEQ_CST);
		fxi_loop_queue_signal(q);
	}
}

void fxi_loop_peer_died(struct transport *t, uint32_t number,
			uint32_t generation)
{
	uint64_t dead = holder_word(number, generation);
	const struct loop_queue *q;
	uint32_t i;

	__atomic_store_n(&t->peers[number].died, generation, __ATOMIC_RELEASE);
	for (i = 0; i < t->state->nqueues; i++) {
		q = t->state->queues[i];
		if (q && q->rq_entries)
			queue_recover(t, i, dead);
	}
}
