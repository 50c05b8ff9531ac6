// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queues and regions that move nothing. Queues are reached by their kernel
 * addresses only, as an engine in software does. Called by the core.
 */
#include <linux/errno.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "partial.h"

/* Third word of a doorbell page: complement of the queue's number. */
#define PARTIAL_DB_NUMBER	2

static DEFINE_XARRAY_ALLOC(queues);
static DEFINE_XARRAY_ALLOC(regions);

/**
 * struct partial_queue - a queue
 * @ctrl:     its control page
 * @doorbell: its doorbell page
 */
struct partial_queue {
	struct fabrex_qctrl *ctrl;
	__le32 *doorbell;
};

static bool partial_ring_ok(const struct fabrex_ring_memory *ring, u64 bytes)
{
	return !bytes == !ring->va && ring->size >= bytes;
}

static int partial_queue_create(struct fabrex_port *port,
				const struct fabrex_queue_params *params,
				u32 *number, u64 *key)
{
	struct partial_queue *queue;
	int ret;

	if (!params->doorbell ||
	    !partial_ring_ok(&params->ctrl, sizeof(struct fabrex_qctrl)) ||
	    !partial_ring_ok(&params->sq, (u64)params->sq_entries *
			     sizeof(struct fabrex_sqe)) ||
	    !partial_ring_ok(&params->cq, (u64)params->cq_entries *
			     sizeof(struct fabrex_cqe)) ||
	    !partial_ring_ok(&params->rq, (u64)params->rq_entries *
			     params->cell_size))
		return -EPROTO;
	queue = kzalloc(sizeof(*queue), GFP_KERNEL);
	if (!queue)
		return -ENOMEM;
	queue->ctrl = params->ctrl.va;
	queue->doorbell = params->doorbell;
	ret = xa_alloc(&queues, number, queue, XA_LIMIT(0, PARTIAL_QUEUES - 1),
		       GFP_KERNEL);
	if (ret) {
		kfree(queue);
		return ret == -EBUSY ? -ENOSPC : ret;
	}
	WRITE_ONCE(queue->doorbell[PARTIAL_DB_NUMBER], cpu_to_le32(~*number));
	*key = get_random_u64();
	return 0;
}

/* Tells, in the rings that the process keeps, how far it has rung. */
static int partial_queue_destroy(struct fabrex_port *port, u32 number)
{
	struct partial_queue *queue = xa_erase(&queues, number);

	if (!queue)
		return -ENOENT;
	WRITE_ONCE(queue->ctrl->sq_head,
		   READ_ONCE(queue->doorbell[FABREX_DB_SQ / sizeof(__le32)]));
	kfree(queue);
	return 0;
}

static int partial_mr_create(struct fabrex_port *port,
			     const struct fabrex_mr_params *params, u32 *number,
			     u64 *key)
{
	const struct fabrex_mr_memory *memory = &params->memory;
	int ret;

	if (memory->offset + params->length > memory->to - memory->from)
		return -EPROTO;
	ret = xa_alloc(&regions, number, xa_mk_value(1),
		       XA_LIMIT(0, PARTIAL_MRS - 1), GFP_KERNEL);
	*key = get_random_u64();
	return ret == -EBUSY ? -ENOSPC : ret;
}

/* As a device that takes lists would, and compares them. */
static int partial_mr_pages(struct fabrex_port *port, u32 number,
			    const struct fabrex_mr_memory *memory)
{
	struct fabrex_pages pages;
	u64 addr, size, n = 0;

	fabrex_pages_begin(&pages, memory);
	size = 1ull << pages.shift;
	while (fabrex_pages_next(&pages, &addr)) {
		if (addr & (size - 1))
			return -EPROTO;
		n++;
	}
	return n == pages.count && n * size == memory->to - memory->from &&
	       pages.first == memory->offset ? 0 : -EPROTO;
}

static int partial_mr_destroy(struct fabrex_port *port, u32 number)
{
	return xa_erase(&regions, number) ? 0 : -ENOENT;
}

const struct fabrex_data_ops partial_data_ops = {
	.queue_create = partial_queue_create,
	.queue_destroy = partial_queue_destroy,
	.mr_create = partial_mr_create,
	.mr_pages = partial_mr_pages,
	.mr_destroy = partial_mr_destroy,
};
