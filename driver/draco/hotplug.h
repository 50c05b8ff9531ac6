/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hot-plug slots of the partition (hotplug.c). release.c powers slots off;
 * pci.c calls the rest.
 */
#ifndef DRACO_HOTPLUG_H
#define DRACO_HOTPLUG_H

#include <linux/types.h>

struct draco_dev;
struct draco_slot_off;
struct pci_dev;

int draco_hotplug_init(void);
void draco_hotplug_exit(void);
struct pci_dev *draco_upstream_port(struct pci_dev *pdev);

struct draco_slot_off *draco_slot_off_prepare(struct draco_dev *dd, u32 ep,
					      u16 slot, bool forced,
					      const char **why);
void draco_slot_off_queue(struct draco_slot_off *off);
void draco_slot_off_drop(struct draco_slot_off *off);

#endif
