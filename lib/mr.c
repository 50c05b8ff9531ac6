// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Memory regions: registration of the caller's memory and memory allocated
 * for the fabric. Public half: fabrex_mr_register(3).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

#define HUGE_SIZE	(2u << 20)

static int check_args(struct fabrex_port *port, const void *addr,
		      size_t length, uint32_t access)
{
	const char *name = port->attr.name;

	if (!addr || !length)
		return fxi_error(EINVAL, "port %s: memory region of %zu bytes at %p: give it an address and a length",
				 name, length, addr);
	if ((uintptr_t)addr + length < (uintptr_t)addr)
		return fxi_error(EINVAL, "port %s: memory region of %zu bytes at %p wraps around the address space; check the length",
				 name, length, addr);
	if (access & ~FABREX_MR_ALL)
		return fxi_error(EINVAL, "port %s: memory region: unknown access rights 0x%x; use FABREX_MR_*",
				 name, access & ~FABREX_MR_ALL);
	return 0;
}

static int check_peers(struct fabrex_port *port, const uint32_t *peers,
		       size_t n)
{
	size_t i;

	if (!peers || !n)
		return fxi_error(EINVAL, "port %s: memory region for no peer at all; list one, or use fabrex_mr_register()",
				 port->attr.name);
	for (i = 0; i < n; i++)
		if (peers[i] >= port->attr.max_peers)
			return fxi_error(EINVAL, "port %s: memory region for peer %u: peer numbers are below %u; see fabrex_peer_find()",
					 port->attr.name, peers[i],
					 port->attr.max_peers);
	return 0;
}

static int mr_create(struct fabrex_port *port,
		     const struct transport_mr *params, struct fabrex_mr **out)
{
	struct fabrex_mr *mr;
	uint32_t id = 0;
	int ret;

	ret = check_args(port, params->addr, params->length, params->access);
	if (ret)
		return ret;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return fxi_error(ENOMEM, "port %s: memory region: out of memory",
				 port->attr.name);
	mr->addr = params->addr;
	mr->length = params->length;
	mr->access = params->access;
	ret = port->ops->mr_register(port->transport, params, &mr->key, &id);
	if (ret) {
		free(mr);
		return ret;
	}
	fxi_object_add(port, &mr->object, OBJECT_MR, id);
	*out = mr;
	return 0;
}

EXPORT int fabrex_mr_register(struct fabrex_port *port, void *addr,
			      size_t length, uint32_t access,
			      struct fabrex_mr **mr)
{
	struct transport_mr params = {
		.addr = addr, .length = length, .access = access,
	};

	return mr_create(port, &params, mr);
}

EXPORT int fabrex_mr_register_for(struct fabrex_port *port, void *addr,
				  size_t length, uint32_t access,
				  const uint32_t *peers, size_t n,
				  struct fabrex_mr **mr)
{
	struct transport_mr params = {
		.addr = addr, .length = length, .access = access,
		.peers = peers, .npeers = n,
	};
	int ret = check_peers(port, peers, n);

	return ret ? ret : mr_create(port, &params, mr);
}

static size_t round_up(size_t value, size_t unit)
{
	return (value + unit - 1) & ~(unit - 1);
}

/* From the pool of huge pages, if the administrator made one. */
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
	 * get the page of zeroes that all of the system shares.
	 */
	madvise(p, *mapped, MADV_POPULATE_WRITE);
	return p;
}

EXPORT int fabrex_mr_alloc(struct fabrex_port *port, size_t length,
			   uint32_t access, struct fabrex_mr **mr)
{
	struct transport_mr params = { .length = length, .access = access };
	size_t mapped = 0;
	int ret;

	if (!length || length > SIZE_MAX / 2)
		return fxi_error(EINVAL, "port %s: cannot allocate %zu bytes; give a length that fits the address space",
				 port->attr.name, length);
	params.addr = alloc_memory(length, &mapped);
	if (!params.addr)
		return fxi_error(ENOMEM, "port %s: no memory for a region of %zu bytes; ask for less or free some",
				 port->attr.name, length);
	ret = mr_create(port, &params, mr);
	if (ret) {
		munmap(params.addr, mapped);
		return ret;
	}
	(*mr)->owned = params.addr;
	(*mr)->owned_length = mapped;
	return 0;
}

EXPORT int fabrex_mr_deregister(struct fabrex_mr *mr)
{
	int ret;

	if (!mr)
		return 0;
	ret = fxi_object_end(&mr->object);
	if (ret < 0)
		return ret;
	if (!ret && mr->owned)
		munmap(mr->owned, mr->owned_length);
	free(mr);
	return 0;
}

EXPORT void *fabrex_mr_addr(const struct fabrex_mr *mr)
{
	return mr->addr;
}

EXPORT size_t fabrex_mr_length(const struct fabrex_mr *mr)
{
	return mr->length;
}

EXPORT uint64_t fabrex_mr_key(const struct fabrex_mr *mr)
{
	return mr->key;
}

EXPORT void fabrex_mr_remote(const struct fabrex_mr *mr,
			     struct fabrex_remote *out)
{
	memset(out, 0, sizeof(*out));
	out->rkey = mr->key;
	out->length = mr->length;
	out->peer = mr->object.port->attr.peer;
	out->generation = mr->object.port->attr.generation;
}
