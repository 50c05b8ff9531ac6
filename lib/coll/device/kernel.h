/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernel that runs on the GPU, in C++ that the compilers of CUDA and of HIP
 * share, as one line of text: no preprocessor lines, no comments but these. For
 * kernels.c.
 *
 * @wide, for types that are computed in another: 1: @a has values as they are
 * computed; 2: @dst gets such. Sums of several are rounded once.
 *
 * FABREX_TYPE is the enum fabrex_datatype that it is compiled for. The
 * arithmetic, and which NaN is stored, is that of lib/coll/reduce/vector.h.
 */
#ifndef LIB_COLL_DEVICE_KERNEL_H
#define LIB_COLL_DEVICE_KERNEL_H

#define KERNEL_NAME	"fabrex_reduce"
#define KERNEL_TEXT(...) #__VA_ARGS__

/* A stored element is got as a value, which is put when it has been computed. */
static const char kernel_text[] = KERNEL_TEXT(
namespace fabrex {

typedef unsigned int u32;
typedef unsigned long long u64;

struct alignas(16) words {
	u32 w[4];
};

union single {
	float value;
	u32 bits;
};

template <class S, class U, class W> struct integer {
	typedef S stored;
	typedef S value;

	static __device__ value get(stored x) { return x; }
	static __device__ stored put(value x) { return x; }
	static __device__ bool is_nan(value) { return false; }
	static __device__ value sum(value x, value y)
	{
		return (S)((U)x + (U)y);
	}
	static __device__ value product(value x, value y)
	{
		return (S)((U)x * (U)y);
	}
	static __device__ value quotient(value x, u32 by)
	{
		return (S)((W)x / (W)by);
	}
};

template <class V> struct floating {
	typedef V value;

	static __device__ bool is_nan(value x) { return x != x; }
	static __device__ value sum(value x, value y) { return x + y; }
	static __device__ value product(value x, value y) { return x * y; }
	static __device__ value quotient(value x, u32 by)
	{
		return x / (value)by;
	}
};

static __device__ u32 bits_of(float x)
{
	single s;

	s.value = x;
	return x != x ? 0x7fc00000u : s.bits;
}

static __device__ float float_of(u32 bits)
{
	single s;

	s.bits = bits;
	return s.value;
}

static __device__ float half_to_float(u32 half)
{
	u32 mantissa = (half & 0x7fffu) << 13;
	u32 exponent = mantissa & 0x0f800000u;
	u32 x = mantissa + (112u << 23);

	if (exponent == 0x0f800000u)
		x += 112u << 23;
	else if (!exponent)
		x = bits_of(float_of(x + (1u << 23)) - float_of(113u << 23));
	return float_of(x | (half & 0x8000u) << 16);
}

static __device__ u32 float_to_half(float value)
{
	u32 bits = bits_of(value);
	u32 x = bits & 0x7fffffffu;
	u32 sign = bits >> 16 & 0x8000u;

	if (x >= 143u << 23)
		return sign | 0x7c00u | (x > 0x7f800000u ? 0x200u : 0u);
	if (x < 113u << 23)
		return sign | (bits_of(float_of(x) + float_of(126u << 23)) -
			       (126u << 23));
	return sign | (x - (112u << 23) + 0xfffu + (x >> 13 & 1u)) >> 13;
}

struct float16 : floating<float> {
	typedef unsigned short stored;

	static __device__ float get(stored x) { return half_to_float(x); }
	static __device__ stored put(float x)
	{
		return (stored)float_to_half(x);
	}
};

struct bfloat16 : floating<float> {
	typedef unsigned short stored;

	static __device__ float get(stored x)
	{
		return float_of((u32)x << 16);
	}
	static __device__ stored put(float x)
	{
		u32 bits = bits_of(x);

		return (stored)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
	}
};

struct float32 : floating<float> {
	typedef u32 stored;

	static __device__ float get(stored x) { return float_of(x); }
	static __device__ stored put(float x) { return bits_of(x); }
};

union twice {
	double value;
	u64 bits;
};

struct float64 : floating<double> {
	typedef u64 stored;

	static __device__ double get(stored x)
	{
		twice t;

		t.bits = x;
		return t.value;
	}
	static __device__ stored put(double x)
	{
		twice t;

		t.value = x;
		return x != x ? 0x7ff8000000000000ull : t.bits;
	}
};

template <int type> struct type_of;
template <> struct type_of<1> : integer<signed char, u32, long long> { };
template <> struct type_of<2> : integer<unsigned char, u32, u64> { };
template <> struct type_of<3> : integer<short, u32, long long> { };
template <> struct type_of<4> : integer<unsigned short, u32, u64> { };
template <> struct type_of<5> : integer<int, u32, long long> { };
template <> struct type_of<6> : integer<u32, u32, u64> { };
template <> struct type_of<7> : integer<long long, u64, long long> { };
template <> struct type_of<8> : integer<u64, u64, u64> { };
template <> struct type_of<9> : float16 { };
template <> struct type_of<10> : bfloat16 { };
template <> struct type_of<11> : float32 { };
template <> struct type_of<12> : float64 { };

template <class T, int op> struct apply {
	typedef typename T::stored stored;
	typedef typename T::value value;

	static __device__ value two(value x, value y)
	{
		switch (op) {
		case 1:
			return T::sum(x, y);
		case 2:
			return T::product(x, y);
		case 3:
			return y < x || T::is_nan(y) ? y : x;
		default:
			return y > x || T::is_nan(y) ? y : x;
		}
	}
	static __device__ stored one(stored a, stored b, u32 divisor)
	{
		value x = two(T::get(a), T::get(b));

		return T::put(divisor > 1 ? T::quotient(x, divisor) : x);
	}
	static __device__ stored half(stored a, u32 divisor)
	{
		return T::put(T::quotient(T::get(a), divisor));
	}
};

template <class S> union piece {
	words all;
	S each[16 / sizeof(S)];
};

template <class T, int op>
static __device__ void run(typename T::stored *dst,
			   const typename T::stored *a,
			   const typename T::stored *b, u64 count, u32 divisor)
{
	typedef typename T::stored S;
	typedef apply<T, op> A;
	const u64 step = (u64)gridDim.x * blockDim.x;
	const u64 first = (u64)blockIdx.x * blockDim.x + threadIdx.x;
	const u64 n = 16 / sizeof(S);
	const bool wide = !(((u64)dst | (u64)a | (u64)b) & 15);
	const u64 pieces = wide ? count / n : 0;

	for (u64 i = first; i < pieces; i += step) {
		piece<S> x; piece<S> y;

		x.all = ((const words *)a)[i];
		if (b)
			y.all = ((const words *)b)[i];
		for (u32 k = 0; k < n; k++)
			x.each[k] = b ? A::one(x.each[k], y.each[k], divisor) :
					A::half(x.each[k], divisor);
		((words *)dst)[i] = x.all;
	}
	for (u64 i = pieces * n + first; i < count; i += step)
		dst[i] = b ? A::one(a[i], b[i], divisor) :
			     A::half(a[i], divisor);
}

template <class T, int op>
static __device__ void run_wide(void *dst, const void *a,
				const typename T::stored *b, u64 count,
				u32 divisor, u32 wide)
{
	typedef typename T::stored S;
	typedef typename T::value V;
	const u64 step = (u64)gridDim.x * blockDim.x;

	for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count;
	     i += step) {
		V x = wide & 1 ? ((const V *)a)[i] : T::get(((const S *)a)[i]);

		x = apply<T, op>::two(x, T::get(b[i]));
		if (divisor > 1)
			x = T::quotient(x, divisor);
		if (wide & 2)
			((V *)dst)[i] = x;
		else
			((S *)dst)[i] = T::put(x);
	}
}

template <class T, int op>
static __device__ void either(void *dst, const void *a, const void *b,
			      u64 count, u32 divisor, u32 wide)
{
	typedef typename T::stored S;

	if (wide)
		run_wide<T, op>(dst, a, (const S *)b, count, divisor, wide);
	else
		run<T, op>((S *)dst, (const S *)a, (const S *)b, count,
			   divisor);
}

}

extern "C" __global__ void
fabrex_reduce(void *dst, const void *a, const void *b,
	      unsigned long long count, unsigned int op, unsigned int divisor,
	      unsigned int wide)
{
	typedef fabrex::type_of<FABREX_TYPE> T;

	switch (op) {
	case 1:
		fabrex::either<T, 1>(dst, a, b, count, divisor, wide);
		break;
	case 2:
		fabrex::either<T, 2>(dst, a, b, count, divisor, wide);
		break;
	case 3:
		fabrex::either<T, 3>(dst, a, b, count, divisor, wide);
		break;
	case 4:
		fabrex::either<T, 4>(dst, a, b, count, divisor, wide);
		break;
	}
}
);

#endif
