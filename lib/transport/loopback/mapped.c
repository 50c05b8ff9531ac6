// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Is memory mapped, and may this process read or write it? Called by region.c
 * when memory of the process is registered.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "state.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ	22	/* Linux 5.14 */
#define MADV_POPULATE_WRITE	23
#endif
/* Larger regions are not populated in advance. */
#define POPULATE	(64u << 20)

/* One line of the list. False: the search ends with *ok. */
static bool advance(const char *line, bool write, uintptr_t *at, uintptr_t end,
		    bool *ok)
{
	unsigned long long from, to;
	char r, w;

	if (sscanf(line, "%llx-%llx %c%c", &from, &to, &r, &w) != 4 ||
	    to <= *at)
		return true;
	*ok = from <= *at && (write ? w == 'w' : r == 'r');
	*at = (uintptr_t)to;
	return *ok && to < end;
}

/* The system's list of all mappings: slow if there are many. */
static bool listed(uintptr_t start, uintptr_t end, bool write)
{
	FILE *file = fopen("/proc/self/maps", "re");
	char *line = NULL;	/* whole: names of files have any bytes */
	size_t size = 0;
	bool ok = false;

	if (!file)
		return !msync((void *)start, end - start, MS_ASYNC);
	while (getline(&line, &size, file) > 0)
		if (!advance(line, write, &start, end, &ok))
			break;
	free(line);
	fclose(file);
	return ok && start >= end;
}

bool fxi_loop_mapped(const void *addr, uint64_t length, bool write)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)addr & ~(page - 1);
	uintptr_t end = (uintptr_t)addr + length;

	if (end <= start)
		return false;
	end = (end + page - 1) & ~(page - 1);
	if (end - start > POPULATE)
		return listed(start, end, write);
	if (!madvise((void *)start, end - start,
		     write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ))
		return true;
	/* Not permitted, device memory, or unknown to this kernel. */
	return errno == EINVAL && listed(start, end, write);
}
