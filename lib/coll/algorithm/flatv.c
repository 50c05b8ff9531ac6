// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * One step, for blocks of different lengths: every rank sends every other one
 * its block, in pieces if it is long, and without bytes if it is empty, so that
 * ranks which disagree about a length always notice. Reductions go from rank 0
 * to the last. Called through fxi_flatv.
 */
#include <errno.h>
#include <stdlib.h>

#include "coll/algorithm/algorithm.h"
#include "coll/operation/blocks.h"
#include "coll/operation/gpu.h"

/* The block to, or of, another rank. */
struct flow {
	struct block block;
	uint64_t pieces;
	uint64_t done;		/* of these: sent, or taken */
};

struct flatv {
	uint64_t size;		/* of a piece */
	bool in_place;		/* what is sent is overwritten */
	uint32_t next;		/* of a reduction: ranks whose piece is here */
	struct flow *out, *in;	/* by rank */
	const void **sources;	/* of a reduction, by rank */
};

static int flatv_make(struct fabrex_comm *comm)
{
	struct flatv *f = calloc(1, sizeof(*f));

	comm->flatv = f;
	if (!f)
		goto fail;
	f->out = calloc(comm->size, sizeof(*f->out));
	f->in = calloc(comm->size, sizeof(*f->in));
	f->sources = calloc(comm->size, sizeof(*f->sources));
	if (f->out && f->in && f->sources)
		return 0;
fail:
	return fxi_error(ENOMEM, "communicator: out of memory");
}

static void flatv_free(struct fabrex_comm *comm)
{
	struct flatv *f = comm->flatv;

	if (!f)
		return;
	free(f->out);
	free(f->in);
	free(f->sources);
	free(f);
	comm->flatv = NULL;
}

/* ---- blocks and pieces ------------------------------------------------- */

static const char *source(const struct fabrex_coll *coll, uint32_t rank)
{
	return (const char *)coll->what.send +
	       coll->comm->flatv->out[rank].block.at;
}

static char *target(const struct fabrex_coll *coll, uint32_t rank)
{
	return (char *)coll->what.recv + coll->comm->flatv->in[rank].block.at;
}

static void set_flow(const struct flatv *f, struct flow *flow,
		     struct block block)
{
	flow->block = block;
	flow->pieces = block.bytes ? (block.bytes + f->size - 1) / f->size : 1;
	flow->done = 0;
}

/* The next one. */
static uint32_t piece_length(const struct flatv *f, const struct flow *flow)
{
	uint64_t rest = flow->block.bytes - flow->done * f->size;

	return (uint32_t)(rest < f->size ? rest : f->size);
}

/* Of elements, as both ranks have to know it. */
static uint64_t count_of(const struct fabrex_coll *coll,
			 const struct flow *flow)
{
	return flow->block.bytes / fxi_type_size(coll->what.type);
}

static bool reduces(const struct fabrex_coll *coll)
{
	return coll->what.kind == FABREX_REDUCE_SCATTERV;
}

/* What a rank has for itself, unless others have to be added. */
static int copy_own(struct fabrex_coll *coll)
{
	const struct fabrex_comm *comm = coll->comm;
	const char *from = source(coll, comm->rank);
	uint64_t bytes = comm->flatv->in[comm->rank].block.bytes;
	char *to = target(coll, comm->rank);

	if (from == to || !bytes || (reduces(coll) && comm->size > 1))
		return 0;
	return fxi_coll_copy_own(coll, to, from, bytes);
}

static int flatv_start(struct fabrex_coll *coll)
{
	struct fabrex_comm *comm = coll->comm;
	struct flatv *f = comm->flatv;
	struct blocks sends, recvs;
	uint32_t rank;

	f->size = fxi_link_size(comm) & ~63u;
	f->next = 0;
	f->in_place = coll->what.kind == FABREX_ALL_TO_ALLV &&
		      fxi_blocks_in_place(comm, &coll->what);
	fxi_send_blocks(comm, &coll->what, &sends);
	fxi_recv_blocks(comm, &coll->what, &recvs);
	for (rank = 0; rank < comm->size; rank++) {
		set_flow(f, &f->out[rank], fxi_blocks_next(&sends));
		set_flow(f, &f->in[rank], fxi_blocks_next(&recvs));
	}
	return copy_own(coll);
}

static void flatv_end(struct fabrex_coll *coll)
{
	(void)coll;
}

/* ---- sending ----------------------------------------------------------- */

/* 0; -EAGAIN: there is no room. */
static int send_piece(struct fabrex_coll *coll, uint32_t rank)
{
	struct fabrex_comm *comm = coll->comm;
	const struct flow *flow = &comm->flatv->out[rank];
	const char *from = source(coll, rank) + flow->done * comm->flatv->size;
	uint32_t n = piece_length(comm->flatv, flow);
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
			     fxi_coll_block_word(coll, count_of(coll, flow)),
			     n ? from : (const void *)"", n);
}

/*
 * As many as there is room for, but not more than slots: the others, too, wait
 * for this rank. 1: all are sent; 0: not; or a failure.
 */
static int send_some(struct fabrex_coll *coll, uint32_t rank)
{
	struct flow *flow = &coll->comm->flatv->out[rank];
	uint32_t n;
	int ret;

	for (n = 0; flow->done < flow->pieces; flow->done++, n++) {
		if (n == LINK_SLOTS)
			return 0;
		ret = send_piece(coll, rank);
		if (ret == -EAGAIN) {
			coll->waiting = rank;
			return 0;
		}
		if (ret)
			return ret;
	}
	return 1;
}

/* ---- taking ------------------------------------------------------------ */

static int expect(struct fabrex_coll *coll, uint32_t rank)
{
	const struct flatv *f = coll->comm->flatv;
	const struct flow *flow = &f->in[rank];

	return fxi_coll_expect_block(coll, rank, count_of(coll, flow),
				     piece_length(f, flow));
}

static int store(struct fabrex_coll *coll, uint32_t rank)
{
	struct flatv *f = coll->comm->flatv;
	uint32_t n = piece_length(f, &f->in[rank]);
	int ret = 0;

	if (n)
		ret = fxi_coll_copy_out(coll, target(coll, rank) +
					f->in[rank].done * f->size,
					fxi_link_payload(coll->comm, rank,
							 LINK_COLL), n);
	fxi_link_pop(coll->comm, rank, LINK_COLL);
	f->in[rank].done++;
	return ret;
}

/*
 * What is here, but not more than slots. In place, both ranks send a piece before they store that of
 * the other: as there is room for several, neither waits forever.
 */
static int take_some(struct fabrex_coll *coll, uint32_t rank)
{
	const struct flatv *f = coll->comm->flatv;
	const struct flow *in = &f->in[rank];
	uint32_t n;
	int ret;

	for (n = 0; in->done < in->pieces; n++) {
		if (n == LINK_SLOTS)
			return 0;
		ret = expect(coll, rank);
		if (ret <= 0)
			return ret;
		if (f->in_place && f->out[rank].done <= in->done) {
			coll->waiting = rank;
			return 0;
		}
		ret = store(coll, rank);
		if (ret)
			return ret;
	}
	return 1;
}

/* ---- reductions -------------------------------------------------------- */

static int reduce_piece(struct fabrex_coll *coll, uint32_t n)
{
	const struct fabrex_collective *what = &coll->what;
	struct fabrex_comm *comm = coll->comm;
	struct flatv *f = comm->flatv;
	uint64_t offset = f->in[comm->rank].done * f->size;
	void *to = target(coll, comm->rank) + offset;
	const struct reduce r = {
		.dst = &to, .src = f->sources, .ndst = 1, .nsrc = comm->size,
		.count = n / fxi_type_size(what->type),
		.type = what->type, .op = what->op,
		.divisor = what->op == FABREX_AVG ? comm->size : 0,
	};
	uint32_t rank;

	for (rank = 0; rank < comm->size; rank++)
		f->sources[rank] = rank == comm->rank ?
				   source(coll, rank) + offset :
				   fxi_link_payload(comm, rank, LINK_COLL);
	return fxi_coll_reduce(coll, &r);
}

/* The next piece of all ranks. 1: taken; 0: it is not all here. */
static int take_all(struct fabrex_coll *coll)
{
	struct fabrex_comm *comm = coll->comm;
	struct flatv *f = comm->flatv;
	uint32_t n = piece_length(f, &f->in[comm->rank]), rank;
	int ret = 0;

	for (; f->next < comm->size; f->next++) {
		if (f->next == comm->rank)
			continue;
		ret = expect(coll, f->next);
		if (ret <= 0)
			return ret;
	}
	f->next = 0;
	ret = n ? reduce_piece(coll, n) : 0;
	for (rank = 0; rank < comm->size; rank++) {
		if (rank != comm->rank)
			fxi_link_pop(comm, rank, LINK_COLL);
		f->in[rank].done++;
	}
	return ret ? ret : 1;
}

static int reduce_some(struct fabrex_coll *coll)
{
	const struct flow *in = &coll->comm->flatv->in[coll->comm->rank];
	int ret = 1;

	while (ret > 0 && in->done < in->pieces)
		ret = take_all(coll);
	return ret;
}

/* ---- as an algorithm --------------------------------------------------- */

/* Begins with the next rank, so that not all send to the same one. */
static int flatv_step(struct fabrex_coll *coll)
{
	struct fabrex_comm *comm = coll->comm;
	uint32_t i, rank = comm->rank;
	bool all = true;
	int ret;

	for (i = 1; i < comm->size; i++) {
		rank = rank + 1 == comm->size ? 0 : rank + 1;
		ret = send_some(coll, rank);
		if (ret >= 0 && !reduces(coll)) {
			all = all && ret;
			ret = take_some(coll, rank);
		}
		if (ret < 0)
			return ret;
		all = all && ret;
	}
	if (!reduces(coll) || comm->size == 1)
		return all;
	ret = reduce_some(coll);
	return ret > 0 ? all : ret;
}

const struct algorithm fxi_flatv = {
	.name = "flat",
	.kinds = 1u << FABREX_ALL_GATHERV | 1u << FABREX_REDUCE_SCATTERV |
		 1u << FABREX_ALL_TO_ALLV,
	.make = flatv_make,
	.free = flatv_free,
	.start = flatv_start,
	.step = flatv_step,
	.end = flatv_end,
};
