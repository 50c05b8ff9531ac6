/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the handles of the public header are made of, and what transports and
 * collectives may ask of the core besides the public functions. What only the
 * core's own files share is in core/internal.h. Names that are not static begin
 * with fxi_.
 */
#ifndef LIB_CORE_H
#define LIB_CORE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <fabrex/fabrex.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/export.h"
#include "base/sized.h"
#include "transport/transport.h"

enum object_type { OBJECT_MR, OBJECT_QUEUE, OBJECT_WINDOW };

/* Head of everything made from a port; in the port's list, under its lock. */
struct object {
	struct fabrex_port *port;
	struct object *next, *prev;
	enum object_type type;
	uint64_t id;
};

/* What is made of a port's objects, and so has to end before it. */
enum port_user { USER_LISTENER, USER_CONNECT, USER_COMM, PORT_USERS };

struct fabrex_port {
	const struct transport_ops *ops;
	struct transport *transport;
	pid_t pid;			/* who opened it: see port.c, fork */
	struct fabrex_port_attr attr;	/* limits, numbers and names */
	bool closing;			/* objects end even on errors */
	pthread_mutex_t lock;		/* objects, births, users */
	struct object *objects;
	uint32_t users[PORT_USERS];
	pthread_cond_t born;		/* a birth is over */
	struct birth *births;		/* internal.h: a ring, oldest first */
	uint64_t nbirths;		/* so far */
	struct cache *cache;		/* made when first used: cache.c */
};

struct fabrex_mr {
	struct object object;
	uint64_t key;
	void *addr;
	size_t length;
	uint32_t access;
	uint32_t kind;			/* enum fabrex_memory_kind */
	uint64_t allocation;		/* id of it, or 0 */
	struct cached *cached;		/* the cache's, or NULL */
	void *owned;			/* mapping to free, or NULL */
	size_t owned_length;
};

/*
 * A queue, as far as it is the same on all transports. Each has a structure of
 * its own that begins with this one (transport_ops.queue_size).
 */
struct fabrex_queue {
	const struct queue_ops *ops;
	struct object object;
	uint64_t key;
	uint32_t number;
	int efd;			/* eventfd, or -1 */
};

struct fabrex_window {
	struct object object;
	struct transport_window shared;
	volatile void *addr;
	uint32_t access;
};

/* port.c */
/* From now on, and until dropped, the port is not closed. Not in a child. */
void fxi_port_hold(struct fabrex_port *port, enum port_user user);
void fxi_port_drop(struct fabrex_port *port, enum port_user user);
/* By its id at the transport; under the port's lock. NULL: it has ended. */
struct object *fxi_object_find(struct fabrex_port *port, uint64_t id);
/*
 * Take over what the caller has of a structure that may grow; the rest stays as
 * it was. -E2BIG: it is longer than ours, and not 0 there. @what is for the
 * message.
 */
int fxi_copy_in(struct fabrex_port *port, const char *what, void *to,
		size_t known, const void *from, size_t size);


/* queue.c: errors of queues, for transports; messages name port and queue */
/* The caller's operation or structure is wrong: -EINVAL. */
int fxi_queue_invalid(const struct fabrex_queue *queue, const char *why)
	__attribute__((cold));
/* As many entries are outstanding as there can be: -EAGAIN. */
int fxi_queue_full(void) __attribute__((cold));
/* The queue has ended, and everything outstanding was reported: -ENETDOWN. */
int fxi_queue_ended(const struct fabrex_queue *queue, const char *cause)
	__attribute__((cold));

#endif
