/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reductions one element at a time, written to be right and not fast. For
 * tests of the library's.
 */
#ifndef LIB_TESTS_REDUCE_REFERENCE_H
#define LIB_TESTS_REDUCE_REFERENCE_H

#include <stddef.h>
#include <stdint.h>
#include <fabrex/coll.h>

size_t reference_size(uint32_t type);
/* Numbers of all kinds; for floating point NaNs and infinities among them. */
void reference_fill(uint32_t type, void *out, size_t count);
void reference_reduce(void *dst, const void *const *src, uint32_t nsrc,
		      size_t count, uint32_t type, uint32_t op,
		      uint32_t divisor);

/* Values of 16-bit patterns, bit by bit; and back, to nearest even. */
double reference_value16(uint32_t type, uint16_t bits);
uint16_t reference_bits16(uint32_t type, double value);
/* Pseudo-random numbers, the same in each run. */
uint64_t noise(void);

#endif
