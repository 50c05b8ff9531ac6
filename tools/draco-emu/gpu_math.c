// SPDX-License-Identifier: GPL-2.0-only
/*
 * Arithmetic of the modelled GPU. Works on blocks of constant size in arrays
 * of its own, which the compiler makes vector code of. Called by gpu.c.
 */
#include "gpu_math.h"

#include <string.h>

#include <draco/gpu.h>

#define BLOCK	512u		/* elements */

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

#define FP32_INF	0x7f800000u
#define FP32_NAN	0x7fc00000u
#define FP16_INF	0x7c00u
#define FP16_NAN	0x7e00u
#define BF16_NAN	0x7fc0u
#define FP16_OVERFLOW	0x477ff000u	/* 65520: half-way beyond the largest */
#define FP16_NORMAL	0x38800000u	/* 2^-14: smallest that is normal */

/* ---- Conversions ---- */

float gpu_from_half(uint16_t h)
{
	/* As fp32 it is too small by 2^112; multiplying is exact. */
	uint32_t v = bits_of(float_of((h & 0x7fffu) << 13) * 0x1p112f);

	if ((h & FP16_INF) == FP16_INF)
		v |= FP32_INF;
	return float_of(v | (uint32_t)(h & 0x8000u) << 16);
}

/* @v >> @shift, rounded to nearest even; 0 < @shift < 32. */
static uint32_t shift_round(uint32_t v, unsigned int shift)
{
	uint32_t half = 1u << (shift - 1), odd = v >> shift & 1;

	return (v + half - 1 + odd) >> shift;
}

static uint16_t small_to_half(uint32_t v)
{
	uint32_t exponent = v >> 23, mantissa = (v & 0x7fffffu) | 0x800000u;

	/* Below half of the smallest one. */
	if (exponent < 102)
		return 0;
	return (uint16_t)shift_round(mantissa, 126 - exponent);
}

uint16_t gpu_to_half(float f)
{
	uint32_t v = bits_of(f);
	uint16_t sign = v >> 16 & 0x8000u;

	v &= 0x7fffffffu;
	if (v > FP32_INF)
		return FP16_NAN;
	if (v >= FP16_OVERFLOW)
		return sign | FP16_INF;
	if (v < FP16_NORMAL)
		return sign | small_to_half(v);
	/* A carry out of the mantissa belongs into the exponent. */
	return sign | (uint16_t)shift_round(v - (112u << 23), 13);
}

float gpu_from_bf16(uint16_t b)
{
	return float_of((uint32_t)b << 16);
}

uint16_t gpu_to_bf16(float f)
{
	uint32_t v = bits_of(f);

	if ((v & 0x7fffffffu) > FP32_INF)
		return BF16_NAN;
	return (uint16_t)((v + 0x7fffu + (v >> 16 & 1)) >> 16);
}

/* ---- One element ---- */

static float canonical(float r)
{
	return r == r ? r : float_of(FP32_NAN);
}

/* Equal ones differ at most in the sign of a zero. */
static float minimum(float a, float b)
{
	if (a < b || b != b)
		return canonical(a);
	if (b < a || a != a)
		return b;
	return float_of(bits_of(a) | bits_of(b));
}

static float maximum(float a, float b)
{
	if (a > b || b != b)
		return canonical(a);
	if (b > a || a != a)
		return b;
	return float_of(bits_of(a) & bits_of(b));
}

static int32_t lesser(uint32_t a, uint32_t b)
{
	return (int32_t)a < (int32_t)b ? (int32_t)a : (int32_t)b;
}

static int32_t greater(uint32_t a, uint32_t b)
{
	return (int32_t)a > (int32_t)b ? (int32_t)a : (int32_t)b;
}

/* ---- Blocks ---- */

#define FOR_BLOCK	for (unsigned int i = 0; i < BLOCK; i++)

static void float_block(unsigned int function, float *r, const float *a,
			const float *b)
{
	switch (function) {
	case DRACO_GPU_SUM:
		FOR_BLOCK r[i] = canonical(a[i] + b[i]);
		break;
	case DRACO_GPU_PROD:
		FOR_BLOCK r[i] = canonical(a[i] * b[i]);
		break;
	case DRACO_GPU_MIN:
		FOR_BLOCK r[i] = minimum(a[i], b[i]);
		break;
	default:
		FOR_BLOCK r[i] = maximum(a[i], b[i]);
	}
}

static void int_block(unsigned int function, uint32_t *r, const uint32_t *a,
		      const uint32_t *b)
{
	switch (function) {
	case DRACO_GPU_SUM:
		FOR_BLOCK r[i] = a[i] + b[i];
		break;
	case DRACO_GPU_PROD:
		FOR_BLOCK r[i] = a[i] * b[i];
		break;
	case DRACO_GPU_MIN:
		FOR_BLOCK r[i] = (uint32_t)lesser(a[i], b[i]);
		break;
	default:
		FOR_BLOCK r[i] = (uint32_t)greater(a[i], b[i]);
	}
}

static void to_floats(unsigned int type, float *f, const uint16_t *h)
{
	if (type == DRACO_GPU_FP16)
		FOR_BLOCK f[i] = gpu_from_half(h[i]);
	else
		FOR_BLOCK f[i] = gpu_from_bf16(h[i]);
}

static void from_floats(unsigned int type, uint16_t *h, const float *f)
{
	if (type == DRACO_GPU_FP16)
		FOR_BLOCK h[i] = gpu_to_half(f[i]);
	else
		FOR_BLOCK h[i] = gpu_to_bf16(f[i]);
}

/* Elements of a block behind the end are 0 and not stored. */
struct block {
	union {
		float f[BLOCK];
		uint32_t u[BLOCK];
		uint16_t h[BLOCK];
	} a, b, r;
};

static void short_block(unsigned int type, unsigned int function,
			struct block *k)
{
	float a[BLOCK], b[BLOCK], r[BLOCK];

	to_floats(type, a, k->a.h);
	to_floats(type, b, k->b.h);
	float_block(function, r, a, b);
	from_floats(type, k->r.h, r);
}

static void do_block(unsigned int type, unsigned int function, struct block *k)
{
	if (type == DRACO_GPU_FP32)
		float_block(function, k->r.f, k->a.f, k->b.f);
	else if (type == DRACO_GPU_INT32)
		int_block(function, k->r.u, k->a.u, k->b.u);
	else
		short_block(type, function, k);
}

unsigned int gpu_element(unsigned int type)
{
	static const unsigned char bytes[] = {
		[DRACO_GPU_FP32] = 4, [DRACO_GPU_FP16] = 2,
		[DRACO_GPU_BF16] = 2, [DRACO_GPU_INT32] = 4,
	};

	return type < sizeof(bytes) ? bytes[type] : 0;
}

void gpu_reduce(unsigned int type, unsigned int function, void *dst,
		const void *a, const void *b, size_t bytes)
{
	size_t step = (size_t)BLOCK * gpu_element(type);
	struct block k;

	memset(&k, 0, sizeof(k));
	for (size_t done = 0; done < bytes; done += step) {
		size_t n = bytes - done < step ? bytes - done : step;

		memcpy(&k.a, (const char *)a + done, n);
		memcpy(&k.b, (const char *)b + done, n);
		do_block(type, function, &k);
		memcpy((char *)dst + done, &k.r, n);
	}
}
