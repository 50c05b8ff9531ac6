/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The HSA functions that hsa.c implements and tests call, declared for
 * machines without HSA's headers; compared with those where they are there.
 */
#ifndef RUNTIME_HSA_H
#define RUNTIME_HSA_H

#include <stddef.h>
#include <stdint.h>

#include "memory/hsa.h"

struct hsa_pool {
	uint64_t handle;
};

int hsa_init(void);
int hsa_shut_down(void);
int hsa_iterate_agents(int (*call)(struct hsa_agent agent, void *arg),
		       void *arg);
int hsa_agent_get_info(struct hsa_agent agent, int attribute, void *value);
int hsa_amd_agent_iterate_memory_pools(struct hsa_agent agent,
				       int (*call)(struct hsa_pool pool,
						   void *arg), void *arg);
int hsa_amd_memory_pool_allocate(struct hsa_pool pool, size_t size,
				 uint32_t flags, void **ptr);
int hsa_amd_memory_pool_free(void *ptr);
int hsa_memory_copy(void *to, const void *from, size_t size);
int hsa_amd_pointer_info(const void *ptr, struct hsa_pointer_info *info,
			 void *(*alloc)(size_t size), uint32_t *nagents,
			 struct hsa_agent **agents);
int hsa_amd_portable_export_dmabuf(const void *ptr, size_t size, int *fd,
				   uint64_t *offset);
int hsa_amd_portable_export_dmabuf_v2(const void *ptr, size_t size, int *fd,
				      uint64_t *offset, uint64_t flags);
int hsa_amd_portable_close_dmabuf(int fd);

#endif
