// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What ranks put in, and the serial reference of what has to come out: the
 * order that flat, direct and staged document, from rank 0 to the last; the
 * 16-bit types in float, rounded once. Written for clarity, and apart from the
 * library's arithmetic.
 */
#include "world.h"

static uint64_t hash(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ull;
	return x ^ x >> 33;
}

static uint64_t bits_of(const struct values *v, uint32_t rank, uint64_t i)
{
	return hash(hash(v->seed * 1000003ull + rank) + i);
}

static bool is_float(uint32_t type)
{
	return type >= FABREX_FLOAT16;
}

/* ---- 16 bits ----------------------------------------------------------- */

static float from_half(uint16_t h)
{
	_Float16 f;

	memcpy(&f, &h, 2);
	return (float)f;
}

static uint16_t to_half(float f)
{
	_Float16 h = (_Float16)f;
	uint16_t bits;

	memcpy(&bits, &h, 2);
	return bits;
}

static float from_brain(uint16_t b)
{
	uint32_t bits = (uint32_t)b << 16;
	float f;

	memcpy(&f, &bits, 4);
	return f;
}

/* To nearest, even if between; no NaN comes here. */
static uint16_t to_brain(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, 4);
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* ---- one element ------------------------------------------------------- */

/* Products of whole ones must be exact too: powers of two. */
static double number(const struct values *v, uint64_t bits)
{
	if (v->whole && v->op == FABREX_PROD)
		return 1 << (bits & 1);
	if (v->whole)
		return (double)(bits % 16) - 5;
	return ((double)(bits >> 20 & 0xffffff) / 8388608.0 - 1) *
	       (1 << (bits & 3));
}

static void put_float(uint32_t type, double x, void *to)
{
	float f = (float)x;
	uint16_t h;

	switch (type) {
	case FABREX_FLOAT64:
		memcpy(to, &x, 8);
		return;
	case FABREX_FLOAT32:
		memcpy(to, &f, 4);
		return;
	default:
		h = type == FABREX_FLOAT16 ? to_half(f) : to_brain(f);
		memcpy(to, &h, 2);
	}
}

static double get_float(uint32_t type, const void *from)
{
	uint16_t h;
	double d;
	float f;

	switch (type) {
	case FABREX_FLOAT64:
		memcpy(&d, from, 8);
		return d;
	case FABREX_FLOAT32:
		memcpy(&f, from, 4);
		return (double)f;
	default:
		memcpy(&h, from, 2);
		return (double)(type == FABREX_FLOAT16 ? from_half(h) :
							 from_brain(h));
	}
}

static bool is_signed(uint32_t type)
{
	return type % 2;
}

/* Sign or zero extended. */
static uint64_t get_int(uint32_t type, const void *from)
{
	unsigned int bits = 8 * (unsigned int)fabrex_datatype_size(type);
	uint64_t u = 0;

	memcpy(&u, from, bits / 8);
	if (is_signed(type) && bits < 64 && u >> (bits - 1) & 1)
		u |= ~0ull << bits;
	return u;
}

static void put_int(uint32_t type, uint64_t u, void *to)
{
	memcpy(to, &u, fabrex_datatype_size(type));
}

static void fill_one(const struct values *v, uint32_t rank, uint64_t i,
		     void *to)
{
	uint64_t bits = bits_of(v, rank, i);

	if (is_float(v->type))
		put_float(v->type, number(v, bits), to);
	else
		put_int(v->type, bits, to);
}

void values_fill(const struct values *v, uint32_t rank, uint64_t start,
		 uint64_t count, void *to)
{
	size_t size = fabrex_datatype_size(v->type);
	uint64_t i;

	for (i = 0; i < count; i++)
		fill_one(v, rank, start + i, (char *)to + i * size);
}

/* ---- reduction --------------------------------------------------------- */

static uint64_t int_op(const struct values *v, uint64_t a, uint64_t b)
{
	bool less = is_signed(v->type) ? (int64_t)b < (int64_t)a : b < a;

	switch (v->op) {
	case FABREX_PROD:
		return a * b;
	case FABREX_MIN:
		return less ? b : a;
	case FABREX_MAX:
		return less ? a : b;
	default:
		return a + b;
	}
}

/* In the precision that @a and @b have. */
#define FLOAT_OP(op, a, b) \
	((op) == FABREX_PROD ? (a) * (b) : \
	 (op) == FABREX_MIN ? ((b) < (a) ? (b) : (a)) : \
	 (op) == FABREX_MAX ? ((b) > (a) ? (b) : (a)) : (a) + (b))

static void reduce_int(const struct values *v, uint32_t ranks, uint64_t i,
		       void *to)
{
	uint64_t sum, next;
	uint32_t rank;
	char one[8];

	fill_one(v, 0, i, one);
	sum = get_int(v->type, one);
	for (rank = 1; rank < ranks; rank++) {
		fill_one(v, rank, i, one);
		next = int_op(v, sum, get_int(v->type, one));
		put_int(v->type, next, one);
		sum = get_int(v->type, one);
	}
	if (v->op == FABREX_AVG)
		sum = is_signed(v->type) ? (uint64_t)((int64_t)sum /
						      (int64_t)ranks) :
					   sum / ranks;
	put_int(v->type, sum, to);
}

static void reduce_double(const struct values *v, uint32_t ranks, uint64_t i,
			  void *to)
{
	double sum, next;
	uint32_t rank;
	char one[8];

	fill_one(v, 0, i, one);
	sum = get_float(v->type, one);
	for (rank = 1; rank < ranks; rank++) {
		fill_one(v, rank, i, one);
		next = get_float(v->type, one);
		sum = FLOAT_OP(v->op, sum, next);
	}
	if (v->op == FABREX_AVG)
		sum /= ranks;
	put_float(v->type, sum, to);
}

static void reduce_float(const struct values *v, uint32_t ranks, uint64_t i,
			 void *to)
{
	float sum, next;
	uint32_t rank;
	char one[8];

	fill_one(v, 0, i, one);
	sum = (float)get_float(v->type, one);
	for (rank = 1; rank < ranks; rank++) {
		fill_one(v, rank, i, one);
		next = (float)get_float(v->type, one);
		sum = FLOAT_OP(v->op, sum, next);
	}
	if (v->op == FABREX_AVG)
		sum /= (float)ranks;
	put_float(v->type, (double)sum, to);
}

void values_reduce(const struct values *v, uint32_t ranks, uint64_t start,
		   uint64_t count, void *to)
{
	size_t size = fabrex_datatype_size(v->type);
	uint64_t i;

	for (i = start; i < start + count; i++, to = (char *)to + size)
		if (!is_float(v->type))
			reduce_int(v, ranks, i, to);
		else if (v->type == FABREX_FLOAT64)
			reduce_double(v, ranks, i, to);
		else
			reduce_float(v, ranks, i, to);
}

/* ---- collectives ------------------------------------------------------- */

/* How many times count. */
uint64_t send_parts(const struct world *w, uint32_t kind)
{
	return kind == FABREX_REDUCE_SCATTER || kind == FABREX_ALL_TO_ALL ?
	       w->size : 1;
}

uint64_t recv_parts(const struct world *w, uint32_t kind)
{
	return kind == FABREX_ALL_GATHER || kind == FABREX_ALL_TO_ALL ?
	       w->size : 1;
}

void values_expect(const struct world *w, const struct fabrex_collective *what,
		   const struct values *v, char *to)
{
	uint64_t size = fabrex_datatype_size(what->type);
	uint32_t rank;

	switch (what->kind) {
	case FABREX_ALL_REDUCE:
	case FABREX_REDUCE:
		values_reduce(v, w->size, 0, what->count, to);
		break;
	case FABREX_REDUCE_SCATTER:
		values_reduce(v, w->size, w->rank * what->count,
			      what->count, to);
		break;
	case FABREX_BROADCAST:
		values_fill(v, what->root, 0, what->count, to);
		break;
	default:
		for (rank = 0; rank < w->size; rank++)
			values_fill(v, rank,
				    what->kind == FABREX_ALL_TO_ALL ?
				    w->rank * what->count : 0, what->count,
				    to + rank * what->count * size);
	}
}
