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
	pthread_mutex_lock(&comm->lock);
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

bool fxi_busy_advance_others(const struct fabrex_comm *mine,
			     bool (*advance)(struct fabrex_comm *comm))
{
	struct fabrex_comm *comm;
	bool moved = false;

	if (pthread_mutex_trylock(&busy_lock))
		return false;
	for (comm = busy_first; comm; comm = comm->busy_next) {
		if (comm == mine || pthread_mutex_trylock(&comm->lock))
			continue;
		moved |= advance(comm);
		pthread_mutex_unlock(&comm->lock);
	}
	pthread_mutex_unlock(&busy_lock);
	return moved;
}
