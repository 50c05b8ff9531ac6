/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copies and reductions for algorithms, wherever the caller's buffers are:
 * host or GPU. Slots are always the host's. Included by the algorithms.
 */
#ifndef LIB_COLL_PLACE_H
#define LIB_COLL_PLACE_H

#include "coll/coll.h"

/* Finds out; before the operation is performed. */
int fxi_coll_place(struct fabrex_coll *coll);
/* The algorithm that was chosen can only do it in the host's memory ... */
bool fxi_coll_hosted(const struct fabrex_coll *coll);
/* ... and does so from now on. */
int fxi_coll_host(struct fabrex_coll *coll);
void fxi_places_free(struct fabrex_comm *comm);

/* Kinds as coll->send_kind; 0: host. */
int fxi_coll_copy_far(const struct fabrex_coll *coll, void *dst,
		      uint32_t dst_kind, const void *src, uint32_t src_kind,
		      uint64_t n);
int fxi_coll_reduce_far(const struct fabrex_coll *coll,
			const struct reduce *r);

/* From the caller's send to the host's memory. */
static inline int fxi_coll_copy_in(const struct fabrex_coll *coll, void *dst,
				   const void *send, uint64_t n)
{
	if (unlikely(coll->send_kind))
		return fxi_coll_copy_far(coll, dst, 0, send, coll->send_kind,
					 n);
	fxi_copy(dst, send, n, false);
	return 0;
}

/* From there to the caller's recv. */
static inline int fxi_coll_copy_out(const struct fabrex_coll *coll,
				    void *recv, const void *src, uint64_t n)
{
	if (unlikely(coll->recv_kind))
		return fxi_coll_copy_far(coll, recv, coll->recv_kind, src, 0,
					 n);
	fxi_copy(recv, src, n, false);
	return 0;
}

/* From send to recv. */
static inline int fxi_coll_copy_own(const struct fabrex_coll *coll,
				    void *recv, const void *send, uint64_t n)
{
	if (unlikely(coll->gpu && (coll->send_kind || coll->recv_kind)))
		return fxi_coll_copy_far(coll, recv, coll->recv_kind, send,
					 coll->send_kind, n);
	fxi_copy(recv, send, n, false);
	return 0;
}

/* Sources by rank: slots, and the own part of send; to recv and slots. */
static inline int fxi_coll_reduce(const struct fabrex_coll *coll,
				  const struct reduce *r)
{
	if (unlikely(coll->send_kind || coll->recv_kind))
		return fxi_coll_reduce_far(coll, r);
	fxi_reduce(r);
	return 0;
}

#endif
