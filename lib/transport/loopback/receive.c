// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Messages: receive rings with many senders and one receiver (docs/loopback.md,
 * "Messages"). The sending side is called by engine.c, the receiving side by
 * lib/core/direct.c, what concerns the dead by the service thread.
 *
 * Order. A cell belongs to who holds the lock until its seq is stored (release)
 * and found (acquire) by the receiver; then it is the receiver's until rq_head
 * is stored (release) and found (acquire) by a sender, who holds the lock, as
 * rq_seen is. The lock is taken with acquire and given back with release, so
 * each holder sees rq_tail and rq_seen of the one before. Sleeping: the receiver
 * stores armed, full barrier, reads seq; a sender stores seq, full barrier,
 * reads armed: one of them sees the other. Where the receiver's barrier is
 * membarrier(), the sender's is one for the compiler.
 */
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "base/barrier.h"
#include "plain.h"
#include "state.h"

#define SPINS	100u	/* looks at the lock before the processor is yielded */

/* ---- the lock ---------------------------------------------------------- */

static inline uint64_t holder_word(uint32_t number, uint32_t generation)
{
	return (uint64_t)generation << 32 | (number + 1);
}

static inline uint64_t own_word(const struct transport *t)
{
	return holder_word(t->number, t->peers[t->number].generation);
}

/* Only what is known to have lived and gone; a newcomer is not. */
static bool is_dead(const struct transport *t, uint64_t holder)
{
	uint32_t number = (uint32_t)holder - 1;

	return number < SEGMENT_PEERS &&
	       __atomic_load_n(&t->peers[number].died, __ATOMIC_ACQUIRE) ==
		       (uint32_t)(holder >> 32);
}

/*
 * The holder before us may have died anywhere between storing seq and counting
 * up: then its message is there.
 */
static void repair(struct segment_queue *queue,
		   const struct segment_cell *cells, uint32_t mask)
{
	uint32_t tail = queue->rq_tail;

	if ((uint32_t)cells[tail & mask].seq == tail + 1)
		__atomic_store_n(&queue->rq_tail, tail + 1, __ATOMIC_RELAXED);
}

/* A holder that is stopped blocks nobody for ever. */
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

/* A queue as its owner has described it, read once and checked. */
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

/* Whoever takes armed back wakes the owner, so it is woken once. */
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

/* ---- receiving --------------------------------------------------------- */

static inline const struct segment_cell *next_cell(const struct loop_queue *q)
{
	const struct segment_cell *cell = &q->cells[q->rq_next & q->rq_mask];

	if ((uint32_t)__atomic_load_n(&cell->seq, __ATOMIC_ACQUIRE) !=
	    q->rq_next + 1)
		return NULL;
	return cell;
}

bool fxi_loop_received(const struct loop_queue *q)
{
	return q->rq_entries && (q->broken || next_cell(q));
}

/* length to status, which lie there as in a completion. */
#define HEADER	offsetof(struct segment_cell, length)
#define HEADER_SIZE (offsetof(struct segment_cell, status) + 1 - HEADER)
_Static_assert(offsetof(struct fabrex_wc, status) -
	       offsetof(struct fabrex_wc, length) ==
	       offsetof(struct segment_cell, status) - HEADER,
	       "a cell's header does not fit a completion");

static inline void *payload_of(const struct loop_queue *q,
			       const struct segment_cell *cell, uint32_t length)
{
	if (likely(length <= SEGMENT_SMALL))
		return (void *)(uintptr_t)cell->small;
	return q->payload + (size_t)(q->rq_next & q->rq_mask) * q->cell_size;
}

/* What a sender wrote is read once. False: it cannot be. */
static inline bool take(struct loop_queue *q, const struct segment_cell *cell,
			struct fabrex_wc *wc)
{
	memcpy(&wc->length, &cell->length, HEADER_SIZE);
	__asm__ volatile("" ::: "memory");
	wc->user_data = 0;
	wc->cell = q->rq_next;
	wc->reserved = 0;
	if (likely(wc->opcode == FABREX_OP_RECV)) {
		if (unlikely(wc->length > q->cell_size))
			return false;
		wc->data = payload_of(q, cell, wc->length);
		q->stats.host_bytes += wc->length; /* fxi_loop_counters() */
	} else if (wc->opcode == FABREX_OP_RECV_IMM) {
		wc->data = NULL;
	} else {
		return false;
	}
	q->rq_next++;
	q->stats.rx_ops++;
	return true;
}

/* Who has answered the one before with one will do so again. */
static inline void expect_answer(struct loop_queue *q)
{
	if (q->ring.sent == 1)
		fxi_path_fetch(q->ring.cell);
	q->ring.sent = 0;
}

int fxi_loop_take(struct loop_queue *q, struct fabrex_wc *wc, int n)
{
	const struct segment_cell *cell;
	int got = 0;

	if (!q->rq_entries)
		return 0;
	while (got < n) {
		cell = next_cell(q);
		if (!cell)
			break;
		expect_answer(q);
		if (unlikely(!take(q, cell, &wc[got]))) {
			q->broken = "a peer wrote a message that cannot be";
			break;
		}
		got++;
	}
	return got;
}

void fxi_loop_recv_done(struct loop_queue *q, unsigned int n)
{
	uint32_t held = q->rq_next - q->rq_head;

	q->rq_head += n < held ? n : held;
	__atomic_store_n(&q->shared->rq_head, q->rq_head, __ATOMIC_RELEASE);
}

/* ---- sleeping ---------------------------------------------------------- */

static void signal_queue(const struct loop_queue *q)
{
	uint64_t one = 1;
	int old;

	if (!q || q->efd < 0)
		return;
	old = cancel_off();
	if (write(q->efd, &one, sizeof(one)) < 0)
		q = NULL;	/* it is readable already */
	cancel_restore(old);
}

void fxi_loop_arm(struct loop_queue *q)
{
	__atomic_store_n(&q->armed, true, __ATOMIC_RELAXED);
	__atomic_store_n(&q->shared->armed, 1, __ATOMIC_RELAXED);
	barrier_full();
	if (fxi_loop_membarrier(q->transport))
		return;
	/* A message may be overlooked: one sleeps for a moment only. */
	sched_yield();
	signal_queue(q);
}

/*
 * Not for one's own sake: others may sleep on the descriptor. A sender that has
 * taken armed back may be dead, and is not known to have had it from here on.
 */
void fxi_loop_completed(struct loop_queue *q)
{
	__atomic_store_n(&q->armed, false, __ATOMIC_RELAXED);
	__atomic_store_n(&q->shared->armed, 0, __ATOMIC_RELAXED);
	signal_queue(q);
}

/* ---- the dead ---------------------------------------------------------- */

/*
 * A sender may have died with the lock of one of our rings, or with its message
 * there and the receiver not woken. Those who wait for the lock may never have
 * known it, so the ring's owner takes it back.
 */
static void queue_recover(struct transport *t, uint32_t index, uint64_t dead)
{
	struct segment_queue *queue = &t->segment->queues[index];
	const struct loop_queue *q = t->state->queues[index];

	if (loop_lock(queue, dead, own_word(t))) {
		repair(queue, q->cells, q->rq_mask);
		loop_unlock(queue);
	}
	/* It may have taken armed back, and not told us. */
	if (__atomic_load_n(&q->armed, __ATOMIC_SEQ_CST)) {
		__atomic_store_n(&queue->armed, 0, __ATOMIC_SEQ_CST);
		signal_queue(q);
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
