/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Vectors of VECTOR bytes, which is defined before this is included. For
 * lib/coll/reduce/ only.
 */
#ifndef LIB_COLL_REDUCE_TYPES_H
#define LIB_COLL_REDUCE_TYPES_H

#include <string.h>

#include "coll/reduce/isa.h"

#define INLINE	static inline __attribute__((always_inline, unused))

#define VECTOR_OF(type) \
	type __attribute__((vector_size(VECTOR), may_alias))

typedef VECTOR_OF(uint8_t) raw;
typedef raw raw_unaligned __attribute__((aligned(1)));
typedef VECTOR_OF(int8_t) v_int8_t;
typedef VECTOR_OF(uint8_t) v_uint8_t;
typedef VECTOR_OF(int16_t) v_int16_t;
typedef VECTOR_OF(uint16_t) v_uint16_t;
typedef VECTOR_OF(int32_t) v_int32_t;
typedef VECTOR_OF(uint32_t) v_uint32_t;
typedef VECTOR_OF(int64_t) v_int64_t;
typedef VECTOR_OF(uint64_t) v_uint64_t;
typedef VECTOR_OF(float) v_float;
typedef VECTOR_OF(double) v_double;

#define NAN_32	0x7fc00000u
#define NAN_64	0x7ff8000000000000u

/* Elements being reduced: a vector of them, or two for those of 16 bits. */
struct acc {
	raw a, b;
};

INLINE raw load(const char *p)
{
	return *(const raw_unaligned *)p;
}

INLINE void store(char *p, raw v)
{
	*(raw_unaligned *)p = v;
}

INLINE v_uint32_t splat(uint32_t x)
{
	return (v_uint32_t){} + x;
}

/* x where mask is all ones, y where it is 0. */
INLINE raw pick(raw mask, raw x, raw y)
{
	return (mask & x) | (~mask & y);
}

#endif
