// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A schedule as an object: creation, reference count, its list of transfers.
 * Called by parse.c and make.c, which fill schedules, and by their users.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/export.h"
#include "schedule/program.h"

struct fabrex_schedule *fxi_schedule_new(const char *name)
{
	struct fabrex_schedule *schedule = calloc(1, sizeof(*schedule));
	size_t n;

	if (!schedule)
		return NULL;
	/* Of a long path the end is kept, which says more. */
	n = strlen(name);
	if (n >= sizeof(schedule->name))
		name += n - sizeof(schedule->name) + 1;
	snprintf(schedule->name, sizeof(schedule->name), "%s", name);
	schedule->references = 1;
	return schedule;
}

struct fabrex_schedule *
fxi_schedule_get(const struct fabrex_schedule *schedule)
{
	/* Of a schedule in use only the reference count changes. */
	struct fabrex_schedule *counted =
		(struct fabrex_schedule *)(uintptr_t)schedule;

	__atomic_add_fetch(&counted->references, 1, __ATOMIC_RELAXED);
	return counted;
}

EXPORT void fabrex_schedule_free(struct fabrex_schedule *schedule)
{
	if (!schedule ||
	    __atomic_sub_fetch(&schedule->references, 1, __ATOMIC_ACQ_REL))
		return;
	fxi_programs_free(schedule->programs);
	free(schedule->first);
	free(schedule->ends);
	free(schedule->transfers);
	free(schedule);
}

EXPORT enum fabrex_coll_kind
fabrex_schedule_kind(const struct fabrex_schedule *schedule)
{
	return (enum fabrex_coll_kind)schedule->kind;
}

EXPORT uint32_t fabrex_schedule_ranks(const struct fabrex_schedule *schedule)
{
	return schedule->ranks;
}

int fxi_schedule_split(struct fabrex_schedule *schedule,
		       const uint64_t *weights, uint32_t n)
{
	uint64_t shards = fxi_schedule_shards(schedule->kind, schedule->ranks);
	uint64_t *ends = malloc(n * sizeof(*ends)), sum = 0;
	uint32_t i;

	if (!ends)
		return fxi_error(ENOMEM, "%s: no memory for %u chunks",
				 schedule->name, n);
	for (i = 0; i < n; i++) {
		sum += weights[i];
		ends[i] = sum;
	}
	free(schedule->ends);
	free(schedule->first);
	schedule->ends = ends;
	schedule->first = NULL;
	schedule->nparts = n;
	schedule->nshards = (uint32_t)shards;
	schedule->nchunks = (uint32_t)(shards * n);
	return 0;
}

int fxi_schedule_add(struct fabrex_schedule *schedule, struct transfer t)
{
	uint32_t room = schedule->room;
	struct transfer *grown;

	if (schedule->ntransfers == SCHEDULE_TRANSFERS)
		return fxi_error(E2BIG, "%s: more than %u transfers",
				 schedule->name, SCHEDULE_TRANSFERS);
	if (schedule->ntransfers == room) {
		room = room ? room * 2 : 64;
		grown = realloc(schedule->transfers, room * sizeof(*grown));
		if (!grown)
			return fxi_error(ENOMEM,
					 "%s: no memory for %u transfers",
					 schedule->name, room);
		schedule->transfers = grown;
		schedule->room = room;
	}
	schedule->transfers[schedule->ntransfers++] = t;
	return 0;
}
