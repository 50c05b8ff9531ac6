// SPDX-License-Identifier: GPL-2.0-only
/*
 * Plays libcuda.so.1. As the real one it puts small allocations somewhere into
 * a block, so that they do not begin at a page, and wants a current context
 * where that does. Built with OLD it has no export of dma-bufs.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda.h"
#include "cuda_state.h"
#include "gpu.h"

#define SMALL		(2u << 20)
#define SKIP		512u		/* of small ones, into their block */
#define LATE		(64u << 10)	/* bytes that are copied later */
#define LITTLE		64u		/* bytes, beside any other copy */
#define MAX_DEPTH	8

struct CUctx_st {
	int device;
	unsigned int users;
	bool faulted;		/* for good */
	pthread_rwlock_t copies; /* read by those that wait in a copy */
	pthread_mutex_t copying; /* more than a little */
};

static bool initialised;
static bool forked;			/* of a process that had initialised it */
static struct CUctx_st primary[GPU_MAX] = {
	[0 ... GPU_MAX - 1] = {
		.copies = PTHREAD_RWLOCK_INITIALIZER,
		.copying = PTHREAD_MUTEX_INITIALIZER,
	},
};
static __thread CUcontext stack[MAX_DEPTH + 1];	/* [0]: none */
static __thread int depth;

static void fork_child(void)
{
	forked = initialised;
}

CUresult cuda_enter(const char *function)
{
	int fail = gpu_fail(function);

	if (!fail && (!initialised || forked))
		fail = CUDA_ERROR_NOT_INITIALIZED;
	return (CUresult)fail;
}

CUcontext cuda_current(void)
{
	return stack[depth];
}

CUresult cuda_usable(void)
{
	if (!stack[depth])
		return CUDA_ERROR_INVALID_CONTEXT;
	return stack[depth]->faulted ? CUDA_ERROR_ILLEGAL_ADDRESS :
				       CUDA_SUCCESS;
}

CUresult cuda_ended(CUcontext context, bool good)
{
	if (!good)
		__atomic_store_n(&context->faulted, true, __ATOMIC_RELAXED);
	return good ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
}

CUresult cuda_drain(CUcontext context)
{
	CUresult ret = cuda_uncaptured();

	if (ret)
		return ret;
	return cuda_ended(context, gpu_legacy_wait(GPU_NVIDIA, context,
						   GPU_NON_BLOCKING));
}

void cuda_copy_begin(CUcontext context, size_t size)
{
	if (size > LITTLE)
		pthread_mutex_lock(&context->copying);
	pthread_rwlock_rdlock(&context->copies);
}

void cuda_copy_end(CUcontext context, size_t size)
{
	pthread_rwlock_unlock(&context->copies);
	if (size > LITTLE)
		pthread_mutex_unlock(&context->copying);
}

void cuda_await_copies(CUcontext context)
{
	pthread_rwlock_wrlock(&context->copies);
	pthread_rwlock_unlock(&context->copies);
}

/* What synchronous functions do before they begin. */
static CUresult legacy_turn(void)
{
	CUresult ret = cuda_legacy_uncaptured();

	if (ret)
		return ret;
	return cuda_ended(stack[depth],
			  gpu_legacy_wait(GPU_NVIDIA, stack[depth],
					  GPU_BLOCKING));
}

/* Not every driver is as strict; the memory's own will always do. */
#define NEED_CONTEXT_OF(m) \
	do { \
		if (stack[depth] != &primary[(m)->device]) \
			return CUDA_ERROR_INVALID_CONTEXT; \
	} while (0)

API CUresult cuInit(unsigned int flags)
{
	int fail = gpu_fail(__func__);

	if (fail || flags)
		return fail ? (CUresult)fail : CUDA_ERROR_INVALID_VALUE;
	if (!gpu_count())
		return CUDA_ERROR_NO_DEVICE;
	if (forked)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!initialised)
		pthread_atfork(NULL, NULL, fork_child);
	initialised = true;
	return CUDA_SUCCESS;
}

API CUresult cuGetErrorString(CUresult error, const char **text)
{
	switch (error) {
	case CUDA_SUCCESS:
		*text = "no error";
		break;
	case CUDA_ERROR_INVALID_VALUE:
		*text = "invalid argument";
		break;
	case CUDA_ERROR_OUT_OF_MEMORY:
		*text = "out of memory";
		break;
	case CUDA_ERROR_INVALID_CONTEXT:
		*text = "invalid device context";
		break;
	case CUDA_ERROR_NOT_SUPPORTED:
		*text = "operation not supported";
		break;
	default:
		*text = NULL;
		return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

/* ---- devices ----------------------------------------------------------- */

API CUresult cuDeviceGetCount(int *count)
{
	ENTER();
	*count = gpu_count();
	return CUDA_SUCCESS;
}

API CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	ENTER();
	if (ordinal < 0 || ordinal >= gpu_count())
		return CUDA_ERROR_INVALID_DEVICE;
	*device = ordinal;
	return CUDA_SUCCESS;
}

API CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute,
				  CUdevice device)
{
	(void)device;
	ENTER();
	switch (attribute) {
	case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
		*value = !getenv("FABREX_TEST_NO_DMABUF");
		return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
		*value = 9;
		return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
		*value = 0;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuDeviceGetPCIBusId(char *text, int length, CUdevice device)
{
	struct gpu_address a;

	ENTER();
	if (!gpu_address(device, &a))
		return CUDA_ERROR_INVALID_DEVICE;
	snprintf(text, (size_t)length, "%08X:%02X:%02X.%X", a.domain, a.bus,
		 a.device, a.function);
	return CUDA_SUCCESS;
}

API CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *text)
{
	ENTER();
	*device = gpu_by_address(text);
	return *device < 0 ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

API CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
	ENTER();
	if (device < 0 || peer < 0 || device >= gpu_count() ||
	    peer >= gpu_count())
		return CUDA_ERROR_INVALID_DEVICE;
	*can = gpu_joined(device, peer);
	return CUDA_SUCCESS;
}

/* ---- contexts ---------------------------------------------------------- */

API CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	ENTER();
	if (device < 0 || device >= gpu_count())
		return CUDA_ERROR_INVALID_DEVICE;
	primary[device].device = device;
	primary[device].users++;
	*context = &primary[device];
	return CUDA_SUCCESS;
}

API CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
	ENTER();
	if (!primary[device].users)
		return CUDA_ERROR_INVALID_CONTEXT;
	primary[device].users--;
	return CUDA_SUCCESS;
}

API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags,
					int *active)
{
	ENTER();
	if (device < 0 || device >= gpu_count())
		return CUDA_ERROR_INVALID_DEVICE;
	*flags = 0;
	*active = primary[device].users > 0;
	return CUDA_SUCCESS;
}

API CUresult cuCtxGetCurrent(CUcontext *context)
{
	ENTER();
	*context = stack[depth];
	return CUDA_SUCCESS;
}

API CUresult cuCtxSetCurrent(CUcontext context)
{
	ENTER();
	if (!depth)
		depth = 1;
	stack[depth] = context;
	return CUDA_SUCCESS;
}

API CUresult cuCtxPushCurrent(CUcontext context)
{
	ENTER();
	if (!context || depth == MAX_DEPTH)
		return CUDA_ERROR_INVALID_VALUE;
	stack[++depth] = context;
	return CUDA_SUCCESS;
}

API CUresult cuCtxPopCurrent(CUcontext *context)
{
	ENTER();
	if (!stack[depth])
		return CUDA_ERROR_INVALID_CONTEXT;
	*context = stack[depth];
	stack[depth] = NULL;
	depth -= depth > 0;
	return CUDA_SUCCESS;
}

API CUresult cuCtxSynchronize(void)
{
	ENTER();
	NEED_CONTEXT();
	return cuda_drain(stack[depth]);
}

API CUresult cuCtxGetDevice(CUdevice *device)
{
	ENTER();
	NEED_CONTEXT();
	*device = stack[depth]->device;
	return CUDA_SUCCESS;
}

/* Primary contexts are never reset here. */
API CUresult cuCtxGetId(CUcontext context, unsigned long long *id)
{
	ENTER();
	if (!context)
		context = stack[depth];
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	*id = (unsigned long long)(context - primary) + 1;
	return CUDA_SUCCESS;
}

/* ---- memory ------------------------------------------------------------ */

static CUresult allocate(char **ptr, enum gpu_kind kind, size_t size)
{
	size_t skip = kind == GPU_DEVICE && size < SMALL ? SKIP : 0;
	struct gpu_memory *m;

	if (!size)
		return CUDA_ERROR_INVALID_VALUE;
	m = gpu_alloc(GPU_NVIDIA, kind, stack[depth]->device, size, skip);
	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ptr = m->base;
	return CUDA_SUCCESS;
}

static CUresult release(const void *ptr, bool host)
{
	struct gpu_memory *m = gpu_find(GPU_NVIDIA, ptr);
	CUresult ret;

	if (!m || m->base != ptr || (m->kind == GPU_PINNED) != host ||
	    m->foreign)
		return CUDA_ERROR_INVALID_VALUE;
	/* Nothing may use it any more: work of all streams ends first. */
	ret = cuda_drain(&primary[m->device]);
	if (ret)
		return ret;
	gpu_check_closed(m);
	gpu_put(m);
	return CUDA_SUCCESS;
}

API CUresult cuMemAlloc(CUdeviceptr *ptr, size_t size)
{
	CUresult ret;
	char *base;

	ENTER();
	NEED_CONTEXT();
	CHANGES();
	ret = cuda_uncaptured();
	if (!ret)
		ret = allocate(&base, GPU_DEVICE, size);
	if (!ret)
		*ptr = (CUdeviceptr)(uintptr_t)base;
	return ret;
}

API CUresult cuMemFree(CUdeviceptr ptr)
{
	ENTER();
	NEED_CONTEXT();
	return release((void *)(uintptr_t)ptr, false);
}

API CUresult cuMemHostAlloc(void **ptr, size_t size, unsigned int flags)
{
	CUresult ret;
	char *base;

	(void)flags;
	ENTER();
	NEED_CONTEXT();
	CHANGES();
	ret = allocate(&base, GPU_PINNED, size);
	if (!ret)
		*ptr = base;
	return ret;
}

API CUresult cuMemFreeHost(void *ptr)
{
	ENTER();
	return release(ptr, true);
}

API CUresult cuMemAllocManaged(CUdeviceptr *ptr, size_t size,
			       unsigned int flags)
{
	CUresult ret;
	char *base;

	(void)flags;
	ENTER();
	NEED_CONTEXT();
	ret = allocate(&base, GPU_MANAGED, size);
	if (!ret)
		*ptr = (CUdeviceptr)(uintptr_t)base;
	return ret;
}

/*
 * Of little memory that the run time has not pinned, the real one takes a copy
 * and returns: it is on the device some time later, unless the allocation is
 * one for which synchronous functions are.
 */
static bool is_late(const void *to, const void *from, size_t size)
{
	const struct gpu_memory *m = gpu_find(GPU_NVIDIA, to);

	return size <= LATE && m && !m->synchronous &&
	       !gpu_find(GPU_NVIDIA, from);
}

API CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t size)
{
	void *target = (void *)(uintptr_t)to;
	CUresult ret;

	ENTER();
	NEED_CONTEXT();
	ret = legacy_turn();
	if (ret)
		return ret;
	if (is_late(target, from, size))
		return gpu_stream_copy_returned(gpu_legacy(GPU_NVIDIA,
							   stack[depth]),
						target, from, size) ?
		       CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	return gpu_copy(GPU_NVIDIA, target, from, size) ?
	       CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t size)
{
	CUresult ret;

	ENTER();
	NEED_CONTEXT();
	ret = legacy_turn();
	if (ret)
		return ret;
	return gpu_copy(GPU_NVIDIA, to, (void *)(uintptr_t)from, size) ?
	       CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t size)
{
	CUresult ret;

	ENTER();
	NEED_CONTEXT();
	ret = legacy_turn();
	if (ret)
		return ret;
	return gpu_set(GPU_NVIDIA, (void *)(uintptr_t)to, value, size) ?
	       CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- other processes --------------------------------------------------- */

API CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr ptr)
{
	struct gpu_memory *m = gpu_find(GPU_NVIDIA, (void *)(uintptr_t)ptr);

	ENTER();
	NEED_CONTEXT();
	if (!handle || !m || !gpu_share(m, (struct gpu_handle *)handle))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

API CUresult cuIpcOpenMemHandle(CUdeviceptr *ptr, CUipcMemHandle handle,
				unsigned int flags)
{
	struct gpu_memory *m;

	ENTER();
	NEED_CONTEXT();
	if (!ptr || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
		return CUDA_ERROR_INVALID_VALUE;
	switch (gpu_open(GPU_NVIDIA, stack[depth]->device,
			 (struct gpu_handle *)&handle, &m)) {
	case GPU_OPENED:
		*ptr = (CUdeviceptr)(uintptr_t)m->base;
		return CUDA_SUCCESS;
	case GPU_OPENED_OWN:
		return CUDA_ERROR_INVALID_CONTEXT;
	case GPU_OPENED_FAR:
		return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

API CUresult cuIpcCloseMemHandle(CUdeviceptr ptr)
{
	const void *base = (void *)(uintptr_t)ptr;
	struct gpu_memory *m = gpu_find(GPU_NVIDIA, base);
	CUresult ret;

	ENTER();
	NEED_CONTEXT();
	if (!m || !m->foreign || m->base != base)
		return CUDA_ERROR_INVALID_VALUE;
	ret = cuda_drain(stack[depth]);
	if (ret)
		return ret;
	gpu_put(m);
	return CUDA_SUCCESS;
}

/* ---- pointers ---------------------------------------------------------- */

static bool attribute_of(const struct gpu_memory *m, int attribute,
			 void *value)
{
	static const struct gpu_memory unknown = { .device = -2 };
	bool device = m && m->kind != GPU_PINNED;
	const struct gpu_memory *of = m ? m : &unknown;

	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)value = m && m->device >= 0 ?
				      &primary[m->device] : NULL;
		return true;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned int *)value = !m ? 0 : device ?
			CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
		return true;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		*(unsigned long long *)value = of->id;
		return true;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(bool *)value = m && m->kind == GPU_MANAGED;
		return true;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)value = of->device;
		return true;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(char **)value = of->base;
		return true;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)value = of->length;
		return true;
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		*(bool *)value = device && !getenv("FABREX_TEST_NO_RDMA");
		return true;
	}
	return false;
}

API CUresult cuPointerGetAttributes(unsigned int n,
				    CUpointer_attribute *attributes,
				    void **values, CUdeviceptr ptr)
{
	struct gpu_memory *m = gpu_find(GPU_NVIDIA, (void *)(uintptr_t)ptr);
	unsigned int i;

	ENTER();
	for (i = 0; i < n; i++)
		if (!attribute_of(m, (int)attributes[i], values[i]))
			return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

API CUresult cuPointerSetAttribute(const void *value,
				   CUpointer_attribute attribute,
				   CUdeviceptr ptr)
{
	struct gpu_memory *m = gpu_find(GPU_NVIDIA, (void *)(uintptr_t)ptr);

	ENTER();
	NEED_CONTEXT();
	if (m)
		NEED_CONTEXT_OF(m);
	if (!m || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ||
	    *(const unsigned int *)value != 1)
		return CUDA_ERROR_INVALID_VALUE;
	m->synchronous = true;
	/* What has returned is waited for, and no kernel is. */
	gpu_stream_settle(gpu_legacy(GPU_NVIDIA, stack[depth]));
	return CUDA_SUCCESS;
}

#ifndef OLD
API CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr ptr,
					   size_t size,
					   CUmemRangeHandleType type,
					   unsigned long long flags)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct gpu_memory *m;
	int fd;

	ENTER();
	NEED_CONTEXT();
	/* The first page may begin before the allocation. */
	m = gpu_find(GPU_NVIDIA, (void *)(uintptr_t)(ptr + SKIP));
	if (!m || ptr % page || size % page || !size ||
	    type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD)
		return CUDA_ERROR_INVALID_VALUE;
	NEED_CONTEXT_OF(m);
	/* Drivers before CUDA 12.8 know no flag. */
	if (flags & ~(getenv("FABREX_TEST_NO_PCIE") ? 0ull :
		      CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE))
		return CUDA_ERROR_INVALID_VALUE;
	if (m->kind != GPU_DEVICE || getenv("FABREX_TEST_NO_RDMA") ||
	    getenv("FABREX_TEST_NO_DMABUF"))
		return CUDA_ERROR_NOT_SUPPORTED;
	fd = gpu_export(m, (size_t)((char *)(uintptr_t)ptr -
				    (m->base - m->skip)), size);
	if (fd < 0)
		return CUDA_ERROR_INVALID_VALUE;
	*(int *)handle = fd;
	return CUDA_SUCCESS;
}
#endif
