// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Performs the operations of a communicator: one collective after the other, in
 * the order in which they were started, and SENDs and RECVs beside them. Called
 * by start.c, group.c and split.c, and by whoever waits.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/debug.h"
#include "coll/algorithm/algorithm.h"
#include "coll/coll.h"
#include "coll/operation/gpu.h"
#include "coll/operation/peer_buffer.h"
#include "coll/operation/peer_copy.h"
#include "coll/stream/stream.h"

#define NOBODY	UINT32_MAX	/* that it waits for */

/* ---- ending ------------------------------------------------------------ */

static void end_first(struct fabrex_comm *comm, int result)
{
	struct fabrex_coll *coll = comm->first;

	if (coll->begun)
		coll->algorithm->end(coll);
	comm->first = coll->next;
	if (!comm->first) {
		comm->last = NULL;
		if (!comm->nsendrecv)
			fxi_buffers_tidy(comm);
	}
	fxi_coll_ended(coll, result);
}

void fxi_comm_give_up(struct fabrex_comm *comm)
{
	while (comm->first)
		end_first(comm, comm->error);
	fxi_peer_buffers_stop(comm);
	fxi_sendrecv_give_up(comm, comm->error);
}

static void fail(struct fabrex_comm *comm, int error)
{
	fxi_comm_break(comm, error);
	fxi_comm_give_up(comm);
}

/* ---- progress ---------------------------------------------------------- */

/* Nobody else takes part: everything is a copy. */
static int alone_start(struct fabrex_coll *coll)
{
	const struct fabrex_collective *what = &coll->what;
	uint64_t bytes = fxi_recv_bytes(coll->comm, what);

	if (!bytes || what->recv == what->send)
		return 0;
	return fxi_coll_copy_own(coll, what->recv, what->send, bytes);
}

static int alone_step(struct fabrex_coll *coll)
{
	(void)coll;
	return 1;
}

static void alone_end(struct fabrex_coll *coll)
{
	(void)coll;
}

static const struct algorithm alone = {
	.name = "alone",
	.start = alone_start,
	.step = alone_step,
	.end = alone_end,
};

static void say_choice(const struct fabrex_coll *coll)
{
	if (coll->algorithm == &alone)
		return;
	if (fxi_debugs(FXI_DEBUG_COLL))
		fxi_table_say(coll);
	if (fxi_debugs(FXI_DEBUG_MEMORY) && coll->gpu)
		fxi_coll_say_memory(coll);
}

static void choose(struct fabrex_coll *coll)
{
	struct fabrex_comm *comm = coll->comm;

	if (!fxi_kind_varies(coll->what.kind) &&
	    (comm->size == 1 ||
	     (!coll->what.count && coll->what.kind != FABREX_BARRIER)))
		coll->algorithm = &alone;
	else
		coll->algorithm = fxi_table_choose(comm, &coll->what,
						   &coll->schedule);
	if (unlikely(coll->gpu) && coll->algorithm == &fxi_zero_copy)
		coll->schedule = fxi_table_choose_gpus(comm, &coll->what);
}

/*
 * What would wait for streams of the GPU is done before a later operation can be
 * in one of them: memory, kernels. Otherwise that stream and this operation
 * would wait for each other.
 */
static int prepare(struct fabrex_coll *coll)
{
	int ret = fxi_coll_find_gpu(coll);

	if (ret || fxi_is_sendrecv(coll))
		return ret;
	choose(coll);
	if (likely(!coll->gpu) || coll->algorithm == &alone)
		return 0;
	return fxi_coll_prepare_gpu(coll);
}

static void leave(struct fabrex_comm *comm)
{
	fxi_comm_leave(comm);
}

int fxi_coll_prepare(struct fabrex_coll *coll)
{
	/* Busy, as what was before in its queue may have ended meanwhile. */
	static const struct door door = { leave, fxi_comm_enter_busy };
	int ret;

	coll->door = &door;
	ret = prepare(coll);
	coll->door = NULL;
	if (!ret && unlikely(coll->gpu) && fxi_comm_over(coll->comm))
		return fxi_comm_error(coll->comm);
	return ret;
}

static int start_first(struct fabrex_coll *coll)
{
	int ret = 0;

	coll->sequence = coll->comm->sequence++;
	if (!coll->algorithm || fxi_coll_may_have_changed(coll))
		ret = fxi_coll_find_gpu(coll);
	if (ret)
		return ret;
	if (!coll->algorithm)
		choose(coll);
	if (fxi_debugs(FXI_DEBUG_COLL | FXI_DEBUG_MEMORY))
		say_choice(coll);
	if (unlikely(coll->gpu) && coll->algorithm != &alone &&
	    fxi_coll_needs_host(coll))
		ret = fxi_coll_use_host(coll);
	if (!ret)
		ret = coll->algorithm->start(coll);
	coll->begun = !ret;
	return ret;
}

/* As far as collectives go. */
static void advance(struct fabrex_comm *comm)
{
	struct fabrex_coll *coll;
	int ret;

	while ((coll = comm->first)) {
		if (unlikely(!fxi_coll_is_due(coll))) {
			coll->waiting = NOBODY;
			return;
		}
		ret = coll->begun ? 0 : start_first(coll);
		if (!ret)
			ret = coll->algorithm->step(coll);
		if (!ret)
			return;
		if (ret < 0) {
			fail(comm, ret);
			return;
		}
		comm->moved++;
		end_first(comm, 0);
	}
}

bool fxi_comm_progress(struct fabrex_comm *comm)
{
	uint64_t before = comm->moved;
	int ret;

	if (unlikely(fxi_comm_over(comm))) {
		fxi_comm_give_up(comm);
		return true;
	}
	ret = fxi_link_progress(comm);
	if (likely(!ret) && comm->first)
		advance(comm);
	if (likely(!ret) && fxi_sendrecv_busy(comm))
		ret = fxi_sendrecv_progress(comm);
	if (unlikely(ret)) {
		fail(comm, ret);
		return true;
	}
	return comm->moved != before;
}

static uint32_t waits_for(const struct fabrex_coll *coll)
{
	const struct fabrex_comm *comm = coll->comm;

	if (fxi_is_sendrecv(coll))
		return fxi_coll_is_due(coll) ? coll->what.root : NOBODY;
	return comm->first ? comm->first->waiting : coll->waiting;
}

inline void fxi_coll_pause(struct fabrex_coll *coll, uint32_t patience)
{
	struct fabrex_comm *comm = coll->comm;

	if (fxi_comm_wait(comm, waits_for(coll), patience))
		fxi_comm_give_up(comm);
}

static uint32_t awaited(const struct fabrex_comm *comm)
{
	return comm->first ? comm->first->waiting : fxi_sendrecv_waiting(comm);
}

static bool advance_other(struct fabrex_comm *comm)
{
	bool moved = fxi_comm_progress(comm);

	fxi_comm_beat(comm, awaited(comm));
	return moved;
}

bool fxi_comm_progress_unwaited(struct fabrex_comm *comm)
{
	if (fxi_comm_progress(comm)) {
		comm->unwaited = 0;
		return true;
	}
	if (!fxi_comm_look(comm, awaited(comm), !comm->unwaited)) {
		comm->unwaited = 1;
		return false;
	}
	fxi_comm_give_up(comm);
	return true;
}

bool fxi_comm_advance_others(const struct fabrex_comm *comm)
{
	return fxi_busy_advance(comm, advance_other);
}

/*
 * What nothing signals: streams, READs, and other communicators. GPUs are waited
 * for where they are given something to do.
 */
#define NAP_NS	200000u

/* How long a sleep may be while this wait depends on something else, too. */
static uint64_t longest_sleep(const struct fabrex_coll *coll, uint64_t deadline)
{
	const struct fabrex_comm *comm = coll->comm;
	uint64_t ns;

	if (waits_for(coll) == NOBODY || fxi_buffer_reads(comm) ||
	    fxi_busy_count > comm->busy)
		return NAP_NS;
	if (deadline == UINT64_MAX)
		return deadline;
	ns = fxi_now_ns();
	return ns < deadline ? deadline - ns : 0;
}

/* Nothing tells when copies between GPUs end. */
static bool rest(const struct fabrex_coll *coll, bool first, uint64_t deadline)
{
	if (fxi_peer_copies_fly(coll->comm))
		return fxi_comm_nap(coll->comm, first);
	return fxi_comm_rest(coll->comm, first, longest_sleep(coll, deadline));
}

int fxi_coll_wait(struct fabrex_coll *coll, uint64_t deadline)
{
	struct fabrex_comm *comm = coll->comm;
	uint32_t patience = 0;

	while (coll->result == GOING) {
		if (fxi_comm_progress(comm)) {
			patience = 0;
			continue;
		}
		fxi_coll_pause(coll, patience++);
		if (fxi_comm_advance_others(comm))
			patience = PATIENCE_LOOKS;
		else if (fxi_link_can_sleep(comm) && coll->result == GOING &&
			 rest(coll, patience == 1, deadline))
			patience = PATIENCE_LOOKS;
		if (deadline != UINT64_MAX && coll->result == GOING &&
		    fxi_now_ns() >= deadline)
			return fxi_error_static(ETIMEDOUT, "collective: it has not ended within the time given; wait again");
	}
	return 0;
}

/* ---- beginning --------------------------------------------------------- */

/* What cannot be told where its buffer is ends alone. */
static void begin_sendrecv(struct fabrex_coll *coll)
{
	struct fabrex_comm *comm = coll->comm;
	int ret = coll->stream ? 0 : fxi_coll_prepare(coll);

	if (unlikely(ret)) {
		fxi_coll_ended(coll, ret);
		return;
	}
	ret = fxi_sendrecv_begin(coll);
	if (unlikely(ret))
		fail(comm, ret);
}

void fxi_coll_begin(struct fabrex_coll *coll)
{
	struct fabrex_comm *comm = coll->comm;
	int ret;

	coll->result = GOING;
	if (fxi_is_sendrecv(coll)) {
		begin_sendrecv(coll);
		return;
	}
	ret = coll->algorithm ? 0 : fxi_coll_prepare(coll);
	if (comm->last)
		comm->last->next = coll;
	else
		comm->first = coll;
	comm->last = coll;
	if (unlikely(ret))
		fail(comm, ret);
	else if (comm->first == coll)
		advance(comm);
}

/* ---- life -------------------------------------------------------------- */

int fxi_operations_make(struct fabrex_comm *comm, const char *algorithms)
{
	int ret;

	pthread_mutex_init(&comm->lock, NULL);
	ret = fxi_table_make(comm, algorithms);
	if (!ret)
		ret = fxi_sendrecv_make(comm);
	if (!ret)
		ret = fxi_peer_buffers_make(comm);
	if (ret)
		fxi_operations_free(comm);
	return ret;
}

/* Handles are gone with their communicator. */
static void free_kept(struct fabrex_comm *comm)
{
	struct fabrex_coll *coll, *next;

	for (coll = comm->first; coll; coll = next) {
		next = coll->next;
		if (coll->begun)
			coll->algorithm->end(coll);
		fxi_coll_abandon(coll);
	}
	comm->first = comm->last = NULL;
	while (comm->ended)
		fxi_coll_free(comm->ended);
}

static void free_group(struct fabrex_comm *comm)
{
	struct fabrex_coll *coll, *next;

	for (coll = comm->group; coll; coll = next) {
		next = coll->group_next;
		if (coll->stream)
			fxi_stream_leave(coll->stream);
		free(coll);
	}
	comm->group = comm->group_last = NULL;
}

void fxi_operations_free(struct fabrex_comm *comm)
{
	fxi_comm_enter(comm);
	free_group(comm);
	free_kept(comm);
	fxi_peer_buffers_free(comm);
	fxi_sendrecv_free(comm);
	fxi_peers_close(comm);
	fxi_said_free(comm);
	fxi_comm_leave(comm);
	fxi_table_free(comm);
	pthread_mutex_destroy(&comm->lock);
}
