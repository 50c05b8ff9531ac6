// SPDX-License-Identifier: GPL-2.0-only
/*
 * CRC32C: SSE4.2 where the CPU has it, else eight tables. Called by the DMA
 * engine.
 */
#include "crc32c.h"

#include <string.h>

#define POLY	0x82f63b78u	/* 0x1edc6f41, bits reversed */
#define LANE	4096u		/* bytes of each of three parallel streams */

static uint32_t table[8][256];
static uint32_t lane_shift[4][256];	/* a CRC pushed on by LANE zero bytes */
static uint32_t (*crc_fn)(uint32_t crc, const void *buf, size_t len) =
	crc32c_table;

uint32_t crc32c_table(uint32_t crc, const void *buf, size_t len)
{
	const unsigned char *p = buf;

	crc = ~crc;
	for (; len >= 8; p += 8, len -= 8) {
		uint64_t v;

		memcpy(&v, p, 8);
		v ^= crc;
		crc = table[7][v & 255] ^ table[6][(v >> 8) & 255] ^
		      table[5][(v >> 16) & 255] ^ table[4][(v >> 24) & 255] ^
		      table[3][(v >> 32) & 255] ^ table[2][(v >> 40) & 255] ^
		      table[1][(v >> 48) & 255] ^ table[0][v >> 56];
	}
	while (len--)
		crc = table[0][(crc ^ *p++) & 255] ^ (crc >> 8);
	return ~crc;
}

#ifdef __x86_64__
static uint32_t shift_lane(uint32_t crc)
{
	return lane_shift[0][crc & 255] ^ lane_shift[1][(crc >> 8) & 255] ^
	       lane_shift[2][(crc >> 16) & 255] ^ lane_shift[3][crc >> 24];
}

__attribute__((target("sse4.2")))
static uint64_t plain_sse(uint64_t c, const unsigned char *p, size_t len)
{
	for (; len >= 8; p += 8, len -= 8) {
		uint64_t v;

		memcpy(&v, p, 8);
		c = __builtin_ia32_crc32di(c, v);
	}
	while (len--)
		c = __builtin_ia32_crc32qi((uint32_t)c, *p++);
	return c;
}

/* The instruction has a latency of three cycles: keep three under way. */
__attribute__((target("sse4.2")))
static uint64_t lanes_sse(uint64_t c0, const unsigned char *p)
{
	uint64_t c1 = 0, c2 = 0;

	for (size_t i = 0; i < LANE; i += 8) {
		uint64_t v0, v1, v2;

		memcpy(&v0, p + i, 8);
		memcpy(&v1, p + LANE + i, 8);
		memcpy(&v2, p + 2 * LANE + i, 8);
		c0 = __builtin_ia32_crc32di(c0, v0);
		c1 = __builtin_ia32_crc32di(c1, v1);
		c2 = __builtin_ia32_crc32di(c2, v2);
	}
	c1 ^= shift_lane((uint32_t)c0);
	return c2 ^ shift_lane((uint32_t)c1);
}

static uint32_t crc32c_sse(uint32_t crc, const void *buf, size_t len)
{
	const unsigned char *p = buf;
	uint64_t c = (uint32_t)~crc;

	for (; len >= 3 * LANE; p += 3 * LANE, len -= 3 * LANE)
		c = lanes_sse(c, p);
	return ~(uint32_t)plain_sse(c, p, len);
}
#endif

static uint32_t push_zeros(uint32_t crc, size_t bytes)
{
	while (bytes--)
		crc = table[0][crc & 255] ^ (crc >> 8);
	return crc;
}

static void build_lane_shift(void)
{
	uint32_t bit[32];

	for (unsigned int i = 0; i < 32; i++)
		bit[i] = push_zeros(1u << i, LANE);
	for (unsigned int k = 0; k < 4; k++) {
		for (unsigned int b = 0; b < 256; b++) {
			uint32_t v = 0;

			for (unsigned int i = 0; i < 8; i++)
				v ^= b >> i & 1 ? bit[8 * k + i] : 0;
			lane_shift[k][b] = v;
		}
	}
}

void crc32c_init(void)
{
	for (unsigned int b = 0; b < 256; b++) {
		uint32_t c = b;

		for (unsigned int i = 0; i < 8; i++)
			c = c & 1 ? c >> 1 ^ POLY : c >> 1;
		table[0][b] = c;
	}
	for (unsigned int k = 1; k < 8; k++) {
		for (unsigned int b = 0; b < 256; b++)
			table[k][b] = table[0][table[k - 1][b] & 255] ^
				      table[k - 1][b] >> 8;
	}
	build_lane_shift();
#ifdef __x86_64__
	if (__builtin_cpu_supports("sse4.2"))
		crc_fn = crc32c_sse;
#endif
}

uint32_t crc32c(uint32_t crc, const void *buf, size_t len)
{
	return crc_fn(crc, buf, len);
}
