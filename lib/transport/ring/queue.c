// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A ring queue's beginning and end, and its table of operations. Called by the
 * transports that map rings.
 */
#include <errno.h>
#include <stdlib.h>

#include "transport/ring/ring.h"

static const struct queue_ops ring_ops = {
	.prep = fxi_ring_prep,
	.submit = fxi_ring_submit,
	.post = fxi_ring_post,
	.post_write = fxi_ring_post_write,
	.post_read = fxi_ring_post_read,
	.post_send = fxi_ring_post_send,
	.poll = fxi_ring_poll,
	.recv_done = fxi_ring_recv_done,
	.pending = fxi_ring_pending,
	.arm = fxi_ring_arm,
};

static bool inside(const struct ring_memory *m, size_t offset, size_t n)
{
	return offset <= m->ring_size && n <= m->ring_size - offset;
}

/* A kernel or device that describes nonsense must not make us write there. */
static int check_memory(const struct fabrex_queue *q,
			const struct fabrex_queue_attr *a,
			const struct ring_memory *m)
{
	const struct fabrex_port *port = q->object.port;

	if (inside(m, m->ctrl_offset, sizeof(struct fabrex_qctrl)) &&
	    inside(m, m->sq_offset,
		   a->sq_entries * sizeof(struct fabrex_sqe)) &&
	    inside(m, m->cq_offset,
		   a->cq_entries * sizeof(struct fabrex_cqe)) &&
	    inside(m, m->rq_offset, (size_t)a->rq_entries * a->cell_size) &&
	    !(m->ctrl_offset % 64) && !(m->sq_offset % 64) &&
	    !(m->cq_offset % 64) && !(m->rq_offset % 64))
		return 0;
	return fxi_error(EPROTO, "port %s: queue %u: rings outside the %zu bytes mapped; library and %s do not match, update the older",
			 port->attr.name, q->number, m->ring_size,
			 port->ops->name);
}

int fxi_ring_init(struct fabrex_queue *queue, const struct fabrex_queue_attr *a,
		  const struct ring_memory *m)
{
	struct ring_queue *q = ring_queue_of(queue);
	char *base = m->ring;
	int ret;

	ret = check_memory(queue, a, m);
	if (ret)
		return ret;
	q->shadow = calloc(a->sq_entries, sizeof(*q->shadow));
	if (!q->shadow)
		return fxi_error(ENOMEM, "port %s: queue of %u entries: out of memory",
				 queue->object.port->attr.name, a->sq_entries);
	q->memory = *m;
	q->ctrl = (struct fabrex_qctrl *)(base + m->ctrl_offset);
	q->sq = (struct fabrex_sqe *)(base + m->sq_offset);
	q->cq = (const struct fabrex_cqe *)(base + m->cq_offset);
	q->rq = (uint8_t *)base + m->rq_offset;
	q->doorbell = m->doorbell;
	q->sq_mask = a->sq_entries - 1;
	q->cq_entries = a->cq_entries;
	q->rq_entries = a->rq_entries;
	q->cell_size = a->cell_size;
	q->limit = a->cq_entries - a->rq_entries;
	if (q->limit > a->sq_entries)
		q->limit = a->sq_entries;
	queue->ops = &ring_ops;
	return 0;
}

void fxi_ring_free(struct fabrex_queue *queue)
{
	free(ring_queue_of(queue)->shadow);
}
