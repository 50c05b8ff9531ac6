// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Registered memory: of the host or a GPU by its address, through libfabrex's
 * registration cache, which all communicators of a port share; or a dma-buf. Used
 * by the versions, and by net_move.c.
 */
#include <errno.h>
#include <stdlib.h>

#include "net.h"

/* What peers write to, or read from at a flush, and what is sent from. */
#define ACCESS	(FABREX_MR_LOCAL_WRITE | FABREX_MR_REMOTE_WRITE | \
		 FABREX_MR_REMOTE_READ)

static enum nccl_result refused(struct net_memory *memory, const char *what,
				size_t size, int error)
{
	WARN("%zu bytes of %s cannot be registered: %s", size, what,
	     fabrex_strerror_last());
	free(memory);
	return net_result(error);
}

static bool good(const void *comm, const void *data, size_t size, int type,
		 void **mhandle)
{
	if (comm && mhandle && (data || !size) &&
	    (type == NCCL_PTR_HOST || type == NCCL_PTR_CUDA))
		return true;
	WARN("registration of %zu bytes at %p as type %d makes no sense", size,
	     data, type);
	return false;
}

enum nccl_result net_reg(void *comm, void *data, size_t size, int type,
			 void **mhandle)
{
	struct net_memory *memory;
	struct comm *c = comm;
	int ret;

	if (!good(comm, data, size, type, mhandle))
		return NCCL_INVALID_ARGUMENT;
	memory = calloc(1, sizeof(*memory));
	if (!memory)
		return NCCL_SYSTEM_ERROR;
	memory->base = data;
	memory->length = size;
	memory->device = type == NCCL_PTR_CUDA;
	ret = size ? fabrex_mr_cache_get(c->port->port, data, size, ACCESS,
					 &memory->mr, &memory->offset) : 0;
	if (ret)
		return refused(memory, memory->device ? "a GPU" : "the host",
			       size, ret);
	memory->cached = memory->mr;
	*mhandle = memory;
	return NCCL_SUCCESS;
}

enum nccl_result net_reg_dmabuf(void *comm, void *data, size_t size, int type,
				uint64_t offset, int fd, void **mhandle)
{
	const struct fabrex_mr_attr attr = {
		.length = size, .access = ACCESS,
		.kind = FABREX_MEMORY_DMABUF, .fd = fd, .offset = offset,
	};
	struct net_memory *memory;
	struct comm *c = comm;
	int ret;

	if (!good(comm, data, size, type, mhandle) || fd < 0)
		return NCCL_INVALID_ARGUMENT;
	memory = calloc(1, sizeof(*memory));
	if (!memory)
		return NCCL_SYSTEM_ERROR;
	memory->base = data;
	memory->length = size;
	memory->device = true;
	ret = fabrex_mr_register_attr(c->port->port, &attr, sizeof(attr),
				      &memory->mr);
	if (ret)
		return refused(memory, "a dma-buf", size, ret);
	*mhandle = memory;
	return NCCL_SUCCESS;
}

enum nccl_result net_dereg(void *comm, void *mhandle)
{
	struct net_memory *memory = mhandle;
	int ret = 0;

	if (!comm || !memory)
		return memory ? NCCL_INVALID_ARGUMENT : NCCL_SUCCESS;
	if (memory->cached)
		fabrex_mr_cache_put(memory->mr);
	else if (memory->mr)
		ret = fabrex_mr_deregister(memory->mr);
	if (ret)
		WARN("a region of %zu bytes stays registered: %s",
		     memory->length, fabrex_strerror_last());
	free(memory);
	return net_result(ret);
}

bool net_memory_at(const struct net_memory *memory, const void *data,
		   size_t size, uint64_t *offset)
{
	uintptr_t at = (uintptr_t)data, base;

	*offset = 0;
	if (!size)
		return true;
	base = memory ? (uintptr_t)memory->base : 0;
	if (!memory || !memory->mr || at < base || size > memory->length ||
	    at - base > memory->length - size) {
		WARN("%zu bytes at %p are not in the memory they are said to be registered with",
		     size, data);
		return false;
	}
	*offset = memory->offset + (at - base);
	return true;
}
