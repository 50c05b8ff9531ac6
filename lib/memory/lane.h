/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Streams of ours for copies: ordered with none of the application's, so that
 * its kernels delay no copy. A copy has one to itself; afterwards it is kept
 * for the next, if there are not too many. For lib/memory/ only.
 */
#ifndef LIB_MEMORY_LANE_H
#define LIB_MEMORY_LANE_H

#include <stdint.h>

#define LANE_NON_BLOCKING	1	/* flag of streams, of both run times */
#define LANES			16u	/* of each vendor */

enum lane_state { LANE_FREE, LANE_IDLE, LANE_BUSY };

/*
 * @state: enum lane_state; the rest is of whoever has made it BUSY
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
 * One with a stream of that place, or a free one, whose stream the caller is to
 * make. NULL: there is neither; then a stream is made for the one copy. Never
 * waits, and no lock is held.
 */
struct lane *fxi_lane_take(struct lanes *lanes, uintptr_t place,
			   uint64_t serial);
/* Free, if it has no stream (any more). */
void fxi_lane_give(struct lane *lane);
/* In the child of a fork: all are free, and the streams the parent's. */
void fxi_lanes_forget(struct lanes *lanes);
/* The streams of all that are idle are to be destroyed, by end() where it can. */
void fxi_lanes_end(struct lanes *lanes, void (*end)(struct lane *lane));

#endif
