/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Schedules of collectives in memory: docs/schedule.md. lib/schedule reads,
 * makes, checks and prints them on its own; lib/coll chooses and executes them.
 *
 *   shard.c                    which rank holds which elements
 *   set.c explain.c check.c    the proof that a schedule is right
 *   program.c                  what one rank has to do
 *   schedule.c                 the object
 *   parse.c make.c format.c    from text, from an algorithm's name, to text
 */
#ifndef LIB_SCHEDULE_H
#define LIB_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>
#include <fabrex/coll.h>

#define SCHEDULE_RANKS		4096u
#define SCHEDULE_CHUNKS		(1u << 23)
#define SCHEDULE_TRANSFERS	(1u << 23)
#define SCHEDULE_WEIGHT		((1ull << 32) - 1)
#define SCHEDULE_NAME		64u

enum transfer_flags {
	TRANSFER_REDUCE = 1,
	TRANSFER_JOINED = 2,	/* at once with the transfer before it */
	/* check.c finds these out */
	TRANSFER_FULL = 4,	/* the reduction that completes the chunk */
	TRANSFER_SWAP = 8,	/* what arrives is the left operand */
	TRANSFER_LATE = 16,	/* ready later than the one before it that its
				 * receiver gets
				 */
};

struct transfer {
	uint32_t chunk;
	uint16_t from, to;
	uint32_t line;		/* of the text; 0: there is none */
	uint32_t level : 24;	/* from 1: after those it depends on */
	uint32_t flags : 8;
};

struct program;

#define HEAVIEST_UNIT	256u

/*
 * The buffer consists of shards of equal size: one; or one for each rank in
 * ALL_GATHER and REDUCE_SCATTER; or one for each pair of ranks, source first,
 * in ALL_TO_ALL. A shard is split into parts by weight; chunks are the parts,
 * numbered consecutively.
 */
struct fabrex_schedule {
	char name[SCHEDULE_NAME];	/* for error messages */
	uint32_t kind, ranks, root;
	uint32_t references;		/* atomic */
	uint32_t nshards, nchunks;
	/*
	 * Chunk where a shard begins, nshards + 1 of them; NULL: every shard is
	 * split into the same number of parts of the same weights.
	 */
	uint32_t *first;
	uint32_t nparts;		/* then */
	uint64_t *ends;			/* weight up to the end of the part */
	struct transfer *transfers;	/* as in the text */
	uint32_t ntransfers, room;
	uint32_t depth;			/* largest level */
	uint32_t busiest;		/* transfers of the busiest pair */
	uint64_t heaviest;		/* most bytes of a pair, in parts of the
					 * largest chunk's: HEAVIEST_UNIT is one
					 */
	uint32_t largest;		/* chunk: largest part of a shard */
	struct program *programs;	/* of ranks that have executed it */
};

/* ---- schedule.c -------------------------------------------------------- */

/* An empty one, every shard a single chunk. NULL: no memory. */
struct fabrex_schedule *fxi_schedule_new(const char *name);
/*
 * Once kind, ranks and root are set: makes shards, each split into parts of
 * these weights.
 */
int fxi_schedule_split(struct fabrex_schedule *schedule,
		       const uint64_t *weights, uint32_t n);
int fxi_schedule_add(struct fabrex_schedule *schedule, struct transfer t);
/* Takes a reference, to keep it beyond the caller's fabrex_schedule_free(). */
struct fabrex_schedule *
fxi_schedule_get(const struct fabrex_schedule *schedule);

/* ---- shard.c ----------------------------------------------------------- */

/* NULL: no schedule can be for it. */
const char *fxi_schedule_kind_name(uint32_t kind);
static inline bool fxi_schedule_reduces(uint32_t kind)
{
	return kind == FABREX_ALL_REDUCE || kind == FABREX_REDUCE ||
	       kind == FABREX_REDUCE_SCATTER;
}

static inline bool fxi_schedule_has_root(uint32_t kind)
{
	return kind == FABREX_BROADCAST || kind == FABREX_REDUCE;
}

/* Shards of a schedule of that kind. */
uint64_t fxi_schedule_shards(uint32_t kind, uint32_t ranks);
uint32_t fxi_schedule_shard(const struct fabrex_schedule *schedule,
			    uint32_t chunk);
/* Does @rank have a part of the chunk at the start, need it at the end? */
bool fxi_schedule_begins(const struct fabrex_schedule *schedule,
			 uint32_t shard, uint32_t rank);
bool fxi_schedule_ends(const struct fabrex_schedule *schedule, uint32_t shard,
		       uint32_t rank);

/* Elements [*start, *end) of its shard of @count elements of @size bytes. */
void fxi_schedule_range(const struct fabrex_schedule *schedule, uint32_t chunk,
			uint64_t count, uint32_t size, uint64_t *start,
			uint64_t *end);

/* ---- check.c ----------------------------------------------------------- */

/*
 * Proves it right, and fills in levels and flags. 0, or a negative errno and
 * the reason.
 */
int fxi_schedule_check(struct fabrex_schedule *schedule);

#endif
