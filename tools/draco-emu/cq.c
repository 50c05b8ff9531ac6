// SPDX-License-Identifier: GPL-2.0-only
/*
 * DMA queues: completions and receive cells. Called by the queue's own worker
 * (run.c), by workers that deliver into it (op.c), and for DB_ARM.
 */
#include <errno.h>
#include <string.h>

#include "port.h"
#include "queue.h"

_Static_assert(offsetof(struct fabrex_cqe, peer) == 24 &&
	       sizeof(struct fabrex_cqe) == 32,
	       "the last eight bytes are stored at once, flags among them");

/*
 * Is there room for one more after @tail, with @held reserved? Believes the
 * last head seen, and looks again when that says full. 1, 0 or -errno.
 */
static int has_room(struct queue *q, size_t head_offset, uint32_t *seen,
		    uint32_t tail, uint32_t held, uint32_t entries)
{
	uint32_t head;

	if (tail - *seen + held < entries)
		return 1;
	if (queue_ctrl_read(q, head_offset, &head))
		return -EFAULT;
	if (tail - head > entries)
		return 0;
	*seen = head;
	return tail - head + held < entries;
}

static int cq_room(struct queue *q)
{
	return has_room(q, offsetof(struct fabrex_qctrl, cq_head), &q->cq_head,
			q->cq_tail, q->reserved, q->cq_entries);
}

static int rq_room(struct queue *q)
{
	return has_room(q, offsetof(struct fabrex_qctrl, rq_head), &q->rq_head,
			q->rq_tail, q->reserved, q->rq_entries);
}

/* cq_lock held */
static void raise_if_armed(struct queue *q)
{
	if (!q->armed || (int32_t)(q->cq_tail - q->arm_head) <= 0)
		return;
	q->armed = false;
	if (q->vector == DRACO_NO_VECTOR)
		return;
	count(&q->counters, CNT_INTERRUPTS);
	port_raise(q->port, q->vector);
}

/* cq_lock held */
static int post(struct queue *q, struct fabrex_cqe *cqe)
{
	uint32_t index = q->cq_tail & (q->cq_entries - 1);
	struct mem m;
	uint64_t last;

	cqe->flags = q->cq_tail & q->cq_entries ? 0 : FABREX_CQE_PHASE;
	if (mem_get(q->port, q->cq + index * sizeof(*cqe), sizeof(*cqe),
		    DMA_PROT_WRITE, &m))
		return -EFAULT;
	if (m.hold.len < sizeof(*cqe)) {
		mem_put(&m);
		return -EFAULT;
	}
	memcpy(m.hold.ptr, cqe, 24);
	memcpy(&last, (char *)cqe + 24, 8);
	atomic_store_explicit((_Atomic uint64_t *)((char *)m.hold.ptr + 24),
			      last, memory_order_release);
	if (mem_put(&m))
		return -EFAULT;
	q->cq_tail++;
	raise_if_armed(q);
	return 0;
}

static void corrupt(struct queue *q, struct fabrex_cqe *cqe)
{
	if (!fault_hit(&q->port->faults, DRACO_FAULT_CORRUPT_COMPLETION,
		       q->number))
		return;
	cqe->user_data ^= 1ull << 17;
	cqe->status ^= 0x40;
}

void queue_complete(struct queue *q, struct fabrex_cqe *cqe)
{
	uint32_t error = FABREX_QERR_NONE;
	int room;

	if (fault_hit(&q->port->faults, DRACO_FAULT_STUCK_COMPLETION,
		      q->number))
		return;
	corrupt(q, cqe);
	pthread_mutex_lock(&q->cq_lock);
	room = cq_room(q);
	if (room < 0 || (room && post(q, cqe)))
		error = FABREX_QERR_RING_FAULT;
	else if (!room)
		error = FABREX_QERR_CQ_OVERRUN;
	pthread_mutex_unlock(&q->cq_lock);
	if (error)
		queue_error(q, error);
}

void queue_arm(struct queue *q, uint32_t cq_head)
{
	pthread_mutex_lock(&q->cq_lock);
	q->armed = true;
	q->arm_head = cq_head;
	if (atomic_load(&q->state) != FABREX_QUEUE_OK)
		q->arm_head = q->cq_tail - 1;
	raise_if_armed(q);
	pthread_mutex_unlock(&q->cq_lock);
}

static unsigned int reserve_locked(struct queue *q, bool *broken)
{
	int room = rq_room(q);

	if (room > 0)
		room = cq_room(q);
	if (room > 0) {
		q->reserved++;
		return FABREX_WC_OK;
	}
	*broken = room < 0;
	return room < 0 ? FABREX_WC_BAD_QUEUE : FABREX_WC_RNR;
}

unsigned int queue_reserve(struct queue *q, bool datagram, uint64_t len)
{
	bool broken = false;
	unsigned int wc;

	if (!q->rq_entries || atomic_load(&q->state) != FABREX_QUEUE_OK)
		return FABREX_WC_BAD_QUEUE;
	if (datagram && len > q->cell_size)
		return FABREX_WC_TOO_LONG;
	pthread_mutex_lock(&q->cq_lock);
	wc = reserve_locked(q, &broken);
	pthread_mutex_unlock(&q->cq_lock);
	if (broken)
		queue_error(q, FABREX_QERR_RING_FAULT);
	return wc;
}

void queue_unreserve(struct queue *q)
{
	pthread_mutex_lock(&q->cq_lock);
	q->reserved--;
	pthread_mutex_unlock(&q->cq_lock);
}

/* cq_lock held */
static int deliver(struct queue *q, const void *payload, uint32_t len,
		   struct fabrex_cqe *cqe)
{
	uint32_t cell = q->rq_tail & (q->rq_entries - 1);

	if (payload && mem_write(q->port, q->rq + (uint64_t)cell * q->cell_size,
				 payload, len))
		return -EFAULT;
	cqe->index = (uint16_t)q->rq_tail;
	cqe->length = len;
	if (post(q, cqe))
		return -EFAULT;
	q->rq_tail++;
	return 0;
}

unsigned int queue_deliver(struct queue *q, const void *payload, uint32_t len,
			   struct fabrex_cqe *cqe)
{
	int err;

	pthread_mutex_lock(&q->cq_lock);
	q->reserved--;
	err = deliver(q, payload, len, cqe);
	pthread_mutex_unlock(&q->cq_lock);
	if (err) {
		queue_error(q, FABREX_QERR_RING_FAULT);
		return FABREX_WC_RFAULT;
	}
	count(&q->counters, CNT_RX_OPS);
	count_add(&q->counters, CNT_RX_BYTES, payload ? len : 0);
	return FABREX_WC_OK;
}
