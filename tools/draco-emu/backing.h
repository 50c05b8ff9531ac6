/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory that a client shares: each of its files is mapped once, whole, however
 * many pieces of it the client gives addresses to. Used by dma_map.c.
 */
#ifndef EMU_BACKING_H
#define EMU_BACKING_H

#include <stdbool.h>
#include <stdint.h>

struct backing;

/* The files of one client; the owner's lock covers get and put. */
struct backings {
	struct backing *first;
	uint64_t bytes;
};

/*
 * The mapping in which [offset, offset + len) of fd lies, one reference more.
 * -EBADF not memory (tmpfs, memfd, hugetlbfs), -EINVAL not whole pages of it,
 * -EOVERFLOW the file is shorter, -ENOSPC too much, or from mmap().
 */
int backing_get(struct backings *l, int fd, uint64_t offset, uint64_t len,
		bool write, struct backing **out);
void backing_put(struct backings *l, struct backing *b);

void *backing_at(struct backing *b, uint64_t offset);

/*
 * Whether the client shrank the file: loads are zeros and stores are lost from
 * then on. backing_tell() is true for the first caller that learns of it.
 */
bool backing_bad(struct backing *b);
bool backing_tell(struct backing *b);

#endif
