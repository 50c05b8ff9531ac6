/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The algorithms. Stands on operation/; table.c chooses among those of
 * collectives, progress.c runs them, and SENDs and RECVs beside them.
 *
 *   flat.c        one step: every rank sends to every rank concerned
 *   flatv.c       the same for blocks of different lengths
 *   bruck.c       few messages, in rounds: bruck.h
 *   zero_copy.c   straight in the memory of all ranks
 *   staged.c      all-reduce through the slots of the links
 *   execute.c lane.c pass.c region.c    as a schedule prescribes
 *   sendrecv.c    SEND and RECV
 */
#ifndef LIB_COLL_ALGORITHM_H
#define LIB_COLL_ALGORITHM_H

#include "coll/operation/operation.h"

/*
 * Turns that one step takes at most, and messages of a pair of ranks in each.
 * Who calls fabrex_coll_test() has other things to do, however much the other
 * ranks have ready.
 */
#define STEP_TURNS	4u
#define STEP_MESSAGES	4u

/*
 * Bytes of a vector that a rank reduces for all, at least. It reads them at all
 * ranks, and writes them there: with many of them, what counts is how many pages
 * and messages that takes altogether, so that few ranks with a page each are
 * faster than all with a line.
 */
#define SHARE_MANY	64u	/* ranks from which a share is a page */

static inline uint32_t fxi_share_least(const struct fabrex_comm *comm)
{
	return comm->size < SHARE_MANY ? 64 : 4096;
}

extern const struct algorithm fxi_flat, fxi_flatv, fxi_bruck, fxi_zero_copy,
			      fxi_staged, fxi_scheduled;

/* ---- sendrecv.c -------------------------------------------------------- */

int fxi_sendrecv_make(struct fabrex_comm *comm);
void fxi_sendrecv_free(struct fabrex_comm *comm);
/*
 * Begins one, of which fxi_coll_find_gpu() has been asked, and advances all. 0, or
 * a negative errno that the communicator does not survive.
 */
int fxi_sendrecv_begin(struct fabrex_coll *coll);
int fxi_sendrecv_progress(struct fabrex_comm *comm);
/*
 * The caller starts nothing else before it ends: an error if it is to this
 * rank.
 */
void fxi_sendrecv_alone(struct fabrex_coll *coll);
/* A rank that one of them waits for, or UINT32_MAX. */
uint32_t fxi_sendrecv_waiting(const struct fabrex_comm *comm);
/* All of them end with @error. */
void fxi_sendrecv_give_up(struct fabrex_comm *comm, int error);

static inline bool fxi_is_sendrecv(const struct fabrex_coll *coll)
{
	return coll->what.kind == FABREX_SEND || coll->what.kind == FABREX_RECV;
}

static inline bool fxi_sendrecv_busy(const struct fabrex_comm *comm)
{
	return comm->nsendrecv || comm->skipping;
}

#endif
