/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The part of AMD's HSA runtime that we call, declared from the ROCr
 * documentation. lib/tests/vendor/hsa.c compares it with the real header.
 */
#ifndef LIB_MEMORY_HSA_H
#define LIB_MEMORY_HSA_H

#include <stddef.h>
#include <stdint.h>

#include "memory/library.h"

#define HSA_OK				0
#define HSA_INVALID_ARGUMENT		0x1001
#define HSA_INVALID_ALLOCATION		0x1003
#define HSA_INVALID_AGENT		0x1004
#define HSA_OUT_OF_RESOURCES		0x1008
#define HSA_NOT_INITIALIZED		0x100b

#define HSA_POINTER_UNKNOWN		0
#define HSA_POINTER_ALLOCATED		1
#define HSA_POINTER_LOCKED		2
#define HSA_POINTER_GRAPHICS		3
#define HSA_POINTER_IPC			4
/* ROCm 6: address range and mapping of the virtual memory functions */
#define HSA_POINTER_RESERVED		5
#define HSA_POINTER_VMEM		6

#define HSA_INFO_NODE			16
#define HSA_INFO_DEVICE			17	/* type of the agent */
#define HSA_INFO_BDFID			0xa006
#define HSA_INFO_DOMAIN			0xa00f
#define HSA_TYPE_GPU			1

/* Flag of the second version of the export. */
#define HSA_DMABUF_PCIE			1

struct hsa_agent {
	uint64_t handle;
};

/* The runtime fills in @size bytes, or as many as it knows. */
struct hsa_pointer_info {
	uint32_t size;
	int32_t type;
	void *agent_base;
	void *host_base;
	size_t length;
	void *user_data;
	struct hsa_agent owner;
	uint32_t global_flags;
};

struct hsa_table {
	int (*pointer_info)(const void *ptr, struct hsa_pointer_info *info,
			    void *(*alloc)(size_t size), uint32_t *nagents,
			    struct hsa_agent **agents);
	int (*copy)(void *to, const void *from, size_t size);
	int (*agent_info)(struct hsa_agent agent, int attribute, void *value);
	int (*export_dmabuf)(const void *ptr, size_t size, int *fd,
			     uint64_t *offset);
	int (*export_dmabuf_v2)(const void *ptr, size_t size, int *fd,
				uint64_t *offset, uint64_t flags);
};

extern struct hsa_table fxi_hsa;
extern struct library fxi_library_hsa;

#endif
