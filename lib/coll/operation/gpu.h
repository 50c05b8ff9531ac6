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
/*
 * Memory and kernels for the chosen algorithm, which would otherwise be made
 * when it is performed. There is a coll->gpu.
 */
int fxi_coll_prepare_gpu(struct fabrex_coll *coll);
/*
 * The buffers are on one GPU, and @algorithm, which wants that, can perform it
 * there.
 */
bool fxi_coll_suits_gpu(const struct fabrex_coll *coll,
			const struct algorithm *algorithm);
/* Reports it, if fxi_debugs(FXI_DEBUG_MEMORY). There is a coll->gpu. */
void fxi_coll_say_memory(const struct fabrex_coll *coll);
/* ... and does so from now on. */
int fxi_coll_use_host(struct fabrex_coll *coll);
/*
 * After what other ranks have opened here was closed, for death_ms at most:
 * memory that one still has open is left to the end of the process.
 */
void fxi_gpus_free(struct fabrex_comm *comm);

/* ---- for algorithms that perform all of it on one GPU ------------------ */

/* True after find_gpu(), unless it needs the host. */
static inline bool fxi_coll_on_gpu(const struct fabrex_coll *coll)
{
	return coll->send_kind || coll->recv_kind;
}

struct device *fxi_coll_device(const struct fabrex_coll *coll);
/* When it starts: fxi_link_offer(), if it is on a GPU that can be reached. */
int fxi_coll_offer_slots(struct fabrex_coll *coll);
/* Memory of the GPU until the next operation: they come one after the other. */
int fxi_coll_scratch_gpu(const struct fabrex_coll *coll, uint64_t bytes,
			 void **memory);
/* To the host's memory. Done when it returns. */
int fxi_coll_fetch_gpu(const struct fabrex_coll *coll, void *dst,
		       const void *src, uint64_t n);
/* Within the GPU's. Done when it returns. */
int fxi_coll_move_gpu(const struct fabrex_coll *coll, void *dst,
		      const void *src, uint64_t n);
/*
 * What these begin is performed in the order of the calls, and is done when
 * fxi_coll_wait_gpu() returns.
 */
int fxi_coll_begin_move_gpu(const struct fabrex_coll *coll, void *dst,
			    const void *src, uint64_t n);
/* dst = op(left, right), all on the GPU. */
int fxi_coll_begin_add_gpu(const struct fabrex_coll *coll, void *dst,
			   const void *left, const void *right, uint64_t count,
			   uint32_t divisor);
int fxi_coll_wait_gpu(const struct fabrex_coll *coll);
int fxi_coll_payload_gpu(const struct fabrex_coll *coll, uint32_t rank,
			 const struct link_message *m, const void **payload);

/*
 * The payload of the oldest message from @rank, in the memory that the
 * operation is performed in; on a GPU until the next call.
 */
static inline int fxi_coll_payload(const struct fabrex_coll *coll,
				   uint32_t rank, const struct link_message *m,
				   const void **payload)
{
	if (unlikely(fxi_coll_on_gpu(coll) || fxi_link_on_device(m)))
		return fxi_coll_payload_gpu(coll, rank, m, payload);
	*payload = fxi_link_payload(coll->comm, rank, LINK_COLL);
	return 0;
}

/* ---- copies and reductions --------------------------------------------- */

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
