/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Numbers of regions and windows (number.c): for mr.c and window.c.
 */
#ifndef DRACO_NUMBER_H
#define DRACO_NUMBER_H

#include <linux/types.h>

struct draco_dev;
struct xarray;

int draco_number_claim(struct draco_dev *dd, struct xarray *used, u32 number,
		       u32 epoch, u8 destroy);
int draco_number_destroy(struct draco_dev *dd, struct xarray *used, u32 number,
			 u8 destroy);

#endif
