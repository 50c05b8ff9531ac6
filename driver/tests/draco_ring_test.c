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
		CHECK(draco_ring_slots(n) > draco_ring_reserve(n));
		CHECK(draco_ring_reserve(n) >= 2);
	}
}

TEST(each_priority_finds_room_that_lower_ones_leave)
{
	u32 n, user, driver, reserve;

	for (n = DRACO_ADMIN_MIN; n <= DRACO_ADMIN_ENTRIES; n *= 2) {
		user = draco_ring_limit(n, DRACO_PRIO_USER);
		driver = draco_ring_limit(n, DRACO_PRIO_DRIVER);
		reserve = draco_ring_limit(n, DRACO_PRIO_RESERVE);
		CHECK(user >= 1);
		CHECK(driver > user);
		CHECK(reserve > driver);
		CHECK_EQ(reserve, draco_ring_slots(n));
	}
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
