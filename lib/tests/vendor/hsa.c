// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Compiled only: what lib/memory/hsa.h declares by itself is what the header
 * of the HSA run time declares. The second version of the export of dma-bufs
 * is in no header of Debian's.
 */
#include <stddef.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

/* Ours, under names of their own. */
#define hsa_agent our_agent
#define hsa_pointer_info our_pointer_info
#include "memory/hsa.h"
#undef hsa_agent
#undef hsa_pointer_info

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
#define SAME_AT(ours, theirs) \
	_Static_assert(offsetof(struct our_pointer_info, ours) == \
		       offsetof(hsa_amd_pointer_info_t, theirs) && \
		       sizeof(((struct our_pointer_info *)0)->ours) == \
		       sizeof(((hsa_amd_pointer_info_t *)0)->theirs), #theirs)

SAME(HSA_OK, HSA_STATUS_SUCCESS);
SAME(HSA_INVALID_ARGUMENT, HSA_STATUS_ERROR_INVALID_ARGUMENT);
SAME(HSA_INVALID_ALLOCATION, HSA_STATUS_ERROR_INVALID_ALLOCATION);
SAME(HSA_INVALID_AGENT, HSA_STATUS_ERROR_INVALID_AGENT);
SAME(HSA_OUT_OF_RESOURCES, HSA_STATUS_ERROR_OUT_OF_RESOURCES);
SAME(HSA_NOT_INITIALIZED, HSA_STATUS_ERROR_NOT_INITIALIZED);
SAME(HSA_POINTER_UNKNOWN, HSA_EXT_POINTER_TYPE_UNKNOWN);
SAME(HSA_POINTER_ALLOCATED, HSA_EXT_POINTER_TYPE_HSA);
SAME(HSA_POINTER_LOCKED, HSA_EXT_POINTER_TYPE_LOCKED);
SAME(HSA_POINTER_GRAPHICS, HSA_EXT_POINTER_TYPE_GRAPHICS);
SAME(HSA_POINTER_IPC, HSA_EXT_POINTER_TYPE_IPC);
SAME(HSA_INFO_NODE, HSA_AGENT_INFO_NODE);
SAME(HSA_INFO_DEVICE, HSA_AGENT_INFO_DEVICE);
SAME(HSA_INFO_BDFID, HSA_AMD_AGENT_INFO_BDFID);
SAME(HSA_INFO_DOMAIN, HSA_AMD_AGENT_INFO_DOMAIN);
SAME(HSA_TYPE_GPU, HSA_DEVICE_TYPE_GPU);

_Static_assert(sizeof(struct our_pointer_info) ==
	       sizeof(hsa_amd_pointer_info_t), "size of the pointer info");
SAME_AT(size, size);
SAME_AT(type, type);
SAME_AT(agent_base, agentBaseAddress);
SAME_AT(host_base, hostBaseAddress);
SAME_AT(length, sizeInBytes);
SAME_AT(user_data, userData);
SAME_AT(owner, agentOwner);
SAME_AT(global_flags, global_flags);
_Static_assert(sizeof(struct our_agent) == sizeof(hsa_agent_t) &&
	       sizeof(hsa_status_t) == sizeof(int) &&
	       sizeof(hsa_agent_info_t) == sizeof(int) &&
	       sizeof(hsa_device_type_t) == sizeof(uint32_t), "sizes");

/* The header's functions have the parameters that ours are given. */
struct theirs {
	hsa_status_t (*pointer_info)(const void *, hsa_amd_pointer_info_t *,
				     void *(*)(size_t), uint32_t *,
				     hsa_agent_t **);
	hsa_status_t (*agent_info)(hsa_agent_t, hsa_agent_info_t, void *);
	hsa_status_t (*export_dmabuf)(const void *, size_t, int *, uint64_t *);
	hsa_status_t (*iterate_agents)(hsa_status_t (*)(hsa_agent_t, void *),
				       void *);
	hsa_status_t (*iterate_pools)(hsa_agent_t,
				      hsa_status_t (*)(hsa_amd_memory_pool_t,
						       void *), void *);
	hsa_status_t (*allocate)(hsa_amd_memory_pool_t, size_t, uint32_t,
				 void **);
	hsa_status_t (*free)(void *);
	hsa_status_t (*copy)(void *, const void *, size_t);
	hsa_status_t (*close_dmabuf)(int);
};

extern const struct theirs hsa_functions;
const struct theirs hsa_functions = {
	hsa_amd_pointer_info, hsa_agent_get_info,
	hsa_amd_portable_export_dmabuf, hsa_iterate_agents,
	hsa_amd_agent_iterate_memory_pools, hsa_amd_memory_pool_allocate,
	hsa_amd_memory_pool_free, hsa_memory_copy,
	hsa_amd_portable_close_dmabuf,
};
