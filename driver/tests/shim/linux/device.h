/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in for the kernel's <linux/device.h>: what the driver's pure files use.
 * Included by them when they are compiled for driver/tests.
 */
#include <linux/types.h>
