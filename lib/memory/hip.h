/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The part of AMD's HIP runtime that we call, declared from the HIP API
 * documentation. lib/tests/vendor/hip.c compares it with the real header.
 */
#ifndef LIB_MEMORY_HIP_H
#define LIB_MEMORY_HIP_H

#include <stddef.h>
#include <stdint.h>

#include "memory/library.h"

#define HIP_OK				0
#define HIP_ERROR_NOT_SUPPORTED		801

/*
 * Attributes of pointers, queried one by one: the structure that holds several,
 * and the numbers of memory types, differ between HIP 5 and 6.
 */
#define HIP_ATTRIBUTE_MEMORY_TYPE	2
#define HIP_ATTRIBUTE_BUFFER_ID		7
#define HIP_ATTRIBUTE_IS_MANAGED	8
#define HIP_ATTRIBUTE_DEVICE		9
#define HIP_ATTRIBUTE_RANGE_START	11
#define HIP_ATTRIBUTE_RANGE_SIZE	12

#define HIP5_MEMORY_DEVICE		1
#define HIP6_MEMORY_DEVICE		2

#define HIP_COPY_TO_DEVICE		1
#define HIP_COPY_FROM_DEVICE		2

#define HIP_CAPTURE_RELAXED		2	/* hipStreamCaptureMode */

#define HIP_HANDLE_FD			1	/* of a VMM allocation */
#define HIP_RANGE_DMABUF		1	/* of an address range, ROCm 7 */

struct hip_table {
	int (*attribute)(void *value, int attribute, void *ptr);
	int (*version)(int *version);
	int (*address_handle)(void *handle, void *ptr, size_t size, int type,
			      unsigned long long flags);
	int (*retain_handle)(void **handle, void *ptr);
	int (*export_handle)(void *out, void *handle, int type,
			     unsigned long long flags);
	int (*release_handle)(void *handle);
	int (*copy)(void *to, const void *from, size_t size, int kind,
		    void *stream);
	int (*stream_create)(void **stream, unsigned int flags);
	int (*stream_destroy)(void *stream);
	int (*stream_wait)(void *stream);
	int (*get_device)(int *device);
	int (*set_device)(int device);
	int (*capture_mode)(int *mode);
	int (*pci_id)(char *text, int length, int device);
	int (*peek_error)(void);
	int (*take_error)(void);
	const char *(*error_text)(int error);
};

extern struct hip_table fxi_hip;
extern struct library fxi_library_hip;

#endif
