/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keys of regions and queues: the index in the low bits, as few as the table
 * needs, and random bits above.
 */
#ifndef EMU_KEY_H
#define EMU_KEY_H

#include <stdbool.h>
#include <stdint.h>

/* Of the index, in a table of @max entries. */
static inline unsigned int key_index_bits(uint32_t max)
{
	return max > 1 ? 32 - (unsigned int)__builtin_clz(max - 1) : 0;
}

static inline uint32_t key_index_mask(uint32_t max)
{
	return (uint32_t)((1ull << key_index_bits(max)) - 1);
}

/* A key that was never given out, as far as chance goes, and not 0. */
bool key_new(uint32_t index, uint32_t max, uint64_t *key);

#endif
