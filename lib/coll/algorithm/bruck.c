// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Few messages: ranks stand in a circle, and in each round every rank sends all
 * that it has to RADIX - 1 ranks behind it, which so have RADIX times as much.
 * For short all-gathers and all-reduces of many ranks; reductions go from rank
 * 0 to the last, at every rank. Called through fxi_bruck, and by flat.c and
 * zero_copy.c.
 *
 * J. Bruck et al.: Efficient algorithms for all-to-all communications in
 * multiport message-passing systems. IEEE TPDS 8 (1997). Without bytes it is
 * the dissemination barrier: D. Hensgen, R. Finkel, U. Manber: Two algorithms
 * for barrier synchronization. Int. J. Parallel Program. 17 (1988).
 */
#include <errno.h>
#include <stdlib.h>

#include "coll/algorithm/bruck.h"

/*
 * A larger one takes fewer rounds with more messages each: 64 ranks take two
 * rounds with 7. Up to 8 ranks there is one round.
 */
#define RADIX		8u
/*
 * Slots that a message takes at most: of a pair's, as many are always free to
 * the sender's knowledge, since credits are told by halves.
 */
#define PIECES		(LINK_SLOTS / 2)

struct bruck {
	uint32_t phase;		/* of its messages */
	uint32_t bytes;		/* of a block */
	uint32_t held;		/* blocks, in the rounds before */
	uint32_t sent, taken;	/* messages of this round, */
	uint32_t out, in;	/* and bytes of the next ones */
	uint64_t room;		/* bytes of @blocks */
	uint8_t *blocks;	/* this rank's, the next rank's, and so on */
	const void **sources;	/* of a reduction, by rank */
};

int fxi_bruck_make(struct fabrex_comm *comm)
{
	struct bruck *b = calloc(1, sizeof(*b));

	comm->bruck = b;
	if (b)
		b->sources = calloc(comm->size, sizeof(*b->sources));
	if (b && b->sources)
		return 0;
	return fxi_error(ENOMEM, "communicator: out of memory");
}

void fxi_bruck_free(struct fabrex_comm *comm)
{
	if (comm->bruck) {
		free(comm->bruck->blocks);
		free(comm->bruck->sources);
	}
	free(comm->bruck);
	comm->bruck = NULL;
}

/* ---- rounds ------------------------------------------------------------ */

uint32_t fxi_bruck_most(const struct fabrex_comm *comm)
{
	uint32_t held = 1;

	while (held * RADIX < comm->size)
		held *= RADIX;
	return PIECES * fxi_link_size(comm) / held;
}

int fxi_bruck_begin(struct fabrex_coll *coll, uint32_t phase, uint32_t bytes)
{
	struct bruck *b = coll->comm->bruck;
	uint64_t room = (uint64_t)bytes * coll->comm->size;

	b->phase = phase;
	b->bytes = bytes;
	b->held = 1;
	b->sent = b->taken = b->out = b->in = 0;
	if (likely(room <= b->room))
		return 0;
	free(b->blocks);
	b->room = 0;
	b->blocks = malloc(room);
	if (!b->blocks)
		return fxi_error(ENOMEM, "%s: no memory for %llu bytes of all ranks",
				 fxi_kind_name(coll->what.kind),
				 (unsigned long long)room);
	b->room = room;
	return 0;
}

uint8_t *fxi_bruck_block(const struct fabrex_comm *comm, uint32_t rank)
{
	const struct bruck *b = comm->bruck;

	return b->blocks + (uint64_t)b->bytes *
			   ((rank + comm->size - comm->rank) % comm->size);
}

/* Blocks of message @i of this round; 0: there is none. */
static uint32_t message_blocks(const struct fabrex_comm *comm, uint32_t i)
{
	uint32_t held = comm->bruck->held, distance = (i + 1) * held;

	if (i + 1 >= RADIX || distance >= comm->size)
		return 0;
	return comm->size - distance < held ? comm->size - distance : held;
}

static uint32_t piece_length(const struct fabrex_comm *comm, uint32_t length,
			     uint32_t at)
{
	uint32_t rest = length - at, size = fxi_link_size(comm);

	return rest < size ? rest : size;
}

/* The next piece of a message. 1: sent; 0: there is no room; or a failure. */
static int send_next(struct fabrex_coll *coll, uint32_t length)
{
	struct fabrex_comm *comm = coll->comm;
	struct bruck *b = comm->bruck;
	uint32_t distance = (b->sent + 1) * b->held;
	uint32_t rank = (comm->rank + comm->size - distance) % comm->size;
	uint32_t n = piece_length(comm, length, b->out);
	const void *from = n ? b->blocks + b->out : (const void *)"";
	void *room;
	int ret = 0;

	if (n > LINK_SMALL) {
		room = fxi_link_room(comm, rank, LINK_COLL);
		if (room)
			fxi_copy(room, from, n, false);
		else
			ret = -EAGAIN;
		from = NULL;
	}
	if (!ret)
		ret = fxi_link_send(comm, rank, LINK_COLL,
				    fxi_coll_tag(coll, b->phase),
				    fxi_coll_word(coll), from, n);
	if (ret == -EAGAIN) {
		coll->waiting = rank;
		return 0;
	}
	b->out += n;
	if (b->out == length) {
		b->out = 0;
		b->sent++;
	}
	return ret ? ret : 1;
}

/* The next piece of a message. 1: taken; 0: it is not here; or a failure. */
static int take_next(struct fabrex_coll *coll, uint32_t length)
{
	struct fabrex_comm *comm = coll->comm;
	struct bruck *b = comm->bruck;
	uint32_t distance = (b->taken + 1) * b->held;
	uint32_t rank = (comm->rank + distance) % comm->size;
	uint32_t n = piece_length(comm, length, b->in);
	int ret = fxi_coll_expect(coll, rank, b->phase, n);

	if (ret <= 0)
		return ret;
	if (n)
		fxi_copy(b->blocks + (uint64_t)distance * b->bytes + b->in,
			 fxi_link_payload(comm, rank, LINK_COLL), n, false);
	fxi_link_pop(comm, rank, LINK_COLL);
	b->in += n;
	if (b->in == length) {
		b->in = 0;
		b->taken++;
	}
	return 1;
}

/*
 * No rank waits forever: there is at most one message from one rank to another,
 * of PIECES pieces, and a rank has taken all of them before it ends. So for the
 * rank that is furthest behind there is room at all others.
 */
int fxi_bruck_step(struct fabrex_coll *coll)
{
	struct fabrex_comm *comm = coll->comm;
	struct bruck *b = comm->bruck;
	uint32_t blocks;
	int ret;

	while (b->held < comm->size) {
		while ((blocks = message_blocks(comm, b->sent))) {
			ret = send_next(coll, blocks * b->bytes);
			if (ret <= 0)
				return ret;
		}
		while ((blocks = message_blocks(comm, b->taken))) {
			ret = take_next(coll, blocks * b->bytes);
			if (ret <= 0)
				return ret;
		}
		b->sent = b->taken = 0;
		b->held *= RADIX;
	}
	return 1;
}

/* ---- as an algorithm --------------------------------------------------- */

static bool bruck_usable(const struct fabrex_comm *comm,
			 const struct fabrex_collective *what)
{
	return fxi_count_bytes(what) <= fxi_bruck_most(comm);
}

static int bruck_start(struct fabrex_coll *coll)
{
	struct fabrex_comm *comm = coll->comm;
	uint32_t bytes = (uint32_t)fxi_count_bytes(&coll->what);
	int ret = fxi_bruck_begin(coll, 0, bytes);

	if (!ret && bytes)
		fxi_copy(fxi_bruck_block(comm, comm->rank), coll->what.send,
			 bytes, false);
	return ret;
}

static void reduce(struct fabrex_coll *coll)
{
	const struct fabrex_collective *what = &coll->what;
	struct fabrex_comm *comm = coll->comm;
	void *to = what->recv;
	const struct reduce r = {
		.dst = &to, .src = comm->bruck->sources, .ndst = 1,
		.nsrc = comm->size, .count = what->count, .type = what->type,
		.op = what->op,
		.divisor = what->op == FABREX_AVG ? comm->size : 0,
	};
	uint32_t rank;

	for (rank = 0; rank < comm->size; rank++)
		comm->bruck->sources[rank] = fxi_bruck_block(comm, rank);
	fxi_reduce(&r);
}

/* From this rank's part of recv to its end, and those before it. */
static void store(struct fabrex_coll *coll)
{
	struct fabrex_comm *comm = coll->comm;
	const struct bruck *b = comm->bruck;
	uint64_t before = (uint64_t)comm->rank * b->bytes;
	uint64_t after = (uint64_t)comm->size * b->bytes - before;
	uint8_t *recv = coll->what.recv;

	fxi_copy(recv + before, b->blocks, after, false);
	fxi_copy(recv, b->blocks + after, before, false);
}

static int bruck_step(struct fabrex_coll *coll)
{
	int ret = fxi_bruck_step(coll);

	if (ret <= 0)
		return ret;
	if (coll->what.op)
		reduce(coll);
	else if (coll->what.kind == FABREX_ALL_GATHER)
		store(coll);
	return 1;
}

static void bruck_end(struct fabrex_coll *coll)
{
	(void)coll;
}

const struct algorithm fxi_bruck = {
	.name = "bruck",
	.kinds = 1u << FABREX_ALL_REDUCE | 1u << FABREX_ALL_GATHER |
		 1u << FABREX_BARRIER,
	.host_only = true,
	.make = fxi_bruck_make,
	.free = fxi_bruck_free,
	.usable = bruck_usable,
	.start = bruck_start,
	.step = bruck_step,
	.end = bruck_end,
};
