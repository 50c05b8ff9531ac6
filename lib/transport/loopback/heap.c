// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * This port's segment: a sparse memfd, and the allocation of ranges with memory
 * behind them, for regions and receive cells. Called by port.c, region.c,
 * queue.c, quiesce.c and join.c (mapping).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "state.h"

#define HEAP_START ((sizeof(struct segment) + LOOP_HUGE - 1) & \
		    ~(uint64_t)(LOOP_HUGE - 1))
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE	25	/* Linux 6.1 */
#endif
#define LARGE	(64ull << 20)	/* from here on free memory is checked first */

static uint64_t round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) & ~(unit - 1);
}

/* ---- mapping ----------------------------------------------------------- */

void *fxi_loop_map(int fd, uint64_t size)
{
	char *p, *start, *all;
	int err;

	all = mmap(NULL, size + LOOP_HUGE, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (all == MAP_FAILED)
		return NULL;
	start = (char *)round_up((uintptr_t)all, LOOP_HUGE);
	p = mmap(start, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		 fd, 0);
	if (p == MAP_FAILED) {
		err = errno;
		munmap(all, size + LOOP_HUGE);
		errno = err;
		return NULL;
	}
	if (start > all)
		munmap(all, (size_t)(start - all));
	munmap(start + size, (size_t)(all + LOOP_HUGE - start));
	/* A core dump would fill the holes. */
	madvise(p, size, MADV_DONTDUMP);
	madvise(p, size, MADV_DONTFORK);
	madvise(p, size, MADV_HUGEPAGE);
	return p;
}

static int map_error(struct transport *t, int err)
{
	return fxi_error(err, "loopback:%s: no room for a segment of %llu bytes of address space: %s; raise the limit (ulimit -v) or set FABREX_LOOPBACK_SIZE",
			 t->fabric, (unsigned long long)t->size,
			 fxi_errno_str(err));
}

/* Peers rely on its not shrinking. */
static int segment_open(struct transport *t)
{
	int err;

	t->fd = memfd_create("fabrex", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (t->fd < 0)
		return fxi_error(errno, "loopback:%s: no memory file: %s; see ulimit -n",
				 t->fabric, fxi_errno_str(errno));
	if (!ftruncate(t->fd, (off_t)t->size) &&
	    !fcntl(t->fd, F_ADD_SEALS,
		   F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return 0;
	err = errno;
	close(t->fd);
	t->fd = -1;
	return fxi_error(err, "loopback:%s: memory file of %llu bytes: %s; set FABREX_LOOPBACK_SIZE",
			 t->fabric, (unsigned long long)t->size,
			 fxi_errno_str(err));
}

int fxi_loop_heap_create(struct transport *t)
{
	struct loop_state *s = t->state;
	int ret;

	t->size = s->settings.size;
	s->free = calloc(1, sizeof(*s->free));
	if (!s->free)
		return fxi_error(ENOMEM, "loopback:%s: out of memory",
				 t->fabric);
	s->free->start = HEAP_START;
	s->free->length = t->size - HEAP_START;
	ret = segment_open(t);
	if (ret)
		return ret;
	t->segment = fxi_loop_map(t->fd, t->size);
	if (!t->segment)
		return map_error(t, errno);
	ret = fxi_loop_heap_back(t, t->segment, LOOP_PAGE);
	if (ret)
		return ret;
	t->segment->version = SEGMENT_VERSION;
	t->segment->number = t->number;
	t->segment->size = t->size;
	t->segment->heap = HEAP_START;
	return 0;
}

void fxi_loop_heap_destroy(struct transport *t, bool unmap)
{
	struct loop_extent *e, *next;

	for (e = t->state->free; e; e = next) {
		next = e->next;
		free(e);
	}
	if (t->segment && unmap)
		munmap(t->segment, t->size);
	if (t->fd >= 0)
		close(t->fd);
}

/* ---- memory behind ranges ---------------------------------------------- */

static int no_memory(struct transport *t, int err, uint64_t length)
{
	return fxi_error(err == ENOSPC ? ENOMEM : err,
			 "loopback:%s: no memory for %llu bytes: %s; ask for less or free some",
			 t->fabric, (unsigned long long)length,
			 fxi_errno_str(err));
}

static int back(struct transport *t, uint64_t offset, uint64_t length)
{
	int ret;

	do {
		ret = fallocate(t->fd, 0, (off_t)offset, (off_t)length);
	} while (ret && errno == EINTR);
	return ret ? -errno : 0;
}

static int punch(struct transport *t, uint64_t offset, uint64_t length)
{
	return fallocate(t->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			 (off_t)offset, (off_t)length);
}

int fxi_loop_heap_back(struct transport *t, const void *start, size_t length)
{
	uint64_t first = (uint64_t)((const char *)start -
				    (const char *)t->segment);
	uint64_t from = first & ~(uint64_t)(LOOP_PAGE - 1);
	uint64_t to = round_up(first + length, LOOP_PAGE);
	int ret = back(t, from, to - from);

	return ret ? no_memory(t, -ret, to - from) : 0;
}

/*
 * Huge pages, where possible: on request the system makes one of a block that
 * has any page at all. Peers then map a block with one fault. The rest gets
 * small pages.
 */
static void fill_huge(struct transport *t, uint64_t offset, uint64_t length)
{
	uint64_t at, end = offset + length / LOOP_HUGE * LOOP_HUGE;

	if (!t->state->settings.huge)
		return;
	for (at = offset; at < end; at += LOOP_HUGE)
		if (back(t, at, LOOP_PAGE))
			return;
	madvise((char *)t->segment + offset, end - offset, MADV_COLLAPSE);
}

/* Allocate memory now: a failure at the first access would be a SIGBUS. */
static int fill(struct transport *t, uint64_t offset, uint64_t length)
{
	char *start = (char *)t->segment + offset;
	int ret;

	if (length >= LARGE && length > fxi_loop_room())
		return -ENOMEM;
	if (length >= LOOP_HUGE)
		fill_huge(t, offset, length);
	ret = back(t, offset, length);
	if (ret)
		punch(t, offset, length);
	else
		madvise(start, length, MADV_POPULATE_WRITE);
	return ret;
}

/* ---- ranges ------------------------------------------------------------ */

/* Cut the range out of the extent that *link points to. */
static bool cut(struct loop_extent **link, uint64_t start, uint64_t length)
{
	struct loop_extent *e = *link, *rest;
	uint64_t end = e->start + e->length;

	if (start > e->start && end > start + length) {
		rest = malloc(sizeof(*rest));
		if (!rest)
			return false;
		rest->start = start + length;
		rest->length = end - rest->start;
		rest->next = e->next;
		e->next = rest;
		e->length = start - e->start;
	} else if (start > e->start) {
		e->length = start - e->start;
	} else if (end > start + length) {
		e->start = start + length;
		e->length = end - e->start;
	} else {
		*link = e->next;
		free(e);
	}
	return true;
}

/* Lowest place first, so that the rest of the file stays a hole. */
static bool find_range(struct loop_state *s, uint64_t length, uint64_t align,
		       uint64_t *offset)
{
	struct loop_extent **link = &s->free;
	uint64_t start;

	for (; *link; link = &(*link)->next) {
		start = round_up((*link)->start, align);
		if (start - (*link)->start > (*link)->length ||
		    (*link)->length - (start - (*link)->start) < length)
			continue;
		*offset = start;
		return cut(link, start, length);
	}
	return false;
}

static void merge(struct loop_extent *e)
{
	struct loop_extent *next = e->next;

	if (!next || e->start + e->length != next->start)
		return;
	e->length += next->length;
	e->next = next->next;
	free(next);
}

/* Without memory for a list entry only the range is lost. */
static void give_range(struct loop_state *s, uint64_t start, uint64_t length)
{
	struct loop_extent **link = &s->free, *prev = NULL, *e;

	while (*link && (*link)->start < start) {
		prev = *link;
		link = &prev->next;
	}
	if (prev && prev->start + prev->length == start) {
		prev->length += length;
		merge(prev);
		return;
	}
	e = malloc(sizeof(*e));
	if (!e)
		return;
	e->start = start;
	e->length = length;
	e->next = *link;
	*link = e;
	merge(e);
}

int fxi_loop_heap_alloc(struct transport *t, uint64_t length, uint64_t *offset)
{
	struct loop_state *s = t->state;
	bool found;
	int ret;

	if (length > t->size)
		goto full;
	length = round_up(length, LOOP_PAGE);
	pthread_mutex_lock(&t->lock);
	found = find_range(s, length,
			   length >= LOOP_HUGE ? LOOP_HUGE : LOOP_PAGE,
			   offset);
	pthread_mutex_unlock(&t->lock);
	if (!found)
		goto full;
	ret = fill(t, *offset, length);
	if (!ret)
		return 0;
	pthread_mutex_lock(&t->lock);
	give_range(s, *offset, length);
	pthread_mutex_unlock(&t->lock);
	return no_memory(t, -ret, length);
full:
	return fxi_error(ENOMEM, "loopback:%s: %llu contiguous bytes are not left in a segment of %llu; free some, or set FABREX_LOOPBACK_SIZE",
			 t->fabric, (unsigned long long)length,
			 (unsigned long long)t->size);
}

/* Give it back to the system first: the next owner finds zeroes. */
void fxi_loop_heap_free(struct transport *t, uint64_t offset, uint64_t length)
{
	length = round_up(length, LOOP_PAGE);
	if (punch(t, offset, length))
		memset((char *)t->segment + offset, 0, length);
	pthread_mutex_lock(&t->lock);
	give_range(t->state, offset, length);
	pthread_mutex_unlock(&t->lock);
}
