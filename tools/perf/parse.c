// SPDX-License-Identifier: GPL-2.0-only
/*
 * Values of options: sizes with units, ranges of them, numbers. Used by every
 * command.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/size.h"
#include "perf.h"

/* Digits and a unit; the rest of the text in *end. */
static bool parse_size(const char *text, uint64_t *size, const char **end)
{
	return size_parse(text, "KMG", size, end) && *size &&
	       *size <= 1ull << 40;
}

bool parse_sizes(const char *text, uint64_t *from, uint64_t *to,
		 uint64_t *factor)
{
	const char *p;

	if (!parse_size(text, from, &p))
		return false;
	*to = *from;
	*factor = 2;
	if (*p == ':' && !parse_size(p + 1, to, &p))
		return false;
	if (*p == ':' && !parse_size(p + 1, factor, &p))
		return false;
	return !*p && *factor > 1 && *to >= *from && *to <= 4ull << 30;
}

bool parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	return !errno && end != text && !*end && *text != '-' &&
	       *value >= min && *value <= max;
}

bool parse_u32(const char *text, uint32_t max, uint32_t *value)
{
	uint64_t wide;
	bool ok = parse_u64(text, 1, max, &wide);

	*value = (uint32_t)wide;
	return ok;
}

bool parse_double(const char *text, double min, double max, double *value)
{
	char *end;

	*value = strtod(text, &end);
	return end != text && !*end && *value >= min && *value <= max;
}

int bad_value(const struct option *longs, int option, const char *value)
{
	while (longs->name && longs->val != option)
		longs++;
	fprintf(stderr, "fabrex-perf: --%s: \"%s\" is not a value it takes; see fabrex-perf --help\n",
		longs->name, value ? value : "");
	return EXIT_USAGE;
}
