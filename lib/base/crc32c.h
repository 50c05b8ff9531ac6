/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * CRC32C (Castagnoli), the sum of end-to-end checks. For the loopback transport,
 * draco-emu and fabrex-perf.
 */
#ifndef LIB_CRC32C_H
#define LIB_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continues @crc, 0 at first, over @n bytes. */
uint32_t fxi_crc32c(uint32_t crc, const void *data, size_t n);
/* The same without the processor's instruction, for tests. */
uint32_t fxi_crc32c_table(uint32_t crc, const void *data, size_t n);

#endif
