// SPDX-License-Identifier: GPL-2.0-only
/* A pattern that no two places share. Used by both sides. */
#include <string.h>

#include "perf.h"

void fill_pattern(void *data, size_t n, uint64_t seed)
{
	uint64_t v = seed * 0x9e3779b97f4a7c15u + 1;
	uint8_t *p = data;
	size_t i, part;

	for (i = 0; i < n; i += 8) {
		v ^= v << 13;
		v ^= v >> 7;
		v ^= v << 17;
		part = n - i < 8 ? n - i : 8;
		memcpy(p + i, &v, part);
	}
}
