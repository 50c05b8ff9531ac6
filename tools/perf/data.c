// SPDX-License-Identifier: GPL-2.0-only
/*
 * CRC32C (the polynomial of the end-to-end check) and a pattern that no two
 * places share. Used by both sides.
 */
#include <endian.h>
#include <pthread.h>
#include <string.h>

#include "perf.h"

#define POLY	0x82f63b78u	/* Castagnoli, reflected */

static uint32_t table[8][256];

static void make_table(void)
{
	uint32_t i, k, crc;

	for (i = 0; i < 256; i++) {
		crc = i;
		for (k = 0; k < 8; k++)
			crc = crc >> 1 ^ (crc & 1 ? POLY : 0);
		table[0][i] = crc;
	}
	for (i = 0; i < 256; i++)
		for (k = 1; k < 8; k++)
			table[k][i] = table[k - 1][i] >> 8 ^
				      table[0][table[k - 1][i] & 0xff];
}

/* Eight bytes at a time by eight tables. */
static uint32_t crc_tables(uint32_t crc, const uint8_t *p, size_t n)
{
	uint64_t v;

	for (; n >= 8; n -= 8, p += 8) {
		memcpy(&v, p, 8);
		v = le64toh(v) ^ crc;
		crc = table[7][v & 0xff] ^ table[6][v >> 8 & 0xff] ^
		      table[5][v >> 16 & 0xff] ^ table[4][v >> 24 & 0xff] ^
		      table[3][v >> 32 & 0xff] ^ table[2][v >> 40 & 0xff] ^
		      table[1][v >> 48 & 0xff] ^ table[0][v >> 56];
	}
	for (; n; n--, p++)
		crc = crc >> 8 ^ table[0][(crc ^ *p) & 0xff];
	return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2")))
static uint32_t crc_sse42(uint32_t crc, const uint8_t *p, size_t n)
{
	uint64_t wide = crc, v;

	for (; n >= 8; n -= 8, p += 8) {
		memcpy(&v, p, 8);
		wide = __builtin_ia32_crc32di(wide, v);
	}
	crc = (uint32_t)wide;
	for (; n; n--, p++)
		crc = __builtin_ia32_crc32qi(crc, *p);
	return crc;
}
#endif

uint32_t crc32c(uint32_t crc, const void *data, size_t n)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	crc = ~crc;
#if defined(__x86_64__)
	if (__builtin_cpu_supports("sse4.2"))
		return ~crc_sse42(crc, data, n);
#endif
	pthread_once(&once, make_table);
	return ~crc_tables(crc, data, n);
}

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
