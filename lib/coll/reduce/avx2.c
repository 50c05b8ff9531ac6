// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reductions with AVX2, and the conversions of F16C. Called through reduce.c.
 */
#include "coll/reduce/isa.h"

#ifdef REDUCE_X86
#include <cpuid.h>
#include <immintrin.h>

TARGET_BEGIN("avx2,f16c")

#define VECTOR		32
#include "coll/reduce/types.h"

#define VECTOR_STREAM(p, v) \
	_mm256_stream_si256((__m256i *)(p), (__m256i)(v))

#define VECTOR_NAN
INLINE raw one_nan_32(raw v)
{
	const __m256 x = (__m256)v;

	return (raw)_mm256_blendv_ps(x, (__m256)splat(NAN_32),
				     _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

INLINE raw one_nan_64(raw v)
{
	const __m256d x = (__m256d)v;

	return (raw)_mm256_blendv_pd(x, (__m256d)((v_uint64_t){} + NAN_64),
				     _mm256_cmp_pd(x, x, _CMP_UNORD_Q));
}

/* The instructions give their second operand if one is a NaN. */
#define VECTOR_MINMAX
#define MINMAX(name, which, type, suffix) \
INLINE raw which##_##name(raw x, raw y) \
{ \
	const type b = (type)y; \
\
	return (raw)_mm256_blendv_##suffix( \
		_mm256_##which##_##suffix(b, (type)x), b, \
		_mm256_cmp_##suffix(b, b, _CMP_UNORD_Q)); \
}

MINMAX(float32, min, __m256, ps)
MINMAX(float32, max, __m256, ps)
MINMAX(float64, min, __m256d, pd)
MINMAX(float64, max, __m256d, pd)

#define VECTOR_FLOAT16
INLINE struct acc get_float16(raw v)
{
	const __m256i x = (__m256i)v;

	return (struct acc){
		(raw)_mm256_cvtph_ps(_mm256_castsi256_si128(x)),
		(raw)_mm256_cvtph_ps(_mm256_extracti128_si256(x, 1)),
	};
}

INLINE raw put_float16(struct acc x)
{
	const __m128i a = _mm256_cvtps_ph((__m256)one_nan_32(x.a),
					  _MM_FROUND_TO_NEAREST_INT);
	const __m128i b = _mm256_cvtps_ph((__m256)one_nan_32(x.b),
					  _MM_FROUND_TO_NEAREST_INT);

	return (raw)_mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
}

#include "coll/reduce/kernels.h"

KERNELS_OF_ALL_TYPES

TARGET_END

static bool usable(void)
{
	unsigned int a, b, c, d;

	return __builtin_cpu_supports("avx2") &&
	       __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

const struct reduce_isa fxi_reduce_avx2 = {
	.name = "avx2",
	.usable = usable,
	.kernels = { KERNEL_ROWS_OF_ALL_TYPES },
	.copy = copy_loop,
};
#endif
