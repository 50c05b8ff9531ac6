// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Messages: receive rings with many senders and one receiver (docs/loopback.md,
 * "Messages"). The sending side is called by engine.c, the receiving side by
 * lib/direct.c, what concerns the dead by the service thread.
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

#include "ring.h"
#include "state.h"

#define SPINS	100u	/* looks at the lock before the processor is yielded */

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#else
	__asm__ volatile("" ::: "memory");
#endif
}

/* A queue as its owner has described it, read once and checked. */
struct shape {
	uint32_t entries;
	uint32_t cell_size;
	struct segment_cell *cells;
	char *payload;
};

/* ---- the lock ---------------------------------------------------------- */

static inline uint64_t holder_word(uint32_t number, uint32_t generation)
{
	return (uint64_t)generation << 32 | (number + 1);
}

static inline bool lock_swap(struct segment_queue *queue, uint64_t old,
			     uint64_t new)
{
	return __atomic_compare_exchange_n(&queue->lock, &old, new, false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline void unlock(struct segment_queue *queue)
{
	__atomic_store_n(&queue->lock, 0, __ATOMIC_RELEASE);
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

static uint8_t lock_slowly(const struct transport *t,
			   const struct loop_peer *peer,
			   struct segment_queue *queue, uint32_t number,
			   const struct shape *shape)
{
	uint64_t me = holder_word(t->number, t->segment->generation), holder;
	unsigned int spins = 0;

	for (;;) {
		holder = __atomic_load_n(&queue->lock, __ATOMIC_RELAXED);
		if (!holder && lock_swap(queue, 0, me))
			return FABREX_WC_OK;
		if (holder && is_dead(t, holder) &&
		    lock_swap(queue, holder, me)) {
			repair(queue, shape->cells, shape->entries - 1);
			return FABREX_WC_OK;
		}
		if (__atomic_load_n(&queue->number, __ATOMIC_RELAXED) != number)
			return FABREX_WC_BAD_QUEUE;
		if (!__atomic_load_n(&peer->up, __ATOMIC_RELAXED))
			return FABREX_WC_UNREACHABLE;
		if (++spins % SPINS)
			relax();
		else
			sched_yield();
	}
}

/* ---- sending ----------------------------------------------------------- */

static inline bool inside(const struct loop_peer *peer, uint64_t offset,
			  uint64_t n)
{
	return offset <= peer->size && n <= peer->size - offset;
}

static inline bool shape_of(const struct loop_peer *peer,
			    const struct segment_queue *queue,
			    struct shape *shape)
{
	uint32_t entries = __atomic_load_n(&queue->rq_entries,
					   __ATOMIC_RELAXED);
	uint32_t size = __atomic_load_n(&queue->cell_size, __ATOMIC_RELAXED);
	uint64_t cells = __atomic_load_n(&queue->cells, __ATOMIC_RELAXED);
	uint64_t payload = __atomic_load_n(&queue->payload, __ATOMIC_RELAXED);

	shape->entries = entries;
	shape->cell_size = size;
	shape->cells = (struct segment_cell *)((char *)peer->segment + cells);
	shape->payload = (char *)peer->segment + payload;
	return entries && !(entries & (entries - 1)) &&
	       entries <= FABREX_RQ_MAX && size <= FABREX_CELL_MAX &&
	       !(cells % sizeof(struct segment_cell)) &&
	       inside(peer, cells, entries * sizeof(struct segment_cell)) &&
	       inside(peer, payload, (uint64_t)entries * size);
}

static inline struct segment_queue *find_queue(const struct loop_peer *peer,
					       const struct fabrex_sqe *sqe,
					       struct shape *shape)
{
	uint32_t index = sqe->dest_queue - 1;
	struct segment_queue *queue;

	if (unlikely(index >= SEGMENT_QUEUES))
		return NULL;
	queue = &peer->segment->queues[index];
	if (unlikely(__atomic_load_n(&queue->number, __ATOMIC_ACQUIRE) !=
		     sqe->dest_queue || queue->key != sqe->dest_qkey ||
		     !shape_of(peer, queue, shape)))
		return NULL;
	return queue;
}

/* Under the lock. The receiver's line is read only when it has to be. */
static inline bool has_cell(struct segment_queue *queue, uint32_t entries)
{
	if (likely(queue->rq_tail - queue->rq_seen < entries))
		return true;
	queue->rq_seen = __atomic_load_n(&queue->rq_head, __ATOMIC_ACQUIRE);
	return queue->rq_tail - queue->rq_seen < entries;
}

uint8_t fxi_loop_ring_open(struct loop_queue *q, const struct loop_peer *peer,
			   const struct fabrex_sqe *sqe, struct loop_ring *ring)
{
	const struct transport *t = q->transport;
	uint64_t me = holder_word(t->number, t->segment->generation);
	struct segment_queue *queue;
	struct shape shape;
	uint8_t status;
	uint32_t slot;

	queue = find_queue(peer, sqe, &shape);
	if (!queue)
		return FABREX_WC_BAD_QUEUE;
	if (sqe->opcode == FABREX_OP_SEND && sqe->length > shape.cell_size)
		return FABREX_WC_TOO_LONG;
	if (unlikely(!lock_swap(queue, 0, me))) {
		status = lock_slowly(t, peer, queue, sqe->dest_queue, &shape);
		if (status)
			return status;
	}
	if (unlikely(!has_cell(queue, shape.entries))) {
		unlock(queue);
		return FABREX_WC_RNR;
	}
	ring->peer = peer;
	ring->queue = queue;
	ring->tail = queue->rq_tail;
	slot = ring->tail & (shape.entries - 1);
	ring->cell = &shape.cells[slot];
	ring->payload = shape.payload + (size_t)slot * shape.cell_size;
	__builtin_prefetch(ring->cell, 1);
	return FABREX_WC_OK;
}

/* Whoever takes armed back wakes the owner, so it is woken once. */
static void wake(struct loop_queue *q, const struct loop_peer *peer,
		 struct segment_queue *queue)
{
	struct transport *t = q->transport;

	if (__atomic_exchange_n(&queue->armed, 0, __ATOMIC_RELAXED))
		fxi_loop_wake(t, (uint32_t)(peer - t->peers), queue->number);
}

void fxi_loop_ring_fill(struct loop_queue *q, const struct loop_ring *ring,
			const struct loop_datagram *d)
{
	struct segment_queue *queue = ring->queue;
	struct segment_cell *cell = ring->cell;
	void *to = d->length <= SEGMENT_SMALL ? cell->small :
						      ring->payload;

	if (d->data && d->length)
		memcpy(to, d->data, d->length);
	cell->length = d->length;
	cell->imm = d->imm;
	cell->src_queue = q->number;
	cell->crc = d->crc;
	cell->peer = (uint16_t)q->transport->number;
	cell->opcode = d->opcode;
	cell->status = FABREX_WC_OK;
	__atomic_store_n(&cell->seq, (uint64_t)(ring->tail + 1),
			 __ATOMIC_RELEASE);
	__atomic_store_n(&queue->rq_tail, ring->tail + 1, __ATOMIC_RELAXED);
	unlock(queue);
	if (unlikely(ring->peer->fence))
		ring_barrier();
	__asm__ volatile("" ::: "memory");
	if (unlikely(__atomic_load_n(&queue->armed, __ATOMIC_RELAXED)))
		wake(q, ring->peer, queue);
}

void fxi_loop_ring_close(const struct loop_ring *ring)
{
	unlock(ring->queue);
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

static inline void *payload_of(const struct loop_queue *q,
			       const struct segment_cell *cell, uint32_t length)
{
	if (length <= SEGMENT_SMALL)
		return (void *)(uintptr_t)cell->small;
	return q->payload + (size_t)(q->rq_next & q->rq_mask) * q->cell_size;
}

/* What a sender wrote is read once. False: it cannot be. */
static inline bool take(struct loop_queue *q, const struct segment_cell *from,
			struct fabrex_wc *wc)
{
	const struct segment_cell cell = *from;
	bool data = cell.opcode == FABREX_OP_RECV;

	if (unlikely((data && cell.length > q->cell_size) ||
		     (!data && cell.opcode != FABREX_OP_RECV_IMM)))
		return false;
	wc->user_data = 0;
	wc->length = cell.length;
	wc->imm = cell.imm;
	wc->crc = cell.crc;
	wc->src_queue = cell.src_queue;
	wc->peer = cell.peer;
	wc->opcode = cell.opcode;
	wc->status = FABREX_WC_OK;
	wc->cell = q->rq_next;
	wc->data = data ? payload_of(q, from, cell.length) : NULL;
	wc->reserved = 0;
	q->rq_next++;
	q->stats.rx_ops++;
	q->stats.rx_bytes += data ? cell.length : 0;
	return true;
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

	if (q && q->efd >= 0 && write(q->efd, &one, sizeof(one)) < 0)
		return; /* it is readable already */
}

void fxi_loop_arm(struct loop_queue *q)
{
	q->armed = true;
	__atomic_store_n(&q->shared->armed, 1, __ATOMIC_RELAXED);
	ring_barrier();
	fxi_loop_membarrier(q->transport);
}

/* Not for one's own sake: others may sleep on the descriptor. */
void fxi_loop_completed(struct loop_queue *q)
{
	q->armed = false;
	if (__atomic_exchange_n(&q->shared->armed, 0, __ATOMIC_RELAXED))
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
	struct segment_cell *cells;
	uint64_t me = holder_word(t->number, t->segment->generation);

	if (lock_swap(queue, dead, me)) {
		cells = (struct segment_cell *)((char *)t->segment +
						queue->cells);
		repair(queue, cells, queue->rq_entries - 1);
		unlock(queue);
	}
	if (__atomic_exchange_n(&queue->armed, 0, __ATOMIC_SEQ_CST))
		signal_queue(t->state->queues[index]);
}

void fxi_loop_peer_died(struct transport *t, uint32_t number,
			uint32_t generation)
{
	uint64_t dead = holder_word(number, generation);
	const struct segment_queue *queue;
	uint32_t i;

	__atomic_store_n(&t->peers[number].died, generation, __ATOMIC_RELEASE);
	for (i = 0; i < t->segment->queues_used && i < SEGMENT_QUEUES; i++) {
		queue = &t->segment->queues[i];
		if (queue->number == i + 1 && queue->rq_entries)
			queue_recover(t, i, dead);
	}
}
