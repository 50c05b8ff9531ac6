/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sizes as people write them, "4096" or "64M". For whoever reads options, settings
 * or files; each says which units it takes.
 */
#ifndef LIB_SIZE_H
#define LIB_SIZE_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * Digits and at most one letter of @units, which stand for 2^10, 2^20, 2^30, 2^40
 * and then from the start: "kmgtKMGT" takes either case. *end is behind it. False:
 * there are no digits, or the value has more than 64 bits.
 */
static inline bool size_parse(const char *text, const char *units,
			      uint64_t *value, const char **end)
{
	const char *unit;
	unsigned int shift = 0;
	char *rest;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &rest, 10);
	unit = *rest ? strchr(units, *rest) : NULL;
	if (unit) {
		shift = 10 * ((unsigned int)(unit - units) % 4 + 1);
		rest++;
	}
	if (errno || *value > UINT64_MAX >> shift)
		return false;
	*value <<= shift;
	*end = rest;
	return true;
}

#endif
