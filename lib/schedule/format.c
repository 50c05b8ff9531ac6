// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Writes a schedule as the text of docs/schedule.md, the opposite of parse.c.
 * Public half: fabrex_schedule_format(3).
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/export.h"
#include "schedule/schedule.h"

#define LINE_WIDTH	72u

/* Text is written there, as far as it fits. */
struct writer {
	char *text;
	size_t size, length;
	size_t line;		/* where the line began */
};

static void put(struct writer *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void put(struct writer *w, const char *fmt, ...)
{
	size_t left = w->length < w->size ? w->size - w->length : 0;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(left ? w->text + w->length : NULL, left, fmt, ap);
	va_end(ap);
	if (n > 0)
		w->length += (size_t)n;
}

/* Weights of one shard, runs of equal ones as WxN. */
static void put_weights(struct writer *w, const uint64_t *ends, uint32_t n)
{
	uint32_t i, same;
	uint64_t weight;

	for (i = 0; i < n; i += same) {
		weight = ends[i] - (i ? ends[i - 1] : 0);
		same = 1;
		while (i + same < n &&
		       ends[i + same] - ends[i + same - 1] == weight)
			same++;
		put(w, same > 1 ? " %llux%u" : " %llu",
		    (unsigned long long)weight, same);
	}
	put(w, "\n");
}

static void put_head(struct writer *w, const struct fabrex_schedule *s)
{
	uint32_t i;

	put(w, "fabrex-schedule 1\ncollective %s\nranks %u\n",
	    fxi_schedule_kind_name(s->kind), s->ranks);
	if (fxi_schedule_has_root(s->kind))
		put(w, "root %u\n", s->root);
	if (!s->first) {
		put(w, "split");
		put_weights(w, s->ends, s->nparts);
		return;
	}
	for (i = 0; i < s->nshards; i++) {
		put(w, "shard %u", i);
		put_weights(w, s->ends + s->first[i],
			    s->first[i + 1] - s->first[i]);
	}
}

/* A new statement, a new path in it, or a path that goes on. */
static void put_transfer(struct writer *w, const struct transfer *t,
			 const struct transfer *before, bool joins)
{
	bool same = before && before->chunk == t->chunk &&
		    !((before->flags ^ t->flags) & TRANSFER_REDUCE);
	bool inside = t->flags & TRANSFER_JOINED;

	if (!same) {
		w->line = w->length + 1;
		put(w, "\n%s %u", t->flags & TRANSFER_REDUCE ? "reduce" :
		    "copy", t->chunk);
	}
	if (same && !inside && !joins && before->to == t->from &&
	    !(before->flags & TRANSFER_JOINED)) {
		put(w, ">%u", t->to);
		return;
	}
	if (same && w->length - w->line > LINE_WIDTH && !inside) {
		w->line = w->length + 1;
		put(w, "\n  %s%u>%u", joins ? "[" : "", t->from, t->to);
		return;
	}
	put(w, " %s%u>%u", joins && !inside ? "[" : "", t->from, t->to);
}

static void put_transfers(struct writer *w, const struct fabrex_schedule *s)
{
	const struct transfer *t, *before = NULL;
	uint32_t i;

	for (i = 0; i < s->ntransfers; i++, before = t) {
		bool next = i + 1 < s->ntransfers &&
			    s->transfers[i + 1].flags & TRANSFER_JOINED;

		t = &s->transfers[i];
		put_transfer(w, t, before, next);
		if (t->flags & TRANSFER_JOINED && !next)
			put(w, "]");
	}
	if (s->ntransfers)
		put(w, "\n");
}

EXPORT int fabrex_schedule_format(const struct fabrex_schedule *schedule,
				  char *text, size_t n)
{
	struct writer w = { .text = text, .size = n };

	put_head(&w, schedule);
	put_transfers(&w, schedule);
	if (n && !w.length)
		text[0] = '\0';
	return (int)w.length;
}
