/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Element-wise reductions of host memory, with the best instructions of this
 * processor. Called by lib/coll/operation and the algorithms; no state but the
 * choice.
 */
#ifndef LIB_COLL_REDUCE_H
#define LIB_COLL_REDUCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <fabrex/coll.h>

/* fabrex_datatype_size(), inline: each short message asks for it. */
static inline size_t fxi_type_size(uint32_t type)
{
	static const uint8_t sizes[] = {
		[FABREX_INT8] = 1, [FABREX_UINT8] = 1,
		[FABREX_INT16] = 2, [FABREX_UINT16] = 2,
		[FABREX_INT32] = 4, [FABREX_UINT32] = 4,
		[FABREX_INT64] = 8, [FABREX_UINT64] = 8,
		[FABREX_FLOAT16] = 2, [FABREX_BFLOAT16] = 2,
		[FABREX_FLOAT32] = 4, [FABREX_FLOAT64] = 8,
	};

	return type < sizeof(sizes) ? sizes[type] : 0;
}

/*
 * Every dst[j][i] = op(src[0][i], src[1][i], ...), from left to right, for
 * i < count; read once, written once. Any number of both. A dst may equal a src,
 * otherwise they do not overlap. Pointers need no alignment. nsrc 1 copies.
 *
 * FLOAT16 and BFLOAT16: accumulated in FLOAT32, rounded once when stored. A NaN
 * that was computed is the quiet one without sign and payload; of zeros, MIN
 * and MAX take the first. Instructions differ in speed, not in a bit.
 */
struct reduce {
	void *const *dst;
	const void *const *src;
	uint32_t ndst;
	uint32_t nsrc;
	uint64_t count;		/* elements */
	uint32_t type;		/* enum fabrex_datatype */
	uint32_t op;		/* enum fabrex_redop; AVG adds like SUM */
	uint32_t divisor;	/* result is divided by it; 0 and 1: it is not */
	bool stream;		/* targets will not be read soon: past caches */
};

void fxi_reduce(const struct reduce *r);
/* dst = src, for @bytes; past the caches if @stream. */
void fxi_copy(void *dst, const void *src, size_t bytes, bool stream);
/* The instructions in use: "avx512", "avx2", "generic". */
const char *fxi_reduce_name(void);
/*
 * For tests and benchmarks, while nothing is being reduced: use these
 * instructions; -ENOTSUP if this processor lacks them. NULL: the best. "avx512"
 * is without AVX512_FP16.
 */
int fxi_reduce_select(const char *name);

#endif
