/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The controller (controller.c). To start and stop it is for whoever owns it, see
 * the top of reset.c; to look at it and to request a reset is for everyone.
 */
#ifndef DRACO_CONTROLLER_H
#define DRACO_CONTROLLER_H

#include <linux/types.h>

struct draco_dev;

int draco_start(struct draco_dev *dd);
void draco_stop(struct draco_dev *dd);

int draco_health(struct draco_dev *dd);
void draco_reset(struct draco_dev *dd, u32 epoch, const char *why);
void draco_check(struct draco_dev *dd);
void draco_enabled_anew(struct draco_dev *dd, u32 generation);

#endif
