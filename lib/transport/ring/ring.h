/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Queues as rings in memory shared with a device, by the layout of
 * <linux/fabrex_ring.h>: post.c stores entries, poll.c takes completions. For
 * transports whose device serves such rings; they map the memory.
 */
#ifndef LIB_RING_H
#define LIB_RING_H

#include <linux/fabrex_ring.h>
#include "core/core.h"
#include "transport/ring/access.h"

/* Where the rings are: offsets into @ring, all inside @ring_size. */
struct ring_memory {
	void *ring;
	size_t ring_size;
	size_t ctrl_offset;
	size_t sq_offset;
	size_t cq_offset;
	size_t rq_offset;
	void *doorbell;			/* a page */
};

/* One accepted entry, until it is reported. Never read from shared memory. */
struct ring_shadow {
	uint64_t user_data;
	uint64_t who;			/* as ring_who() */
};

/* Peer and opcode where the last word of a completion has them. */
static inline uint64_t ring_who(uint16_t peer, uint8_t opcode, uint8_t flags)
{
	return peer | (uint64_t)(opcode | (uint32_t)flags << 8) << 32;
}

static inline uint8_t ring_shadow_opcode(const struct ring_shadow *s)
{
	return (uint8_t)(s->who >> 32);
}

static inline uint8_t ring_shadow_flags(const struct ring_shadow *s)
{
	return (uint8_t)(s->who >> 40);
}

/*
 * Indices are free-running. sq_done <= sq_tail <= sq_next: entries below
 * sq_done are reported (or QUIET and successful), those below sq_tail known
 * to the device. limit >= sq_next - sq_done at all times, which is what keeps
 * the completion ring from overrunning: cq_entries - rq_entries at most.
 */
struct ring_queue {
	struct fabrex_queue queue;

	/* posting */
	struct fabrex_sqe *sq __attribute__((aligned(64)));
	struct ring_shadow *shadow;
	struct fabrex_qctrl *ctrl;
	void *doorbell;
	uint32_t sq_mask;
	uint32_t limit;
	uint32_t sq_next;
	uint32_t sq_tail;
	uint32_t sq_done;
	bool stopped;			/* nothing more goes to the device */

	/* polling */
	const struct fabrex_cqe *cq __attribute__((aligned(64)));
	uint8_t *rq;
	uint32_t cq_entries;
	uint32_t cq_head;		/* taken */
	uint32_t rq_entries;
	uint32_t rq_next;		/* cell the next RECV must name */
	uint32_t rq_head;		/* cells given back */
	uint32_t cell_size;
	uint32_t flush_head;		/* stopped: sq_head when it happened */

	/* the rest */
	const char *broken;		/* what the device did wrong, or NULL */
	struct ring_memory memory;	/* the transport's */
};

static inline struct ring_queue *ring_queue_of(struct fabrex_queue *queue)
{
	return container_of(queue, struct ring_queue, queue);
}

/* ---- queue.c: for transports ------------------------------------------- */

/*
 * The queue is ready to post and poll; its number is set already. -EPROTO: the
 * memory is not as described; -ENOMEM.
 */
int fxi_ring_init(struct fabrex_queue *queue,
		  const struct fabrex_queue_attr *attr,
		  const struct ring_memory *memory);
/* Frees what that has allocated; the memory stays the transport's. */
void fxi_ring_free(struct fabrex_queue *queue);

/* ---- post.c, poll.c: queue_ops ----------------------------------------- */

int fxi_ring_prep(struct fabrex_queue *queue, const struct fabrex_op *op);
int fxi_ring_submit(struct fabrex_queue *queue);
int fxi_ring_post(struct fabrex_queue *queue, const struct fabrex_op *ops,
		  unsigned int n);
int fxi_ring_post_write(struct fabrex_queue *queue, const struct fabrex_mr *mr,
			uint64_t offset, const struct fabrex_remote *remote,
			uint64_t roffset, uint64_t length, uint8_t flags,
			uint64_t user_data);
int fxi_ring_post_read(struct fabrex_queue *queue, const struct fabrex_mr *mr,
		       uint64_t offset, const struct fabrex_remote *remote,
		       uint64_t roffset, uint64_t length, uint8_t flags,
		       uint64_t user_data);
int fxi_ring_post_send(struct fabrex_queue *queue, uint32_t peer,
		       uint64_t dest_key, const struct fabrex_mr *mr,
		       uint64_t offset, uint64_t length, uint32_t imm,
		       uint64_t user_data);
int fxi_ring_poll(struct fabrex_queue *queue, struct fabrex_wc *wc, int n);
void fxi_ring_recv_done(struct fabrex_queue *queue, unsigned int n);
bool fxi_ring_pending(struct fabrex_queue *queue);
void fxi_ring_arm(struct fabrex_queue *queue);

/*
 * poll.c, called by post.c: free entries that succeeded quietly. True: there
 * were some.
 */
bool fxi_ring_retire(struct ring_queue *q);
/* The error of a queue that has stopped: -ENETDOWN. */
int fxi_ring_ended(const struct ring_queue *q);

#endif
