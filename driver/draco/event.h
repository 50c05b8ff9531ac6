/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reception of events (event.c). Probe and removal call init, arm, stop and
 * free; the event work (dispatch.c) calls receive and finish; whoever knows
 * that there is work for it calls the last two.
 */
#ifndef DRACO_EVENT_H
#define DRACO_EVENT_H

#include <linux/workqueue.h>

#include "command.h"

/**
 * struct draco_events - reception of events
 * @cmd:       GET_EVENTS, nearly always pending
 * @buf:       where the device writes events
 * @copy:      events being handled, out of the device's reach
 * @work:      handles them in order. It also does every rescan, so that only
 *             one thread updates the model
 * @armed:     @cmd is pending, or its result has not been taken yet. Only for
 *             @work, like the following
 * @withdrawn: @cmd has been aborted
 * @lost:      the device has dropped events; not yet reported
 * @read_seq:  number of the last event that was already contained in the state
 *             read from the fabric. Set by probe, then by @work
 * @since:     when @cmd was issued or aborted, in jiffies
 */
struct draco_events {
	struct draco_cmd cmd;
	struct draco_buf buf;
	struct draco_event *copy;
	struct delayed_work work;
	bool armed;
	bool withdrawn;
	bool lost;
	u64 read_seq;
	unsigned long since;
};

int draco_events_init(struct draco_dev *dd, work_func_t handle);
void draco_events_free(struct draco_dev *dd);
void draco_events_arm(struct draco_dev *dd);
void draco_events_stop(struct draco_dev *dd);

u32 draco_events_receive(struct draco_dev *dd, bool *retry);
void draco_events_finish(struct draco_dev *dd, bool retry);

void draco_events_kick(struct draco_dev *dd, bool rescan);
void draco_events_query_requests(struct draco_dev *dd);

#endif
