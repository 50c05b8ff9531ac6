// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What $FABREX_DEBUG reports of operations: once for each kind, size and
 * answer, however often they are performed. Called where those answers are
 * found, and only if somebody asked for them.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/debug.h"
#include "coll/operation/operation.h"

/* One answer. Sizes of a class have the same highest bit. */
struct said {
	struct said *next;
	uint32_t word, kind, class;
	char answer[48];
};

static uint32_t class_of(uint64_t bytes)
{
	return bytes ? 64 - (uint32_t)__builtin_clzll(bytes) : 0;
}

/* Was it said? It is now. Without memory it is said again. */
static bool was_said(struct fabrex_comm *comm, const struct said *it)
{
	struct said *s;

	for (s = comm->said; s; s = s->next)
		if (s->word == it->word && s->kind == it->kind &&
		    s->class == it->class && !strcmp(s->answer, it->answer))
			return true;
	s = malloc(sizeof(*s));
	if (s) {
		*s = *it;
		s->next = comm->said;
		comm->said = s;
	}
	return false;
}

void fxi_coll_say(const struct fabrex_coll *coll, uint32_t word,
		  const char *answer, const char *fmt, ...)
{
	struct fabrex_comm *comm = coll->comm;
	uint64_t bytes = fxi_coll_bytes(comm, &coll->what);
	struct said it = {
		.word = word, .kind = coll->what.kind, .class = class_of(bytes),
	};
	uint64_t least = it.class ? 1ull << (it.class - 1) : 0;
	char why[320];
	va_list ap;

	snprintf(it.answer, sizeof(it.answer), "%s", answer);
	if (was_said(comm, &it))
		return;
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	fxi_debug_line(word, comm->rank, "%s of %llu bytes (and others of %llu to %llu): %s%s",
		       fxi_kind_name(it.kind), (unsigned long long)bytes,
		       (unsigned long long)least,
		       (unsigned long long)(least ? 2 * least - 1 : 0),
		       answer, why);
}

void fxi_said_free(struct fabrex_comm *comm)
{
	struct said *s;

	while ((s = comm->said)) {
		comm->said = s->next;
		free(s);
	}
}
