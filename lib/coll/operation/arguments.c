// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Checks the arguments of an operation, and says how many bytes it reads and
 * writes. Called by start.c, and for the latter by the algorithms.
 */
#include <errno.h>

#include "coll/operation/blocks.h"
#include "schedule/schedule.h"

static uint64_t blocks_end(const struct fabrex_comm *comm,
			   const struct fabrex_collective *what, bool send)
{
	struct blocks b;

	if (send)
		fxi_send_blocks(comm, what, &b);
	else
		fxi_recv_blocks(comm, what, &b);
	return fxi_blocks_end(b, comm->size);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

uint64_t fxi_coll_bytes(const struct fabrex_comm *comm,
			const struct fabrex_collective *what)
{
	if (fxi_kind_varies(what->kind))
		return larger(blocks_end(comm, what, true),
			      blocks_end(comm, what, false));
	switch (what->kind) {
	case FABREX_ALL_GATHER:
	case FABREX_REDUCE_SCATTER:
	case FABREX_ALL_TO_ALL:
		return fxi_count_bytes(what) * comm->size;
	default:
		return fxi_count_bytes(what);
	}
}

uint64_t fxi_send_bytes(const struct fabrex_comm *comm,
			const struct fabrex_collective *what)
{
	if (fxi_kind_varies(what->kind))
		return blocks_end(comm, what, true);
	switch (what->kind) {
	case FABREX_REDUCE_SCATTER:
	case FABREX_ALL_TO_ALL:
		return fxi_count_bytes(what) * comm->size;
	case FABREX_BROADCAST:
		return what->root == comm->rank ? fxi_count_bytes(what) : 0;
	case FABREX_BARRIER:
	case FABREX_RECV:
		return 0;
	default:
		return fxi_count_bytes(what);
	}
}

uint64_t fxi_recv_bytes(const struct fabrex_comm *comm,
			const struct fabrex_collective *what)
{
	if (fxi_kind_varies(what->kind))
		return blocks_end(comm, what, false);
	switch (what->kind) {
	case FABREX_ALL_GATHER:
	case FABREX_ALL_TO_ALL:
		return fxi_count_bytes(what) * comm->size;
	case FABREX_REDUCE:
		return what->root == comm->rank ? fxi_count_bytes(what) : 0;
	case FABREX_BARRIER:
	case FABREX_SEND:
		return 0;
	default:
		return fxi_count_bytes(what);
	}
}

static int check_numbers(const struct fabrex_comm *comm,
			 const struct fabrex_collective *what)
{
	size_t size = fxi_type_size(what->type), most;
	bool reduces = fxi_kind_reduces(what->kind);
	bool has_rank = fxi_schedule_has_root(what->kind) ||
			what->kind == FABREX_SEND || what->kind == FABREX_RECV;

	if (what->kind == FABREX_BARRIER ? what->type : !size)
		return fxi_error(EINVAL, "%s: no such type: %u; use FABREX_INT8 to FABREX_FLOAT64, or 0 for a barrier",
				 fxi_kind_name(what->kind), what->type);
	if (reduces ? what->op < FABREX_SUM || what->op > FABREX_AVG : what->op)
		return fxi_error(EINVAL, "%s: no such operation: %u; use FABREX_SUM to FABREX_AVG where something is reduced, otherwise 0",
				 fxi_kind_name(what->kind), what->op);
	if (has_rank ? what->root >= comm->size : what->root)
		return fxi_error(EINVAL, "%s: rank %u: ranks are below %u, and 0 if the operation has no root",
				 fxi_kind_name(what->kind), what->root,
				 comm->size);
	if (what->reserved[0] || what->reserved[1] || what->reserved[2])
		return fxi_error(EINVAL, "%s: reserved is not 0; clear the structure first",
				 fxi_kind_name(what->kind));
	if (__builtin_mul_overflow(what->count, size * comm->size, &most) ||
	    most > UINTPTR_MAX >> 1)
		return fxi_error(EINVAL, "%s: %llu elements of %zu bytes for %u ranks do not fit the address space",
				 fxi_kind_name(what->kind),
				 (unsigned long long)what->count, size,
				 comm->size);
	if (what->kind == FABREX_BARRIER && what->count)
		return fxi_error(EINVAL, "%s: a count of %llu, but nothing is moved; give 0",
				 fxi_kind_name(what->kind),
				 (unsigned long long)what->count);
	return fxi_arrays_check(comm, what);
}

static int check_range(const struct fabrex_collective *what, const char *which,
		       const void *addr, uint64_t bytes)
{
	if (bytes && !addr)
		return fxi_error(EINVAL, "%s: no %s buffer for %llu bytes",
				 fxi_kind_name(what->kind), which,
				 (unsigned long long)bytes);
	if (bytes > UINTPTR_MAX - (uintptr_t)addr)
		return fxi_error(EINVAL, "%s: %s buffer of %llu bytes at %p wraps around the address space; check the count",
				 fxi_kind_name(what->kind), which,
				 (unsigned long long)bytes, addr);
	return 0;
}

/* Where send has to be for an operation in place; 0: it cannot be. */
static uintptr_t in_place(const struct fabrex_comm *comm,
			  const struct fabrex_collective *what)
{
	uintptr_t recv = (uintptr_t)what->recv;

	switch (what->kind) {
	case FABREX_ALL_REDUCE:
	case FABREX_BROADCAST:
	case FABREX_REDUCE:
		return recv;
	case FABREX_ALL_GATHER:
		return recv + comm->rank * fxi_count_bytes(what);
	case FABREX_REDUCE_SCATTER:
		return recv - comm->rank * fxi_count_bytes(what);
	default:
		return 0;
	}
}

static int check_overlap(const struct fabrex_comm *comm,
			 const struct fabrex_collective *what, uint64_t sends,
			 uint64_t recvs)
{
	uintptr_t send = (uintptr_t)what->send, recv = (uintptr_t)what->recv;
	uintptr_t same;

	if (fxi_kind_varies(what->kind))
		return fxi_blocks_overlap(comm, what);
	if (!sends || !recvs || send + sends <= recv || recv + recvs <= send)
		return 0;
	same = in_place(comm, what);
	if (same && same == send)
		return 0;
	return fxi_error(EINVAL, "%s: %llu bytes of send at %p and %llu of recv at %p overlap; %s",
			 fxi_kind_name(what->kind), (unsigned long long)sends,
			 what->send, (unsigned long long)recvs, what->recv,
			 same ? "in place means that this rank's part is at the same address" :
			 "it cannot be done in place");
}

int fxi_coll_arguments(const struct fabrex_comm *comm,
		       const struct fabrex_collective *what)
{
	uint64_t sends, recvs;
	int ret;

	if (what->kind < FABREX_ALL_REDUCE || what->kind > FABREX_ALL_TO_ALLV)
		return fxi_error(EINVAL, "no such collective: %u; use FABREX_ALL_REDUCE to FABREX_ALL_TO_ALLV",
				 what->kind);
	ret = check_numbers(comm, what);
	if (ret)
		return ret;
	sends = fxi_send_bytes(comm, what);
	recvs = fxi_recv_bytes(comm, what);
	ret = check_range(what, "send", what->send, sends);
	if (!ret)
		ret = check_range(what, "recv", what->recv, recvs);
	if (!ret)
		ret = check_overlap(comm, what, sends, recvs);
	return ret;
}
