/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What atomic operations compute, and which of them there are. Every one of
 * these can be made out of compare-and-swap on a word of 8 bytes; complex
 * numbers, long double and integers of 128 bits cannot, or not exactly.
 */
#ifndef FABREX_ATOMIC_OP_H
#define FABREX_ATOMIC_OP_H

#include "provider.h"

/* How it is called: fi_atomic(), fi_fetch_atomic(), fi_compare_atomic(). */
enum atomic_call { ATOMIC_BASE, ATOMIC_FETCH, ATOMIC_COMPARE };

/* FI_DIFF came with 2.0: its number is that of nothing before. */
#define ATOMIC_DIFF	19

/* Bytes; 0: there is no operation on that type. */
size_t atomic_size(enum fi_datatype type);
bool atomic_offered(enum fi_datatype type, enum fi_op op,
		    enum atomic_call call);
/* What becomes of an element. None needs to be aligned. */
void atomic_apply(enum fi_datatype type, enum fi_op op, void *element,
		  const void *operand, const void *compare);

#endif
