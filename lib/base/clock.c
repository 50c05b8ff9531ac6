// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Timeouts as absolute times.
 */
#include <limits.h>
#include <time.h>

#include "base/clock.h"

uint64_t fxi_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t fxi_deadline(int timeout_ms)
{
	if (timeout_ms < 0)
		return UINT64_MAX;
	return fxi_now_ns() + (uint64_t)timeout_ms * 1000000u;
}

int fxi_remaining_ms(uint64_t deadline)
{
	uint64_t now, ms;

	if (deadline == UINT64_MAX)
		return -1;
	now = fxi_now_ns();
	if (now >= deadline)
		return 0;
	ms = (deadline - now + 999999u) / 1000000u;
	return ms > INT_MAX ? INT_MAX : (int)ms;
}
