// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Blocks of different lengths: finds them in the caller's buffers, and checks
 * that their numbers make sense and that they do not overlap. Called by
 * arguments.c, handle.c, gpu.c and the algorithm.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coll/operation/blocks.h"

/* ---- where they are ---------------------------------------------------- */

static void begin(struct blocks *b, const struct fabrex_collective *what,
		  const uint64_t *counts, const uint64_t *displs)
{
	memset(b, 0, sizeof(*b));
	b->counts = counts;
	b->displs = displs;
	b->size = fxi_type_size(what->type);
}

void fxi_send_blocks(const struct fabrex_comm *comm,
		     const struct fabrex_collective *what, struct blocks *b)
{
	(void)comm;
	if (what->kind == FABREX_ALL_TO_ALLV) {
		begin(b, what, what->send_counts, what->send_displs);
	} else if (what->kind == FABREX_REDUCE_SCATTERV) {
		begin(b, what, what->recv_counts, NULL);
	} else {
		begin(b, what, NULL, NULL);
		b->only.bytes = fxi_count_bytes(what);
	}
}

void fxi_recv_blocks(const struct fabrex_comm *comm,
		     const struct fabrex_collective *what, struct blocks *b)
{
	if (what->kind != FABREX_REDUCE_SCATTERV) {
		begin(b, what, what->recv_counts, what->recv_displs);
	} else {
		begin(b, what, NULL, NULL);
		b->only.bytes = what->recv_counts[comm->rank] * b->size;
	}
}

struct block fxi_blocks_next(struct blocks *b)
{
	uint32_t rank = b->rank++;
	struct block block;

	if (!b->counts)
		return b->only;
	block.bytes = b->counts[rank] * b->size;
	block.at = b->displs && block.bytes ? b->displs[rank] * b->size :
					      b->next;
	b->next = block.at + block.bytes;
	return block;
}

uint64_t fxi_blocks_end(struct blocks b, uint32_t ranks)
{
	struct block block;
	uint64_t end = 0;
	uint32_t i;

	for (i = 0; i < ranks; i++) {
		block = fxi_blocks_next(&b);
		if (block.bytes && block.at + block.bytes > end)
			end = block.at + block.bytes;
	}
	return end;
}

static struct block block_of(struct blocks b, uint32_t rank)
{
	struct block block;

	do {
		block = fxi_blocks_next(&b);
	} while (b.rank <= rank);
	return block;
}

/* ---- numbers ----------------------------------------------------------- */

static int check_array(const struct fabrex_comm *comm,
		       const struct fabrex_collective *what, const char *which,
		       const uint64_t *counts, const uint64_t *displs)
{
	uint64_t size = fxi_type_size(what->type), end = 0, at, bytes;
	uint32_t rank;

	for (rank = 0; rank < comm->size; rank++) {
		if (!counts[rank])
			continue;
		at = displs ? displs[rank] : end;
		if (__builtin_add_overflow(at, counts[rank], &end) ||
		    __builtin_mul_overflow(end, size, &bytes) ||
		    bytes > UINTPTR_MAX >> 1)
			return fxi_error(EINVAL, "%s: block of rank %u in %s: %llu elements of %llu bytes at displacement %llu do not fit the address space",
					 fxi_kind_name(what->kind), rank,
					 which,
					 (unsigned long long)counts[rank],
					 (unsigned long long)size,
					 (unsigned long long)at);
	}
	return 0;
}

static int check_present(const struct fabrex_collective *what)
{
	bool sends = what->kind == FABREX_ALL_TO_ALLV;

	if (!what->recv_counts || (sends && !what->send_counts))
		return fxi_error(EINVAL, "%s: %s is NULL; give the counts of all ranks",
				 fxi_kind_name(what->kind),
				 what->recv_counts ? "send_counts" :
						     "recv_counts");
	if ((what->send_counts || what->send_displs) && !sends)
		return fxi_error(EINVAL, "%s: it has no send_counts and send_displs; give NULL",
				 fxi_kind_name(what->kind));
	if (what->recv_displs && what->kind == FABREX_REDUCE_SCATTERV)
		return fxi_error(EINVAL, "%s: it has no recv_displs; give NULL",
				 fxi_kind_name(what->kind));
	return 0;
}

/* What this rank keeps: is it as long as it expects? */
static int check_own(const struct fabrex_comm *comm,
		     const struct fabrex_collective *what)
{
	uint64_t own = what->recv_counts[comm->rank], count = what->count;

	if (what->kind == FABREX_ALL_TO_ALLV)
		count = what->send_counts[comm->rank];
	if (what->kind != FABREX_REDUCE_SCATTERV && count != own)
		return fxi_error(EINVAL, "%s: rank %u has a block of %llu elements for itself and expects one of %llu; %s and recv_counts[%u] have to be the same",
				 fxi_kind_name(what->kind), comm->rank,
				 (unsigned long long)count,
				 (unsigned long long)own,
				 what->kind == FABREX_ALL_TO_ALLV ?
				 "send_counts of it" : "count",
				 comm->rank);
	if (what->kind != FABREX_ALL_GATHERV && what->count)
		return fxi_error(EINVAL, "%s: a count of %llu, but the arrays have the counts; give 0",
				 fxi_kind_name(what->kind),
				 (unsigned long long)what->count);
	return 0;
}

int fxi_arrays_check(const struct fabrex_comm *comm,
		     const struct fabrex_collective *what)
{
	int ret;

	if (!fxi_kind_varies(what->kind)) {
		if (likely(!what->send_counts && !what->send_displs &&
			   !what->recv_counts && !what->recv_displs))
			return 0;
		return fxi_error(EINVAL, "%s: it has no counts and displacements of ranks; give NULL",
				 fxi_kind_name(what->kind));
	}
	ret = check_present(what);
	if (!ret)
		ret = check_own(comm, what);
	if (!ret && what->kind == FABREX_ALL_TO_ALLV)
		ret = check_array(comm, what, "send", what->send_counts,
				  what->send_displs);
	if (!ret)
		ret = check_array(comm, what,
				  what->kind == FABREX_REDUCE_SCATTERV ?
				  "send" : "recv", what->recv_counts,
				  what->recv_displs);
	return ret;
}

/* ---- overlap ----------------------------------------------------------- */

/* A block that is not empty. */
struct range {
	uintptr_t from, to;
	uint32_t rank;
};

static bool same_blocks(const struct fabrex_comm *comm, struct blocks a,
			struct blocks b)
{
	struct block one, other;
	uint32_t i;

	for (i = 0; i < comm->size; i++) {
		one = fxi_blocks_next(&a);
		other = fxi_blocks_next(&b);
		if (one.bytes != other.bytes ||
		    (one.bytes && one.at != other.at))
			return false;
	}
	return true;
}

bool fxi_blocks_in_place(const struct fabrex_comm *comm,
			 const struct fabrex_collective *what)
{
	uintptr_t send = (uintptr_t)what->send, recv = (uintptr_t)what->recv;
	struct blocks sends, recvs;

	fxi_send_blocks(comm, what, &sends);
	fxi_recv_blocks(comm, what, &recvs);
	switch (what->kind) {
	case FABREX_ALL_GATHERV:
		return send == recv + block_of(recvs, comm->rank).at;
	case FABREX_REDUCE_SCATTERV:
		return recv == send + block_of(sends, comm->rank).at;
	default:
		return send == recv && same_blocks(comm, sends, recvs);
	}
}

static int by_start(const void *a, const void *b)
{
	const struct range *one = a, *other = b;

	return one->from < other->from ? -1 : one->from > other->from;
}

/* All that are not empty, at @base, by their start. Returns how many. */
static uint32_t sort(struct blocks b, const void *base, uint32_t ranks,
		     struct range *ranges)
{
	struct block block;
	uint32_t i, n = 0;

	for (i = 0; i < ranks; i++) {
		block = fxi_blocks_next(&b);
		if (!block.bytes)
			continue;
		ranges[n].from = (uintptr_t)base + block.at;
		ranges[n].to = ranges[n].from + block.bytes;
		ranges[n++].rank = i;
	}
	qsort(ranges, n, sizeof(*ranges), by_start);
	return n;
}

/* Which of @n, of which no two overlap, overlaps with the block? */
static const struct range *find(const struct range *ranges, uint32_t n,
				uintptr_t from, uintptr_t to)
{
	uint32_t low = 0, high = n, middle;

	/* The first that ends behind the start of the block. */
	while (low < high) {
		middle = low + (high - low) / 2;
		if (ranges[middle].to > from)
			high = middle;
		else
			low = middle + 1;
	}
	return low < n && ranges[low].from < to ? &ranges[low] : NULL;
}

static int compare(const struct fabrex_comm *comm,
		   const struct fabrex_collective *what, struct blocks sends,
		   struct range *ranges, uint32_t n)
{
	uintptr_t send = (uintptr_t)what->send;
	const struct range *other;
	struct block block;
	uint32_t i;

	for (i = 1; i < n; i++)
		if (ranges[i].from < ranges[i - 1].to)
			return fxi_error(EINVAL, "%s: the blocks of ranks %u and %u in recv overlap; give each its own displacement",
					 fxi_kind_name(what->kind),
					 ranges[i - 1].rank, ranges[i].rank);
	if (fxi_blocks_in_place(comm, what))
		return 0;
	for (i = 0; i < (sends.counts ? comm->size : 1); i++) {
		block = fxi_blocks_next(&sends);
		other = block.bytes ? find(ranges, n, send + block.at,
					   send + block.at + block.bytes) :
				      NULL;
		if (other)
			return fxi_error(EINVAL, "%s: %llu bytes of send at %p overlap with the block of rank %u in recv; in place means that what this rank keeps is at the same address",
					 fxi_kind_name(what->kind),
					 (unsigned long long)block.bytes,
					 (const char *)what->send + block.at,
					 what->kind == FABREX_REDUCE_SCATTERV ?
					 comm->rank : other->rank);
	}
	return 0;
}

/* Apart from each other, as mostly? Then nothing has to be sorted. */
static bool apart(const struct fabrex_comm *comm,
		  const struct fabrex_collective *what, struct blocks sends,
		  struct blocks recvs)
{
	uintptr_t send = (uintptr_t)what->send, recv = (uintptr_t)what->recv;
	uint64_t ends = fxi_blocks_end(sends, comm->size);
	uint64_t endr = fxi_blocks_end(recvs, comm->size), end = 0;
	struct block block;
	uint32_t i;

	if (ends && endr && send + ends > recv && recv + endr > send &&
	    !fxi_blocks_in_place(comm, what))
		return false;
	for (i = 0; i < comm->size && recvs.counts; i++) {
		block = fxi_blocks_next(&recvs);
		if (block.bytes && block.at < end)
			return false;
		if (block.bytes)
			end = block.at + block.bytes;
	}
	return true;
}

int fxi_blocks_overlap(const struct fabrex_comm *comm,
		       const struct fabrex_collective *what)
{
	struct blocks sends, recvs;
	struct range *ranges;
	uint32_t n;
	int ret;

	fxi_send_blocks(comm, what, &sends);
	fxi_recv_blocks(comm, what, &recvs);
	if (likely(apart(comm, what, sends, recvs)))
		return 0;
	ranges = malloc(comm->size * sizeof(*ranges));
	if (!ranges)
		return fxi_error(ENOMEM, "%s: out of memory",
				 fxi_kind_name(what->kind));
	n = sort(recvs, what->recv, recvs.counts ? comm->size : 1, ranges);
	ret = compare(comm, what, sends, ranges, n);
	free(ranges);
	return ret;
}

/* ---- copies ------------------------------------------------------------ */

size_t fxi_arrays_bytes(const struct fabrex_comm *comm,
			const struct fabrex_collective *what)
{
	size_t n = !!what->send_counts + !!what->send_displs +
		   !!what->recv_counts + !!what->recv_displs;

	return n * comm->size * sizeof(uint64_t);
}

static void *copy(const struct fabrex_comm *comm, const uint64_t **array,
		  uint64_t *room)
{
	if (!*array)
		return room;
	memcpy(room, *array, comm->size * sizeof(*room));
	*array = room;
	return room + comm->size;
}

void fxi_arrays_copy(const struct fabrex_comm *comm,
		     struct fabrex_collective *what, void *room)
{
	room = copy(comm, &what->send_counts, room);
	room = copy(comm, &what->send_displs, room);
	room = copy(comm, &what->recv_counts, room);
	copy(comm, &what->recv_displs, room);
}
