// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Polling a ring: completions are copied once, checked against what was
 * posted, and handed out. A device that answers something impossible is not
 * believed: the queue stops. Called through queue_ops.
 */
#include <errno.h>
#include <string.h>

#include "transport/ring/ring.h"

static const char *death_cause(uint32_t error)
{
	switch (error) {
	case FABREX_QERR_CQ_OVERRUN:
		return "the completion ring was overrun";
	case FABREX_QERR_SQ_INDEX:
		return "the device saw an impossible sq_tail";
	case FABREX_QERR_RING_FAULT:
		return "its ring memory did not answer";
	case FABREX_QERR_RESET:
		return "the switch, port or function was reset";
	}
	return "the device stopped it";
}

int fxi_ring_ended(const struct ring_queue *q)
{
	const char *cause = q->broken;

	if (!cause && ring_read(&q->ctrl->state) == FABREX_QUEUE_DEAD)
		cause = "the port is gone";
	if (!cause)
		cause = death_cause(ring_read(&q->ctrl->error));
	return fxi_queue_ended(&q->queue, cause);
}

/* From now on outstanding entries are reported without the device. */
static void stop(struct ring_queue *q, const char *broken)
{
	uint32_t head = ring_acquire(&q->ctrl->sq_head);

	if (head - q->sq_done > q->sq_tail - q->sq_done)
		head = q->sq_done;
	q->flush_head = head;
	q->broken = broken;
	q->stopped = true;
}

static void report_unanswered(struct fabrex_wc *wc, const struct ring_shadow *s,
			      uint8_t status)
{
	memset(wc, 0, sizeof(*wc));
	wc->user_data = s->user_data;
	wc->peer = (uint16_t)s->who;
	wc->opcode = ring_shadow_opcode(s);
	wc->status = status;
}

static const struct ring_shadow *oldest(const struct ring_queue *q)
{
	return &q->shadow[q->sq_done & q->sq_mask];
}

static inline bool oldest_is_quiet(const struct ring_queue *q)
{
	return ring_shadow_flags(oldest(q)) & FABREX_SQE_QUIET;
}

/* Where the next completion comes, and whether it is there. */
static inline const struct fabrex_cqe *next_cqe(const struct ring_queue *q)
{
	return &q->cq[q->cq_head & (q->cq_entries - 1)];
}

static inline bool next_ready(const struct ring_queue *q)
{
	return ring_cqe_ready(next_cqe(q), q->cq_head, q->cq_entries);
}

/*
 * With sq_head read before the completion ring was found empty, every entry
 * below it has no completion to come: the quiet ones have succeeded.
 */
bool fxi_ring_retire(struct ring_queue *q)
{
	uint32_t before = q->sq_done, head;

	if (q->sq_done == q->sq_tail || !oldest_is_quiet(q))
		return false;
	head = ring_acquire(&q->ctrl->sq_head);
	if (head - q->sq_done > q->sq_tail - q->sq_done)
		return false;
	if (next_ready(q))
		return false;
	while (q->sq_done != head && oldest_is_quiet(q))
		q->sq_done++;
	return q->sq_done != before;
}

static inline void report(struct fabrex_wc *wc, const struct ring_shadow *s,
			  const struct ring_cqe *cqe)
{
	wc->user_data = s->user_data;
	wc->length = cqe->length;
	wc->imm = 0;
	wc->crc = cqe->crc;
	wc->src_queue = 0;
	wc->peer = (uint16_t)s->who;
	wc->opcode = ring_shadow_opcode(s);
	wc->status = cqe->status;
	wc->cell = 0;
	wc->data = NULL;
	wc->reserved = 0;
}

/*
 * The oldest entry outstanding is not the one completed. Entries before that
 * have been passed over: quiet ones succeeded, others lost their completion,
 * which is reported first. 1: there is none left; 0: wc is filled with one;
 * negative: cqe is impossible.
 */
static int pass_over(struct ring_queue *q, uint16_t index,
		     struct fabrex_wc *wc)
{
	uint16_t ahead = (uint16_t)(index - q->sq_done);
	const struct ring_shadow *s;

	if (ahead >= q->sq_tail - q->sq_done)
		return -EPROTO;
	while (ahead--) {
		s = oldest(q);
		q->sq_done++;
		if (ring_shadow_flags(s) & FABREX_SQE_QUIET)
			continue;
		report_unanswered(wc, s, FABREX_WC_ABORTED);
		return 0;
	}
	return 1;
}

/*
 * Completion of an entry posted here. 1: wc is filled and cqe used; 0: wc is
 * filled, cqe still stands; negative: cqe is impossible.
 */
static inline int take_posted(struct ring_queue *q, const struct ring_cqe *cqe,
			      struct fabrex_wc *wc)
{
	const struct ring_shadow *s;
	int ret;

	if (unlikely(cqe->index != (uint16_t)q->sq_done ||
		     q->sq_done == q->sq_tail)) {
		ret = pass_over(q, cqe->index, wc);
		if (ret <= 0)
			return ret;
	}
	s = oldest(q);
	if (unlikely(cqe->opcode != ring_shadow_opcode(s)))
		return -EPROTO;
	q->sq_done++;
	report(wc, s, cqe);
	return 1;
}

/* A message has arrived. 1, or negative if that is impossible. */
static int take_recv(struct ring_queue *q, const struct ring_cqe *cqe,
		     struct fabrex_wc *wc)
{
	bool data = cqe->opcode == FABREX_OP_RECV;
	uint32_t cell = q->rq_next;

	if (unlikely(cqe->index != (uint16_t)cell ||
		     cell - q->rq_head >= q->rq_entries ||
		     (data && cqe->length > q->cell_size)))
		return -EPROTO;
	q->rq_next++;
	wc->user_data = 0;
	wc->length = cqe->length;
	wc->imm = cqe->imm;
	wc->crc = cqe->crc;
	wc->src_queue = cqe->src_queue;
	wc->peer = cqe->peer;
	wc->opcode = cqe->opcode;
	wc->status = cqe->status;
	wc->cell = cell;
	wc->data = data ? q->rq + (size_t)(cell & (q->rq_entries - 1)) *
				  q->cell_size : NULL;
	wc->reserved = 0;
	return 1;
}

static inline int take(struct ring_queue *q, const struct ring_cqe *cqe,
		       struct fabrex_wc *wc)
{
	if (cqe->opcode == FABREX_OP_RECV || cqe->opcode == FABREX_OP_RECV_IMM)
		return take_recv(q, cqe, wc);
	return take_posted(q, cqe, wc);
}

/*
 * The usual case: completions of what was posted, in that order, up to the end
 * of either ring. Anything else is left to drain_any().
 */
static inline uint32_t run_length(const struct ring_queue *q, int n)
{
	uint32_t cq_left = q->cq_entries - (q->cq_head & (q->cq_entries - 1));
	uint32_t sq_left = q->sq_mask + 1 - (q->sq_done & q->sq_mask);
	uint32_t run = q->sq_tail - q->sq_done;

	run = run < sq_left ? run : sq_left;
	run = run < cq_left ? run : cq_left;
	return run < (uint32_t)n ? run : (uint32_t)n;
}

static inline uint32_t drain_posted(struct ring_queue *q, struct fabrex_wc *wc,
				    int n)
{
	const struct fabrex_cqe *cqe = next_cqe(q);
	const struct ring_shadow *s = oldest(q);
	uint64_t last = ring_cqe_last(q->sq_done, q->cq_head, q->cq_entries);
	uint32_t i, run = run_length(q, n);
	struct ring_cqe got;

	for (i = 0; i < run; i++, cqe++, s++, wc++, last += RING_CQE_NEXT) {
		if (!ring_cqe_match(cqe, last | s->who, &got))
			break;
		report(wc, s, &got);
	}
	q->cq_head += i;
	q->sq_done += i;
	return i;
}

static int drain_any(struct ring_queue *q, struct fabrex_wc *wc, int n)
{
	struct ring_cqe cqe;
	int got = 0, ret;

	while (got < n) {
		if (!next_ready(q))
			break;
		cqe = ring_cqe_read(next_cqe(q));
		ret = take(q, &cqe, &wc[got]);
		if (unlikely(ret < 0)) {
			stop(q, "the device wrote a completion for nothing that was posted");
			break;
		}
		got++;
		q->cq_head += (uint32_t)ret;
	}
	return got;
}

/* What is in the ring, up to n. */
static inline int drain(struct ring_queue *q, struct fabrex_wc *wc, int n)
{
	uint32_t before = q->cq_head;
	int got = (int)drain_posted(q, wc, n);

	if (got < n)
		got += drain_any(q, wc + got, n - got);
	if (q->cq_head != before)
		ring_release(&q->ctrl->cq_head, q->cq_head);
	return got;
}

/* The entries of a stopped queue that are not reported yet. */
static int flush(struct ring_queue *q, struct fabrex_wc *wc, int n)
{
	const struct ring_shadow *s;
	int got = 0;

	while (got < n && q->sq_done != q->sq_next) {
		bool executed = (int32_t)(q->flush_head - q->sq_done) > 0;
		bool known = (int32_t)(q->sq_tail - q->sq_done) > 0;

		s = oldest(q);
		q->sq_done++;
		if (executed && ring_shadow_flags(s) & FABREX_SQE_QUIET)
			continue;
		report_unanswered(&wc[got++], s, known ? FABREX_WC_ABORTED :
							 FABREX_WC_FLUSHED);
	}
	return got;
}

/*
 * The ring was found empty. If the queue has died, what the device completed
 * before is in the ring by now: look once more, then stop.
 */
static int idle(struct ring_queue *q, struct fabrex_wc *wc, int n)
{
	int got = 0;

	fxi_ring_retire(q);
	if (likely(!ring_is_dead(q->ctrl)))
		return 0;
	got = drain(q, wc, n);
	if (got < n && !q->stopped)
		stop(q, NULL);
	return got;
}

int fxi_ring_poll(struct fabrex_queue *queue, struct fabrex_wc *wc, int n)
{
	struct ring_queue *q = ring_queue_of(queue);
	int got = 0;

	if (likely(!q->stopped)) {
		got = drain(q, wc, n);
		if (got < n && !q->stopped)
			got += idle(q, wc + got, n - got);
	}
	if (unlikely(q->stopped)) {
		got += flush(q, wc + got, n - got);
		if (!got && n > 0)
			return fxi_ring_ended(q);
	}
	return got;
}

void fxi_ring_recv_done(struct fabrex_queue *queue, unsigned int n)
{
	struct ring_queue *q = ring_queue_of(queue);
	uint32_t held = q->rq_next - q->rq_head;

	q->rq_head += n < held ? n : held;
	ring_release(&q->ctrl->rq_head, q->rq_head);
}

bool fxi_ring_pending(struct fabrex_queue *queue)
{
	struct ring_queue *q = ring_queue_of(queue);

	return q->stopped || ring_is_dead(q->ctrl) || next_ready(q);
}

void fxi_ring_arm(struct fabrex_queue *queue)
{
	struct ring_queue *q = ring_queue_of(queue);

	ring_doorbell(q->doorbell, FABREX_DB_ARM, q->cq_head);
}
