// SPDX-License-Identifier: GPL-2.0-only
/* See memory.h. */
#include "../runtime/gpu.h"
#include "../runtime/hip.h"
#include "memory.h"

#define TO_DEVICE	1
#define FROM_DEVICE	2

void *memory_new(size_t bytes)
{
	void *p;

	return hipInit(0) || hipMalloc(&p, bytes) ? NULL : p;
}

bool memory_put(void *to, const void *from, size_t bytes)
{
	return !hipMemcpy(to, from, bytes, TO_DEVICE);
}

bool memory_get(void *to, const void *from, size_t bytes)
{
	return !hipMemcpy(to, from, bytes, FROM_DEVICE);
}

bool memory_move(void *p, bool away)
{
	return gpu_move(GPU_AMD, p, away);
}
