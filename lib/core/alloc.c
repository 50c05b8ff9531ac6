// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Host memory allocated for the fabric: huge pages where there are some.
 * Public half: fabrex_mr_alloc(3).
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/internal.h"

#define HUGE_SIZE	(2u << 20)

static size_t round_up(size_t value, size_t unit)
{
	return (value + unit - 1) & ~(unit - 1);
}

/* From the pool of huge pages, if the administrator has set one up. */
static void *alloc_hugetlb(size_t length, size_t *mapped)
{
	void *p;

	*mapped = round_up(length, HUGE_SIZE);
	p = mmap(NULL, *mapped, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

/* Small pages at a huge page boundary, with the advice to merge them. */
static void *alloc_transparent(size_t length, size_t *mapped)
{
	size_t all = round_up(length, HUGE_SIZE) + HUGE_SIZE;
	char *p, *start;

	p = mmap(NULL, all, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	start = (char *)round_up((uintptr_t)p, HUGE_SIZE);
	*mapped = round_up(length, HUGE_SIZE);
	if (start > p)
		munmap(p, (size_t)(start - p));
	if (start + *mapped < p + all)
		munmap(start + *mapped, (size_t)(p + all - start) - *mapped);
	madvise(start, *mapped, MADV_HUGEPAGE);
	return start;
}

static void *alloc_small(size_t length, size_t *mapped)
{
	void *p;

	*mapped = round_up(length, (size_t)sysconf(_SC_PAGESIZE));
	p = mmap(NULL, *mapped, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

static void *alloc_memory(size_t length, size_t *mapped)
{
	void *p = NULL;

	if (length >= HUGE_SIZE) {
		p = alloc_hugetlb(length, mapped);
		if (!p)
			p = alloc_transparent(length, mapped);
	}
	if (!p)
		p = alloc_small(length, mapped);
	if (!p)
		return NULL;
	madvise(p, *mapped, MADV_DONTFORK);
	/*
	 * Real pages before they are pinned: a pin for reading only must not
	 * get the page of zeroes that the whole system shares.
	 */
	madvise(p, *mapped, MADV_POPULATE_WRITE);
	return p;
}

EXPORT int fabrex_mr_alloc(struct fabrex_port *port, size_t length,
			   uint32_t access, struct fabrex_mr **mr)
{
	struct transport_mr params = { .length = length, .access = access };
	const struct fabrex_memory host = { .kind = FABREX_MEMORY_HOST };
	size_t mapped = 0;
	int ret;

	if (!length || length > SIZE_MAX / 2)
		return fxi_error(EINVAL, "port %s: cannot allocate %zu bytes; give a length that fits the address space",
				 port->attr.name, length);
	ret = fxi_mr_check_access(port, access);
	if (ret)
		return ret;
	if (port->ops->mr_alloc)
		return fxi_mr_create(port, &params, &host, mr);
	params.addr = alloc_memory(length, &mapped);
	if (!params.addr)
		return fxi_error(ENOMEM, "port %s: no memory for a region of %zu bytes; ask for less or free some",
				 port->attr.name, length);
	ret = fxi_mr_create(port, &params, &host, mr);
	if (ret) {
		munmap(params.addr, mapped);
		return ret;
	}
	(*mr)->owned = params.addr;
	(*mr)->owned_length = mapped;
	return 0;
}
