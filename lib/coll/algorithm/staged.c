// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * All-reduce through the slots of the links, for buffers that others cannot
 * reach. In each round every rank copies a piece of its input into the slots of
 * each rank; that one reduces what it got into its own output and into the
 * slots of all, who copy it out. Pieces are small enough to stay in caches.
 * Reductions go from rank 0 to the last. Called through fxi_staged.
 */
#include <errno.h>
#include <stdlib.h>

#include "coll/algorithm/algorithm.h"
#include "coll/operation/gpu.h"

enum { TAG_INPUT = 3, TAG_RESULT };

/*
 * Parts of a round: send inputs, take the results of the round before, take
 * inputs, find room for the result. The order is the same at all ranks, and
 * therefore that of the messages between two of them.
 */
enum { INPUT, RESULT, TAKE, ROOM, PARTS };

struct staged {
	uint64_t bytes;
	uint64_t size;		/* of a piece */
	uint64_t round, rounds;
	uint32_t part;		/* of the round */
	uint32_t next;		/* ranks dealt with in this part: the first i */
	const void **sources;	/* by rank */
	void **targets;
};

static int staged_make(struct fabrex_comm *comm)
{
	struct staged *s = calloc(1, sizeof(*s));

	comm->staged = s;
	if (!s)
		goto fail;
	s->sources = calloc(comm->size, sizeof(*s->sources));
	s->targets = calloc(comm->size, sizeof(*s->targets));
	if (s->sources && s->targets)
		return 0;
fail:
	return fxi_error(ENOMEM, "communicator: out of memory");
}

static void staged_free(struct fabrex_comm *comm)
{
	struct staged *s = comm->staged;

	if (!s)
		return;
	free(s->sources);
	free(s->targets);
	free(s);
	comm->staged = NULL;
}

static int staged_start(struct fabrex_coll *coll)
{
	struct fabrex_comm *comm = coll->comm;
	struct staged *s = comm->staged;
	uint64_t round;

	s->bytes = fxi_count_bytes(&coll->what);
	s->size = (s->bytes / comm->size + 63) & ~63ull;
	if (s->size < fxi_share_least(comm))
		s->size = fxi_share_least(comm);
	if (s->size > fxi_link_size(comm))
		s->size = fxi_link_size(comm) & ~63u;
	round = s->size * comm->size;
	/* One more, for the last results. */
	s->rounds = (s->bytes + round - 1) / round + 1;
	s->round = 0;
	s->part = INPUT;
	s->next = 0;
	return 0;
}

static void staged_end(struct fabrex_coll *coll)
{
	(void)coll;
}

/* Piece of a rank in a round: where it is, and its length, which may be 0. */
static uint32_t piece(const struct fabrex_coll *coll, uint64_t round,
		      uint32_t rank, uint64_t *at)
{
	const struct staged *s = coll->comm->staged;
	uint64_t rest;

	*at = (round * coll->comm->size + rank) * s->size;
	if (*at >= s->bytes)
		return 0;
	rest = s->bytes - *at;
	return (uint32_t)(rest < s->size ? rest : s->size);
}

static uint32_t other(const struct fabrex_coll *coll, uint32_t i)
{
	return (coll->comm->rank + 1 + i) % coll->comm->size;
}

/* ---- messages ---------------------------------------------------------- */

/* Send what is in the room. */
static int send_room(struct fabrex_coll *coll, uint32_t rank, uint32_t phase,
		     uint32_t length)
{
	int ret = fxi_link_send(coll->comm, rank, LINK_COLL,
				fxi_coll_tag(coll, phase),
				fxi_coll_word(coll), NULL, length);

	return ret ? ret : 1;
}

static void *room_at(struct fabrex_coll *coll, uint32_t rank)
{
	void *room = fxi_link_room(coll->comm, rank, LINK_COLL);

	if (!room)
		coll->waiting = rank;
	return room;
}

/* ---- parts of a round -------------------------------------------------- */

/* Sends rank @i after this one its piece of this rank's input. */
static int send_input(struct fabrex_coll *coll, uint32_t i)
{
	uint32_t rank = other(coll, i), n;
	uint64_t at;
	void *room;
	int ret;

	n = piece(coll, coll->comm->staged->round, rank, &at);
	if (!n)
		return 1;
	room = room_at(coll, rank);
	if (!room)
		return 0;
	ret = fxi_coll_copy_in(coll, room, (const char *)coll->what.send + at,
			       n);
	return ret ? ret : send_room(coll, rank, TAG_INPUT, n);
}

/* Gets from it this rank's piece of its input, left in the slot for now. */
static int take_input(struct fabrex_coll *coll, uint32_t i)
{
	struct fabrex_comm *comm = coll->comm;
	struct staged *s = comm->staged;
	uint32_t rank = other(coll, i), n;
	uint64_t at;
	int ret;

	n = piece(coll, s->round, comm->rank, &at);
	if (!n)
		return 1;
	ret = fxi_coll_expect(coll, rank, TAG_INPUT, n);
	if (ret > 0)
		s->sources[rank] = fxi_link_payload(comm, rank, LINK_COLL);
	return ret;
}

/* Finds room for the result in its slots; needed at all of them. */
static int find_room(struct fabrex_coll *coll, uint32_t i)
{
	struct staged *s = coll->comm->staged;
	uint64_t at;

	if (!piece(coll, s->round, coll->comm->rank, &at))
		return 1;
	s->targets[1 + i] = room_at(coll, other(coll, i));
	return s->targets[1 + i] != NULL;
}

static int reduce_piece(struct fabrex_coll *coll, uint64_t at, uint32_t n)
{
	const struct fabrex_collective *what = &coll->what;
	struct fabrex_comm *comm = coll->comm;
	struct staged *s = comm->staged;
	const struct reduce r = {
		.dst = s->targets, .src = s->sources,
		.ndst = comm->size, .nsrc = comm->size,
		.count = n / fxi_type_size(what->type),
		.type = what->type, .op = what->op,
		.divisor = what->op == FABREX_AVG ? comm->size : 0,
	};

	s->sources[comm->rank] = (const char *)what->send + at;
	s->targets[0] = (char *)what->recv + at;
	return fxi_coll_reduce(coll, &r);
}

/* Reduces, and sends the result to the rooms that were found. */
static int send_result(struct fabrex_coll *coll)
{
	struct fabrex_comm *comm = coll->comm;
	uint64_t at;
	uint32_t i, n;
	int ret;

	n = piece(coll, comm->staged->round, comm->rank, &at);
	if (!n)
		return 1;
	ret = reduce_piece(coll, at, n);
	if (ret)
		return ret;
	for (i = 0; i < comm->size - 1; i++) {
		fxi_link_pop(comm, other(coll, i), LINK_COLL);
		ret = send_room(coll, other(coll, i), TAG_RESULT, n);
		if (ret < 0)
			return ret;
	}
	return 1;
}

/* Gets from it the result of its piece in the round before. */
static int take_result(struct fabrex_coll *coll, uint32_t i)
{
	struct fabrex_comm *comm = coll->comm;
	struct staged *s = comm->staged;
	uint32_t rank = other(coll, i), n;
	uint64_t at;
	int ret;

	if (!s->round)
		return 1;
	n = piece(coll, s->round - 1, rank, &at);
	if (!n)
		return 1;
	ret = fxi_coll_expect(coll, rank, TAG_RESULT, n);
	if (ret <= 0)
		return ret;
	ret = fxi_coll_copy_out(coll, (char *)coll->what.recv + at,
				fxi_link_payload(comm, rank, LINK_COLL), n);
	fxi_link_pop(comm, rank, LINK_COLL);
	return ret ? ret : 1;
}

/* ---- from the start to the end ----------------------------------------- */

static int do_part(struct fabrex_coll *coll, uint32_t i)
{
	switch (coll->comm->staged->part) {
	case INPUT:
		return send_input(coll, i);
	case RESULT:
		return take_result(coll, i);
	case TAKE:
		return take_input(coll, i);
	default:
		return find_room(coll, i);
	}
}

static int do_round(struct fabrex_coll *coll)
{
	struct fabrex_comm *comm = coll->comm;
	struct staged *s = comm->staged;
	int ret;

	for (; s->part < PARTS; s->part++) {
		for (; s->next < comm->size - 1; s->next++) {
			ret = do_part(coll, s->next);
			if (ret <= 0)
				return ret;
		}
		s->next = 0;
	}
	s->part = INPUT;
	return send_result(coll);
}

static int staged_step(struct fabrex_coll *coll)
{
	struct staged *s = coll->comm->staged;
	uint32_t turns = 0;
	int ret;

	do {
		ret = do_round(coll);
		if (ret <= 0)
			return ret;
		if (++s->round == s->rounds)
			return 1;
	} while (++turns < STEP_TURNS);
	return 0;
}

const struct algorithm fxi_staged = {
	.name = "staged",
	.kinds = 1u << FABREX_ALL_REDUCE,
	.make = staged_make,
	.free = staged_free,
	.start = staged_start,
	.step = staged_step,
	.end = staged_end,
};
