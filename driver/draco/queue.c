// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queues: create, destroy, resolve; and counters. Called by the core through
 * the table of operations.
 */
#include "command.h"
#include "controller.h"
#include "decode.h"
#include "draco.h"
#include "exec.h"
#include "ops.h"
#include "table.h"

static int draco_queue_exec(struct draco_dev *dd,
			    const struct fabrex_queue_params *params,
			    struct draco_queue *q, u64 *key)
{
	struct draco_queue_create *raw;
	struct draco_buf buf;
	struct draco_cmd cmd;
	int ret;

	ret = draco_buf_alloc(dd, &buf, sizeof(*raw));
	if (ret)
		return ret;
	raw = buf.va;
	raw->pd = cpu_to_le32(params->pd);
	raw->sq_entries = cpu_to_le32(params->sq_entries);
	raw->cq_entries = cpu_to_le32(params->cq_entries);
	raw->rq_entries = cpu_to_le32(params->rq_entries);
	raw->cell_size = cpu_to_le32(params->cell_size);
	raw->vector = cpu_to_le16(q->vector ? q->vector - dd->vectors :
					      DRACO_NO_VECTOR);
	raw->service = cpu_to_le64(params->service);
	raw->ctrl = cpu_to_le64(params->ctrl.dma);
	raw->sq = cpu_to_le64(params->sq.dma);
	raw->cq = cpu_to_le64(params->cq.dma);
	raw->rq = cpu_to_le64(params->rq.dma);
	raw->serial = cpu_to_le64(params->serial);

	draco_cmd_init(&cmd, DRACO_ADM_QUEUE_CREATE, 0);
	draco_cmd_data(&cmd, &buf, sizeof(*raw));
	cmd.flags = DRACO_CMD_KILLABLE;
	ret = draco_exec(dd, &cmd);
	q->number = le32_to_cpu(cmd.cpl.id);
	*key = le64_to_cpu(cmd.cpl.result);
	draco_buf_free(dd, &buf);
	return ret;
}

/**
 * draco_queue_create() - create a queue
 * @port:   port
 * @params: parameters; the rings are page-aligned and contiguous
 * @number: number of the queue and of its doorbell page
 * @key:    key that senders have to present
 *
 * Context: Process; sleeps, killable.
 * Return: 0; -EADDRINUSE if the service is taken; -ENOSPC if the device has no
 * more queues; -EINTR; -ENODEV; another negative errno
 */
int draco_queue_create(struct fabrex_port *port,
		       const struct fabrex_queue_params *params, u32 *number,
		       u64 *key)
{
	struct draco_dev *dd = fabrex_port_priv(port);
	u32 epoch = READ_ONCE(dd->epoch);
	struct draco_queue *q;
	int ret;

	q = draco_queue_alloc(dd, params->interrupts);
	if (!q)
		return -ENOMEM;
	ret = draco_queue_exec(dd, params, q, key);
	if (ret)
		goto free;
	*number = q->number;
	ret = draco_queue_link(dd, q, epoch);
	if (!ret)
		return 0;
	if (ret == -EPROTO)
		ret = draco_reset_sync(dd, epoch,
				       "it returned an impossible queue number");
free:
	draco_queue_free(dd, q);
	return ret;
}

/**
 * draco_queue_destroy() - destroy a queue
 * @port:   port
 * @number: of the queue
 *
 * Context: Process; sleeps.
 * Return: 0 or -ENODEV; the device no longer accesses the rings
 */
int draco_queue_destroy(struct fabrex_port *port, u32 number)
{
	struct draco_dev *dd = fabrex_port_priv(port);

	if (number >= dd->ident.info.max_queues)
		return -ENOENT;
	/* First, as the device may assign the number again right afterwards. */
	draco_queue_unlink(dd, number);
	return draco_exec_destroy(dd, DRACO_ADM_QUEUE_DESTROY, number);
}

/**
 * draco_resolve() - find a peer's queue by its service
 * @port:    port
 * @peer:    peer number
 * @service: service number
 * @queue:   number of the queue
 * @key:     its key
 *
 * Context: Process; sleeps, killable.
 * Return: 0; -ENOENT if the peer does not offer the service; -EHOSTUNREACH if
 * it is down; another negative errno
 */
int draco_resolve(struct fabrex_port *port, u32 peer, u64 service, u32 *queue,
		  u64 *key)
{
	struct draco_dev *dd = fabrex_port_priv(port);
	struct draco_cmd cmd;
	int ret;

	draco_cmd_init(&cmd, DRACO_ADM_RESOLVE, peer);
	cmd.sqe.arg[0] = cpu_to_le64(service);
	cmd.flags = DRACO_CMD_KILLABLE;
	ret = draco_exec(dd, &cmd);
	if (ret == -EHOSTDOWN || ret == -ENETDOWN)
		return -EHOSTUNREACH;
	if (ret)
		return ret;
	*queue = le32_to_cpu(cmd.cpl.id);
	*key = le64_to_cpu(cmd.cpl.result);
	return 0;
}

static int draco_counters_read(struct draco_dev *dd, u32 id, u64 kind,
			       struct fabrex_counters *counters)
{
	struct draco_counters raw;
	struct draco_buf buf;
	struct draco_cmd cmd;
	int ret;

	ret = draco_buf_alloc(dd, &buf, sizeof(raw));
	if (ret)
		return ret;
	draco_cmd_init(&cmd, DRACO_ADM_GET_COUNTERS, id);
	draco_cmd_data(&cmd, &buf, sizeof(raw));
	cmd.sqe.arg[0] = cpu_to_le64(kind);
	cmd.flags = DRACO_CMD_KILLABLE | DRACO_CMD_QUERY;
	ret = draco_exec(dd, &cmd);
	memcpy(&raw, buf.va, sizeof(raw));
	draco_buf_free(dd, &buf);
	if (!ret)
		draco_decode_counters(&raw, counters);
	return ret;
}

/**
 * draco_queue_counters() - read the counters of a queue
 * @port:     port
 * @number:   of the queue
 * @counters: result, in its out_ members
 *
 * Context: Process; sleeps, killable.
 * Return: 0; -ENOENT if there is no such queue; another negative errno
 */
int draco_queue_counters(struct fabrex_port *port, u32 number,
			 struct fabrex_counters *counters)
{
	return draco_counters_read(fabrex_port_priv(port), number,
				   DRACO_COUNTERS_QUEUE, counters);
}

/**
 * draco_counters() - read the counters of an object
 * @port:     port
 * @id:       object, or 0 for this port
 * @counters: result, in its out_ members
 *
 * Context: Process; sleeps, killable.
 * Return: 0; -ENOENT if there is no such object; another negative errno
 */
int draco_counters(struct fabrex_port *port, u32 id,
		   struct fabrex_counters *counters)
{
	return draco_counters_read(fabrex_port_priv(port), id,
				   DRACO_COUNTERS_OBJECT, counters);
}
