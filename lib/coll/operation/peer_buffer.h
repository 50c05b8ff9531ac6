/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Buffers of other ranks, reached without a copy in between. For algorithms
 * that tell each other where their buffers are: direct.c, pair.c.
 */
#ifndef LIB_COLL_PEER_BUFFER_H
#define LIB_COLL_PEER_BUFFER_H

#include "coll/failure/failure.h"

int fxi_peer_buffers_make(struct fabrex_comm *comm);
void fxi_peer_buffers_free(struct fabrex_comm *comm);
/* Gives up a read that is under way: nothing is written by it any more. */
void fxi_peer_buffers_stop(struct fabrex_comm *comm);

/* How others reach a buffer of this rank; plain data, fits LINK_SMALL. */
struct peer_buffer {
	uint64_t rkey;		/* 0: only this rank reaches it */
	uint64_t offset;	/* of the buffer in its region */
	uint64_t length;	/* of the region */
	uint32_t peer, generation;
	uint32_t access;	/* of the region: FABREX_MR_* */
	uint32_t heap;		/* 1: allocated from the fabric */
};
/*
 * Of a buffer inside fabric-allocated memory (found quickly), or with
 * @held of any memory, which is then registered through the cache: unless it
 * is set to NULL, fabrex_mr_cache_put() gives that back.
 */
void fxi_buffer_export(struct fabrex_comm *comm, const void *addr,
		       uint64_t length, uint32_t access,
		       struct fabrex_mr **held, struct peer_buffer *buffer);
/*
 * Coherent transports: where a buffer of @rank is in this process; mapped once
 * and kept. NULL: not that way, errno and the error message say why.
 */
void *fxi_buffer_map(struct fabrex_comm *comm, uint32_t rank,
		     const struct peer_buffer *buffer);
/* Nobody uses what was mapped: give up some, if it is much. */
void fxi_buffers_tidy(struct fabrex_comm *comm);
/*
 * Any transport: begin to read @length bytes at @offset of the buffer into
 * memory of this process. One at a time for each communicator: -EAGAIN.
 */
int fxi_buffer_read(struct fabrex_comm *comm, uint32_t rank,
		    const struct peer_buffer *buffer, uint64_t offset,
		    void *addr, uint64_t length);
/* 1: the read has ended; 0: not yet; or a negative errno. */
int fxi_buffer_read_test(struct fabrex_comm *comm);

#endif
