// SPDX-License-Identifier: GPL-2.0-only
/* See memory.h. */
#include <stdlib.h>
#include <string.h>

#include "memory.h"

void *memory_new(size_t bytes)
{
	return malloc(bytes);
}

bool memory_put(void *to, const void *from, size_t bytes)
{
	memcpy(to, from, bytes);
	return true;
}

bool memory_get(void *to, const void *from, size_t bytes)
{
	return memory_put(to, from, bytes);
}

bool memory_move(void *p, bool away)
{
	(void)p;
	(void)away;
	return false;
}
