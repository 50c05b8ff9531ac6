/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a set of instructions offers to the reductions. One file for each set
 * fills it in from kernels.h; reduce.c chooses. For lib/coll/reduce/ only.
 */
#ifndef LIB_COLL_REDUCE_ISA_H
#define LIB_COLL_REDUCE_ISA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coll/reduce/reduce.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define REDUCE_X86 1
/*
 * Compilers that know the instructions of AVX512_FP16, in functions whose target
 * is not the file's.
 */
#if !defined(__clang__) && __GNUC__ >= 12
#define REDUCE_X86_FP16 1
#endif
#endif

/* Functions in between are compiled for these instructions. */
#ifdef __clang__
#define TARGET_BEGIN(names) \
	REDUCE_PRAGMA(clang attribute push(__attribute__((target(names))), \
					   apply_to = function))
#define TARGET_END	REDUCE_PRAGMA(clang attribute pop)
#else
#define TARGET_BEGIN(names) \
	REDUCE_PRAGMA(GCC push_options) \
	REDUCE_PRAGMA(GCC target(names))
#define TARGET_END	REDUCE_PRAGMA(GCC pop_options)
#endif
#define REDUCE_PRAGMA(x)	_Pragma(#x)

/* AVG is SUM by then. */
#define REDUCE_OPS	4

/* There is at least one source. */
typedef void reduce_kernel(const struct reduce *r);

/*
 * @usable: by this processor and its operating system
 * @kernels: for a type and an operation; NULL: as @base has it
 * @copy: past the caches; NULL: as @base has it
 */
struct reduce_isa {
	const char *name;
	bool (*usable)(void);
	const struct reduce_isa *base;
	reduce_kernel *kernels[FABREX_FLOAT64 + 1][REDUCE_OPS + 1];
	void (*copy)(char *dst, const char *src, size_t bytes);
};

extern const struct reduce_isa fxi_reduce_generic;
extern const struct reduce_isa fxi_reduce_avx2;
extern const struct reduce_isa fxi_reduce_avx512;
extern const struct reduce_isa fxi_reduce_avx512_fp16;

#endif
