// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The algorithm that follows a schedule. Every rank performs its acts in lanes,
 * one for each peer and direction, each in the order that is the same at both
 * ends; an act waits for those that its part depends on, and for nothing else.
 * Called through fxi_scheduled.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/algorithm/execute.h"
#include "coll/operation/gpu.h"
#include "coll/operation/peer_copy.h"

#define NOBODY		UINT32_MAX

/* ---- dependencies ------------------------------------------------------ */

/*
 * Earlier pieces do not need the scratch memory of this one any more: they have
 * been sent, and have left.
 */
static bool scratch_free(struct execution *e, const struct cursor *c)
{
	const struct act *act = &e->p->acts[c->act];
	const struct local_part *part = &e->p->parts[act->part];
	const struct part_memory *memory = &e->memory[act->part];
	uint64_t gone;
	uint32_t i;

	if (!(act->flags & ACT_FIRST) || memory->home ||
	    c->round < memory->nscratch)
		return true;
	gone = fxi_piece_start(e, memory->count,
			       c->round - memory->nscratch + 1);
	for (i = part->first; i < part->first + part->n; i++)
		if (e->done[i] < gone)
			return false;
	return !e->flying || fxi_region_left(e, part->first, part->n);
}

static bool is_ready(struct execution *e, const struct cursor *c)
{
	const struct act *act = &e->p->acts[c->act];
	uint32_t i;

	for (i = act->need; i < act->need + act->needs; i++)
		if (e->done[i] < c->at + c->count)
			return false;
	return scratch_free(e, c) &&
	       (!e->flying || fxi_region_left(e, act->need, act->needs));
}

/* ---- start and end ----------------------------------------------------- */

/*
 * Scratch for a part that does not end here: for the rounds that can be under
 * way, and one more. See "Passes" in docs/schedule.md.
 */
static void assign_scratch(struct execution *e, const struct local_part *part,
			   struct part_memory *memory)
{
	uint64_t piece = (memory->count / e->rounds + 1) * e->size + PIECE_CUT;

	memory->nscratch = part->stages + 2;
	if (memory->nscratch > e->rounds)
		memory->nscratch = e->rounds;
	memory->stride = (uint32_t)(piece + PIECE_CUT - 1) & ~(PIECE_CUT - 1);
	memory->scratch = e->scratch_size;
	e->scratch_size += (uint64_t)memory->nscratch * memory->stride;
}

/* Where in the buffers the part is. */
static void locate_part(struct execution *e, const struct local_part *part,
			struct part_memory *memory)
{
	const struct fabrex_collective *what = &e->coll->what;
	uint64_t start, end, send, recv;
	uint32_t ranks = e->schedule->ranks;

	fxi_schedule_range(e->schedule, part->chunk, what->count, e->size,
			   &start, &end);
	memory->count = end - start;
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
		memory->own = (const uint8_t *)what->send + send * e->size;
	if (part->ends)
		memory->home = (uint8_t *)what->recv + recv * e->size;
	else if (part->writes)
		assign_scratch(e, part, memory);
}

static int make_room(struct execution *e)
{
	const struct program *p = e->p;
	struct fabrex_comm *comm = e->comm;

	if (!comm->traffic)
		comm->traffic = calloc(comm->size, sizeof(*comm->traffic));
	e->memory = calloc(p->nparts + 1, sizeof(*e->memory));
	e->done = calloc(p->nacts + 1, sizeof(*e->done));
	e->cursors = calloc(p->nlanes + 1, sizeof(*e->cursors));
	e->begun = calloc(p->nlanes + 1, sizeof(*e->begun));
	e->paces = calloc(p->nlanes + 1, sizeof(*e->paces));
	e->vain = calloc(p->nlanes + 1, sizeof(*e->vain));
	if (comm->traffic && e->memory && e->done && e->cursors && e->begun &&
	    e->paces && e->vain)
		return 0;
	return fxi_error(ENOMEM, "collective: no memory to follow \"%s\"",
			 e->schedule->name);
}

static int lay_out(struct execution *e)
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
	e->size = (uint32_t)fxi_type_size(e->coll->what.type);
	e->rounding = e->coll->what.type == FABREX_FLOAT16 ||
		      e->coll->what.type == FABREX_BFLOAT16;
	e->rounds = fxi_pieces_rounds(e);
	for (i = 0; i < e->p->nparts; i++)
		locate_part(e, &e->p->parts[i], &e->memory[i]);
	return 0;
}

static int prepare(struct execution *e)
{
	int ret = lay_out(e);

	if (!ret)
		ret = fxi_pieces_check(e);
	if (ret)
		return ret;
	e->tag = fxi_coll_tag(e->coll, 0xf);
	e->word = fxi_coll_word(e->coll);
	fxi_execution_begin(e);
	fxi_regions_get(e);
	return fxi_coll_offer_slots(e->coll);
}

static void release(struct execution *e)
{
	fxi_regions_put(e);
	if (!e->gpu)
		free(e->scratch);
	fabrex_schedule_free(e->schedule);
	free(e->memory);
	free(e->done);
	free(e->cursors);
	free(e->begun);
	free(e->paces);
	free(e->vain);
	free(e);
}

static struct execution *execution_new(struct fabrex_coll *coll)
{
	struct execution *e = calloc(1, sizeof(*e));

	if (!e) {
		fxi_error(ENOMEM, "collective: no memory");
		return NULL;
	}
	e->coll = coll;
	e->comm = coll->comm;
	e->gpu = fxi_coll_on_gpu(coll);
	e->schedule = fxi_schedule_get(coll->schedule);
	return e;
}

static int scheduled_start(struct fabrex_coll *coll)
{
	struct execution *e = execution_new(coll);
	int ret;

	if (!e)
		return -ENOMEM;
	ret = prepare(e);
	if (ret)
		release(e);
	else
		coll->state = e;
	return ret;
}

/* What fails here fails again when it starts. */
static uint64_t scheduled_scratch(struct fabrex_coll *coll)
{
	struct execution *e = execution_new(coll);
	uint64_t bytes = 0;

	if (!e)
		return 0;
	if (!lay_out(e))
		bytes = e->scratch_size;
	release(e);
	return bytes;
}

static void scheduled_end(struct fabrex_coll *coll)
{
	fxi_peer_copies_end(coll->comm);
	release(coll->state);
	coll->state = NULL;
}

/* ---- going on ---------------------------------------------------------- */

static uint32_t under_way(const struct execution *e, uint32_t lane)
{
	uint32_t peer = e->p->lanes[lane].peer;

	return fxi_peer_copying(e->comm, peer) +
	       fxi_link_flying(e->comm, peer, LINK_COLL);
}

/* The lane's message, if there are not enough under way. */
static int send_paced(struct execution *e, uint32_t lane)
{
	uint32_t act = e->cursors[lane].act, n = under_way(e, lane);
	struct pace *pace = &e->paces[lane];
	int ret;

	fxi_pace_look(pace, n);
	if (fxi_pace_full(pace, n))
		return 0;
	ret = fxi_pass_send(e, lane);
	if (ret > 0 && e->flying[act])
		fxi_pace_post(pace);
	return ret;
}

static int send_ready(struct execution *e, uint32_t lane)
{
	if (unlikely(e->gpu))
		fxi_pass_widen(e, lane);
	if (!is_ready(e, &e->cursors[lane]))
		return 0;
	return e->flying ? send_paced(e, lane) : fxi_pass_send(e, lane);
}

/* Whatever could be sent instead, until one is. */
static int send_one_ahead(struct execution *e, uint32_t lane)
{
	struct cursor in_turn = e->cursors[lane], look = in_turn;
	struct ahead tried = { -1, 0 };
	bool found = false;
	int ret = 0;

	e->aside = true;
	while (!ret && fxi_execution_find_ahead(e, lane, &tried, &look)) {
		found = true;
		e->cursors[lane] = look;
		ret = send_ready(e, lane);
		e->cursors[lane] = in_turn;
	}
	e->aside = false;
	if (!found)
		e->vain[lane] = e->taken + 1;
	return ret;
}

/*
 * What may go out of turn, where that saves waiting: between memories that are
 * not ordinary, in which everything takes its time.
 */
static int send_ahead(struct execution *e, uint32_t lane)
{
	const struct cursor *in_turn = &e->cursors[lane];

	if (!e->flying || !(e->p->acts[in_turn->act].flags & ACT_ANYTIME) ||
	    e->vain[lane] == e->taken + 1 || is_ready(e, in_turn) ||
	    fxi_pace_full(&e->paces[lane], under_way(e, lane)))
		return 0;
	return send_one_ahead(e, lane);
}

static int send_some(struct execution *e, uint32_t lane)
{
	int ret = send_ready(e, lane);

	return ret ? ret : send_ahead(e, lane);
}

/* The message, in or out of turn. */
static int receive_some(struct execution *e, uint32_t lane,
			const struct link_message *m)
{
	struct cursor in_turn = e->cursors[lane], found;
	int ret = 0;

	if (m->word != fxi_execution_word(e, &in_turn) &&
	    fxi_execution_find(e, lane, m, &found)) {
		e->aside = true;
		e->cursors[lane] = found;
	}
	ret = fxi_execution_check(e, lane, m);
	if (!ret && is_ready(e, &e->cursors[lane]))
		ret = fxi_pass_receive(e, lane);
	if (e->aside)
		e->cursors[lane] = in_turn;
	e->aside = false;
	return ret;
}

/*
 * Advances the lane as far as possible in one turn. 1: it moved; 0: not; or a
 * negative errno.
 */
static int go_on(struct execution *e, uint32_t lane)
{
	const struct lane *l = &e->p->lanes[lane];
	const struct cursor *c = &e->cursors[lane];
	const struct link_message *m;
	uint32_t n;
	int ret;

	for (n = 0; n < STEP_MESSAGES && c->act != FINISHED; n++) {
		if (l->sends) {
			ret = send_some(e, lane);
		} else {
			m = fxi_link_peek(e->comm, l->peer, LINK_COLL);
			if (!m)
				break;
			ret = receive_some(e, lane, m);
		}
		if (ret < 0)
			return ret;
		if (!ret)
			break;
		/* The next one when the GPU has taken this: go_on_all(). */
		if (e->gpu && !l->sends)
			return 1;
	}
	return n > 0;
}

/* What several lanes have for the GPU is waited for once. */
static int go_on_all(struct execution *e)
{
	uint32_t lane;
	char why[256];
	int ret = 0, err, moved = 0;

	for (lane = 0; lane < e->p->nlanes && ret >= 0; lane++) {
		ret = go_on(e, lane);
		moved |= ret > 0;
	}
	if (ret < 0)
		snprintf(why, sizeof(why), "%s", fabrex_strerror_last());
	err = fxi_pass_settle(e, ret < 0);
	if (ret < 0)
		return fxi_error(-ret, "%s", why);
	return err ? err : moved;
}

/* Does the lane wait for its peer, and not for another lane? */
static bool waits_for_peer(struct execution *e, uint32_t lane)
{
	const struct lane *l = &e->p->lanes[lane];

	if (!l->sends)
		return !fxi_link_peek(e->comm, l->peer, LINK_COLL);
	return is_ready(e, &e->cursors[lane]) &&
	       !fxi_peer_copying(e->comm, l->peer) &&
	       ((e->flying && fxi_pace_full(&e->paces[lane],
					    under_way(e, lane))) ||
		!fxi_link_room(e->comm, l->peer, LINK_COLL) ||
		fxi_pass_unknown(e, l->peer));
}

/*
 * The rank to suspect if nothing moves: one that has not sent, or else one
 * without room. Not one whose message is here, as it may have left since.
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

/* Ranks with GPUs may wait to hear that this one has no slots on any. */
static int decline(struct execution *e)
{
	uint32_t lane;
	int ret = 0;

	for (lane = 0; lane < e->p->nlanes && !ret; lane++)
		if (!e->p->lanes[lane].sends)
			ret = fxi_link_decline(e->comm, e->p->lanes[lane].peer);
	return ret;
}

/*
 * This rank's own parts are copied while nothing else can be done. After some
 * turns the caller may have other things to do.
 */
static int scheduled_step(struct fabrex_coll *coll)
{
	struct execution *e = coll->state;
	uint32_t turns = 0;
	int ret, copied;

	do {
		ret = go_on_all(e);
		if (ret < 0)
			return ret;
		copied = fxi_peer_copies_progress(coll->comm);
		if (copied < 0)
			return copied;
		ret |= copied;
		e->unmoved = ret ? 0 : e->unmoved + 1;
		if (!ret)
			ret = fxi_pass_copy(e);
	} while (ret > 0 && ++turns < STEP_TURNS);
	if (ret < 0)
		return ret;
	coll->comm->moved += turns;
	if (ret) {
		coll->waiting = NOBODY;
		return 0;
	}
	if (!e->running)
		return !e->flying || fxi_region_left(e, 0, e->p->nacts);
	find_waiting(e);
	return decline(e);
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
	.one_memory = true,
	.usable = scheduled_usable,
	.scratch = scheduled_scratch,
	.start = scheduled_start,
	.step = scheduled_step,
	.end = scheduled_end,
};
