/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Unique ids: the address, port and secret of a meeting as bytes, and the socket
 * that waits there until the communicator is created. Called by bootstrap.c;
 * public half: fabrex_unique_id_create(3).
 */
#ifndef LIB_COLL_BOOTSTRAP_UNIQUE_H
#define LIB_COLL_BOOTSTRAP_UNIQUE_H

#include "coll/bootstrap/bootstrap.h"

/* Address and secret of @b from @id. -EINVAL: it is none. */
int fxi_unique_id_read(const struct fabrex_unique_id *id, struct bootstrap *b);
/*
 * The socket of @id, if this rank is to use it: in the process that has made
 * the id the first rank that asks, in a child of it rank 0. -1: another rank's.
 */
int fxi_unique_id_claim(const struct fabrex_unique_id *id, uint32_t rank);

#endif
