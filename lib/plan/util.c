// SPDX-License-Identifier: LGPL-2.1-or-later
/* See util.h. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "plan/util.h"

int plan_grow(void *array, uint64_t n, uint64_t more, uint64_t *room,
	      size_t size)
{
	uint64_t want = *room ? *room : 64;
	void **at = array, *p;

	while (want < n + more)
		want += want / 2;
	if (want == *room)
		return 0;
	p = realloc(*at, want * size);
	if (!p)
		return -ENOMEM;
	*at = p;
	*room = want;
	return 0;
}

static bool is_same(const char *a, const char *b)
{
	for (; *a && (*a == *b || (*a == '-' && *b == '_')); a++)
		b++;
	return !*a && !*b;
}

int plan_word_parse(const char *const *words, int n, const char *word)
{
	int i;

	for (i = 1; i < n; i++)
		if (is_same(words[i], word))
			return i;
	return 0;
}
