/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CRC32C (Castagnoli). Any thread, after crc32c_init().
 */
#ifndef EMU_CRC32C_H
#define EMU_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Chooses the fastest way this CPU has. */
void crc32c_init(void);

/* Continue @crc (0 at first) over @len bytes. */
uint32_t crc32c(uint32_t crc, const void *buf, size_t len);

/* The way without special instructions, for tests. */
uint32_t crc32c_table(uint32_t crc, const void *buf, size_t len);

#endif
