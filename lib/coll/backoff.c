// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a wait does between two looks: spins, then pauses, then yields. Called
 * by all that wait in lib/coll.
 */
#include <sched.h>

#include "base/barrier.h"
#include "coll/comm.h"

#define SPINS_BUSY	128u	/* without a pause */

void fxi_backoff(const struct fabrex_comm *comm, uint32_t patience)
{
	if (comm->crowded || patience >= BACKOFF_SPINS)
		sched_yield();
	else if (patience >= SPINS_BUSY)
		cpu_relax();
}
