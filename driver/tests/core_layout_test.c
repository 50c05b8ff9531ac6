// SPDX-License-Identifier: GPL-2.0-only
/*
 * Page lists of regions and rings of queues. Run by make check.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "../core/layout.h"
#include "tap.h"

#define K4	0x1000ull
#define M2	0x200000ull
#define G1	0x40000000ull

struct piece {
	u64 addr;
	u64 length;
};

static u32 shift_of(const struct piece *pieces, int n)
{
	struct fabrex_layout layout = {};
	int i;

	for (i = 0; i < n; i++)
		fabrex_layout_add(&layout, pieces[i].addr, pieces[i].length);
	return fabrex_layout_shift(&layout);
}

/* Bus address of byte @o of the pieces, the plain way. */
static u64 address_of(const struct piece *pieces, int n, u64 o)
{
	int i;

	for (i = 0; i < n; i++) {
		if (o < pieces[i].length)
			return pieces[i].addr + o;
		o -= pieces[i].length;
	}
	return 0;
}

/* The list, made as pages.c does. Returns the number of pages. */
static int list_of(const struct piece *pieces, int n, u32 shift, u64 *pages,
		   int room)
{
	u64 off, pos = 0;
	int i, count = 0;

	for (i = 0; i < n; i++) {
		for (off = 0; fabrex_layout_page(pieces[i].length, pos, shift,
						 &off); off += 1ull << shift) {
			CHECK(count < room);
			pages[count++] = pieces[i].addr + off;
		}
		pos += pieces[i].length;
	}
	return count;
}

/* Every byte is where it should be, and no page reaches beyond the pieces. */
static void check_pieces(const struct piece *pieces, int n)
{
	static u64 pages[4096];
	u32 shift = shift_of(pieces, n);
	u64 o, total = 0, size = 1ull << shift;
	int i, count;

	for (i = 0; i < n; i++)
		total += pieces[i].length;
	count = list_of(pieces, n, shift, pages, 4096);
	CHECK_EQ(count, total >> shift);
	CHECK_EQ(total & (size - 1), 0);
	for (i = 0; i < count; i++)
		CHECK_EQ(pages[i] & (size - 1), 0);
	for (o = 0; o < total; o += K4)
		CHECK_EQ(pages[o >> shift] + (o & (size - 1)),
			 address_of(pieces, n, o));
}

TEST(clip_of_a_piece)
{
	u64 off;

	/* Within, across either end, around, beside. */
	CHECK_EQ(fabrex_layout_clip(10, 20, 0, 100, &off), 20);
	CHECK_EQ(off, 0);
	CHECK_EQ(fabrex_layout_clip(10, 20, 15, 100, &off), 15);
	CHECK_EQ(off, 5);
	CHECK_EQ(fabrex_layout_clip(10, 20, 0, 12, &off), 2);
	CHECK_EQ(off, 0);
	CHECK_EQ(fabrex_layout_clip(10, 20, 12, 13, &off), 1);
	CHECK_EQ(off, 2);
	CHECK_EQ(fabrex_layout_clip(10, 20, 30, 40, &off), 0);
	CHECK_EQ(fabrex_layout_clip(10, 20, 0, 10, &off), 0);
	CHECK_EQ(fabrex_layout_clip(10, 20, 0, 0, &off), 0);
	CHECK_EQ(fabrex_layout_clip(1ull << 40, G1, (1ull << 40) + K4,
				    ~0ull, &off), G1 - K4);
	CHECK_EQ(off, K4);
}

/* A part of a scatter list, cut out as mr.c does: the bytes of the part. */
static void check_part(const struct piece *pieces, int n, u64 from, u64 to)
{
	struct piece part[8];
	u64 off, len, o, pos = 0;
	int i, m = 0;

	for (i = 0; i < n; i++) {
		len = fabrex_layout_clip(pos, pieces[i].length, from, to,
					 &off);
		if (len)
			part[m++] = (struct piece){ pieces[i].addr + off, len };
		pos += pieces[i].length;
	}
	check_pieces(part, m);
	for (o = 0; o < to - from; o += K4)
		CHECK_EQ(address_of(part, m, o),
			 address_of(pieces, n, from + o));
	CHECK_EQ(address_of(part, m, to - from), 0);
}

TEST(part_of_a_scatter_list)
{
	static const struct piece list[] = {
		{ 0x100000, 4 * K4 }, { 0x900000, K4 }, { 0x200000, 8 * K4 },
		{ 0x208000, 3 * K4 }, { M2 * 9, M2 },
	};
	u64 from, to, total = 16 * K4 + M2;

	for (from = 0; from < 20 * K4; from += K4)
		for (to = from + K4; to <= total; to += from < 4 * K4 ?
		     K4 * 7 : K4 * 31)
			check_part(list, 5, from, to);
	check_part(list, 5, 0, total);
	/* All of the big page and nothing else of it. */
	check_part(list, 5, 16 * K4, total);
}

TEST(one_small_page)
{
	struct piece p[] = { { 0x12345000, K4 } };

	CHECK_EQ(shift_of(p, 1), 12);
	check_pieces(p, 1);
}

TEST(largest_page_that_fits)
{
	struct piece one[] = { { M2 * 5, M2 } };
	struct piece two[] = { { M2 * 4, M2 }, { M2 * 10, M2 * 2 } };
	struct piece big[] = { { G1 * 3, G1 } };
	struct piece four[] = { { M2 * 4, M2 * 2 }, { M2 * 8, M2 * 2 } };

	CHECK_EQ(shift_of(one, 1), 21);
	CHECK_EQ(shift_of(two, 2), 21);
	CHECK_EQ(shift_of(big, 1), 30);
	CHECK_EQ(shift_of(four, 2), 22);
	check_pieces(one, 1);
	check_pieces(two, 2);
	check_pieces(four, 2);
}

TEST(never_larger_than_a_device_takes)
{
	struct piece p[] = { { 1ull << 40, 1ull << 33 } };

	CHECK_EQ(shift_of(p, 1), FABREX_PAGE_SHIFT_MAX);
}

TEST(no_page_beyond_the_region)
{
	/* Aligned, but it ends early: a page of 2 MiB would show more. */
	struct piece end[] = { { M2 * 4, M2 + K4 } };
	struct piece start[] = { { M2 * 4 + K4, M2 - K4 } };

	CHECK_EQ(shift_of(end, 1), 12);
	CHECK_EQ(shift_of(start, 1), 12);
	check_pieces(end, 1);
	check_pieces(start, 1);
}

TEST(pieces_end_to_end_are_one_run)
{
	struct piece p[] = {
		{ M2, K4 }, { M2 + K4, M2 - 2 * K4 }, { 2 * M2 - K4, K4 },
	};
	struct piece apart[] = { { M2, K4 * 2 }, { M2 + K4 * 4, K4 * 2 } };

	CHECK_EQ(shift_of(p, 3), 21);
	check_pieces(p, 3);
	CHECK_EQ(shift_of(apart, 2), 13);
	check_pieces(apart, 2);
}

TEST(backwards_is_not_end_to_end)
{
	struct piece p[] = { { M2 + K4, K4 }, { M2, K4 } };

	CHECK_EQ(shift_of(p, 2), 12);
	check_pieces(p, 2);
}

TEST(address_zero_and_the_last_one)
{
	struct piece low[] = { { 0, M2 } };
	struct piece high[] = { { -M2, M2 } };

	CHECK_EQ(shift_of(low, 1), 21);
	CHECK_EQ(shift_of(high, 1), 21);
	check_pieces(low, 1);
	check_pieces(high, 1);
}

/* A plain generator: the same pieces in every run. */
static u32 next_random(u32 *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

TEST(any_pieces)
{
	struct piece p[8];
	u32 state = 1, round, i, n;
	u64 at;

	for (round = 0; round < 2000; round++) {
		n = 1 + next_random(&state) % 8;
		at = (u64)next_random(&state) << 12;
		for (i = 0; i < n; i++) {
			p[i].addr = at;
			p[i].length = (1 + next_random(&state) % 32) *
				      (next_random(&state) % 3 ? K4 : 16 * K4);
			at += p[i].length;
			if (next_random(&state) % 2)
				at += (next_random(&state) % 64) * K4;
		}
		check_pieces(p, n);
	}
}

static const struct fabrex_queue_limits limits = {
	.max_sq = 4096,
	.max_cq = 8192,
	.max_rq = 2048,
	.max_cell = 2048,
	.page_size = K4,
};

static int geometry(u32 sq, u32 cq, u32 rq, u32 cell,
		    struct fabrex_geometry *geo)
{
	struct fabrex_queue_create cmd = {
		.sq_entries = sq,
		.cq_entries = cq,
		.rq_entries = rq,
		.cell_size = cell,
	};

	return fabrex_geometry_init(geo, &limits, &cmd);
}

TEST(rings_do_not_overlap)
{
	struct fabrex_geometry geo;
	u64 at = 0;
	int i;

	CHECK_EQ(geometry(64, 256, 32, 64, &geo), 0);
	CHECK_EQ(geo.size[FABREX_PART_CTRL], K4);
	CHECK_EQ(geo.size[FABREX_PART_SQ], 64 * 64);
	CHECK_EQ(geo.size[FABREX_PART_CQ], 256 * 32);
	CHECK_EQ(geo.size[FABREX_PART_RQ], K4);
	for (i = 0; i < FABREX_PARTS; i++) {
		CHECK_EQ(geo.offset[i], at);
		CHECK_EQ(geo.offset[i] % K4, 0);
		at += geo.size[i];
	}
	CHECK_EQ(geo.total, at);
}

/* Whoever maps one page of a machine with large ones sees no other part. */
TEST(large_pages)
{
	const struct fabrex_queue_limits large = {
		.max_sq = 4096, .max_cq = 8192, .max_rq = 2048,
		.max_cell = 2048, .page_size = 65536,
	};
	const struct fabrex_queue_create cmd = {
		.sq_entries = 64, .cq_entries = 4096, .rq_entries = 8,
		.cell_size = 64,
	};
	struct fabrex_geometry geo;
	int i;

	CHECK_EQ(fabrex_geometry_init(&geo, &large, &cmd), 0);
	CHECK_EQ(geo.size[FABREX_PART_CTRL], 65536);
	CHECK_EQ(geo.size[FABREX_PART_SQ], 65536);
	CHECK_EQ(geo.size[FABREX_PART_CQ], 131072);
	CHECK_EQ(geo.size[FABREX_PART_RQ], 65536);
	for (i = 0; i < FABREX_PARTS; i++)
		CHECK_EQ(geo.offset[i] % 65536, 0);
	CHECK_EQ(geo.total, 5 * 65536);
}

TEST(no_receive_ring)
{
	struct fabrex_geometry geo;

	CHECK_EQ(geometry(8, 8, 0, 0, &geo), 0);
	CHECK_EQ(geo.size[FABREX_PART_RQ], 0);
	CHECK_EQ(geo.offset[FABREX_PART_RQ], 0);
	CHECK_EQ(geo.total, 3 * K4);
	CHECK_EQ(geometry(8, 8, 0, 64, &geo), -EINVAL);
	CHECK_EQ(geometry(8, 16, 8, 0, &geo), -EINVAL);
}

TEST(limits_of_queues)
{
	struct fabrex_geometry geo;

	CHECK_EQ(geometry(4096, 8192, 2048, 2048, &geo), 0);
	CHECK_EQ(geometry(4, 8, 0, 0, &geo), -EINVAL);
	CHECK_EQ(geometry(8192, 8192, 0, 0, &geo), -EINVAL);
	CHECK_EQ(geometry(24, 64, 0, 0, &geo), -EINVAL);
	CHECK_EQ(geometry(0, 64, 0, 0, &geo), -EINVAL);
	CHECK_EQ(geometry(64, 32, 0, 0, &geo), -EINVAL);
	CHECK_EQ(geometry(64, 64, 8, 64, &geo), -EINVAL);
	CHECK_EQ(geometry(64, 16384, 0, 0, &geo), -EINVAL);
	CHECK_EQ(geometry(64, 8192, 4096, 64, &geo), -EINVAL);
	CHECK_EQ(geometry(64, 8192, 8, 4096, &geo), -EINVAL);
	CHECK_EQ(geometry(64, 8192, 8, 32, &geo), -EINVAL);
	CHECK_EQ(geometry(64, 8192, 8, 96, &geo), -EINVAL);
	CHECK_EQ(geometry(0x80000000, 0x80000000, 0, 0, &geo), -EINVAL);
	CHECK_EQ(geometry(0x80000000, 8, 0x80000000, 64, &geo), -EINVAL);
}

TEST(abi_limits_count_too)
{
	static const struct fabrex_queue_limits huge = {
		.max_sq = ~0u,
		.max_cq = ~0u,
		.max_rq = ~0u,
		.max_cell = ~0u,
		.page_size = K4,
	};
	struct fabrex_queue_create cmd = {
		.sq_entries = FABREX_SQ_MAX,
		.cq_entries = FABREX_CQ_MAX,
		.rq_entries = FABREX_RQ_MAX,
		.cell_size = FABREX_CELL_MAX,
	};
	struct fabrex_geometry geo;

	CHECK_EQ(fabrex_geometry_init(&geo, &huge, &cmd), 0);
	CHECK_EQ(geo.size[FABREX_PART_RQ],
		 (u64)FABREX_RQ_MAX * FABREX_CELL_MAX);
	cmd.cq_entries *= 2;
	CHECK_EQ(fabrex_geometry_init(&geo, &huge, &cmd), -EINVAL);
}
