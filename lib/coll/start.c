// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Starting operations, testing them and waiting for them; and performing them
 * without a handle, for blocking.c. Public half: fabrex_coll_start(3).
 */
#include <errno.h>
#include <stdlib.h>

#include "coll/algorithm/algorithm.h"
#include "coll/coll.h"

#define TEST_ROUNDS	32u	/* tests in vain for each look at failures */

static int start(struct fabrex_comm *comm,
		 const struct fabrex_collective *what,
		 struct fabrex_coll **out)
{
	struct fabrex_coll *coll = fxi_coll_new(comm, what);
	uint32_t kind;
	int ret = 0;

	if (!coll)
		return -ENOMEM;
	coll->kept = out != NULL;
	coll->result = GOING;
	if (comm->grouping)
		fxi_comm_enter(comm);
	else
		fxi_comm_enter_busy(comm);
	if (unlikely(fxi_comm_over(comm)))
		ret = fxi_comm_error(comm);
	else if (out)
		*out = coll;
	if (ret)
		free(coll);
	else if (comm->grouping)
		fxi_group_add(coll);
	else
		fxi_coll_begin(coll);
	kind = ret ? 0 : coll->recv_kind ? coll->recv_kind : coll->send_kind;
	fxi_comm_leave(comm);
	if (unlikely(kind))
		fxi_background_uses_runtime(kind);
	if (!ret && !comm->grouping)
		fxi_background_notice(comm, false);
	return ret;
}

EXPORT int fabrex_coll_start(struct fabrex_comm *comm,
			     const struct fabrex_collective *what, size_t size,
			     struct fabrex_coll **coll)
{
	struct fabrex_collective w = { 0 };
	int ret;

	ret = fxi_copy_in(comm->port, "collective", &w, sizeof(w), what, size);
	if (!ret)
		ret = fxi_coll_arguments(comm, &w);
	if (!ret && !coll && !comm->grouping)
		ret = fxi_error(EINVAL, "%s: no place for the handle; only operations of a group can do without",
				fxi_kind_name(w.kind));
	return ret ? ret : start(comm, &w, coll);
}

static int finish(struct fabrex_coll *coll)
{
	int ret = fxi_coll_result(coll);

	fxi_coll_free(coll);
	return ret;
}

EXPORT int fabrex_coll_test(struct fabrex_coll *coll)
{
	struct fabrex_comm *comm = coll->comm;
	int ret = 0;

	fxi_comm_enter(comm);
	if (coll->result == GOING && !comm->grouping &&
	    !fxi_comm_progress(comm) &&
	    !(++comm->tests % TEST_ROUNDS))
		fxi_coll_pause(coll, comm->tests / TEST_ROUNDS);
	if (coll->result != GOING) {
		comm->tests = 0;
		ret = finish(coll);
		ret = ret ? ret : 1;
	}
	fxi_comm_leave(comm);
	return ret;
}

EXPORT int fabrex_coll_wait(struct fabrex_coll *coll, int timeout_ms)
{
	struct fabrex_comm *comm = coll->comm;
	int ret;

	if (comm->grouping && coll->result == GOING)
		return fxi_error(EINVAL, "%s: it begins when its group ends; call fabrex_group_end() first",
				 fxi_kind_name(coll->what.kind));
	fxi_comm_enter(comm);
	ret = fxi_coll_wait(coll, fxi_deadline(timeout_ms));
	if (!ret)
		ret = finish(coll);
	fxi_comm_leave(comm);
	return ret;
}

/* ---- without a handle -------------------------------------------------- */

int fxi_coll_run(struct fabrex_coll *coll)
{
	struct fabrex_comm *comm = coll->comm;
	int ret = fxi_coll_arguments(comm, &coll->what);
	bool rest;

	if (unlikely(ret))
		return ret;
	if (unlikely(comm->grouping))
		return fabrex_coll_start(comm, &coll->what, sizeof(coll->what),
					 NULL);
	fxi_comm_enter(comm);
	if (unlikely(fxi_comm_over(comm))) {
		ret = fxi_comm_error(comm);
	} else {
		fxi_coll_begin(coll);
		if (fxi_is_sendrecv(coll))
			fxi_sendrecv_alone(coll);
		fxi_coll_wait(coll, UINT64_MAX);
		ret = fxi_coll_result(coll);
		free(coll->error_text);
	}
	rest = comm->skipping;
	fxi_comm_leave(comm);
	/* Of a SEND that was refused: its sender waits until it is taken. */
	if (unlikely(rest))
		fxi_background_notice(comm, false);
	return ret;
}
