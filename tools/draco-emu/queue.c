// SPDX-License-Identifier: GPL-2.0-only
/*
 * DMA queues: life cycle, look-up and errors. The completion side is in cq.c,
 * the turns in run.c.
 */
#include "queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric.h"
#include "key.h"
#include "port.h"

int queue_table_init(struct queue_table *t, uint32_t max)
{
	t->slots = calloc(max, sizeof(*t->slots));
	t->max = max;
	return t->slots ? 0 : -ENOMEM;
}

void queue_table_free(struct queue_table *t)
{
	free(t->slots);
	t->slots = NULL;
	t->max = 0;
}

void queue_ref(struct queue *q)
{
	atomic_fetch_add_explicit(&q->refs, 1, memory_order_relaxed);
}

void queue_unref(struct queue *q)
{
	if (atomic_fetch_sub_explicit(&q->refs, 1, memory_order_acq_rel) != 1)
		return;
	op_end(q);
	pthread_mutex_destroy(&q->cq_lock);
	free(q);
}

static void work_get(struct work *w)
{
	queue_ref((struct queue *)w);
}

static void work_put(struct work *w)
{
	queue_unref((struct queue *)w);
}

static bool pow2(uint32_t v)
{
	return v && !(v & (v - 1));
}

static bool ring_ok(uint64_t addr, uint64_t bytes)
{
	return !(addr & (FABREX_PAGE_SIZE - 1)) && addr <= UINT64_MAX - bytes;
}

static bool valid_sizes(const struct draco_queue_create *c)
{
	if (!pow2(c->sq_entries) || c->sq_entries < FABREX_SQ_MIN ||
	    c->sq_entries > FABREX_SQ_MAX)
		return false;
	if (c->rq_entries && (!pow2(c->rq_entries) ||
			      c->rq_entries > FABREX_RQ_MAX))
		return false;
	if (!c->rq_entries != !c->cell_size)
		return false;
	if (c->cell_size && (!pow2(c->cell_size) ||
			     c->cell_size < FABREX_CELL_MIN ||
			     c->cell_size > FABREX_CELL_MAX))
		return false;
	return pow2(c->cq_entries) && c->cq_entries <= FABREX_CQ_MAX &&
	       c->cq_entries >= c->sq_entries + c->rq_entries;
}

static bool valid_params(const struct draco_queue_create *c)
{
	if (c->flags || !valid_sizes(c))
		return false;
	if (c->vector != DRACO_NO_VECTOR && c->vector >= PORT_MSIX_VECTORS)
		return false;
	if (!c->rq_entries && c->rq)
		return false;
	return ring_ok(c->ctrl, FABREX_PAGE_SIZE) &&
	       ring_ok(c->sq, (uint64_t)c->sq_entries * 64) &&
	       ring_ok(c->cq, (uint64_t)c->cq_entries * 32) &&
	       ring_ok(c->rq, (uint64_t)c->rq_entries * c->cell_size);
}

static struct queue *new_queue(struct port *p, uint32_t number,
			       const struct draco_queue_create *c)
{
	struct queue *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->work.run = queue_run;
	q->work.get = work_get;
	q->work.put = work_put;
	q->port = p;
	q->number = number;
	atomic_store(&q->refs, 1);
	q->pd = c->pd;
	q->sq_entries = c->sq_entries;
	q->cq_entries = c->cq_entries;
	q->rq_entries = c->rq_entries;
	q->cell_size = c->cell_size;
	q->vector = c->vector;
	q->service = c->service;
	q->serial = c->serial;
	q->ctrl = c->ctrl;
	q->sq = c->sq;
	q->cq = c->cq;
	q->rq = c->rq;
	pthread_mutex_init(&q->cq_lock, NULL);
	return q;
}

/* The control page and both ends of each ring have to answer. */
static bool rings_answer(struct port *p, const struct draco_queue_create *c)
{
	uint64_t rq_len = (uint64_t)c->rq_entries * c->cell_size;
	uint64_t v;

	return !mem_read(p, c->ctrl, &v, 8) && !mem_read(p, c->sq, &v, 8) &&
	       !mem_read(p, c->sq + c->sq_entries * 64ull - 8, &v, 8) &&
	       !mem_read(p, c->cq, &v, 8) &&
	       !mem_read(p, c->cq + c->cq_entries * 32ull - 8, &v, 8) &&
	       (!rq_len || (!mem_read(p, c->rq, &v, 8) &&
			    !mem_read(p, c->rq + rq_len - 8, &v, 8)));
}

unsigned int queue_create(struct port *p, const struct draco_queue_create *c,
			  uint32_t *number, uint64_t *key)
{
	struct queue_table *t = &p->queues;
	struct queue *q;
	uint32_t i;

	if (!valid_params(c))
		return DRACO_SC_BAD_FIELD;
	if (c->service && queue_by_service(p, c->service, NULL) != UINT32_MAX)
		return DRACO_SC_BOUND;
	if (!rings_answer(p, c))
		return DRACO_SC_DMA_FAULT;
	for (i = 0; i < t->max && t->slots[i].q; i++)
		;
	if (i == t->max)
		return DRACO_SC_NO_RESOURCE;
	if (!key_new(i, t->max, key))
		return DRACO_SC_INTERNAL;
	q = new_queue(p, i, c);
	if (!q)
		return DRACO_SC_NO_RESOURCE;
	q->key = *key;
	t->slots[i].q = q;
	t->slots[i].dying = false;
	gate_open(&t->slots[i].gate);
	*number = i;
	return DRACO_SC_OK;
}

struct queue_slot *queue_find(struct queue_table *t, uint32_t number)
{
	struct queue_slot *s = number < t->max ? &t->slots[number] : NULL;

	return s && s->q && !s->dying ? s : NULL;
}

void queue_destroy(struct queue_slot *slot)
{
	struct queue *q = slot->q;

	/* Whoever has its number next is not told of its error. */
	event_unreport(q->port, q->number);
	fault_forget_queue(&q->port->faults, q->number);
	slot->q = NULL;
	slot->dying = false;
	guess_end(&q->guesser, &q->port->queue_guesses);
	/* Its work may be asleep and hold it for a while. */
	throttle_release(q->port->fabric, &q->flow);
	queue_unref(q);
}

void queue_reset_all(struct port *p)
{
	for (uint32_t i = 0; i < p->queues.max; i++) {
		struct queue *q = p->queues.slots[i].q;

		if (!q)
			continue;
		op_end(q);
		queue_error(q, FABREX_QERR_RESET);
	}
}

void queue_destroy_all(struct port *p)
{
	for (uint32_t i = 0; i < p->queues.max; i++) {
		gate_close(&p->queues.slots[i].gate);
		if (p->queues.slots[i].q)
			queue_destroy(&p->queues.slots[i]);
	}
}

struct queue *queue_get(struct port *p, uint32_t number)
{
	struct queue_slot *s;

	if (number >= p->queues.max)
		return NULL;
	s = &p->queues.slots[number];
	return gate_enter(&s->gate) ? s->q : NULL;
}

struct queue *queue_get_by_key(struct port *p, uint64_t key)
{
	struct queue *q = queue_get(p, key & key_index_mask(p->queues.max));

	if (!q || q->key == key)
		return q;
	queue_put(q);
	return NULL;
}

void queue_put(struct queue *q)
{
	if (gate_leave(&q->port->queues.slots[q->number].gate))
		port_kick(q->port);
}

bool queue_is_open(struct queue *q)
{
	return gate_is_open(&q->port->queues.slots[q->number].gate);
}

uint32_t queue_by_service(struct port *p, uint64_t service, uint64_t *key)
{
	for (uint32_t i = 0; i < p->queues.max; i++) {
		struct queue *q = queue_get(p, i);
		bool found;

		if (!q)
			continue;
		found = q->service == service;
		if (found && key)
			*key = q->key;
		queue_put(q);
		if (found)
			return i;
	}
	return UINT32_MAX;
}

int queue_ctrl_read(struct queue *q, size_t offset, uint32_t *v)
{
	struct mem m;

	if (mem_get(q->port, q->ctrl + offset, 4, DMA_PROT_READ, &m))
		return -EFAULT;
	*v = atomic_load_explicit((_Atomic uint32_t *)m.hold.ptr,
				  memory_order_acquire);
	return mem_put(&m);
}

int queue_ctrl_write(struct queue *q, size_t offset, uint32_t v)
{
	struct mem m;

	if (mem_get(q->port, q->ctrl + offset, 4, DMA_PROT_WRITE, &m))
		return -EFAULT;
	atomic_store_explicit((_Atomic uint32_t *)m.hold.ptr, v,
			      memory_order_release);
	return mem_put(&m);
}

static void tell_owner(struct queue *q, uint32_t error)
{
	struct draco_event ev = {
		.type = DRACO_EV_QUEUE_ERROR,
		.object = q->number,
		.port = q->port->link->id,
		.state = FABREX_QUEUE_ERROR,
		.arg = { error, q->serial },
	};

	event_report(q->port, q->number, &ev);
}

void queue_error(struct queue *q, uint32_t error)
{
	uint32_t ok = FABREX_QUEUE_OK;

	if (!atomic_compare_exchange_strong(&q->state, &ok,
					    FABREX_QUEUE_ERROR))
		return;
	if (!queue_ctrl_write(q, offsetof(struct fabrex_qctrl, error), error))
		queue_ctrl_write(q, offsetof(struct fabrex_qctrl, state),
				 FABREX_QUEUE_ERROR);
	tell_owner(q, error);
	pthread_mutex_lock(&q->cq_lock);
	if (q->armed && q->vector != DRACO_NO_VECTOR) {
		q->armed = false;
		count(&q->counters, CNT_INTERRUPTS);
		port_raise(q->port, q->vector);
	}
	pthread_mutex_unlock(&q->cq_lock);
}
