// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Groups: operations that begin together when the group ends. Public half:
 * fabrex_group_begin(3).
 */
#include <errno.h>
#include <stdlib.h>

#include "coll/algorithm/algorithm.h"
#include "coll/coll.h"

EXPORT int fabrex_group_begin(struct fabrex_comm *comm)
{
	int ret = 0;

	if (comm->grouping)
		return fxi_error(EINVAL, "group: one has begun already; groups of a communicator do not nest");
	fxi_comm_enter(comm);
	if (fxi_comm_over(comm))
		ret = fxi_comm_error(comm);
	fxi_comm_leave(comm);
	comm->grouping = !ret;
	return ret;
}

static void begin_all(struct fabrex_coll *first)
{
	struct fabrex_coll *coll;

	for (coll = first; coll; coll = coll->group_next)
		if (fxi_comm_over(coll->comm))
			fxi_coll_ended(coll, coll->comm->error);
		else
			fxi_coll_begin(coll);
	/*
	 * All of the group have begun: a SEND to oneself without its RECV
	 * cannot end.
	 */
	for (coll = first; coll; coll = coll->group_next)
		fxi_sendrecv_alone(coll);
}

/* Waits for @coll. Handles of the caller stay until they are tested. */
static int end_one(struct fabrex_coll *coll)
{
	int ret;

	fxi_coll_wait(coll, UINT64_MAX);
	ret = fxi_coll_result(coll);
	if (!coll->kept)
		fxi_coll_free(coll);
	return ret;
}

/*
 * The error message has to be that of the first that failed; since later ones
 * may have overwritten it, the first is looked at last.
 */
static int end_all(struct fabrex_coll *coll)
{
	struct fabrex_coll *next, *bad = NULL;
	int ret = 0;

	for (; coll; coll = next) {
		next = coll->group_next;
		if (!ret && !fxi_coll_wait(coll, UINT64_MAX) && coll->result) {
			ret = coll->result;
			bad = coll;
			continue;
		}
		end_one(coll);
	}
	return bad ? end_one(bad) : 0;
}

EXPORT int fabrex_group_end(struct fabrex_comm *comm)
{
	struct fabrex_coll *first = comm->group;
	int ret;

	if (!comm->grouping)
		return fxi_error(EINVAL, "group: none has begun; call fabrex_group_begin() first");
	comm->grouping = false;
	comm->group = comm->group_last = NULL;
	fxi_comm_enter(comm);
	begin_all(first);
	ret = end_all(first);
	fxi_comm_leave(comm);
	return ret;
}
