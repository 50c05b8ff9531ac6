/* SPDX-License-Identifier: GPL-2.0-only */
/* Handling of events (dispatch.c): a work, which probe passes to event.c. */
#ifndef DRACO_DISPATCH_H
#define DRACO_DISPATCH_H

struct work_struct;

void draco_dispatch_work(struct work_struct *work);

#endif
