// SPDX-License-Identifier: GPL-2.0-only
/*
 * Plays libhsa-runtime64.so.1: agents, one pool each, pointer info, dma-bufs.
 * Agent 1 is the processor, agent 2 + n is GPU n; a pool has its agent's
 * number. Built with OLD it has no export of dma-bufs, as before ROCm 5.6.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "gpu.h"
#include "hsa.h"

#define CPU_AGENT	1u
#define GPU_AGENT	2u
#define FAIL() \
	do { \
		int fail_ = gpu_fail(__func__); \
		if (!fail_ && !users) \
			fail_ = HSA_NOT_INITIALIZED; \
		if (fail_) \
			return fail_; \
	} while (0)

static unsigned int users;		/* hsa_init() without shut_down */

API int hsa_init(void)
{
	int fail = gpu_fail(__func__);

	if (fail)
		return fail;
	/* The real one finds no kernel driver then. */
	if (!gpu_count())
		return HSA_OUT_OF_RESOURCES;
	__atomic_add_fetch(&users, 1, __ATOMIC_RELAXED);
	return HSA_OK;
}

API int hsa_shut_down(void)
{
	FAIL();
	__atomic_sub_fetch(&users, 1, __ATOMIC_RELAXED);
	return HSA_OK;
}

API int hsa_iterate_agents(int (*call)(struct hsa_agent agent, void *arg),
			   void *arg)
{
	unsigned int i, n = GPU_AGENT + (unsigned int)gpu_count();
	int ret = HSA_OK;

	FAIL();
	for (i = CPU_AGENT; i < n && !ret; i++)
		ret = call((struct hsa_agent){ i }, arg);
	return ret;
}

static int gpu_info(int gpu, int attribute, uint32_t *value)
{
	struct gpu_address a;

	if (!gpu_address(gpu, &a))
		return HSA_INVALID_AGENT;
	if (attribute == HSA_INFO_BDFID)
		*value = a.bus << 8 | a.device << 3 | a.function;
	else if (attribute == HSA_INFO_DOMAIN)
		*value = a.domain;
	else
		return HSA_INVALID_ARGUMENT;
	return HSA_OK;
}

API int hsa_agent_get_info(struct hsa_agent agent, int attribute, void *value)
{
	FAIL();
	if (agent.handle < CPU_AGENT ||
	    agent.handle >= GPU_AGENT + (unsigned int)gpu_count())
		return HSA_INVALID_AGENT;
	if (attribute == HSA_INFO_DEVICE)
		*(uint32_t *)value = agent.handle == CPU_AGENT ? 0 :
								 HSA_TYPE_GPU;
	else if (attribute == HSA_INFO_NODE)
		*(uint32_t *)value = (uint32_t)agent.handle - 1;
	else
		return gpu_info((int)agent.handle - (int)GPU_AGENT, attribute,
				value);
	return HSA_OK;
}

API int hsa_amd_agent_iterate_memory_pools(struct hsa_agent agent,
					   int (*call)(struct hsa_pool pool,
						       void *arg), void *arg)
{
	FAIL();
	return call((struct hsa_pool){ agent.handle }, arg);
}

API int hsa_amd_memory_pool_allocate(struct hsa_pool pool, size_t size,
				     uint32_t flags, void **ptr)
{
	bool host = pool.handle == CPU_AGENT;
	struct gpu_memory *m;

	FAIL();
	if (flags || !size)
		return HSA_INVALID_ARGUMENT;
	m = gpu_alloc(GPU_AMD, host ? GPU_PINNED : GPU_DEVICE,
		      host ? 0 : (int)(pool.handle - GPU_AGENT), size, 0);
	if (!m)
		return HSA_OUT_OF_RESOURCES;
	*ptr = m->base;
	return HSA_OK;
}

API int hsa_amd_memory_pool_free(void *ptr)
{
	struct gpu_memory *m = gpu_find(GPU_AMD, ptr);

	FAIL();
	if (!m || m->base != ptr)
		return HSA_INVALID_ALLOCATION;
	gpu_put(m);
	return HSA_OK;
}

API int hsa_memory_copy(void *to, const void *from, size_t size)
{
	FAIL();
	return gpu_copy(GPU_AMD, to, from, size) ? HSA_OK :
						   HSA_INVALID_ALLOCATION;
}

/* Fills in no more than the caller has room for. */
API int hsa_amd_pointer_info(const void *ptr, struct hsa_pointer_info *info,
			     void *(*alloc)(size_t size), uint32_t *nagents,
			     struct hsa_agent **agents)
{
	struct gpu_memory *m = gpu_find(GPU_AMD, ptr);
	struct hsa_pointer_info now = { .size = sizeof(now) };

	(void)alloc;
	(void)nagents;
	(void)agents;
	FAIL();
	if (!ptr || !info)
		return HSA_INVALID_ARGUMENT;
	if (info->size < now.size)
		now.size = info->size;
	if (m && m->kind != GPU_MANAGED) {
		now.type = m->kind == GPU_VIRTUAL ? HSA_POINTER_VMEM :
						    HSA_POINTER_ALLOCATED;
		now.agent_base = m->base;
		now.host_base = m->kind == GPU_PINNED ? m->base : NULL;
		now.length = m->length;
		now.owner.handle = m->kind == GPU_PINNED ? CPU_AGENT :
				   GPU_AGENT + (unsigned int)m->device;
	}
	memcpy(info, &now, now.size);
	return HSA_OK;
}

#ifndef OLD
static int export(const void *ptr, size_t size, int *fd, uint64_t *offset)
{
	struct gpu_memory *m = gpu_find(GPU_AMD, ptr);

	if (!ptr || !size || !fd || !offset)
		return HSA_INVALID_ARGUMENT;
	/* Of the virtual memory functions: they have an export of their own. */
	if (!m || m->kind == GPU_VIRTUAL ||
	    (size_t)((const char *)ptr - m->base) + size > m->length)
		return HSA_INVALID_ALLOCATION;
	if (m->kind != GPU_DEVICE)
		return HSA_INVALID_AGENT;
	*fd = gpu_export(m, 0, 0);
	*offset = (uint64_t)((const char *)ptr - m->base);
	return *fd < 0 ? HSA_OUT_OF_RESOURCES : HSA_OK;
}

API int hsa_amd_portable_export_dmabuf(const void *ptr, size_t size, int *fd,
				       uint64_t *offset)
{
	FAIL();
	return export(ptr, size, fd, offset);
}

API int hsa_amd_portable_export_dmabuf_v2(const void *ptr, size_t size,
					  int *fd, uint64_t *offset,
					  uint64_t flags)
{
	FAIL();
	if (flags & ~(uint64_t)HSA_DMABUF_PCIE)
		return HSA_INVALID_ARGUMENT;
	return export(ptr, size, fd, offset);
}

API int hsa_amd_portable_close_dmabuf(int fd)
{
	FAIL();
	return close(fd) ? HSA_INVALID_ARGUMENT : HSA_OK;
}
#endif
