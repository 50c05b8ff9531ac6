// SPDX-License-Identifier: GPL-2.0-only
/*
 * gpu-expected RANKS BYTES: CRC32C of the sum of what rank.c's ranks contribute,
 * added up in integers and without any of the code that is tested. Runs
 * anywhere; the demo has the machine do it that emulates the hosts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contribution.h"

#define POLYNOMIAL	0x82f63b78u	/* CRC32C, low bit first */

static uint32_t table[256];
static int32_t entries[CONTRIBUTION_MOST][CONTRIBUTION_TABLE];

static void make_tables(uint32_t ranks)
{
	uint32_t rank, entry;

	for (rank = 0; rank < ranks; rank++)
		for (entry = 0; entry < CONTRIBUTION_TABLE; entry++)
			entries[rank][entry] = contribution_entry(rank, entry);
}

static void make_crc_table(void)
{
	uint32_t byte, crc;
	int bit;

	for (byte = 0; byte < 256; byte++) {
		crc = byte;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
		table[byte] = crc;
	}
}

static uint32_t add(uint32_t crc, uint32_t word)
{
	int byte;

	for (byte = 0; byte < 4; byte++, word >>= 8)
		crc = crc >> 8 ^ table[(crc ^ word) & 0xff];
	return crc;
}

/* Of the FLOAT32 that is this element of the sum. */
static uint32_t bits_of_sum(uint32_t ranks, uint64_t element)
{
	uint64_t block = element / CONTRIBUTION_BLOCK;
	uint32_t at = element % CONTRIBUTION_BLOCK, rank, bits;
	int64_t steps = 0;
	float sum;

	for (rank = 0; rank < ranks; rank++)
		steps += entries[rank][contribution_begin(rank, block) + at];
	sum = (float)steps * CONTRIBUTION_STEP;
	memcpy(&bits, &sum, sizeof(bits));
	return bits;
}

int main(int argc, char **argv)
{
	uint64_t bytes = argc == 3 ? strtoull(argv[2], NULL, 0) : 0, i;
	uint32_t ranks = argc == 3 ? (uint32_t)strtoul(argv[1], NULL, 0) : 0;
	uint32_t crc = UINT32_MAX;

	if (!ranks || ranks > CONTRIBUTION_MOST || !bytes || bytes % 4) {
		fprintf(stderr, "usage: gpu-expected RANKS BYTES\n");
		return 1;
	}
	make_crc_table();
	make_tables(ranks);
	for (i = 0; i < bytes / 4; i++)
		crc = add(crc, bits_of_sum(ranks, i));
	printf("%08x\n", ~crc);
	return 0;
}
