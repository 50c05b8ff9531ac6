/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The controller (controller.c). Only its owner starts and stops it, see
 * recovery.c; anybody may check it and request a reset.
 */
#ifndef DRACO_CONTROLLER_H
#define DRACO_CONTROLLER_H

#include <linux/types.h>

struct draco_dev;

int draco_controller_start(struct draco_dev *dd);
void draco_controller_stop(struct draco_dev *dd);

int draco_controller_health(struct draco_dev *dd);
void draco_request_reset(struct draco_dev *dd, u32 epoch, const char *why);
int draco_reset_sync(struct draco_dev *dd, u32 epoch, const char *why);
void draco_controller_check(struct draco_dev *dd);
void draco_check_generation(struct draco_dev *dd, u32 generation);

#endif
