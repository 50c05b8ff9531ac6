/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * PCI devices of this host, by libudev: driver, class, and waiting for one to
 * appear. Called by json.c and steps.c.
 */
#ifndef CTL_DEVICE_H
#define CTL_DEVICE_H

#include <stdbool.h>

struct device_text {
	char driver[32];
	char class[64];
	char sysfs[256];
};

/* Empty strings if there is no such device. */
void device_describe(const char *pci_name, struct device_text *d);

struct device_watch;
/* Uevents of PCI devices from now on; NULL if there can be none. */
struct device_watch *device_watch_new(void);
/* Wait until one came or @seconds passed. */
void device_watch_wait(struct device_watch *w, double seconds);
void device_watch_free(struct device_watch *w);

#endif
