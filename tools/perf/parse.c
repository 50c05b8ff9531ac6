// SPDX-License-Identifier: GPL-2.0-only
/*
 * Values of options: sizes with units, ranges of them, numbers. Used by every
 * command.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

bool parse_ranks(const char *text, uint32_t max, uint32_t *ranks, uint32_t n,
		 uint32_t *nranks)
{
	char number[16];
	size_t length;

	*nranks = 0;
	do {
		length = strcspn(text, ",");
		snprintf(number, sizeof(number), "%.*s", (int)length, text);
		if (*nranks == n || length >= sizeof(number) ||
		    !parse_u32(number, max, &ranks[*nranks]) ||
		    ranks[(*nranks)++] < 2)
			return false;
		text += length + (text[length] == ',');
	} while (*text);
	return true;
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
