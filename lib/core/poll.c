// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Polling: completions are copied once from the ring, checked against what
 * was posted, and handed out. A device that answers something impossible is
 * not believed: the queue stops. Public half: fabrex_poll(3).
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "core/direct.h"
#include "core/core.h"
#include "core/ring.h"

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

int fxi_queue_stopped(struct fabrex_queue *q)
{
	const char *cause = q->broken;

	if (!cause && ring_read(&q->ctrl->state) == FABREX_QUEUE_DEAD)
		cause = "the port is gone";
	if (!cause)
		cause = death_cause(ring_read(&q->ctrl->error));
	return fxi_error(ENETDOWN, "port %s: queue %u has ended: %s; poll what is outstanding, destroy it, create another",
			 q->object.port->attr.name, q->shared.number, cause);
}

/* From now on outstanding entries are reported without the device. */
static void stop(struct fabrex_queue *q, const char *broken)
{
	uint32_t head = ring_acquire(&q->ctrl->sq_head);

	if (head - q->sq_done > q->sq_tail - q->sq_done)
		head = q->sq_done;
	q->flush_head = head;
	q->broken = broken;
	q->stopped = true;
}

static void report_unanswered(struct fabrex_wc *wc, const struct shadow *s,
			      uint8_t status)
{
	memset(wc, 0, sizeof(*wc));
	wc->user_data = s->user_data;
	wc->peer = (uint16_t)s->who;
	wc->opcode = shadow_opcode(s);
	wc->status = status;
}

static const struct shadow *oldest(const struct fabrex_queue *q)
{
	return &q->shadow[q->sq_done & q->sq_mask];
}

/*
 * With sq_head read before the completion ring was found empty, every entry
 * below it has no completion to come: the quiet ones have succeeded.
 */
bool fxi_retire_quiet(struct fabrex_queue *q)
{
	uint32_t before = q->sq_done, head;

	if (q->shared.direct)
		return fxi_direct_retire(q);
	if (q->sq_done == q->sq_tail || !(shadow_flags(oldest(q)) & FABREX_SQE_QUIET))
		return false;
	head = ring_acquire(&q->ctrl->sq_head);
	if (head - q->sq_done > q->sq_tail - q->sq_done)
		return false;
	if (ring_cqe_ready(&q->cq[q->cq_head & (q->cq_entries - 1)],
			   q->cq_head, q->cq_entries))
		return false;
	while (q->sq_done != head && shadow_flags(oldest(q)) & FABREX_SQE_QUIET)
		q->sq_done++;
	return q->sq_done != before;
}

static inline void own_done(struct fabrex_wc *wc, const struct shadow *s,
			    const struct ring_cqe *cqe)
{
	wc->user_data = s->user_data;
	wc->length = cqe->length;
	wc->imm = 0;
	wc->crc = cqe->crc;
	wc->src_queue = 0;
	wc->peer = (uint16_t)s->who;
	wc->opcode = shadow_opcode(s);
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
static int pass_over(struct fabrex_queue *q, uint16_t index,
		     struct fabrex_wc *wc)
{
	uint16_t ahead = (uint16_t)(index - q->sq_done);
	const struct shadow *s;

	if (ahead >= q->sq_tail - q->sq_done)
		return -EPROTO;
	while (ahead--) {
		s = oldest(q);
		q->sq_done++;
		if (shadow_flags(s) & FABREX_SQE_QUIET)
			continue;
		report_unanswered(wc, s, FABREX_WC_ABORTED);
		return 0;
	}
	return 1;
}

/*
 * Completion of an own entry. 1: wc is filled and cqe used; 0: wc is filled,
 * cqe still stands; negative: cqe is impossible.
 */
static inline int take_own(struct fabrex_queue *q, const struct ring_cqe *cqe,
			   struct fabrex_wc *wc)
{
	const struct shadow *s;
	int ret;

	if (unlikely(cqe->index != (uint16_t)q->sq_done ||
		     q->sq_done == q->sq_tail)) {
		ret = pass_over(q, cqe->index, wc);
		if (ret <= 0)
			return ret;
	}
	s = oldest(q);
	if (unlikely(cqe->opcode != shadow_opcode(s)))
		return -EPROTO;
	q->sq_done++;
	own_done(wc, s, cqe);
	return 1;
}

/* A message has arrived. 1, or negative if that is impossible. */
static int take_recv(struct fabrex_queue *q, const struct ring_cqe *cqe,
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

static inline int take(struct fabrex_queue *q, const struct ring_cqe *cqe,
		       struct fabrex_wc *wc)
{
	if (cqe->opcode == FABREX_OP_RECV || cqe->opcode == FABREX_OP_RECV_IMM)
		return take_recv(q, cqe, wc);
	return take_own(q, cqe, wc);
}

/*
 * The usual: own completions in the order of posting, up to the end of either
 * ring. What is not so is left to drain_any().
 */
static inline uint32_t run_length(const struct fabrex_queue *q, int n)
{
	uint32_t cq_left = q->cq_entries - (q->cq_head & (q->cq_entries - 1));
	uint32_t sq_left = q->sq_mask + 1 - (q->sq_done & q->sq_mask);
	uint32_t run = q->sq_tail - q->sq_done;

	run = run < sq_left ? run : sq_left;
	run = run < cq_left ? run : cq_left;
	return run < (uint32_t)n ? run : (uint32_t)n;
}

static inline uint32_t drain_own(struct fabrex_queue *q, struct fabrex_wc *wc,
				 int n)
{
	const struct fabrex_cqe *cqe = &q->cq[q->cq_head & (q->cq_entries - 1)];
	const struct shadow *s = oldest(q);
	uint64_t last = ring_cqe_last(q->sq_done, q->cq_head, q->cq_entries);
	uint32_t i, run = run_length(q, n);
	struct ring_cqe got;

	for (i = 0; i < run; i++, cqe++, s++, wc++, last += RING_CQE_NEXT) {
		if (!ring_cqe_match(cqe, last | s->who, &got))
			break;
		own_done(wc, s, &got);
	}
	q->cq_head += i;
	q->sq_done += i;
	return i;
}

static int drain_any(struct fabrex_queue *q, struct fabrex_wc *wc, int n)
{
	const struct fabrex_cqe *slot;
	struct ring_cqe cqe;
	int got = 0, ret;

	while (got < n) {
		slot = &q->cq[q->cq_head & (q->cq_entries - 1)];
		if (!ring_cqe_ready(slot, q->cq_head, q->cq_entries))
			break;
		cqe = ring_cqe_read(slot);
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

/* What the ring holds, up to n. */
static inline int drain(struct fabrex_queue *q, struct fabrex_wc *wc, int n)
{
	uint32_t before = q->cq_head;
	int got = (int)drain_own(q, wc, n);

	if (got < n)
		got += drain_any(q, wc + got, n - got);
	if (q->cq_head != before)
		ring_release(&q->ctrl->cq_head, q->cq_head);
	return got;
}

/* What a stopped queue still owes. */
static int flush(struct fabrex_queue *q, struct fabrex_wc *wc, int n)
{
	const struct shadow *s;
	int got = 0;

	while (got < n && q->sq_done != q->sq_next) {
		bool executed = (int32_t)(q->flush_head - q->sq_done) > 0;
		bool known = (int32_t)(q->sq_tail - q->sq_done) > 0;

		s = oldest(q);
		q->sq_done++;
		if (executed && shadow_flags(s) & FABREX_SQE_QUIET)
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
static int idle(struct fabrex_queue *q, struct fabrex_wc *wc, int n)
{
	int got = 0;

	fxi_retire_quiet(q);
	if (likely(!ring_is_dead(q->ctrl)))
		return 0;
	got = drain(q, wc, n);
	if (got < n && !q->stopped)
		stop(q, NULL);
	return got;
}

static inline int poll_same(struct fabrex_queue *q, struct fabrex_wc *wc,
			    int n)
{
	int got = 0;

	if (q->shared.direct)
		return fxi_direct_poll(q, wc, n);
	if (likely(!q->stopped)) {
		got = drain(q, wc, n);
		if (got < n && !q->stopped)
			got += idle(q, wc + got, n - got);
	}
	if (unlikely(q->stopped)) {
		got += flush(q, wc + got, n - got);
		if (!got && n > 0)
			return fxi_queue_stopped(q);
	}
	return got;
}

/* The caller has more or less of a completion than this library. */
static __attribute__((noinline)) int
poll_other(struct fabrex_queue *q, void *to, int n, size_t size)
{
	struct fabrex_wc wc;
	int got, ret;

	if (size < WC_FIRST)
		return fxi_error(EINVAL, "port %s: queue %u: completions of %zu bytes: the structure has %zu at least",
				 q->object.port->attr.name, q->shared.number,
				 size, WC_FIRST);
	for (got = 0; got < n; got++) {
		ret = poll_same(q, &wc, 1);
		if (ret <= 0)
			return got ? got : ret;
		fxi_copy_out((char *)to + (size_t)got * size, size, &wc,
			     sizeof(wc));
	}
	return got;
}

EXPORT int fabrex_poll_sized(struct fabrex_queue *q, struct fabrex_wc *wc,
			     int n, size_t size)
{
	if (unlikely(size != sizeof(*wc)))
		return poll_other(q, wc, n, size);
	return poll_same(q, wc, n);
}

EXPORT void fabrex_recv_done(struct fabrex_queue *q, unsigned int n)
{
	uint32_t held = q->rq_next - q->rq_head;

	if (q->shared.direct) {
		fxi_direct_recv_done(q, n);
		return;
	}
	q->rq_head += n < held ? n : held;
	ring_release(&q->ctrl->rq_head, q->rq_head);
}

/* fabrex_poll() would not return 0 for good reason. */
static bool something(struct fabrex_queue *q)
{
	if (q->shared.direct)
		return fxi_direct_something(q);
	return q->stopped || ring_is_dead(q->ctrl) ||
	       ring_cqe_ready(&q->cq[q->cq_head & (q->cq_entries - 1)],
			      q->cq_head, q->cq_entries);
}

EXPORT int fabrex_arm(struct fabrex_queue *q)
{
	NO_CANCEL();
	uint64_t count;

	if (q->efd < 0)
		return fabrex_queue_fd(q);
	/* Signals of the past are answered by the poll that follows. */
	while (read(q->efd, &count, sizeof(count)) > 0)
		;
	if (q->shared.direct)
		fxi_direct_arm(q);
	else
		ring_doorbell(q->doorbell, FABREX_DB_ARM, q->cq_head);
	return 0;
}

/*
 * The port's own descriptor hangs up when the port goes, so that a sleeper
 * wakes even if the queue's last interrupt got lost with the device.
 */
static int sleep_on(struct fabrex_queue *q, uint64_t deadline)
{
	struct fabrex_port *port = q->object.port;
	struct pollfd pfd[2] = {
		{ .fd = q->efd, .events = POLLIN },
		{ .fd = port->ops->event_fd(port->transport), .events = 0 },
	};
	int ret = poll(pfd, 2, fxi_remaining_ms(deadline));

	if (ret > 0 && pfd[1].revents && !something(q))
		return fxi_error(ENODEV, "port %s: queue %u: waiting: the port is gone; close it and open it again when it is back",
				 port->attr.name, q->shared.number);
	if (ret >= 0)
		return ret;
	return fxi_error(errno, "port %s: queue %u: waiting: %s",
			 port->attr.name, q->shared.number,
			 fxi_errno_str(errno));
}

EXPORT int fabrex_wait(struct fabrex_queue *q, int timeout_ms)
{
	uint64_t deadline = fxi_deadline(timeout_ms);
	int ret;

	while (!something(q)) {
		ret = fabrex_arm(q);
		if (ret)
			return ret;
		if (something(q))
			break;
		ret = sleep_on(q, deadline);
		if (ret <= 0)
			return ret;
		if (something(q))
			break;
		if (!fxi_remaining_ms(deadline))
			return 0;
	}
	return 1;
}
