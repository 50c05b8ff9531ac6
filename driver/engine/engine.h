/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An engine moves data in place of a device: it polls rings, checks keys and
 * copies, by the rules of docs/draco.md. Backends that have no such device
 * include this file; what carries bytes to a peer is their wire.
 */
#ifndef _FABREX_ENGINE_H
#define _FABREX_ENGINE_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/xarray.h>

#include "backend.h"
#include "gate.h"
#include "message.h"

#define ENGINE_MAX_QUEUES	4096
#define ENGINE_MAX_REGIONS	65536
/* Operations of a queue that are under way at once. */
#define ENGINE_DEPTH		64

struct engine_queue;
struct engine_resolve;
struct fabrex_engine;
struct fabrex_wire;

/**
 * struct fabrex_call - who waits for the answer to a request
 * @queue:   queue of the operation, or NULL
 * @resolve: caller of ->resolve(), or NULL
 * @op:      number of the operation in its queue
 * @at:      first byte of the part
 * @bytes:   of the part
 * @key:     of a region to which the payload may be stored before the request is
 *           served, if the key was right before; or 0
 * @stores:  then only by the processor, whose stores arrive in order
 * @offset:  of the operation in that region
 * @length:  of the operation
 * @place:   of its payload, with @placed
 * @placed:  there is one
 * @marker:  not 0: not the processor has moved the payload
 * @where:   private to the wire, with @direct: where the region has the payload
 * @link:    private to the wire
 * @ask:     private to the wire: where the region is should be asked
 * @direct:  the payload is stored there
 * @lost:    private to the wire: the place must not be used again
 * @read:    the payload comes with the answer
 * @urgent:  it ends something: there is always room soon
 */
struct fabrex_call {
	struct engine_queue *queue;
	struct engine_resolve *resolve;
	u32 op;
	u32 at;
	u32 bytes;
	u64 key;
	u64 offset;
	u64 length;
	u32 place;
	u32 marker;
	u64 where;
	void *link;
	bool ask;
	bool stores;
	bool direct;
	bool placed;
	bool lost;
	bool read;
	bool urgent;
};

/**
 * struct fabrex_wire_ops - what carries messages to one peer and back
 * @reserve: room for one request and, unless @call->bytes fit into it (at most
 *           %ENGINE_INLINE_MAX ever do; those of a READ never), for a payload:
 *           sets @call->place and @call->placed. -EAGAIN: none, and
 *           fabrex_engine_room() follows; -ENOTCONN: the peer is down
 * @cancel:  give it back
 * @put:     store bytes of the payload at @at of the reserved place
 * @draw:    as @put, of memory at a bus address of the channel; of the payload
 *           of an answer, at @place, if @call is NULL. If nothing can be done
 *           with the first bytes, false: the caller does without. NULL: it
 *           always does
 * @settle:  all of the payload was put: its memory is not read any more when this
 *           returns. false: it could not be sent
 * @request: send it, with @data as its payload if none was placed. From now on
 *           the wire has @call, and gives it back with fabrex_engine_answered()
 * @flush:   no more requests follow for now: the peer has to see those sent
 * @poll:    take answers that have arrived, unless somebody does. True: there
 *           were some
 * @wait:    nobody polls: the wire has to take answers when they arrive
 * @reply:   store bytes of the payload of an answer, at @at of @place, which the
 *           peer has named: false if there is no such place. In the end with no
 *           @bytes and at their number, as @settle
 * @link:    or NULL: let the peer store to these @n pages by itself, without a
 *           check of each operation. @where: what it has to be told of byte 0.
 *           NULL: not now; ERR_PTR(): never
 * @unlink:  of what @link has returned: the peer cannot when this returns
 *
 * Requests of one queue arrive in the order in which they were sent; each is
 * answered once. If the link is lost, fabrex_engine_answered() is called for all
 * before it works again.
 *
 * Context: Process; only @draw, @settle, @poll, @reply, @link and @unlink sleep,
 * for a few seconds at most.
 */
struct fabrex_wire_ops {
	int (*reserve)(struct fabrex_wire *wire, struct fabrex_call *call);
	void (*cancel)(struct fabrex_wire *wire, struct fabrex_call *call);
	void (*put)(struct fabrex_wire *wire, const struct fabrex_call *call,
		    u32 at, const void *from, u32 bytes);
	bool (*draw)(struct fabrex_wire *wire, const struct fabrex_call *call,
		     u32 place, u32 at, dma_addr_t from, u32 bytes);
	bool (*settle)(struct fabrex_wire *wire, struct fabrex_call *call);
	void (*request)(struct fabrex_wire *wire,
			const struct fabrex_request *req, const void *data,
			const struct fabrex_call *call);
	void (*flush)(struct fabrex_wire *wire);
	bool (*poll)(struct fabrex_wire *wire);
	void (*wait)(struct fabrex_wire *wire);
	bool (*reply)(struct fabrex_wire *wire, u32 place, u32 at,
		      const void *from, u32 bytes);
	void *(*link)(struct fabrex_wire *wire, u64 key, struct page **pages,
		      u64 n, u64 *where);
	void (*unlink)(struct fabrex_wire *wire, void *link);
};

/**
 * struct fabrex_wire - the way to one peer
 * @ops:        of the backend; NULL of the port's way to itself
 * @engine:     that it belongs to
 * @node:       in &fabrex_engine.list
 * @peer:       number; changes only while it is down
 * @chunk:      most bytes of a part; at least %FABREX_CELL_MAX
 * @up:         the peer can be reached
 * @epoch:      changes each time that it can again
 * @held:       receive cells kept for WRITE_IMMs of the peer, by ticket: struct
 *              engine_queue
 * @nheld:      their number
 * @guesses:    budget of wrong keys of the peer, whose word is not relied on
 * @missed:     its last one
 */
struct fabrex_wire {
	const struct fabrex_wire_ops *ops;
	struct fabrex_engine *engine;
	struct list_head node;
	u32 peer;
	u32 chunk;
	bool up;
	u32 epoch;
	struct xarray held;
	atomic_t nheld;
	atomic64_t guesses;
	u64 missed;
};

#define ENGINE_INLINE_MAX	64
/* Bytes that a worker copies at once where processors do not reach. */
#define ENGINE_BUFFER		(16u << 10)

/* What is done with a piece of a region that is mapped at @va. */
typedef u8 (*engine_piece_fn)(void *ctx, void *va, u32 at, u32 bytes);

/* In place of FABREX_WC_*: the memory of a region does not answer. */
#define ENGINE_NO_MEMORY	0xffu

/**
 * struct fabrex_channel_ops - what copies memory that processors do not reach
 * @device: as &fabrex_data_ops.mr_importer
 * @align:  what @store takes is a multiple of this, at a multiple of it
 * @load:   copy bytes from a bus address of the device into buffers, and call
 *          @fn with each, as for @at and the following bytes of something
 *          larger. 0; %ENGINE_NO_MEMORY; the first result of @fn that is not 0
 * @store:  copy to a bus address; true: it has arrived
 *
 * When @load and @store return, the memory is not accessed any more.
 *
 * Context: Process; sleeps. @load and @store are called inside the gate of a
 * region: they allocate nothing, and take a few seconds at most.
 */
struct fabrex_channel_ops {
	struct device *(*device)(struct fabrex_engine *engine);
	u32 (*align)(struct fabrex_engine *engine);
	u8 (*load)(struct fabrex_engine *engine, dma_addr_t from, u32 at,
		   u32 bytes, engine_piece_fn fn, void *ctx);
	bool (*store)(struct fabrex_engine *engine, dma_addr_t to,
		      const void *from, u32 bytes);
};

/**
 * struct engine_counters - as &struct fabrex_counters
 * @tx_bytes:   sent
 * @rx_bytes:   received
 * @tx_ops:     operations executed
 * @rx_ops:     operations of others
 * @errors:     operations that have failed
 * @doorbells:  times that a process had to wake the engine
 * @crc_errors: found by CHECK
 * @interrupts: eventfds signalled
 */
struct engine_counters {
	atomic64_t tx_bytes;
	atomic64_t rx_bytes;
	atomic64_t tx_ops;
	atomic64_t rx_ops;
	atomic64_t errors;
	atomic64_t doorbells;
	atomic64_t crc_errors;
	atomic64_t interrupts;
};

/**
 * struct fabrex_engine - engine of a port; fabrex_port_priv() of the port
 * @port:       in the core
 * @channel:    of the backend, or NULL: no dma-bufs
 * @peer:       own number
 * @poll_us:    how long idle rings are polled before they are parked
 * @lock:       held while a queue gets its number
 * @workers_lock: innermost; protects @workers, and how many queues each has
 * @workers:    one for each process with queues
 * @starved:    workers wait for room on a wire
 * @regions:    struct engine_region by number; read under RCU
 * @queues:     struct engine_queue by number; read under RCU
 * @next_region: where the search for a free number begins
 * @next_queue: likewise
 * @guesses:    when the budget of wrong keys is full again, see guess.c
 * @self:       the way to the port itself
 * @wires:      to all peers, by number
 * @list:       likewise
 * @counters:   of the port
 */
struct fabrex_engine {
	struct fabrex_port *port;
	const struct fabrex_channel_ops *channel;
	u32 peer;
	u32 poll_us;
	struct mutex lock;
	spinlock_t workers_lock;
	struct list_head workers;
	atomic_t starved;
	struct xarray regions;
	struct xarray queues;
	u32 next_region;
	u32 next_queue;
	atomic64_t guesses;
	struct fabrex_wire self;
	struct fabrex_wire *wires[FABREX_MAX_PEERS];
	struct list_head list;
	struct engine_counters counters;
};

/* port.c: for backends. */
extern const struct fabrex_data_ops fabrex_engine_data_ops;

void fabrex_engine_init(struct fabrex_engine *engine, u32 peer);
void fabrex_engine_exit(struct fabrex_engine *engine);
void fabrex_engine_info(struct fabrex_port_info *info);
void fabrex_engine_add(struct fabrex_engine *engine, struct fabrex_wire *wire);
bool fabrex_engine_connect(struct fabrex_wire *wire, u32 peer);
void fabrex_engine_read_counters(const struct engine_counters *from,
				 struct fabrex_counters *to);

/* agent.c: target side, for wires. */
bool fabrex_engine_serve(struct fabrex_wire *wire,
			 const struct fabrex_request *req, const void *payload,
			 struct fabrex_answer *answer);
void fabrex_engine_forget(struct fabrex_wire *wire);

/* answer.c: initiator side, for wires. */
void fabrex_engine_answered(struct fabrex_wire *wire,
			    const struct fabrex_call *call,
			    const struct fabrex_answer *answer,
			    const void *payload);

/* worker.c: for wires. */
void fabrex_engine_room(struct fabrex_engine *engine);

#endif
