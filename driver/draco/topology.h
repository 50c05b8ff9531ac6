/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fabric as the device describes it (topology.c). Probe and the event work
 * read it; anybody may ask for the name of an object.
 */
#ifndef DRACO_TOPOLOGY_H
#define DRACO_TOPOLOGY_H

#include <linux/types.h>

struct draco_dev;
struct fabrex_object;

int draco_topology_scan(struct draco_dev *dd, unsigned int flags);
int draco_topology_read(struct draco_dev *dd, u32 id,
			struct fabrex_object *object);
void draco_object_name(struct draco_dev *dd, u32 id, char *name);

#endif
