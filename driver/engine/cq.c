// SPDX-License-Identifier: GPL-2.0-only
/*
 * Completions, receive cells, and the request of a process to be woken. Called
 * by op.c for own operations, by agent.c for those of others, and by worker.c.
 */
#include "queue.h"

/* Word of the doorbell page. */
#define DB_ARM		(FABREX_DB_ARM / sizeof(__le32))
/* The counts that mean "not armed" are half of all away. */
#define UNARMED		(1u << 31)

/* Is there room for one more after @tail? Believes the last head seen, and looks
 * again if that says that there is none.
 */
static bool engine_has_room(const __le32 *where, u32 *seen, u32 tail, u32 held,
			    u32 entries)
{
	u32 head;

	if (tail - *seen + held < entries)
		return true;
	head = le32_to_cpu(smp_load_acquire(where));
	if (tail - head > entries)
		return false;
	*seen = head;
	return tail - head + held < entries;
}

static bool engine_cq_room(struct engine_queue *q)
{
	return engine_has_room(&q->ctrl->cq_head, &q->cq_head, q->cq_tail,
			       q->held, q->cq_entries);
}

static bool engine_rq_room(struct engine_queue *q)
{
	return engine_has_room(&q->ctrl->rq_head, &q->rq_head, q->rq_tail,
			       q->held, q->rq_entries);
}

/* A store to the page requests one interrupt for a count beyond it. What is
 * stored there afterwards is beyond all counts that are to come soon.
 */
static void engine_cq_raise(struct engine_queue *q, u32 tail)
{
	__le32 *arm = &q->doorbell[DB_ARM], was, is;

	/* The completion is visible before this looks: whoever arms looks at the
	 * ring afterwards.
	 */
	smp_mb();
	was = READ_ONCE(*arm);
	do {
		is = was;
		if ((s32)(tail - le32_to_cpu(is)) <= 0)
			return;
		was = cmpxchg(arm, is, cpu_to_le32(tail + UNARMED - 1));
	} while (was != is);
	atomic64_inc(&q->counters.interrupts);
	atomic64_inc(&q->engine->counters.interrupts);
	fabrex_port_queue_irq(q->engine->port, q->number);
}

/**
 * engine_cq_init() - begin with a doorbell that is not armed
 * @queue: queue
 *
 * Context: Any.
 */
void engine_cq_init(struct engine_queue *queue)
{
	WRITE_ONCE(queue->doorbell[DB_ARM], cpu_to_le32(UNARMED - 1));
}

/**
 * engine_cq_look() - is the process to be woken, as it has armed just now?
 * @queue: queue
 *
 * Context: Any.
 */
void engine_cq_look(struct engine_queue *queue)
{
	u32 tail = READ_ONCE(queue->cq_tail);

	engine_cq_raise(queue, tail);
}

/* cq_lock is held, and there is room. */
static void engine_cq_post(struct engine_queue *q, struct fabrex_cqe *cqe)
{
	struct fabrex_cqe *to = &q->cq[q->cq_tail & (q->cq_entries - 1)];
	u64 last;

	BUILD_BUG_ON(offsetof(struct fabrex_cqe, peer) != 24 ||
		     sizeof(*cqe) != 32);
	cqe->flags = cpu_to_le16(q->cq_tail & q->cq_entries ? 0 :
				 FABREX_CQE_PHASE);
	memcpy(to, cqe, 24);
	memcpy(&last, &cqe->peer, sizeof(last));
	/* The flags, with all that is stored before them. */
	smp_store_release((u64 *)&to->peer, last);
	WRITE_ONCE(q->cq_tail, q->cq_tail + 1);
}

/**
 * engine_cq_complete() - write the completion of an own operation
 * @queue: queue; it is stopped if there is no room
 * @cqe:   completion, but for its flags
 *
 * Context: Process; sleeps.
 * Return: false if there is no room
 */
bool engine_cq_complete(struct engine_queue *queue, struct fabrex_cqe *cqe)
{
	u32 tail = 0;
	bool room;

	spin_lock(&queue->cq_lock);
	room = engine_cq_room(queue);
	if (room) {
		engine_cq_post(queue, cqe);
		tail = queue->cq_tail;
	}
	spin_unlock(&queue->cq_lock);
	if (room)
		engine_cq_raise(queue, tail);
	else
		engine_queue_error(queue, FABREX_QERR_CQ_OVERRUN);
	return room;
}

/**
 * engine_cq_reserve() - keep a cell and a completion for a message
 * @queue:    that was looked up
 * @datagram: its payload goes into the cell
 * @length:   of the payload
 *
 * Context: Any.
 * Return: %FABREX_WC_OK: engine_cq_deliver() or engine_cq_unreserve() has to
 * follow; another FABREX_WC_*
 */
u8 engine_cq_reserve(struct engine_queue *queue, bool datagram, u64 length)
{
	u8 status = FABREX_WC_RNR;

	if (!queue->rq_entries || READ_ONCE(queue->state) != FABREX_QUEUE_OK)
		return FABREX_WC_BAD_QUEUE;
	if (datagram && length > queue->cell_size)
		return FABREX_WC_TOO_LONG;
	spin_lock(&queue->cq_lock);
	if (engine_rq_room(queue) && engine_cq_room(queue)) {
		queue->held++;
		status = FABREX_WC_OK;
	}
	spin_unlock(&queue->cq_lock);
	return status;
}

/**
 * engine_cq_unreserve() - undo engine_cq_reserve()
 * @queue: held
 *
 * Context: Any.
 */
void engine_cq_unreserve(struct engine_queue *queue)
{
	spin_lock(&queue->cq_lock);
	queue->held--;
	spin_unlock(&queue->cq_lock);
}

/**
 * engine_cq_deliver() - write a message's completion, and its payload
 * @queue:   that was looked up; reserved
 * @payload: of a datagram, or NULL
 * @bytes:   of the payload, or that a WRITE_IMM has moved
 * @cqe:     completion, but for its flags, index and length
 *
 * Context: Any.
 * Return: %FABREX_WC_OK; %FABREX_WC_BAD_QUEUE if it has been stopped
 */
u8 engine_cq_deliver(struct engine_queue *queue, const void *payload,
		     u32 bytes, struct fabrex_cqe *cqe)
{
	u32 cell, tail;

	spin_lock(&queue->cq_lock);
	queue->held--;
	if (READ_ONCE(queue->state) != FABREX_QUEUE_OK) {
		spin_unlock(&queue->cq_lock);
		return FABREX_WC_BAD_QUEUE;
	}
	cell = queue->rq_tail & (queue->rq_entries - 1);
	if (payload)
		memcpy(queue->rq + (size_t)cell * queue->cell_size, payload,
		       bytes);
	cqe->index = cpu_to_le16(queue->rq_tail);
	cqe->length = cpu_to_le32(bytes);
	engine_cq_post(queue, cqe);
	queue->rq_tail++;
	tail = queue->cq_tail;
	spin_unlock(&queue->cq_lock);
	engine_cq_raise(queue, tail);
	atomic64_inc(&queue->counters.rx_ops);
	if (payload)
		atomic64_add(bytes, &queue->counters.rx_bytes);
	return FABREX_WC_OK;
}
