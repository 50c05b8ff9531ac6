/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in for the kernel's <linux/kernel.h>: what the driver's pure files use.
 * Included by them when they are compiled for driver/tests.
 */
#ifndef SHIM_LINUX_KERNEL_H
#define SHIM_LINUX_KERNEL_H

#include <linux/types.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define min_t(type, a, b)	((type)(a) < (type)(b) ? (type)(a) : (type)(b))
#define max_t(type, a, b)	((type)(a) > (type)(b) ? (type)(a) : (type)(b))
#define U8_MAX		0xffu
#define U16_MAX		0xffffu
#define U32_MAX		0xffffffffu

#endif
