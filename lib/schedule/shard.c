// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Arithmetic on shards and chunks: how many there are of each collective, who
 * holds them at the start and at the end, which elements they cover. Called by
 * the whole of lib/schedule and by whoever executes a schedule; calls nothing.
 */
#include "schedule/schedule.h"

/* Chunks that are much larger than a cache line are cut at multiples of it. */
#define CUT		64u

static const char *const kind_names[] = {
	[FABREX_ALL_REDUCE] = "all-reduce",
	[FABREX_ALL_GATHER] = "all-gather",
	[FABREX_REDUCE_SCATTER] = "reduce-scatter",
	[FABREX_BROADCAST] = "broadcast",
	[FABREX_REDUCE] = "reduce",
	[FABREX_ALL_TO_ALL] = "all-to-all",
};

const char *fxi_schedule_kind_name(uint32_t kind)
{
	if (kind >= sizeof(kind_names) / sizeof(kind_names[0]))
		return NULL;
	return kind_names[kind];
}

uint64_t fxi_schedule_shards(uint32_t kind, uint32_t ranks)
{
	if (kind == FABREX_ALL_TO_ALL)
		return (uint64_t)ranks * ranks;
	if (kind == FABREX_ALL_GATHER || kind == FABREX_REDUCE_SCATTER)
		return ranks;
	return 1;
}

/* ---- shards and chunks ------------------------------------------------- */

uint32_t fxi_schedule_shard(const struct fabrex_schedule *schedule,
			    uint32_t chunk)
{
	uint32_t low = 0, high = schedule->nshards, middle;

	if (!schedule->first)
		return chunk / schedule->nparts;
	while (high - low > 1) {
		middle = low + (high - low) / 2;
		if (schedule->first[middle] <= chunk)
			low = middle;
		else
			high = middle;
	}
	return low;
}

bool fxi_schedule_begins(const struct fabrex_schedule *schedule,
			 uint32_t shard, uint32_t rank)
{
	switch (schedule->kind) {
	case FABREX_ALL_GATHER:
		return rank == shard;
	case FABREX_BROADCAST:
		return rank == schedule->root;
	case FABREX_ALL_TO_ALL:
		return rank == shard / schedule->ranks;
	default:
		return true;
	}
}

bool fxi_schedule_ends(const struct fabrex_schedule *schedule, uint32_t shard,
		       uint32_t rank)
{
	switch (schedule->kind) {
	case FABREX_REDUCE_SCATTER:
		return rank == shard;
	case FABREX_REDUCE:
		return rank == schedule->root;
	case FABREX_ALL_TO_ALL:
		return rank == shard % schedule->ranks;
	default:
		return true;
	}
}

/* Chunks that are much larger than a cache line begin at one. */
static uint64_t cut(uint64_t count, uint64_t weight, uint64_t sum,
		    uint32_t size, bool large)
{
	uint64_t at = (uint64_t)((unsigned __int128)count * weight / sum);

	return large && weight != sum ? at - at % (CUT / size) : at;
}

void fxi_schedule_range(const struct fabrex_schedule *schedule, uint32_t chunk,
			uint64_t count, uint32_t size, uint64_t *start,
			uint64_t *end)
{
	const uint64_t *ends = schedule->ends;
	uint32_t part, n = schedule->nparts;
	uint64_t sum, before;
	bool large;

	if (schedule->first) {
		uint32_t shard = fxi_schedule_shard(schedule, chunk);

		ends += schedule->first[shard];
		part = chunk - schedule->first[shard];
		n = schedule->first[shard + 1] - schedule->first[shard];
	} else {
		part = chunk % n;
	}
	sum = ends[n - 1];
	before = part ? ends[part - 1] : 0;
	large = count * size / n >= 64 * CUT;
	*start = cut(count, before, sum, size, large);
	*end = cut(count, ends[part], sum, size, large);
}
