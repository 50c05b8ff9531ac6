// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The algorithm that follows a schedule. Every rank performs its acts in lanes,
 * one for each rank and direction, each in the order that is the same at both
 * ends; an act waits for those that its part depends on, and for nothing else.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coll/algorithm/execute.h"

/* Pieces: not smaller unless the part is, not more for each level. */
#define PIECE_LEAST	(16u << 10)
#define PIECES		8u
/*
 * What cuts at multiples of a line may add to a piece, and what a chunk may
 * have more than the one that is the largest with most counts.
 */
#define SLACK		128u
#define CUT		64u
#define NOBODY		UINT32_MAX

/* ---- pieces ------------------------------------------------------------ */

/*
 * Rounds: in each of them the whole schedule is executed with a piece of every
 * part. So many that a piece fits into a slot, and that long ways are filled.
 */
static uint32_t count_rounds(const struct execution *e)
{
	const struct fabrex_schedule *s = e->schedule;
	uint64_t start, end, bytes, piece, most, rounds, least;

	fxi_schedule_range(s, s->largest, e->coll->what.count, e->size, &start,
			   &end);
	bytes = (end - start) * e->size;
	most = fxi_link_size(e->comm);
	most -= most > 16 * SLACK ? SLACK : e->size;
	piece = bytes * s->busiest / ((uint64_t)s->depth * PIECES);
	if (piece < PIECE_LEAST)
		piece = PIECE_LEAST;
	if (piece > most)
		piece = most;
	rounds = (bytes + piece - 1) / piece;
	bytes += bytes >= SLACK ? SLACK : e->size;
	least = (bytes + most - 1) / most;
	return (uint32_t)(rounds > least ? rounds : least);
}

static uint64_t cut(const struct execution *e, uint64_t count, uint64_t round)
{
	uint64_t at = (uint64_t)((unsigned __int128)count * round / e->rounds);

	if (round == e->rounds || count / e->rounds * e->size < 64 * CUT)
		return at;
	return at - at % (CUT / e->size);
}

/* A piece that is larger than a slot would reach into the next one's. */
static int check_pieces(const struct execution *e)
{
	uint64_t piece, most = fxi_link_size(e->comm);
	uint32_t i;

	for (i = 0; i < e->p->nparts; i++) {
		piece = e->places[i].count / e->rounds * e->size;
		piece += e->rounds == 1 ? 0 :
			 piece < 64 * CUT ? e->size : CUT + e->size;
		if (unlikely(piece > most))
			return fxi_error(EOVERFLOW, "collective: \"%s\", part %u: a piece of %llu bytes, a slot has %llu; another count or algorithm may do, and please report it",
					 e->schedule->name, i,
					 (unsigned long long)piece,
					 (unsigned long long)most);
	}
	return 0;
}

/* ---- lanes ------------------------------------------------------------- */

/* To the next act and round in the lane's order, of which there may be none. */
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

/* The same, past pieces that have no bytes. */
static void settle(struct execution *e, uint32_t lane)
{
	struct cursor *c = &e->cursors[lane];
	const struct act *act;
	uint64_t count;

	while (next_act(e, &e->p->lanes[lane], c)) {
		act = &e->p->acts[c->act];
		count = e->places[act->part].count;
		c->at = cut(e, count, c->round);
		c->count = (uint32_t)(cut(e, count, c->round + 1) - c->at);
		if (c->count)
			return;
		e->done[c->act] = c->round + 1;
	}
	c->act = FINISHED;
	e->running--;
}

void fxi_execution_advance(struct execution *e, uint32_t lane)
{
	struct cursor *c = &e->cursors[lane];

	e->done[c->act] = c->round + 1;
	settle(e, lane);
}

/* Pieces of earlier rounds have left the place where this one will be. */
static bool place_free(const struct execution *e, const struct cursor *c)
{
	const struct act *act = &e->p->acts[c->act];
	const struct local_part *part = &e->p->parts[act->part];
	const struct place *place = &e->places[act->part];
	uint32_t i;

	if (!(act->flags & ACT_FIRST) || place->home ||
	    c->round < place->window)
		return true;
	for (i = part->first; i < part->first + part->n; i++)
		if (e->done[i] + place->window <= c->round)
			return false;
	return true;
}

bool fxi_execution_ready(struct execution *e, const struct cursor *c)
{
	const struct act *act = &e->p->acts[c->act];
	uint32_t i;

	for (i = act->need; i < act->need + act->needs; i++)
		if (e->done[i] <= c->round)
			return false;
	return place_free(e, c) &&
	       (!e->flying || fxi_region_left(e, act->need, act->needs));
}

/* ---- messages ---------------------------------------------------------- */

uint64_t fxi_execution_word(const struct execution *e, const struct cursor *c)
{
	return e->word ^ ((uint64_t)e->p->acts[c->act].transfer << 20 ^
			  c->round);
}

int fxi_execution_check(const struct execution *e, uint32_t lane,
			const struct link_message *message)
{
	const struct cursor *c = &e->cursors[lane];
	uint32_t peer = e->p->lanes[lane].peer;
	int ret = 0;

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

/* ---- start and end ----------------------------------------------------- */

/*
 * Scratch for a part that does not end here: for the rounds that can be under
 * way, and one more. See "Passes" in docs/schedule.md.
 */
static void place_scratch(struct execution *e, const struct local_part *part,
			  struct place *place)
{
	uint64_t piece = (place->count / e->rounds + 1) * e->size + CUT;

	place->window = part->stages + 2;
	if (place->window > e->rounds)
		place->window = e->rounds;
	place->stride = (uint32_t)(piece + CUT - 1) & ~(CUT - 1);
	place->scratch = e->scratch_size;
	e->scratch_size += (uint64_t)place->window * place->stride;
}

/* Where in the buffers the part is. */
static void place_part(struct execution *e, const struct local_part *part,
		       struct place *place)
{
	const struct fabrex_collective *what = &e->coll->what;
	uint64_t start, end, send, recv;
	uint32_t ranks = e->schedule->ranks;

	fxi_schedule_range(e->schedule, part->chunk, what->count, e->size,
			   &start, &end);
	place->count = end - start;
	send = start;
	recv = start;
	if (what->kind == FABREX_ALL_GATHER)
		recv += part->shard * what->count;
	if (what->kind == FABREX_REDUCE_SCATTER)
		send += part->shard * what->count;
	if (what->kind == FABREX_ALL_TO_ALL) {
		send += part->shard % ranks * what->count;
		recv += part->shard / ranks * what->count;
	}
	if (part->begins)
		place->own = (const uint8_t *)what->send + send * e->size;
	if (part->ends)
		place->home = (uint8_t *)what->recv + recv * e->size;
	else if (part->writes)
		place_scratch(e, part, place);
}

static int make_room(struct execution *e)
{
	const struct program *p = e->p;
	struct fabrex_comm *comm = e->comm;

	if (!comm->traffic)
		comm->traffic = calloc(comm->size, sizeof(*comm->traffic));
	e->places = calloc(p->nparts + 1, sizeof(*e->places));
	e->done = calloc(p->nacts + 1, sizeof(*e->done));
	e->cursors = calloc(p->nlanes + 1, sizeof(*e->cursors));
	if (comm->traffic && e->places && e->done && e->cursors)
		return 0;
	return fxi_error(ENOMEM, "collective: no memory to follow \"%s\"",
			 e->schedule->name);
}

static int prepare(struct execution *e)
{
	uint32_t i;
	int ret;

	e->p = fxi_program(e->schedule, e->comm->rank);
	if (!e->p)
		return fxi_error(ENOMEM, "collective: no memory to follow \"%s\"",
				 e->schedule->name);
	ret = make_room(e);
	if (ret)
		return ret;
	e->size = (uint32_t)fabrex_datatype_size(e->coll->what.type);
	e->rounding = e->coll->what.type == FABREX_FLOAT16 ||
		      e->coll->what.type == FABREX_BFLOAT16;
	e->rounds = count_rounds(e);
	e->tag = fxi_coll_tag(e->coll, 0xf);
	e->word = fxi_coll_word(e->coll);
	for (i = 0; i < e->p->nparts; i++)
		place_part(e, &e->p->parts[i], &e->places[i]);
	ret = check_pieces(e);
	if (ret)
		return ret;
	e->running = e->p->nlanes;
	for (i = 0; i < e->p->nlanes; i++) {
		e->cursors[i].turn = e->p->lanes[i].low;
		settle(e, i);
	}
	fxi_regions_get(e);
	return 0;
}

static void release(struct execution *e)
{
	fxi_regions_put(e);
	fabrex_schedule_free(e->schedule);
	free(e->places);
	free(e->done);
	free(e->cursors);
	free(e->scratch);
	free(e);
}

static int scheduled_start(struct fabrex_coll *coll)
{
	struct execution *e = calloc(1, sizeof(*e));
	int ret;

	if (!e)
		return fxi_error(ENOMEM, "collective: no memory");
	e->coll = coll;
	e->comm = coll->comm;
	e->schedule = fxi_schedule_get(coll->schedule);
	ret = prepare(e);
	if (ret)
		release(e);
	else
		coll->state = e;
	return ret;
}

static void scheduled_end(struct fabrex_coll *coll)
{
	release(coll->state);
	coll->state = NULL;
}

/* ---- going on ---------------------------------------------------------- */

/* As far as the lane goes. 1 if it went; 0; or a negative errno. */
static int go_on(struct execution *e, uint32_t lane)
{
	const struct lane *l = &e->p->lanes[lane];
	const struct cursor *c = &e->cursors[lane];
	const struct link_message *m;
	int ret, moved = 0;

	while (c->act != FINISHED) {
		if (l->sends) {
			ret = fxi_execution_ready(e, c) ?
			      fxi_pass_send(e, lane) : 0;
		} else {
			m = fxi_link_peek(e->comm, l->peer, LINK_COLL);
			if (!m)
				break;
			ret = fxi_execution_check(e, lane, m);
			if (!ret && fxi_execution_ready(e, c))
				ret = fxi_pass_receive(e, lane);
		}
		if (ret < 0)
			return ret;
		if (!ret)
			break;
		moved = 1;
	}
	return moved;
}

static int go_on_all(struct execution *e)
{
	uint32_t lane;
	int ret, moved = 0;

	for (lane = 0; lane < e->p->nlanes; lane++) {
		ret = go_on(e, lane);
		if (ret < 0)
			return ret;
		moved |= ret;
	}
	return moved;
}

/* Does the lane wait for its peer, and not for another lane? */
static bool waits_for_peer(struct execution *e, uint32_t lane)
{
	const struct lane *l = &e->p->lanes[lane];

	if (!l->sends)
		return !fxi_link_peek(e->comm, l->peer, LINK_COLL);
	return fxi_execution_ready(e, &e->cursors[lane]) &&
	       !fxi_link_room(e->comm, l->peer, LINK_COLL);
}

/*
 * Whom to suspect if nothing moves: who has not sent, or else has no room. Not
 * one whose message is here, as it may have left since.
 */
static void find_waiting(struct execution *e)
{
	uint32_t lane;

	e->coll->waiting = NOBODY;
	for (lane = 0; lane < e->p->nlanes; lane++) {
		const struct lane *l = &e->p->lanes[lane];

		if (e->cursors[lane].act == FINISHED ||
		    !waits_for_peer(e, lane))
			continue;
		e->coll->waiting = l->peer;
		if (!l->sends)
			return;
	}
}

/* Own parts are copied while there is nothing better to do. */
static int scheduled_step(struct fabrex_coll *coll)
{
	struct execution *e = coll->state;
	int ret;

	do {
		ret = go_on_all(e);
		if (ret < 0)
			return ret;
		e->unmoved = ret ? 0 : e->unmoved + 1;
	} while (ret || fxi_pass_copy(e));
	if (!e->running)
		return !e->flying || fxi_region_left(e, 0, e->p->nacts);
	find_waiting(e);
	return 0;
}

static bool scheduled_usable(const struct fabrex_comm *comm,
			     const struct fabrex_collective *what)
{
	(void)comm;
	return fxi_schedule_kind_name(what->kind) != NULL;
}

const struct algorithm fxi_scheduled = {
	.name = "scheduled",
	.kinds = 1 << FABREX_ALL_REDUCE | 1 << FABREX_ALL_GATHER |
		 1 << FABREX_REDUCE_SCATTER | 1 << FABREX_BROADCAST |
		 1 << FABREX_REDUCE | 1 << FABREX_ALL_TO_ALL,
	.host_only = true,
	.usable = scheduled_usable,
	.start = scheduled_start,
	.step = scheduled_step,
	.end = scheduled_end,
};
