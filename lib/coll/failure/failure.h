/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Failures of ranks: detected by whichever rank waits, and told to all. Stands
 * on link/; everything above may wait and report with the first part. The
 * second, the status that ranks write on the boards of others, is for comm.c
 * and shrink.c.
 */
#ifndef LIB_COLL_FAILURE_H
#define LIB_COLL_FAILURE_H

#include "coll/link/link.h"

int fxi_failure_make(struct fabrex_comm *comm);
void fxi_failure_free(struct fabrex_comm *comm);
/* For fxi_links_make(). */
extern const struct link_reports fxi_failure_reports;

/* ---- waiting, and reporting: detect.c ---------------------------------- */

/*
 * One round of a wait for rank @waiting, after @patience rounds: spins or
 * yields, and looks for dead and for silent ranks. 0, or what the operation has
 * to return from now on.
 */
int fxi_comm_wait(struct fabrex_comm *comm, uint32_t waiting,
		  uint32_t patience);
/*
 * The same look where nobody waits, for the progress thread. @fresh: something
 * has moved since the last one.
 */
int fxi_comm_look(struct fabrex_comm *comm, uint32_t waiting, bool fresh);
/*
 * After such a round, if fxi_link_can_sleep(): sleeps for @most_ns at most if
 * this has gone on for long enough, or for a processor that others need.
 * @first: of the rounds. True: it has slept.
 */
bool fxi_comm_rest(struct fabrex_comm *comm, bool first, uint64_t most_ns);
/*
 * Likewise, for what nothing signals: for a part of the time that this has
 * taken. The others are not told, as they would have to ring for each message.
 */
bool fxi_comm_nap(struct fabrex_comm *comm, bool first);
/*
 * It looks once in so many rounds. Round 0 begins a wait, and silence counts
 * from then on; a wait that was interrupted by other work goes on with this
 * number, so that it looks, and time that was silent stays so.
 */
#define PATIENCE_LOOKS	16u
/*
 * This rank waits in another communicator, but takes part in this one, too,
 * where it is @waiting's turn: tells the others, who may wait for this rank.
 */
void fxi_comm_beat(struct fabrex_comm *comm, uint32_t waiting);
/* This rank has noticed that @rank is gone: tells the others. */
int fxi_comm_fail(struct fabrex_comm *comm, uint32_t rank, int error);
/*
 * Something failed at this rank: was it because another has died? comm->error,
 * or 0 if all are there.
 */
int fxi_comm_suspect(struct fabrex_comm *comm);
/* A failure that the communicator does not survive; the message is set. */
void fxi_comm_break(struct fabrex_comm *comm, int error);
/*
 * 0, or what everything returns from now on: to be asked where calls begin, and
 * in each round of one. The first to be told of fabrex_comm_abort() tells the
 * other ranks.
 */
static inline int fxi_comm_over(struct fabrex_comm *comm);
/* Sets the message of comm->error; returns it. */
int fxi_comm_error(struct fabrex_comm *comm);
/* The alarm is raised: learns why. Returns comm->error. */
int fxi_comm_notice(struct fabrex_comm *comm);

/*
 * Has to be asked after a peer's memory was read, before success is reported.
 * Ranks that notice an error raise all alarms before they return it: if ours is
 * not raised, no buffer had been given back by the time of the reads. 0, or
 * what the operation has to return.
 */
static inline int fxi_comm_alarmed(struct fabrex_comm *comm)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (likely(!__atomic_load_n(comm->links->alarm, __ATOMIC_RELAXED)))
		return 0;
	return fxi_comm_notice(comm);
}

/* ---- status on boards: status.c ---------------------------------------- */

enum failure_why {
	WHY_DEAD = 1,		/* does not answer the fabric any more */
	WHY_SILENT,		/* alive, but took no part for too long */
	WHY_LEFT,		/* destroyed its communicator too early */
	WHY_ABORTED,		/* fabrex_comm_abort() */
	WHY_BROKEN,		/* has an error of its own */
	WHY_PORT,		/* its own port or link is gone */
	WHY_SHRINKS,		/* has not failed, but called shrink */
	WHY_DISAGREES,		/* likewise: ranks do not call the same */
	WHY_APART,		/* no port of its reaches some rank */
};

/*
 * The status on a board; valid if @check fits the rest. @failed only grows; it
 * is what the rank proposes while STATUS_SHRINK, and final once STATUS_DECIDED.
 */
#define STATUS_SHRINK	1u
#define STATUS_DECIDED	2u

struct rank_status {
	uint64_t check;
	uint64_t failed[FAILED_WORDS];
	int32_t error;
	uint32_t culprit;
	uint32_t why;
	uint32_t state;
};

_Static_assert(sizeof(struct rank_status) % 8 == 0, "words");
_Static_assert(BOARD_AT_STATUS + sizeof(struct rank_status) <= BOARD_AT_BEAT,
	       "boards");
/* Marks @rank and tells all. Returns comm->error, that of the first failure. */
int fxi_comm_blame(struct fabrex_comm *comm, uint32_t rank,
		   enum failure_why why, int error);
/*
 * Adopts what all others have found out, and tells all before any caller here
 * learns of it: see fxi_comm_alarmed(). Returns comm->error.
 */
int fxi_status_notice(struct fabrex_comm *comm);
/* Tells all what this rank knows, with the state given so far. */
void fxi_status_publish(struct fabrex_comm *comm);
/* STATUS_*; once decided, @failed is final. */
void fxi_status_state(struct fabrex_comm *comm, uint32_t state,
		      const uint64_t *failed);
/* Has this rank decided, and on whom? */
bool fxi_status_decided(const struct fabrex_comm *comm, uint64_t *failed);
/*
 * Has @rank aborted? If that is news, adopts it, and sets *news. Its status may
 * come later: until then a thread of it may still be performing an operation.
 */
bool fxi_status_aborted(struct fabrex_comm *comm, uint32_t rank, bool *news);
/* A copy of the status of @rank. False: none, or it is just being written. */
bool fxi_status_read(struct fabrex_comm *comm, uint32_t rank,
		     struct rank_status *status);
/* Adopts what it says. True if that was news. */
bool fxi_status_merge(struct fabrex_comm *comm, uint32_t rank,
		      const struct rank_status *status);

static inline int fxi_comm_over(struct fabrex_comm *comm)
{
	if (likely(!(comm->error |
		     __atomic_load_n(&comm->aborted, __ATOMIC_RELAXED))))
		return 0;
	return fxi_status_notice(comm);
}

/* For $FABREX_DEBUG: the failure in comm->culprit, and how it is known. */
void fxi_failure_say(const struct fabrex_comm *comm, const char *how);

/* ---- the rest of detect.c, for comm.c and shrink.c ---------------------- */

/*
 * Asks the fabric about @waiting and a few others, if the last time was long
 * enough ago: about all of them within a quarter of death_ms.
 * @waiting must not have left; UINT32_MAX: none.
 */
void fxi_look_for_dead(struct fabrex_comm *comm, uint32_t waiting);
/*
 * After an error: waits until all that live have noticed it too, for death_ms
 * at most.
 */
void fxi_comm_settle(struct fabrex_comm *comm);
/* The same for those that have aborted, and until then at most. */
void fxi_comm_settle_aborted(struct fabrex_comm *comm, uint64_t deadline);
/*
 * Announces that nothing more comes from this rank; returns when it was sent.
 */
void fxi_farewell(struct fabrex_comm *comm);

#endif
