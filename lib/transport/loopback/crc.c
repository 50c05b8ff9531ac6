// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * CRC32C with the processor's instruction where there is one, else by table.
 */
#include <pthread.h>
#include <string.h>

#include "crc.h"

#define POLYNOMIAL	0x82f63b78u	/* reflected */

static uint32_t table[256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void table_make(void)
{
	uint32_t i, bit, value;

	for (i = 0; i < 256; i++) {
		value = i;
		for (bit = 0; bit < 8; bit++)
			value = value >> 1 ^ (value & 1 ? POLYNOMIAL : 0);
		table[i] = value;
	}
}

static uint32_t by_table(uint32_t crc, const uint8_t *p, size_t n)
{
	pthread_once(&table_once, table_make);
	while (n--)
		crc = crc >> 8 ^ table[(crc ^ *p++) & 0xff];
	return crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2")))
static uint32_t by_instruction(uint32_t crc, const uint8_t *p, size_t n)
{
	uint64_t wide = crc, word;

	for (; n >= 8; p += 8, n -= 8) {
		memcpy(&word, p, 8);
		wide = __builtin_ia32_crc32di(wide, word);
	}
	crc = (uint32_t)wide;
	while (n--)
		crc = __builtin_ia32_crc32qi(crc, *p++);
	return crc;
}
#endif

uint32_t fxi_crc32c(uint32_t crc, const void *data, size_t n)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("sse4.2"))
		return ~by_instruction(~crc, data, n);
#endif
	return ~by_table(~crc, data, n);
}
