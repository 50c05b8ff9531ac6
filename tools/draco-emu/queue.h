/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DMA queues: rings in the host's memory, served by the engine.
 *
 * Locks: queue.cq_lock protects the completion and receive side, which the
 * queue's own worker, senders on other workers and the function's thread (arm)
 * all use; only event_log.lock and engine.lock are taken inside. What is
 * marked "worker" belongs to the turn of the queue's work. The rest does not
 * change after creation. Slots are entered inside port.gate only.
 */
#ifndef EMU_QUEUE_H
#define EMU_QUEUE_H

#include <pthread.h>
#include <stddef.h>

#include <draco/regs.h>

#include "counters.h"
#include "engine.h"
#include "gate.h"
#include "guess.h"
#include "op.h"
#include "throttle.h"

#define QUEUE_BATCH	16	/* entries fetched at once */

struct port;

struct queue {
	struct work work;
	struct port *port;
	uint32_t number;
	_Atomic uint32_t refs;		/* of the table, the engine, reservations */

	uint32_t pd;
	uint64_t key;			/* random above the number */
	uint32_t sq_entries, cq_entries, rq_entries, cell_size;
	uint16_t vector;
	uint64_t service, serial;
	uint64_t ctrl, sq, cq, rq;

	_Atomic uint32_t state;		/* FABREX_QUEUE_OK or ERROR */

	/* worker */
	uint32_t sq_head;
	uint32_t batch_head, batch_n;	/* entries fetched and not executed */
	struct fabrex_sqe batch[QUEUE_BATCH];
	bool failed;			/* an operation did, since the last fence */
	bool watching;			/* db_needed is 0 */
	uint64_t watch_until, watch_ns;
	struct op op;
	struct flow flow;		/* of all its payload */
	struct guesser guesser;		/* of keys at peers */

	pthread_mutex_t cq_lock;
	uint32_t cq_tail, rq_tail, reserved;
	uint32_t cq_head, rq_head;	/* last values seen, plausible ones */
	bool armed;
	uint32_t arm_head;

	struct counters counters;
};

struct queue_slot {
	struct gate gate;
	struct queue *q;		/* read inside the gate */
	bool dying;			/* port's work */
};

struct queue_table {
	struct queue_slot *slots;
	uint32_t max;
};

int queue_table_init(struct queue_table *t, uint32_t max);
void queue_table_free(struct queue_table *t);

/* The port's work. Status DRACO_SC_*. */
unsigned int queue_create(struct port *p, const struct draco_queue_create *c,
			  uint32_t *number, uint64_t *key);
struct queue_slot *queue_find(struct queue_table *t, uint32_t number);
/* After its gate has drained. */
void queue_destroy(struct queue_slot *slot);
/* Port gate drained: all of them to ERROR(RESET), or gone. */
void queue_reset_all(struct port *p);
void queue_destroy_all(struct port *p);

void queue_ref(struct queue *q);
void queue_unref(struct queue *q);

/* Inside the port's gate: the queue, held until queue_put(), or NULL. */
struct queue *queue_get(struct port *p, uint32_t number);
struct queue *queue_get_by_key(struct port *p, uint64_t key);
void queue_put(struct queue *q);
/* Its slot still is open, cheaply: an operation under way should go on. */
bool queue_is_open(struct queue *q);
/* Number of the queue of @p with this service, UINT32_MAX: none. */
uint32_t queue_by_service(struct port *p, uint64_t service, uint64_t *key);

/* Stop with an error, once. Any thread, not with cq_lock. */
void queue_error(struct queue *q, uint32_t error);

/*
 * Completion side (cq.c). queue_complete: of an own operation; takes the queue
 * to ERROR if there is no room. Arm: DB_ARM.
 */
void queue_complete(struct queue *q, struct fabrex_cqe *cqe);
void queue_arm(struct queue *q, uint32_t cq_head);

/*
 * Receive side. Reserve a cell and a completion for @len bytes: FABREX_WC_*;
 * then deliver (or not) exactly once. The caller is inside the queue's gate.
 */
unsigned int queue_reserve(struct queue *q, bool datagram, uint64_t len);
unsigned int queue_deliver(struct queue *q, const void *payload, uint32_t len,
			   struct fabrex_cqe *cqe);
void queue_unreserve(struct queue *q);

/* A 32-bit word of the control page. */
int queue_ctrl_read(struct queue *q, size_t offset, uint32_t *v);
int queue_ctrl_write(struct queue *q, size_t offset, uint32_t v);

/* DB_SQ, and turns of the engine (run.c). */
void queue_kick(struct queue *q);
enum run_result queue_run(struct work *w, bool light);

#endif
