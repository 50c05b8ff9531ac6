/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Queues: rings in memory that a process shares with the engine, which trusts
 * nothing in them. For op.c, agent.c, worker.c and port.c.
 */
#ifndef _ENGINE_QUEUE_H
#define _ENGINE_QUEUE_H

#include <linux/kref.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "check.h"
#include "engine.h"
#include "guess.h"

/* Keys of peers that a queue knows to be right. */
#define ENGINE_KNOWN	16

struct engine_worker;

/**
 * struct engine_known - what a peer has accepted
 * @epoch: of the wire at that time
 * @peer: its number
 * @rkey: key of a region, or 0
 * @dest: key of a queue, or 0
 */
struct engine_known {
	u32 epoch;
	u16 peer;
	u64 rkey;
	u64 dest;
};

/**
 * struct engine_op - an operation under way
 * @entry:   what it is
 * @index:   count of its entry
 * @ticket:  of a WRITE_IMM
 * @begun:   its own checks are done
 * @over:    nothing more is sent for it
 * @asked:   a peer was
 * @epoch:   of the wire at that time
 * @known:   its keys were known to be right
 * @sent:    bytes for which requests have been made
 * @moved:   a part of it has succeeded
 * @miss:    the peer has nothing with its key
 * @crc:     state of the CRC32C of the payload at the source
 * @status:  FABREX_WC_*: the first that was not OK
 * @waiting: requests without an answer
 *
 * The queue's worker owns it; @moved, @miss, @crc of a READ, @status and @waiting are
 * set by whoever takes answers, before @waiting becomes 0.
 */
struct engine_op {
	struct engine_entry entry;
	u32 index;
	u32 ticket;
	bool begun;
	bool over;
	bool asked;
	u32 epoch;
	bool known;
	u32 sent;
	bool moved;
	bool miss;
	u32 crc;
	u32 status;
	atomic_t waiting;
};

/**
 * struct engine_queue - a queue
 * @gate:      open while others may deliver into it
 * @ref:       of its owner, of calls, and of those who hold cells
 * @rcu:       freed after those that look keys up
 * @engine:    engine
 * @worker:    of its process
 * @node:      in &engine_worker.queues
 * @number:    its number
 * @key:       that senders present
 * @pd:        protection domain
 * @service:   by which peers find it, or 0
 * @serial:    for the core
 * @sq_entries: of the submission ring; a power of two, like the following
 * @cq_entries: of the completion ring
 * @rq_entries: receive cells, or 0
 * @cell_size: bytes of a cell
 * @ctrl:      control page
 * @sq:        submission ring
 * @cq:        completion ring
 * @rq:        cells
 * @doorbell:  doorbell page: a word for each register
 * @bell:      for fabrex_doorbell_park()
 * @state:     FABREX_QUEUE_*
 * @rung:      somebody has touched the parked doorbell
 * @waiting:   requests without an answer, of all operations
 * @idle:      woken when @waiting becomes 0
 * @next:      count of entries taken; the worker's, like the following
 * @done:      count of entries completed
 * @fetched:   the operation at @next has been
 * @stores:    the payload of all that is waited for was stored early, by the
 *             processor
 * @failed:    an operation has, since the last fenced one
 * @watching:  the process need not ring
 * @stuck:     cannot go on before an answer comes, or room
 * @busy_ns:   when there was something to do
 * @budget:    bytes that it may move in this turn
 * @guesser:   keys at peers
 * @known:     keys that were right; nothing else goes ahead of an answer
 * @ops:       operations from @done to @next
 * @cq_lock:   protects the following, against senders
 * @cq_tail:   completions written
 * @rq_tail:   cells used
 * @held:      cells and completions that are reserved
 * @cq_head:   last plausible value seen in @ctrl
 * @rq_head:   likewise
 * @counters:  of the queue
 */
struct engine_queue {
	struct engine_gate gate;
	struct kref ref;
	struct rcu_head rcu;
	struct fabrex_engine *engine;
	struct engine_worker *worker;
	struct list_head node;
	u32 number;
	u64 key;
	u32 pd;
	u64 service;
	u64 serial;
	u32 sq_entries;
	u32 cq_entries;
	u32 rq_entries;
	u32 cell_size;
	struct fabrex_qctrl *ctrl;
	struct fabrex_sqe *sq;
	struct fabrex_cqe *cq;
	void *rq;
	__le32 *doorbell;
	struct fabrex_map *bell;
	u32 state;
	int rung;
	atomic_t waiting;
	wait_queue_head_t idle;

	u32 next;
	u32 done;
	bool fetched;
	bool stores;
	bool failed;
	bool watching;
	bool stuck;
	u64 busy_ns;
	u32 budget;
	struct engine_guesser guesser;
	struct engine_known known[ENGINE_KNOWN];
	struct engine_op ops[ENGINE_DEPTH];

	spinlock_t cq_lock;
	u32 cq_tail;
	u32 rq_tail;
	u32 held;
	u32 cq_head;
	u32 rq_head;
	struct engine_counters counters;
};

static inline struct engine_op *engine_queue_op(struct engine_queue *queue,
						u32 index)
{
	return &queue->ops[index % ENGINE_DEPTH];
}

/* queue.c */
struct engine_queue *
engine_queue_alloc(struct fabrex_engine *engine,
		   const struct fabrex_queue_params *params);
int engine_queue_insert(struct engine_queue *queue);
struct engine_queue *engine_queue_remove(struct fabrex_engine *engine,
					 u32 number);
struct engine_queue *engine_queue_get(struct fabrex_engine *engine, u64 key);
struct engine_queue *engine_queue_serving(struct fabrex_engine *engine,
					  u64 service);
void engine_queue_leave(struct engine_queue *queue);
void engine_queue_hold(struct engine_queue *queue);
void engine_queue_put(struct engine_queue *queue);
void engine_queue_error(struct engine_queue *queue, u32 error);

/* cq.c */
void engine_cq_init(struct engine_queue *queue);
bool engine_cq_complete(struct engine_queue *queue, struct fabrex_cqe *cqe);
void engine_cq_look(struct engine_queue *queue);
u8 engine_cq_reserve(struct engine_queue *queue, bool datagram, u64 length);
void engine_cq_unreserve(struct engine_queue *queue);
u8 engine_cq_deliver(struct engine_queue *queue, const void *payload,
		     u32 bytes, struct fabrex_cqe *cqe);

#endif
