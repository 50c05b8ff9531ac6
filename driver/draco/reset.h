/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Recovery of the controller (reset.c): for pci.c.
 */
#ifndef DRACO_RESET_H
#define DRACO_RESET_H

struct draco_dev;

void draco_reset_init(struct draco_dev *dd);
void draco_reset_allow(struct draco_dev *dd);
void draco_reset_disallow(struct draco_dev *dd);
void draco_halt(struct draco_dev *dd);

#endif
