// SPDX-License-Identifier: GPL-2.0-only
/*
 * Arithmetic of the modelled GPU: conversions of all 65536 values, rounding at
 * every boundary, and reductions against an oracle in double precision.
 */
#include <draco/gpu.h>
#include <math.h>
#include <stdlib.h>

#include "gpu_math.h"
#include "tap.h"

static uint32_t bits_of(float f)
{
	uint32_t v;

	memcpy(&v, &f, sizeof(v));
	return v;
}

static float float_of(uint32_t v)
{
	float f;

	memcpy(&f, &v, sizeof(f));
	return f;
}

/* What the sixteen bits say, by the definition of the formats. */
static double value(uint16_t v, int mantissa_bits)
{
	int exponent_bits = 15 - mantissa_bits;
	int top = (1 << exponent_bits) - 1, bias = top / 2;
	int exponent = v >> mantissa_bits & top;
	int mantissa = v & ((1 << mantissa_bits) - 1);
	double r;

	if (exponent == top)
		r = mantissa ? NAN : INFINITY;
	else if (!exponent)
		r = ldexp(mantissa, 1 - bias - mantissa_bits);
	else
		r = ldexp((1 << mantissa_bits) + mantissa,
			  exponent - bias - mantissa_bits);
	return v & 0x8000 ? -r : r;
}

static bool same(double a, double b)
{
	return isnan(a) ? isnan(b) : a == b && !signbit(a) == !signbit(b);
}

static void test_half_all(void)
{
	for (unsigned int i = 0; i < 65536; i++) {
		float f = gpu_from_half((uint16_t)i);

		if (!same(f, value((uint16_t)i, 10)))
			CHECK_EQ(i, -1);
		CHECK_EQ(gpu_to_half(f), isnan(f) ? 0x7e00 : i);
	}
}

static void test_bf16_all(void)
{
	for (unsigned int i = 0; i < 65536; i++) {
		float f = gpu_from_bf16((uint16_t)i);

		if (!same(f, value((uint16_t)i, 7)))
			CHECK_EQ(i, -1);
		CHECK_EQ(gpu_to_bf16(f), isnan(f) ? 0x7fc0 : i);
	}
}

/*
 * Between each value and the next: just below the middle, the middle, just
 * above. What follows the largest is where infinity would be if the format
 * went on.
 */
static bool rounds(unsigned int lower, int mantissa_bits, double upper,
		   uint16_t (*to)(float f))
{
	double low = value((uint16_t)lower, mantissa_bits);
	float middle = (float)((low + upper) / 2);
	unsigned int even = lower & 1 ? lower + 1 : lower;

	if ((double)middle != (low + upper) / 2)
		return false;		/* the oracle itself is wrong */
	return to(middle) == even && to(-middle) == (even | 0x8000) &&
	       to(nextafterf(middle, 0)) == lower &&
	       to(nextafterf(middle, INFINITY)) == lower + 1 &&
	       to(-nextafterf(middle, 0)) == (lower | 0x8000);
}

static void test_half_rounding(void)
{
	for (unsigned int i = 0; i < 0x7bff; i++) {
		if (!rounds(i, 10, value((uint16_t)(i + 1), 10), gpu_to_half))
			CHECK_EQ(i, -1);
	}
	CHECK(rounds(0x7bff, 10, 65536.0, gpu_to_half));
	CHECK_EQ(gpu_to_half(1e30f), 0x7c00);
	CHECK_EQ(gpu_to_half(-INFINITY), 0xfc00);
	CHECK_EQ(gpu_to_half(float_of(1)), 0);
	CHECK_EQ(gpu_to_half(float_of(0x80000001u)), 0x8000);
	CHECK_EQ(gpu_to_half(float_of(0xff800001u)), 0x7e00);
}

static void test_bf16_rounding(void)
{
	for (unsigned int i = 0; i < 0x7f7f; i++) {
		if (!rounds(i, 7, value((uint16_t)(i + 1), 7), gpu_to_bf16))
			CHECK_EQ(i, -1);
	}
	CHECK(rounds(0x7f7f, 7, ldexp(1, 128), gpu_to_bf16));
	CHECK_EQ(gpu_to_bf16(INFINITY), 0x7f80);
	CHECK_EQ(gpu_to_bf16(float_of(0x7f800001u)), 0x7fc0);
}

/* ---- Reductions ---- */

#define N	5000u		/* no whole number of blocks */

static uint32_t seed;

static uint32_t draw(void)
{
	seed = seed * 1664525u + 1013904223u;
	return seed ^ seed >> 15;
}

static uint32_t canonical(float f)
{
	return isnan(f) ? 0x7fc00000u : bits_of(f);
}

static float pick(unsigned int function, float a, float b)
{
	bool less;

	if (isnan(a) || isnan(b))
		return isnan(a) ? b : a;
	less = a < b || (a == b && signbit(a));
	return less == (function == DRACO_GPU_MIN) ? a : b;
}

static float expected(unsigned int function, float a, float b)
{
	if (function == DRACO_GPU_SUM)
		return (float)((double)a + (double)b);
	if (function == DRACO_GPU_PROD)
		return (float)((double)a * (double)b);
	return pick(function, a, b);
}

static void test_fp32(void)
{
	static uint32_t a[N], b[N], r[N];
	static const uint32_t special[] = {
		0, 0x80000000u, 1, 0x80000001u, 0x7f800000u, 0xff800000u,
		0x7f800001u, 0xffc12345u, 0x7f7fffffu, 0x00800000u,
	};

	for (unsigned int f = DRACO_GPU_SUM; f <= DRACO_GPU_MAX; f++) {
		for (unsigned int i = 0; i < N; i++) {
			a[i] = i < 100 ? special[i % 10] : draw();
			b[i] = i < 100 ? special[i / 10] : i & 1 ? draw() :
			       a[i] + 0x800000u;
		}
		gpu_reduce(DRACO_GPU_FP32, f, r, a, b, sizeof(r));
		for (unsigned int i = 0; i < N; i++)
			CHECK_EQ(r[i], canonical(expected(f, float_of(a[i]),
							  float_of(b[i]))));
	}
}

static void short_type(unsigned int type, float (*from)(uint16_t v),
		       uint16_t (*to)(float f))
{
	static uint16_t a[65536], b[65536], r[65536];

	for (unsigned int f = DRACO_GPU_SUM; f <= DRACO_GPU_MAX; f++) {
		for (unsigned int i = 0; i < 65536; i++) {
			a[i] = (uint16_t)i;
			b[i] = (uint16_t)draw();
		}
		gpu_reduce(type, f, r, a, b, sizeof(r));
		for (unsigned int i = 0; i < 65536; i++)
			CHECK_EQ(r[i], to(expected(f, from(a[i]),
						   from(b[i]))));
	}
}

static void test_fp16(void)
{
	short_type(DRACO_GPU_FP16, gpu_from_half, gpu_to_half);
}

static void test_bf16(void)
{
	short_type(DRACO_GPU_BF16, gpu_from_bf16, gpu_to_bf16);
}

static int32_t int_expected(unsigned int function, int32_t a, int32_t b)
{
	long long wide = function == DRACO_GPU_SUM ? (long long)a + b :
			 (long long)a * b;

	if (function <= DRACO_GPU_PROD)
		return (int32_t)(uint32_t)(unsigned long long)wide;
	return (a < b) == (function == DRACO_GPU_MIN) ? a : b;
}

static void test_int32(void)
{
	static int32_t a[N], b[N], r[N];

	for (unsigned int f = DRACO_GPU_SUM; f <= DRACO_GPU_MAX; f++) {
		for (unsigned int i = 0; i < N; i++) {
			a[i] = (int32_t)draw();
			b[i] = (int32_t)draw();
		}
		a[0] = b[0] = INT32_MIN;
		a[1] = b[1] = INT32_MAX;
		gpu_reduce(DRACO_GPU_INT32, f, r, a, b, sizeof(r));
		for (unsigned int i = 0; i < N; i++)
			CHECK_EQ(r[i], int_expected(f, a[i], b[i]));
	}
}

/* In place, and not a byte beyond the end. */
static void test_in_place(void)
{
	static uint16_t a[601], b[601];

	for (unsigned int i = 0; i < 601; i++) {
		a[i] = gpu_to_bf16((float)i);
		b[i] = gpu_to_bf16(1);
	}
	gpu_reduce(DRACO_GPU_BF16, DRACO_GPU_SUM, a, a, b, 1200);
	CHECK_EQ(gpu_from_bf16(a[100]), 101);
	CHECK_EQ(a[599], gpu_to_bf16(600));
	CHECK_EQ(a[600], gpu_to_bf16(600));	/* as it was */
	gpu_reduce(DRACO_GPU_BF16, DRACO_GPU_PROD, b, b, b, 1202);
	CHECK_EQ(b[600], gpu_to_bf16(1));
	CHECK_EQ(gpu_element(DRACO_GPU_FP16), 2);
	CHECK_EQ(gpu_element(DRACO_GPU_INT32), 4);
	CHECK_EQ(gpu_element(4), 0);
	CHECK_EQ(gpu_element(255), 0);
}

#define T(n) { #n, test_ ## n }

static const struct tap_test tests[] = {
	T(half_all), T(bf16_all), T(half_rounding), T(bf16_rounding), T(fp32),
	T(fp16), T(bf16), T(int32), T(in_place),
};

int main(int argc, char **argv)
{
	return tap_run(tests, sizeof(tests) / sizeof(tests[0]),
		       argc > 1 ? argv[1] : NULL);
}
