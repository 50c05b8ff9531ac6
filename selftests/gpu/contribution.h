/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What each rank puts into an all-reduce, for rank.c, which does, and for
 * expected.c, which says what must come out. Blocks of elements are cut out of a
 * table of the rank's, each somewhere else: emulated processors copy faster than
 * they compute.
 */
#ifndef SELFTEST_CONTRIBUTION_H
#define SELFTEST_CONTRIBUTION_H

#include <stdint.h>

/*
 * Steps of 2^-10 from -1024 up to 1024: a FLOAT32 holds the sum of 16 of them
 * exactly, so it is the same in whatever order it is computed.
 */
#define CONTRIBUTION_MOST	16u	/* ranks */
#define CONTRIBUTION_STEP	0x1p-10f
#define CONTRIBUTION_BLOCK	65536u	/* elements */
#define CONTRIBUTION_TABLE	(2 * CONTRIBUTION_BLOCK)

static inline uint64_t contribution_hash(uint32_t rank, uint64_t number)
{
	uint64_t x = (number + 1) * 0x9e3779b97f4a7c15ull +
		     rank * 0xbf58476d1ce4e5b9ull;

	return (x ^ x >> 30) * 0x94d049bb133111ebull;
}

/* In steps. */
static inline int32_t contribution_entry(uint32_t rank, uint32_t entry)
{
	return (int32_t)(contribution_hash(rank, entry) >> 43) - (1 << 20);
}

/* The entry that is the first element of a block. */
static inline uint32_t contribution_begin(uint32_t rank, uint64_t block)
{
	return contribution_hash(~rank, block) >> 32 & (CONTRIBUTION_BLOCK - 1);
}

#endif
