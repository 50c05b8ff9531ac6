/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A block of every rank to all ranks, in a number of rounds that grows with the
 * logarithm of the ranks. For bruck.c's own collectives, for barriers (blocks
 * without bytes), and for what zero_copy.c publishes.
 */
#ifndef LIB_COLL_BRUCK_H
#define LIB_COLL_BRUCK_H

#include "coll/algorithm/algorithm.h"

int fxi_bruck_make(struct fabrex_comm *comm);
void fxi_bruck_free(struct fabrex_comm *comm);
/* Bytes of a block, at most: the longest message has to fit into a few slots. */
uint32_t fxi_bruck_most(const struct fabrex_comm *comm);
/*
 * Begins one: @bytes from each rank, by messages of @phase. 0 or -ENOMEM. Then
 * this rank's block has to be stored, before fxi_bruck_step().
 */
int fxi_bruck_begin(struct fabrex_coll *coll, uint32_t phase, uint32_t bytes);
/* Of @rank: there from fxi_bruck_begin() on, all of them after the last step. */
uint8_t *fxi_bruck_block(const struct fabrex_comm *comm, uint32_t rank);
/* As step() of an algorithm. */
int fxi_bruck_step(struct fabrex_coll *coll);

#endif
