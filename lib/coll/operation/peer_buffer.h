/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Buffers of other ranks, reached without a copy in between. For algorithms
 * that tell other ranks where their buffers are: zero_copy.c, sendrecv.c.
 */
#ifndef LIB_COLL_PEER_BUFFER_H
#define LIB_COLL_PEER_BUFFER_H

#include "coll/failure/failure.h"

int fxi_peer_buffers_make(struct fabrex_comm *comm);
void fxi_peer_buffers_free(struct fabrex_comm *comm);
/* Cancels a read that is under way: it will not write anything more. */
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
 * Describes a buffer inside fabric-allocated memory (found quickly), or with
 * @held any buffer, which is then registered through the cache: unless *@held
 * becomes NULL, fabrex_mr_cache_put() gives it back. @port: of this rank, at
 * which others reach it.
 */
void fxi_buffer_export(struct fabrex_comm *comm, struct fabrex_port *port,
		       const void *addr, uint64_t length, uint32_t access,
		       struct fabrex_mr **held, struct peer_buffer *buffer);
/*
 * Coherent transports: where a buffer of @rank is in this process; mapped once
 * and kept. NULL: it cannot be mapped, errno and the error message say why.
 */
void *fxi_buffer_map(struct fabrex_comm *comm, uint32_t rank,
		     const struct peer_buffer *buffer);
/* Nothing that was mapped is in use: unmaps some of it, if it is much. */
void fxi_buffers_tidy(struct fabrex_comm *comm);
/*
 * Any transport: begins to read @length bytes at @offset of the buffer into
 * memory of this process. One at a time for each communicator: -EAGAIN.
 */
int fxi_buffer_read(struct fabrex_comm *comm, uint32_t rank,
		    const struct peer_buffer *buffer, uint64_t offset,
		    void *addr, uint64_t length);
/* Is one under way? Nothing wakes a rank that sleeps when it ends. */
bool fxi_buffer_reads(const struct fabrex_comm *comm);
/* 1: the read has ended; 0: not yet; or a negative errno. */
int fxi_buffer_read_test(struct fabrex_comm *comm);

#endif
