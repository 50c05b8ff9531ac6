// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * How bytes are copied: thresholds, their settings in the environment, and
 * copies between mapped places (stream.c has those that bypass the caches).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/path.h"
#include "base/size.h"

#define INLINE_MOST	64u	/* what fxi_path_copy_few() can do */
#define VALUE_MOST	(1ull << 62)
#define PIECE		(64u << 10)

struct fxi_path_limits fxi_path_limits = {
	.inline_ = INLINE_MOST,
	.turn = 1u << 20,
	.stream = 64u << 20,
	.cma = 0,
	.pio = 256,
};

static const struct {
	const char *name;
	size_t offset;
	uint64_t most;
} names[] = {
	{ "inline", offsetof(struct fxi_path_limits, inline_), INLINE_MOST },
	{ "turn", offsetof(struct fxi_path_limits, turn), VALUE_MOST },
	{ "stream", offsetof(struct fxi_path_limits, stream), VALUE_MOST },
	{ "cma", offsetof(struct fxi_path_limits, cma), VALUE_MOST },
	{ "pio", offsetof(struct fxi_path_limits, pio), VALUE_MOST },
};

#define NAMES	(sizeof(names) / sizeof(*names))

/* "name=size" from @text to @end. */
static int parse_one(const char *text, const char *end,
		     struct fxi_path_limits *limits)
{
	const char *rest;
	uint64_t value;
	size_t i, n;

	for (i = 0; i < NAMES; i++) {
		n = strlen(names[i].name);
		if (strncmp(text, names[i].name, n) || text[n] != '=')
			continue;
		if (!size_parse(text + n + 1, "kmgtKMGT", &value, &rest) ||
		    rest != end || value > names[i].most)
			break;
		memcpy((char *)limits + names[i].offset, &value,
		       sizeof(value));
		return 0;
	}
	if (i < NAMES)
		return fxi_error(EINVAL, "FABREX_PATH: \"%.*s\": give %s a size from 0 to %llu, such as 64 or 8M",
				 (int)(end - text), text, names[i].name,
				 (unsigned long long)names[i].most);
	return fxi_error(EINVAL, "FABREX_PATH: \"%.*s\": give inline=, turn=, stream=, cma= or pio=, each with a size, separated by commas",
			 (int)(end - text), text);
}

static void limits_set(const struct fxi_path_limits *limits)
{
	const uint64_t *from = (const uint64_t *)limits;
	uint64_t *to = (uint64_t *)&fxi_path_limits;
	size_t i;

	for (i = 0; i < sizeof(*limits) / sizeof(*from); i++)
		__atomic_store_n(&to[i], from[i], __ATOMIC_RELAXED);
}

int fxi_path_open(void)
{
	struct fxi_path_limits limits = fxi_path_limits;
	const char *text = getenv("FABREX_PATH"), *end;
	int ret;

	if (!text || !*text)
		return 0;
	for (;; text = end + 1) {
		end = strchrnul(text, ',');
		ret = parse_one(text, end, &limits);
		if (ret)
			return ret;
		if (!*end)
			break;
	}
	limits_set(&limits);
	return 0;
}

/* In pieces, of which the last comes first. */
static void copy_down(char *to, const char *from, uint64_t n)
{
	uint64_t piece = n % PIECE ? n % PIECE : PIECE;

	while (n) {
		n -= piece;
		memcpy(to + n, from + n, piece);
		piece = PIECE;
	}
}

static bool overlap(const char *a, const char *b, uint64_t n)
{
	return a < b + n && b < a + n;
}

static void copy_turn(void *to, const void *from, uint64_t n, uint8_t *turn)
{
	*turn = !*turn;
	if (*turn && !overlap(to, from, n))
		copy_down(to, from, n);
	else
		memmove(to, from, n);
}

void fxi_path_copy(void *to, const void *from, uint64_t n, uint8_t *turn)
{
	switch (fxi_path_mapped(n)) {
	case FXI_PATH_INLINE:
		fxi_path_copy_few(to, from, n);
		return;
	case FXI_PATH_STREAM:
		if (overlap(to, from, n))
			break;
		fxi_path_stream(to, from, n);
		return;
	default:
		if (n < path_limit(&fxi_path_limits.turn))
			break;
		copy_turn(to, from, n, turn);
		return;
	}
	memmove(to, from, n);
}
