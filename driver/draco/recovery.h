/* SPDX-License-Identifier: GPL-2.0-only */
/* Recovery of the controller (recovery.c). For pci.c. */
#ifndef DRACO_RECOVERY_H
#define DRACO_RECOVERY_H

struct draco_dev;

void draco_recovery_init(struct draco_dev *dd);
void draco_recovery_enable(struct draco_dev *dd);
void draco_recovery_disable(struct draco_dev *dd);
void draco_halt(struct draco_dev *dd);

#endif
