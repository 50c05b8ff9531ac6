// SPDX-License-Identifier: GPL-2.0-only
/*
 * Plays libamdhip64.so of the major version HIP_MAJOR: 5 and 6 count types of
 * memory differently, 7 exports address ranges. Like the real one it brings
 * HSA up with it. Memory of the virtual memory functions is in hip_virtual.c.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"
#include "hip.h"
#include "hip_state.h"

__thread int hip_last;
static __thread int current;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int up;				/* result of bringing it up */

int hip_set(int error)
{
	if (error)
		hip_last = error;
	return error;
}

/* The real one is linked with HSA; here that is the environment's choice. */
__attribute__((constructor)) static void load_hsa(void)
{
	if (!getenv("FABREX_TEST_NO_HSA"))
		dlopen("libhsa-runtime64.so.1", RTLD_NOW | RTLD_LOCAL);
}

static void bring_up(void)
{
	void *hsa = dlopen("libhsa-runtime64.so.1", RTLD_NOW | RTLD_NOLOAD);
	int (*init)(void) = NULL;

	up = gpu_count() ? HIP_OK : HIP_NO_DEVICE;
	if (hsa)
		*(void **)&init = dlsym(hsa, "hsa_init");
	if (init && init())
		up = HIP_NO_DEVICE;
}

int hip_enter(const char *function)
{
	int fail = gpu_fail(function);

	if (fail)
		return fail;
	pthread_once(&once, bring_up);
	return up;
}

API int hipInit(unsigned int flags)
{
	ENTER();
	return hip_set(flags ? HIP_INVALID_VALUE : HIP_OK);
}

API int hipRuntimeGetVersion(int *version)
{
	ENTER();
	*version = HIP_MAJOR * 10000000 + 731921;
	return HIP_OK;
}

/* ---- devices ----------------------------------------------------------- */

API int hipGetDeviceCount(int *count)
{
	*count = 0;
	ENTER();
	*count = gpu_count();
	return HIP_OK;
}

static bool is_device(int device)
{
	return device >= 0 && device < gpu_count();
}

API int hipSetDevice(int device)
{
	ENTER();
	if (!is_device(device))
		return hip_set(HIP_INVALID_DEVICE);
	current = device;
	return HIP_OK;
}

API int hipGetDevice(int *device)
{
	ENTER();
	*device = current;
	return HIP_OK;
}

const void *hip_owner(void)
{
	static const char owners[GPU_MAX];

	return &owners[current];
}

static int wait_for(enum gpu_stream_kind most)
{
	return gpu_legacy_wait(GPU_AMD, hip_owner(), most) ?
	       HIP_OK : hip_set(HIP_ILLEGAL_ADDRESS);
}

API int hipDeviceSynchronize(void)
{
	ENTER();
	NEED_NO_CAPTURE();
	return wait_for(GPU_NON_BLOCKING);
}

API int hipDeviceGetPCIBusId(char *text, int length, int device)
{
	struct gpu_address a;

	ENTER();
	if (!gpu_address(device, &a))
		return hip_set(HIP_INVALID_DEVICE);
	snprintf(text, (size_t)length, "%04X:%02X:%02X.%X", a.domain, a.bus,
		 a.device, a.function);
	return HIP_OK;
}

API int hipDeviceGetByPCIBusId(int *device, const char *text)
{
	ENTER();
	*device = gpu_by_address(text);
	return *device < 0 ? hip_set(HIP_INVALID_DEVICE) : HIP_OK;
}

API int hipDeviceCanAccessPeer(int *can, int device, int peer)
{
	ENTER();
	if (!can)
		return hip_set(HIP_INVALID_VALUE);
	if (!is_device(device) || !is_device(peer))
		return hip_set(HIP_INVALID_DEVICE);
	*can = gpu_joined(device, peer);
	return HIP_OK;
}

API int hipDeviceEnablePeerAccess(int peer, unsigned int flags)
{
	ENTER();
	if (flags)
		return hip_set(HIP_INVALID_VALUE);
	if (!is_device(peer))
		return hip_set(HIP_INVALID_DEVICE);
	if (!gpu_joined(current, peer))
		return hip_set(HIP_PEER_UNSUPPORTED);
	return gpu_allow(current, peer) ? HIP_OK : hip_set(HIP_PEER_ENABLED);
}

/* ---- memory ------------------------------------------------------------ */

static int allocate(void **ptr, enum gpu_kind kind, size_t size)
{
	struct gpu_memory *m;

	if (!ptr || !size)
		return hip_set(HIP_INVALID_VALUE);
	m = gpu_alloc(GPU_AMD, kind, current, size, 0);
	if (!m)
		return hip_set(HIP_OUT_OF_MEMORY);
	*ptr = m->base;
	return HIP_OK;
}

static int release(void *ptr, bool host)
{
	struct gpu_memory *m = gpu_find(GPU_AMD, ptr);
	int ret;

	if (!ptr)
		return HIP_OK;
	if (!m || m->base != ptr || (m->kind == GPU_PINNED) != host ||
	    m->kind == GPU_VIRTUAL || m->foreign)
		return hip_set(HIP_INVALID_VALUE);
	ret = wait_for(GPU_NON_BLOCKING);
	if (ret)
		return ret;
	gpu_check_closed(m);
	gpu_put(m);
	return HIP_OK;
}

API int hipMalloc(void **ptr, size_t size)
{
	ENTER();
	NEED_NO_CAPTURE();
	return allocate(ptr, GPU_DEVICE, size);
}

API int hipFree(void *ptr)
{
	ENTER();
	NEED_NO_CAPTURE();
	return release(ptr, false);
}

API int hipHostMalloc(void **ptr, size_t size, unsigned int flags)
{
	(void)flags;
	ENTER();
	return allocate(ptr, GPU_PINNED, size);
}

#ifndef OLD
#define SIGNAL_MEMORY	2

API int hipExtMallocWithFlags(void **ptr, size_t size, unsigned int flags)
{
	ENTER();
	if (flags != SIGNAL_MEMORY || size != sizeof(uint64_t))
		return hip_set(HIP_INVALID_VALUE);
	return allocate(ptr, GPU_PINNED, size);
}
#endif

API int hipHostFree(void *ptr)
{
	ENTER();
	return release(ptr, true);
}

API int hipMallocManaged(void **ptr, size_t size, unsigned int flags)
{
	(void)flags;
	ENTER();
	return allocate(ptr, GPU_MANAGED, size);
}

API int hipMemcpy(void *to, const void *from, size_t size, int kind)
{
	int ret;

	(void)kind;
	ENTER();
	NEED_NO_CAPTURE();
	ret = wait_for(GPU_BLOCKING);
	if (ret)
		return ret;
	return gpu_copy(GPU_AMD, to, from, size) ? HIP_OK :
						   hip_set(HIP_INVALID_VALUE);
}

API int hipMemset(void *to, int value, size_t size)
{
	int ret;

	ENTER();
	NEED_NO_CAPTURE();
	ret = wait_for(GPU_BLOCKING);
	if (ret)
		return ret;
	return gpu_set(GPU_AMD, to, value, size) ? HIP_OK :
						   hip_set(HIP_INVALID_VALUE);
}

/* ---- other processes --------------------------------------------------- */

/* hipIpcMemLazyEnablePeerAccess */
#define LAZY_PEER_ACCESS	(HIP_MAJOR < 6 ? 0u : 1u)

API int hipIpcGetMemHandle(struct hip_ipc_handle *handle, void *ptr)
{
	struct gpu_memory *m = gpu_find(GPU_AMD, ptr);

	ENTER();
	if (!handle || !m || !gpu_share(m, (struct gpu_handle *)handle))
		return hip_set(HIP_INVALID_VALUE);
	return HIP_OK;
}

API int hipIpcOpenMemHandle(void **ptr, struct hip_ipc_handle handle,
			    unsigned int flags)
{
	struct gpu_memory *m;

	ENTER();
	if (!ptr || flags != LAZY_PEER_ACCESS)
		return hip_set(HIP_INVALID_VALUE);
	switch (gpu_open(GPU_AMD, current, (struct gpu_handle *)&handle, &m)) {
	case GPU_OPENED:
		*ptr = m->base;
		return HIP_OK;
	case GPU_OPENED_OWN:
		return hip_set(HIP_INVALID_CONTEXT);
	case GPU_OPENED_FAR:
		return hip_set(HIP_PEER_UNSUPPORTED);
	default:
		return hip_set(HIP_INVALID_VALUE);
	}
}

API int hipIpcCloseMemHandle(void *ptr)
{
	struct gpu_memory *m = gpu_find(GPU_AMD, ptr);
	int ret;

	ENTER();
	if (!m || !m->foreign || m->base != ptr)
		return hip_set(HIP_INVALID_VALUE);
	ret = wait_for(GPU_NON_BLOCKING);
	if (ret)
		return ret;
	gpu_put(m);
	return HIP_OK;
}

/* ---- pointers ---------------------------------------------------------- */

static int type_of(const struct gpu_memory *m)
{
	static const int types[] = {
#if HIP_MAJOR < 6
		[GPU_PINNED] = 0, [GPU_DEVICE] = 1, [GPU_VIRTUAL] = 1,
		[GPU_MANAGED] = 4,
#else
		[GPU_PINNED] = 1, [GPU_DEVICE] = 2, [GPU_VIRTUAL] = 2,
		[GPU_MANAGED] = 3,
#endif
	};

	return types[m->kind];
}

API int hipPointerGetAttribute(void *value, int attribute, void *ptr)
{
	struct gpu_memory *m = gpu_find(GPU_AMD, ptr);

	ENTER();
	if (!value || !m)
		return hip_set(HIP_INVALID_VALUE);
	switch (attribute) {
	case HIP_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned int *)value = (unsigned int)type_of(m);
		return HIP_OK;
	case HIP_ATTRIBUTE_BUFFER_ID:
		*(uint64_t *)value = m->kind == GPU_VIRTUAL ? 0 : m->id;
		return HIP_OK;
	case HIP_ATTRIBUTE_IS_MANAGED:
		*(unsigned int *)value = m->kind == GPU_MANAGED;
		return HIP_OK;
	case HIP_ATTRIBUTE_DEVICE:
		*(int *)value = m->device;
		return HIP_OK;
	case HIP_ATTRIBUTE_RANGE_START:
		*(void **)value = m->base;
		return HIP_OK;
	case HIP_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)value = m->length;
		return HIP_OK;
	}
	return hip_set(HIP_INVALID_VALUE);
}

API int hipPointerGetAttributes(struct hip_pointer *out, const void *ptr)
{
	struct gpu_memory *m = gpu_find(GPU_AMD, ptr);

	ENTER();
	if (!out || !m)
		return hip_set(HIP_INVALID_VALUE);
	memset(out, 0, sizeof(*out));
	out->type = type_of(m);
	out->device = m->device;
	out->device_pointer = m->base;
	if (m->kind == GPU_PINNED || m->kind == GPU_MANAGED)
		out->host_pointer = m->base;
	out->managed = m->kind == GPU_MANAGED;
	return HIP_OK;
}

/* ---- errors ------------------------------------------------------------ */

API int hipPeekAtLastError(void)
{
	return hip_last;
}

API int hipGetLastError(void)
{
	int error = hip_last;

	hip_last = HIP_OK;
	return error;
}

API const char *hipGetErrorName(int error)
{
	switch (error) {
	case HIP_OK:
		return "hipSuccess";
	case HIP_INVALID_VALUE:
		return "hipErrorInvalidValue";
	case HIP_OUT_OF_MEMORY:
		return "hipErrorOutOfMemory";
	case HIP_NO_DEVICE:
		return "hipErrorNoDevice";
	case HIP_INVALID_DEVICE:
		return "hipErrorInvalidDevice";
	case HIP_INVALID_CONTEXT:
		return "hipErrorInvalidContext";
	case HIP_PEER_UNSUPPORTED:
		return "hipErrorPeerAccessUnsupported";
	case HIP_PEER_ENABLED:
		return "hipErrorPeerAccessAlreadyEnabled";
	}
	return "hipErrorUnknown";
}

API const char *hipGetErrorString(int error)
{
	return hipGetErrorName(error);
}
