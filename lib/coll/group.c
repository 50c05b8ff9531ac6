// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Groups: operations that begin together when the group ends. Public half:
 * fabrex_group_begin(3).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cancel.h"
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

/* ---- places in streams ------------------------------------------------- */

/* One place in the stream for all of its operations. */
static int enter_stream(struct fabrex_coll *first)
{
	struct fabrex_coll *coll;
	struct gate *gate;
	uint32_t n = 0;
	int ret;

	for (coll = first; coll; coll = coll->group_next)
		n += coll->stream == first->stream;
	ret = fxi_gate_make(first->stream, n, &gate);
	for (coll = first; coll && !ret; coll = coll->group_next)
		if (coll->stream == first->stream)
			coll->gate = gate;
	return ret;
}

/* What is sent to oneself is received in the same group, or never. */
static int check_own(const struct fabrex_coll *coll)
{
	int64_t open = 0;

	for (; coll; coll = coll->group_next)
		if (coll->stream && fxi_is_sendrecv(coll) &&
		    coll->what.root == coll->comm->rank)
			open += coll->what.kind == FABREX_SEND ? 1 : -1;
	if (open)
		return fxi_error(EDEADLK, "group: %lld more operations that %s this rank itself are enqueued than the other way round; put both ends into the group",
				 (long long)(open < 0 ? -open : open),
				 open < 0 ? "receive from" : "send to");
	return 0;
}

/*
 * Without the communicator: the stream may be full, and go on only when earlier
 * operations do.
 */
static int enter_streams(struct fabrex_coll *first)
{
	struct fabrex_coll *coll;
	int ret = check_own(first);

	for (coll = first; coll && !ret; coll = coll->group_next)
		if (coll->stream && !coll->gate)
			ret = enter_stream(coll);
	/* They are in their places, or will never be. */
	for (coll = first; coll; coll = coll->group_next)
		if (coll->stream)
			fxi_stream_leave(coll->stream);
	return ret;
}

/* ---- all of them ------------------------------------------------------- */

/* Why none is enqueued: a negative errno and its message; 0: all are. */
struct refusal {
	int error;
	char *text;
};

static int refuse(const struct refusal *r)
{
	return fxi_error(-r->error, "%s",
			 r->text ? r->text : "group: out of memory");
}

/* One of those before may have failed. */
static void begin(struct fabrex_coll *coll, const struct refusal *refusal)
{
	if (coll->stream && refusal->error)
		fxi_coll_ended(coll, refuse(refusal));
	else if (fxi_comm_over(coll->comm))
		fxi_coll_ended(coll, coll->comm->error);
	else
		fxi_coll_begin(coll);
}

/*
 * In the order of the calls. Those that are enqueued may be gone afterwards:
 * returns the others.
 */
static struct fabrex_coll *begin_all(struct fabrex_coll *coll,
				     const struct refusal *refusal)
{
	struct fabrex_coll *waited = NULL, **end = &waited, *next;

	for (; coll; coll = next) {
		next = coll->group_next;
		if (!coll->stream) {
			coll->group_next = NULL;
			*end = coll;
			end = &coll->group_next;
		}
		begin(coll, refusal);
	}
	/*
	 * All of the group have begun: a SEND to oneself without its RECV
	 * cannot end.
	 */
	for (coll = waited; coll; coll = coll->group_next)
		fxi_sendrecv_alone(coll);
	return waited;
}

static bool any_enqueued(const struct fabrex_coll *coll)
{
	while (coll && !coll->stream)
		coll = coll->group_next;
	return coll;
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

/* The first part's error is the message, unless the second has one, too. */
static int end_group(struct fabrex_coll *first, int error)
{
	const struct refusal refusal = {
		.error = error,
		.text = error ? strdup(fabrex_strerror_last()) : NULL,
	};
	int ret = end_all(begin_all(first, &refusal));

	if (!ret && error)
		ret = refuse(&refusal);
	free(refusal.text);
	return ret;
}

/*
 * Of those without a stream: once the others have their places in theirs, a copy of
 * the application may wait behind them, and runtimes make nothing. What fails now
 * is tried again, and reported, when they begin.
 */
static void prepare_called(struct fabrex_comm *comm, struct fabrex_coll *coll)
{
	fxi_comm_enter(comm);
	for (; coll; coll = coll->group_next)
		if (!coll->stream)
			fxi_coll_prepare(coll);
	fxi_comm_leave(comm);
}

EXPORT int fabrex_group_end(struct fabrex_comm *comm)
{
	NO_CANCEL();
	struct fabrex_coll *first = comm->group;
	bool enqueued = any_enqueued(first);
	int ret;

	if (!comm->grouping)
		return fxi_error(EINVAL, "group: none has begun; call fabrex_group_begin() first");
	comm->grouping = false;
	comm->group = comm->group_last = NULL;
	if (enqueued)
		prepare_called(comm, first);
	ret = enqueued ? enter_streams(first) : 0;
	if (enqueued)
		fxi_comm_enter_busy(comm);
	else
		fxi_comm_enter(comm);
	ret = end_group(first, ret);
	fxi_comm_leave(comm);
	if (enqueued)
		fxi_background_notice(comm, true);
	return ret;
}
