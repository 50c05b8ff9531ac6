/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The injected fault "late-access": a store that comes long after its
 * operation, whether or not its region still exists. For copy.c.
 */
#ifndef EMU_LATE_H
#define EMU_LATE_H

#include <stddef.h>
#include <stdint.h>

struct port;

#define LATE_MS	100u

/* Up to 64 bytes of @data once more to bus address @addr of @p, LATE_MS later. */
void late_access(struct port *p, uint64_t addr, const void *data, size_t len);

#endif
