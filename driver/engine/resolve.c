// SPDX-License-Identifier: GPL-2.0-only
/* Services: a peer is asked for a queue. Called by port.c. */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/sched/signal.h>

#include "resolve.h"

/* How long to wait for room. */
#define PATIENCE	(5 * HZ)

static int engine_resolve_ask(struct fabrex_wire *wire,
			      const struct fabrex_request *req,
			      struct engine_resolve *resolve)
{
	struct fabrex_call call = { .resolve = resolve };
	unsigned long end = jiffies + PATIENCE;
	int ret;

	init_completion(&resolve->done);
	resolve->answer.status = FABREX_WC_UNREACHABLE;
	while ((ret = wire->ops->reserve(wire, &call)) == -EAGAIN) {
		if (fatal_signal_pending(current))
			return -EINTR;
		if (time_after(jiffies, end))
			return -EAGAIN;
		msleep(1);
	}
	if (ret)
		return -EHOSTUNREACH;
	wire->ops->request(wire, req, NULL, &call);
	wire->ops->flush(wire);
	wire->ops->wait(wire);
	/* The wire does not let this take longer than its patience. */
	wait_for_completion(&resolve->done);
	return 0;
}

/**
 * engine_resolve() - find a queue by its service
 * @engine:  engine
 * @peer:    number
 * @service: service
 * @queue:   result: number of the queue
 * @key:     result: its key
 *
 * Context: Process; sleeps, for as long as the peer takes to answer.
 * Return: 0; -ENOENT if the peer does not offer the service; -EHOSTUNREACH if it
 * is down; -EAGAIN if there is too much to do; -EINTR
 */
int engine_resolve(struct fabrex_engine *engine, u32 peer, u64 service,
		   u32 *queue, u64 *key)
{
	struct fabrex_wire *wire = engine_wire(engine, peer);
	const struct fabrex_request req = {
		.opcode = ENGINE_OP_RESOLVE,
		.length = cpu_to_le64(service),
	};
	struct engine_resolve resolve = {};
	int ret = 0;

	if (!wire)
		return -EHOSTUNREACH;
	if (wire->ops)
		ret = engine_resolve_ask(wire, &req, &resolve);
	else
		fabrex_engine_serve(wire, &req, NULL, &resolve.answer);
	if (ret)
		return ret;
	if (resolve.answer.status == FABREX_WC_UNREACHABLE)
		return -EHOSTUNREACH;
	if (resolve.answer.status)
		return -ENOENT;
	*queue = le32_to_cpu(resolve.answer.number);
	*key = le64_to_cpu(resolve.answer.value);
	return 0;
}
