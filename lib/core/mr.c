// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Memory regions: registration of host memory, of device memory through a
 * dma-buf, and of the caller's dma-bufs. Public half: fabrex_mr_register(3).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/internal.h"
#include "memory/memory.h"

int fxi_mr_check_access(struct fabrex_port *port, uint32_t access)
{
	if (access & ~FABREX_MR_ALL)
		return fxi_error(EINVAL, "port %s: memory region: unknown access rights 0x%x; use FABREX_MR_*",
				 port->attr.name, access & ~FABREX_MR_ALL);
	return 0;
}

int fxi_mr_check(struct fabrex_port *port, const void *addr, uint64_t length,
		 uint32_t access)
{
	const char *name = port->attr.name;

	if (!addr || !length)
		return fxi_error(EINVAL, "port %s: memory region of %llu bytes at %p: give it an address and a length",
				 name, (unsigned long long)length, addr);
	if (length > UINTPTR_MAX - (uintptr_t)addr)
		return fxi_error(EINVAL, "port %s: memory region of %llu bytes at %p wraps around the address space; check the length",
				 name, (unsigned long long)length, addr);
	return fxi_mr_check_access(port, access);
}

static int check_peers(struct fabrex_port *port, const uint32_t *peers,
		       size_t n)
{
	size_t i;

	if (!peers || !n)
		return fxi_error(EINVAL, "port %s: memory region for an empty list of peers; list one, or use fabrex_mr_register()",
				 port->attr.name);
	for (i = 0; i < n; i++)
		if (peers[i] >= port->attr.max_peers)
			return fxi_error(EINVAL, "port %s: memory region for peer %u: peer numbers are below %u; see fabrex_peer_find()",
					 port->attr.name, peers[i],
					 port->attr.max_peers);
	return 0;
}

#define MAKE_ROOM_TRIES	20	/* by then the cache is empty */

/*
 * Out of pinned memory, regions or quota, of which the cache may hold some?
 * Pinned device memory counts for RLIMIT_MEMLOCK as host memory does; for a
 * dma-buf that may move, ENOMEM comes from its exporter.
 */
static bool short_of_room(const struct transport_mr *params, int ret)
{
	return ret == -ENOSPC || ret == -EDQUOT ||
	       (ret == -ENOMEM && (!params->dmabuf || params->pin));
}

static int create(struct fabrex_port *port, struct transport_mr *params,
		  struct fabrex_mr *mr)
{
	const struct transport_ops *ops = port->ops;
	struct birth birth;
	uint64_t id = 0;
	int ret;

	fxi_birth_begin(port, &birth);
	if (params->addr || params->dmabuf)
		ret = ops->mr_register(port->transport, params, &mr->key, &id);
	else
		ret = ops->mr_alloc(port->transport, params, &mr->key, &id);
	if (!ret) {
		mr->addr = params->addr;
		fxi_object_add(port, &mr->object, OBJECT_MR, id);
	}
	fxi_birth_end(port, &birth);
	return ret;
}

int fxi_mr_create(struct fabrex_port *port, struct transport_mr *params,
		  const struct fabrex_memory *memory, struct fabrex_mr **out)
{
	struct fabrex_mr *mr = calloc(1, sizeof(*mr));
	int ret, tries = MAKE_ROOM_TRIES;

	if (!mr)
		return fxi_error(ENOMEM, "port %s: memory region: out of memory",
				 port->attr.name);
	mr->length = params->length;
	mr->access = params->access;
	mr->kind = memory->kind;
	mr->allocation = memory->id;
	ret = create(port, params, mr);
	while (short_of_room(params, ret) && tries-- &&
	       fxi_cache_make_room(port))
		ret = create(port, params, mr);
	if (ret) {
		free(mr);
		return ret;
	}
	*out = mr;
	return 0;
}

/* Device memory: through a dma-buf, which need not stay open. */
static int create_device(struct fabrex_port *port, struct transport_mr *params,
			 const struct fabrex_memory *memory,
			 struct fabrex_mr **out)
{
	int ret;

	ret = fxi_memory_export(memory, params->addr, params->length,
				&params->fd, &params->offset);
	if (ret)
		return ret;
	params->dmabuf = true;
	ret = fxi_mr_create(port, params, memory, out);
	close(params->fd);
	return ret;
}

int fxi_mr_register(struct fabrex_port *port, struct transport_mr *params,
		    const struct fabrex_memory *memory, struct fabrex_mr **out)
{
	if (!fxi_memory_is_device(memory->kind))
		return fxi_mr_create(port, params, memory, out);
	if (!port->ops->devices)
		return create_device(port, params, memory, out);
	params->device = memory;
	return fxi_mr_create(port, params, memory, out);
}

static int mr_register(struct fabrex_port *port, struct transport_mr *params,
		       uint32_t kind, struct fabrex_mr **out)
{
	NO_CANCEL();
	struct fabrex_memory memory = { .kind = kind };
	int ret = 0;

	if (kind == FABREX_MEMORY_AUTO || fxi_memory_is_device(kind))
		ret = fxi_memory_find_for_region(params->addr, kind, &memory);
	return ret ? ret : fxi_mr_register(port, params, &memory, out);
}

EXPORT int fabrex_mr_register(struct fabrex_port *port, void *addr,
			      size_t length, uint32_t access,
			      struct fabrex_mr **mr)
{
	struct transport_mr params = {
		.addr = addr, .length = length, .access = access, .pin = true,
	};
	int ret = fxi_mr_check(port, addr, length, access);

	return ret ? ret : mr_register(port, &params, FABREX_MEMORY_AUTO, mr);
}

EXPORT int fabrex_mr_register_for(struct fabrex_port *port, void *addr,
				  size_t length, uint32_t access,
				  const uint32_t *peers, size_t n,
				  struct fabrex_mr **mr)
{
	struct transport_mr params = {
		.addr = addr, .length = length, .access = access, .pin = true,
		.peers = peers, .npeers = n,
	};
	int ret = check_peers(port, peers, n);

	if (!ret)
		ret = fxi_mr_check(port, addr, length, access);
	return ret ? ret : mr_register(port, &params, FABREX_MEMORY_AUTO, mr);
}

/* ---- attributes -------------------------------------------------------- */

static int check_dmabuf(struct fabrex_port *port,
			const struct fabrex_mr_attr *a)
{
	if (!a->length || a->length > SIZE_MAX ||
	    a->offset > UINT64_MAX - a->length)
		return fxi_error(EINVAL, "port %s: memory region of %llu bytes at %llu of a dma-buf: use a range inside the dma-buf",
				 port->attr.name,
				 (unsigned long long)a->length,
				 (unsigned long long)a->offset);
	return fxi_mr_check_access(port, a->access);
}

static int check_attr(struct fabrex_port *port, const struct fabrex_mr_attr *a)
{
	const char *name = port->attr.name;
	size_t i;

	if (a->kind > FABREX_MEMORY_CUDA)
		return fxi_error(EINVAL, "port %s: memory region of unknown kind %u; use FABREX_MEMORY_*",
				 name, a->kind);
	if (a->flags & FABREX_MR_MAY_MOVE && a->kind == FABREX_MEMORY_HOST)
		return fxi_error(EINVAL, "port %s: memory region at %p: host memory cannot move; leave out FABREX_MR_MAY_MOVE",
				 name, a->addr);
	if (a->flags & ~FABREX_MR_MAY_MOVE)
		return fxi_error(EINVAL, "port %s: memory region: unknown flags 0x%x; use FABREX_MR_MAY_MOVE",
				 name, a->flags & ~FABREX_MR_MAY_MOVE);
	for (i = 0; i < sizeof(a->reserved) / sizeof(*a->reserved); i++)
		if (a->reserved[i])
			return fxi_error(EINVAL, "port %s: memory region: reserved[%zu] is not 0; clear the structure first",
					 name, i);
	if (!a->peers && a->npeers)
		return fxi_error(EINVAL, "port %s: memory region for %llu peers, but none listed; set peers, or npeers to 0",
				 name, (unsigned long long)a->npeers);
	if (a->kind == FABREX_MEMORY_DMABUF)
		return check_dmabuf(port, a);
	if (a->fd > 0 || a->offset)
		return fxi_error(EINVAL, "port %s: memory region of kind %u with a file descriptor or offset; use FABREX_MEMORY_DMABUF, or set both to 0",
				 name, a->kind);
	return fxi_mr_check(port, a->addr, a->length, a->access);
}

EXPORT int fabrex_mr_register_attr(struct fabrex_port *port,
				   const struct fabrex_mr_attr *attr,
				   size_t size, struct fabrex_mr **mr)
{
	struct fabrex_mr_attr a = { 0 };
	struct transport_mr params = { 0 };
	int ret;

	ret = fxi_copy_in(port, "memory region", &a, sizeof(a), attr, size);
	if (!ret)
		ret = check_attr(port, &a);
	if (!ret && a.peers)
		ret = check_peers(port, a.peers, a.npeers);
	if (ret)
		return ret;
	params.addr = a.addr;
	params.length = a.length;
	params.access = a.access;
	params.peers = a.peers;
	params.npeers = a.npeers;
	params.dmabuf = a.kind == FABREX_MEMORY_DMABUF;
	params.pin = !(a.flags & FABREX_MR_MAY_MOVE);
	params.fd = a.fd;
	params.offset = a.offset;
	return mr_register(port, &params, a.kind, mr);
}

EXPORT int fabrex_mr_deregister(struct fabrex_mr *mr)
{
	int ret;

	if (!mr)
		return 0;
	if (mr->cached && !mr->object.port->closing)
		return fxi_error(EBUSY, "port %s: region of %zu bytes at %p belongs to the cache; use fabrex_mr_cache_put()",
				 mr->object.port->attr.name, mr->length,
				 mr->addr);
	ret = fxi_object_end(&mr->object);
	if (ret < 0)
		return ret;
	if (!ret && mr->owned)
		munmap(mr->owned, mr->owned_length);
	free(mr->cached);
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

EXPORT int fabrex_mr_kind(const struct fabrex_mr *mr)
{
	return (int)mr->kind;
}

EXPORT uint64_t fabrex_mr_key(const struct fabrex_mr *mr)
{
	return mr->key;
}

EXPORT void fabrex_mr_remote_sized(const struct fabrex_mr *mr,
				   struct fabrex_remote *out, size_t size)
{
	const struct fabrex_remote remote = {
		.rkey = mr->key,
		.length = mr->length,
		.peer = mr->object.port->attr.peer,
		.generation = mr->object.port->attr.generation,
	};

	fxi_copy_out(out, size, &remote, sizeof(remote));
}

int fxi_remote_read(struct fabrex_port *port, struct fabrex_remote *to,
		    const void *from, size_t size)
{
	int ret;

	memset(to, 0, sizeof(*to));
	ret = fxi_copy_in(port, "remote region", to, sizeof(*to), from, size);
	if (ret)
		return ret;
	if (size < REMOTE_FIRST)
		return fxi_error(EINVAL, "port %s: remote region of %zu bytes: the structure has at least %zu",
				 port->attr.name, size, REMOTE_FIRST);
	if (to->flags || to->reserved)
		return fxi_error(EINVAL, "port %s: remote region with unknown flags 0x%x, or reserved is not 0: clear the structure first; if a newer library made it, update libfabrex",
				 port->attr.name, to->flags);
	return 0;
}
