/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hot-plug slots below this host's fabric port (hotplug.c): for release.c and for
 * the start and the end of the module and of a port.
 */
#ifndef DRACO_HOTPLUG_H
#define DRACO_HOTPLUG_H

#include <linux/types.h>

struct draco_dev;
struct draco_off;
struct pci_dev;

int draco_hotplug_init(void);
void draco_hotplug_exit(void);
struct pci_dev *draco_upstream_port(struct pci_dev *pdev);

struct draco_off *draco_off_prepare(struct draco_dev *dd, u32 ep, u16 slot,
				    bool forced, const char **why);
void draco_off_queue(struct draco_off *off);
void draco_off_drop(struct draco_off *off);

#endif
