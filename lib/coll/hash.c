// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A hash of bytes for identifiers and checks: FNV-1a with a final mix. Called
 * by all strata of lib/coll.
 */
#include "coll/comm.h"

uint64_t fxi_hash(const void *bytes, size_t length, uint64_t seed)
{
	const unsigned char *p = bytes;
	uint64_t value = 0xcbf29ce484222325ull ^ seed * 0x9e3779b97f4a7c15ull;
	size_t i;

	for (i = 0; i < length; i++)
		value = (value ^ p[i]) * 0x100000001b3ull;
	value = (value ^ value >> 32) * 0xd6e8feb86659fd93ull;
	return value ^ value >> 32;
}
