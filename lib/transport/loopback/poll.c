// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Polling a loopback queue: completions of what was posted here, which are
 * records of post.c, and messages, which senders (send.c) have stored in the
 * queue's receive ring. Called through queue_ops.
 */
#include <sched.h>
#include <string.h>

#include "base/barrier.h"
#include "fast.h"
#include "state.h"

/* ---- what was posted --------------------------------------------------- */

static inline const struct loop_record *oldest(const struct loop_queue *q)
{
	return &q->records[q->sq_done & q->sq_mask];
}

bool fxi_loop_retire(struct loop_queue *q)
{
	uint32_t before = q->sq_done;

	while (q->sq_done != q->sq_tail &&
	       oldest(q)->state & LOOP_RECORD_SILENT)
		q->sq_done++;
	return q->sq_done != before;
}

static inline void report(const struct loop_queue *q,
			  const struct loop_record *r, struct fabrex_wc *wc)
{
	wc->user_data = r->user_data;
	wc->length = r->length;
	wc->imm = 0;
	wc->crc = 0;
	if (unlikely(r->state & LOOP_RECORD_CRC))
		wc->crc = q->sq[q->sq_done & q->sq_mask].imm;
	wc->src_queue = 0;
	wc->peer = r->peer;
	wc->opcode = r->opcode;
	wc->status = r->state & LOOP_RECORD_STATUS;
	wc->cell = 0;
	wc->data = NULL;
	wc->reserved = 0;
}

static inline int take_posted(struct loop_queue *q, struct fabrex_wc *wc, int n)
{
	const struct loop_record *r;
	int got = 0;

	for (; got < n && q->sq_done != q->sq_tail; q->sq_done++) {
		r = oldest(q);
		if (!(r->state & LOOP_RECORD_SILENT))
			report(q, r, &wc[got++]);
	}
	return got;
}

/* ---- messages ---------------------------------------------------------- */

static inline const struct segment_cell *next_cell(const struct loop_queue *q)
{
	const struct segment_cell *cell = &q->cells[q->rq_next & q->rq_mask];

	if ((uint32_t)__atomic_load_n(&cell->seq, __ATOMIC_ACQUIRE) !=
	    q->rq_next + 1)
		return NULL;
	return cell;
}

/* length to status have the same order as in a completion. */
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

/* What a sender wrote is read once. False: it is impossible. */
static inline bool take_message(struct loop_queue *q,
				const struct segment_cell *cell,
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

/* If the one before was answered with one, this one probably is, too. */
static inline void expect_answer(struct loop_queue *q)
{
	if (q->ring.sent == 1)
		fxi_path_fetch(q->ring.cell);
	q->ring.sent = 0;
}

static int take_messages(struct loop_queue *q, struct fabrex_wc *wc, int n)
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
		if (unlikely(!take_message(q, cell, &wc[got]))) {
			q->broken = "a peer wrote a message that cannot be";
			break;
		}
		got++;
	}
	return got;
}

/* ---- operations of the queue ------------------------------------------- */

/* What was posted and what has arrived take turns at being first. */
int fxi_loop_poll(struct fabrex_queue *queue, struct fabrex_wc *wc, int n)
{
	struct loop_queue *q = loop_queue_of(queue);
	int got = 0;

	if (q->received_first)
		got = take_messages(q, wc, n);
	got += take_posted(q, wc + got, n - got);
	if (got < n && !q->received_first)
		got += take_messages(q, wc + got, n - got);
	if (got == n)
		q->received_first = !q->received_first;
	if (unlikely(q->broken) && !got)
		return fxi_queue_ended(queue, q->broken);
	return got;
}

void fxi_loop_recv_done(struct fabrex_queue *queue, unsigned int n)
{
	struct loop_queue *q = loop_queue_of(queue);
	uint32_t held = q->rq_next - q->rq_head;

	q->rq_head += n < held ? n : held;
	__atomic_store_n(&q->shared->rq_head, q->rq_head, __ATOMIC_RELEASE);
}

bool fxi_loop_pending(struct fabrex_queue *queue)
{
	struct loop_queue *q = loop_queue_of(queue);

	fxi_loop_retire(q);
	return q->sq_done != q->sq_tail ||
	       (q->rq_entries && (q->broken || next_cell(q)));
}

/* ---- sleeping ---------------------------------------------------------- */

void fxi_loop_arm(struct fabrex_queue *queue)
{
	struct loop_queue *q = loop_queue_of(queue);

	__atomic_store_n(&q->armed, true, __ATOMIC_RELAXED);
	__atomic_store_n(&q->shared->armed, 1, __ATOMIC_RELAXED);
	barrier_full();
	if (fxi_loop_membarrier(q->transport))
		return;
	/* A message may be overlooked: the caller must not sleep now. */
	sched_yield();
	fxi_loop_queue_signal(q);
}

/*
 * Not for this thread, but for others that sleep on the descriptor. A sender
 * that has cleared armed may have died before it woke us, which nobody could
 * tell from here on.
 */
void fxi_loop_completed(struct loop_queue *q)
{
	__atomic_store_n(&q->armed, false, __ATOMIC_RELAXED);
	__atomic_store_n(&q->shared->armed, 0, __ATOMIC_RELAXED);
	fxi_loop_queue_signal(q);
}
