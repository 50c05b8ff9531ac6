/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The HIP functions that hip.c implements and tests call, declared for
 * machines without HIP's headers; compared with those where they are there.
 */
#ifndef RUNTIME_HIP_H
#define RUNTIME_HIP_H

#include <stddef.h>
#include <stdint.h>

#include "hip_types.h"
#include "memory/hip.h"

#define HIP_INVALID_VALUE	1
#define HIP_OUT_OF_MEMORY	2
#define HIP_NO_DEVICE		100
#define HIP_INVALID_DEVICE	101
#define HIP_INVALID_CONTEXT	201
#define HIP_PEER_UNSUPPORTED	217
#define HIP_NOT_READY		600
#define HIP_ILLEGAL_ADDRESS	700
#define HIP_PEER_ENABLED	704
#define HIP_CAPTURE_UNSUPPORTED	900
#define HIP_CAPTURE_INVALIDATED	901
#define HIP_NON_BLOCKING	1
#define HIP_EVENT_NO_TIMING	2
#define HIP_CAPTURE_GLOBAL	0	/* hipStreamCaptureMode */

/* Attributes that only the run time itself knows. */
#define HIP_ATTRIBUTE_HOST_POINTER 4

int hipInit(unsigned int flags);
int hipRuntimeGetVersion(int *version);
int hipGetDeviceCount(int *count);
int hipSetDevice(int device);
int hipGetDevice(int *device);
int hipDeviceSynchronize(void);
int hipThreadExchangeStreamCaptureMode(int *mode);
int hipDeviceGetPCIBusId(char *text, int length, int device);
int hipDeviceGetByPCIBusId(int *device, const char *text);
int hipDeviceCanAccessPeer(int *can, int device, int peer);
int hipDeviceEnablePeerAccess(int peer, unsigned int flags);
int hipMalloc(void **ptr, size_t size);
int hipFree(void *ptr);
int hipHostMalloc(void **ptr, size_t size, unsigned int flags);
int hipHostFree(void *ptr);
int hipIpcGetMemHandle(struct hip_ipc_handle *handle, void *ptr);
int hipIpcOpenMemHandle(void **ptr, struct hip_ipc_handle handle,
			unsigned int flags);
int hipIpcCloseMemHandle(void *ptr);
int hipMallocManaged(void **ptr, size_t size, unsigned int flags);
int hipMemcpy(void *to, const void *from, size_t size, int kind);
int hipMemset(void *to, int value, size_t size);
int hipPointerGetAttribute(void *value, int attribute, void *ptr);
int hipPointerGetAttributes(struct hip_pointer *out, const void *ptr);
int hipMemCreate(void **handle, size_t size,
		 const struct hip_allocation *prop, unsigned long long flags);
int hipMemRelease(void *handle);
int hipMemAddressReserve(void **ptr, size_t size, size_t alignment,
			 void *addr, unsigned long long flags);
int hipMemAddressFree(void *ptr, size_t size);
int hipMemMap(void *ptr, size_t size, size_t offset, void *handle,
	      unsigned long long flags);
int hipMemUnmap(void *ptr, size_t size);
int hipMemSetAccess(void *ptr, size_t size, const void *desc, size_t count);
int hipMemRetainAllocationHandle(void **handle, void *ptr);
int hipMemExportToShareableHandle(void *out, void *handle, int type,
				  unsigned long long flags);
int hipMemGetHandleForAddressRange(void *out, void *ptr, size_t size,
				   int type, unsigned long long flags);
int hipStreamCreateWithFlags(void **stream, unsigned int flags);
int hipStreamDestroy(void *stream);
int hipStreamSynchronize(void *stream);
int hipMemcpyAsync(void *to, const void *from, size_t size, int kind,
		   void *stream);
int hipStreamWaitEvent(void *stream, void *event, unsigned int flags);
int hipStreamBeginCapture(void *stream, int mode);
int hipStreamIsCapturing(void *stream, int *status);
int hipStreamEndCapture(void *stream, void **graph);
int hipEventCreateWithFlags(void **event, unsigned int flags);
int hipEventDestroy(void *event);
int hipEventRecord(void *event, void *stream);
int hipEventQuery(void *event);
int hipStreamWriteValue64(void *stream, void *ptr, uint64_t value,
			  unsigned int flags);
int hipStreamWaitValue64(void *stream, void *ptr, uint64_t value,
			 unsigned int flags, uint64_t mask);
int hipExtMallocWithFlags(void **ptr, size_t size, unsigned int flags);
int hipMemcpyPeerAsync(void *to, int to_device, const void *from,
		       int from_device, size_t size, void *stream);
int hipLaunchHostFunc(void *stream, void (*function)(void *arg), void *arg);
int hipModuleLoadData(void **module, const void *image);
int hipModuleUnload(void *module);
int hipModuleGetFunction(void **function, void *module, const char *name);
int hipModuleLaunchKernel(void *function, unsigned int grid_x,
			  unsigned int grid_y, unsigned int grid_z,
			  unsigned int block_x, unsigned int block_y,
			  unsigned int block_z, unsigned int shared,
			  void *stream, void **parameters, void **extra);
int hipPeekAtLastError(void);
int hipGetLastError(void);
const char *hipGetErrorName(int error);
const char *hipGetErrorString(int error);

#endif
