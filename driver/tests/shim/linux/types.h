/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in for the kernel's <linux/types.h>: what the driver's pure files use.
 * Included by them when they are compiled for driver/tests.
 */
#ifndef SHIM_LINUX_TYPES_H
#define SHIM_LINUX_TYPES_H

#include_next <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef u64 dma_addr_t;
typedef u64 phys_addr_t;

#endif
