/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What AVX-512 has better than vector.h. Included by the files for AVX-512
 * ahead of kernels.h, with their target set.
 */
#ifndef LIB_COLL_REDUCE_AVX512_H
#define LIB_COLL_REDUCE_AVX512_H

#define VECTOR		64
#include "coll/reduce/types.h"

#define VECTOR_STREAM(p, v) \
	_mm512_stream_si512((__m512i *)(p), (__m512i)(v))

#define VECTOR_PART
INLINE __mmask64 first(size_t n)
{
	return ((__mmask64)1 << n) - 1;
}

INLINE raw load_part(const char *p, size_t n)
{
	return (raw)_mm512_maskz_loadu_epi8(first(n), p);
}

INLINE void store_part(char *p, raw v, size_t n)
{
	_mm512_mask_storeu_epi8(p, first(n), (__m512i)v);
}

#define VECTOR_NAN
INLINE raw one_nan_32(raw v)
{
	const __m512 x = (__m512)v;

	return (raw)_mm512_mask_mov_ps(x,
				       _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q),
				       (__m512)splat(NAN_32));
}

INLINE raw one_nan_64(raw v)
{
	const __m512d x = (__m512d)v;

	return (raw)_mm512_mask_mov_pd(x,
				       _mm512_cmp_pd_mask(x, x, _CMP_UNORD_Q),
				       (__m512d)((v_uint64_t){} + NAN_64));
}

/* The instructions give their second operand if one is a NaN. */
#define VECTOR_MINMAX
#define MINMAX(name, which, type, suffix) \
INLINE raw which##_##name(raw x, raw y) \
{ \
	const type b = (type)y; \
\
	return (raw)_mm512_mask_mov_##suffix( \
		_mm512_##which##_##suffix(b, (type)x), \
		_mm512_cmp_##suffix##_mask(b, b, _CMP_UNORD_Q), b); \
}

MINMAX(float32, min, __m512, ps)
MINMAX(float32, max, __m512, ps)
MINMAX(float64, min, __m512d, pd)
MINMAX(float64, max, __m512d, pd)

#define VECTOR_FLOAT16
INLINE struct acc get_float16(raw v)
{
	const __m512i x = (__m512i)v;

	return (struct acc){
		(raw)_mm512_cvtph_ps(_mm512_castsi512_si256(x)),
		(raw)_mm512_cvtph_ps(_mm512_extracti64x4_epi64(x, 1)),
	};
}

INLINE raw put_float16(struct acc x)
{
	const __m256i a = _mm512_cvtps_ph((__m512)one_nan_32(x.a),
					  _MM_FROUND_TO_NEAREST_INT);
	const __m256i b = _mm512_cvtps_ph((__m512)one_nan_32(x.b),
					  _MM_FROUND_TO_NEAREST_INT);

	return (raw)_mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1);
}

#endif
