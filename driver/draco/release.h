/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Handling of release requests (release.c). For the event work; the reply is an
 * operation of the core, see ops.h.
 */
#ifndef DRACO_RELEASE_H
#define DRACO_RELEASE_H

#include <linux/types.h>

struct draco_dev;
struct draco_ev;

void draco_release_request(struct draco_dev *dd, const struct draco_ev *ev);
int draco_release_query(struct draco_dev *dd);

#endif
