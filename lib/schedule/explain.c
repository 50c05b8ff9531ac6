// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Words the error of a schedule that is wrong: which transfers, on which lines,
 * and why. Called by check.c once the proof has failed; need not be fast.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "schedule/check.h"

struct phrase {
	char text[48];
};

/* "line 12 (3>2)", or the transfer's number if it has no line. */
static struct phrase at(const struct checker *c, uint32_t t)
{
	const struct transfer *x = &c->schedule->transfers[t];
	struct phrase p;

	snprintf(p.text, sizeof(p.text), "%s %u (%u>%u)",
		 x->line ? "line" : "transfer", x->line ? x->line : t,
		 x->from, x->to);
	return p;
}

/* Goes behind the name: ":LINE" of a file, or the transfer. */
static struct phrase head(const struct checker *c, uint32_t t)
{
	const struct transfer *x = &c->schedule->transfers[t];
	struct phrase p;

	snprintf(p.text, sizeof(p.text), x->line ? ":%u" : ": transfer %u",
		 x->line ? x->line : t);
	return p;
}

static uint32_t begin(const struct checker *c)
{
	return c->first[c->chunk];
}

static uint32_t end(const struct checker *c)
{
	return c->first[c->chunk + 1];
}

static const struct transfer *transfer(const struct checker *c, uint32_t i)
{
	return &c->schedule->transfers[c->order[i]];
}

/* First transfer of the chunk to @rank, NOTHING: there is none. */
static uint32_t first_to(const struct checker *c, uint32_t rank)
{
	uint32_t i;

	for (i = begin(c); i < end(c); i++)
		if (transfer(c, i)->to == rank)
			return c->order[i];
	return NOTHING;
}

static bool holds(const struct checker *c, uint32_t rank)
{
	const struct holder *h = &c->holders[rank];

	if (h->epoch == c->epoch)
		return h->value.node != NOTHING;
	return fxi_schedule_begins(c->schedule, c->shard, rank);
}

/* ---- sent before it is there ------------------------------------------- */

/* @n transfers that wait for each other, listed from @t on. */
static int explain_circle(const struct checker *c, uint32_t t, uint32_t n)
{
	uint32_t second = first_to(c, c->schedule->transfers[t].from);
	uint32_t third;

	if (n == 1)
		return fxi_error(EINVAL, "%s%s: chunk %u waits in a circle: %s waits for itself",
				 c->schedule->name, head(c, t).text, c->chunk,
				 at(c, t).text);
	if (n == 2)
		return fxi_error(EINVAL, "%s%s: chunk %u waits in a circle: %s waits for %s, and that for the first",
				 c->schedule->name, head(c, t).text, c->chunk,
				 at(c, t).text, at(c, second).text);
	third = first_to(c, c->schedule->transfers[second].from);
	return fxi_error(EINVAL, "%s%s: chunk %u waits in a circle of %u transfers: %s waits for %s, that for %s%s, and the last for the first",
			 c->schedule->name, head(c, t).text, c->chunk, n,
			 at(c, t).text, at(c, second).text, at(c, third).text,
			 n > 3 ? " and so on" : "");
}

/* first_to() of all ranks; NULL: no memory. */
static uint32_t *all_first(const struct checker *c)
{
	size_t n = c->schedule->ranks;
	uint32_t *first = malloc(n * sizeof(*first)), i;

	if (!first)
		return NULL;
	memset(first, 0xff, n * sizeof(*first));
	for (i = end(c); i-- > begin(c);)
		first[transfer(c, i)->to] = c->order[i];
	return first;
}

/* Length of the circle that @t is in, 0: it is in none. */
static uint32_t circle(const struct checker *c, uint32_t t)
{
	const struct transfer *transfers = c->schedule->transfers;
	uint32_t *first = all_first(c), n = 0, next = t;

	if (!first)
		return 0;
	do {
		next = first[transfers[next].from];
		n++;
	} while (next != NOTHING && next != t && n <= c->schedule->ranks &&
		 !holds(c, transfers[next].from));
	free(first);
	return next == t ? n : 0;
}

int fxi_explain_empty(struct checker *c, uint32_t t)
{
	const struct transfer *x = &c->schedule->transfers[t];
	uint32_t source = first_to(c, x->from), n = circle(c, t);

	if (n)
		return explain_circle(c, t, n);
	if (source == NOTHING)
		return fxi_error(EINVAL, "%s%s: rank %u sends chunk %u, which it never gets",
				 c->schedule->name, head(c, t).text, x->from,
				 c->chunk);
	return fxi_error(EINVAL, "%s%s: rank %u sends chunk %u before it has it: that comes with %s only, which has to stand before",
			 c->schedule->name, head(c, t).text, x->from, c->chunk,
			 at(c, source).text);
}

/* ---- twice ------------------------------------------------------------- */

/* The ranks that have one rank's part, while transfers are replayed. */
struct trace {
	bool *has;		/* by rank */
	bool *sent;		/* by transfer of the group */
	uint32_t last;		/* that brought it to the rank in question */
};

static void trace_group(const struct checker *c, struct trace *trace,
			uint32_t i, uint32_t n, uint32_t stop, uint32_t rank)
{
	const struct transfer *x;
	uint32_t j;

	for (j = 0; j < n; j++)
		trace->sent[j] = trace->has[transfer(c, i + j)->from];
	for (j = 0; j < n && c->order[i + j] != stop; j++) {
		x = transfer(c, i + j);
		if (x->to == rank && trace->sent[j])
			trace->last = c->order[i + j];
		if (x->flags & TRANSFER_REDUCE)
			trace->has[x->to] |= trace->sent[j];
		else
			trace->has[x->to] = trace->sent[j];
	}
}

/* Transfer before @stop that brought @rank the part of @part. */
static uint32_t bringer(const struct checker *c, uint32_t stop, uint32_t rank,
			uint32_t part)
{
	struct trace trace = { .last = NOTHING };
	uint32_t i, n, past = 0;

	trace.has = calloc(c->schedule->ranks, sizeof(*trace.has));
	trace.sent = calloc(end(c) - begin(c), sizeof(*trace.sent));
	if (trace.has && trace.sent) {
		trace.has[part] = true;
		for (i = begin(c); i < end(c) && !past; i += n) {
			for (n = 1; i + n < end(c) &&
			     transfer(c, i + n)->flags & TRANSFER_JOINED; n++)
				;
			past = stop >= c->order[i] && stop <= c->order[i + n - 1];
			trace_group(c, &trace, i, n, stop, rank);
		}
	}
	free(trace.has);
	free(trace.sent);
	return trace.last;
}

int fxi_explain_twice(struct checker *c, uint32_t t, uint32_t part)
{
	const struct transfer *x = &c->schedule->transfers[t];
	uint32_t before = bringer(c, t, x->to, part);

	if (before == NOTHING)
		return fxi_error(EINVAL, "%s%s: chunk %u reaches rank %u with rank %u's part twice: it has that itself, and gets it by %s",
				 c->schedule->name, head(c, t).text, c->chunk,
				 x->to, part, at(c, t).text);
	return fxi_error(EINVAL, "%s%s: chunk %u reaches rank %u with rank %u's part twice: by %s and by %s",
			 c->schedule->name, head(c, t).text, c->chunk, x->to,
			 part, at(c, before).text, at(c, t).text);
}

int fxi_explain_known(struct checker *c, uint32_t t)
{
	const struct transfer *x = &c->schedule->transfers[t];
	uint32_t before = c->holders[x->to].got;

	if (before == NOTHING)
		return fxi_error(EINVAL, "%s%s: %s brings rank %u nothing of chunk %u that it did not have from the start",
				 c->schedule->name, head(c, t).text,
				 at(c, t).text, x->to, c->chunk);
	return fxi_error(EINVAL, "%s%s: %s brings rank %u nothing of chunk %u that it has not got by %s",
			 c->schedule->name, head(c, t).text, at(c, t).text,
			 x->to, c->chunk, at(c, before).text);
}

int fxi_explain_overwritten(struct checker *c, uint32_t t)
{
	const struct transfer *x = &c->schedule->transfers[t];
	uint32_t before = c->holders[x->to].got;

	if (before == NOTHING)
		return fxi_error(EINVAL, "%s%s: %s overwrites rank %u's own part of chunk %u before that was sent to anyone",
				 c->schedule->name, head(c, t).text,
				 at(c, t).text, x->to, c->chunk);
	return fxi_error(EINVAL, "%s%s: %s overwrites what rank %u got of chunk %u by %s before that was of use",
			 c->schedule->name, head(c, t).text, at(c, t).text,
			 x->to, c->chunk, at(c, before).text);
}

int fxi_explain_race(struct checker *c, uint32_t t, uint32_t other)
{
	const struct transfer *x = &c->schedule->transfers[t];

	return fxi_error(EINVAL, "%s%s: %s and %s are in one pair of brackets and both write chunk %u at rank %u: it is not said which is first",
			 c->schedule->name, head(c, t).text, at(c, other).text,
			 at(c, t).text, c->chunk, x->to);
}

/* ---- at the end -------------------------------------------------------- */

int fxi_explain_unused(struct checker *c, uint32_t t)
{
	const struct transfer *x = &c->schedule->transfers[t];

	return fxi_error(EINVAL, "%s%s: rank %u gets chunk %u by %s and neither sends it on nor needs it",
			 c->schedule->name, head(c, t).text, x->to, c->chunk,
			 at(c, t).text);
}

/* A rank without any transfer is not a matter of this chunk alone. */
static bool reachable(const struct checker *c, uint32_t rank)
{
	uint32_t i;

	for (i = 0; i < c->schedule->ntransfers; i++)
		if (c->schedule->transfers[i].to == rank)
			return true;
	return false;
}

static bool sends(const struct checker *c, uint32_t rank)
{
	uint32_t i;

	for (i = begin(c); i < end(c); i++)
		if (transfer(c, i)->from == rank)
			return true;
	return false;
}

/* A rank that has all of the chunk at the end, NOTHING if none has. */
static uint32_t complete(const struct checker *c)
{
	uint32_t rank;

	for (rank = 0; rank < c->schedule->ranks; rank++)
		if (c->holders[rank].epoch == c->epoch &&
		    c->holders[rank].value.count == c->schedule->ranks)
			return rank;
	return NOTHING;
}

int fxi_explain_missing(struct checker *c, uint32_t rank)
{
	const struct fabrex_schedule *s = c->schedule;
	const struct holder *h = &c->holders[rank];
	uint32_t part = 0, owner = complete(c);

	if (fxi_schedule_reduces(s->kind) && owner != NOTHING)
		return fxi_error(EINVAL, "%s: chunk %u is whole at rank %u only, and rank %u needs it",
				 s->name, c->chunk, owner, rank);
	if (!reachable(c, rank))
		return fxi_error(EINVAL, "%s: rank %u cannot be reached: no transfer leads to it, and it needs chunk %u",
				 s->name, rank, c->chunk);
	if (first_to(c, rank) == NOTHING)
		return fxi_error(EINVAL, "%s: chunk %u is lost: no transfer brings it to rank %u, which needs it",
				 s->name, c->chunk, rank);
	while (fxi_set_has(&c->sets, &h->value, part))
		part++;
	if (!sends(c, part))
		return fxi_error(EINVAL, "%s: chunk %u is lost in part: rank %u needs all of it in the end, and rank %u never sends its own",
				 s->name, c->chunk, rank, part);
	return fxi_error(EINVAL, "%s: chunk %u is lost in part: at rank %u it lacks rank %u's in the end; the last it gets is %s",
			 s->name, c->chunk, rank, part, at(c, h->got).text);
}

int fxi_explain_order(struct checker *c, uint32_t rank, uint32_t other)
{
	return fxi_error(EINVAL, "%s: chunk %u is reduced in another order at rank %u than at rank %u: they would differ in their last bits",
			 c->schedule->name, c->chunk, rank, other);
}
