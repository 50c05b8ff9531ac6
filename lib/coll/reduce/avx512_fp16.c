// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * FLOAT16 with the arithmetic of AVX512_FP16 where that gives the same bits as
 * FLOAT32 and a conversion: comparisons, and a single sum or product, since 24
 * bits are as many as twice 11 and 2. Called through reduce.c.
 */
#include "coll/reduce/isa.h"

#ifdef REDUCE_X86_FP16
#include <immintrin.h>

TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx512fp16")

#include "coll/reduce/avx512.h"

#define VECTOR_NATIVE16
#define NAN_16	0x7e00

INLINE raw one_nan_16(raw v)
{
	const __m512h x = (__m512h)v;

	return (raw)_mm512_mask_mov_epi16((__m512i)v,
			_mm512_cmp_ph_mask(x, x, _CMP_UNORD_Q),
			_mm512_set1_epi16(NAN_16));
}

/* y where it is a NaN. */
INLINE raw or_nan(__m512h result, __m512h y)
{
	return (raw)_mm512_mask_mov_epi16((__m512i)result,
			_mm512_cmp_ph_mask(y, y, _CMP_UNORD_Q), (__m512i)y);
}

INLINE raw op_float16(int op, raw x, raw y)
{
	const __m512h a = (__m512h)x, b = (__m512h)y;

	switch (op) {
	case FABREX_SUM:
		return (raw)_mm512_add_ph(a, b);
	case FABREX_PROD:
		return (raw)_mm512_mul_ph(a, b);
	case FABREX_MIN:
		return or_nan(_mm512_min_ph(b, a), b);
	default:
		return or_nan(_mm512_max_ph(b, a), b);
	}
}

#include "coll/reduce/kernels.h"

#define NATIVE(op, exact) \
NOINLINE void do_FLOAT16_##op(const struct reduce *r) \
{ \
	if ((exact) && r->divisor <= 1) \
		loop(r, FLOAT16_NATIVE, FABREX_##op, 2); \
	else \
		loop(r, FABREX_FLOAT16, FABREX_##op, 2); \
}

NATIVE(SUM, r->nsrc <= 2)
NATIVE(PROD, r->nsrc <= 2)
NATIVE(MIN, true)
NATIVE(MAX, true)

TARGET_END

static bool usable(void)
{
	return fxi_reduce_avx512.usable() &&
	       __builtin_cpu_supports("avx512fp16");
}

const struct reduce_isa fxi_reduce_avx512_fp16 = {
	.name = "avx512_fp16",
	.usable = usable,
	.base = &fxi_reduce_avx512,
	.kernels = { KERNEL_ROW(FLOAT16) },
};
#endif
