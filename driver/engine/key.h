/* SPDX-License-Identifier: GPL-2.0-only */
/* Keys of regions and queues. For region.c and queue.c. */
#ifndef _ENGINE_KEY_H
#define _ENGINE_KEY_H

#include <linux/random.h>

#include "engine.h"

/* How many low bits of a key are the number is the same for all. */
#define ENGINE_KEY_MASK		(ENGINE_MAX_REGIONS - 1ull)

static_assert(!(ENGINE_MAX_REGIONS & ENGINE_KEY_MASK));
static_assert(ENGINE_MAX_QUEUES <= ENGINE_MAX_REGIONS);

static inline u32 engine_key_number(u64 key)
{
	return key & ENGINE_KEY_MASK;
}

/* Never 0, and never again the same. */
static inline u64 engine_key_new(u32 number)
{
	u64 random;

	do {
		random = get_random_u64() & ~ENGINE_KEY_MASK;
	} while (!random);
	return random | number;
}

#endif
