// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Proves a schedule right before it runs by executing it with sets of ranks in
 * place of bytes, and gives its transfers the levels that order them the same
 * way at all ranks. Called by parse.c and make.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "schedule/check.h"

/* ---- transfers by chunk ------------------------------------------------ */

static int no_memory(const struct checker *c)
{
	return fxi_error(ENOMEM, "%s: no memory to check %u transfers",
			 c->schedule->name, c->schedule->ntransfers);
}

/* Counting sort; the order in the text is kept within a chunk. */
static int sort(struct checker *c)
{
	const struct fabrex_schedule *s = c->schedule;
	uint32_t i;

	c->first = calloc((size_t)s->nchunks + 2, sizeof(*c->first));
	c->order = malloc(((size_t)s->ntransfers + 1) * sizeof(*c->order));
	if (!c->first || !c->order)
		return no_memory(c);
	for (i = 0; i < s->ntransfers; i++)
		c->first[s->transfers[i].chunk + 2]++;
	for (i = 2; i <= s->nchunks; i++)
		c->first[i] += c->first[i - 1];
	for (i = 0; i < s->ntransfers; i++)
		c->order[c->first[s->transfers[i].chunk + 1]++] = i;
	return 0;
}

/* Reductions of the chunk that has most of them. */
static uint32_t most_reductions(const struct checker *c)
{
	uint32_t chunk, i, n, most = 0;

	for (chunk = 0; chunk < c->schedule->nchunks; chunk++) {
		n = 0;
		for (i = c->first[chunk]; i < c->first[chunk + 1]; i++)
			n += c->schedule->transfers[c->order[i]].flags &
			     TRANSFER_REDUCE;
		if (n > most)
			most = n;
	}
	return most;
}

static int prepare(struct checker *c)
{
	int ret = sort(c);

	if (ret)
		return ret;
	c->holders = calloc(c->schedule->ranks, sizeof(*c->holders));
	if (!c->holders)
		return no_memory(c);
	return fxi_sets_make(&c->sets, c->schedule->ranks,
			     most_reductions(c));
}

static void release(struct checker *c)
{
	fxi_sets_free(&c->sets);
	free(c->sent);
	free(c->holders);
	free(c->order);
	free(c->first);
}

/* ---- one chunk --------------------------------------------------------- */

/* What the rank holds; initialised when it is first asked for. */
static struct holder *holder(struct checker *c, uint32_t rank)
{
	struct holder *h = &c->holders[rank];

	if (h->epoch == c->epoch)
		return h;
	memset(h, 0, sizeof(*h));
	h->epoch = c->epoch;
	h->got = NOTHING;
	h->group = NOTHING;
	h->value = (struct value){ NOTHING, NOTHING, NOTHING, 0 };
	h->used = true;
	if (fxi_schedule_begins(c->schedule, c->shard, rank)) {
		h->value.node = rank;
		h->value.lowest = rank;
		h->value.count = 1;
		h->used = !fxi_schedule_reduces(c->schedule->kind);
	}
	return h;
}

static uint32_t max(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/*
 * The value that the transfer carries, and its level as far as it depends on
 * others.
 */
static int depart(struct checker *c, uint32_t t, struct value *sent,
		  uint32_t *level)
{
	const struct transfer *x = &c->schedule->transfers[t];
	struct holder *from = holder(c, x->from), *to = holder(c, x->to);

	if (from->value.node == NOTHING)
		return fxi_explain_empty(c, t);
	*sent = from->value;
	fxi_value_take(&c->sets, sent);
	from->used = true;
	*level = max(*level, 1 + max(from->written,
				     max(to->written, to->read)));
	return 0;
}

/*
 * The left operand is what the rank has; in brackets it is the one with the
 * lowest rank's part, so that ranks that exchange theirs get the same bits.
 */
static int arrive_reduce(struct checker *c, uint32_t t, struct holder *to,
			 const struct value *sent)
{
	struct transfer *x = &c->schedule->transfers[t];
	bool swap = c->brackets && sent->lowest < to->value.lowest;
	uint32_t common;

	if (to->value.node == NOTHING)
		return fxi_explain_empty(c, t);
	common = fxi_set_common(&c->sets, &to->value, sent);
	if (common != NOTHING)
		return fxi_explain_twice(c, t, common);
	if (swap)
		x->flags |= TRANSFER_SWAP;
	fxi_value_reduce(&c->sets, &to->value, sent, swap);
	if (to->value.count == c->schedule->ranks)
		x->flags |= TRANSFER_FULL;
	return 0;
}

static int arrive_copy(struct checker *c, uint32_t t, struct holder *to,
		       const struct value *sent)
{
	if (to->value.node != NOTHING) {
		if (fxi_set_within(&c->sets, sent, &to->value))
			return fxi_explain_known(c, t);
		if (!to->used)
			return fxi_explain_overwritten(c, t);
	}
	fxi_value_take(&c->sets, sent);
	fxi_value_drop(&c->sets, &to->value);
	to->value = *sent;
	return 0;
}

static int arrive(struct checker *c, uint32_t t, uint32_t group,
		  const struct value *sent)
{
	struct transfer *x = &c->schedule->transfers[t];
	struct holder *to = holder(c, x->to);
	bool reduce = x->flags & TRANSFER_REDUCE;
	uint32_t before = to->got;
	int ret;

	if (to->group == group &&
	    !(reduce && c->schedule->transfers[before].flags &
	      TRANSFER_REDUCE))
		return fxi_explain_race(c, t, before);
	ret = reduce ? arrive_reduce(c, t, to, sent) :
		       arrive_copy(c, t, to, sent);
	to->group = group;
	to->got = t;
	to->used = false;
	return ret;
}

/* Does it wait for more than the transfer that its receiver got before? */
static void ripen(struct checker *c, struct transfer *x)
{
	struct holder *to = &c->holders[x->to];
	uint32_t ripe = c->holders[x->from].written;

	if (to->ripe != ripe)
		x->flags |= TRANSFER_LATE;
	to->ripe = ripe;
}

/* Levels of a group, once everything in it has departed and arrived. */
static void set_levels(struct checker *c, uint32_t i, uint32_t n,
		       uint32_t level)
{
	struct transfer *x;
	uint32_t j;

	for (j = i; j < i + n; j++)
		ripen(c, &c->schedule->transfers[c->order[j]]);
	for (j = i; j < i + n; j++) {
		x = &c->schedule->transfers[c->order[j]];
		x->level = level;
		c->holders[x->from].read = max(c->holders[x->from].read,
					       level);
		c->holders[x->to].written = level;
	}
	if (level > c->schedule->depth)
		c->schedule->depth = level;
}

/* Transfers from order[i] on that happen at once. */
static uint32_t group_size(const struct checker *c, uint32_t i)
{
	const struct transfer *transfers = c->schedule->transfers;
	uint32_t end = c->first[c->chunk + 1], n = 1;

	while (i + n < end &&
	       transfers[c->order[i + n]].flags & TRANSFER_JOINED)
		n++;
	return n;
}

static int room_for(struct checker *c, uint32_t n)
{
	struct value *grown;

	if (n <= c->sent_room)
		return 0;
	grown = realloc(c->sent, 2 * (size_t)n * sizeof(*grown));
	if (!grown)
		return no_memory(c);
	c->sent = grown;
	c->sent_room = 2 * n;
	return 0;
}

static int execute_group(struct checker *c, uint32_t i, uint32_t n)
{
	uint32_t level = 0, j;
	int ret = room_for(c, n);

	c->brackets = n > 1;
	for (j = 0; !ret && j < n; j++)
		ret = depart(c, c->order[i + j], &c->sent[j], &level);
	for (j = 0; !ret && j < n; j++) {
		ret = arrive(c, c->order[i + j], c->order[i], &c->sent[j]);
		fxi_value_drop(&c->sets, &c->sent[j]);
	}
	if (!ret)
		set_levels(c, i, n, level);
	return ret;
}

/* ---- the result -------------------------------------------------------- */

static int check_end(struct checker *c, uint32_t rank, uint32_t *model)
{
	const struct fabrex_schedule *s = c->schedule;
	uint32_t whole = fxi_schedule_reduces(s->kind) ? s->ranks : 1;
	struct holder *h = holder(c, rank);

	if (h->value.count != whole)
		return fxi_explain_missing(c, rank);
	h->used = true;
	if (*model == NOTHING)
		*model = rank;
	if (h->value.node != c->holders[*model].value.node)
		return fxi_explain_order(c, rank, *model);
	return 0;
}

static int check_ends(struct checker *c)
{
	const struct fabrex_schedule *s = c->schedule;
	uint32_t rank, model = NOTHING;
	int ret = 0;

	if (s->kind == FABREX_REDUCE)
		return check_end(c, s->root, &model);
	if (s->kind == FABREX_REDUCE_SCATTER || s->kind == FABREX_ALL_TO_ALL)
		return check_end(c, c->shard % s->ranks, &model);
	for (rank = 0; !ret && rank < s->ranks; rank++)
		ret = check_end(c, rank, &model);
	return ret;
}

/* No transfer is useless. */
static int check_used(struct checker *c)
{
	uint32_t i;

	for (i = c->first[c->chunk]; i < c->first[c->chunk + 1]; i++) {
		uint32_t t = c->order[i];
		const struct holder *h =
			&c->holders[c->schedule->transfers[t].to];

		if (h->got == t && !h->used)
			return fxi_explain_unused(c, t);
	}
	return 0;
}

/* The chunk's part of its shard, in 2^-32. */
static uint64_t weight(const struct fabrex_schedule *s, uint32_t chunk)
{
	uint64_t start, end;

	fxi_schedule_range(s, chunk, 1ull << 32, 1, &start, &end);
	return end - start;
}

/* The chunk that is the largest part of its shard: it needs most pieces. */
static void compare_size(struct checker *c, uint32_t chunk)
{
	struct fabrex_schedule *s = c->schedule;

	if (!s->first && chunk >= s->nparts)
		return;
	if (weight(s, chunk) > weight(s, s->largest))
		s->largest = chunk;
}

static int check_chunk(struct checker *c, uint32_t chunk)
{
	uint32_t i, n;
	int ret;

	c->chunk = chunk;
	compare_size(c, chunk);
	c->shard = fxi_schedule_shard(c->schedule, chunk);
	c->epoch++;
	fxi_sets_clear(&c->sets, c->schedule->ranks);
	for (i = c->first[chunk]; i < c->first[chunk + 1]; i += n) {
		n = group_size(c, i);
		ret = execute_group(c, i, n);
		if (ret)
			return ret;
	}
	ret = check_ends(c);
	return ret ? ret : check_used(c);
}

/* ---- the order ---------------------------------------------------------- */

/* What a rank sends to each of the others. */
struct load {
	uint32_t transfers;
	uint64_t weight;
};

static void add_load(struct fabrex_schedule *s, const struct transfer *t,
		     struct load *load, uint64_t *heaviest)
{
	load[t->to].transfers++;
	load[t->to].weight += weight(s, t->chunk);
	s->busiest = max(s->busiest, load[t->to].transfers);
	if (load[t->to].weight > *heaviest)
		*heaviest = load[t->to].weight;
}

/*
 * The busiest pair of ranks: rounds begin that many levels after one another, see
 * docs/schedule.md.
 */
static int find_busiest(struct checker *c)
{
	struct fabrex_schedule *s = c->schedule;
	uint32_t *first, *next, rank, i;
	uint64_t heaviest = 0, largest = weight(s, s->largest);
	struct load *load;

	first = malloc(s->ranks * sizeof(*first));
	next = malloc(((size_t)s->ntransfers + 1) * sizeof(*next));
	load = malloc(s->ranks * sizeof(*load));
	if (!first || !next || !load) {
		free(first);
		free(next);
		free(load);
		return no_memory(c);
	}
	memset(first, 0xff, s->ranks * sizeof(*first));
	for (i = 0; i < s->ntransfers; i++) {
		next[i] = first[s->transfers[i].from];
		first[s->transfers[i].from] = i;
	}
	s->busiest = 1;
	for (rank = 0; rank < s->ranks; rank++) {
		memset(load, 0, s->ranks * sizeof(*load));
		for (i = first[rank]; i != NOTHING; i = next[i])
			add_load(s, &s->transfers[i], load, &heaviest);
	}
	s->heaviest = (heaviest * HEAVIEST_UNIT + largest - 1) / largest;
	free(first);
	free(next);
	free(load);
	return 0;
}

int fxi_schedule_check(struct fabrex_schedule *schedule)
{
	struct checker c = { .schedule = schedule };
	int ret = prepare(&c);
	uint32_t chunk;

	for (chunk = 0; !ret && chunk < schedule->nchunks; chunk++)
		ret = check_chunk(&c, chunk);
	if (!ret)
		ret = find_busiest(&c);
	release(&c);
	return ret;
}
