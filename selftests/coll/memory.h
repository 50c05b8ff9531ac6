/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the buffers of coll-rank are: memory_host.c has them in the host's memory,
 * memory_gpu.c in that of the first visible GPU.
 */
#ifndef COLL_MEMORY_H
#define COLL_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* NULL: there is none. */
void *memory_new(size_t bytes);
/* Between them and ordinary memory. False: it is not there any more. */
bool memory_put(void *to, const void *from, size_t bytes);
bool memory_get(void *to, const void *from, size_t bytes);
/*
 * As a driver that needs the room does: to the host's memory and back, or to
 * another place. False: nothing can be moved here, or not now.
 */
bool memory_move(void *p, bool away);

#endif
