/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * CRC32C (Castagnoli) for entries with FABREX_SQE_CHECK. Only engine.c calls.
 */
#ifndef LIB_LOOPBACK_CRC_H
#define LIB_LOOPBACK_CRC_H

#include <stddef.h>
#include <stdint.h>

/* Of what was summed up in @crc (0: nothing) and @n bytes more. */
uint32_t fxi_crc32c(uint32_t crc, const void *data, size_t n);

#endif
