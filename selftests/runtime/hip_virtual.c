// SPDX-License-Identifier: GPL-2.0-only
/*
 * Virtual memory functions of the test HIP run time: memory without address,
 * mapped by hand, exported by its handle. Built with OLD it has none of them.
 */
#include <fcntl.h>

#include "gpu.h"
#include "hip.h"
#include "hip_state.h"

#ifndef OLD
API int hipMemCreate(void **handle, size_t size,
		     const struct hip_allocation *prop,
		     unsigned long long flags)
{
	struct gpu_memory *m;

	ENTER();
	if (!handle || !size || !prop || flags)
		return hip_set(HIP_INVALID_VALUE);
	m = gpu_alloc(GPU_AMD, GPU_VIRTUAL, prop->location_id, size, 0);
	if (!m)
		return hip_set(HIP_OUT_OF_MEMORY);
	*handle = m;
	return HIP_OK;
}

API int hipMemRelease(void *handle)
{
	ENTER();
	gpu_put(handle);
	return HIP_OK;
}

API int hipMemAddressReserve(void **ptr, size_t size, size_t alignment,
			     void *addr, unsigned long long flags)
{
	(void)alignment;
	(void)addr;
	ENTER();
	if (flags)
		return hip_set(HIP_INVALID_VALUE);
	*ptr = gpu_reserve(size);
	return *ptr ? HIP_OK : hip_set(HIP_OUT_OF_MEMORY);
}

API int hipMemAddressFree(void *ptr, size_t size)
{
	ENTER();
	gpu_unreserve(ptr, size);
	return HIP_OK;
}

/* The mapping is a user of the memory, as long as it is there. */
API int hipMemMap(void *ptr, size_t size, size_t offset, void *handle,
		  unsigned long long flags)
{
	struct gpu_memory *m = handle;

	ENTER();
	if (m->base || offset || size > m->size || flags)
		return hip_set(HIP_INVALID_VALUE);
	m->refs++;
	gpu_map(m, ptr);
	return HIP_OK;
}

API int hipMemUnmap(void *ptr, size_t size)
{
	struct gpu_memory *m = gpu_find(GPU_AMD, ptr);

	(void)size;
	ENTER();
	if (!m || m->kind != GPU_VIRTUAL)
		return hip_set(HIP_INVALID_VALUE);
	gpu_map(m, NULL);
	gpu_put(m);
	return HIP_OK;
}

API int hipMemSetAccess(void *ptr, size_t size, const void *desc, size_t count)
{
	(void)ptr;
	(void)size;
	(void)desc;
	(void)count;
	ENTER();
	return HIP_OK;
}

API int hipMemRetainAllocationHandle(void **handle, void *ptr)
{
	struct gpu_memory *m = gpu_find(GPU_AMD, ptr);

	ENTER();
	if (!m || m->kind != GPU_VIRTUAL)
		return hip_set(HIP_INVALID_VALUE);
	m->refs++;
	*handle = m;
	return HIP_OK;
}

API int hipMemExportToShareableHandle(void *out, void *handle, int type,
				      unsigned long long flags)
{
	int fd;

	ENTER();
	if (type != HIP_HANDLE_FD || flags)
		return hip_set(HIP_INVALID_VALUE);
	fd = gpu_export(handle, 0, 0);
	if (fd < 0)
		return hip_set(HIP_OUT_OF_MEMORY);
	*(int *)out = fd;
	return HIP_OK;
}
#endif

#if HIP_MAJOR >= 7
API int hipMemGetHandleForAddressRange(void *out, void *ptr, size_t size,
				       int type, unsigned long long flags)
{
	struct gpu_memory *m = gpu_find(GPU_AMD, ptr);
	int fd;

	ENTER();
	if (!m || type != HIP_RANGE_DMABUF || flags || (size_t)ptr % 4096 ||
	    size % 4096)
		return hip_set(HIP_INVALID_VALUE);
	fd = gpu_export(m, (size_t)((char *)ptr - m->base), size);
	if (fd < 0)
		return hip_set(HIP_INVALID_VALUE);
	*(int *)out = fd;
	return HIP_OK;
}
#endif
