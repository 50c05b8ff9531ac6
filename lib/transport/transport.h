/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What lies below libfabrex: one table of operations for each way to reach a
 * fabric. Implemented in transport/, called by the rest of lib/, which knows
 * nothing of system calls below.
 */
#ifndef LIB_TRANSPORT_H
#define LIB_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <fabrex/fabrex.h>

struct transport;
struct loop_queue;

struct transport_mr {
	void *addr;			/* of the process, unless dmabuf */
	uint64_t length;
	uint32_t access;		/* FABREX_MR_* of fabrex.h */
	const uint32_t *peers;		/* NULL: every peer */
	size_t npeers;
	bool dmabuf;			/* memory is fd from offset on */
	bool pin;			/* dmabuf: it has to stay in place */
	bool watched;			/* count changes in entry watch */
	const struct fabrex_memory *device; /* addr is in a device's memory */
	int fd;				/* the caller's, not kept */
	uint64_t offset;
	uint32_t watch;
};

/* A queue's shared memory, as offsets into ring, all inside ring_size. */
struct transport_queue {
	uint64_t id;
	uint32_t number;
	uint64_t key;
	void *ring;
	size_t ring_size;
	size_t ctrl_offset;
	size_t sq_offset;
	size_t cq_offset;
	size_t rq_offset;
	void *doorbell;			/* a page */
	struct loop_queue *direct;	/* NULL: the rings above */
};

struct transport_window {
	uint64_t id;
	void *addr;
	size_t length;			/* mapped bytes */
};

struct transport_event {
	uint32_t type;			/* enum fabrex_event_type */
	uint32_t peer;
	uint32_t generation;
	uint32_t error;
	uint64_t id;			/* of the object, 0: none */
	uint64_t time_ns;
};

/*
 * Each returns 0 or a negative errno after setting the error sentence, and
 * leaves nothing behind on failure. All may be called by several threads. An id
 * is never that of an object which has ended, since events and caches know them.
 *
 * @name:          chosen by "name:" before the port's name in fabrex_open()
 * @coherent:      windows are ordinary memory: loads and stores of another
 *                 process' memory, with the processor's order
 * @devices:       @mr_register takes memory of devices by address; otherwise it
 *                 gets the dma-buf of it
 * @open:          @name may be NULL: the first port there is
 * @close:         ends everything the transport still owns
 * @release:       close in the child of a fork: frees this process' resources
 *                 and does not touch the parent's objects
 * @query:         limits and names of the port
 * @peer:          by name, or by number; with @next the first >= @number
 * @mr_register:   pins or otherwise makes memory reachable
 * @watch:         once for each transport: @entries counters, all 0, which
 *                 regions count up when what they reach may have changed.
 *                 -EOPNOTSUPP: this port counts nothing. They live as long as
 *                 the transport
 * @mr_alloc:      optional: memory that peers reach without help; the region
 *                 is registered as by @mr_register with params->addr unset,
 *                 which is set. It is freed by @destroy
 * @mr_find:       optional: region of @mr_alloc that covers the addresses, its
 *                 id, or 0
 * @queue_create:  @efd: signalled when armed and a completion arrives, or -1.
 *                 With queue->direct set there are no rings and no doorbell:
 *                 entries are executed when they are submitted (loopback)
 * @queue_unmap:   after @destroy, or in the child of a fork
 * @window_create: @offset is a multiple of the page size
 * @window_unmap:  as queue_unmap
 * @destroy:       mr, queue or window; returns when it is no longer used
 * @resolve:       queue that offers @service at @peer
 * @counters:      of queue @id, or of the port if 0
 * @event_fd:      polls readable if there is an event, POLLHUP once gone
 * @event_read:    never waits: -EAGAIN if there is none
 */
struct transport_ops {
	const char *name;
	bool devices;
	bool coherent;
	int (*open)(const char *name, struct transport **transport);
	void (*close)(struct transport *transport);
	void (*release)(struct transport *transport);
	int (*query)(struct transport *transport,
		     struct fabrex_port_attr *attr);
	int (*peer)(struct transport *transport, const char *name,
		    uint32_t number, bool next, struct fabrex_peer *peer);
	int (*mr_register)(struct transport *transport,
			   const struct transport_mr *params, uint64_t *key,
			   uint64_t *id);
	int (*watch)(struct transport *transport, uint32_t entries,
		     const uint32_t **counters);
	int (*mr_alloc)(struct transport *transport,
			struct transport_mr *params, uint64_t *key,
			uint64_t *id);
	uint64_t (*mr_find)(struct transport *transport, const void *addr,
			    uint64_t length);
	int (*queue_create)(struct transport *transport,
			    const struct fabrex_queue_attr *attr, int efd,
			    struct transport_queue *queue);
	void (*queue_unmap)(struct transport *transport,
			    struct transport_queue *queue);
	int (*window_create)(struct transport *transport,
			     const struct fabrex_remote *remote,
			     uint64_t offset, uint64_t length, uint32_t access,
			     struct transport_window *window);
	void (*window_unmap)(struct transport *transport,
			     struct transport_window *window);
	int (*destroy)(struct transport *transport, uint64_t id);
	int (*resolve)(struct transport *transport, uint32_t peer,
		       uint64_t service, uint32_t *number, uint64_t *key);
	int (*counters)(struct transport *transport, uint64_t id,
			struct fabrex_stats *stats);
	int (*event_fd)(struct transport *transport);
	int (*event_read)(struct transport *transport,
			  struct transport_event *event);
};

extern const struct transport_ops fxi_transport_kernel;
extern const struct transport_ops fxi_transport_loopback;

/*
 * Ends with NULL; the first is used when no prefix names another. If no port is
 * named and it has none (-ENOENT), the next is tried.
 */
extern const struct transport_ops *const fxi_transports[];

#endif
