/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Public structures that may grow: the caller passes the size it was compiled
 * with. For all public functions that fill one in; fxi_copy_in() of core/core.h
 * is the other direction.
 */
#ifndef LIB_SIZED_H
#define LIB_SIZED_H

#include <stddef.h>
#include <string.h>

/* Fill in the caller's @size bytes; those beyond the @known ones become 0. */
static inline void fxi_copy_out(void *to, size_t size, const void *from,
				size_t known)
{
	size_t n = size < known ? size : known;

	memcpy(to, from, n);
	memset((char *)to + n, 0, size - n);
}

#endif
