/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The contract between the core and what carries bytes: one table of operations
 * for a transport, and one for its queues. The core owns this header and calls
 * through it; transports (kernel.c, loopback/) implement it and may include the
 * core's headers. Nothing else of lib/transport/ is included outside of it.
 */
#ifndef LIB_TRANSPORT_H
#define LIB_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <fabrex/fabrex.h>

struct transport;

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
 * Each returns 0 or a negative errno after setting the error message, and
 * leaves nothing behind on failure. All may be called by several threads. An id
 * is never that of an object which has ended, since events and caches know
 * them.
 *
 * @name:          chosen by "name:" before the port's name in fabrex_open()
 * @by_name:       it is used only if it was named, never as what there is
 * @coherent:      windows are ordinary memory: loads and stores of another
 *                 process' memory, with the processor's order
 * @unpinned:      a region of host memory is whatever the process has mapped
 *                 there; changes are not counted
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
 * @queue_size:    of the structure that it has for a queue, which begins with
 *                 struct fabrex_queue. The core allocates it, zeroed, at a
 *                 boundary of 64 bytes
 * @queue_create:  with port and efd of @queue set; sets its ops, number and key,
 *                 and @id. @efd is signalled when the queue is armed and a
 *                 completion arrives; -1: nobody sleeps on it
 * @queue_free:    what @queue_create has attached to @queue, after @destroy;
 *                 without @unmap in the child of a fork, which has inherited
 *                 memory of the process but no mappings of the device's
 * @window_create: @offset is a multiple of the page size
 * @window_unmap:  after @destroy; not in the child of a fork
 * @destroy:       mr, queue or window; returns when it is no longer used
 * @resolve:       queue that offers @service at @peer
 * @counters:      of queue @id, or of the port if 0
 * @event_fd:      polls readable if there is an event, POLLHUP once gone
 * @event_read:    never waits: -EAGAIN if there is none
 */
struct transport_ops {
	const char *name;
	bool by_name;
	bool devices;
	bool coherent;
	bool unpinned;
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
	size_t queue_size;
	int (*queue_create)(struct transport *transport,
			    const struct fabrex_queue_attr *attr,
			    struct fabrex_queue *queue, uint64_t *id);
	void (*queue_free)(struct transport *transport,
			   struct fabrex_queue *queue, bool unmap);
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

/*
 * What a queue does, called by one thread at a time. The arguments are those of
 * the public functions, with structures in this library's size and a remote
 * region whose reserved fields are 0; so the core has no more to do than to
 * jump here. Errors are negative errnos with the message set.
 *
 * @prep:       fabrex_prep(3)
 * @submit:     fabrex_submit(3)
 * @post:       fabrex_post(3)
 * @post_write, @post_read, @post_send: fabrex_post_write(3): one operation,
 *              without a structure that describes it
 * @poll:       fabrex_poll(3)
 * @recv_done:  fabrex_recv_done(3)
 * @pending:    @poll would return something else than 0
 * @arm:        the next completion signals the eventfd; what has arrived before
 *              need not, so @pending is asked once more afterwards
 */
struct queue_ops {
	int (*prep)(struct fabrex_queue *queue, const struct fabrex_op *op);
	int (*submit)(struct fabrex_queue *queue);
	int (*post)(struct fabrex_queue *queue, const struct fabrex_op *ops,
		    unsigned int n);
	int (*post_write)(struct fabrex_queue *queue,
			  const struct fabrex_mr *mr, uint64_t offset,
			  const struct fabrex_remote *remote, uint64_t roffset,
			  uint64_t length, uint8_t flags, uint64_t user_data);
	int (*post_read)(struct fabrex_queue *queue, const struct fabrex_mr *mr,
			 uint64_t offset, const struct fabrex_remote *remote,
			 uint64_t roffset, uint64_t length, uint8_t flags,
			 uint64_t user_data);
	int (*post_send)(struct fabrex_queue *queue, uint32_t peer,
			 uint64_t dest_key, const struct fabrex_mr *mr,
			 uint64_t offset, uint64_t length, uint32_t imm,
			 uint64_t user_data);
	int (*poll)(struct fabrex_queue *queue, struct fabrex_wc *wc, int n);
	void (*recv_done)(struct fabrex_queue *queue, unsigned int n);
	bool (*pending)(struct fabrex_queue *queue);
	void (*arm)(struct fabrex_queue *queue);
};

extern const struct transport_ops fxi_transport_kernel;
extern const struct transport_ops fxi_transport_loopback;

/*
 * Ends with NULL; the first is used when no prefix names another. If no port is
 * named and it has none (-ENOENT), the next is tried.
 */
extern const struct transport_ops *const fxi_transports[];

#endif
