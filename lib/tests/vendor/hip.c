// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Compiled only: what lib/memory/hip.h and the test run time declare by
 * themselves is what the header of HIP declares (5.x, as it is in Debian).
 */
#include <stddef.h>
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>

/* Ours, under names of their own; the functions are the header's. */
#include "hip_types.h"
#include "memory/hip.h"

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)

SAME(HIP_OK, hipSuccess);
SAME(HIP_ERROR_NOT_SUPPORTED, hipErrorNotSupported);
SAME(HIP_ATTRIBUTE_MEMORY_TYPE, HIP_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME(HIP_ATTRIBUTE_BUFFER_ID, HIP_POINTER_ATTRIBUTE_BUFFER_ID);
SAME(HIP_ATTRIBUTE_IS_MANAGED, HIP_POINTER_ATTRIBUTE_IS_MANAGED);
SAME(HIP_ATTRIBUTE_DEVICE, HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME(HIP_ATTRIBUTE_RANGE_START, HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR);
SAME(HIP_ATTRIBUTE_RANGE_SIZE, HIP_POINTER_ATTRIBUTE_RANGE_SIZE);
#if HIP_VERSION_MAJOR < 6
SAME(HIP5_MEMORY_DEVICE, hipMemoryTypeDevice);
#else
SAME(HIP6_MEMORY_DEVICE, hipMemoryTypeDevice);
#endif
SAME(HIP_COPY_TO_DEVICE, hipMemcpyHostToDevice);
SAME(HIP_COPY_FROM_DEVICE, hipMemcpyDeviceToHost);
SAME(HIP_CAPTURE_RELAXED, hipStreamCaptureModeRelaxed);
SAME(HIP_HANDLE_FD, hipMemHandleTypePosixFileDescriptor);
#if HIP_VERSION_MAJOR >= 7
SAME(HIP_RANGE_DMABUF, hipMemRangeHandleTypeDmaBufFd);
#endif

_Static_assert(sizeof(hipError_t) == sizeof(int) &&
	       sizeof(hipPointer_attribute) == sizeof(int) &&
	       sizeof(hipDeviceptr_t) == sizeof(void *) &&
	       sizeof(hipMemGenericAllocationHandle_t) == sizeof(void *) &&
	       sizeof(hipMemAllocationHandleType) == sizeof(int), "sizes");

#define SAME_AT(ours, member, type, theirs) \
	_Static_assert(offsetof(struct ours, member) == \
		       offsetof(type, theirs) && \
		       sizeof(((struct ours *)0)->member) == \
		       sizeof(((type *)0)->theirs), #type "." #theirs)

/* What the test run time shares with programs. */
_Static_assert(sizeof(struct hip_pointer) == sizeof(hipPointerAttribute_t) &&
	       sizeof(struct hip_allocation) == sizeof(hipMemAllocationProp),
	       "sizes of structures");
SAME_AT(hip_pointer, type, hipPointerAttribute_t, type);
SAME_AT(hip_pointer, device, hipPointerAttribute_t, device);
SAME_AT(hip_pointer, device_pointer, hipPointerAttribute_t, devicePointer);
SAME_AT(hip_pointer, host_pointer, hipPointerAttribute_t, hostPointer);
SAME_AT(hip_pointer, managed, hipPointerAttribute_t, isManaged);
SAME_AT(hip_allocation, handle_type, hipMemAllocationProp,
	requestedHandleType);
SAME_AT(hip_allocation, location_id, hipMemAllocationProp, location.id);
SAME_AT(hip_allocation, flags.rdma, hipMemAllocationProp,
	allocFlags.gpuDirectRDMACapable);

struct theirs {
	hipError_t (*attribute)(void *, hipPointer_attribute, hipDeviceptr_t);
	hipError_t (*version)(int *);
	hipError_t (*retain)(hipMemGenericAllocationHandle_t *, void *);
	hipError_t (*export)(void *, hipMemGenericAllocationHandle_t,
			     hipMemAllocationHandleType, unsigned long long);
	hipError_t (*release)(hipMemGenericAllocationHandle_t);
	hipError_t (*copy)(void *, const void *, size_t, hipMemcpyKind,
			   hipStream_t);
	hipError_t (*stream_create)(hipStream_t *, unsigned int);
	hipError_t (*stream_destroy)(hipStream_t);
	hipError_t (*stream_wait)(hipStream_t);
	hipError_t (*get_device)(int *);
	hipError_t (*set_device)(int);
	hipError_t (*capture_mode)(hipStreamCaptureMode *);
	hipError_t (*pci_id)(char *, int, int);
	hipError_t (*peek)(void);
	hipError_t (*take)(void);
	const char *(*text)(hipError_t);
};

extern const struct theirs hip_functions;
const struct theirs hip_functions = {
	hipPointerGetAttribute, hipRuntimeGetVersion,
	hipMemRetainAllocationHandle, hipMemExportToShareableHandle,
	hipMemRelease, hipMemcpyAsync, hipStreamCreateWithFlags,
	hipStreamDestroy, hipStreamSynchronize, hipGetDevice, hipSetDevice,
	hipThreadExchangeStreamCaptureMode,
	hipDeviceGetPCIBusId, hipPeekAtLastError,
	hipGetLastError, hipGetErrorString,
};
