// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Writes schedules as the text of docs/schedule.md, for fabrex_schedule_parse().
 * Called by api/write.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/draw.h"

/* Limits of that format. */
#define RANKS		4096u
#define CHUNKS		(1ull << 23)
#define TRANSFERS	(1ull << 23)
#define WEIGHT		((1ull << 32) - 1)
#define COLUMNS		100

static const char too_much[] =
	"plan with fewer trees, or have libfabrex make a ring or a tree of its own";

static int check_limits(const struct plan_schedule *s, struct plan_error *e)
{
	uint64_t i;

	if (s->nranks > RANKS)
		return plan_fail(e, E2BIG, "schedule: %u ranks, more than %u, which is what its text has room for; plan for fewer",
				 s->nranks, RANKS);
	if (s->nchunks > CHUNKS)
		return plan_fail(e, E2BIG, "schedule: %llu chunks, more than %llu, which is what its text has room for; %s",
				 (unsigned long long)s->nchunks, CHUNKS,
				 too_much);
	if (s->ntransfers > TRANSFERS)
		return plan_fail(e, E2BIG, "schedule: %llu transfers, more than %llu, which is what its text has room for; %s",
				 (unsigned long long)s->ntransfers, TRANSFERS,
				 too_much);
	for (i = 0; i < s->nchunks; i++)
		if (s->chunks[i].weight > WEIGHT)
			return plan_fail(e, E2BIG, "schedule: chunk %llu has the weight %llu, more than %llu, which is what its text has room for; %s",
					 (unsigned long long)i,
					 (unsigned long long)s->chunks[i].weight,
					 WEIGHT, too_much);
	return 0;
}

/* ---- order ----------------------------------------------------------------
 *
 * Transfers of a chunk form trees: what is copied spreads from a rank, what is
 * reduced gathers at one. Along a tree, branch by branch, they are one long
 * path after the other; in the order of their making they are single arrows.
 */

#define NONE	(~0u)

struct arrow {
	uint32_t from, to;
	uint32_t next;		/* arrow from the same rank */
};

struct branches {
	uint32_t n;
	struct arrow *arrows;
	uint32_t *order;	/* of arrows */
	uint32_t *stack;
	/* Of each rank: */
	uint32_t *first, *last;	/* arrow from it */
	uint32_t *seen;		/* == mark: in this tree */
	uint32_t mark;
};

/* Do they spread as trees, none overwriting what has been sent on? */
static bool are_trees(struct branches *b)
{
	uint32_t i;

	b->mark++;
	for (i = 0; i < b->n; i++) {
		if (b->seen[b->arrows[i].to] == b->mark)
			return false;
		b->seen[b->arrows[i].to] = b->mark;
		b->seen[b->arrows[i].from] = b->mark;
	}
	return true;
}

static void link_arrows(struct branches *b)
{
	uint32_t i, from;

	for (i = 0; i < b->n; i++)
		b->first[b->arrows[i].from] = b->first[b->arrows[i].to] = NONE;
	for (i = 0; i < b->n; i++) {
		from = b->arrows[i].from;
		b->arrows[i].next = NONE;
		if (b->first[from] == NONE)
			b->first[from] = i;
		else
			b->arrows[b->last[from]].next = i;
		b->last[from] = i;
	}
}

/* The arrows from @rank, taken from its list. */
static uint32_t take(struct branches *b, uint32_t rank)
{
	uint32_t i = b->first[rank];

	b->first[rank] = NONE;
	return i;
}

/* All arrows from @rank, each with those behind it. */
static uint32_t walk(struct branches *b, uint32_t rank, uint32_t n)
{
	uint32_t depth = 0, i = take(b, rank);

	for (;;) {
		while (i == NONE && depth)
			i = b->stack[--depth];
		if (i == NONE)
			return n;
		b->order[n++] = i;
		b->stack[depth++] = b->arrows[i].next;
		i = take(b, b->arrows[i].to);
	}
}

static void arrange(struct branches *b)
{
	uint32_t i, n = 0;

	if (!are_trees(b)) {
		for (i = 0; i < b->n; i++)
			b->order[i] = i;
		return;
	}
	link_arrows(b);
	for (i = 0; i < b->n; i++)	/* roots come before what they reach */
		n = walk(b, b->arrows[i].from, n);
}

/* ---- statements ---------------------------------------------------------- */

struct writer {
	const struct plan_schedule *s;
	FILE *f;
	struct branches b;
	uint32_t at;		/* rank where the path is; NONE: no path */
	int column;
};

static void put_arrow(struct writer *w, uint32_t from, uint32_t to)
{
	if (w->at == from) {
		w->column += fprintf(w->f, ">%u", to);
	} else {
		if (w->column > COLUMNS)
			w->column = fprintf(w->f, "\n\t") + 6;
		else
			w->column += fprintf(w->f, " ");
		w->column += fprintf(w->f, "%u>%u", from, to);
	}
	w->at = to;
}

/* Transfers alike, one after the other: a statement. */
static void put_run(struct writer *w, uint64_t chunk, uint64_t first,
		    uint32_t n, bool reduce)
{
	struct branches *b = &w->b;
	uint32_t i;

	b->n = n;
	for (i = 0; i < n; i++) {
		/* Gathering is spreading backwards. */
		uint64_t t = reduce ? first + n - 1 - i : first + i;
		const struct plan_route *r =
			&w->s->routes[w->s->transfers[t].route];

		b->arrows[i].from = reduce ? r->to : r->from;
		b->arrows[i].to = reduce ? r->from : r->to;
	}
	arrange(b);
	w->column = fprintf(w->f, "%s %llu", reduce ? "reduce" : "copy",
			    (unsigned long long)chunk);
	w->at = NONE;
	for (i = 0; i < n; i++) {
		const struct arrow *a =
			&b->arrows[b->order[reduce ? n - 1 - i : i]];

		put_arrow(w, reduce ? a->to : a->from,
			  reduce ? a->from : a->to);
	}
	fputc('\n', w->f);
}

static void put_chunk(struct writer *w, uint64_t chunk)
{
	const struct plan_chunk *c = &w->s->chunks[chunk];
	const struct plan_transfer *t = w->s->transfers + c->first;
	uint64_t i, n;

	for (i = 0; i < c->ntransfers; i += n) {
		for (n = 1; i + n < c->ntransfers &&
		     t[i + n].reduce == t[i].reduce; n++)
			;
		put_run(w, chunk, c->first + i, (uint32_t)n, t[i].reduce);
	}
}

static int make_branches(struct branches *b, const struct plan_schedule *s)
{
	uint64_t i, most = 1;

	for (i = 0; i < s->nchunks; i++)
		if (s->chunks[i].ntransfers > most)
			most = s->chunks[i].ntransfers;
	b->arrows = calloc(most, sizeof(*b->arrows));
	b->order = calloc(most, sizeof(*b->order));
	b->stack = calloc(most, sizeof(*b->stack));
	b->first = calloc(s->nranks, sizeof(*b->first));
	b->last = calloc(s->nranks, sizeof(*b->last));
	b->seen = calloc(s->nranks, sizeof(*b->seen));
	return b->arrows && b->order && b->stack && b->first && b->last &&
	       b->seen ? 0 : -ENOMEM;
}

static void free_branches(struct branches *b)
{
	free(b->arrows);
	free(b->order);
	free(b->stack);
	free(b->first);
	free(b->last);
	free(b->seen);
}

/* ---- what comes first ---------------------------------------------------- */

/* First chunk of each shard, and one past the last of all. */
static uint64_t *shard_starts(const struct plan_schedule *s)
{
	uint64_t *first = calloc((size_t)s->nshards + 1, sizeof(*first)), i;

	if (!first)
		return NULL;
	for (i = 0; i < s->nchunks; i++)
		first[s->chunks[i].shard + 1]++;
	for (i = 0; i < s->nshards; i++)
		first[i + 1] += first[i];
	return first;
}

static bool all_alike(const struct plan_schedule *s, const uint64_t *first)
{
	uint64_t n = first[1], i;
	uint32_t shard;

	for (shard = 0; shard < s->nshards; shard++)
		if (first[shard + 1] - first[shard] != n)
			return false;
	for (i = n; i < s->nchunks; i++)
		if (s->chunks[i].weight != s->chunks[i % n].weight)
			return false;
	return true;
}

/* " 3 4x2": weights of the chunks from @i to before @end. */
static void put_weights(const struct plan_schedule *s, uint64_t i, uint64_t end,
			FILE *f)
{
	uint64_t n;

	for (; i < end; i += n) {
		for (n = 1; i + n < end &&
		     s->chunks[i + n].weight == s->chunks[i].weight; n++)
			;
		fprintf(f, " %llu", (unsigned long long)s->chunks[i].weight);
		if (n > 1)
			fprintf(f, "x%llu", (unsigned long long)n);
	}
	fputc('\n', f);
}

static int put_split(const struct plan_schedule *s, FILE *f)
{
	uint64_t *first = shard_starts(s);
	uint32_t shard;

	if (!first)
		return -ENOMEM;
	if (all_alike(s, first)) {
		fprintf(f, "split");
		put_weights(s, 0, first[1], f);
	} else {
		for (shard = 0; shard < s->nshards; shard++) {
			fprintf(f, "shard %u", shard);
			put_weights(s, first[shard], first[shard + 1], f);
		}
	}
	free(first);
	return 0;
}

static void put_claim(const struct plan_graph *g, const struct plan_schedule *s,
		      FILE *f)
{
	struct plan_ratio algbw;
	const char *p;
	uint32_t edge;
	double rate;

	fprintf(f, "# %s of %u ranks on ",
		plan_collective_name(s->collective), s->nranks);
	for (p = g->name; *p; p++)	/* a comment ends with the line */
		fputc((unsigned char)*p < 32 ? '?' : *p, f);
	fputc('\n', f);
	if (!plan_schedule_rate(s, g, &algbw, &edge)) {
		rate = plan_ratio_value(algbw) / 1000;
		fprintf(f, "# %.6g GB/s algbw, %.6g GB/s busbw: what %s > %s, %.10g GB/s, lets through\n",
			rate, rate * plan_ratio_value(
				plan_busbw_factor(s->collective, s->nranks)),
			g->nodes[g->edges[edge].from].name,
			g->nodes[g->edges[edge].to].name,
			(double)g->edges[edge].capacity / 1000);
	}
}

static void put_ranks(const struct plan_graph *g, FILE *f)
{
	uint32_t i;
	int column = fprintf(f, "# ranks:");

	for (i = 0; i < g->nranks; i++) {
		if (column > COLUMNS - 20)
			column = fprintf(f, "\n#") - 1;
		column += fprintf(f, " %u %s%s", i, g->nodes[g->gpus[i]].name,
				  i + 1 < g->nranks ? "," : "");
	}
	fputc('\n', f);
}

static void put_head(const struct plan_schedule *s, FILE *f)
{
	fprintf(f, "fabrex-schedule 1\ncollective %s\nranks %u\n",
		plan_collective_name(s->collective), s->nranks);
	if (s->collective == PLAN_BROADCAST || s->collective == PLAN_REDUCE)
		fprintf(f, "root %u\n", s->root);
}

int plan_schedule_write(const struct plan_graph *g,
			const struct plan_schedule *s, FILE *f,
			struct plan_error *e)
{
	struct writer w = { .s = s, .f = f };
	int err = check_limits(s, e);
	uint64_t i;

	if (err)
		return err;
	err = make_branches(&w.b, s);
	if (!err) {
		put_claim(g, s, f);
		put_ranks(g, f);
		put_head(s, f);
		err = put_split(s, f);
	}
	for (i = 0; !err && i < s->nchunks; i++)
		put_chunk(&w, i);
	free_branches(&w.b);
	if (err)
		return plan_fail(e, -err, "schedule: out of memory");
	if (fflush(f) || ferror(f))
		return plan_fail(e, EIO, "schedule: it cannot be written: %s; is there room?",
				 strerror(errno));
	return 0;
}
