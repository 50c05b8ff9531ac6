// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * One step: every rank sends what it has for another rank there, in pieces if
 * it is long. The fastest for few bytes, and for every transport. Reductions go
 * from rank 0 to the last, at every rank. Called through fxi_flat.
 */
#include <errno.h>
#include <stdlib.h>

#include "coll/algorithm/bruck.h"
#include "coll/operation/gpu.h"

#define ROUNDS_FROM	9u	/* ranks from which barriers are bruck.c's */

struct flat {
	uint64_t bytes;		/* that one rank sends to another */
	uint64_t size;		/* of a piece */
	uint64_t pieces;
	uint64_t done;		/* pieces taken */
	uint32_t next;		/* ranks whose piece is here, of from */
	uint32_t nto, nfrom;
	uint32_t *to, *from;	/* ranks */
	uint64_t *sent;		/* pieces, by index in to */
	const void **sources;	/* of a reduction, by rank */
};

static int flat_make(struct fabrex_comm *comm)
{
	struct flat *f = calloc(1, sizeof(*f));

	comm->flat = f;
	if (!f)
		goto fail;
	f->to = calloc(comm->size, sizeof(*f->to));
	f->from = calloc(comm->size, sizeof(*f->from));
	f->sent = calloc(comm->size, sizeof(*f->sent));
	f->sources = calloc(comm->size, sizeof(*f->sources));
	if (f->to && f->from && f->sent && f->sources)
		return 0;
fail:
	return fxi_error(ENOMEM, "communicator: out of memory");
}

static void flat_free(struct fabrex_comm *comm)
{
	struct flat *f = comm->flat;

	if (!f)
		return;
	free(f->to);
	free(f->from);
	free(f->sent);
	free(f->sources);
	free(f);
	comm->flat = NULL;
}

/* ---- who, and what ----------------------------------------------------- */

static bool reduces(const struct fabrex_coll *coll)
{
	return coll->what.op;
}

/* Each rank gets another part of send. */
static bool parts(const struct fabrex_coll *coll)
{
	return coll->what.kind == FABREX_REDUCE_SCATTER ||
	       coll->what.kind == FABREX_ALL_TO_ALL;
}

static bool sends_to(const struct fabrex_coll *coll, uint32_t rank)
{
	if (coll->what.kind == FABREX_BROADCAST)
		return coll->comm->rank == coll->what.root;
	if (coll->what.kind == FABREX_REDUCE)
		return rank == coll->what.root;
	return true;
}

static bool takes_from(const struct fabrex_coll *coll, uint32_t rank)
{
	if (coll->what.kind == FABREX_BROADCAST)
		return rank == coll->what.root;
	if (coll->what.kind == FABREX_REDUCE)
		return coll->comm->rank == coll->what.root;
	return true;
}

static const char *source(const struct fabrex_coll *coll, uint32_t rank)
{
	const char *send = coll->what.send;

	return parts(coll) ? send + rank * coll->comm->flat->bytes : send;
}

static char *target(const struct fabrex_coll *coll, uint32_t rank)
{
	char *recv = coll->what.recv;

	if (coll->what.kind == FABREX_ALL_GATHER ||
	    coll->what.kind == FABREX_ALL_TO_ALL)
		return recv + rank * coll->comm->flat->bytes;
	return recv;
}

/* What a rank has for itself, unless that is reduced. */
static int copy_own(struct fabrex_coll *coll)
{
	const struct fabrex_comm *comm = coll->comm;
	const char *from = source(coll, comm->rank);
	char *to = target(coll, comm->rank);

	if (reduces(coll) || from == to || !comm->flat->bytes ||
	    (coll->what.kind == FABREX_BROADCAST &&
	     comm->rank != coll->what.root))
		return 0;
	return fxi_coll_copy_own(coll, to, from, comm->flat->bytes);
}

/* Begins with the next rank, so that not all send to the same one. */
static void list_ranks(struct fabrex_coll *coll)
{
	struct fabrex_comm *comm = coll->comm;
	struct flat *f = comm->flat;
	uint32_t i, rank = comm->rank;

	f->nto = f->nfrom = 0;
	for (i = 1; i < comm->size; i++) {
		rank = rank + 1 == comm->size ? 0 : rank + 1;
		if (sends_to(coll, rank)) {
			f->sent[f->nto] = 0;
			f->to[f->nto++] = rank;
		}
		if (takes_from(coll, rank))
			f->from[f->nfrom++] = rank;
	}
}

static bool in_rounds(const struct fabrex_coll *coll)
{
	return coll->what.kind == FABREX_BARRIER &&
	       coll->comm->size >= ROUNDS_FROM;
}

static int flat_start(struct fabrex_coll *coll)
{
	struct flat *f = coll->comm->flat;

	if (in_rounds(coll))
		return fxi_bruck_begin(coll, 0, 0);
	f->bytes = fxi_count_bytes(&coll->what);
	f->size = fxi_link_size(coll->comm) & ~63u;
	f->pieces = f->bytes <= LINK_SMALL ? 1 :
		    (f->bytes + f->size - 1) / f->size;
	f->next = 0;
	list_ranks(coll);
	f->done = f->nfrom ? 0 : f->pieces;
	return copy_own(coll);
}

static void flat_end(struct fabrex_coll *coll)
{
	(void)coll;
}

/* ---- sending ----------------------------------------------------------- */

static uint32_t piece_length(const struct flat *f, uint64_t piece)
{
	uint64_t rest = f->bytes - piece * f->size;

	return (uint32_t)(rest < f->size ? rest : f->size);
}

/* 0; -EAGAIN: there is no room. */
static int send_piece(struct fabrex_coll *coll, uint32_t rank, uint64_t piece)
{
	struct fabrex_comm *comm = coll->comm;
	const struct flat *f = comm->flat;
	const char *from = source(coll, rank) + piece * f->size;
	uint32_t n = piece_length(f, piece);
	void *room;
	int ret;

	if (n > LINK_SMALL || unlikely(coll->send_kind && n)) {
		room = fxi_link_room(comm, rank, LINK_COLL);
		if (!room)
			return -EAGAIN;
		ret = fxi_coll_copy_in(coll, room, from, n);
		if (ret)
			return ret;
		from = NULL;
	}
	return fxi_link_send(comm, rank, LINK_COLL, fxi_coll_tag(coll, 0),
			     fxi_coll_word(coll), n ? from : (const void *)"",
			     n);
}

/* As many as one turn may send. 1: all are sent; 0: not; or a failure. */
static int send_pieces(struct fabrex_coll *coll)
{
	struct flat *f = coll->comm->flat;
	bool all = true;
	uint32_t i, n;
	int ret;

	for (i = 0; i < f->nto; i++) {
		for (n = 0; n < STEP_MESSAGES && f->sent[i] < f->pieces; n++) {
			ret = send_piece(coll, f->to[i], f->sent[i]);
			if (ret == -EAGAIN)
				break;
			if (ret)
				return ret;
			f->sent[i]++;
		}
		if (f->sent[i] < f->pieces) {
			coll->waiting = f->to[i];
			all = false;
		}
	}
	return all;
}

/* ---- taking ------------------------------------------------------------ */

/* The piece of @rank to its place in recv. */
static int store(struct fabrex_coll *coll, uint32_t rank)
{
	struct flat *f = coll->comm->flat;
	uint32_t n = piece_length(f, f->done);
	int ret = 0;

	if (n)
		ret = fxi_coll_copy_out(coll, target(coll, rank) +
					f->done * f->size,
					fxi_link_payload(coll->comm, rank,
							 LINK_COLL), n);
	fxi_link_pop(coll->comm, rank, LINK_COLL);
	return ret;
}

/* In place, what will be overwritten has to be sent first. */
static bool sent_to_all(const struct flat *f)
{
	uint32_t i;

	for (i = 0; i < f->nto; i++)
		if (f->sent[i] <= f->done)
			return false;
	return true;
}

static int reduce_piece(struct fabrex_coll *coll)
{
	const struct fabrex_collective *what = &coll->what;
	struct fabrex_comm *comm = coll->comm;
	struct flat *f = comm->flat;
	uint64_t offset = f->done * f->size;
	void *to = target(coll, comm->rank) + offset;
	const struct reduce r = {
		.dst = &to, .src = f->sources, .ndst = 1, .nsrc = comm->size,
		.count = piece_length(f, f->done) /
			 fxi_type_size(what->type),
		.type = what->type, .op = what->op,
		.divisor = what->op == FABREX_AVG ? comm->size : 0,
	};
	uint32_t i;
	int ret;

	f->sources[comm->rank] = source(coll, comm->rank) + offset;
	for (i = 0; i < f->nfrom; i++)
		f->sources[f->from[i]] =
			fxi_link_payload(comm, f->from[i], LINK_COLL);
	ret = fxi_coll_reduce(coll, &r);
	for (i = 0; i < f->nfrom; i++)
		fxi_link_pop(comm, f->from[i], LINK_COLL);
	return ret;
}

/* The next piece from everybody. 1: taken; 0: it is not all here. */
static int take_piece(struct fabrex_coll *coll)
{
	struct flat *f = coll->comm->flat;
	uint32_t n = piece_length(f, f->done);
	int ret;

	for (; f->next < f->nfrom; f->next++) {
		ret = fxi_coll_expect(coll, f->from[f->next], 0, n);
		if (ret <= 0)
			return ret;
		ret = reduces(coll) ? 0 : store(coll, f->from[f->next]);
		if (ret)
			return ret;
	}
	if (reduces(coll)) {
		if (!sent_to_all(f))
			return 0;
		ret = reduce_piece(coll);
		if (ret)
			return ret;
	}
	f->next = 0;
	f->done++;
	return 1;
}

static int flat_step(struct fabrex_coll *coll)
{
	struct flat *f = coll->comm->flat;
	uint32_t turns = 0;
	int ret, all;

	if (in_rounds(coll))
		return fxi_bruck_step(coll);
	do {
		all = send_pieces(coll);
		if (all < 0)
			return all;
		if (f->done == f->pieces)
			return all;
		ret = take_piece(coll);
		if (ret < 0)
			return ret;
	} while (ret && ++turns < STEP_TURNS);
	return 0;
}

const struct algorithm fxi_flat = {
	.name = "flat",
	.kinds = 1u << FABREX_ALL_REDUCE | 1u << FABREX_ALL_GATHER |
		 1u << FABREX_REDUCE_SCATTER | 1u << FABREX_BROADCAST |
		 1u << FABREX_REDUCE | 1u << FABREX_ALL_TO_ALL |
		 1u << FABREX_BARRIER,
	.make = flat_make,
	.free = flat_free,
	.start = flat_start,
	.step = flat_step,
	.end = flat_end,
};
