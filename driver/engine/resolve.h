/* SPDX-License-Identifier: GPL-2.0-only */
/* Peers and their services. For port.c, op.c and answer.c. */
#ifndef _ENGINE_RESOLVE_H
#define _ENGINE_RESOLVE_H

#include "engine.h"

/**
 * struct engine_resolve - a caller of ->resolve()
 * @done:   there is an answer
 * @answer: status is %FABREX_WC_UNREACHABLE if there is none to come
 */
struct engine_resolve {
	struct completion done;
	struct fabrex_answer answer;
};

int engine_resolve(struct fabrex_engine *engine, u32 peer, u64 service,
		   u32 *queue, u64 *key);

/* Somebody will sleep until there are answers. */
static inline void engine_wires_wait(struct fabrex_engine *engine)
{
	struct fabrex_wire *wire;

	list_for_each_entry(wire, &engine->list, node)
		wire->ops->wait(wire);
}

/* The way to a peer that can be reached, or NULL. */
static inline struct fabrex_wire *engine_wire(struct fabrex_engine *engine,
					      u32 peer)
{
	struct fabrex_wire *wire;

	if (peer == engine->peer)
		return &engine->self;
	wire = peer < FABREX_MAX_PEERS ? READ_ONCE(engine->wires[peer]) : NULL;
	return wire && READ_ONCE(wire->up) ? wire : NULL;
}

#endif
