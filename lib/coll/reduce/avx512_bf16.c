// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * BFLOAT16 with the conversion of AVX512_BF16. That takes numbers below the
 * smallest normal one for 0, unlike the others: those, and NaNs, are converted
 * as vector.h does. Called through reduce.c.
 */
#include "coll/reduce/isa.h"

#ifdef REDUCE_X86_16BIT
#include <immintrin.h>

TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")

#include "coll/reduce/avx512.h"

#define VECTOR_BFLOAT16
#define NAN_OR_DENORMAL	(0x81 | 0x20)

static raw put_bfloat16(struct acc x);

#include "coll/reduce/kernels.h"

NOINLINE raw put_slowly(struct acc x)
{
	return (raw)(round_bfloat16(x.a) >> 16 |
		     (round_bfloat16(x.b) & 0xffff0000));
}

/* Elements in the order in which the conversion gives them, to pairs. */
static const uint16_t shuffle[32] = {
	0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23,
	8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31,
};

INLINE raw put_bfloat16(struct acc x)
{
	const __m512 a = (__m512)x.a, b = (__m512)x.b;

	if (__builtin_expect(!_kortestz_mask16_u8(
			_mm512_fpclass_ps_mask(a, NAN_OR_DENORMAL),
			_mm512_fpclass_ps_mask(b, NAN_OR_DENORMAL)), 0))
		return put_slowly(x);
	return (raw)_mm512_permutexvar_epi16(_mm512_loadu_si512(shuffle),
					     (__m512i)_mm512_cvtne2ps_pbh(b, a));
}

KERNELS(BFLOAT16, 2)

TARGET_END

static bool usable(void)
{
	return fxi_reduce_avx512.usable() &&
	       __builtin_cpu_supports("avx512bf16");
}

const struct reduce_isa fxi_reduce_avx512_bf16 = {
	.name = "avx512_bf16",
	.usable = usable,
	.base = &fxi_reduce_avx512,
	.kernels = { KERNEL_ROW(BFLOAT16) },
};
#endif
