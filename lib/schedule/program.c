// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Derives the program of one rank from a schedule: its acts by chunk, with
 * their dependencies, and its lanes, one for each peer and direction. Called by
 * what executes schedules.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/program.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct compiler {
	const struct fabrex_schedule *s;
	struct program *p;
	uint32_t *stamp;	/* by rank and direction: run that it is in */
	uint32_t runs;
};

/* ---- acts -------------------------------------------------------------- */

/* Sort key of acts, most important first. */
struct key {
	uint32_t chunk, level, receives, transfer;
};

static int compare_keys(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

	if (x->chunk != y->chunk)
		return x->chunk < y->chunk ? -1 : 1;
	if (x->level != y->level)
		return x->level < y->level ? -1 : 1;
	if (x->receives != y->receives)
		return x->receives < y->receives ? -1 : 1;
	return x->transfer < y->transfer ? -1 : x->transfer > y->transfer;
}

static struct key *collect(const struct fabrex_schedule *s, uint32_t rank,
			   uint32_t *n)
{
	uint32_t count = 0, i;
	struct key *keys;

	for (i = 0; i < s->ntransfers; i++)
		count += s->transfers[i].from == rank ||
			 s->transfers[i].to == rank;
	keys = malloc((count + 1) * sizeof(*keys));
	*n = 0;
	for (i = 0; keys && i < s->ntransfers; i++) {
		const struct transfer *t = &s->transfers[i];

		if (t->from == rank || t->to == rank)
			keys[(*n)++] = (struct key){
				t->chunk, t->level, t->to == rank, i,
			};
	}
	if (keys)
		qsort(keys, *n, sizeof(*keys), compare_keys);
	return keys;
}

/*
 * Each rank receives a chunk once, before it sends it, and where it belongs. So
 * nothing is overwritten that is still needed, and there is always room.
 */
static bool comes_anytime(const struct fabrex_schedule *s)
{
	return s->kind == FABREX_ALL_GATHER || s->kind == FABREX_BROADCAST;
}

static void fill_act(const struct fabrex_schedule *s, const struct key *key,
		     struct act *act)
{
	const struct transfer *t = &s->transfers[key->transfer];

	act->transfer = key->transfer;
	act->stage = (key->level - 1) / s->busiest;
	act->peer = key->receives ? t->from : t->to;
	act->flags = key->receives ? 0 : ACT_SEND;
	if (comes_anytime(s))
		act->flags |= ACT_ANYTIME;
	if (!key->receives)
		return;
	if (t->flags & TRANSFER_REDUCE)
		act->flags |= ACT_REDUCE;
	if (t->flags & TRANSFER_FULL)
		act->flags |= ACT_FULL;
	if (t->flags & TRANSFER_SWAP)
		act->flags |= ACT_SWAP;
	if (t->flags & TRANSFER_LATE)
		act->flags |= ACT_LATE;
}

/* ---- parts ------------------------------------------------------------- */

/*
 * What an act depends on: a send on the receive before it, a receive on all
 * sends since the receive before it. And where the rank's own bytes are.
 */
static void add_dependencies(struct program *p, struct local_part *part)
{
	uint32_t end = part->first + part->n, last = end, sends = end, i;

	for (i = part->first; i < end; i++) {
		struct act *act = &p->acts[i];

		if (last == end)
			act->flags |= ACT_FRESH;
		if (act->flags & ACT_SEND) {
			if (sends == end)
				sends = i;
			act->need = last;
			act->needs = last != end;
			continue;
		}
		if (last == end)
			act->flags |= ACT_FIRST;
		act->need = sends != end ? sends : last;
		act->needs = act->need != end ? i - act->need : 0;
		last = i;
		sends = end;
		part->writes = true;
	}
}

static bool sends(const struct act *act)
{
	return act->flags & ACT_SEND;
}

/* Is the act's peer new to the run, at this end of it? */
static bool fresh_peer(struct compiler *c, const struct act *act)
{
	uint32_t *stamp = &c->stamp[2 * act->peer + sends(act)];

	if (*stamp == c->runs)
		return false;
	*stamp = c->runs;
	return true;
}

/*
 * The run that begins at the receive @i: reductions of what arrives at one
 * level from different ranks, and sends to different ranks. Returns where it
 * ends.
 */
static uint32_t make_run(struct compiler *c, const struct local_part *part,
			 uint32_t i)
{
	struct act *acts = c->p->acts;
	uint32_t end = part->first + part->n, r, s, j;
	bool keep;

	c->runs++;
	fresh_peer(c, &acts[i]);
	for (r = i + 1; r < end && r - i < PROGRAM_RUN; r++)
		if ((acts[r].flags & (ACT_SEND | ACT_REDUCE | ACT_SWAP |
				      ACT_LATE)) != ACT_REDUCE ||
		    !fresh_peer(c, &acts[r]))
			break;
	for (s = r; s < end && s - r < PROGRAM_RUN && sends(&acts[s]); s++)
		if (!fresh_peer(c, &acts[s]))
			break;
	if (s < end && sends(&acts[s]))
		s = r;		/* not all of them: none */
	keep = s < end ? sends(&acts[s]) || acts[s].flags & ACT_REDUCE :
			 part->ends;
	for (j = i; j < r; j++) {
		acts[j].receives = (uint16_t)(r - j);
		acts[j].sends = (uint16_t)(s - r);
		acts[j].flags |= keep ? ACT_KEEP : 0;
	}
	return s > r ? s : r;
}

static void make_runs(struct compiler *c, const struct local_part *part)
{
	uint32_t i = part->first;

	while (i < part->first + part->n) {
		if (sends(&c->p->acts[i]))
			i++;
		else
			i = make_run(c, part, i);
	}
}

/* Chunks that stay at this rank, and are copied there without an act. */
static uint32_t lone_chunks(const struct fabrex_schedule *s, uint32_t rank,
			    uint32_t *first)
{
	uint32_t shard;

	switch (s->kind) {
	case FABREX_ALL_GATHER:
	case FABREX_REDUCE_SCATTER:
		shard = rank;
		break;
	case FABREX_ALL_TO_ALL:
		shard = rank * s->ranks + rank;
		break;
	default:
		shard = 0;
		break;
	}
	*first = s->first ? s->first[shard] : shard * s->nparts;
	return s->first ? s->first[shard + 1] - s->first[shard] : s->nparts;
}

static void add_part(struct compiler *c, uint32_t chunk, uint32_t first,
		     uint32_t n)
{
	struct local_part *part = &c->p->parts[c->p->nparts++];
	uint32_t i;

	part->chunk = chunk;
	part->shard = fxi_schedule_shard(c->s, chunk);
	part->first = first;
	part->n = n;
	part->begins = fxi_schedule_begins(c->s, part->shard, c->p->rank);
	part->ends = fxi_schedule_ends(c->s, part->shard, c->p->rank);
	for (i = first; i < first + n; i++)
		c->p->acts[i].part = c->p->nparts - 1;
	/* Acts are in the order of their levels. */
	if (n)
		part->stages = c->p->acts[first + n - 1].stage -
			       c->p->acts[first].stage;
	add_dependencies(c->p, part);
	make_runs(c, part);
}

/* By chunk, those without acts between the others. */
static void fill_parts(struct compiler *c, const struct key *keys, uint32_t n)
{
	uint32_t lone, end, i = 0, j, chunk;

	end = lone_chunks(c->s, c->p->rank, &lone);
	end += lone;
	while (i < n || lone < end) {
		chunk = i < n ? keys[i].chunk : UINT32_MAX;
		if (lone < end && lone < chunk)
			chunk = lone;
		for (j = i; j < n && keys[j].chunk == chunk; j++)
			;
		add_part(c, chunk, i, j - i);
		if (lone < end && lone == chunk)
			lone++;
		i = j;
	}
}

/* ---- lanes ------------------------------------------------------------- */

/* Sort key of lanes: by peer and direction, then in the order of transfers. */
struct lane_key {
	uint32_t lane, turn, transfer, act;
};

static int compare_lane_keys(const void *a, const void *b)
{
	const struct lane_key *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->turn != y->turn)
		return x->turn < y->turn ? -1 : 1;
	return x->transfer < y->transfer ? -1 : x->transfer > y->transfer;
}

static void add_lane(struct program *p, uint32_t i)
{
	const struct act *act = &p->acts[p->lane_acts[i]];
	struct lane *lane = p->nlanes ? &p->lanes[p->nlanes - 1] : NULL;

	if (!lane || lane->peer != act->peer || lane->sends != sends(act)) {
		lane = &p->lanes[p->nlanes++];
		lane->peer = act->peer;
		lane->sends = sends(act);
		lane->first = i;
		lane->low = act->stage;
		lane->high = act->stage;
	}
	lane->n++;
	if (act->stage < lane->low)
		lane->low = act->stage;
	if (act->stage > lane->high)
		lane->high = act->stage;
	p->lane_of[p->lane_acts[i]] = p->nlanes - 1;
}

/*
 * Peers beginning with the next rank, so that not all ranks begin with the
 * same.
 */
static bool fill_lanes(struct compiler *c)
{
	struct program *p = c->p;
	uint32_t n = c->s->ranks, i;
	struct lane_key *keys = malloc((p->nacts + 1) * sizeof(*keys));

	if (!keys)
		return false;
	for (i = 0; i < p->nacts; i++) {
		const struct act *act = &p->acts[i];
		uint32_t hops = sends(act) ? act->peer + n - p->rank :
					     p->rank + n - act->peer;

		keys[i].lane = 2 * (hops % n) + sends(act);
		keys[i].turn = (c->s->transfers[act->transfer].level - 1) %
				 c->s->busiest;
		keys[i].transfer = act->transfer;
		keys[i].act = i;
	}
	qsort(keys, p->nacts, sizeof(*keys), compare_lane_keys);
	for (i = 0; i < p->nacts; i++) {
		p->lane_acts[i] = keys[i].act;
		add_lane(p, i);
	}
	free(keys);
	return true;
}

/* ---- acts by transfer --------------------------------------------------- */

struct transfer_key {
	uint32_t transfer, act;
};

static int compare_transfers(const void *a, const void *b)
{
	const struct transfer_key *x = a, *y = b;

	return x->transfer < y->transfer ? -1 : x->transfer > y->transfer;
}

static bool sort_by_transfer(struct program *p)
{
	struct transfer_key *keys = malloc((p->nacts + 1) * sizeof(*keys));
	uint32_t i;

	if (!keys)
		return false;
	for (i = 0; i < p->nacts; i++)
		keys[i] = (struct transfer_key){ p->acts[i].transfer, i };
	qsort(keys, p->nacts, sizeof(*keys), compare_transfers);
	for (i = 0; i < p->nacts; i++)
		p->by_transfer[i] = keys[i].act;
	free(keys);
	return true;
}

const struct act *fxi_program_act(const struct program *p, uint32_t transfer)
{
	uint32_t low = 0, high = p->nacts, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (p->acts[p->by_transfer[middle]].transfer < transfer)
			low = middle + 1;
		else
			high = middle;
	}
	return low < p->nacts &&
	       p->acts[p->by_transfer[low]].transfer == transfer ?
	       &p->acts[p->by_transfer[low]] : NULL;
}

/* ---- programs ---------------------------------------------------------- */

static void program_free(struct program *p)
{
	free(p->acts);
	free(p->parts);
	free(p->lanes);
	free(p->lane_acts);
	free(p->lane_of);
	free(p->by_transfer);
	free(p);
}

void fxi_programs_free(struct program *programs)
{
	struct program *next;

	for (; programs; programs = next) {
		next = programs->next;
		program_free(programs);
	}
}

static bool program_room(struct compiler *c, uint32_t nacts)
{
	struct program *p = c->p;
	uint32_t lone, lanes = 2 * c->s->ranks;

	p->nacts = nacts;
	nacts++;
	p->acts = calloc(nacts, sizeof(*p->acts));
	p->parts = calloc(nacts + lone_chunks(c->s, p->rank, &lone),
			  sizeof(*p->parts));
	p->lanes = calloc(nacts < lanes ? nacts : lanes, sizeof(*p->lanes));
	p->lane_acts = calloc(nacts, sizeof(*p->lane_acts));
	p->lane_of = calloc(nacts, sizeof(*p->lane_of));
	p->by_transfer = calloc(nacts, sizeof(*p->by_transfer));
	c->stamp = calloc(lanes, sizeof(*c->stamp));
	return p->acts && p->parts && p->lanes && p->lane_acts && p->lane_of &&
	       p->by_transfer && c->stamp;
}

static struct program *compile(const struct fabrex_schedule *s, uint32_t rank)
{
	struct compiler c = { .s = s, .p = calloc(1, sizeof(*c.p)) };
	struct key *keys;
	uint32_t n, i;
	bool ok;

	if (!c.p)
		return NULL;
	c.p->rank = rank;
	keys = collect(s, rank, &n);
	ok = keys && program_room(&c, n);
	for (i = 0; ok && i < n; i++)
		fill_act(s, &keys[i], &c.p->acts[i]);
	if (ok) {
		fill_parts(&c, keys, n);
		ok = fill_lanes(&c) && sort_by_transfer(c.p);
	}
	free(keys);
	free(c.stamp);
	if (ok)
		return c.p;
	program_free(c.p);
	return NULL;
}

void fxi_programs_forked(void)
{
	pthread_mutex_init(&lock, NULL);
}

const struct program *fxi_program(const struct fabrex_schedule *schedule,
				  uint32_t rank)
{
	/* The list is all that changes in a schedule that is in use. */
	struct fabrex_schedule *keeper =
		(struct fabrex_schedule *)(uintptr_t)schedule;
	struct program *p;

	pthread_mutex_lock(&lock);
	for (p = schedule->programs; p; p = p->next)
		if (p->rank == rank)
			break;
	if (!p) {
		p = compile(schedule, rank);
		if (p) {
			p->next = schedule->programs;
			keeper->programs = p;
		}
	}
	pthread_mutex_unlock(&lock);
	return p;
}
