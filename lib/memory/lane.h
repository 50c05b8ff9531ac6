/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Streams of ours for copies: ordered with none of the application's, so that
 * its kernels delay no copy. A copy has one to itself; afterwards it waits for
 * the next. For lib/memory/ only.
 */
#ifndef LIB_MEMORY_LANE_H
#define LIB_MEMORY_LANE_H

#include <stdint.h>

#define LANE_NON_BLOCKING	1	/* flag of streams, of both run times */

/*
 * @place: context or device that the stream belongs to; streams are gone with
 *         their context, and another one may have its address
 * @serial: tells those apart
 */
struct lane {
	struct lane *next;
	uintptr_t place;
	uint64_t serial;
	void *stream;
};

/* Idle ones of a vendor. */
struct lanes {
	struct lane *idle;
};

/* One of those that are idle, or NULL. Never waits, and no lock is held. */
struct lane *fxi_lane_take(struct lanes *lanes, uintptr_t place,
			   uint64_t serial);
void fxi_lane_give(struct lanes *lanes, struct lane *lane);

#endif
