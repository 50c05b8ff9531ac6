/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Structures that hip.c shares with programs which were compiled with HIP's
 * header; lib/tests/vendor/hip.c compares them with it.
 */
#ifndef RUNTIME_HIP_TYPES_H
#define RUNTIME_HIP_TYPES_H

struct hip_allocation {			/* hipMemAllocationProp */
	int type;			/* 1: pinned to its device */
	int handle_type;
	int location_type;		/* 1: device */
	int location_id;
	void *win32;
	struct {
		unsigned char compression;
		unsigned char rdma;
		unsigned short usage;
	} flags;
};

struct hip_ipc_handle {			/* hipIpcMemHandle_t */
	char reserved[64];
};

struct hip_pointer {			/* hipPointerAttribute_t */
	int type;
	int device;
	void *device_pointer;
	void *host_pointer;
	int managed;
	unsigned int flags;
};

#endif
