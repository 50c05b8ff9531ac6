// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The passes over memory that a schedule takes. Where possible a piece that
 * arrives is reduced with this rank's own straight into the slots of the next
 * ranks: read once, written once. Called by execute.c.
 */
#include <errno.h>
#include <stdlib.h>

#include "coll/algorithm/execute.h"
#include "coll/operation/gpu.h"
#include "coll/operation/peer_copy.h"

/* Steps in vain after which a run is split into single acts. */
#define PATIENCE	64u
/* Bytes copied between looks for messages. */
#define COPY		(256u << 10)

/* Sources, and targets, of a pass: own part, run, own result. */
#define PASS_MAX	(PROGRAM_RUN + 2)

/* One pass while it is being assembled. */
struct pass {
	const void *src[PASS_MAX];
	void *dst[PASS_MAX];
	uint32_t nsrc, ndst;
	uint32_t lanes[PASS_MAX];	/* that the targets are sent to */
	uint32_t nlanes;
	uint8_t small[PASS_MAX][LINK_SMALL];	/* of sends that need no room */
};

static const struct act *act_of(const struct execution *e,
				const struct cursor *cursor)
{
	return &e->p->acts[cursor->act];
}

/* Where parts are that neither end at this rank nor begin here. */
static uint8_t *scratch(struct execution *e)
{
	void *memory = NULL;

	if (!e->scratch && e->gpu) {
		if (!fxi_coll_scratch_gpu(e->coll, e->scratch_size,
					  &memory)) {
			e->scratch = memory;
			fxi_region_get_scratch(e);
		}
	} else if (!e->scratch) {
		e->scratch = malloc(e->scratch_size);
	}
	if (!e->scratch)
		fxi_error(ENOMEM, "collective: no memory for %llu bytes on their way through rank %u",
			  (unsigned long long)e->scratch_size, e->comm->rank);
	return e->scratch;
}

/* Where the message is once it has arrived; NULL: no memory. */
static uint8_t *home(struct execution *e, const struct cursor *c)
{
	const struct part_memory *memory = &e->memory[act_of(e, c)->part];
	uint8_t *at = memory->home;

	if (!at) {
		at = scratch(e);
		return at ? at + memory->scratch +
			    (size_t)(c->round % memory->nscratch) *
			    memory->stride + (c->at - c->start) * e->size :
			    NULL;
	}
	return at + c->at * e->size;
}

/* This rank's own value of the piece. */
static const uint8_t *own(struct execution *e, const struct cursor *c)
{
	const struct act *act = act_of(e, c);

	if (act->flags & ACT_FRESH)
		return e->memory[act->part].own + c->at * e->size;
	return home(e, c);
}

static void count_sent(struct execution *e, uint32_t peer, uint64_t bytes)
{
	e->comm->traffic[peer].bytes += bytes;
	e->comm->traffic[peer].messages++;
}

static int send_message(struct execution *e, uint32_t lane, const void *small)
{
	const struct cursor *c = &e->cursors[lane];
	uint32_t peer = e->p->lanes[lane].peer, bytes = c->count * e->size;
	int ret = fxi_link_send(e->comm, peer, LINK_COLL, e->tag,
				fxi_execution_word(e, c),
				bytes <= LINK_SMALL ? small : NULL, bytes);

	if (!ret)
		count_sent(e, peer, bytes);
	return ret;
}

static void pop(struct execution *e, uint32_t lane)
{
	fxi_link_pop(e->comm, e->p->lanes[lane].peer, LINK_COLL);
	fxi_execution_advance(e, lane);
}

static uint32_t divisor_of(const struct execution *e, bool full)
{
	return full && e->coll->what.op == FABREX_AVG ? e->comm->size : 0;
}

static void perform(const struct execution *e, const struct pass *pass,
		    uint32_t count, bool full)
{
	const struct fabrex_collective *what = &e->coll->what;
	const struct reduce r = {
		.dst = pass->dst, .src = pass->src, .ndst = pass->ndst,
		.nsrc = pass->nsrc, .count = count, .type = what->type,
		.op = what->op, .divisor = divisor_of(e, full),
	};

	fxi_reduce(&r);
}

/* ---- one act ----------------------------------------------------------- */

/* From the GPU, through the room or in the header. */
static int send_copy(struct execution *e, uint32_t lane, void *room,
		     const uint8_t *from)
{
	uint32_t bytes = e->cursors[lane].count * e->size;
	uint8_t small[LINK_SMALL];
	int ret;

	ret = fxi_coll_fetch_gpu(e->coll, bytes > LINK_SMALL ? room : small,
				 from, bytes);
	return ret ? ret : send_message(e, lane, small);
}

/* Through the room, or straight from a region. */
static int send_from(struct execution *e, uint32_t lane, void *room,
		     const uint8_t *from)
{
	uint32_t bytes = e->cursors[lane].count * e->size;
	int ret = 0;

	if (e->flying && bytes > LINK_SMALL)
		ret = fxi_region_send(e, lane, from);
	if (ret > 0)
		count_sent(e, e->p->lanes[lane].peer, bytes);
	if (ret)
		return ret < 0 ? ret : 0;
	if (e->gpu)
		return send_copy(e, lane, room, from);
	if (bytes > LINK_SMALL)
		fxi_copy(room, from, bytes, false);
	return send_message(e, lane, from);
}

/* By the runtime, to a GPU of this host. */
static int send_to_peer(struct execution *e, uint32_t lane,
			const uint8_t *from)
{
	const struct cursor *c = &e->cursors[lane];
	uint32_t peer = e->p->lanes[lane].peer, bytes = c->count * e->size;
	int ret = fxi_peer_copy(e->coll, peer, e->tag,
				fxi_execution_word(e, c), from, bytes);

	if (ret)
		return ret;
	e->flying[c->act] = true;
	count_sent(e, peer, bytes);
	return 0;
}

/*
 * Has the receiver a slot on a GPU, and does the payload get there? What has to
 * go through its mailbox does not fit there at once.
 */
static bool goes_to_gpu(struct execution *e, uint32_t lane)
{
	const struct cursor *c = &e->cursors[lane];
	uint32_t peer = e->p->lanes[lane].peer;
	const struct device_offer *offer;
	const uint8_t *from;

	if (!e->flying || !fxi_link_device_known(e->comm, peer))
		return false;
	if (fxi_peer_reached(e->coll, peer))
		return true;
	offer = fxi_link_offered(e->comm, peer);
	if (!offer || !offer->rkey)
		return false;
	from = own(e, c);
	return from && fxi_region_has(e, peer, from, (c->end - c->at) *
						    e->size);
}

void fxi_pass_widen(struct execution *e, uint32_t lane)
{
	struct cursor *c = &e->cursors[lane];

	if (c->act != FINISHED && c->at == c->start && c->at + c->count < c->end &&
	    goes_to_gpu(e, lane))
		fxi_execution_widen(c);
}

/* -EAGAIN: no room, or not yet its turn. */
static int send_next(struct execution *e, uint32_t lane)
{
	const struct cursor *c = &e->cursors[lane];
	uint32_t peer = e->p->lanes[lane].peer;
	bool copied = e->flying && c->count * e->size > LINK_SMALL && e->gpu &&
		      fxi_peer_reached(e->coll, peer);
	const uint8_t *from;
	void *room;

	/* Messages to a rank stay in order. */
	if (!copied && fxi_peer_copying(e->comm, peer))
		return -EAGAIN;
	room = copied ? NULL : fxi_link_room(e->comm, peer, LINK_COLL);
	if (!copied && !room)
		return -EAGAIN;
	from = own(e, c);
	if (!from)
		return -ENOMEM;
	return copied ? send_to_peer(e, lane, from) :
			send_from(e, lane, room, from);
}

int fxi_pass_send(struct execution *e, uint32_t lane)
{
	int ret;

	if (fxi_pass_unknown(e, e->p->lanes[lane].peer))
		return 0;
	ret = send_next(e, lane);
	if (ret)
		return ret == -EAGAIN ? 0 : ret;
	fxi_execution_advance(e, lane);
	return 1;
}

/* The piece is reduced into, or replaced by, what has arrived; a GPU begins it. */
static int take_piece(struct execution *e, const struct cursor *c, void *to,
		      const void *payload)
{
	const struct act *act = act_of(e, c);
	struct pass pass;
	size_t bytes = (size_t)c->count * e->size;
	bool swap = act->flags & ACT_SWAP, full = act->flags & ACT_FULL;

	if (!(act->flags & ACT_REDUCE) && e->gpu)
		return fxi_coll_begin_move_gpu(e->coll, to, payload, bytes);
	if (!(act->flags & ACT_REDUCE)) {
		fxi_copy(to, payload, bytes, false);
		return 0;
	}
	pass.dst[0] = to;
	pass.ndst = 1;
	pass.src[swap] = own(e, c);
	pass.src[!swap] = payload;
	pass.nsrc = 2;
	if (e->gpu)
		return fxi_coll_begin_add_gpu(e->coll, to, pass.src[0],
					      pass.src[1], c->count,
					      divisor_of(e, full));
	perform(e, &pass, c->count, full);
	return 0;
}

/* Into this rank's memory, from where it may be sent on later. */
static int receive_alone(struct execution *e, uint32_t lane)
{
	struct cursor *c = &e->cursors[lane];
	uint32_t peer = e->p->lanes[lane].peer;
	const struct link_message *m;
	const void *payload;
	void *to = home(e, c);
	int ret;

	if (!to)
		return -ENOMEM;
	m = fxi_link_peek(e->comm, peer, LINK_COLL);
	ret = fxi_coll_payload(e->coll, peer, m, &payload);
	if (!ret)
		ret = take_piece(e, c, to, payload);
	if (e->gpu)
		e->begun[e->nbegun++] = (struct begun){ lane, e->aside, *c };
	if (ret)
		return ret;
	if (!e->gpu)
		pop(e, lane);
	return 1;
}

static void pop_begun(struct execution *e, const struct begun *b)
{
	struct cursor in_turn = e->cursors[b->lane];

	e->aside = b->aside;
	e->cursors[b->lane] = b->cursor;
	pop(e, b->lane);
	if (b->aside)
		e->cursors[b->lane] = in_turn;
	e->aside = false;
}

int fxi_pass_settle(struct execution *e, bool failed)
{
	uint32_t i, n = e->nbegun;
	int ret;

	if (likely(!n))
		return 0;
	e->nbegun = 0;
	ret = fxi_coll_wait_gpu(e->coll);
	for (i = 0; i < n && !ret && !failed; i++)
		pop_begun(e, &e->begun[i]);
	return ret;
}

/* ---- a run ------------------------------------------------------------- */

/* The lane where the act is next, with the same message; FINISHED: it is not. */
static uint32_t lane_at(const struct execution *e, uint32_t act,
			const struct cursor *like)
{
	uint32_t lane = e->p->lane_of[act];
	const struct cursor *c = &e->cursors[lane];

	return c->act == act && c->at == like->at && c->count == like->count ?
	       lane : FINISHED;
}

/* This rank's own value is an operand, too. */
static bool add_own(struct execution *e, const struct cursor *c,
		    struct pass *pass)
{
	pass->src[pass->nsrc] = own(e, c);
	return pass->src[pass->nsrc++] != NULL;
}

enum { WAIT, GO, APART };

/* Has all that the run receives arrived? Or a negative errno. */
static int gather_sources(struct execution *e, const struct cursor *c,
			  struct pass *pass)
{
	const struct act *act = act_of(e, c);
	const struct link_message *m;
	uint32_t i, lane, peer;
	int ret;

	pass->nsrc = 0;
	if (act->flags & ACT_REDUCE && !(act->flags & ACT_SWAP) &&
	    !add_own(e, c, pass))
		return -ENOMEM;
	for (i = 0; i < act->receives; i++) {
		lane = lane_at(e, c->act + i, c);
		if (lane == FINISHED)
			return APART;
		peer = act[i].peer;
		m = fxi_link_peek(e->comm, peer, LINK_COLL);
		if (!m)
			return WAIT;
		ret = fxi_execution_check(e, lane, m);
		if (!ret && e->cursors[lane].count != c->count)
			return APART;
		if (!ret)
			ret = fxi_coll_payload(e->coll, peer, m,
					       &pass->src[pass->nsrc++]);
		if (ret)
			return ret;
		if (act[i].flags & ACT_SWAP && !add_own(e, c, pass))
			return -ENOMEM;
	}
	return GO;
}

/*
 * Room for those sends that are next in their lanes; the others are sent later
 * from this rank's memory.
 */
static int gather_targets(struct execution *e, const struct cursor *c,
			  struct pass *pass)
{
	const struct act *act = act_of(e, c);
	bool small = c->count * e->size <= LINK_SMALL;
	uint32_t first = c->act + act->receives, i, lane;
	void *room;

	pass->ndst = 0;
	for (i = first; i < first + act->sends; i++) {
		lane = lane_at(e, i, c);
		if (lane == FINISHED)
			continue;
		room = fxi_link_room(e->comm, e->p->acts[i].peer, LINK_COLL);
		if (!room && e->unmoved < PATIENCE)
			return WAIT;
		if (!room)
			continue;
		pass->lanes[pass->ndst] = lane;
		pass->dst[pass->ndst] = small ? pass->small[pass->ndst] : room;
		pass->ndst++;
	}
	pass->nlanes = pass->ndst;
	return GO;
}

static int send_all(struct execution *e, const struct pass *pass)
{
	uint32_t i;
	int ret = 0;

	for (i = 0; !ret && i < pass->nlanes; i++)
		ret = send_message(e, pass->lanes[i], pass->dst[i]);
	return ret;
}

static int perform_run(struct execution *e, struct cursor *c,
		       struct pass *pass)
{
	const struct act *act = act_of(e, c);
	uint32_t first = c->act, receives = act->receives, i;
	int ret;

	if (act->flags & ACT_KEEP || pass->nlanes < act->sends) {
		pass->dst[pass->ndst] = home(e, c);
		if (!pass->dst[pass->ndst++])
			return -ENOMEM;
	}
	perform(e, pass, c->count, act[receives - 1].flags & ACT_FULL);
	ret = send_all(e, pass);
	if (ret)
		return ret;
	for (i = 0; i < receives; i++)
		pop(e, e->p->lane_of[first + i]);
	for (i = 0; i < pass->nlanes; i++)
		fxi_execution_advance(e, pass->lanes[i]);
	return 1;
}

int fxi_pass_receive(struct execution *e, uint32_t lane)
{
	struct cursor *c = &e->cursors[lane];
	const struct act *act = act_of(e, c);
	struct pass pass;
	int ret;

	if (e->gpu || e->aside || (act->receives == 1 && !act->sends) ||
	    (act->receives > 1 && e->rounding) ||
	    c->count * e->size > fxi_link_size(e->comm))
		return receive_alone(e, lane);
	ret = gather_sources(e, c, &pass);
	if (ret == APART || (ret == WAIT && e->unmoved >= PATIENCE))
		return receive_alone(e, lane);
	if (ret == GO)
		ret = gather_targets(e, c, &pass);
	if (ret != GO)
		return ret < 0 ? ret : 0;
	return perform_run(e, c, &pass);
}

/* ---- what needs no transfer -------------------------------------------- */

/* The part that is being copied, or the next; NULL: there is none. */
static const struct part_memory *copied_part(struct execution *e)
{
	const struct local_part *part;
	const struct part_memory *memory;

	for (; e->copying < e->p->nparts; e->copying++, e->copied = 0) {
		part = &e->p->parts[e->copying];
		memory = &e->memory[e->copying];
		if (part->begins && part->ends && !part->writes &&
		    memory->own != memory->home && e->copied < memory->count)
			return memory;
	}
	return NULL;
}

int fxi_pass_copy(struct execution *e)
{
	const struct part_memory *memory = copied_part(e);
	uint64_t at, end;
	int ret = 0;

	if (!memory)
		return 0;
	at = e->copied * e->size;
	e->copied += COPY / e->size;
	if (e->copied > memory->count)
		e->copied = memory->count;
	end = e->copied * e->size;
	if (e->gpu)
		ret = fxi_coll_move_gpu(e->coll, memory->home + at,
					memory->own + at, end - at);
	else
		fxi_copy(memory->home + at, memory->own + at, end - at, false);
	return ret ? ret : 1;
}
