/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copies and reductions wherever the caller's buffers are, host or GPU; slots
 * of links are always in the host's memory. For progress.c and the algorithms.
 */
#ifndef LIB_COLL_GPU_H
#define LIB_COLL_GPU_H

#include "coll/operation/operation.h"

/* Finds out where the buffers are, before the operation is performed. */
int fxi_coll_find_gpu(struct fabrex_coll *coll);
/* The chosen algorithm can only perform it in the host's memory ... */
bool fxi_coll_needs_host(const struct fabrex_coll *coll);
/* Reports it, if fxi_debugs(FXI_DEBUG_MEMORY). There is a coll->gpu. */
void fxi_coll_say_memory(const struct fabrex_coll *coll);
/* ... and does so from now on. */
int fxi_coll_use_host(struct fabrex_coll *coll);
void fxi_gpus_free(struct fabrex_comm *comm);

/* Kinds as coll->send_kind; 0: host. */
int fxi_coll_copy_gpu(const struct fabrex_coll *coll, void *dst,
		      uint32_t dst_kind, const void *src, uint32_t src_kind,
		      uint64_t n);
int fxi_coll_reduce_gpu(const struct fabrex_coll *coll,
			const struct reduce *r);

/* From the caller's send to the host's memory. */
static inline int fxi_coll_copy_in(const struct fabrex_coll *coll, void *dst,
				   const void *send, uint64_t n)
{
	if (unlikely(coll->send_kind))
		return fxi_coll_copy_gpu(coll, dst, 0, send, coll->send_kind,
					 n);
	fxi_copy(dst, send, n, false);
	return 0;
}

/* From there to the caller's recv. */
static inline int fxi_coll_copy_out(const struct fabrex_coll *coll,
				    void *recv, const void *src, uint64_t n)
{
	if (unlikely(coll->recv_kind))
		return fxi_coll_copy_gpu(coll, recv, coll->recv_kind, src, 0,
					 n);
	fxi_copy(recv, src, n, false);
	return 0;
}

/* From send to recv. */
static inline int fxi_coll_copy_own(const struct fabrex_coll *coll,
				    void *recv, const void *send, uint64_t n)
{
	if (unlikely(coll->gpu && (coll->send_kind || coll->recv_kind)))
		return fxi_coll_copy_gpu(coll, recv, coll->recv_kind, send,
					 coll->send_kind, n);
	fxi_copy(recv, send, n, false);
	return 0;
}

/*
 * Sources by rank: slots, and for this rank a part of send. Targets: recv,
 * slots.
 */
static inline int fxi_coll_reduce(const struct fabrex_coll *coll,
				  const struct reduce *r)
{
	if (unlikely(coll->send_kind || coll->recv_kind))
		return fxi_coll_reduce_gpu(coll, r);
	fxi_reduce(r);
	return 0;
}

#endif
