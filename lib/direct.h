/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Queues with shared.direct: the thread that submits executes, and completions
 * wait in its own memory. The halves of post.c and poll.c for them; nobody
 * else calls.
 */
#ifndef LIB_DIRECT_H
#define LIB_DIRECT_H

#include <stdbool.h>
#include "internal.h"
#include "transport/loopback/loopback.h"

/*
 * shadow.direct.state of an entry below sq_tail: FABREX_WC_*, and whether its
 * sum is in the entry's imm; or that there is nothing to report.
 */
#define DONE_STATUS	0x3fu
#define DONE_SUM	0x40u
#define DONE_SILENT	0x80u

/*
 * Entry sq_tail has been executed. One that is silent and the oldest is off the
 * books at once.
 */
static inline void direct_done(struct fabrex_queue *q, bool silent)
{
	uint32_t at = q->sq_tail++;

	if (silent && at == q->sq_done)
		q->sq_done++;
	else if (unlikely(q->shared.direct->armed) && !silent)
		fxi_loop_completed(q->shared.direct);
}

/*
 * Executes the operation without making an entry of it, if that can be done
 * now. False: nothing was done; prepare and submit it, which tells why.
 */
static inline bool direct_post(struct fabrex_queue *q,
			       const struct fabrex_op *op)
{
	bool silent = op->flags & FABREX_SQE_QUIET;
	struct shadow *s;

	if (unlikely(q->sq_tail != q->sq_next ||
		     q->sq_next - q->sq_done >= q->limit ||
		     !fxi_loop_plain(q->shared.direct, op)))
		return false;
	s = &q->shadow[q->sq_next++ & q->sq_mask];
	s->user_data = op->user_data;
	s->direct.peer = op->peer;
	s->direct.opcode = op->opcode;
	s->direct.state = silent ? DONE_SILENT : FABREX_WC_OK;
	s->direct.length = (uint32_t)op->length;
	direct_done(q, silent);
	return true;
}

/* Executes what was prepared; their number. */
int fxi_direct_submit(struct fabrex_queue *q);
int fxi_direct_poll(struct fabrex_queue *q, struct fabrex_wc *wc, int n);
/* Take entries that succeeded quietly off the books. True if there were. */
bool fxi_direct_retire(struct fabrex_queue *q);
void fxi_direct_recv_done(struct fabrex_queue *q, unsigned int n);
/* A poll would take something. */
bool fxi_direct_something(struct fabrex_queue *q);
void fxi_direct_arm(struct fabrex_queue *q);

#endif
