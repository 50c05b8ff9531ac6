/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Minimal cuda.h: the part of the CUDA driver API that cuda.c implements and
 * examples/cuda_write.c uses, declared from NVIDIA's "CUDA Driver API"
 * reference manual, for machines without the toolkit.
 */
#ifndef RUNTIME_CUDA_H
#define RUNTIME_CUDA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUipcMemHandle_st {
	char reserved[64];
} CUipcMemHandle;
typedef void (*CUhostFn)(void *arg);

typedef enum cudaError_enum {
	CUDA_SUCCESS = 0,
	CUDA_ERROR_INVALID_VALUE = 1,
	CUDA_ERROR_OUT_OF_MEMORY = 2,
	CUDA_ERROR_NOT_INITIALIZED = 3,
	CUDA_ERROR_NO_DEVICE = 100,
	CUDA_ERROR_INVALID_DEVICE = 101,
	CUDA_ERROR_INVALID_IMAGE = 200,
	CUDA_ERROR_INVALID_CONTEXT = 201,
	CUDA_ERROR_PEER_ACCESS_UNSUPPORTED = 217,
	CUDA_ERROR_NOT_FOUND = 500,
	CUDA_ERROR_NOT_READY = 600,
	CUDA_ERROR_ILLEGAL_ADDRESS = 700,
	CUDA_ERROR_NOT_SUPPORTED = 801,
	CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
	CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
	CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
} CUresult;

typedef enum CUpointer_attribute_enum {
	CU_POINTER_ATTRIBUTE_CONTEXT = 1,
	CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
	CU_POINTER_ATTRIBUTE_SYNC_MEMOPS = 6,
	CU_POINTER_ATTRIBUTE_BUFFER_ID = 7,
	CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
	CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
	CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
	CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
	CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE = 15,
} CUpointer_attribute;

typedef enum CUdevice_attribute_enum {
	CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
	CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
	CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED = 124,
} CUdevice_attribute;

typedef enum CUmemorytype_enum {
	CU_MEMORYTYPE_HOST = 1,
	CU_MEMORYTYPE_DEVICE = 2,
} CUmemorytype;

typedef enum CUmemRangeHandleType_enum {
	CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD = 1,
} CUmemRangeHandleType;

typedef enum CUmemRangeFlags_enum {
	CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE = 1,
} CUmemRangeFlags;

typedef enum CUstreamCaptureMode_enum {
	CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
	CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
	CU_STREAM_CAPTURE_MODE_RELAXED = 2,
} CUstreamCaptureMode;

#define CU_MEM_ATTACH_GLOBAL	1
#define CU_STREAM_NON_BLOCKING	1
#define CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS	1
#define CU_STREAM_WAIT_VALUE_FLUSH	(1u << 30)
#define CU_STREAM_LEGACY	((CUstream)1)
#define CU_EVENT_DISABLE_TIMING	2

typedef enum CUstreamCaptureStatus_enum {
	CU_STREAM_CAPTURE_STATUS_NONE = 0,
	CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
	CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2,
} CUstreamCaptureStatus;

/* Names of the symbols: some functions have had a version before. */
#define cuMemAlloc		cuMemAlloc_v2
#define cuMemFree		cuMemFree_v2
#define cuMemcpyHtoD		cuMemcpyHtoD_v2
#define cuMemcpyDtoH		cuMemcpyDtoH_v2
#define cuMemcpyHtoDAsync	cuMemcpyHtoDAsync_v2
#define cuMemcpyDtoHAsync	cuMemcpyDtoHAsync_v2
#define cuMemsetD8		cuMemsetD8_v2
#define cuStreamDestroy		cuStreamDestroy_v2
#define cuEventDestroy		cuEventDestroy_v2
#define cuIpcOpenMemHandle	cuIpcOpenMemHandle_v2
#define cuStreamBeginCapture	cuStreamBeginCapture_v2
#define cuStreamWriteValue64	cuStreamWriteValue64_v2
#define cuStreamWaitValue64	cuStreamWaitValue64_v2
#define cuCtxPushCurrent	cuCtxPushCurrent_v2
#define cuCtxPopCurrent		cuCtxPopCurrent_v2
#define cuDevicePrimaryCtxRelease cuDevicePrimaryCtxRelease_v2

CUresult cuInit(unsigned int flags);
CUresult cuGetErrorString(CUresult error, const char **text);
CUresult cuDeviceGetCount(int *count);
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute,
			      CUdevice device);
CUresult cuDeviceGetPCIBusId(char *text, int length, CUdevice device);
CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *text);
CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuDevicePrimaryCtxRelease(CUdevice device);
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags,
				    int *active);
CUresult cuCtxGetCurrent(CUcontext *context);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxPushCurrent(CUcontext context);
CUresult cuCtxPopCurrent(CUcontext *context);
CUresult cuCtxSynchronize(void);
CUresult cuCtxGetDevice(CUdevice *device);
CUresult cuCtxGetId(CUcontext context, unsigned long long *id);
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode);
CUresult cuMemAlloc(CUdeviceptr *ptr, size_t size);
CUresult cuMemFree(CUdeviceptr ptr);
CUresult cuMemHostAlloc(void **ptr, size_t size, unsigned int flags);
CUresult cuMemFreeHost(void *ptr);
CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr ptr);
CUresult cuIpcOpenMemHandle(CUdeviceptr *ptr, CUipcMemHandle handle,
			    unsigned int flags);
CUresult cuIpcCloseMemHandle(CUdeviceptr ptr);
CUresult cuMemAllocManaged(CUdeviceptr *ptr, size_t size, unsigned int flags);
CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t size);
CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t size);
CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t size);
CUresult cuPointerGetAttributes(unsigned int n,
				CUpointer_attribute *attributes,
				void **values, CUdeviceptr ptr);
CUresult cuPointerSetAttribute(const void *value,
			       CUpointer_attribute attribute,
			       CUdeviceptr ptr);
CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr ptr,
				       size_t size, CUmemRangeHandleType type,
				       unsigned long long flags);

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size,
		       CUstream stream);
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t size,
			   CUstream stream);
CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t size,
			   CUstream stream);
CUresult cuStreamCreate(CUstream *stream, unsigned int flags);
CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest);
CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags,
				    int priority);
CUresult cuStreamDestroy(CUstream stream);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamQuery(CUstream stream);
CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode);
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status);
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph);
CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address,
			      uint64_t value, unsigned int flags);
CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr address,
			     uint64_t value, unsigned int flags);
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags);
CUresult cuEventCreate(CUevent *event, unsigned int flags);
CUresult cuEventDestroy(CUevent event);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventQuery(CUevent event);
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *arg);
CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUresult cuModuleUnload(CUmodule module);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module,
			     const char *name);
CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x,
			unsigned int grid_y, unsigned int grid_z,
			unsigned int block_x, unsigned int block_y,
			unsigned int block_z, unsigned int shared,
			CUstream stream, void **parameters, void **extra);

#ifdef __cplusplus
}
#endif

#endif
