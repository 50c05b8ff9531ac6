// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reductions with what every x86-64 has: as generic.c, and stores that go past
 * the caches. Called through reduce.c.
 */
#include "coll/reduce/isa.h"

#ifdef REDUCE_X86
#include <immintrin.h>

#define VECTOR		16
#include "coll/reduce/types.h"

#define VECTOR_STREAM(p, v)	_mm_stream_si128((__m128i *)(p), (__m128i)(v))

/* The instructions give their second operand if one is a NaN. */
#define VECTOR_MINMAX
#define MINMAX(name, which, type, suffix) \
INLINE raw which##_##name(raw x, raw y) \
{ \
	return pick((raw)_mm_cmpunord_##suffix((type)y, (type)y), y, \
		    (raw)_mm_##which##_##suffix((type)y, (type)x)); \
}

MINMAX(float32, min, __m128, ps)
MINMAX(float32, max, __m128, ps)
MINMAX(float64, min, __m128d, pd)
MINMAX(float64, max, __m128d, pd)

#include "coll/reduce/kernels.h"

KERNELS_OF_ALL_TYPES

static bool always(void)
{
	return true;
}

const struct reduce_isa fxi_reduce_sse2 = {
	.name = "sse2",
	.usable = always,
	.kernels = { KERNEL_ROWS_OF_ALL_TYPES },
	.copy = copy_loop,
};
#endif
