// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Communicators with operations under way, and who may touch them. Called by
 * the public functions around their work, and by progress.c while it waits.
 */
#include "coll/algorithm/algorithm.h"
#include "coll/coll.h"

/*
 * Whoever waits advances all communicators that have operations with a handle:
 * a program that waits on one while another rank waits on another does not
 * deadlock. A communicator's lock is only taken while it is listed here.
 */
static pthread_mutex_t busy_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fabrex_comm *busy_first;
atomic_uint fxi_busy_count;

void fxi_comm_enter_busy(struct fabrex_comm *comm)
{
	fxi_comm_lock(comm);
	if (comm->busy)
		return;
	pthread_mutex_lock(&busy_lock);
	comm->busy_next = busy_first;
	busy_first = comm;
	fxi_busy_count++;
	pthread_mutex_unlock(&busy_lock);
	comm->busy = true;
}

/* The order is: a communicator's lock, then busy_lock. */
static void remove_busy(struct fabrex_comm *comm)
{
	struct fabrex_comm **at = &busy_first;

	pthread_mutex_lock(&busy_lock);
	while (*at != comm)
		at = &(*at)->busy_next;
	*at = comm->busy_next;
	fxi_busy_count--;
	pthread_mutex_unlock(&busy_lock);
	comm->busy = false;
	pthread_mutex_unlock(&comm->lock);
}

/*
 * The communicators are the parent's, and the lock may be held by a thread that
 * the child does not have.
 */
void fxi_busy_forked(void)
{
	pthread_mutex_init(&busy_lock, NULL);
	busy_first = NULL;
	fxi_busy_count = 0;
}

static bool idle(const struct fabrex_comm *comm)
{
	return !comm->first && !fxi_sendrecv_busy(comm);
}

/*
 * The rest of a SEND that was refused is taken by whoever advances next: its
 * sender waits for that, perhaps before it does what this rank waits for.
 */
void fxi_comm_leave_busy(struct fabrex_comm *comm)
{
	if (!comm->busy)
		fxi_comm_enter_busy(comm);
	if (idle(comm))
		remove_busy(comm);
	else
		pthread_mutex_unlock(&comm->lock);
}

/* The first one from @comm on that nobody is in, locked. With busy_lock. */
static struct fabrex_comm *take_from(struct fabrex_comm *comm,
				     const struct fabrex_comm *mine)
{
	while (comm && (comm == mine || pthread_mutex_trylock(&comm->lock)))
		comm = comm->busy_next;
	return comm;
}

/*
 * busy_lock is not held meanwhile, as advancing may take long: others may begin
 * operations. A communicator stays listed while its lock is held.
 */
bool fxi_busy_advance_others(const struct fabrex_comm *mine,
			     bool (*advance)(struct fabrex_comm *comm))
{
	struct fabrex_comm *comm, *next;
	bool moved = false;

	pthread_mutex_lock(&busy_lock);
	comm = take_from(busy_first, mine);
	pthread_mutex_unlock(&busy_lock);
	while (comm) {
		if (!idle(comm))
			moved |= advance(comm);
		pthread_mutex_lock(&busy_lock);
		next = take_from(comm->busy_next, mine);
		pthread_mutex_unlock(&busy_lock);
		pthread_mutex_unlock(&comm->lock);
		comm = next;
	}
	return moved;
}

/* ---- the progress thread ----------------------------------------------- */

/*
 * One that it has not looked at in this round, locked; NULL: none. *others:
 * somebody else is in one.
 */
static struct fabrex_comm *take_next(uint32_t round, bool *others)
{
	struct fabrex_comm *comm;

	pthread_mutex_lock(&busy_lock);
	for (comm = busy_first; comm; comm = comm->busy_next) {
		if (comm->round == round)
			continue;
		comm->round = round;
		if (comm->no_thread)
			continue;
		if (!__atomic_load_n(&comm->wanted, __ATOMIC_RELAXED) &&
		    !pthread_mutex_trylock(&comm->lock))
			break;
		*others = true;
	}
	pthread_mutex_unlock(&busy_lock);
	return comm;
}

/* busy_lock is not held meanwhile: others may begin operations. */
enum busy_round fxi_busy_round(bool (*advance)(struct fabrex_comm *comm))
{
	static uint32_t round;
	bool moved = false, waits = false, others = false;
	struct fabrex_comm *comm;

	round++;
	while ((comm = take_next(round, &others))) {
		if (!idle(comm)) {
			waits = true;
			moved |= advance(comm);
		}
		pthread_mutex_unlock(&comm->lock);
	}
	return moved ? BUSY_MOVED : waits ? BUSY_WAITS :
	       others ? BUSY_OTHERS : BUSY_NOTHING;
}
