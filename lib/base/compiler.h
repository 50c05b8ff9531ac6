/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Branch hints, and from a member to the structure around it. For all of lib/.
 */
#ifndef LIB_COMPILER_H
#define LIB_COMPILER_H

#include <stddef.h>

#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

#endif
