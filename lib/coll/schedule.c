// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A schedule as an object: life, shards and chunks, and how it reads as text.
 * Called by everything about schedules; parse.c is the other direction.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/coll.h"
#include "coll/schedule.h"

#define LINE_WIDTH	72u
/* Bytes that chunks are cut at multiples of, if they are much larger. */
#define CUT		64u

static const char *const kind_names[] = {
	[FABREX_ALL_REDUCE] = "all-reduce",
	[FABREX_ALL_GATHER] = "all-gather",
	[FABREX_REDUCE_SCATTER] = "reduce-scatter",
	[FABREX_BROADCAST] = "broadcast",
	[FABREX_REDUCE] = "reduce",
	[FABREX_ALL_TO_ALL] = "all-to-all",
};

/* NULL: nothing that a schedule can be for. */
const char *fxi_schedule_kind_name(uint32_t kind)
{
	if (kind >= sizeof(kind_names) / sizeof(kind_names[0]))
		return NULL;
	return kind_names[kind];
}

bool fxi_schedule_reduces(uint32_t kind)
{
	return kind == FABREX_ALL_REDUCE || kind == FABREX_REDUCE ||
	       kind == FABREX_REDUCE_SCATTER;
}

uint64_t fxi_schedule_shards(uint32_t kind, uint32_t ranks)
{
	if (kind == FABREX_ALL_TO_ALL)
		return (uint64_t)ranks * ranks;
	if (kind == FABREX_ALL_GATHER || kind == FABREX_REDUCE_SCATTER)
		return ranks;
	return 1;
}

/* ---- life -------------------------------------------------------------- */

struct fabrex_schedule *fxi_schedule_new(const char *name)
{
	struct fabrex_schedule *schedule = calloc(1, sizeof(*schedule));
	size_t n;

	if (!schedule)
		return NULL;
	/* Of a long path the end says more. */
	n = strlen(name);
	if (n >= sizeof(schedule->name))
		name += n - sizeof(schedule->name) + 1;
	snprintf(schedule->name, sizeof(schedule->name), "%s", name);
	schedule->references = 1;
	return schedule;
}

struct fabrex_schedule *
fxi_schedule_get(const struct fabrex_schedule *schedule)
{
	/* Counting is all that is ever done to one that is in use. */
	struct fabrex_schedule *counted =
		(struct fabrex_schedule *)(uintptr_t)schedule;

	__atomic_add_fetch(&counted->references, 1, __ATOMIC_RELAXED);
	return counted;
}

EXPORT void fabrex_schedule_free(struct fabrex_schedule *schedule)
{
	if (!schedule ||
	    __atomic_sub_fetch(&schedule->references, 1, __ATOMIC_ACQ_REL))
		return;
	fxi_programs_free(schedule->programs);
	free(schedule->first);
	free(schedule->ends);
	free(schedule->transfers);
	free(schedule);
}

EXPORT enum fabrex_coll_kind
fabrex_schedule_kind(const struct fabrex_schedule *schedule)
{
	return (enum fabrex_coll_kind)schedule->kind;
}

EXPORT uint32_t fabrex_schedule_ranks(const struct fabrex_schedule *schedule)
{
	return schedule->ranks;
}

int fxi_schedule_split(struct fabrex_schedule *schedule,
		       const uint64_t *weights, uint32_t n)
{
	uint64_t shards = fxi_schedule_shards(schedule->kind, schedule->ranks);
	uint64_t *ends = malloc(n * sizeof(*ends)), sum = 0;
	uint32_t i;

	if (!ends)
		return fxi_error(ENOMEM, "%s: no memory for %u chunks",
				 schedule->name, n);
	for (i = 0; i < n; i++) {
		sum += weights[i];
		ends[i] = sum;
	}
	free(schedule->ends);
	free(schedule->first);
	schedule->ends = ends;
	schedule->first = NULL;
	schedule->nparts = n;
	schedule->nshards = (uint32_t)shards;
	schedule->nchunks = (uint32_t)(shards * n);
	return 0;
}

int fxi_schedule_add(struct fabrex_schedule *schedule, struct transfer t)
{
	uint32_t room = schedule->room;
	struct transfer *grown;

	if (schedule->ntransfers == SCHEDULE_TRANSFERS)
		return fxi_error(E2BIG, "%s: more than %u transfers",
				 schedule->name, SCHEDULE_TRANSFERS);
	if (schedule->ntransfers == room) {
		room = room ? room * 2 : 64;
		grown = realloc(schedule->transfers, room * sizeof(*grown));
		if (!grown)
			return fxi_error(ENOMEM,
					 "%s: no memory for %u transfers",
					 schedule->name, room);
		schedule->transfers = grown;
		schedule->room = room;
	}
	schedule->transfers[schedule->ntransfers++] = t;
	return 0;
}

/* ---- shards and chunks ------------------------------------------------- */

uint32_t fxi_schedule_shard(const struct fabrex_schedule *schedule,
			    uint32_t chunk)
{
	uint32_t low = 0, high = schedule->nshards, middle;

	if (!schedule->first)
		return chunk / schedule->nparts;
	while (high - low > 1) {
		middle = low + (high - low) / 2;
		if (schedule->first[middle] <= chunk)
			low = middle;
		else
			high = middle;
	}
	return low;
}

bool fxi_schedule_begins(const struct fabrex_schedule *schedule,
			 uint32_t shard, uint32_t rank)
{
	switch (schedule->kind) {
	case FABREX_ALL_GATHER:
		return rank == shard;
	case FABREX_BROADCAST:
		return rank == schedule->root;
	case FABREX_ALL_TO_ALL:
		return rank == shard / schedule->ranks;
	default:
		return true;
	}
}

bool fxi_schedule_ends(const struct fabrex_schedule *schedule, uint32_t shard,
		       uint32_t rank)
{
	switch (schedule->kind) {
	case FABREX_REDUCE_SCATTER:
		return rank == shard;
	case FABREX_REDUCE:
		return rank == schedule->root;
	case FABREX_ALL_TO_ALL:
		return rank == shard % schedule->ranks;
	default:
		return true;
	}
}

/* Chunks that are much larger than a line begin at lines. */
static uint64_t cut(uint64_t count, uint64_t weight, uint64_t sum,
		    uint32_t size, bool large)
{
	uint64_t at = (uint64_t)((unsigned __int128)count * weight / sum);

	return large && weight != sum ? at - at % (CUT / size) : at;
}

void fxi_schedule_range(const struct fabrex_schedule *schedule, uint32_t chunk,
			uint64_t count, uint32_t size, uint64_t *start,
			uint64_t *end)
{
	const uint64_t *ends = schedule->ends;
	uint32_t part, n = schedule->nparts;
	uint64_t sum, before;
	bool large;

	if (schedule->first) {
		uint32_t shard = fxi_schedule_shard(schedule, chunk);

		ends += schedule->first[shard];
		part = chunk - schedule->first[shard];
		n = schedule->first[shard + 1] - schedule->first[shard];
	} else {
		part = chunk % n;
	}
	sum = ends[n - 1];
	before = part ? ends[part - 1] : 0;
	large = count * size / n >= 64 * CUT;
	*start = cut(count, before, sum, size, large);
	*end = cut(count, ends[part], sum, size, large);
}

/* ---- text -------------------------------------------------------------- */

/* Where text is written to, as far as it fits. */
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

/* Weights of one shard, equal ones together. */
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
	if (s->kind == FABREX_BROADCAST || s->kind == FABREX_REDUCE)
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
