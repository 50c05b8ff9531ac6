// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Idle streams. An atomic word states who has one; there is no lock that the
 * child of a fork could find held. Called by cuda.c and amd.c.
 */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "memory/lane.h"

static bool seize(struct lane *lane, uint32_t state)
{
	return __atomic_load_n(&lane->state, __ATOMIC_RELAXED) == state &&
	       __atomic_compare_exchange_n(&lane->state, &state, LANE_BUSY,
					   false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

void fxi_lane_give(struct lane *lane)
{
	__atomic_store_n(&lane->state, lane->stream ? LANE_IDLE : LANE_FREE,
			 __ATOMIC_RELEASE);
}

static struct lane *take_idle(struct lanes *lanes, uintptr_t place,
			      uint64_t serial)
{
	struct lane *lane;

	for (lane = lanes->kept; lane < lanes->kept + LANES; lane++) {
		if (!seize(lane, LANE_IDLE))
			continue;
		if (lane->place == place && lane->serial == serial)
			return lane;
		/* Its context is gone, and the stream with it. */
		if (lane->place == place)
			lane->stream = NULL;
		fxi_lane_give(lane);
	}
	return NULL;
}

struct lane *fxi_lane_take(struct lanes *lanes, uintptr_t place,
			   uint64_t serial)
{
	struct lane *lane = take_idle(lanes, place, serial);

	if (lane)
		return lane;
	for (lane = lanes->kept; lane < lanes->kept + LANES; lane++)
		if (seize(lane, LANE_FREE))
			return lane;
	return NULL;
}

void fxi_lanes_end(struct lanes *lanes, void (*end)(struct lane *lane))
{
	struct lane *lane;

	for (lane = lanes->kept; lane < lanes->kept + LANES; lane++) {
		if (!seize(lane, LANE_IDLE))
			continue;
		end(lane);
		fxi_lane_give(lane);
	}
}

void fxi_lanes_forget(struct lanes *lanes)
{
	memset(lanes, 0, sizeof(*lanes));
}
