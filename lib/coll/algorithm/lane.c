// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The order in which a rank follows a schedule: into how many pieces parts are
 * cut, and which act and piece is next in each lane. Called by execute.c and
 * pass.c.
 */
#include <errno.h>

#include "coll/algorithm/execute.h"

/* Pieces: no smaller unless the part is, no more than so many for each level. */
#define PIECE_LEAST	(16u << 10)
#define PIECES		8u
/* Of ranks that have GPUs: each copy and kernel takes long to begin. */
#define PIECE_GPU	(1u << 20)
/*
 * By how much cutting at multiples of a line may lengthen a piece, and by how
 * much a chunk may be longer than the one that is the largest for most counts.
 */
#define SLACK		128u

/* ---- pieces ------------------------------------------------------------ */

/*
 * In each round the whole schedule is executed with a piece of every part.
 * There are so many rounds that a piece fits into a slot on a GPU and long paths
 * are filled. Through mailboxes, whose slots are smaller, a piece is several
 * messages.
 */
uint32_t fxi_pieces_rounds(const struct execution *e)
{
	const struct fabrex_schedule *s = e->schedule;
	uint64_t start, end, bytes, piece, slot = fxi_link_size(e->comm);
	uint64_t most, limit, rounds, least;

	fxi_schedule_range(s, s->largest, e->coll->what.count, e->size, &start,
			   &end);
	bytes = (end - start) * e->size;
	most = slot - (slot > 16 * SLACK ? SLACK : e->size);
	limit = fxi_link_device_size(e->comm) / slot * most;
	piece = (uint64_t)((unsigned __int128)bytes * s->heaviest /
			   ((uint64_t)s->depth * PIECES * HEAVIEST_UNIT));
	least = e->coll->all_gpus ? PIECE_GPU : PIECE_LEAST;
	if (piece < least)
		piece = least;
	piece = piece < most ? piece : (piece + most - 1) / most * most;
	if (piece > limit)
		piece = limit;
	rounds = (bytes + piece - 1) / piece;
	bytes += bytes >= SLACK ? SLACK : e->size;
	least = (bytes + limit - 1) / limit;
	return (uint32_t)(rounds > least ? rounds : least);
}

uint64_t fxi_piece_start(const struct execution *e, uint64_t count,
			 uint64_t round)
{
	uint64_t at = (uint64_t)((unsigned __int128)count * round / e->rounds);

	if (round == e->rounds || count / e->rounds * e->size < 64 * PIECE_CUT)
		return at;
	return at - at % (PIECE_CUT / e->size);
}

/* A piece that is larger than a slot would reach into the next one's. */
int fxi_pieces_check(const struct execution *e)
{
	uint64_t piece, most = fxi_link_device_size(e->comm);
	uint32_t i;

	for (i = 0; i < e->p->nparts; i++) {
		piece = e->memory[i].count / e->rounds * e->size;
		piece += e->rounds == 1 ? 0 :
			 piece < 64 * PIECE_CUT ? e->size : PIECE_CUT + e->size;
		if (unlikely(piece > most))
			return fxi_error(EOVERFLOW, "collective: \"%s\", part %u: a piece of %llu bytes does not fit a slot of %llu; try another count or algorithm, and please report this",
					 e->schedule->name, i,
					 (unsigned long long)piece,
					 (unsigned long long)most);
	}
	return 0;
}

/* ---- lanes ------------------------------------------------------------- */

/* Moves to the next act and round in the lane's order. False: there is none. */
static bool next_act(const struct execution *e, const struct lane *lane,
		     struct cursor *c)
{
	const struct act *act;

	for (;;) {
		if (c->next == lane->n) {
			c->next = 0;
			c->turn++;
		}
		if (c->turn >= lane->high + e->rounds)
			return false;
		c->act = e->p->lane_acts[lane->first + c->next++];
		act = &e->p->acts[c->act];
		c->round = c->turn - act->stage;
		if (c->turn >= act->stage && c->round < e->rounds)
			return true;
	}
}

/* The next message of the piece, through a mailbox. */
static void set_message(const struct execution *e, struct cursor *c,
			uint64_t at)
{
	uint64_t left = c->end - at, most = fxi_link_size(e->comm) / e->size;

	c->at = at;
	c->count = (uint32_t)(left < most ? left : most);
}

/* Of the act and round: all of it, or what is left. */
static void set_piece(const struct execution *e, struct cursor *c)
{
	uint64_t count = e->memory[e->p->acts[c->act].part].count;

	c->start = fxi_piece_start(e, count, c->round);
	c->end = fxi_piece_start(e, count, c->round + 1);
	set_message(e, c, c->start);
}

/* The same, skipping pieces that have no bytes, or went ahead. */
static void skip_empty(struct execution *e, uint32_t lane)
{
	struct cursor *c = &e->cursors[lane];

	while (next_act(e, &e->p->lanes[lane], c)) {
		set_piece(e, c);
		if (e->done[c->act] > c->start)
			set_message(e, c, e->done[c->act] < c->end ?
				    e->done[c->act] : c->end);
		if (c->count)
			return;
		e->done[c->act] = c->end > e->done[c->act] ? c->end :
				  e->done[c->act];
	}
	c->act = FINISHED;
	e->running--;
}

void fxi_execution_begin(struct execution *e)
{
	uint32_t i;

	e->running = e->p->nlanes;
	for (i = 0; i < e->p->nlanes; i++) {
		e->cursors[i].turn = e->p->lanes[i].low;
		skip_empty(e, i);
	}
}

void fxi_execution_advance(struct execution *e, uint32_t lane)
{
	struct cursor *c = &e->cursors[lane];

	e->done[c->act] = c->at + c->count;
	e->taken += !e->p->lanes[lane].sends;
	if (e->aside)
		return;
	if (c->at + c->count < c->end)
		set_message(e, c, c->at + c->count);
	else
		skip_empty(e, lane);
}

/* ---- out of turn ------------------------------------------------------- */

/* The round in which an element of a part with @count is transferred. */
static uint32_t round_of(const struct execution *e, uint64_t count, uint64_t at)
{
	uint32_t round = (uint32_t)((unsigned __int128)at * e->rounds / count);

	while (fxi_piece_start(e, count, round) > at)
		round--;
	while (fxi_piece_start(e, count, round + 1) <= at)
		round++;
	return round;
}

/* Is something of the act's part here that it has not sent? */
static bool has_more(const struct execution *e, const struct act *act)
{
	uint64_t done = e->done[act - e->p->acts];
	uint32_t i;

	if (done >= e->memory[act->part].count)
		return false;
	for (i = act->need; i < act->need + act->needs; i++)
		if (e->done[i] <= done)
			return false;
	return true;
}

/*
 * The round that the act has come to, about, plus its stage. Not a division of
 * integers of 128 bits, as this is asked of many acts.
 */
static double turn_of(const struct execution *e, const struct act *act)
{
	return (double)e->done[act - e->p->acts] * e->rounds /
	       (double)e->memory[act->part].count + act->stage;
}

/* Is it, at place @i of the lane, behind what has been tried? */
static bool is_behind(const struct ahead *tried, double turn, uint32_t i)
{
	return turn > tried->turn || (turn == tried->turn && i >= tried->next);
}

bool fxi_execution_find_ahead(const struct execution *e, uint32_t lane,
			      struct ahead *tried, struct cursor *c)
{
	const struct lane *l = &e->p->lanes[lane];
	const struct act *act, *best = NULL;
	struct ahead first = { 0 };
	double turn;
	uint32_t i;

	for (i = 0; i < l->n; i++) {
		act = &e->p->acts[e->p->lane_acts[l->first + i]];
		if (act == &e->p->acts[e->cursors[lane].act] ||
		    !has_more(e, act))
			continue;
		turn = turn_of(e, act);
		if ((best && turn >= first.turn) || !is_behind(tried, turn, i))
			continue;
		best = act;
		first = (struct ahead){ turn, i + 1 };
	}
	if (!best)
		return false;
	*tried = first;
	c->act = (uint32_t)(best - e->p->acts);
	c->round = round_of(e, e->memory[best->part].count, e->done[c->act]);
	set_piece(e, c);
	set_message(e, c, e->done[c->act]);
	return true;
}

bool fxi_execution_find(const struct execution *e, uint32_t lane,
			const struct link_message *message, struct cursor *c)
{
	uint64_t word = message->word ^ e->word, count;
	uint64_t at = word & ((1ull << POSITIONS) - 1);
	const struct act *act;

	if (message->tag != e->tag)
		return false;
	act = fxi_program_act(e->p, (uint32_t)(word >> POSITIONS));
	if (!act || !(act->flags & ACT_ANYTIME))
		return false;
	count = e->memory[act->part].count;
	c->act = (uint32_t)(act - e->p->acts);
	if (e->p->lane_of[c->act] != lane || at != e->done[c->act] ||
	    at >= count)
		return false;
	c->round = round_of(e, count, at);
	set_piece(e, c);
	set_message(e, c, at);
	return true;
}

/* ---- messages ---------------------------------------------------------- */

int fxi_execution_check(struct execution *e, uint32_t lane,
			const struct link_message *message)
{
	struct cursor *c = &e->cursors[lane];
	uint32_t peer = e->p->lanes[lane].peer;
	int ret = 0;

	/* A sender may have learned of slots on a GPU only since it cut it. */
	if (unlikely(message->length > c->count * e->size))
		fxi_execution_widen(c);
	if (likely(message->tag == e->tag &&
		   message->word == fxi_execution_word(e, c) &&
		   message->length == c->count * e->size))
		return 0;
	if (message->tag != e->tag)
		ret = fxi_coll_check(e->coll, peer, 0xf, message);
	return ret ? ret :
		fxi_error(EPROTO, "ranks %u and %u do not follow the same schedule, or not with the same count: transfer %u of \"%s\", %u bytes, is what rank %u waits for",
			  e->comm->rank, peer, e->p->acts[c->act].transfer,
			  e->schedule->name, c->count * e->size,
			  e->comm->rank);
}
