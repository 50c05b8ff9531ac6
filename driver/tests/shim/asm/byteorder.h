/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in for the kernel's <asm/byteorder.h>: what the driver's pure files use.
 * Included by them when they are compiled for driver/tests.
 */
#ifndef SHIM_ASM_BYTEORDER_H
#define SHIM_ASM_BYTEORDER_H

#include <endian.h>

#define le16_to_cpu(x)	le16toh(x)
#define le32_to_cpu(x)	le32toh(x)
#define le64_to_cpu(x)	le64toh(x)
#define cpu_to_le16(x)	htole16(x)
#define cpu_to_le32(x)	htole32(x)
#define cpu_to_le64(x)	htole64(x)

#endif
