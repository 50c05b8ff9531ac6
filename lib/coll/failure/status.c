// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which ranks have failed and why, as far as this rank knows: read from the
 * boards that other ranks write to, and written to theirs. The lower half of
 * failure/; called by detect.c and shrink.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/debug.h"
#include "coll/failure/failure.h"

static uint64_t status_check(const struct rank_status *status)
{
	return fxi_hash((const char *)status + sizeof(status->check),
			sizeof(*status) - sizeof(status->check), 1);
}

/* ---- reasons ----------------------------------------------------------- */

static const char *why_text(const struct fabrex_comm *comm)
{
	bool self = comm->culprit == comm->rank;

	switch ((enum failure_why)comm->why) {
	case WHY_SILENT:
		return self ? "was taken for dead by the others, because it took no part for too long" :
			      "has taken no part for the time set (silence_ms)";
	case WHY_LEFT:
		return "destroyed the communicator before the others were done";
	case WHY_ABORTED:
		return "has aborted";
	case WHY_BROKEN:
		return "has given up after an error of its own";
	case WHY_PORT:
		return "has lost its port or its link to the fabric";
	case WHY_SHRINKS:
		return "shrinks the communicator; do the same";
	case WHY_DISAGREES:
		return "calls other collectives than the rest";
	case WHY_APART:
		return "has no port that reaches some other rank; see its own error";
	case WHY_DEAD:
		break;
	}
	return self ? "was taken for dead by the others" :
		      "has died or cannot be reached any more";
}

void fxi_failure_say(const struct fabrex_comm *comm, const char *how)
{
	const struct link_card *card = fxi_link_card(comm, comm->culprit);

	fxi_debug(FXI_DEBUG_FAILURE, comm->rank,
		  "communicator of %u ranks: %srank %u (host %s, process %u) %s; %s%s%s",
		  comm->size, comm->culprit == comm->rank ? "this " : "",
		  comm->culprit, card->name, card->pid, why_text(comm), how,
		  comm->reason ? ": " : "", comm->reason ? comm->reason : "");
}

void fxi_status_publish(struct fabrex_comm *comm)
{
	struct rank_status *b = comm->status;
	uint32_t rank;

	if (!(b->state & STATUS_DECIDED))
		memcpy(b->failed, comm->failed, sizeof(b->failed));
	b->error = comm->error;
	b->culprit = comm->culprit;
	b->why = comm->why;
	b->check = status_check(b);
	for (rank = 0; rank < comm->size; rank++) {
		if (rank == comm->rank)
			continue;
		fxi_link_post(comm, rank, BOARD_AT_STATUS, b, sizeof(*b));
		fxi_link_raise(comm, rank);
	}
	/*
	 * Ordered before whatever the caller stores once it knows of the error.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void fxi_status_state(struct fabrex_comm *comm, uint32_t state,
		      const uint64_t *failed)
{
	struct rank_status *b = comm->status;

	if (!(b->state & STATUS_DECIDED))
		memcpy(b->failed, failed, sizeof(b->failed));
	b->state |= state;
	fxi_status_publish(comm);
}

bool fxi_status_decided(const struct fabrex_comm *comm, uint64_t *failed)
{
	const struct rank_status *b = comm->status;

	if (b->state & STATUS_DECIDED)
		memcpy(failed, b->failed, sizeof(b->failed));
	return b->state & STATUS_DECIDED;
}

bool fxi_status_read(struct fabrex_comm *comm, uint32_t rank,
		     struct rank_status *status)
{
	fxi_link_board_copy(comm, rank, BOARD_AT_STATUS, status,
			    sizeof(*status));
	return status->check == status_check(status);
}

static uint64_t valid_bits(const struct fabrex_comm *comm, uint32_t word)
{
	if (comm->size >= (word + 1) * 64)
		return ~0ull;
	return comm->size > word * 64 ? (1ull << comm->size % 64) - 1 : 0;
}

/* Errors of others become one of the two that are documented. */
static void adopt(struct fabrex_comm *comm, uint32_t rank,
		  const struct rank_status *b)
{
	bool known = b->why >= WHY_DEAD && b->why <= WHY_APART;

	if (comm->error)
		return;
	comm->error = b->error == -ETIMEDOUT ? -ETIMEDOUT : -ECONNRESET;
	comm->culprit = b->culprit < comm->size && known ? b->culprit : rank;
	comm->why = known ? b->why : WHY_DEAD;
	fxi_failure_say(comm, "another rank has told");
}

bool fxi_status_merge(struct fabrex_comm *comm, uint32_t rank,
		      const struct rank_status *b)
{
	bool news = false;
	uint64_t bits;
	uint32_t i;

	for (i = 0; i < FAILED_WORDS; i++) {
		bits = b->failed[i] & valid_bits(comm, i) & ~comm->failed[i];
		comm->failed[i] |= bits;
		news |= bits != 0;
	}
	if (news || b->error || b->state & STATUS_SHRINK)
		adopt(comm, rank, b);
	return news;
}

bool fxi_status_aborted(struct fabrex_comm *comm, uint32_t rank, bool *news)
{
	if (!fxi_link_has_aborted(comm, rank))
		return false;
	if (!fxi_failed(comm, rank)) {
		comm->failed[rank / 64] |= 1ull << rank % 64;
		*news = true;
	}
	if (!comm->error) {
		comm->error = -ECONNRESET;
		comm->culprit = rank;
		comm->why = WHY_ABORTED;
		fxi_failure_say(comm, "it has told");
	}
	return true;
}

/*
 * Some thread of this process, or a handler of signals, has called
 * fabrex_comm_abort(), which leaves to us what cannot be done there. Whatever
 * has failed before, it is the last word.
 */
static void own_abort(struct fabrex_comm *comm)
{
	const uint64_t aborted = 1;
	uint32_t rank;

	comm->failed[comm->rank / 64] |= 1ull << comm->rank % 64;
	free(comm->reason);
	comm->reason = NULL;
	comm->error = -ECANCELED;
	comm->culprit = comm->rank;
	comm->why = WHY_ABORTED;
	fxi_failure_say(comm, "fabrex_comm_abort() was called");
	for (rank = 0; rank < comm->size; rank++)
		if (rank != comm->rank)
			fxi_link_post(comm, rank, BOARD_AT_ABORT, &aborted,
				      sizeof(aborted));
	fxi_status_publish(comm);
}

int fxi_status_notice(struct fabrex_comm *comm)
{
	bool news = false;
	struct rank_status b;
	uint32_t rank;

	/* After the alarm, where that is what made the caller ask. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (unlikely(comm->error != -ECANCELED &&
		     __atomic_load_n(&comm->aborted, __ATOMIC_ACQUIRE)))
		own_abort(comm);
	if (comm->error)
		return comm->error;
	for (rank = 0; rank < comm->size; rank++) {
		if (rank == comm->rank)
			continue;
		fxi_status_aborted(comm, rank, &news);
		if (fxi_status_read(comm, rank, &b))
			news |= fxi_status_merge(comm, rank, &b);
	}
	if (news || comm->error)
		fxi_status_publish(comm);
	return comm->error;
}

int fxi_comm_blame(struct fabrex_comm *comm, uint32_t rank,
		   enum failure_why why, int error)
{
	if (fxi_failed(comm, rank))
		return comm->error;
	comm->failed[rank / 64] |= 1ull << rank % 64;
	if (!comm->error) {
		comm->error = error;
		comm->culprit = rank;
		comm->why = why;
		fxi_failure_say(comm, "noticed here");
	}
	fxi_status_publish(comm);
	return comm->error;
}

/* ---- error messages ---------------------------------------------------- */

int fxi_comm_error(struct fabrex_comm *comm)
{
	const struct link_card *card = fxi_link_card(comm, comm->culprit);

	if (comm->reason)
		return fxi_error(-comm->error, "%s", comm->reason);
	return fxi_error(-comm->error, "communicator of %u ranks: %srank %u (host %s, process %u) %s; %s",
			 comm->size,
			 comm->culprit == comm->rank ? "this " : "",
			 comm->culprit, card->name, card->pid, why_text(comm),
			 fxi_failed(comm, comm->rank) ?
			 "destroy the communicator" :
			 "go on with fabrex_comm_shrink()");
}
