// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reductions one element at a time, written to be right and not fast. Called
 * by reduce.c and device tests.
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "reduce_reference.h"

size_t reference_size(uint32_t type)
{
	switch (type) {
	case FABREX_INT8: case FABREX_UINT8:
		return 1;
	case FABREX_INT16: case FABREX_UINT16:
	case FABREX_FLOAT16: case FABREX_BFLOAT16:
		return 2;
	case FABREX_INT32: case FABREX_UINT32: case FABREX_FLOAT32:
		return 4;
	case FABREX_INT64: case FABREX_UINT64: case FABREX_FLOAT64:
		return 8;
	}
	abort();
}

/* Bits of the mantissa, of the exponent, and what is taken from it. */
struct format {
	int mantissa, exponent, bias;
};

static struct format format16(uint32_t type)
{
	return type == FABREX_FLOAT16 ? (struct format){ 10, 5, 15 } :
					(struct format){ 7, 8, 127 };
}

double reference_value16(uint32_t type, uint16_t bits)
{
	const struct format f = format16(type);
	int exponent = bits >> f.mantissa & ((1 << f.exponent) - 1);
	double value = 0, weight = 1;
	int i;

	if (exponent == (1 << f.exponent) - 1) {
		if (bits & ((1 << f.mantissa) - 1))
			return (double)NAN;
		return bits & 0x8000 ? -(double)INFINITY : (double)INFINITY;
	}
	if (exponent)
		value = 1;
	else
		exponent = 1;
	for (i = f.mantissa - 1; i >= 0; i--) {
		weight /= 2;
		if (bits >> i & 1)
			value += weight;
	}
	value = ldexp(value, exponent - f.bias);
	return bits & 0x8000 ? -value : value;
}

uint16_t reference_bits16(uint32_t type, double value)
{
	const struct format f = format16(type);
	const uint16_t infinity = (uint16_t)(((1 << f.exponent) - 1) <<
					     f.mantissa);
	const uint16_t sign = signbit(value) ? 0x8000 : 0;
	double below, above, a = fabs(value);
	uint16_t low = 0, high = infinity;

	if (isnan(value))
		return (uint16_t)(infinity | 1 << (f.mantissa - 1));
	/* Patterns are in the order of their values: find those around it. */
	while (high - low > 1) {
		uint16_t middle = (uint16_t)((low + high) / 2);

		if (reference_value16(type, middle) <= a)
			low = middle;
		else
			high = middle;
	}
	if (isinf(value))
		return sign | infinity;
	below = reference_value16(type, low);
	/* Beyond the largest, as if there were one more exponent. */
	above = high == infinity ?
		ldexp(1, (1 << f.exponent) - 1 - f.bias) :
		reference_value16(type, high);
	if (a - below > above - a || (a - below == above - a && (low & 1)))
		low = high;
	return sign | low;
}

static double get_floating(uint32_t type, const void *p, size_t i)
{
	float f;

	switch (type) {
	case FABREX_FLOAT64:
		return ((const double *)p)[i];
	case FABREX_FLOAT32:
		f = ((const float *)p)[i];
		return (double)f;
	default:
		return reference_value16(type, ((const uint16_t *)p)[i]);
	}
}

static void put_floating(uint32_t type, void *p, size_t i, double x)
{
	const uint64_t nan64 = 0x7ff8000000000000u;
	const uint32_t nan32 = 0x7fc00000u;
	float f;

	switch (type) {
	case FABREX_FLOAT64:
		memcpy((double *)p + i, &x, 8);
		if (isnan(x))
			memcpy((double *)p + i, &nan64, 8);
		return;
	case FABREX_FLOAT32:
		f = (float)x;
		memcpy((float *)p + i, &f, 4);
		if (isnan(x))
			memcpy((float *)p + i, &nan32, 4);
		return;
	default:
		((uint16_t *)p)[i] = reference_bits16(type, x);
	}
}

/* Rounded to what is computed in, once for each operation. */
static double rounded(uint32_t type, double x)
{
	volatile float f = (float)x;

	return type == FABREX_FLOAT64 ? x : (double)f;
}

/*
 * A double has more than twice the bits of a float: its sums, products and
 * quotients of floats, rounded again, are those of floats.
 */
static double combine_floating(uint32_t type, uint32_t op, double x, double y)
{
	switch (op) {
	case FABREX_SUM: case FABREX_AVG:
		return rounded(type, x + y);
	case FABREX_PROD:
		return rounded(type, x * y);
	case FABREX_MIN:
		return isnan(x) || isnan(y) ? (double)NAN : y < x ? y : x;
	default:
		return isnan(x) || isnan(y) ? (double)NAN : y > x ? y : x;
	}
}

static void reduce_floating(void *dst, const void *const *src, uint32_t nsrc,
			    size_t i, uint32_t type, uint32_t op,
			    uint32_t divisor)
{
	double x = get_floating(type, src[0], i);
	uint32_t k;

	for (k = 1; k < nsrc; k++)
		x = combine_floating(type, op, x,
				     get_floating(type, src[k], i));
	if (divisor > 1)
		x = rounded(type, x / rounded(type, divisor));
	put_floating(type, dst, i, x);
}

static bool is_signed(uint32_t type)
{
	return type <= FABREX_INT64 && type % 2;
}

/* As 64 bits, with the sign extended. */
static uint64_t get_integer(uint32_t type, const void *p, size_t i)
{
	const size_t size = reference_size(type);
	const int shift = (int)(64 - 8 * size);
	uint64_t x = 0;

	memcpy(&x, (const char *)p + i * size, size);
	return is_signed(type) ? (uint64_t)((int64_t)(x << shift) >> shift) :
				 x;
}

static bool less(uint32_t type, uint64_t x, uint64_t y)
{
	return is_signed(type) ? (int64_t)x < (int64_t)y : x < y;
}

static uint64_t combine_integer(uint32_t type, uint32_t op, uint64_t x,
				uint64_t y)
{
	switch (op) {
	case FABREX_SUM: case FABREX_AVG:
		return x + y;
	case FABREX_PROD:
		return x * y;
	case FABREX_MIN:
		return less(type, y, x) ? y : x;
	default:
		return less(type, x, y) ? y : x;
	}
}

static void reduce_integer(void *dst, const void *const *src, uint32_t nsrc,
			   size_t i, uint32_t type, uint32_t op,
			   uint32_t divisor)
{
	const size_t size = reference_size(type);
	uint64_t x = get_integer(type, src[0], i);
	uint32_t k;

	for (k = 1; k < nsrc; k++)
		x = combine_integer(type, op, x,
				    get_integer(type, src[k], i));
	/* Wrapped around at the type's size before it is divided. */
	x = get_integer(type, &x, 0);
	if (divisor > 1)
		x = is_signed(type) ? (uint64_t)((int64_t)x / divisor) :
				      x / divisor;
	memcpy((char *)dst + i * size, &x, size);
}

void reference_reduce(void *dst, const void *const *src, uint32_t nsrc,
		      size_t count, uint32_t type, uint32_t op,
		      uint32_t divisor)
{
	size_t i, size = reference_size(type);

	if (nsrc == 1 && divisor <= 1) {
		memcpy(dst, src[0], count * size);
		return;
	}
	for (i = 0; i < count; i++) {
		if (type >= FABREX_FLOAT16)
			reduce_floating(dst, src, nsrc, i, type, op, divisor);
		else
			reduce_integer(dst, src, nsrc, i, type, op, divisor);
	}
}

/* Where arithmetic is at its limits. */
static uint64_t special(uint32_t type, uint64_t choice)
{
	static const uint64_t patterns[] = {
		0, 0x8000000000000000u, 0x7ff0000000000000u,
		0xfff0000000000000u, 0x7f80000000000000u, 0xff80000000000000u,
		0x7c00000000000000u, 0xfc00000000000000u, 0x7ff8000000000000u,
		0x7fc0000000000000u, 0xfff0000000000001u, 0x7fffffffffffffffu,
		0xffffffffffffffffu, 0x7bff000000000000u, 0x7f7fffffffffffffu,
		0x0010000000000000u, 0x0080000000000000u, 0x0400000000000000u,
		0x3f80000000000000u, 0x3c00000000000000u, 0x0001000000000000u,
		0x0000000100000000u, 0x8000000100000000u, 0x8001000000000000u,
	};
	const size_t n = sizeof(patterns) / sizeof(patterns[0]);

	return patterns[choice % n] >> (64 - 8 * reference_size(type));
}

uint64_t noise(void)
{
	static uint64_t x = 88172645463325252u;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x * 2685821657736338717u;
}

void reference_fill(uint32_t type, void *out, size_t count)
{
	const size_t size = reference_size(type);
	size_t i;

	for (i = 0; i < count; i++) {
		uint64_t x = noise();

		if (noise() % 8 == 0)
			x = special(type, noise());
		else if (type >= FABREX_FLOAT16 && noise() % 4) {
			put_floating(type, (char *)out + i * size, 0,
				     (double)(int32_t)x / (1 << 20));
			continue;
		}
		memcpy((char *)out + i * size, &x, size);
	}
}
