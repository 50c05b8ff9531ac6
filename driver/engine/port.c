// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the core calls, and the beginning and end of an engine. Backends register
 * their ports with fabrex_engine_data_ops.
 */
#include <linux/module.h>
#include <linux/mm.h>

#include "op.h"
#include "region.h"
#include "resolve.h"
#include "worker.h"

/* Give it a worker, a number and a key. */
static int engine_queue_begin(struct engine_queue *queue)
{
	struct fabrex_engine *engine = queue->engine;
	struct engine_worker *worker;
	int ret;

	worker = engine_worker_get(engine, queue->pd);
	if (IS_ERR(worker))
		return PTR_ERR(worker);
	queue->worker = worker;
	mutex_lock(&engine->lock);
	ret = engine_queue_insert(queue);
	mutex_unlock(&engine->lock);
	if (ret)
		engine_worker_put(worker);
	else
		engine_worker_add(worker, queue);
	return ret;
}

static int engine_queue_create(struct fabrex_port *port,
			       const struct fabrex_queue_params *params,
			       u32 *number, u64 *key)
{
	struct engine_queue *queue;
	int ret;

	queue = engine_queue_alloc(fabrex_port_priv(port), params);
	if (!queue)
		return -ENOMEM;
	engine_cq_init(queue);
	ret = engine_queue_begin(queue);
	if (ret) {
		engine_queue_put(queue);
		return ret;
	}
	*number = queue->number;
	*key = queue->key;
	return 0;
}

static int engine_queue_destroy(struct fabrex_port *port, u32 number)
{
	struct fabrex_engine *engine = fabrex_port_priv(port);
	struct engine_queue *queue;

	queue = engine_queue_remove(engine, number);
	if (!queue)
		return -ENOENT;
	engine_worker_remove(queue->worker, queue);
	engine_op_abandon(queue);
	engine_worker_put(queue->worker);
	engine_queue_put(queue);
	return 0;
}

static int engine_queue_counters(struct fabrex_port *port, u32 number,
				 struct fabrex_counters *counters)
{
	struct fabrex_engine *engine = fabrex_port_priv(port);
	struct engine_queue *queue;

	rcu_read_lock();
	queue = xa_load(&engine->queues, number);
	if (queue)
		fabrex_engine_read_counters(&queue->counters, counters);
	rcu_read_unlock();
	return queue ? 0 : -ENOENT;
}

static int engine_port_resolve(struct fabrex_port *port, u32 peer, u64 service,
			       u32 *queue, u64 *key)
{
	return engine_resolve(fabrex_port_priv(port), peer, service, queue,
			      key);
}

static int engine_mr_create(struct fabrex_port *port,
			    const struct fabrex_mr_params *params, u32 *number,
			    u64 *key)
{
	return engine_region_create(fabrex_port_priv(port), params, number,
				    key);
}

static int engine_mr_pages(struct fabrex_port *port, u32 number,
			   const struct fabrex_mr_memory *memory)
{
	return engine_region_supply(fabrex_port_priv(port), number, memory);
}

static int engine_mr_destroy(struct fabrex_port *port, u32 number)
{
	return engine_region_destroy(fabrex_port_priv(port), number);
}

static int engine_mr_invalidate(struct fabrex_port *port, u32 number)
{
	return engine_region_invalidate(fabrex_port_priv(port), number);
}

static struct device *engine_mr_importer(struct fabrex_port *port)
{
	struct fabrex_engine *engine = fabrex_port_priv(port);

	if (!engine->channel)
		return ERR_PTR(-EOPNOTSUPP);
	return engine->channel->device(engine);
}

/* Without windows. */
const struct fabrex_data_ops fabrex_engine_data_ops = {
	.queue_create = engine_queue_create,
	.queue_destroy = engine_queue_destroy,
	.queue_counters = engine_queue_counters,
	.resolve = engine_port_resolve,
	.mr_create = engine_mr_create,
	.mr_pages = engine_mr_pages,
	.mr_invalidate = engine_mr_invalidate,
	.mr_destroy = engine_mr_destroy,
	.mr_importer = engine_mr_importer,
};
FABREX_EXPORT(fabrex_engine_data_ops);

/**
 * fabrex_engine_info() - fill in what the engine determines
 * @info: of the port that is to be allocated
 *
 * Context: Any.
 */
void fabrex_engine_info(struct fabrex_port_info *info)
{
	u8 op;

	info->caps = FABREX_CAP_CHECK;
	for (op = FABREX_OP_NOP; op <= FABREX_OP_SEND; op++)
		info->caps |= FABREX_CAP_OP(op);
	info->max_peers = FABREX_MAX_PEERS;
	info->max_queues = ENGINE_MAX_QUEUES;
	info->max_mrs = ENGINE_MAX_REGIONS;
	info->max_sq = FABREX_SQ_MAX;
	info->max_cq = FABREX_CQ_MAX;
	info->max_rq = FABREX_RQ_MAX;
	info->max_cell = FABREX_CELL_MAX;
	info->max_transfer = ENGINE_MAX_TRANSFER;
	info->doorbell_memory = true;
}
FABREX_EXPORT(fabrex_engine_info);

static void engine_wire_init(struct fabrex_engine *engine,
			     struct fabrex_wire *wire, u32 peer)
{
	wire->engine = engine;
	wire->peer = peer;
	xa_init(&wire->held);
}

/**
 * fabrex_engine_init() - begin
 * @engine: zeroed; &fabrex_engine.port is to be set before the port is registered
 * @peer:   number of the port
 *
 * Context: Process.
 */
void fabrex_engine_init(struct fabrex_engine *engine, u32 peer)
{
	engine->peer = peer;
	mutex_init(&engine->lock);
	spin_lock_init(&engine->workers_lock);
	INIT_LIST_HEAD(&engine->workers);
	INIT_LIST_HEAD(&engine->list);
	xa_init_flags(&engine->regions, XA_FLAGS_ALLOC);
	xa_init_flags(&engine->queues, XA_FLAGS_ALLOC);
	engine_wire_init(engine, &engine->self, peer);
	engine->self.up = true;
	engine->self.epoch = 1;
}
FABREX_EXPORT(fabrex_engine_init);

/**
 * fabrex_engine_add() - begin with a wire, before the port is registered
 * @engine: engine
 * @wire:   the caller has set what is constant; its peer is not known
 *
 * Context: Process.
 */
void fabrex_engine_add(struct fabrex_engine *engine, struct fabrex_wire *wire)
{
	engine_wire_init(engine, wire, FABREX_PEER_NONE);
	list_add_tail(&wire->node, &engine->list);
}
FABREX_EXPORT(fabrex_engine_add);

/**
 * fabrex_engine_connect() - say who is at the other end of a wire
 * @wire: from fabrex_engine_add(); it is down
 * @peer: number
 *
 * Context: Process; one at a time for an engine.
 * Return: false if another wire leads to this peer, or it is the port itself
 */
bool fabrex_engine_connect(struct fabrex_wire *wire, u32 peer)
{
	struct fabrex_engine *engine = wire->engine;

	if (peer == wire->peer)
		return true;
	if (peer >= FABREX_MAX_PEERS || peer == engine->peer ||
	    engine->wires[peer])
		return false;
	if (wire->peer != FABREX_PEER_NONE)
		WRITE_ONCE(engine->wires[wire->peer], NULL);
	wire->peer = peer;
	WRITE_ONCE(engine->wires[peer], wire);
	return true;
}
FABREX_EXPORT(fabrex_engine_connect);

/**
 * fabrex_engine_exit() - end, after the port is unregistered
 * @engine: engine; its wires are down and not used any more
 *
 * Context: Process; sleeps.
 */
void fabrex_engine_exit(struct fabrex_engine *engine)
{
	struct fabrex_wire *wire;

	list_for_each_entry(wire, &engine->list, node)
		fabrex_engine_forget(wire);
	fabrex_engine_forget(&engine->self);
	WARN_ON(!list_empty(&engine->workers) ||
		!xa_empty(&engine->regions) || !xa_empty(&engine->queues));
	xa_destroy(&engine->regions);
	xa_destroy(&engine->queues);
}
FABREX_EXPORT(fabrex_engine_exit);

/**
 * fabrex_engine_read_counters() - read counters
 * @from: of the port or of a queue
 * @to:   result, in its out_ members
 *
 * Context: Any.
 */
void fabrex_engine_read_counters(const struct engine_counters *from,
				 struct fabrex_counters *to)
{
	to->out_tx_bytes = atomic64_read(&from->tx_bytes);
	to->out_rx_bytes = atomic64_read(&from->rx_bytes);
	to->out_tx_ops = atomic64_read(&from->tx_ops);
	to->out_rx_ops = atomic64_read(&from->rx_ops);
	to->out_errors = atomic64_read(&from->errors);
	to->out_host_bytes = to->out_tx_bytes;
	to->out_doorbells = atomic64_read(&from->doorbells);
	to->out_crc_errors = atomic64_read(&from->crc_errors);
	to->out_interrupts = atomic64_read(&from->interrupts);
}
FABREX_EXPORT(fabrex_engine_read_counters);

static int __init engine_init(void)
{
	return engine_workers_init();
}

static void __exit engine_exit(void)
{
	engine_workers_exit();
	/* Some queues and regions may not have been freed yet. */
	rcu_barrier();
}

module_init(engine_init);
module_exit(engine_exit);
FABREX_IMPORT_NS;
MODULE_DESCRIPTION("fabrex: data path in software, for backends without a DMA engine of their own");
MODULE_LICENSE("GPL");
