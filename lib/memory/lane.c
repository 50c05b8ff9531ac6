// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Idle streams. The list is taken away as a whole and what is not wanted put
 * back: no lock that a child of a fork could find held, and no element that
 * comes and goes while somebody looks at it. Called by cuda.c and amd.c.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "memory/lane.h"

static void push(struct lanes *lanes, struct lane *first, struct lane *last)
{
	last->next = __atomic_load_n(&lanes->idle, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&lanes->idle, &last->next, first,
					    true, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
}

void fxi_lane_give(struct lanes *lanes, struct lane *lane)
{
	push(lanes, lane, lane);
}

struct lane *fxi_lane_take(struct lanes *lanes, uintptr_t place,
			   uint64_t serial)
{
	struct lane *all = __atomic_exchange_n(&lanes->idle, NULL,
					       __ATOMIC_ACQUIRE);
	struct lane **link = &all, *lane, *last = NULL, *found = NULL;

	while ((lane = *link)) {
		if (lane->place == place && lane->serial != serial) {
			/* Of a context that is gone, and its stream with it. */
			*link = lane->next;
			free(lane);
		} else if (lane->place == place && !found) {
			*link = lane->next;
			found = lane;
		} else {
			last = lane;
			link = &lane->next;
		}
	}
	if (last)
		push(lanes, all, last);
	return found;
}
