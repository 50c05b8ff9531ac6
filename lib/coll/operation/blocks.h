/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Blocks of different lengths: where those of each rank are in the caller's
 * buffers, as counts and displacements say. For collectives whose kind
 * fxi_kind_varies(), and their algorithm.
 */
#ifndef LIB_COLL_BLOCKS_H
#define LIB_COLL_BLOCKS_H

#include "coll/operation/operation.h"

/* Of a buffer, in bytes. */
struct block {
	uint64_t at, bytes;
};

/* Those of one buffer, from rank 0 on. */
struct blocks {
	const uint64_t *counts;		/* NULL: every rank's is @only */
	const uint64_t *displs;		/* NULL: no gaps */
	uint64_t size;			/* of an element */
	uint64_t next;			/* byte behind the one before */
	uint32_t rank;
	struct block only;
};

/* What this rank sends to each other one, and what it gets from each. */
void fxi_send_blocks(const struct fabrex_comm *comm,
		     const struct fabrex_collective *what, struct blocks *b);
void fxi_recv_blocks(const struct fabrex_comm *comm,
		     const struct fabrex_collective *what, struct blocks *b);
/* The next rank's. */
struct block fxi_blocks_next(struct blocks *b);
/* Where the last byte of all @ranks of them ends. */
uint64_t fxi_blocks_end(struct blocks b, uint32_t ranks);

/* ---- arguments --------------------------------------------------------- */

/* 0, or -EINVAL and the error message: which arrays there are, and numbers. */
int fxi_arrays_check(const struct fabrex_comm *comm,
		     const struct fabrex_collective *what);
/* Do blocks overlap that must not? They fit the address space. */
int fxi_blocks_overlap(const struct fabrex_comm *comm,
		       const struct fabrex_collective *what);
/* Is it in place, as far as blocks are sent and received? */
bool fxi_blocks_in_place(const struct fabrex_comm *comm,
			 const struct fabrex_collective *what);

/* ---- copies of the arrays, for operations that outlive the call --------- */

size_t fxi_arrays_bytes(const struct fabrex_comm *comm,
			const struct fabrex_collective *what);
/* To @room, of that size; @what has them from now on. */
void fxi_arrays_copy(const struct fabrex_comm *comm,
		     struct fabrex_collective *what, void *room);

#endif
