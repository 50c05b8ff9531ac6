// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reductions with AVX-512 as the first server processors have it (F, BW, DQ,
 * VL). Called through reduce.c.
 */
#include "coll/reduce/isa.h"

#ifdef REDUCE_X86
#include <immintrin.h>

TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl")

#include "coll/reduce/avx512.h"
#include "coll/reduce/kernels.h"

KERNELS_OF_ALL_TYPES

TARGET_END

static bool usable(void)
{
	return __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512dq") &&
	       __builtin_cpu_supports("avx512vl");
}

const struct reduce_isa fxi_reduce_avx512 = {
	.name = "avx512",
	.usable = usable,
	.kernels = { KERNEL_ROWS_OF_ALL_TYPES },
	.copy = copy_loop,
};
#endif
