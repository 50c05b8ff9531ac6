// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tests of reductions: all types, operations and sets of instructions against
 * a plain reference (reduce_reference.c), at odd counts and addresses.
 */
#include <errno.h>
#include <stdlib.h>

#include "coll/reduce/reduce.h"
#include "reduce_reference.h"
#include "test.h"

#define GUARD	80u		/* bytes around buffers that must not change */
#define FILL	0xa5
#define SOURCES	9u
#define MANY	130u
#define TARGETS	3u
#define MAX_BYTES	(1u << 16)

static const char *const sets[] = {
	"generic", "avx2", "avx512", "avx512_fp16", NULL,
};
#define SETS	(sizeof(sets) / sizeof(sets[0]))

struct arena {
	uint8_t bytes[GUARD + 64 + MAX_BYTES + GUARD];
	size_t used;		/* of the buffer, at where */
	uint8_t *where;
};

static struct arena sources[SOURCES], targets[TARGETS];
static uint8_t original[MANY][MAX_BYTES], expected[MAX_BYTES];

static void place(struct arena *arena, size_t misaligned, size_t bytes)
{
	arena->where = arena->bytes + GUARD;
	arena->where += -(uintptr_t)arena->where % 64 + misaligned;
	arena->used = bytes;
	memset(arena->where - GUARD, FILL, bytes + 2 * GUARD);
}

static void check_guards(const struct arena *arena)
{
	size_t i;

	for (i = 0; i < GUARD; i++) {
		CHECK_EQ(arena->where[-1 - (ptrdiff_t)i], FILL);
		CHECK_EQ(arena->where[arena->used + i], FILL);
	}
}

static void fill_sources(uint32_t type, uint32_t n, size_t count)
{
	uint32_t k;

	for (k = 0; k < n; k++)
		reference_fill(type, original[k], count);
}

struct shape {
	uint32_t nsrc, ndst;
	size_t count;
	bool alias;		/* first target is a source */
	bool odd;		/* addresses that no element would have */
};

static size_t somewhere(const struct shape *s, size_t size)
{
	return s->odd ? noise() % 64 : noise() % 64 / size * size;
}

static void explain(const struct reduce *r, const struct shape *s,
		    const uint8_t *got, size_t size)
{
	size_t i, at = 0;

	while (!memcmp(got + at, expected + at, size))
		at += size;
	printf("# %s type %u op %u divisor %u: %u to %u, %zu elements%s%s%s\n",
	       fxi_reduce_name(), r->type, r->op, r->divisor, r->nsrc, r->ndst,
	       s->count, s->alias ? ", aliased" : "", s->odd ? ", odd" : "",
	       r->stream ? ", streaming" : "");
	printf("# element %zu: got", at / size);
	for (i = size; i--; )
		printf("%s%02x", i == size - 1 ? " " : "", got[at + i]);
	printf(" not");
	for (i = size; i--; )
		printf("%s%02x", i == size - 1 ? " " : "", expected[at + i]);
	printf(" from");
	for (i = 0; i < r->nsrc; i++)
		printf(" %02x%02x..", original[i][at + size - 1],
		       original[i][at + (size > 1 ? size - 2 : 0)]);
	printf("\n");
}

/* Once, with what is in original[] and expected[]. */
static void try(struct reduce *r, const struct shape *s)
{
	const size_t size = reference_size(r->type), bytes = s->count * size;
	const void *src[SOURCES];
	void *dst[TARGETS];
	uint32_t k;

	for (k = 0; k < s->nsrc; k++) {
		place(&sources[k], somewhere(s, size), bytes);
		memcpy(sources[k].where, original[k], bytes);
		src[k] = sources[k].where;
	}
	for (k = 0; k < s->ndst; k++) {
		place(&targets[k], somewhere(s, size), bytes);
		dst[k] = targets[k].where;
	}
	if (s->alias)
		dst[noise() % s->ndst] =
			sources[noise() % s->nsrc].where;
	r->src = src;
	r->dst = dst;
	r->nsrc = s->nsrc;
	r->ndst = s->ndst;
	r->count = s->count;
	r->stream = noise() & 1;
	fxi_reduce(r);
	for (k = 0; k < s->ndst; k++) {
		if (memcmp(dst[k], expected, bytes))
			explain(r, s, dst[k], size);
		CHECK(!memcmp(dst[k], expected, bytes));
		check_guards(&targets[k]);
	}
	for (k = 0; k < s->nsrc; k++) {
		bool target = s->alias && !memcmp(sources[k].where, expected,
						  bytes);

		CHECK(target || !memcmp(sources[k].where, original[k], bytes));
		check_guards(&sources[k]);
	}
}

static void try_counts(struct reduce *r, uint32_t nsrc, uint32_t ndst,
		       size_t max)
{
	struct shape s = { .nsrc = nsrc, .ndst = ndst };
	const size_t size = reference_size(r->type);
	static const uint16_t large[] = { 511, 1024, 1031, 4093 };
	size_t i;

	for (s.count = 0; s.count <= max; s.count++) {
		s.alias = noise() % 4 == 0;
		s.odd = noise() % 4 == 0;
		try(r, &s);
	}
	for (i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
		s.count = large[i] / size;
		s.alias = i & 1;
		s.odd = noise() % 4 == 0;
		try(r, &s);
	}
}

/* All sets of instructions give the reference's bits. */
static void try_sets(uint32_t type, uint32_t op, uint32_t divisor)
{
	struct reduce r = { .type = type, .op = op, .divisor = divisor };
	uint32_t nsrc, ndst;
	size_t set;

	for (nsrc = 1; nsrc <= SOURCES; nsrc++) {
		const void *src[SOURCES];

		fill_sources(type, nsrc, 4096 / reference_size(type));
		for (ndst = 0; ndst < nsrc; ndst++)
			src[ndst] = original[ndst];
		reference_reduce(expected, src, nsrc,
				 4096 / reference_size(type), type, op,
				 divisor);
		for (set = 0; set < SETS; set++) {
			if (fxi_reduce_select(sets[set]) == -ENOTSUP)
				continue;
			for (ndst = 1; ndst <= TARGETS; ndst++)
				try_counts(&r, nsrc, ndst, 130);
		}
	}
}

static void try_ops(uint32_t type)
{
	static const uint32_t divisors[] = { 0, 2, 3, 7, 64, 128, 1000, 0x80000000u,
					     UINT32_MAX };
	size_t i;

	try_sets(type, FABREX_SUM, 1);
	try_sets(type, FABREX_PROD, 0);
	try_sets(type, FABREX_MIN, 0);
	try_sets(type, FABREX_MAX, 0);
	for (i = 0; i < sizeof(divisors) / sizeof(divisors[0]); i++)
		try_sets(type, FABREX_AVG, divisors[i]);
}

#define TEST_TYPE(name, type) \
TEST(reduce_##name) \
{ \
	try_ops(FABREX_##type); \
}

TEST_TYPE(int8, INT8)
TEST_TYPE(uint8, UINT8)
TEST_TYPE(int16, INT16)
TEST_TYPE(uint16, UINT16)
TEST_TYPE(int32, INT32)
TEST_TYPE(uint32, UINT32)
TEST_TYPE(int64, INT64)
TEST_TYPE(uint64, UINT64)
TEST_TYPE(float16, FLOAT16)
TEST_TYPE(bfloat16, BFLOAT16)
TEST_TYPE(float32, FLOAT32)
TEST_TYPE(float64, FLOAT64)

TEST(reduce_sets)
{
	size_t set, found = 0;

	CHECK_EQ(fxi_reduce_select("mmx"), -ENOTSUP);
	CHECK_SAYS("mmx");
	for (set = 0; set + 1 < SETS; set++)
		if (!fxi_reduce_select(sets[set])) {
			CHECK(!strncmp(fxi_reduce_name(), sets[set],
				       strlen(fxi_reduce_name())));
			printf("# %s\n", sets[set]);
			found++;
		}
	CHECK(found);
	CHECK_EQ(fxi_reduce_select(NULL), 0);
	printf("# %s is best here\n", fxi_reduce_name());
}

/* There is no limit to sources and targets. */
TEST(reduce_many)
{
	static uint8_t out[MANY][8192];
	const void *src[MANY];
	void *dst[MANY];
	uint32_t type, k;
	size_t set;

	for (type = FABREX_INT8; type <= FABREX_FLOAT64; type++) {
		struct reduce r = {
			.dst = dst, .src = src, .nsrc = MANY,
			.ndst = MANY, .op = FABREX_AVG, .type = type,
			.divisor = MANY, .stream = true,
			.count = 8191 / reference_size(type),
		};

		fill_sources(type, MANY, r.count);
		for (k = 0; k < MANY; k++) {
			src[k] = original[k];
			dst[k] = out[k];
		}
		reference_reduce(expected, src, r.nsrc, r.count, type, r.op,
				 r.divisor);
		for (set = 0; set < SETS; set++) {
			if (fxi_reduce_select(sets[set]))
				continue;
			memset(out, 0, sizeof(out));
			fxi_reduce(&r);
			for (k = 0; k < MANY; k++)
				CHECK(!memcmp(out[k], expected, r.count *
					      reference_size(type)));
		}
	}
}

/* One by one, every pattern of 16 bits through each conversion. */
TEST(reduce_conversions)
{
	static uint16_t in[65536], out[65536], want[65536];
	static const uint32_t types[] = { FABREX_FLOAT16, FABREX_BFLOAT16 };
	const void *src[] = { in };
	void *dst[] = { out };
	size_t i, set, t;

	for (i = 0; i < 65536; i++)
		in[i] = (uint16_t)i;
	for (t = 0; t < 2; t++) {
		/* A divisor makes it more than a copy. */
		struct reduce r = {
			.dst = dst, .src = src, .nsrc = 1, .ndst = 1,
			.count = 65536, .type = types[t], .op = FABREX_AVG,
		};

		for (r.divisor = 2; r.divisor < 6; r.divisor++) {
			reference_reduce(want, src, 1, 65536, r.type, r.op,
					 r.divisor);
			for (set = 0; set < SETS; set++) {
				if (fxi_reduce_select(sets[set]))
					continue;
				memset(out, 0, sizeof(out));
				fxi_reduce(&r);
				for (i = 0; i < 65536; i++)
					CHECK_EQ(out[i], want[i]);
			}
		}
	}
}

/* Multiples of the divisor and their neighbours, where truncation is hard. */
TEST(reduce_quotients)
{
	static uint64_t in[1024], out[1024], want[1024];
	const void *src[] = { in };
	void *dst[] = { out };
	struct reduce r = { .dst = dst, .src = src, .nsrc = 1, .ndst = 1,
			    .op = FABREX_AVG };
	size_t i, set, size;
	int round;

	for (round = 0; round < 4000; round++) {
		r.type = FABREX_INT8 + (uint32_t)round % 8;
		size = reference_size(r.type);
		r.divisor = (uint32_t)noise() >> noise() % 31;
		r.divisor += r.divisor < 2 ? 2 : 0;
		r.count = sizeof(in) / 8;
		for (i = 0; i < r.count; i++) {
			uint64_t x = (noise() >> noise() % 63) / r.divisor *
				     r.divisor + noise() % 3 - 1;

			x = noise() & 1 ? -x : x;
			memcpy((char *)in + i * size, &x, size);
		}
		reference_reduce(want, src, 1, r.count, r.type, r.op,
				 r.divisor);
		for (set = 0; set < SETS - 2; set++) {
			if (fxi_reduce_select(sets[set]))
				continue;
			fxi_reduce(&r);
			CHECK(!memcmp(out, want, r.count * size));
		}
	}
}

/* Pairs of 16 bits with many others: sums and products are rounded right. */
TEST(reduce_pairs)
{
	static uint16_t a[65536], b[65536], out[65536], want[65536];
	const void *src[] = { a, b };
	void *dst[] = { out };
	struct reduce r = { .dst = dst, .src = src, .nsrc = 2, .ndst = 1,
			    .count = 65536 };
	size_t i, set;
	int round;

	for (round = 0; round < 64; round++) {
		const uint16_t other = (uint16_t)noise();

		for (i = 0; i < 65536; i++) {
			a[i] = (uint16_t)i;
			b[i] = round & 1 ? (uint16_t)noise() : other;
		}
		r.type = round & 2 ? FABREX_FLOAT16 : FABREX_BFLOAT16;
		r.op = round & 4 ? FABREX_SUM : FABREX_PROD;
		reference_reduce(want, src, 2, 65536, r.type, r.op, 0);
		for (set = 0; set < SETS; set++) {
			if (fxi_reduce_select(sets[set]))
				continue;
			fxi_reduce(&r);
			for (i = 0; i < 65536; i++)
				CHECK_EQ(out[i], want[i]);
		}
	}
}

/* A copy keeps what a NaN carries. */
TEST(reduce_copies)
{
	static uint8_t in[10000], out[2][10100];
	size_t i, at, set, n;

	for (i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)noise();
	for (set = 0; set < SETS; set++) {
		if (fxi_reduce_select(sets[set]))
			continue;
		for (n = 0; n < sizeof(in); n = n < 200 ? n + 1 : n + 977) {
			const void *src[] = { in };
			void *dst[] = { out[0] + 1, out[1] + n % 64 };
			struct reduce r = {
				.dst = dst, .src = src, .nsrc = 1, .ndst = 2,
				.count = n / 4, .type = FABREX_FLOAT32,
				.op = FABREX_SUM, .stream = n & 1,
			};

			at = n % 70;
			memset(out, FILL, sizeof(out));
			fxi_copy(out[0] + at, in, n, n & 1);
			CHECK(!memcmp(out[0] + at, in, n));
			CHECK_EQ(out[0][at + n], FILL);
			CHECK(!at || out[0][at - 1] == FILL);
			memset(out, FILL, sizeof(out));
			fxi_reduce(&r);
			CHECK(!memcmp(dst[0], in, n / 4 * 4));
			CHECK(!memcmp(dst[1], in, n / 4 * 4));
			CHECK_EQ(out[1][n % 64 + n / 4 * 4], FILL);
		}
	}
}
