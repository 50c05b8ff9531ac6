// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Do all ranks call the same collectives? Every message tells which one it
 * belongs to, and the receiver compares. Called by the algorithms.
 */
#include <errno.h>

#include "coll/operation/operation.h"

#define COUNT_BITS	0xffffffffffffull	/* of a word */

uint32_t fxi_coll_tag(const struct fabrex_coll *coll, uint32_t phase)
{
	return coll->sequence << 16 | (coll->what.root & 0xff) << 8 |
	       coll->what.kind << 4 | phase;
}

/* The upper bits of the root are between type and operation. */
uint64_t fxi_coll_block_word(const struct fabrex_coll *coll, uint64_t count)
{
	_Static_assert(FABREX_FLOAT64 < 16 && FABREX_AVG < 16 &&
		       FABREX_ALL_TO_ALLV < 16 && COMM_RANKS <= 1 << 16,
		       "fits");

	return (count & COUNT_BITS) | (uint64_t)coll->what.type << 48 |
	       (uint64_t)(coll->what.root >> 8 & 0xff) << 52 |
	       (uint64_t)coll->what.op << 60;
}

uint64_t fxi_coll_word(const struct fabrex_coll *coll)
{
	return fxi_coll_block_word(coll, coll->what.count);
}

static int disagree(const struct fabrex_coll *coll, uint32_t rank,
		    const struct link_message *message)
{
	const struct fabrex_collective *what = &coll->what;

	return fxi_error(EPROTO, "ranks %u and %u do not call the same: here the collective %u is %s of %llu elements, type %u, operation %u, root %u; there %u is %s of %llu, type %u, operation %u, root %u",
			 coll->comm->rank, rank, coll->sequence & 0xffff,
			 fxi_kind_name(what->kind),
			 (unsigned long long)what->count, what->type, what->op,
			 what->root, message->tag >> 16,
			 fxi_kind_name(message->tag >> 4 & 0xf),
			 (unsigned long long)message->word & COUNT_BITS,
			 (uint32_t)(message->word >> 48) & 0xf,
			 (uint32_t)(message->word >> 60),
			 (message->tag >> 8 & 0xff) |
			 ((uint32_t)(message->word >> 52) & 0xff) << 8);
}

int fxi_coll_check(struct fabrex_coll *coll, uint32_t rank, uint32_t phase,
		   const struct link_message *message)
{
	if (likely(message->tag == fxi_coll_tag(coll, phase) &&
		   message->word == fxi_coll_word(coll)))
		return 0;
	return disagree(coll, rank, message);
}

static int disagree_block(const struct fabrex_coll *coll, uint32_t rank,
			  uint64_t theirs, uint64_t ours)
{
	return fxi_error(EPROTO, "ranks %u and %u do not call the same: here the collective %u is %s and expects a block of %llu elements from rank %u, which sends one of %llu; counts have to fit each other at all ranks",
			 coll->comm->rank, rank, coll->sequence & 0xffff,
			 fxi_kind_name(coll->what.kind),
			 (unsigned long long)ours, rank,
			 (unsigned long long)theirs);
}

int fxi_coll_expect_block(struct fabrex_coll *coll, uint32_t rank,
			  uint64_t count, uint32_t length)
{
	const struct link_message *message;
	uint64_t expected = fxi_coll_block_word(coll, count);

	message = fxi_link_peek(coll->comm, rank, LINK_COLL);
	if (!message) {
		coll->waiting = rank;
		return 0;
	}
	if (unlikely(message->tag != fxi_coll_tag(coll, 0) ||
		     (message->word ^ expected) & ~COUNT_BITS))
		return disagree(coll, rank, message);
	if (unlikely(message->word != expected))
		return disagree_block(coll, rank, message->word & COUNT_BITS,
				      count);
	if (unlikely(message->length != length))
		return fxi_coll_wrong_length(coll, rank, message->length,
					     length);
	return 1;
}

int fxi_coll_wrong_length(const struct fabrex_coll *coll, uint32_t rank,
			  uint32_t length, uint32_t expected)
{
	return fxi_error(EPROTO, "%s: rank %u has sent a piece of %u bytes instead of %u; do all ranks run the same library?",
			 fxi_kind_name(coll->what.kind), rank, length,
			 expected);
}
