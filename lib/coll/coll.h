/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Collectives, the top: what the files behind the public functions offer each
 * other. Nobody below includes it. The strata, each of which calls only those
 * above it in this list, and their headers:
 *
 *   comm.h hash.c ports.c     the communicator as data
 *   bootstrap/                how ranks find each other
 *   link/                     messages between two ranks
 *   failure/                  dead and silent ranks; waiting
 *   reduce/ device/           arithmetic, by processors and by GPUs
 *   stream/                   places of operations in streams
 *   operation/                operations, and their buffers
 *   algorithm/                what performs them
 *   table.c                   which algorithm performs which
 *   busy.c progress.c         performing them
 *   background.c              performing them while the caller does not
 *   start.c comm.c user_schedule.c      public functions, and above those
 *   blocking.c enqueue.c group.c split.c shrink.c
 *
 * tools/check/circles holds them to lib/coll/strata.
 */
#ifndef LIB_COLL_H
#define LIB_COLL_H

#include <stdatomic.h>

#include "coll/operation/operation.h"

struct rendezvous;
struct table;

/* ---- table.c ----------------------------------------------------------- */

/* The table of a communicator, and what its algorithms keep. */
int fxi_table_make(struct fabrex_comm *comm, const char *text);
void fxi_table_free(struct fabrex_comm *comm);
/*
 * The algorithm, and if it is fxi_scheduled the schedule to follow, which
 * the table keeps. The answer depends on what is the same at every rank only.
 */
const struct algorithm *
fxi_table_choose(struct fabrex_comm *comm,
		 const struct fabrex_collective *what,
		 const struct fabrex_schedule **schedule);

/*
 * The schedule to follow instead of "direct" if all ranks have their buffers on
 * GPUs; NULL: none.
 */
const struct fabrex_schedule *
fxi_table_choose_gpus(struct fabrex_comm *comm,
		      const struct fabrex_collective *what);

/* Reports which it is and why, if fxi_debugs(FXI_DEBUG_COLL). */
void fxi_table_say(const struct fabrex_coll *coll);

/* ---- busy.c ------------------------------------------------------------ */

/* For the inline function below. */
void fxi_comm_leave_busy(struct fabrex_comm *comm);

/*
 * The progress thread takes the lock again and again: it keeps away from those
 * that somebody wants.
 */
static inline void fxi_comm_lock(struct fabrex_comm *comm)
{
	__atomic_add_fetch(&comm->wanted, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&comm->lock);
	__atomic_sub_fetch(&comm->wanted, 1, __ATOMIC_RELAXED);
}

/* Around whatever touches the communicator: others may advance it. */
static inline void fxi_comm_enter(struct fabrex_comm *comm)
{
	if (unlikely(comm->busy))
		fxi_comm_lock(comm);
}

static inline void fxi_comm_leave(struct fabrex_comm *comm)
{
	if (unlikely(comm->busy || comm->skipping))
		fxi_comm_leave_busy(comm);
}

/* The same as enter, and from now on others may. */
void fxi_comm_enter_busy(struct fabrex_comm *comm);
extern atomic_uint fxi_busy_count;
/* Advance the others that are busy, but for those that are being advanced. */
bool fxi_busy_advance_others(const struct fabrex_comm *mine,
			     bool (*advance)(struct fabrex_comm *comm));
/* The same; mostly there are none. */
static inline bool fxi_busy_advance(const struct fabrex_comm *mine,
				    bool (*advance)(struct fabrex_comm *comm))
{
	if (likely(atomic_load_explicit(&fxi_busy_count,
					memory_order_relaxed) <= mine->busy))
		return false;
	return fxi_busy_advance_others(mine, advance);
}
/* In the child of a fork: none is. */
void fxi_busy_forked(void);

/* What the progress thread has found in one round of all communicators. */
enum busy_round {
	BUSY_NOTHING,		/* no operations */
	BUSY_OTHERS,		/* of those that somebody else is in only */
	BUSY_WAITS,		/* operations that could not go on */
	BUSY_MOVED,
};

/* Advance all that nobody is in, but those that do without that thread. */
enum busy_round fxi_busy_round(bool (*advance)(struct fabrex_comm *comm));

/* ---- background.c ------------------------------------------------------ */

/* Before something is enqueued: there is a progress thread. 0 or -EAGAIN. */
int fxi_background_need(void);
/*
 * An operation has begun whose caller has a handle, or has enqueued it: then
 * the progress thread is woken, otherwise it comes by within a millisecond.
 */
void fxi_background_notice(const struct fabrex_comm *comm, bool enqueued);
/*
 * The thread calls the runtime of a kind of memory from now on: it ends before
 * that does.
 */
void fxi_background_uses_runtime(uint32_t kind);
/* In the child of a fork: there is no thread. */
void fxi_background_forked(void);

/* ---- progress.c -------------------------------------------------------- */

/*
 * For comm.c: what operations need, once the links are there; and its end,
 * which gives up what is under way.
 */
int fxi_operations_make(struct fabrex_comm *comm, const char *algorithms);
void fxi_operations_free(struct fabrex_comm *comm);
/*
 * For one that will be enqueued in a stream: all that cannot be done any more
 * once others wait for it there. It finds out where the buffers are, and which
 * algorithm performs it.
 */
int fxi_coll_prepare(struct fabrex_coll *coll);
/* Begin, or queue, an operation whose arguments were found right. */
void fxi_coll_begin(struct fabrex_coll *coll);
/* One round of everything that can go on. True if something did. */
bool fxi_comm_progress(struct fabrex_comm *comm);
/* The same where nobody waits for an operation: looks after failures, too. */
bool fxi_comm_progress_unwaited(struct fabrex_comm *comm);
/* In a wait: the other communicators that have operations, for one round. */
bool fxi_comm_advance_others(const struct fabrex_comm *comm);
/* One round of a wait in which nothing moved: looks whether all ranks live. */
void fxi_coll_pause(struct fabrex_coll *coll, uint32_t patience);
/* Until it has ended, 0, or -ETIMEDOUT. */
int fxi_coll_wait(struct fabrex_coll *coll, uint64_t deadline);
/* Everything under way ends with comm->error. */
void fxi_comm_give_up(struct fabrex_comm *comm);

/* ---- start.c ----------------------------------------------------------- */

/* Arguments, then all of it, without a handle: @coll was only initialized. */
int fxi_coll_run(struct fabrex_coll *coll);

/* ---- comm.c ------------------------------------------------------------ */

/* Before the first lock that a child of a fork has to make anew is taken. */
void fxi_forks_handle(void);

/* Used by create, split and shrink. */
int fxi_comm_make(struct fabrex_port *const *ports, uint32_t nports,
		  struct rendezvous *rendezvous,
		  const struct fabrex_comm_attr *attr,
		  struct fabrex_comm **out);

/* ---- user_schedule.c --------------------------------------------------- */

/* With the communicator. */
void fxi_user_schedules_free(struct fabrex_comm *comm);

#endif
