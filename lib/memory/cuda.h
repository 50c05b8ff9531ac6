/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The part of the CUDA driver API that we call. Names, numbers and types are
 * those of NVIDIA's "CUDA Driver API" reference manual: sections Data types,
 * Unified Addressing, Memory Management, Stream, Context and Primary Context
 * Management.
 */
#ifndef LIB_MEMORY_CUDA_H
#define LIB_MEMORY_CUDA_H

#include <stddef.h>
#include <stdint.h>

#include "memory/library.h"

#define CUDA_OK				0
#define CUDA_INVALID_VALUE		1
#define CUDA_OUT_OF_MEMORY		2
#define CUDA_NOT_INITIALIZED		3
#define CUDA_NO_DEVICE			100
#define CUDA_INVALID_CONTEXT		201
#define CUDA_NOT_SUPPORTED		801

#define CUDA_ATTRIBUTE_CONTEXT		1
#define CUDA_ATTRIBUTE_MEMORY_TYPE	2
#define CUDA_ATTRIBUTE_SYNC_MEMOPS	6
#define CUDA_ATTRIBUTE_BUFFER_ID	7
#define CUDA_ATTRIBUTE_IS_MANAGED	8
#define CUDA_ATTRIBUTE_DEVICE		9
#define CUDA_ATTRIBUTE_RANGE_START	11
#define CUDA_ATTRIBUTE_RANGE_SIZE	12
#define CUDA_ATTRIBUTE_RDMA_CAPABLE	15

#define CUDA_MEMORY_DEVICE		2
#define CUDA_DEVICE_DMABUF_SUPPORTED	124
#define CUDA_RANGE_DMABUF		1
#define CUDA_RANGE_PCIE			1	/* CUDA 12.8: through the BAR */
#define CUDA_STREAM_LEGACY		((void *)1)
#define CUDA_CAPTURE_RELAXED		2	/* CUstreamCaptureMode */

/* CUdeviceptr is an integer as wide as a pointer, CUdevice an int. */
typedef uintptr_t cuda_ptr;

struct cuda_table {
	int (*attributes)(unsigned int n, int *attributes, void **values,
			  cuda_ptr ptr);
	int (*set_attribute)(const void *value, int attribute, cuda_ptr ptr);
	int (*address_handle)(void *handle, cuda_ptr ptr, size_t size,
			      int type, unsigned long long flags);
	int (*to_device)(cuda_ptr to, const void *from, size_t size,
			 void *stream);
	int (*from_device)(void *to, cuda_ptr from, size_t size,
			   void *stream);
	int (*stream_create)(void **stream, unsigned int flags);
	int (*stream_destroy)(void *stream);
	int (*stream_wait)(void *stream);
	int (*device)(int *device, int ordinal);
	int (*context)(void **context);
	int (*push)(void *context);
	int (*pop)(void **context);
	int (*stream_capturing)(void *stream, int *status);
	int (*context_id)(void *context, unsigned long long *id);
	int (*capture_mode)(int *mode);
	int (*primary_retain)(void **context, int device);
	int (*primary_release)(int device);
	int (*primary_state)(int device, unsigned int *flags, int *active);
	int (*device_attribute)(int *value, int attribute, int device);
	int (*pci_id)(char *text, int length, int device);
	int (*error_text)(int error, const char **text);
	int (*host_alloc)(void **ptr, size_t size, unsigned int flags);
	int (*priorities)(int *least, int *greatest);
	int (*stream_urgent)(void **stream, unsigned int flags, int priority);
};

extern struct cuda_table fxi_cuda;
extern struct library fxi_library_cuda;

/*
 * A stream that waits for no other one, in the current context. The driver maps
 * streams to few queues of the hardware, of which one that waits for a value blocks
 * its own. Streams of ours have the highest priority, so that they share none with
 * those that applications have as a rule; that this suffices has not been shown yet
 * (docs/gpu-real.md).
 */
int fxi_cuda_stream(void **stream);

#endif
