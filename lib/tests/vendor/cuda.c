// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Compiled only, and only with CUDA_INCLUDE=DIR of a CUDA toolkit: what
 * lib/memory/cuda.h declares by itself is what NVIDIA's header declares.
 */
#include <stddef.h>
#include <cuda.h>

#include "memory/cuda.h"

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)

SAME(CUDA_OK, CUDA_SUCCESS);
SAME(CUDA_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
SAME(CUDA_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(CUDA_NOT_INITIALIZED, CUDA_ERROR_NOT_INITIALIZED);
SAME(CUDA_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME(CUDA_INVALID_CONTEXT, CUDA_ERROR_INVALID_CONTEXT);
SAME(CUDA_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED);
SAME(CUDA_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_CONTEXT);
SAME(CUDA_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME(CUDA_ATTRIBUTE_SYNC_MEMOPS, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS);
SAME(CUDA_ATTRIBUTE_BUFFER_ID, CU_POINTER_ATTRIBUTE_BUFFER_ID);
SAME(CUDA_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_IS_MANAGED);
SAME(CUDA_ATTRIBUTE_DEVICE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME(CUDA_ATTRIBUTE_RANGE_START, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
SAME(CUDA_ATTRIBUTE_RANGE_SIZE, CU_POINTER_ATTRIBUTE_RANGE_SIZE);
SAME(CUDA_ATTRIBUTE_RDMA_CAPABLE,
     CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE);
SAME(CUDA_MEMORY_DEVICE, CU_MEMORYTYPE_DEVICE);
SAME(CUDA_DEVICE_DMABUF_SUPPORTED, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED);
SAME(CUDA_CAPTURE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
SAME(CUDA_RANGE_DMABUF, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD);
#if CUDA_VERSION >= 12080
SAME(CUDA_RANGE_PCIE, CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE);
#endif

_Static_assert(sizeof(CUdeviceptr) == sizeof(cuda_ptr) &&
	       sizeof(CUdevice) == sizeof(int) &&
	       sizeof(CUresult) == sizeof(int) &&
	       sizeof(CUpointer_attribute) == sizeof(int) &&
	       sizeof(CUmemRangeHandleType) == sizeof(int), "sizes");

struct theirs {
	CUresult (*attributes)(unsigned int, CUpointer_attribute *, void **,
			       CUdeviceptr);
	CUresult (*set_attribute)(const void *, CUpointer_attribute,
				  CUdeviceptr);
	CUresult (*address_handle)(void *, CUdeviceptr, size_t,
				   CUmemRangeHandleType, unsigned long long);
	CUresult (*to_device)(CUdeviceptr, const void *, size_t, CUstream);
	CUresult (*from_device)(void *, CUdeviceptr, size_t, CUstream);
	CUresult (*stream_create)(CUstream *, unsigned int);
	CUresult (*stream_destroy)(CUstream);
	CUresult (*stream_wait)(CUstream);
	CUresult (*device)(CUdevice *, int);
	CUresult (*context)(CUcontext *);
	CUresult (*push)(CUcontext);
	CUresult (*pop)(CUcontext *);
	CUresult (*stream_capturing)(CUstream, CUstreamCaptureStatus *);
#if CUDA_VERSION >= 12000
	CUresult (*context_id)(CUcontext, unsigned long long *);
#endif
	CUresult (*capture_mode)(CUstreamCaptureMode *);
	CUresult (*retain)(CUcontext *, CUdevice);
	CUresult (*release)(CUdevice);
	CUresult (*state)(CUdevice, unsigned int *, int *);
	CUresult (*device_attribute)(int *, CUdevice_attribute, CUdevice);
	CUresult (*pci_id)(char *, int, CUdevice);
	CUresult (*text)(CUresult, const char **);
	CUresult (*host_alloc)(void **, size_t, unsigned int);
	CUresult (*priorities)(int *, int *);
	CUresult (*stream_urgent)(CUstream *, unsigned int, int);
};

extern const struct theirs cuda_functions;
const struct theirs cuda_functions = {
	cuPointerGetAttributes, cuPointerSetAttribute,
	cuMemGetHandleForAddressRange, cuMemcpyHtoDAsync, cuMemcpyDtoHAsync,
	cuStreamCreate, cuStreamDestroy, cuStreamSynchronize,
	cuDeviceGet, cuCtxGetCurrent,
	cuCtxPushCurrent, cuCtxPopCurrent,
	cuStreamIsCapturing,
#if CUDA_VERSION >= 12000
	cuCtxGetId,
#endif
	cuThreadExchangeStreamCaptureMode, cuDevicePrimaryCtxRetain,
	cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxGetState,
	cuDeviceGetAttribute, cuDeviceGetPCIBusId,
	cuGetErrorString, cuMemHostAlloc,
	cuCtxGetStreamPriorityRange, cuStreamCreateWithPriority,
};

/* The names that are looked up are those that the header's macros make. */
#define STRING_(x)	#x
#define STRING(x)	STRING_(x)
_Static_assert(sizeof(STRING(cuMemcpyHtoDAsync)) ==
	       sizeof("cuMemcpyHtoDAsync_v2") &&
	       sizeof(STRING(cuMemcpyDtoHAsync)) ==
	       sizeof("cuMemcpyDtoHAsync_v2") &&
	       sizeof(STRING(cuStreamDestroy)) == sizeof("cuStreamDestroy_v2") &&
	       sizeof(STRING(cuCtxPushCurrent)) ==
	       sizeof("cuCtxPushCurrent_v2") &&
	       sizeof(STRING(cuCtxPopCurrent)) ==
	       sizeof("cuCtxPopCurrent_v2") &&
	       sizeof(STRING(cuDevicePrimaryCtxRelease)) ==
	       sizeof("cuDevicePrimaryCtxRelease_v2") &&
	       sizeof(STRING(cuMemGetHandleForAddressRange)) ==
	       sizeof("cuMemGetHandleForAddressRange"), "names");
