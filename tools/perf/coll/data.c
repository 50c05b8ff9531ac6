// SPDX-License-Identifier: GPL-2.0-only
/*
 * Contents: small numbers, so that every result but an average is exact in
 * every type and in whatever order it was computed. They depend on rank and
 * position with a period that no algorithm's pieces have, so that a piece that
 * is lost, doubled or put in the wrong place is noticed.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coll.h"

#define PERIOD	5003u		/* a prime */

struct coll_data {
	const struct coll_kind *kind;
	enum fabrex_datatype type;
	size_t element;
	uint32_t root, rank, ranks;
	double slack;		/* part of the value that may be off */
	char *mine;		/* PERIOD elements that this rank sends */
	char **theirs;		/* [ranks], or what all of them reduce to [1] */
};

/* ---- values ------------------------------------------------------------ */

static int64_t value(enum fabrex_redop op, uint32_t rank, uint32_t ranks,
		     uint32_t i)
{
	uint32_t mixed = (i + 1) * 2654435761u >> 12;

	switch (op) {
	case FABREX_PROD:	/* of all ranks 6, or 2 if there is only one */
		return 1 + (rank == i % ranks) +
		       2 * (ranks > 1 && rank == (i + 1) % ranks);
	case FABREX_MIN:
	case FABREX_MAX:
		return (int64_t)((mixed + rank * 3) % 11);
	case FABREX_AVG:
		return (int64_t)((mixed >> rank % 16) & 1);
	default:
		return (int64_t)((mixed >> rank % 16) & 3);
	}
}

static double reduced(enum fabrex_redop op, uint32_t ranks, uint32_t i,
		      bool whole)
{
	double all = (double)value(op, 0, ranks, i), v;
	uint32_t r;

	for (r = 1; r < ranks; r++) {
		v = (double)value(op, r, ranks, i);
		all = op == FABREX_PROD ? all * v :
		      op == FABREX_MIN ? fmin(all, v) :
		      op == FABREX_MAX ? fmax(all, v) : all + v;
	}
	if (op == FABREX_AVG)
		all = whole ? trunc(all / ranks) : all / ranks;
	return all;
}

/* ---- encoding ---------------------------------------------------------- */

static uint32_t float_bits(double v)
{
	float f = (float)v;
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

/* Drops low bits, to nearest even. */
static uint32_t round_off(uint32_t bits, unsigned int drop)
{
	return (bits + (1u << (drop - 1)) - 1 + (bits >> drop & 1)) >> drop;
}

/* Of 0, and of numbers that are normal in binary16: there are no others. */
static uint16_t to_half(double v)
{
	uint32_t bits = float_bits(v);

	if (!(bits << 1))
		return (uint16_t)(bits >> 16);
	return (uint16_t)((bits >> 16 & 0x8000) |
			  (round_off(bits & 0x7fffffff, 13) - (112u << 10)));
}

static double from_half(uint16_t half)
{
	uint32_t bits = (uint32_t)(half & 0x8000) << 16 |
			((uint32_t)(half & 0x7fff) + (112u << 10)) << 13;
	float f;

	if (!(half & 0x7fff))
		return 0;
	memcpy(&f, &bits, sizeof(f));
	return (double)f;
}

static double from_brain(uint16_t brain)
{
	uint32_t bits = (uint32_t)brain << 16;
	float f;

	memcpy(&f, &bits, sizeof(f));
	return (double)f;
}

static bool is_float(enum fabrex_datatype type)
{
	return type >= FABREX_FLOAT16;
}

/* Little-endian: the low bytes of an integer are the shorter integer. */
static void encode(enum fabrex_datatype type, double v, void *to)
{
	int64_t whole = (int64_t)v;
	uint16_t half;
	float f = (float)v;

	switch (type) {
	case FABREX_FLOAT64:
		memcpy(to, &v, sizeof(v));
		break;
	case FABREX_FLOAT32:
		memcpy(to, &f, sizeof(f));
		break;
	case FABREX_FLOAT16:
	case FABREX_BFLOAT16:
		half = type == FABREX_FLOAT16 ? to_half(v) :
		       (uint16_t)round_off(float_bits(v), 16);
		memcpy(to, &half, sizeof(half));
		break;
	default:
		memcpy(to, &whole, fabrex_datatype_size(type));
	}
}

static double decode(enum fabrex_datatype type, const void *from)
{
	uint16_t half;
	double d;
	float f;

	switch (type) {
	case FABREX_FLOAT64:
		memcpy(&d, from, sizeof(d));
		return d;
	case FABREX_FLOAT32:
		memcpy(&f, from, sizeof(f));
		return (double)f;
	default:
		memcpy(&half, from, sizeof(half));
		return type == FABREX_FLOAT16 ? from_half(half) :
						from_brain(half);
	}
}

/* Steps between numbers, as part of them. */
static double epsilon(enum fabrex_datatype type)
{
	return type == FABREX_FLOAT64 ? 0x1p-52 :
	       type == FABREX_FLOAT32 ? 0x1p-23 :
	       type == FABREX_FLOAT16 ? 0x1p-10 : 0x1p-7;
}

/* ---- tables ------------------------------------------------------------ */

static char *make_sent(const struct coll_data *d, enum fabrex_redop op,
		       uint32_t rank)
{
	char *table = malloc(PERIOD * d->element);
	uint32_t i;

	for (i = 0; table && i < PERIOD; i++)
		encode(d->type, (double)value(op, rank, d->ranks, i),
		       table + i * d->element);
	return table;
}

static char *make_reduced(const struct coll_data *d, enum fabrex_redop op)
{
	char *table = malloc(PERIOD * d->element);
	uint32_t i;

	for (i = 0; table && i < PERIOD; i++)
		encode(d->type, reduced(op, d->ranks, i, !is_float(d->type)),
		       table + i * d->element);
	return table;
}

static bool make_tables(struct coll_data *d, enum fabrex_redop op)
{
	uint32_t r;

	d->mine = make_sent(d, op, d->rank);
	d->theirs = calloc(d->ranks, sizeof(*d->theirs));
	if (!d->mine || !d->theirs)
		return false;
	if (d->kind->reduces)
		return (d->theirs[0] = make_reduced(d, op));
	for (r = 0; r < d->ranks; r++) {
		d->theirs[r] = make_sent(d, op, r);
		if (!d->theirs[r])
			return false;
	}
	return true;
}

struct coll_data *coll_data_make(const struct coll_kind *kind,
				 enum fabrex_datatype type,
				 enum fabrex_redop op, uint32_t root,
				 uint32_t rank, uint32_t ranks)
{
	struct coll_data *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->kind = kind;
	d->type = type;
	d->element = fabrex_datatype_size(type);
	d->root = root;
	d->rank = rank;
	d->ranks = ranks;
	if (op == FABREX_AVG && is_float(type))
		d->slack = 2 * epsilon(type);
	if (make_tables(d, kind->reduces ? op : FABREX_SUM))
		return d;
	coll_data_free(d);
	return NULL;
}

void coll_data_free(struct coll_data *d)
{
	uint32_t r;

	for (r = 0; d->theirs && r < d->ranks; r++)
		free(d->theirs[r]);
	free(d->theirs);
	free(d->mine);
	free(d);
}

/* ---- use --------------------------------------------------------------- */

void coll_data_fill(const struct coll_data *d, void *to, uint64_t n)
{
	uint64_t at, part;

	for (at = 0; at < n; at += part) {
		part = n - at < PERIOD ? n - at : PERIOD;
		memcpy((char *)to + at * d->element, d->mine,
		       part * d->element);
	}
}

static bool close_enough(const struct coll_data *d, const char *got,
			 const char *due)
{
	double a, b;

	if (!d->slack)
		return false;
	a = decode(d->type, got);
	b = decode(d->type, due);
	return fabs(a - b) <= d->slack * fabs(b);
}

static uint64_t count_wrong(const struct coll_data *d, const char *got,
			    const char *due, uint64_t n)
{
	uint64_t i, wrong = 0;

	if (!memcmp(got, due, n * d->element))
		return 0;
	for (i = 0; i < n; i++, got += d->element, due += d->element)
		wrong += memcmp(got, due, d->element) &&
			 !close_enough(d, got, due);
	return wrong;
}

/* @n elements that begin at element @from of a contribution. */
static uint64_t wrong_part(const struct coll_data *d, const char *got,
			   const char *table, uint64_t from, uint64_t n)
{
	uint64_t wrong = 0, at, part;

	for (; n; n -= part, from += part, got += part * d->element) {
		at = from % PERIOD;
		part = n < PERIOD - at ? n : PERIOD - at;
		wrong += count_wrong(d, got, table + at * d->element, part);
	}
	return wrong;
}

static uint64_t wrong_gathered(const struct coll_data *d, const char *got,
			       uint64_t count)
{
	uint64_t wrong = 0, from;
	uint32_t r;

	from = d->kind->sends_all ? d->rank * count : 0;
	for (r = 0; r < d->ranks; r++)
		wrong += wrong_part(d, got + r * count * d->element,
				    d->theirs[r], from, count);
	return wrong;
}

uint64_t coll_data_wrong(const struct coll_data *d, const void *result,
			 uint64_t count)
{
	const struct coll_kind *k = d->kind;

	if (k->id == FABREX_REDUCE && d->rank != d->root)
		return 0;
	if (k->reduces)
		return wrong_part(d, result, d->theirs[0],
				  k->sends_all ? d->rank * count : 0, count);
	if (k->recvs_all)
		return wrong_gathered(d, result, count);
	return wrong_part(d, result, d->theirs[k->id ? d->root :
				     (d->rank + d->ranks - 1) % d->ranks],
			  0, count);
}
