// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The arithmetic of atomic operations, as C has it for each type: integers wrap
 * around, comparisons of floating-point numbers are by value. Used by atomic.c
 * and words.c.
 */
#include <string.h>

#include "atomic_op.h"

/* ---- which there are --------------------------------------------------- */

static const uint8_t sizes[] = {
	[FI_INT8] = 1, [FI_UINT8] = 1,
	[FI_INT16] = 2, [FI_UINT16] = 2,
	[FI_INT32] = 4, [FI_UINT32] = 4,
	[FI_INT64] = 8, [FI_UINT64] = 8,
	[FI_FLOAT] = 4, [FI_DOUBLE] = 8,
};
#define TYPES	(sizeof(sizes) / sizeof(*sizes))

/* Programs may pass any number. */
size_t atomic_size(enum fi_datatype type)
{
	return (unsigned int)type < TYPES ? sizes[type] : 0;
}

static bool is_bitwise(unsigned int op)
{
	return op == FI_BOR || op == FI_BAND || op == FI_BXOR ||
	       op == FI_MSWAP;
}

bool atomic_offered(enum fi_datatype type, enum fi_op op,
		    enum atomic_call call)
{
	unsigned int number = (unsigned int)op;

	if (!atomic_size(type))
		return false;
	if (is_bitwise(number) && (type == FI_FLOAT || type == FI_DOUBLE))
		return false;
	if (call == ATOMIC_COMPARE)
		return number >= FI_CSWAP && number <= FI_MSWAP;
#if FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION) >= FI_VERSION(2, 0)
	if (number == ATOMIC_DIFF)
		return true;
#endif
	return number <= FI_BXOR || number == FI_ATOMIC_WRITE ||
	       (number == FI_ATOMIC_READ && call == ATOMIC_FETCH);
}

/* ---- what they compute ------------------------------------------------- */

/*
 * What all types have. wide is where the type is added and multiplied: unsigned
 * for integers, since signed ones must not overflow.
 */
#define COMMON(type, wide)						\
	case FI_MIN:							\
		return b < a ? b : a;					\
	case FI_MAX:							\
		return b > a ? b : a;					\
	case FI_SUM:							\
		return (type)((wide)a + (wide)b);			\
	case ATOMIC_DIFF:						\
		return (type)((wide)a - (wide)b);			\
	case FI_PROD:							\
		return (type)((wide)a * (wide)b);			\
	case FI_LOR:							\
		return (type)(a || b);					\
	case FI_LAND:							\
		return (type)(a && b);					\
	case FI_LXOR:							\
		return (type)(!a != !b);				\
	case FI_ATOMIC_WRITE:						\
		return b;						\
	case FI_CSWAP:							\
		return c == a ? b : a;					\
	case FI_CSWAP_NE:						\
		return c != a ? b : a;					\
	case FI_CSWAP_LE:						\
		return c <= a ? b : a;					\
	case FI_CSWAP_LT:						\
		return c < a ? b : a;					\
	case FI_CSWAP_GE:						\
		return c >= a ? b : a;					\
	case FI_CSWAP_GT:						\
		return c > a ? b : a

#define BITWISE(type)							\
	case FI_BOR:							\
		return (type)(a | b);					\
	case FI_BAND:							\
		return (type)(a & b);					\
	case FI_BXOR:							\
		return (type)(a ^ b);					\
	case FI_MSWAP:							\
		return (type)((b & c) | (a & ~c))

/* a: what is there; b: the operand; c: what it is compared with. */
#define INTEGER(name, type)						\
static type name##_of(unsigned int op, type a, type b, type c)		\
{									\
	switch (op) {							\
	COMMON(type, uint64_t);						\
	BITWISE(type);							\
	}								\
	return a;							\
}

#define FLOATING(name, type)						\
static type name##_of(unsigned int op, type a, type b, type c)		\
{									\
	switch (op) {							\
	COMMON(type, type);						\
	}								\
	return a;							\
}

#define APPLY(name, type)						\
static void name(unsigned int op, void *element, const void *operand,	\
		 const void *compare)					\
{									\
	type a, b = 0, c = 0;						\
									\
	memcpy(&a, element, sizeof(a));					\
	if (operand)							\
		memcpy(&b, operand, sizeof(b));				\
	if (compare)							\
		memcpy(&c, compare, sizeof(c));				\
	a = name##_of(op, a, b, c);					\
	memcpy(element, &a, sizeof(a));					\
}

INTEGER(int8, int8_t)
APPLY(int8, int8_t)
INTEGER(uint8, uint8_t)
APPLY(uint8, uint8_t)
INTEGER(int16, int16_t)
APPLY(int16, int16_t)
INTEGER(uint16, uint16_t)
APPLY(uint16, uint16_t)
INTEGER(int32, int32_t)
APPLY(int32, int32_t)
INTEGER(uint32, uint32_t)
APPLY(uint32, uint32_t)
INTEGER(int64, int64_t)
APPLY(int64, int64_t)
INTEGER(uint64, uint64_t)
APPLY(uint64, uint64_t)
FLOATING(single, float)
APPLY(single, float)
FLOATING(twice, double)
APPLY(twice, double)

static void (*const appliers[])(unsigned int op, void *element,
				const void *operand, const void *compare) = {
	[FI_INT8] = int8, [FI_UINT8] = uint8,
	[FI_INT16] = int16, [FI_UINT16] = uint16,
	[FI_INT32] = int32, [FI_UINT32] = uint32,
	[FI_INT64] = int64, [FI_UINT64] = uint64,
	[FI_FLOAT] = single, [FI_DOUBLE] = twice,
};

void atomic_apply(enum fi_datatype type, enum fi_op op, void *element,
		  const void *operand, const void *compare)
{
	appliers[type]((unsigned int)op, element, operand, compare);
}
