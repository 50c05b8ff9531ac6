/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Arithmetic of the modelled GPU (docs/gpu.md, section 6): element types and
 * their conversions. For gpu.c and tests; any thread.
 */
#ifndef EMU_GPU_MATH_H
#define EMU_GPU_MATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exact; and rounded to nearest even, NaNs to the one NaN of the type. */
float gpu_from_half(uint16_t h);
uint16_t gpu_to_half(float f);
float gpu_from_bf16(uint16_t b);
uint16_t gpu_to_bf16(float f);

/* Bytes of an element of @type (DRACO_GPU_FP32 ...); 0: no such type. */
unsigned int gpu_element(unsigned int type);

/*
 * @dst := @a @function @b, element by element; both known, @bytes whole
 * elements. Ranges may be the same, not overlap otherwise.
 */
void gpu_reduce(unsigned int type, unsigned int function, void *dst,
		const void *a, const void *b, size_t bytes);

#endif
