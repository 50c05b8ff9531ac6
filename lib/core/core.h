/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the handles of the public header are made of. For files in lib/ only;
 * names that are not static begin with fxi_.
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

/* An object that the device may know of already, and the list does not. */
struct birth {
	struct birth *next, *prev;
	uint64_t number;
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
	struct birth *births;		/* a ring, oldest first */
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
/* False in the child of a fork, which must not touch what it inherited. */
bool fxi_port_mine(const struct fabrex_port *port);
/* From now on, and until dropped, the port is not closed. Not in a child. */
void fxi_port_hold(struct fabrex_port *port, enum port_user user);
void fxi_port_drop(struct fabrex_port *port, enum port_user user);
/*
 * Around whatever makes an object at the transport, and its addition: events
 * of it may be read by another thread as soon as it is made.
 */
void fxi_birth_begin(struct fabrex_port *port, struct birth *birth);
void fxi_birth_end(struct fabrex_port *port, struct birth *birth);
/* Until all that had begun are over; under the port's lock. */
void fxi_births_wait(struct fabrex_port *port);
void fxi_object_add(struct fabrex_port *port, struct object *object,
		    enum object_type type, uint64_t id);
/*
 * End @object at the transport and take it off the list. 0: the caller now
 * unmaps and frees; 1: the same without unmapping, which this process (child
 * of a fork) does not have; negative: it lives on.
 */
int fxi_object_end(struct object *object);
/* Lookup under the port's lock, which the caller holds. */
struct object *fxi_object_find(struct fabrex_port *port, uint64_t id);
/*
 * Take what the caller has of a structure that grows; the rest stays as it
 * was. -E2BIG: it is longer than ours, and not 0 there.
 */
int fxi_copy_in(struct fabrex_port *port, const char *what, void *to,
		size_t known, const void *from, size_t size);

/* What the first version had of structures that grow; nobody has less. */
#define REMOTE_FIRST	offsetof(struct fabrex_remote, reserved)
#define OP_FIRST	offsetof(struct fabrex_op, reserved)
#define WC_FIRST	offsetof(struct fabrex_wc, reserved)

/* mr.c */
/* Takes over what a caller has of a remote region, if we understand all of it. */
int fxi_remote_read(struct fabrex_port *port, struct fabrex_remote *to,
		    const void *from, size_t size);
/* False: it has to be looked at, by fxi_remote_read(). */
static inline bool remote_plain(const struct fabrex_remote *remote,
				size_t size)
{
	uint64_t flags;

	_Static_assert(offsetof(struct fabrex_remote, reserved) ==
		       offsetof(struct fabrex_remote, flags) + 4, "one word");
	/* A shorter one may end before them. */
	if (size != sizeof(*remote))
		return false;
	memcpy(&flags, (const char *)remote +
		       offsetof(struct fabrex_remote, flags), sizeof(flags));
	return !flags;
}
int fxi_mr_check(struct fabrex_port *port, const void *addr, uint64_t length,
		 uint32_t access);
/* Register what @params say; @memory is what was found out about it. */
int fxi_mr_create(struct fabrex_port *port, const struct transport_mr *params,
		  const struct fabrex_memory *memory, struct fabrex_mr **out);
/* Memory of the transport's own, if it has mr_alloc. */
int fxi_mr_alloc(struct fabrex_port *port, size_t length, uint32_t access,
		 struct fabrex_mr **out);
/* As fxi_mr_create(); exports device memory first. */
int fxi_mr_register(struct fabrex_port *port, struct transport_mr *params,
		    const struct fabrex_memory *memory,
		    struct fabrex_mr **out);

/* cache.c */
/*
 * Give up half of what is unused, or wait while others give up something.
 * False: there was nothing.
 */
bool fxi_cache_make_room(struct fabrex_port *port);
/* After all regions of the port have ended. */
void fxi_cache_free(struct fabrex_port *port);

/* queue.c: errors that name port and queue */
/* The caller's operation or structure is wrong: -EINVAL. */
int fxi_queue_invalid(const struct fabrex_queue *queue, const char *why)
	__attribute__((cold));
/* As many entries are outstanding as there can be: -EAGAIN. */
int fxi_queue_full(void) __attribute__((cold));
/* The queue has ended, and everything outstanding was reported: -ENETDOWN. */
int fxi_queue_ended(const struct fabrex_queue *queue, const char *cause)
	__attribute__((cold));

#endif
