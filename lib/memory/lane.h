/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lanes: streams for our copies, not ordered with the application's, so that
 * its kernels delay no copy. Each copy has a stream to itself, which is kept
 * for the next one if there are not too many. For lib/memory/ only.
 */
#ifndef LIB_MEMORY_LANE_H
#define LIB_MEMORY_LANE_H

#include <stdint.h>

#define LANE_NON_BLOCKING	1	/* flag of streams, of both runtimes */
#define LANES			64u	/* of each vendor */

enum lane_state { LANE_FREE, LANE_IDLE, LANE_BUSY };

/*
 * @state: enum lane_state; who has made it BUSY has the other fields
 * @device: number of it
 * @place: context or device that the stream belongs to; streams are gone with
 *         their context, and another one may have its address
 * @serial: tells those apart
 * @stream: NULL: none
 */
struct lane {
	uint32_t state;
	int device;
	uintptr_t place;
	uint64_t serial;
	void *stream;
};

/* Those of a vendor. */
struct lanes {
	struct lane kept[LANES];
};

/*
 * One with a stream of that place, or a free one, for which the caller creates
 * a stream. NULL: there is neither; the caller creates a stream for the one
 * copy. Never waits; takes no lock.
 */
struct lane *fxi_lane_take(struct lanes *lanes, uintptr_t place,
			   uint64_t serial);
/* Idle again; free if it has no stream (any more). */
void fxi_lane_give(struct lane *lane);
/* In the child of a fork: all are free; the streams are the parent's. */
void fxi_lanes_forget(struct lanes *lanes);
/* Have end() destroy the streams of all that are idle, where it can. */
void fxi_lanes_end(struct lanes *lanes, void (*end)(struct lane *lane));

#endif
