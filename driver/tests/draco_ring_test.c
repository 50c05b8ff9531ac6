// SPDX-License-Identifier: GPL-2.0-only
/*
 * Index arithmetic of the admin rings. Run by make check.
 */
#include <linux/kernel.h>

#include "../draco/ring.h"
#include "tap.h"

TEST(entries_are_a_power_of_two_within_limits)
{
	u32 max, n;

	for (max = 0; max <= 0xffff; max++) {
		n = draco_ring_entries(max);
		if (max < DRACO_ADMIN_MIN) {
			CHECK_EQ(n, 0);
			continue;
		}
		CHECK(n && !(n & (n - 1)));
		CHECK(n >= DRACO_ADMIN_MIN && n <= max);
		CHECK(n <= DRACO_ADMIN_ENTRIES);
		CHECK(2 * n > max || n == DRACO_ADMIN_ENTRIES);
	}
}

TEST(reserve_leaves_room_for_commands)
{
	u32 n;

	for (n = DRACO_ADMIN_MIN; n <= DRACO_ADMIN_ENTRIES; n *= 2) {
		CHECK_EQ(draco_ring_slots(n), n - 1);
	}
}

TEST(each_priority_finds_room_that_lower_ones_leave)
{
	enum draco_prio prio;
	u32 n;

	for (n = DRACO_ADMIN_MIN; n <= DRACO_ADMIN_ENTRIES; n *= 2) {
		CHECK(draco_ring_limit(n, DRACO_PRIO_QUERY) >= 1);
		for (prio = 1; prio < DRACO_PRIOS; prio++)
			CHECK(draco_ring_limit(n, prio) >=
			      draco_ring_limit(n, prio - 1));
		CHECK(draco_ring_limit(n, DRACO_PRIO_DRIVER) >
		      draco_ring_limit(n, DRACO_PRIO_CHANGE));
		CHECK(draco_ring_limit(n, DRACO_PRIO_RESERVE) >
		      draco_ring_limit(n, DRACO_PRIO_DRIVER));
		CHECK_EQ(draco_ring_limit(n, DRACO_PRIO_RESERVE),
			 draco_ring_slots(n));
		if (n >= 8)
			CHECK(draco_ring_limit(n, DRACO_PRIO_CHANGE) >
			      draco_ring_limit(n, DRACO_PRIO_USER));
	}
}

/* However many read, and however many changes wait for an answer. */
TEST(shares_leave_room_for_others)
{
	u32 n, query, change;

	for (n = 8; n <= DRACO_ADMIN_ENTRIES; n *= 2) {
		query = draco_ring_share(n, DRACO_PRIO_QUERY);
		change = draco_ring_share(n, DRACO_PRIO_CHANGE);
		CHECK(query >= 1 && change >= 1);
		CHECK(query <= draco_ring_slots(n) / 7);
		CHECK_EQ(draco_ring_room(n, DRACO_PRIO_QUERY, query, query), 0);
		CHECK(draco_ring_room(n, DRACO_PRIO_CHANGE, query, 0) >= 1);
		CHECK(draco_ring_room(n, DRACO_PRIO_USER, query + change, 0) >=
		      1);
		/* All that users may have is taken. */
		CHECK(draco_ring_room(n, DRACO_PRIO_CHANGE,
				      draco_ring_limit(n, DRACO_PRIO_USER),
				      0) >= 1);
	}
	CHECK_EQ(draco_ring_share(64, DRACO_PRIO_USER), 63);
}

TEST(room_is_what_both_limits_leave)
{
	u32 n = 64, limit = draco_ring_limit(n, DRACO_PRIO_USER), i;

	for (i = 0; i < n; i++)
		CHECK_EQ(draco_ring_room(n, DRACO_PRIO_USER, i, i),
			 i < limit ? limit - i : 0);
	CHECK_EQ(draco_ring_room(n, DRACO_PRIO_QUERY, limit - 1, 0), 1);
	CHECK_EQ(draco_ring_room(n, DRACO_PRIO_QUERY, 0, 0),
		 draco_ring_share(n, DRACO_PRIO_QUERY));
}

TEST(cid_gives_its_index_back)
{
	u32 index, round;

	for (round = 0; round < 5000; round += 7)
		for (index = 0; index < DRACO_ADMIN_ENTRIES; index++)
			CHECK_EQ(draco_cid_index(draco_cid(index, round)),
				 index);
}

TEST(cid_differs_from_those_of_the_last_thousand_rounds)
{
	u32 round, rounds = 1u << (16 - DRACO_CID_BITS);

	for (round = 1; round < rounds; round++)
		CHECK(draco_cid(5, 70000 + round) != draco_cid(5, 70000));
	CHECK_EQ(draco_cid(5, 70000 + rounds), draco_cid(5, 70000));
}

TEST(cids_in_flight_are_unique)
{
	static bool seen[65536];
	u32 i;

	for (i = 0; i < DRACO_ADMIN_ENTRIES; i++) {
		u16 cid = draco_cid(i, 12345 * i);

		CHECK(!seen[cid]);
		seen[cid] = true;
	}
}

TEST(completion_phase_turns_with_every_pass)
{
	struct draco_cq_pos pos;
	u32 entries = 8, pass, i;

	draco_cq_start(&pos);
	for (pass = 0; pass < 5; pass++) {
		u16 phase = pass % 2 ? 0 : 1;

		for (i = 0; i < entries; i++) {
			CHECK_EQ(pos.head, i);
			CHECK(draco_cq_is_new(&pos, phase));
			CHECK(!draco_cq_is_new(&pos, phase ^ 1));
			/* Other bits of the word mean nothing. */
			CHECK(draco_cq_is_new(&pos, phase | 0xfffe));
			draco_cq_advance(&pos, entries);
		}
	}
}

TEST(zeroed_ring_holds_nothing_new)
{
	struct draco_cq_pos pos;

	draco_cq_start(&pos);
	CHECK(!draco_cq_is_new(&pos, 0));
}

TEST(tail_wraps)
{
	CHECK_EQ(draco_ring_next(0, 4), 1);
	CHECK_EQ(draco_ring_next(3, 4), 0);
	CHECK_EQ(draco_ring_next(63, 64), 0);
}
