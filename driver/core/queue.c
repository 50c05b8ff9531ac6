// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queues: ring memory, service numbers, interrupts to eventfds; counters.
 * Called by file.c for the ioctls, and by res.c.
 *
 * Ring memory consists of pages that the process maps. So it outlives the queue
 * and the device as long as a process has it mapped; the DMA mapping does not.
 */
#include <linux/capability.h>
#include <linux/dma-mapping.h>
#include <linux/net.h>
#include <linux/slab.h>

#include "data.h"
#include "trace.h"

/* Lower service numbers require CAP_NET_BIND_SERVICE. */
#define SERVICE_RESERVED	1024

static struct fabrex_queue *to_queue(struct fabrex_res *res)
{
	return container_of(res, struct fabrex_queue, res);
}

static struct fabrex_qctrl *queue_ctrl(struct fabrex_queue *queue)
{
	return queue->rings->ring[FABREX_PART_CTRL];
}

/* Write the state where the process sees it, and wake the process. */
static void fabrex_queue_tell(struct fabrex_queue *queue, u32 state, u32 error)
{
	struct fabrex_qctrl *ctrl = queue_ctrl(queue);

	if (error)
		WRITE_ONCE(ctrl->error, cpu_to_le32(error));
	/* Whoever sees the state sees the error. */
	smp_store_release(&ctrl->state, cpu_to_le32(state));
	if (queue->eventfd)
		fabrex_eventfd_signal(queue->eventfd);
}

static void fabrex_queue_detach(struct fabrex_res *res)
{
	struct fabrex_queue *queue = to_queue(res);

	if (res->created)
		xa_cmpxchg(&res->port->queues, res->number, queue, NULL, 0);
	if (queue->doorbell)
		fabrex_map_kill(queue->doorbell);
}

static int fabrex_queue_destroy(struct fabrex_res *res)
{
	return res->port->ops->data->queue_destroy(res->port, res->number);
}

static void fabrex_queue_settle(struct fabrex_res *res)
{
	struct fabrex_queue *queue = to_queue(res);
	int i;

	if (!queue->rings)
		return;
	for (i = 0; i < FABREX_PARTS; i++)
		if (queue->mapped & BIT(i))
			dma_unmap_single(res->port->info.dma_dev, queue->dma[i],
					 queue->rings->geo.size[i],
					 DMA_BIDIRECTIONAL);
	queue->mapped = 0;
	if (res->created)
		fabrex_queue_tell(queue, FABREX_QUEUE_DEAD, 0);
}

static void fabrex_queue_fail(struct fabrex_res *res, u32 qerr)
{
	struct fabrex_queue *queue = to_queue(res);
	struct fabrex_event event = {
		.type = FABREX_EVENT_QUEUE_ERROR,
		.id = res->id,
		.error = qerr,
	};

	fabrex_queue_tell(queue, FABREX_QUEUE_ERROR, qerr);
	fabrex_events_push(&res->file->events, &event);
}

static void fabrex_queue_free_rcu(struct rcu_head *rcu)
{
	struct fabrex_queue *queue = container_of(rcu, struct fabrex_queue,
						  rcu);

	if (queue->eventfd)
		eventfd_ctx_put(queue->eventfd);
	kfree(queue);
}

static void fabrex_queue_free(struct fabrex_res *res)
{
	struct fabrex_queue *queue = to_queue(res);

	if (res->lost)
		return;
	fabrex_map_remove(queue->doorbell);
	fabrex_map_remove(queue->rings);
	/* An interrupt may be using it at this moment. */
	call_rcu(&queue->rcu, fabrex_queue_free_rcu);
}

static const struct fabrex_res_ops fabrex_queue_ops = {
	.type = FABREX_RES_QUEUE,
	.detach = fabrex_queue_detach,
	.destroy = fabrex_queue_destroy,
	.settle = fabrex_queue_settle,
	.fail = fabrex_queue_fail,
	.free = fabrex_queue_free,
};

static int fabrex_queue_check(const struct fabrex_port *port,
			      const struct fabrex_queue_create *cmd,
			      struct fabrex_geometry *geo)
{
	const struct fabrex_queue_limits limits = {
		.max_sq = port->info.max_sq,
		.max_cq = port->info.max_cq,
		.max_rq = port->info.max_rq,
		.max_cell = port->info.max_cell,
		.page_size = PAGE_SIZE,
	};

	if (cmd->flags || cmd->__reserved || cmd->eventfd < -1)
		return -EINVAL;
	if (cmd->service && !(port->can & FABREX_CAN_RESOLVE))
		return -EOPNOTSUPP;
	if (cmd->service && cmd->service < SERVICE_RESERVED &&
	    !capable(CAP_NET_BIND_SERVICE))
		return -EACCES;
	return fabrex_geometry_init(geo, &limits, cmd);
}

/* Everything that does not need the device: memory, maps without an address
 * yet.
 */
static int fabrex_queue_prepare(struct fabrex_queue *queue,
				const struct fabrex_queue_create *cmd,
				const struct fabrex_geometry *geo)
{
	struct fabrex_file *file = queue->res.file;
	struct eventfd_ctx *eventfd;
	struct fabrex_map *map;

	if (cmd->eventfd >= 0) {
		eventfd = eventfd_ctx_fdget(cmd->eventfd);
		if (IS_ERR(eventfd))
			return PTR_ERR(eventfd);
		queue->eventfd = eventfd;
	}
	map = fabrex_map_rings(file, geo);
	if (IS_ERR(map))
		return PTR_ERR(map);
	queue->rings = map;
	queue_ctrl(queue)->db_needed = cpu_to_le32(1);
	map = fabrex_map_doorbell(file, file->port->info.doorbell_memory);
	if (IS_ERR(map))
		return PTR_ERR(map);
	queue->doorbell = map;
	return 0;
}

/* Map the rings for DMA, if a device does that; settle undoes this. */
static int fabrex_queue_map(struct fabrex_queue *queue,
			    struct fabrex_queue_params *params)
{
	struct fabrex_ring_memory *parts[FABREX_PARTS] = {
		[FABREX_PART_CTRL] = &params->ctrl,
		[FABREX_PART_SQ] = &params->sq,
		[FABREX_PART_CQ] = &params->cq,
		[FABREX_PART_RQ] = &params->rq,
	};
	struct device *dev = queue->res.port->info.dma_dev;
	struct fabrex_map *rings = queue->rings;
	dma_addr_t addr;
	int i;

	for (i = 0; i < FABREX_PARTS; i++) {
		if (!rings->geo.size[i])
			continue;
		parts[i]->va = rings->ring[i];
		parts[i]->size = rings->geo.size[i];
		if (!dev)
			continue;
		addr = dma_map_single(dev, rings->ring[i], rings->geo.size[i],
				      DMA_BIDIRECTIONAL);
		if (dma_mapping_error(dev, addr))
			return -ENOMEM;
		queue->dma[i] = addr;
		queue->mapped |= BIT(i);
		if (fabrex_dma_need_sync(dev, addr))
			return -EOPNOTSUPP;
		parts[i]->dma = addr;
	}
	return 0;
}

/* Everything that needs the device: DMA addresses, the queue, its number and
 * its doorbell.
 */
static int fabrex_queue_start(struct fabrex_queue *queue,
			      struct fabrex_queue_create *cmd)
{
	struct fabrex_res *res = &queue->res;
	struct fabrex_port *port = res->port;
	const struct fabrex_port_info *info = &port->info;
	struct fabrex_queue_params params = {
		.pd = res->file->pd,
		.sq_entries = cmd->sq_entries,
		.cq_entries = cmd->cq_entries,
		.rq_entries = cmd->rq_entries,
		.cell_size = cmd->cell_size,
		.interrupts = queue->eventfd,
		.service = cmd->service,
		.doorbell = queue->doorbell->ring[0],
		.bell = queue->doorbell,
	};
	phys_addr_t doorbell;
	int ret;

	down_read(&port->registration_lock);
	ret = fabrex_port_usable(port);
	if (!ret)
		ret = fabrex_queue_map(queue, &params);
	if (ret)
		goto made;
	queue->serial = atomic64_inc_return(&port->serials);
	params.serial = queue->serial;
	ret = port->ops->data->queue_create(port, &params, &res->number,
					    &cmd->out_key);
	if (ret)
		goto made;
	res->created = true;
	ret = fabrex_res_insert(res);
	if (!ret && res->number >= info->max_queues)
		ret = -EPROTO;
	/* A number assigned twice would mix up two queues. */
	if (!ret)
		ret = xa_insert(&port->queues, res->number, queue,
				GFP_KERNEL_ACCOUNT);
	if (ret)
		goto made;
	doorbell = info->doorbell_memory ? virt_to_phys(params.doorbell) :
		   info->doorbell_base +
		   (phys_addr_t)res->number * info->doorbell_stride;
	fabrex_map_aim(queue->doorbell, doorbell);
made:
	ret = fabrex_res_made(res, ret);
	up_read(&port->registration_lock);
	return ret;
}

/**
 * fabrex_cmd_queue_create() - FABREX_IOCTL_QUEUE_CREATE
 * @ucmd: ioctl
 *
 * Context: Process; sleeps.
 * Return: as documented in the uapi header
 */
int fabrex_cmd_queue_create(struct fabrex_ucmd *ucmd)
{
	struct fabrex_queue_create *cmd = ucmd->cmd;
	struct fabrex_file *file = ucmd->file;
	struct fabrex_geometry geo;
	struct fabrex_queue *queue;
	int ret;

	ret = fabrex_queue_check(file->port, cmd, &geo);
	if (ret)
		return ret;
	queue = kzalloc(sizeof(*queue), GFP_KERNEL_ACCOUNT);
	if (!queue)
		return -ENOMEM;
	ret = fabrex_res_init(&queue->res, file, &fabrex_queue_ops, 1);
	if (ret) {
		kfree(queue);
		return ret;
	}
	ret = fabrex_queue_prepare(queue, cmd, &geo);
	if (!ret)
		ret = fabrex_queue_start(queue, cmd);
	if (!ret)
		ret = fabrex_map_insert(queue->rings);
	if (!ret)
		ret = fabrex_map_insert(queue->doorbell);
	trace_fabrex_queue_create(&queue->res, cmd, ret);
	if (ret) {
		fabrex_res_discard(&queue->res);
		return ret;
	}
	cmd->out_id = queue->res.id;
	cmd->out_queue = queue->res.number;
	cmd->out_ring_mmap = fabrex_map_offset(queue->rings);
	cmd->out_ring_size = geo.total;
	cmd->out_db_mmap = fabrex_map_offset(queue->doorbell);
	cmd->out_ctrl_offset = geo.offset[FABREX_PART_CTRL];
	cmd->out_sq_offset = geo.offset[FABREX_PART_SQ];
	cmd->out_cq_offset = geo.offset[FABREX_PART_CQ];
	cmd->out_rq_offset = geo.offset[FABREX_PART_RQ];
	return fabrex_res_publish(&queue->res, ucmd);
}

static int fabrex_queue_counters(struct fabrex_file *file, u32 id,
				 struct fabrex_counters *counters)
{
	struct fabrex_port *port = file->port;
	struct fabrex_res *res;
	int ret;

	res = fabrex_res_get(file, id, FABREX_RES_QUEUE);
	if (!res)
		return -ENOENT;
	if (res->dead)
		ret = -EIO;
	else if (!port->ops->data->queue_counters)
		ret = -EOPNOTSUPP;
	else
		ret = port->ops->data->queue_counters(port, res->number,
						      counters);
	fabrex_res_put(res);
	return ret;
}

/**
 * fabrex_cmd_counters() - FABREX_IOCTL_COUNTERS
 * @ucmd: ioctl
 *
 * Context: Process; sleeps.
 * Return: 0; -ENOENT if the file has no such queue; -EOPNOTSUPP if the port has
 * no counters; an error of the backend
 */
int fabrex_cmd_counters(struct fabrex_ucmd *ucmd)
{
	struct fabrex_counters *cmd = ucmd->cmd;
	struct fabrex_file *file = ucmd->file;
	struct fabrex_port *port = file->port;
	struct fabrex_counters counters = {
		.size = cmd->size,
		.id = cmd->id,
	};
	int ret;

	down_read(&port->registration_lock);
	ret = fabrex_port_usable(port);
	if (!ret)
		ret = cmd->id ? fabrex_queue_counters(file, cmd->id, &counters) :
				fabrex_port_counters(port, 0, &counters);
	up_read(&port->registration_lock);
	if (ret)
		return ret;
	counters.size = cmd->size;
	counters.id = cmd->id;
	*cmd = counters;
	return fabrex_respond(ucmd);
}

/**
 * fabrex_cmd_resolve() - FABREX_IOCTL_RESOLVE
 * @ucmd: ioctl
 *
 * Context: Process; sleeps.
 * Return: 0; -ENOENT if the peer does not offer the service; -EHOSTUNREACH if
 * it is down; an error of the backend
 */
int fabrex_cmd_resolve(struct fabrex_ucmd *ucmd)
{
	struct fabrex_port *port = ucmd->file->port;
	struct fabrex_resolve *cmd = ucmd->cmd;
	int ret;

	if (cmd->__reserved || cmd->peer >= port->info.max_peers ||
	    !cmd->service)
		return -EINVAL;
	down_read(&port->registration_lock);
	ret = fabrex_port_usable(port);
	if (!ret)
		ret = port->ops->data->resolve(port, cmd->peer, cmd->service,
					       &cmd->out_queue, &cmd->out_key);
	up_read(&port->registration_lock);
	if (ret == -EHOSTDOWN)
		ret = -EHOSTUNREACH;
	return ret ?: fabrex_respond(ucmd);
}
