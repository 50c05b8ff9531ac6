// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Queues whose entries are executed while they are submitted. An own completion
 * is what the shadow array says of its entry: no lock, and no memory that
 * others have. Called by post.c and poll.c.
 */
#include "core/direct.h"

static inline struct shadow *shadow_of(const struct fabrex_queue *q, uint32_t i)
{
	return &q->shadow[i & q->sq_mask];
}

/* ---- posting ----------------------------------------------------------- */

/* The oldest is off the books at once. */
void fxi_direct_silent(struct fabrex_queue *q, uint32_t at)
{
	shadow_of(q, at)->direct.state = DONE_SILENT;
	if (at == q->sq_done)
		q->sq_done++;
}

bool fxi_direct_post(struct fabrex_queue *q, const struct fabrex_op *op)
{
	if (!direct_ready(q) || !fxi_loop_plain(q->shared.direct, op))
		return false;
	direct_record(q, q->shared.direct, op->user_data, op->peer, op->opcode,
		      op->flags, (uint32_t)op->length);
	return true;
}

static void execute(struct fabrex_queue *q)
{
	struct fabrex_sqe *sqe = &q->sq[q->sq_tail & q->sq_mask];
	struct shadow *s = shadow_of(q, q->sq_tail);
	bool sum = sqe->flags & FABREX_SQE_CHECK;
	uint8_t status;
	uint32_t crc;

	status = fxi_loop_execute(q->shared.direct, sqe, &s->direct.length,
				  &crc);
	sqe->imm = crc;
	s->direct.peer = sqe->peer;
	s->direct.opcode = sqe->opcode;
	s->direct.state = status | (sum ? DONE_SUM : 0);
	q->sq_tail++;
	if (!status && sqe->flags & FABREX_SQE_QUIET)
		fxi_direct_silent(q, q->sq_tail - 1);
	else if (q->shared.direct->armed)
		fxi_loop_completed(q->shared.direct);
}

int fxi_direct_submit(struct fabrex_queue *q)
{
	uint32_t n = q->sq_next - q->sq_tail;

	while (q->sq_tail != q->sq_next)
		execute(q);
	return (int)n;
}

/* ---- polling ----------------------------------------------------------- */

bool fxi_direct_retire(struct fabrex_queue *q)
{
	uint32_t before = q->sq_done;

	while (q->sq_done != q->sq_tail &&
	       shadow_of(q, q->sq_done)->direct.state & DONE_SILENT)
		q->sq_done++;
	return q->sq_done != before;
}

static inline void report(const struct fabrex_queue *q, const struct shadow *s,
			  struct fabrex_wc *wc)
{
	wc->user_data = s->user_data;
	wc->length = s->direct.length;
	wc->imm = 0;
	wc->crc = 0;
	if (unlikely(s->direct.state & DONE_SUM))
		wc->crc = q->sq[q->sq_done & q->sq_mask].imm;
	wc->src_queue = 0;
	wc->peer = s->direct.peer;
	wc->opcode = s->direct.opcode;
	wc->status = s->direct.state & DONE_STATUS;
	wc->cell = 0;
	wc->data = NULL;
	wc->reserved = 0;
}

static inline int take_own(struct fabrex_queue *q, struct fabrex_wc *wc, int n)
{
	const struct shadow *s;
	int got = 0;

	for (; got < n && q->sq_done != q->sq_tail; q->sq_done++) {
		s = shadow_of(q, q->sq_done);
		if (!(s->direct.state & DONE_SILENT))
			report(q, s, &wc[got++]);
	}
	return got;
}

/* What is own and what has arrived take turns at being first. */
int fxi_direct_poll(struct fabrex_queue *q, struct fabrex_wc *wc, int n)
{
	struct loop_queue *direct = q->shared.direct;
	int got = 0;

	if (q->received_first)
		got = fxi_loop_take(direct, wc, n);
	got += take_own(q, wc + got, n - got);
	if (got < n && !q->received_first)
		got += fxi_loop_take(direct, wc + got, n - got);
	if (got == n)
		q->received_first = !q->received_first;
	if (unlikely(direct->broken) && !got) {
		q->broken = direct->broken;
		return fxi_queue_stopped(q);
	}
	return got;
}

void fxi_direct_recv_done(struct fabrex_queue *q, unsigned int n)
{
	fxi_loop_recv_done(q->shared.direct, n);
}

bool fxi_direct_something(struct fabrex_queue *q)
{
	fxi_direct_retire(q);
	return q->sq_done != q->sq_tail || fxi_loop_received(q->shared.direct);
}

void fxi_direct_arm(struct fabrex_queue *q)
{
	fxi_loop_arm(q->shared.direct);
}
