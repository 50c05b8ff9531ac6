/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Arithmetic on vectors in terms of the compiler's vector types, but for what
 * a set of instructions has better: VECTOR_* say what is defined already.
 * Results are the same, bit for bit. For lib/coll/reduce/ only.
 *
 * A NaN is stored as the quiet one without sign and payload: which of two a
 * processor hands on, and what it makes of inf - inf, differs.
 */
#ifndef LIB_COLL_REDUCE_VECTOR_H
#define LIB_COLL_REDUCE_VECTOR_H

#include "coll/reduce/types.h"

#ifndef VECTOR_PART
/* n < VECTOR bytes. */
INLINE void copy_part(char *dst, const char *src, size_t n)
{
	size_t bit;

	for (bit = VECTOR / 2; bit; bit /= 2) {
		if (!(n & bit))
			continue;
		/* Of constant size in each case: no call. */
		switch (bit) {
		case 16:
			memcpy(dst, src, 16);
			break;
		case 8:
			memcpy(dst, src, 8);
			break;
		case 4:
			memcpy(dst, src, 4);
			break;
		case 2:
			memcpy(dst, src, 2);
			break;
		case 1:
			*dst = *src;
			break;
		}
		dst += bit;
		src += bit;
	}
}

/* The first n < VECTOR bytes; the others are 0. */
INLINE raw load_part(const char *p, size_t n)
{
	raw v = {};

	copy_part((char *)&v, p, n);
	return v;
}

INLINE void store_part(char *p, raw v, size_t n)
{
	copy_part(p, (const char *)&v, n);
}
#endif

#ifndef VECTOR_NAN
INLINE raw one_nan_32(raw v)
{
	v_float x = (v_float)v;

	return pick((raw)(x != x), (raw)splat(NAN_32), v);
}

INLINE raw one_nan_64(raw v)
{
	v_double x = (v_double)v;

	return pick((raw)(x != x), (raw)((v_uint64_t){} + NAN_64), v);
}
#endif

#ifndef VECTOR_FLOAT16
/* Of half the bits in each element of 32. */
INLINE raw half_to_float(v_uint32_t half)
{
	const v_uint32_t mantissa = (half & 0x7fff) << 13;
	const v_uint32_t exponent = mantissa & 0x0f800000;
	v_uint32_t x = mantissa + ((127 - 15) << 23);
	v_uint32_t tiny = (v_uint32_t)(exponent == 0);
	v_float small;

	/* Infinity and NaN. */
	x += (v_uint32_t)(exponent == 0x0f800000) & ((128 - 16) << 23);
	/* Without a leading 1; the subtraction normalises. */
	small = (v_float)(x + (1 << 23)) - (v_float)splat(113u << 23);
	x = (v_uint32_t)pick((raw)tiny, (raw)small, (raw)x);
	return (raw)(x | (half & 0x8000) << 16);
}

/* To nearest even, in the lower half of each element. */
INLINE v_uint32_t float_to_half(raw v)
{
	const v_uint32_t magic = splat(((127 - 15) + (23 - 10) + 1) << 23);
	v_uint32_t bits = (v_uint32_t)v;
	v_uint32_t x = bits & 0x7fffffff;
	v_uint32_t tiny, normal, large;

	/* The addition shifts it to its place, and rounds. */
	tiny = (v_uint32_t)((v_float)x + (v_float)magic) - magic;
	normal = x + (((15u - 127u) << 23) + 0xfff) + ((x >> 13) & 1);
	large = 0x7c00 + ((v_uint32_t)((v_int32_t)x > 0x7f800000) & 0x200);
	x = (v_uint32_t)pick((raw)((v_int32_t)x < (113 << 23)), (raw)tiny,
			     pick((raw)((v_int32_t)x < (143 << 23)),
				  (raw)(normal >> 13), (raw)large));
	return x | (bits >> 16 & 0x8000);
}

INLINE struct acc get_float16(raw v)
{
	return (struct acc){
		half_to_float((v_uint32_t)v & 0xffff),
		half_to_float((v_uint32_t)v >> 16),
	};
}

INLINE raw put_float16(struct acc x)
{
	return (raw)(float_to_half(one_nan_32(x.a)) |
		     float_to_half(one_nan_32(x.b)) << 16);
}
#endif

INLINE struct acc get_bfloat16(raw v)
{
	return (struct acc){ (raw)((v_uint32_t)v << 16),
			     (raw)((v_uint32_t)v & 0xffff0000) };
}

/* In the upper half of each element; the lower half is undefined. */
INLINE v_uint32_t round_bfloat16(raw v)
{
	v_uint32_t x = (v_uint32_t)one_nan_32(v);

	return x + 0x7fff + ((x >> 16) & 1);
}

INLINE raw put_bfloat16(struct acc x)
{
	return (raw)(round_bfloat16(x.a) >> 16 |
		     (round_bfloat16(x.b) & 0xffff0000));
}

/* Unsigned for what wraps around, signed as the type is for what compares. */
#define INTEGER(name, type, wrapping) \
INLINE raw op_##name(int op, raw x, raw y) \
{ \
	switch (op) { \
	case FABREX_SUM: \
		return (raw)((v_##wrapping)x + (v_##wrapping)y); \
	case FABREX_PROD: \
		return (raw)((v_##wrapping)x * (v_##wrapping)y); \
	case FABREX_MIN: \
		return pick((raw)((v_##type)y < (v_##type)x), y, x); \
	default: \
		return pick((raw)((v_##type)y > (v_##type)x), y, x); \
	} \
}

INTEGER(int8, int8_t, uint8_t)
INTEGER(uint8, uint8_t, uint8_t)
INTEGER(int16, int16_t, uint16_t)
INTEGER(uint16, uint16_t, uint16_t)
INTEGER(int32, int32_t, uint32_t)
INTEGER(uint32, uint32_t, uint32_t)
INTEGER(int64, int64_t, uint64_t)
INTEGER(uint64, uint64_t, uint64_t)

/* Of zeros, MIN and MAX take the first. */
#ifndef VECTOR_MINMAX
#define FLOATING_MINMAX(name, type) \
INLINE raw min_##name(raw x, raw y) \
{ \
	return pick((raw)((v_##type)y < (v_##type)x) | \
		    (raw)((v_##type)y != (v_##type)y), y, x); \
} \
INLINE raw max_##name(raw x, raw y) \
{ \
	return pick((raw)((v_##type)y > (v_##type)x) | \
		    (raw)((v_##type)y != (v_##type)y), y, x); \
}

FLOATING_MINMAX(float32, float)
FLOATING_MINMAX(float64, double)
#endif

#define FLOATING(name, type) \
INLINE raw op_##name(int op, raw x, raw y) \
{ \
	switch (op) { \
	case FABREX_SUM: \
		return (raw)((v_##type)x + (v_##type)y); \
	case FABREX_PROD: \
		return (raw)((v_##type)x * (v_##type)y); \
	case FABREX_MIN: \
		return min_##name(x, y); \
	default: \
		return max_##name(x, y); \
	} \
}

FLOATING(float32, float)
FLOATING(float64, double)

/*
 * Toward zero: by a power of two as vectors, otherwise one by one, in a type
 * whose quotients are right when they are truncated: if x and y are below
 * 2**p, then x / y is no nearer to the next integer than 1 / y, which is more
 * than its rounding error with more than p bits.
 */
#define DIVIDE(name, type, exact) \
static __attribute__((noinline, unused)) void \
divide_##name(raw *v, uint32_t divisor) \
{ \
	const exact by = (exact)divisor; \
	type x[VECTOR / sizeof(type)]; \
	v_##type y; \
	size_t i; \
\
	if ((uint32_t)(type)divisor == divisor && (type)divisor > 0 && \
	    !(divisor & (divisor - 1))) { \
		y = (v_##type)*v; \
		if ((type)-1 < (type)1) \
			y += (v_##type)(y < 0) & (type)(divisor - 1); \
		*v = (raw)(y >> __builtin_ctz(divisor)); \
		return; \
	} \
	memcpy(x, v, VECTOR); \
	for (i = 0; i < VECTOR / sizeof(type); i++) \
		x[i] = (type)((exact)x[i] / by); \
	memcpy(v, x, VECTOR); \
}

DIVIDE(int8, int8_t, float)
DIVIDE(uint8, uint8_t, float)
DIVIDE(int16, int16_t, float)
DIVIDE(uint16, uint16_t, float)
DIVIDE(int32, int32_t, double)
DIVIDE(uint32, uint32_t, double)
DIVIDE(int64, int64_t, int64_t)
DIVIDE(uint64, uint64_t, uint64_t)

#endif
