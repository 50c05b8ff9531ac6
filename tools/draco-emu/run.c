// SPDX-License-Identifier: GPL-2.0-only
/*
 * DMA queues: their turns on the engine. Fetches entries, executes them in
 * order, completes them, and decides whether to go on watching the ring.
 */
#include <string.h>

#include "fabric.h"
#include "port.h"
#include "queue.h"

#define TURN_OPS	64u
#define TURN_BYTES	(1u << 20)
#define LIGHT_OPS	8u
#define LIGHT_BYTES	(32u << 10)
#define SYNC_BYTES	4096u		/* sq_head is stored before such an op */
#define WATCH_MIN_NS	100000u		/* after the last operation */
#define WATCH_MAX_NS	1000000u	/* for a queue that is busy again soon */
#define WAIT_MAX_NS	100000000u	/* then it is looked whether it still is there */

#define STEP_ON		(-1)		/* not an enum run_result: continue */
#define STEP_DRY	(-2)

struct turn {
	bool light;
	bool worked;
	bool head_stale;	/* sq_head is ahead of what the process sees */
	unsigned int ops;
	uint64_t bytes;
};

void queue_kick(struct queue *q)
{
	engine_kick(&q->port->fabric->engine, &q->work);
}

static int fail(struct queue *q, uint32_t error)
{
	queue_error(q, error);
	return RUN_IDLE;
}

static void sync_head(struct queue *q, struct turn *t)
{
	if (!t->head_stale)
		return;
	t->head_stale = false;
	if (queue_ctrl_write(q, offsetof(struct fabrex_qctrl, sq_head),
			     q->sq_head))
		queue_error(q, FABREX_QERR_RING_FAULT);
}

/* How many entries wait: 0 .. sq_entries, or -1 with the queue in ERROR. */
static int64_t waiting(struct queue *q)
{
	uint32_t tail, n;

	if (queue_ctrl_read(q, offsetof(struct fabrex_qctrl, sq_tail), &tail)) {
		queue_error(q, FABREX_QERR_RING_FAULT);
		return -1;
	}
	n = tail - q->sq_head;
	if (n > q->sq_entries) {
		queue_error(q, FABREX_QERR_SQ_INDEX);
		return -1;
	}
	return n;
}

/* Copy entries out of the process's reach; each is read once. */
static int fetch(struct queue *q)
{
	uint32_t index = q->sq_head & (q->sq_entries - 1);
	int64_t n = waiting(q);

	if (n <= 0)
		return n ? RUN_IDLE : STEP_DRY;
	if (n > QUEUE_BATCH)
		n = QUEUE_BATCH;
	if (n > q->sq_entries - index)
		n = q->sq_entries - index;
	if (mem_read(q->port, q->sq + index * 64ull, q->batch, n * 64))
		return fail(q, FABREX_QERR_RING_FAULT);
	q->batch_n = n;
	q->batch_head = 0;
	return STEP_ON;
}

static uint64_t size_of(const struct fabrex_sqe *sqe)
{
	return sqe->opcode == FABREX_OP_WRITE ||
	       sqe->opcode == FABREX_OP_READ ||
	       sqe->opcode == FABREX_OP_WRITE_IMM ? sqe->length : 64;
}

static void count_result(struct queue *q, unsigned int wc)
{
	count(&q->counters, CNT_TX_OPS);
	count(&q->port->counters, CNT_TX_OPS);
	if (wc == FABREX_WC_OK)
		return;
	count(&q->counters, CNT_ERRORS);
	count(&q->port->counters, CNT_ERRORS);
	if (wc == FABREX_WC_DATA) {
		count(&q->counters, CNT_CRC_ERRORS);
		count(&q->port->counters, CNT_CRC_ERRORS);
	}
}

static uint32_t moved(const struct fabrex_sqe *sqe)
{
	if (sqe->opcode == FABREX_OP_NOP)
		return 0;
	if (sqe->opcode == FABREX_OP_FETCH_ADD ||
	    sqe->opcode == FABREX_OP_CMP_SWAP)
		return 8;
	return (uint32_t)sqe->length;
}

static void complete(struct queue *q, unsigned int wc)
{
	const struct fabrex_sqe *sqe = &q->op.sqe;
	bool crc = (sqe->flags & FABREX_SQE_CHECK) &&
		   (wc == FABREX_WC_OK || wc == FABREX_WC_DATA);
	struct fabrex_cqe cqe = {
		.user_data = sqe->user_data,
		.length = wc == FABREX_WC_OK ? moved(sqe) : 0,
		.crc = crc ? q->op.crc : 0,
		.peer = sqe->peer,
		.index = (uint16_t)q->sq_head,
		.opcode = sqe->opcode,
		.status = wc,
	};

	op_end(q);
	count_result(q, wc);
	if (wc != FABREX_WC_OK && wc != FABREX_WC_FENCED)
		q->failed = true;
	if (wc != FABREX_WC_OK || !(sqe->flags & FABREX_SQE_QUIET))
		queue_complete(q, &cqe);
}

/* Take the next entry; the fence's own rule comes before all checks. */
static unsigned int begin(struct queue *q)
{
	bool failed = q->failed;

	op_begin(&q->op, &q->batch[q->batch_head++]);
	q->batch_n--;
	if (!(q->op.sqe.flags & FABREX_SQE_FENCE))
		return FABREX_WC_OK;
	q->failed = false;
	return failed ? FABREX_WC_FENCED : FABREX_WC_OK;
}

static void delay(struct queue *q)
{
	uint64_t latest = engine_now_ns() + WAIT_MAX_NS;

	q->work.due_ns = q->op.wait_until < latest ? q->op.wait_until : latest;
}

static int execute(struct queue *q, struct turn *t)
{
	unsigned int wc = q->op.active ? FABREX_WC_OK : begin(q);
	uint64_t before = q->op.done;

	t->worked = true;
	if (wc == FABREX_WC_OK)
		wc = op_run(q, &q->op, t->bytes);
	before = q->op.done - before;
	t->bytes -= before < t->bytes ? before : t->bytes;
	if (wc == OP_GONE)
		return RUN_IDLE;
	if (wc == OP_YIELD)
		return RUN_MORE;
	if (wc == OP_WAIT) {
		delay(q);
		return RUN_DELAY;
	}
	complete(q, wc);
	q->sq_head++;
	t->head_stale = true;
	if (!q->batch_n)
		sync_head(q, t);
	return STEP_ON;
}

static int step(struct queue *q, struct turn *t)
{
	if (!queue_is_open(q) || !gate_is_open(&q->port->gate))
		return RUN_IDLE;
	if (atomic_load_explicit(&q->state, memory_order_relaxed) !=
	    FABREX_QUEUE_OK) {
		/* The peer's cell that it may have kept is free again. */
		op_end(q);
		return RUN_IDLE;
	}
	if (!q->op.active) {
		uint64_t size;
		int r;

		if (!q->batch_n && (r = fetch(q)) != STEP_ON)
			return r;
		size = size_of(&q->batch[q->batch_head]);
		if (size > SYNC_BYTES)
			sync_head(q, t);
		if (t->light && size > LIGHT_BYTES)
			return RUN_HEAVY;
	} else if (t->light) {
		return RUN_HEAVY;
	}
	if (!t->ops || !t->bytes)
		return RUN_MORE;
	t->ops--;
	return execute(q, t);
}

static int set_watching(struct queue *q, bool on)
{
	q->watching = on;
	return queue_ctrl_write(q, offsetof(struct fabrex_qctrl, db_needed),
				!on);
}

/*
 * Work came by doorbell: how long ago had the watch ended? If not long, a
 * longer one would have saved the doorbell; if long, it is wasted.
 */
static void adapt_watch(struct queue *q, uint64_t now)
{
	uint64_t ns = q->watch_ns;

	ns = now - q->watch_until < 4 * ns ? 2 * ns : ns / 2;
	if (ns < WATCH_MIN_NS)
		ns = WATCH_MIN_NS;
	if (ns > WATCH_MAX_NS)
		ns = WATCH_MAX_NS;
	q->watch_ns = ns;
}

/* No entry left: watch for a while, then have the process ring. */
static int dry(struct queue *q, struct turn *t)
{
	uint64_t now;
	int64_t n;

	throttle_idle(&q->flow);
	if (!t->worked && !q->watching)
		return RUN_IDLE;
	now = engine_now_ns();
	if (t->worked && !q->watching)
		adapt_watch(q, now);
	if (t->worked)
		q->watch_until = now + q->watch_ns;
	if (now < q->watch_until) {
		if (!q->watching && set_watching(q, true))
			return fail(q, FABREX_QERR_RING_FAULT);
		return RUN_WATCH;
	}
	if (set_watching(q, false))
		return fail(q, FABREX_QERR_RING_FAULT);
	atomic_thread_fence(memory_order_seq_cst);
	n = waiting(q);
	if (n <= 0)
		return RUN_IDLE;
	return set_watching(q, true) ? fail(q, FABREX_QERR_RING_FAULT) :
				       RUN_MORE;
}

static enum run_result take_turn(struct queue *q, bool light)
{
	struct turn t = {
		.light = light,
		.ops = light ? LIGHT_OPS : TURN_OPS,
		.bytes = light ? LIGHT_BYTES : TURN_BYTES,
	};
	int r;

	do {
		r = step(q, &t);
	} while (r == STEP_ON);
	if (r == STEP_DRY)
		r = dry(q, &t);
	sync_head(q, &t);
	return r;
}

enum run_result queue_run(struct work *w, bool light)
{
	struct queue *q = (struct queue *)w;
	struct port *p = q->port;
	enum run_result r = RUN_IDLE;
	struct queue *now;

	if (!port_enter(p))
		return RUN_IDLE;
	now = queue_get(p, q->number);
	/* Its place may have been given to a new queue. */
	if (now == q)
		r = take_turn(q, light);
	if (now)
		queue_put(now);
	port_leave(p);
	return r;
}
