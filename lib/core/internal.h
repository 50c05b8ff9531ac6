/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the core's files share and nobody else calls: the life of objects,
 * registration, the cache, structures of callers.
 */
#ifndef LIB_CORE_INTERNAL_H
#define LIB_CORE_INTERNAL_H

#include "core/core.h"

/* ---- port.c: objects --------------------------------------------------- */

/* An object that the device may know of already, and the list does not. */
struct birth {
	struct birth *next, *prev;
	uint64_t number;
};

/* False in the child of a fork, which must not touch what it inherited. */
bool fxi_port_mine(const struct fabrex_port *port);
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

/* ---- structures of callers --------------------------------------------- */

/* What the first version had of structures that grow; nobody has less. */
#define REMOTE_FIRST	offsetof(struct fabrex_remote, reserved)
#define OP_FIRST	offsetof(struct fabrex_op, reserved)
#define WC_FIRST	offsetof(struct fabrex_wc, reserved)

/* mr.c: takes over a remote region, if all of it is understood. */
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

/* ---- mr.c: regions ----------------------------------------------------- */

int fxi_mr_check_access(struct fabrex_port *port, uint32_t access);
/* All three. */
int fxi_mr_check(struct fabrex_port *port, const void *addr, uint64_t length,
		 uint32_t access);
/*
 * Register what @params describe; @memory is what was found out about it. With
 * neither address nor dma-buf the transport allocates (ops->mr_alloc) and sets
 * the address.
 */
int fxi_mr_create(struct fabrex_port *port, struct transport_mr *params,
		  const struct fabrex_memory *memory, struct fabrex_mr **out);
/* As fxi_mr_create(); exports device memory first. */
int fxi_mr_register(struct fabrex_port *port, struct transport_mr *params,
		    const struct fabrex_memory *memory,
		    struct fabrex_mr **out);

/* ---- cache.c ----------------------------------------------------------- */

/*
 * Give up half of what is unused, or wait while others give up something.
 * False: there was nothing.
 */
bool fxi_cache_make_room(struct fabrex_port *port);
/* After all regions of the port have ended. */
void fxi_cache_free(struct fabrex_port *port);

#endif
