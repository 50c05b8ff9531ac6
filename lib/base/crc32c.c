// SPDX-License-Identifier: LGPL-2.1-or-later
/* CRC32C by the instruction of SSE4.2 where the processor has it, else by tables. */
#include <endian.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/crc32c.h"

#define POLYNOMIAL	0x82f63b78u	/* reflected */
#define LANE		4096u		/* bytes of each of three parallel streams */

static uint32_t table[8][256];
static uint32_t lane_shift[4][256];	/* a CRC continued over LANE zero bytes */
#ifdef __x86_64__
static bool has_instruction;
#endif
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint32_t continue_zeroes(uint32_t crc, size_t bytes)
{
	while (bytes--)
		crc = table[0][crc & 255] ^ crc >> 8;
	return crc;
}

static void make_lane_shift(void)
{
	uint32_t bit[32], i, k, b;

	for (i = 0; i < 32; i++)
		bit[i] = continue_zeroes(1u << i, LANE);
	for (k = 0; k < 4; k++)
		for (b = 0; b < 256; b++)
			for (i = 0; i < 8; i++)
				lane_shift[k][b] ^= b >> i & 1 ?
						    bit[8 * k + i] : 0;
}

static void prepare(void)
{
	uint32_t b, i, k, crc;

	for (b = 0; b < 256; b++) {
		crc = b;
		for (i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
		table[0][b] = crc;
	}
	for (k = 1; k < 8; k++)
		for (b = 0; b < 256; b++)
			table[k][b] = table[0][table[k - 1][b] & 255] ^
				      table[k - 1][b] >> 8;
	make_lane_shift();
#ifdef __x86_64__
	has_instruction = __builtin_cpu_supports("sse4.2");
#endif
}

#ifdef __x86_64__
static uint32_t shift_lane(uint64_t crc)
{
	return lane_shift[0][crc & 255] ^ lane_shift[1][crc >> 8 & 255] ^
	       lane_shift[2][crc >> 16 & 255] ^ lane_shift[3][crc >> 24 & 255];
}

__attribute__((target("sse4.2")))
static uint64_t by_word(uint64_t crc, const uint8_t *p, size_t n)
{
	uint64_t word;

	for (; n >= 8; p += 8, n -= 8) {
		memcpy(&word, p, 8);
		crc = __builtin_ia32_crc32di(crc, word);
	}
	while (n--)
		crc = __builtin_ia32_crc32qi((uint32_t)crc, *p++);
	return crc;
}

/* The instruction has a latency of three cycles, so three are under way. */
__attribute__((target("sse4.2")))
static uint64_t by_lanes(uint64_t crc, const uint8_t *p)
{
	uint64_t second = 0, third = 0, words[3];
	size_t i;

	for (i = 0; i < LANE; i += 8) {
		memcpy(&words[0], p + i, 8);
		memcpy(&words[1], p + LANE + i, 8);
		memcpy(&words[2], p + 2 * LANE + i, 8);
		crc = __builtin_ia32_crc32di(crc, words[0]);
		second = __builtin_ia32_crc32di(second, words[1]);
		third = __builtin_ia32_crc32di(third, words[2]);
	}
	second ^= shift_lane(crc);
	return third ^ shift_lane(second);
}

static uint32_t by_instruction(uint32_t crc, const uint8_t *p, size_t n)
{
	uint64_t wide = (uint32_t)~crc;

	for (; n >= 3 * LANE; p += 3 * LANE, n -= 3 * LANE)
		wide = by_lanes(wide, p);
	return ~(uint32_t)by_word(wide, p, n);
}
#endif

static uint32_t by_table(uint32_t crc, const uint8_t *p, size_t n)
{
	uint64_t v;

	crc = ~crc;
	for (; n >= 8; p += 8, n -= 8) {
		memcpy(&v, p, 8);
		v = le64toh(v) ^ crc;
		crc = table[7][v & 255] ^ table[6][v >> 8 & 255] ^
		      table[5][v >> 16 & 255] ^ table[4][v >> 24 & 255] ^
		      table[3][v >> 32 & 255] ^ table[2][v >> 40 & 255] ^
		      table[1][v >> 48 & 255] ^ table[0][v >> 56];
	}
	while (n--)
		crc = table[0][(crc ^ *p++) & 255] ^ crc >> 8;
	return ~crc;
}

uint32_t fxi_crc32c_table(uint32_t crc, const void *data, size_t n)
{
	pthread_once(&once, prepare);
	return by_table(crc, data, n);
}

uint32_t fxi_crc32c(uint32_t crc, const void *data, size_t n)
{
	pthread_once(&once, prepare);
#ifdef __x86_64__
	if (has_instruction)
		return by_instruction(crc, data, n);
#endif
	return by_table(crc, data, n);
}
