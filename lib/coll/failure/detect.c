// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Detects ranks that have died or take no part any more. Whoever waits looks
 * for them, and tells all ranks over the boards, so that nobody has to find out
 * twice. Called by everything above in lib/coll that waits.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "coll/failure/failure.h"

#define TICKS		(1u << 19) /* between looks at the clock, about 0.2 ms */
#define LOOK_NS		10000000u /* between looks, where they cost little */
#define NOBODY		UINT32_MAX

/* The last beat of a rank, and when it was first seen. */
struct beat {
	uint64_t value, seen_ns;
};

struct detector {
	struct beat *beats;	/* by rank */
	uint64_t looked_ns;	/* last look for the dead */
	uint32_t next;		/* rank that is looked at next */
	uint64_t count;		/* own beats */
	uint64_t beat_ns;
	bool suspecting, asking_self;
	uint64_t ticks;		/* at the last look at the clock */
	uint64_t silent_ns;	/* last look for silent ranks */
	uint64_t quiet_ns;	/* nothing has moved since; 0: not known */
	uint64_t quiet_moved;
	uint32_t left;		/* rank waited for at the last look that had */
	uint64_t left_moved;	/* left already */
};

int fxi_failure_make(struct fabrex_comm *comm)
{
	struct detector *w = calloc(1, sizeof(*w));

	comm->detector = w;
	comm->status = calloc(1, sizeof(*comm->status));
	comm->failed = calloc(FAILED_WORDS, sizeof(*comm->failed));
	if (w)
		w->beats = calloc(comm->size, sizeof(*w->beats));
	if (!w || !comm->status || !comm->failed || !w->beats)
		return fxi_error(ENOMEM, "port %s: communicator: out of memory",
				 comm->port->attr.name);
	w->left = NOBODY;
	return 0;
}

void fxi_failure_free(struct fabrex_comm *comm)
{
	if (comm->detector)
		free(comm->detector->beats);
	free(comm->detector);
	free(comm->status);
	free(comm->failed);
	free(comm->reason);
	comm->detector = NULL;
	comm->status = NULL;
	comm->failed = NULL;
	comm->reason = NULL;
}

/* ---- the dead ---------------------------------------------------------- */

/*
 * If no rank can be reached through a port, it is not the others that have gone: a
 * WRITE to oneself fails as well there, even before the port's state changes.
 */
static bool own_link_down(struct fabrex_comm *comm, uint32_t rank)
{
	uint64_t deadline = fxi_deadline((int)comm->death_ms / 4);
	int ret;

	if (comm->coherent)
		return false;
	comm->detector->asking_self = true;
	do {
		ret = fxi_link_probe_self(comm, rank);
	} while (ret == -EINPROGRESS && fxi_remaining_ms(deadline));
	comm->detector->asking_self = false;
	return ret == -ECONNRESET;
}

/* A death found during the probe of oneself will be found again. */
static void is_dead(struct fabrex_comm *comm, uint32_t rank)
{
	if (comm->detector->asking_self)
		return;
	if (own_link_down(comm, rank))
		fxi_comm_blame(comm, comm->rank, WHY_PORT, -ECONNRESET);
	else
		fxi_comm_blame(comm, rank, WHY_DEAD, -ECONNRESET);
}

/*
 * A rank that has left may have sent all that is needed: it is only missed if
 * nothing has moved between two looks.
 */
static void has_left(struct fabrex_comm *comm, uint32_t waiting)
{
	struct detector *w = comm->detector;

	if (w->left == waiting && w->left_moved == comm->moved)
		fxi_comm_blame(comm, waiting, WHY_LEFT, -ECONNRESET);
	w->left = waiting;
	w->left_moved = comm->moved;
}

static void look_at(struct fabrex_comm *comm, uint32_t rank, bool waited_for)
{
	if (!fxi_link_has_left(comm, rank)) {
		if (fxi_link_probe(comm, rank) != -ECONNRESET)
			return;
		if (!fxi_link_has_left(comm, rank)) {
			is_dead(comm, rank);
			return;
		}
	}
	if (waited_for)
		has_left(comm, rank);
}

static uint64_t look_period(const struct fabrex_comm *comm)
{
	uint64_t ns = (uint64_t)comm->death_ms * 1000000u / 4;

	return comm->coherent && ns > LOOK_NS ? LOOK_NS : ns;
}

/*
 * All ranks, within a quarter of death_ms. If every look were at all of them,
 * many ranks with few processors would do little else.
 */
static void look_at_some(struct fabrex_comm *comm, uint32_t waiting)
{
	uint64_t ns = (uint64_t)comm->death_ms * 1000000u / 4;
	struct detector *w = comm->detector;
	uint64_t n = ns ? comm->size * look_period(comm) / ns : comm->size;
	uint32_t rank;

	for (n = n < comm->size ? n + 1 : comm->size; n; n--) {
		rank = w->next;
		w->next = (rank + 1) % comm->size;
		if (rank != comm->rank && rank != waiting &&
		    !fxi_failed(comm, rank))
			look_at(comm, rank, false);
	}
}

/* The rank that is waited for each time. */
void fxi_look_for_dead(struct fabrex_comm *comm, uint32_t waiting)
{
	uint64_t now = fxi_now_ns();

	if (now - comm->detector->looked_ns < look_period(comm))
		return;
	comm->detector->looked_ns = now;
	if (waiting < comm->size && waiting != comm->rank &&
	    !fxi_failed(comm, waiting))
		look_at(comm, waiting, true);
	look_at_some(comm, waiting);
	if (comm->links->far)
		fxi_link_again(comm, false);
}

static void ask_all(struct fabrex_comm *comm)
{
	uint32_t rank;

	for (rank = 0; rank < comm->size && !fxi_status_notice(comm); rank++)
		if (rank != comm->rank)
			look_at(comm, rank, false);
}

/*
 * The operation that failed may have noticed the death before the fabric did.
 */
int fxi_comm_suspect(struct fabrex_comm *comm)
{
	NO_CANCEL();
	uint64_t deadline = fxi_deadline((int)comm->death_ms / 4);

	if (comm->detector->suspecting)
		return comm->error;
	comm->detector->suspecting = true;
	do {
		ask_all(comm);
		if (!comm->error)
			poll(NULL, 0, 1);
	} while (!comm->error && fxi_remaining_ms(deadline));
	comm->detector->suspecting = false;
	return comm->error;
}

/* An error of this rank is often the consequence of a death. */
int fxi_comm_fail(struct fabrex_comm *comm, uint32_t rank, int error)
{
	if (rank != comm->rank && error == -ETIMEDOUT)
		return fxi_comm_blame(comm, rank, WHY_SILENT, error);
	if (rank != comm->rank) {
		is_dead(comm, rank);
		return comm->error;
	}
	if (!comm->error && fxi_comm_suspect(comm)) {
		free(comm->reason);
		comm->reason = NULL;
		return comm->error;
	}
	if (error != -EPROTO)
		return fxi_comm_blame(comm, rank, WHY_BROKEN, error);
	/* Ranks do not call the same: none has failed, and all can go on. */
	if (!comm->error) {
		comm->error = error;
		comm->culprit = rank;
		comm->why = WHY_DISAGREES;
		fxi_failure_say(comm, "noticed here");
		fxi_status_publish(comm);
	}
	return comm->error;
}

/* A board that cannot be read is just being written. */
int fxi_comm_notice(struct fabrex_comm *comm)
{
	if (fxi_status_notice(comm) || fxi_comm_suspect(comm))
		return comm->error;
	return fxi_comm_blame(comm, comm->rank, WHY_BROKEN, -ECONNRESET);
}

void fxi_comm_break(struct fabrex_comm *comm, int error)
{
	if (comm->error)
		return;
	comm->reason = strdup(fabrex_strerror_last());
	fxi_comm_fail(comm, comm->rank, error);
}

/* Cheaper than the clock. */
static inline uint64_t ticks(void)
{
#if defined(__x86_64__) || defined(__i386__)
	return __builtin_ia32_rdtsc();
#else
	return fxi_now_ns();
#endif
}

/* ---- the silent -------------------------------------------------------- */

/* Publishes that this rank lives, and which rank it waits for. */
static void beat(struct fabrex_comm *comm, uint32_t waiting, uint64_t now)
{
	struct detector *w = comm->detector;
	uint64_t value;
	uint32_t rank;

	if (now - w->beat_ns < (uint64_t)comm->silence_ms * 1000000u / 8)
		return;
	w->beat_ns = now;
	value = ++w->count << 32 | waiting;
	for (rank = 0; rank < comm->size; rank++)
		if (rank != comm->rank && !fxi_failed(comm, rank))
			fxi_link_post(comm, rank, BOARD_AT_BEAT, &value,
				      sizeof(value));
}

void fxi_comm_beat(struct fabrex_comm *comm, uint32_t waiting)
{
	uint64_t now = ticks();

	if (!comm->silence_ms || comm->error ||
	    now - comm->detector->ticks < TICKS)
		return;
	comm->detector->ticks = now;
	beat(comm, waiting, fxi_now_ns());
}

static void beats_read(struct fabrex_comm *comm, uint64_t now)
{
	uint64_t value;
	uint32_t rank;

	for (rank = 0; rank < comm->size; rank++) {
		struct beat *b = &comm->detector->beats[rank];

		value = __atomic_load_n(fxi_link_board(comm, rank,
						       BOARD_AT_BEAT),
					__ATOMIC_RELAXED);
		if (value == b->value)
			continue;
		b->value = value;
		b->seen_ns = now;
	}
}

/* A rank that itself waits for another is not the one to blame. */
static uint32_t missing(const struct fabrex_comm *comm, uint32_t waiting,
			uint64_t now)
{
	uint64_t recent = (uint64_t)comm->silence_ms * 1000000u / 2;
	uint32_t rank = waiting, steps, next;

	for (steps = 0; steps < comm->size; steps++) {
		const struct beat *b = &comm->detector->beats[rank];

		if (!b->seen_ns || now - b->seen_ns > recent)
			return rank;
		next = (uint32_t)b->value;
		if (next >= comm->size)
			return rank;
		if (next == comm->rank)
			return waiting;
		rank = next;
	}
	return waiting;
}

/*
 * Time during which this rank itself did not wait, or for no other, is not
 * counted.
 */
static void look_for_silent(struct fabrex_comm *comm, uint32_t waiting)
{
	uint64_t limit = (uint64_t)comm->silence_ms * 1000000u;
	struct detector *w = comm->detector;
	uint64_t now = fxi_now_ns();
	bool away = now - w->silent_ns > limit / 4;

	if (!away && now - w->silent_ns < limit / 64)
		return;
	w->silent_ns = now;
	beat(comm, waiting, now);
	beats_read(comm, now);
	if (away || !w->quiet_ns || w->quiet_moved != comm->moved ||
	    waiting >= comm->size) {
		w->quiet_ns = now;
		w->quiet_moved = comm->moved;
	}
	if (now - w->quiet_ns > limit && waiting != comm->rank)
		fxi_comm_blame(comm, missing(comm, waiting, now), WHY_SILENT,
			       -ETIMEDOUT);
}

/* ---- waiting ----------------------------------------------------------- */

static int look(struct fabrex_comm *comm, uint32_t waiting)
{
	uint64_t now = ticks();

	if (now - comm->detector->ticks < TICKS)
		return 0;
	comm->detector->ticks = now;
	fxi_look_for_dead(comm, waiting);
	if (comm->silence_ms)
		look_for_silent(comm, waiting);
	return comm->error;
}

static inline int noticed(struct fabrex_comm *comm)
{
	if (likely(!comm->error &&
		   !__atomic_load_n(comm->links->alarm, __ATOMIC_RELAXED)))
		return 0;
	return fxi_status_notice(comm) ? comm->error : 0;
}

int fxi_comm_look(struct fabrex_comm *comm, uint32_t waiting, bool fresh)
{
	if (unlikely(noticed(comm)))
		return comm->error;
	if (fresh)
		comm->detector->quiet_ns = 0;
	return look(comm, waiting);
}

int fxi_comm_wait(struct fabrex_comm *comm, uint32_t waiting,
		  uint32_t patience)
{
	if (unlikely(noticed(comm)))
		return comm->error;
	fxi_backoff(comm, patience);
	if (!patience)
		comm->detector->quiet_ns = 0;
	if (patience % PATIENCE_LOOKS && !comm->crowded &&
	    patience < BACKOFF_SPINS)
		return 0;
	return look(comm, waiting);
}

/* ---- what links ask ---------------------------------------------------- */

static int port_stuck(struct fabrex_comm *comm)
{
	return fxi_comm_blame(comm, comm->rank, WHY_PORT, -ECONNRESET);
}

static int unreachable(struct fabrex_comm *comm, uint32_t rank)
{
	return fxi_comm_fail(comm, rank, -ECONNRESET);
}

const struct link_reports fxi_failure_reports = {
	.wait = fxi_comm_wait,
	.unreachable = unreachable,
	.stuck = port_stuck,
};

/* ---- the end ----------------------------------------------------------- */

/* A thread of it may not have noticed that another one has aborted. */
static bool has_aborted(const struct fabrex_comm *comm, uint32_t rank)
{
	return fxi_link_has_aborted(comm, rank) ||
	       (comm->culprit == rank && comm->why == WHY_ABORTED);
}

/* True: @rank does not touch anything of this communicator any more. */
static bool has_noticed(struct fabrex_comm *comm, uint32_t rank)
{
	struct rank_status b;

	if (rank == comm->rank || fxi_link_has_left(comm, rank) ||
	    (fxi_failed(comm, rank) && !has_aborted(comm, rank)))
		return true;
	return fxi_status_read(comm, rank, &b) && (b.error || b.state);
}

static void settle(struct fabrex_comm *comm, bool all, uint64_t until)
{
	uint64_t deadline = fxi_deadline((int)comm->death_ms);
	uint32_t rank, patience = 0;

	if (deadline > until)
		deadline = until;
	for (rank = 0; rank < comm->size; rank++)
		while ((all || has_aborted(comm, rank)) &&
		       !has_noticed(comm, rank) && fxi_remaining_ms(deadline)) {
			fxi_link_progress(comm);
			fxi_look_for_dead(comm, NOBODY);
			fxi_backoff(comm, patience++);
		}
}

/*
 * After a failure other ranks may be copying a piece of this rank's buffers. A
 * rank outside of the library will notice the alarm before it begins one, so it
 * is safe enough to stop waiting for it after a while.
 */
void fxi_comm_settle(struct fabrex_comm *comm)
{
	settle(comm, true, UINT64_MAX);
}

void fxi_comm_settle_aborted(struct fabrex_comm *comm, uint64_t deadline)
{
	settle(comm, false, deadline);
}

void fxi_farewell(struct fabrex_comm *comm)
{
	uint64_t deadline = fxi_deadline((int)comm->death_ms);
	const uint64_t left = 1;
	uint32_t rank, repeated;

	for (rank = 0; rank < comm->size; rank++)
		if (rank != comm->rank && !fxi_failed(comm, rank) &&
		    !fxi_link_has_left(comm, rank))
			fxi_link_post(comm, rank, BOARD_AT_LEFT, &left,
				      sizeof(left));
	if (!comm->links->far)
		return;
	/* Of everything that was sent, unless something had to be sent again. */
	fxi_link_again(comm, true);
	do {
		repeated = comm->links->repeated;
		fxi_link_drain(comm, deadline);
	} while (comm->links->repeated != repeated &&
		 fxi_remaining_ms(deadline));
}
