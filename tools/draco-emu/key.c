// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keys of regions and queues. Called by mr.c and queue.c.
 */
#include "key.h"

#include <sys/random.h>

bool key_new(uint32_t index, uint32_t max, uint64_t *key)
{
	uint64_t mask = key_index_mask(max);
	uint64_t r;

	do {
		if (getrandom(&r, sizeof(r), 0) != sizeof(r))
			return false;
	} while (!(r & ~mask));
	*key = (r & ~mask) | index;
	return true;
}
