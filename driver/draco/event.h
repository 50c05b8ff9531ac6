/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reception of events (event.c). To arm, init, free and stop is for probe and
 * removal, to receive and finish for the event work; to have that run, for those
 * who know that there is something to do.
 */
#ifndef DRACO_EVENT_H
#define DRACO_EVENT_H

#include <linux/workqueue.h>

#include "command.h"

/**
 * struct draco_events - reception of events
 * @cmd:   GET_EVENTS; pending nearly always
 * @buf:   where the device writes them
 * @copy:  those being handled, where it does not
 * @work:  handles them, in order; also every rescan, so that the model is fed
 *         by one thread only
 * @armed: @cmd is under way or its result has not been taken; work only, as
 *         are the following
 * @withdrawn: @cmd has been aborted
 * @lost: the device has dropped events, and nobody has been told
 * @horizon: number of the last event that is contained in what was read of the
 *           fabric: what events up to there say is history. Probe, then work
 * @since: jiffies when it was issued or aborted
 */
struct draco_events {
	struct draco_cmd cmd;
	struct draco_buf buf;
	struct draco_event *copy;
	struct delayed_work work;
	bool armed;
	bool withdrawn;
	bool lost;
	u64 horizon;
	unsigned long since;
};

int draco_events_init(struct draco_dev *dd, work_func_t handle);
void draco_events_free(struct draco_dev *dd);
void draco_events_arm(struct draco_dev *dd);
void draco_events_stop(struct draco_dev *dd);

u32 draco_events_receive(struct draco_dev *dd, bool *retry);
void draco_events_finish(struct draco_dev *dd, bool retry);

void draco_events_kick(struct draco_dev *dd, bool rescan);
void draco_events_requests(struct draco_dev *dd);

#endif
