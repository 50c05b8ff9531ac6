// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lists of pages of a scatter table, compared with a walk byte by byte. The
 * arithmetic alone is tested in user space (core_layout_test.c).
 */
#include <linux/prandom.h>

#include "kunit.h"
#include "layout.c"
#include "pages.c"

#define EXTENTS_MAX	8
#define K4		4096u

struct table {
	struct scatterlist sgl[EXTENTS_MAX];
	struct sg_table sgt;
	u64 length;
};

static void table_init(struct table *table, const u64 (*extents)[2],
		       unsigned int n)
{
	struct scatterlist *sg = table->sgl;
	unsigned int i;

	memset(table, 0, sizeof(*table));
	sg_init_table(table->sgl, n);
	table->sgt.sgl = table->sgl;
	table->sgt.nents = n;
	table->sgt.orig_nents = n;
	for (i = 0; i < n; i++, sg = sg_next(sg)) {
		sg_dma_address(sg) = extents[i][0];
		sg_dma_len(sg) = extents[i][1];
		table->length += extents[i][1];
	}
}

/* Address of the byte at a position of the table. */
static u64 table_address(const struct table *table, u64 pos)
{
	struct scatterlist *sg;
	int i;

	for_each_sgtable_dma_sg(&table->sgt, sg, i) {
		if (pos < sg_dma_len(sg))
			return sg_dma_address(sg) + pos;
		pos -= sg_dma_len(sg);
	}
	return 0;
}

/* Every byte is where the list says, and the list names nothing else. */
static void pages_compare(struct kunit *test, const struct table *table,
			  u64 from, u64 to)
{
	const struct fabrex_mr_memory memory = {
		.sgt = &table->sgt,
		.from = from,
		.to = to,
		.offset = 17,
	};
	struct fabrex_pages pages;
	u64 addr, at, off, n = 0;

	fabrex_pages_begin(&pages, &memory);
	KUNIT_ASSERT_GE(test, pages.shift, FABREX_PAGE_SHIFT_MIN);
	KUNIT_EXPECT_EQ(test, pages.first, 17ull);
	KUNIT_EXPECT_EQ(test, pages.count << pages.shift, to - from);
	for (at = from; fabrex_pages_next(&pages, &addr); n++) {
		KUNIT_EXPECT_EQ(test, addr & ((1ull << pages.shift) - 1), 0ull);
		for (off = 0; off < 1ull << pages.shift; off += K4, at += K4)
			KUNIT_ASSERT_EQ(test, addr + off,
					table_address(table, at));
	}
	KUNIT_EXPECT_EQ(test, n, pages.count);
	KUNIT_EXPECT_FALSE(test, fabrex_pages_next(&pages, &addr));
}

static void pages_of_one_extent(struct kunit *test)
{
	static const u64 extents[][2] = { { 0x40000000, 0x200000 } };
	struct fabrex_mr_memory memory = { .to = 0x200000 };
	struct fabrex_pages pages;
	struct table table;

	table_init(&table, extents, 1);
	memory.sgt = &table.sgt;
	fabrex_pages_begin(&pages, &memory);
	KUNIT_EXPECT_EQ(test, pages.shift, 21u);
	KUNIT_EXPECT_EQ(test, pages.count, 1ull);
	pages_compare(test, &table, 0, 0x200000);
	pages_compare(test, &table, K4, 2 * K4);
	pages_compare(test, &table, 0x1ff000, 0x200000);
}

static void pages_across_extents(struct kunit *test)
{
	/* The first two lie end to end: larger than either. */
	static const u64 extents[][2] = {
		{ 0x100000, 0x8000 }, { 0x108000, 0x8000 }, { 0x7000, 0x1000 },
		{ 0xff0000, 0x3000 },
	};
	struct table table;
	u64 from, to;

	table_init(&table, extents, ARRAY_SIZE(extents));
	for (from = 0; from < table.length; from += K4)
		for (to = from + K4; to <= table.length; to += K4)
			pages_compare(test, &table, from, to);
}

static void pages_at_random(struct kunit *test)
{
	u64 extents[EXTENTS_MAX][2], from, to;
	struct rnd_state rnd;
	unsigned int i, n, round;
	struct table table;

	prandom_seed_state(&rnd, 4711);
	for (round = 0; round < 200; round++) {
		n = prandom_u32_state(&rnd) % EXTENTS_MAX + 1;
		for (i = 0; i < n; i++) {
			u32 shift = 12 + prandom_u32_state(&rnd) % 5;

			extents[i][0] = (u64)(prandom_u32_state(&rnd) % 4096 +
					      1) << shift;
			extents[i][1] = (prandom_u32_state(&rnd) % 4 + 1ull) <<
					shift;
		}
		table_init(&table, extents, n);
		from = round_down(prandom_u32_state(&rnd) % table.length, K4);
		to = from + K4 + round_down(prandom_u32_state(&rnd) %
					    (table.length - from), K4);
		pages_compare(test, &table, from, to);
		pages_compare(test, &table, 0, table.length);
	}
}

static void pages_too_few(struct kunit *test)
{
	static const u64 extents[][2] = { { 0x1000, 0x1000 }, { 0x5000, 0x2000 } };
	static struct device mapped_for;
	struct fabrex_mr_memory memory = {
		.dev = &mapped_for,
		.to = 0x3000,
	};
	struct table table;

	table_init(&table, extents, ARRAY_SIZE(extents));
	memory.sgt = &table.sgt;
	KUNIT_EXPECT_TRUE(test, fabrex_memory_complete(&memory));
	memory.to += K4;
	KUNIT_EXPECT_FALSE(test, fabrex_memory_complete(&memory));
}

static struct kunit_case pages_cases[] = {
	KUNIT_CASE(pages_of_one_extent),
	KUNIT_CASE(pages_across_extents),
	KUNIT_CASE(pages_at_random),
	KUNIT_CASE(pages_too_few),
	{}
};

static struct kunit_suite pages_suite = {
	.name = "fabrex_pages",
	.test_cases = pages_cases,
};

kunit_test_suites(&pages_suite);
