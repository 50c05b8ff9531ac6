// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Schedules that the user has given a communicator, which table.c prefers to
 * its own choice, and the counters of what schedules have sent.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coll/coll.h"
#include "schedule/schedule.h"

void fxi_user_schedules_free(struct fabrex_comm *comm)
{
	uint32_t kind;

	for (kind = 0; kind <= FABREX_RECV; kind++)
		fabrex_schedule_free(comm->schedules[kind]);
	free(comm->traffic);
}

static int refuse(const struct fabrex_comm *comm, uint32_t kind,
		  const struct fabrex_schedule *schedule)
{
	const char *name = fxi_schedule_kind_name(kind);

	if (!name)
		return fxi_error(EINVAL, "collectives of kind %u cannot follow a schedule",
				 kind);
	if (comm->first || comm->group)
		return fxi_error(EBUSY, "the communicator has collectives under way: wait for them before their schedule changes");
	if (schedule && schedule->kind != kind)
		return fxi_error(EINVAL, "schedule \"%s\" is for %s, not for %s",
				 schedule->name,
				 fxi_schedule_kind_name(schedule->kind), name);
	if (schedule && schedule->ranks != comm->size)
		return fxi_error(EINVAL, "schedule \"%s\" is for %u ranks, the communicator has %u",
				 schedule->name, schedule->ranks, comm->size);
	return 0;
}

EXPORT int fabrex_comm_schedule(struct fabrex_comm *comm,
				enum fabrex_coll_kind kind,
				const struct fabrex_schedule *schedule)
{
	int ret;

	fxi_comm_enter(comm);
	ret = refuse(comm, kind, schedule);
	if (!ret) {
		fabrex_schedule_free(comm->schedules[kind]);
		comm->schedules[kind] = schedule ? fxi_schedule_get(schedule) :
						   NULL;
	}
	fxi_comm_leave(comm);
	return ret;
}

EXPORT int fabrex_comm_traffic(struct fabrex_comm *comm, uint32_t rank,
			       struct fabrex_traffic *traffic, size_t size)
{
	struct fabrex_traffic now = { 0 };

	if (rank >= comm->size)
		return fxi_error(EINVAL, "there is no rank %u: the communicator has %u ranks",
				 rank, comm->size);
	if (!size || size > 4096)
		return fxi_error(EINVAL, "a struct fabrex_traffic of %zu bytes: pass its size",
				 size);
	fxi_comm_enter(comm);
	if (comm->traffic)
		now = comm->traffic[rank];
	fxi_comm_leave(comm);
	memset(traffic, 0, size);
	memcpy(traffic, &now, size < sizeof(now) ? size : sizeof(now));
	return 0;
}
