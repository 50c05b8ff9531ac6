/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The loops of the reductions, compiled once for each set of instructions with
 * what vector.h has for it. Everything is inlined into functions for one type
 * and one operation each. For lib/coll/reduce/ only.
 */
#ifndef LIB_COLL_REDUCE_KERNELS_H
#define LIB_COLL_REDUCE_KERNELS_H

#include "coll/reduce/vector.h"

#define NOINLINE	static __attribute__((noinline, unused))

/* Vectors that are processed at once. */
#define UNROLL	4

/* FLOAT16 without a conversion: one operation, or comparisons only. */
#define FLOAT16_NATIVE	100

INLINE bool is_converted(int type)
{
	return type == FABREX_FLOAT16 || type == FABREX_BFLOAT16;
}

INLINE struct acc get(int type, raw v)
{
	switch (type) {
	case FABREX_FLOAT16:
		return get_float16(v);
	case FABREX_BFLOAT16:
		return get_bfloat16(v);
	default:
		return (struct acc){ .a = v };
	}
}

INLINE raw put(int type, struct acc x)
{
	switch (type) {
	case FABREX_FLOAT16:
		return put_float16(x);
	case FABREX_BFLOAT16:
		return put_bfloat16(x);
	case FABREX_FLOAT32:
		return one_nan_32(x.a);
	case FABREX_FLOAT64:
		return one_nan_64(x.a);
#ifdef VECTOR_NATIVE16
	case FLOAT16_NATIVE:
		return one_nan_16(x.a);
#endif
	default:
		return x.a;
	}
}

INLINE raw apply_one(int type, int op, raw x, raw y)
{
	switch (type) {
	case FABREX_INT8:
		return op_int8(op, x, y);
	case FABREX_UINT8:
		return op_uint8(op, x, y);
	case FABREX_INT16:
		return op_int16(op, x, y);
	case FABREX_UINT16:
		return op_uint16(op, x, y);
	case FABREX_INT32:
		return op_int32(op, x, y);
	case FABREX_UINT32:
		return op_uint32(op, x, y);
	case FABREX_INT64:
		return op_int64(op, x, y);
	case FABREX_UINT64:
		return op_uint64(op, x, y);
	case FABREX_FLOAT64:
		return op_float64(op, x, y);
#ifdef VECTOR_NATIVE16
	case FLOAT16_NATIVE:
		return op_float16(op, x, y);
#endif
	default:
		return op_float32(op, x, y);
	}
}

INLINE struct acc apply(int type, int op, struct acc x, struct acc y)
{
	x.a = apply_one(type, op, x.a, y.a);
	if (is_converted(type))
		x.b = apply_one(type, op, x.b, y.b);
	return x;
}

INLINE void divide(int type, struct acc *x, uint32_t by)
{
	switch (type) {
	case FABREX_INT8:
		return divide_int8(&x->a, by);
	case FABREX_UINT8:
		return divide_uint8(&x->a, by);
	case FABREX_INT16:
		return divide_int16(&x->a, by);
	case FABREX_UINT16:
		return divide_uint16(&x->a, by);
	case FABREX_INT32:
		return divide_int32(&x->a, by);
	case FABREX_UINT32:
		return divide_uint32(&x->a, by);
	case FABREX_INT64:
		return divide_int64(&x->a, by);
	case FABREX_UINT64:
		return divide_uint64(&x->a, by);
	case FABREX_FLOAT64:
		x->a = (raw)((v_double)x->a / (double)by);
		return;
	case FABREX_FLOAT16:
	case FABREX_BFLOAT16:
		x->b = (raw)((v_float)x->b / (float)by);
		/* fallthrough */
	case FABREX_FLOAT32:
		x->a = (raw)((v_float)x->a / (float)by);
	}
}

INLINE bool aligned(const void *p)
{
	return !((uintptr_t)p % VECTOR);
}

/*
 * Prefetches the source, some steps ahead: with much to compute the processor
 * does not look far ahead itself, nor beyond a page.
 */
#define AHEAD	2048

INLINE void fetch(const char *p)
{
	int u;

#pragma GCC unroll 4
	for (u = 0; u < UNROLL * VECTOR; u += 64)
		__builtin_prefetch(p + AHEAD + u);
}

/* n vectors at an offset in bytes; n is a constant. */
INLINE void vectors(const struct reduce *r, int type, int op, uint64_t at,
		    const int n)
{
	struct acc x[UNROLL];
	uint32_t k;
	int u;

	if (n == UNROLL)
		fetch((const char *)r->src[0] + at);
#pragma GCC unroll 4
	for (u = 0; u < n; u++)
		x[u] = get(type, load((const char *)r->src[0] + at +
				      u * VECTOR));
	for (k = 1; k < r->nsrc; k++) {
		const char *src = (const char *)r->src[k] + at;

		if (n == UNROLL)
			fetch(src);
#pragma GCC unroll 4
		for (u = 0; u < n; u++)
			x[u] = apply(type, op, x[u],
				     get(type, load(src + u * VECTOR)));
	}
	if (r->divisor > 1)
#pragma GCC unroll 4
		for (u = 0; u < n; u++)
			divide(type, &x[u], r->divisor);
#pragma GCC unroll 4
	for (u = 0; u < n; u++)
		x[u].a = put(type, x[u]);
	for (k = 0; k < r->ndst; k++) {
		char *dst = (char *)r->dst[k] + at;

		if (r->stream && aligned(dst))
#pragma GCC unroll 4
			for (u = 0; u < n; u++)
				VECTOR_STREAM(dst + u * VECTOR, x[u].a);
		else
#pragma GCC unroll 4
			for (u = 0; u < n; u++)
				store(dst + u * VECTOR, x[u].a);
	}
}

/* Less than a vector. */
INLINE void part(const struct reduce *r, int type, int op, uint64_t at,
		 size_t bytes)
{
	struct acc x;
	uint32_t k;

	x = get(type, load_part((const char *)r->src[0] + at, bytes));
	for (k = 1; k < r->nsrc; k++)
		x = apply(type, op, x,
			  get(type, load_part((const char *)r->src[k] + at,
					      bytes)));
	if (r->divisor > 1)
		divide(type, &x, r->divisor);
	x.a = put(type, x);
	for (k = 0; k < r->ndst; k++)
		store_part((char *)r->dst[k] + at, x.a, bytes);
}

/*
 * The inner loop of collectives: two sources, one or two targets, no divisor.
 * Returns how far it came from @at.
 */
INLINE uint64_t pair_loop(const struct reduce *r, int type, int op,
			  uint64_t at, uint64_t bytes, const bool two,
			  const bool stream)
{
	const char *a = r->src[0], *b = r->src[1];
	char *dst = r->dst[0], *other = r->dst[two];

	for (; at + UNROLL * VECTOR <= bytes; at += UNROLL * VECTOR) {
		raw x[UNROLL];
		int u;

		if (is_converted(type)) {
			fetch(a + at);
			fetch(b + at);
		}
#pragma GCC unroll 4
		for (u = 0; u < UNROLL; u++) {
			const uint64_t i = at + u * VECTOR;

			x[u] = put(type, apply(type, op,
					       get(type, load(a + i)),
					       get(type, load(b + i))));
		}
#pragma GCC unroll 4
		for (u = 0; u < UNROLL; u++) {
			if (stream)
				VECTOR_STREAM(dst + at + u * VECTOR, x[u]);
			else
				store(dst + at + u * VECTOR, x[u]);
		}
		if (!two)
			continue;
#pragma GCC unroll 4
		for (u = 0; u < UNROLL; u++) {
			if (stream)
				VECTOR_STREAM(other + at + u * VECTOR, x[u]);
			else
				store(other + at + u * VECTOR, x[u]);
		}
	}
	return at;
}

INLINE uint64_t pairs(const struct reduce *r, int type, int op, uint64_t at,
		      uint64_t bytes)
{
	const bool two = r->ndst == 2;

	if (r->stream && aligned((char *)r->dst[0] + at) &&
	    aligned((char *)r->dst[two] + at))
		return two ? pair_loop(r, type, op, at, bytes, true, true) :
			     pair_loop(r, type, op, at, bytes, false, true);
	return two ? pair_loop(r, type, op, at, bytes, true, false) :
		     pair_loop(r, type, op, at, bytes, false, false);
}

/* Bytes before the first target is aligned, if that can be. */
INLINE size_t head(const struct reduce *r, size_t element)
{
	size_t n = -(uintptr_t)r->dst[0] % VECTOR;

	return n % element ? 0 : n;
}

INLINE void loop(const struct reduce *r, int type, int op, size_t element)
{
	const uint64_t bytes = r->count * element;
	uint64_t at = 0;

	if (bytes >= 2 * UNROLL * VECTOR) {
		at = head(r, element);
		if (at)
			part(r, type, op, 0, at);
		if (op == FABREX_SUM && element >= 2 && r->nsrc == 2 &&
		    r->ndst <= 2 && r->divisor <= 1)
			at = pairs(r, type, op, at, bytes);
		for (; at + UNROLL * VECTOR <= bytes; at += UNROLL * VECTOR)
			vectors(r, type, op, at, UNROLL);
	}
	for (; at + VECTOR <= bytes; at += VECTOR)
		vectors(r, type, op, at, 1);
	if (at < bytes)
		part(r, type, op, at, bytes - at);
}

/* Streams past the caches; dst is aligned from the first vector on. */
NOINLINE void copy_loop(char *dst, const char *src, size_t bytes)
{
	size_t at = -(uintptr_t)dst % VECTOR;

	if (at > bytes)
		at = bytes;
	memcpy(dst, src, at);
	for (; at + UNROLL * VECTOR <= bytes; at += UNROLL * VECTOR) {
		raw x[UNROLL];
		int u;

#pragma GCC unroll 4
		for (u = 0; u < UNROLL; u++)
			x[u] = load(src + at + u * VECTOR);
#pragma GCC unroll 4
		for (u = 0; u < UNROLL; u++)
			VECTOR_STREAM(dst + at + u * VECTOR, x[u]);
	}
	memcpy(dst + at, src + at, bytes - at);
}

#define KERNEL(type, op, element) \
NOINLINE void do_##type##_##op(const struct reduce *r) \
{ \
	loop(r, FABREX_##type, FABREX_##op, element); \
}

#define KERNELS(type, element) \
	KERNEL(type, SUM, element) \
	KERNEL(type, PROD, element) \
	KERNEL(type, MIN, element) \
	KERNEL(type, MAX, element)

#define KERNEL_ROW(type) \
	[FABREX_##type] = { \
		[FABREX_SUM] = do_##type##_SUM, \
		[FABREX_PROD] = do_##type##_PROD, \
		[FABREX_MIN] = do_##type##_MIN, \
		[FABREX_MAX] = do_##type##_MAX, \
	}

#define KERNELS_OF_ALL_TYPES \
	KERNELS(INT8, 1) \
	KERNELS(UINT8, 1) \
	KERNELS(INT16, 2) \
	KERNELS(UINT16, 2) \
	KERNELS(INT32, 4) \
	KERNELS(UINT32, 4) \
	KERNELS(INT64, 8) \
	KERNELS(UINT64, 8) \
	KERNELS(FLOAT16, 2) \
	KERNELS(BFLOAT16, 2) \
	KERNELS(FLOAT32, 4) \
	KERNELS(FLOAT64, 8)

#define KERNEL_ROWS_OF_ALL_TYPES \
	KERNEL_ROW(INT8), \
	KERNEL_ROW(UINT8), \
	KERNEL_ROW(INT16), \
	KERNEL_ROW(UINT16), \
	KERNEL_ROW(INT32), \
	KERNEL_ROW(UINT32), \
	KERNEL_ROW(INT64), \
	KERNEL_ROW(UINT64), \
	KERNEL_ROW(FLOAT16), \
	KERNEL_ROW(BFLOAT16), \
	KERNEL_ROW(FLOAT32), \
	KERNEL_ROW(FLOAT64)

#endif
