// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Fuzzer: texts of schedules. What is refused has a sentence; what is accepted
 * is written and read again the same, and an interpreter that knows nothing of
 * the library finds it right.
 */
#include <stdlib.h>
#include <string.h>
#include <fabrex/coll.h>

#include "schedule/schedule.h"
#include "interpret.h"

#define CELLS	(1u << 20)	/* that the interpreter is given */

static struct fabrex_schedule *read_again(const char *text)
{
	struct fabrex_schedule *s;

	if (fabrex_schedule_parse(text, strlen(text), "again", &s))
		abort();
	return s;
}

static void compare(const struct fabrex_schedule *a,
		    const struct fabrex_schedule *b)
{
	uint32_t i;

	if (a->kind != b->kind || a->ranks != b->ranks || a->root != b->root ||
	    a->nchunks != b->nchunks || a->ntransfers != b->ntransfers ||
	    a->depth != b->depth || a->busiest != b->busiest)
		abort();
	for (i = 0; i < a->ntransfers; i++)
		if (a->transfers[i].level != b->transfers[i].level ||
		    a->transfers[i].flags != b->transfers[i].flags)
			abort();
}

static void check(const struct fabrex_schedule *s)
{
	int n = fabrex_schedule_format(s, NULL, 0);
	char *text = malloc((size_t)n + 1);
	struct fabrex_schedule *again;

	if (!text)
		abort();
	fabrex_schedule_format(s, text, (size_t)n + 1);
	again = read_again(text);
	compare(s, again);
	if ((uint64_t)s->ranks * s->nchunks <= CELLS && !interpret(text))
		abort();
	fabrex_schedule_free(again);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fabrex_schedule *s;

	if (fabrex_schedule_parse((const char *)data, size, "fuzz", &s)) {
		if (strncmp(fabrex_strerror_last(), "fuzz", 4))
			abort();
		return 0;
	}
	check(s);
	fabrex_schedule_free(s);
	return 0;
}
