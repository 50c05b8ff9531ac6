/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Handling of events (dispatch.c): a work, for event.c to queue. Named by probe.
 */
#ifndef DRACO_DISPATCH_H
#define DRACO_DISPATCH_H

struct work_struct;

void draco_dispatch_work(struct work_struct *work);

#endif
