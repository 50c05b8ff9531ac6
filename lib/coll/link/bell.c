// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Sleeping until something arrives from a rank that is reached by WRITEs. Those
 * signal nothing where they land. So a rank that sleeps in its waits says so on
 * its board at all others; they follow whatever they write to it with a
 * datagram of no bytes, the bell, which completes after that has landed, and
 * signals the eventfd of the armed queue. Called by failure/rest.c.
 *
 * A bell that finds no free cell is not missed: the others in the cells ring.
 * What was written just before the writer could see the announcement has none,
 * nor has what is stored through a window by an abort: sleeps have a limit.
 */
#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cancel.h"
#include "coll/link/mailbox.h"

/* Every rank that can be reached: those that cannot do not write either. */
static void announce(struct fabrex_comm *comm, bool asleep)
{
	const uint64_t word = asleep;
	uint32_t rank;

	comm->links->asleep = asleep;
	for (rank = 0; rank < comm->size; rank++)
		if (rank != comm->rank && !fxi_failed(comm, rank) &&
		    !fxi_link_has_left(comm, rank))
			fxi_link_post(comm, rank, BOARD_AT_BELL, &word,
				      sizeof(word));
}

void fxi_link_arm(struct fabrex_comm *comm)
{
	struct links *links = comm->links;
	uint32_t i;

	if (!links->asleep)
		announce(comm, true);
	if (links->armed)
		return;
	links->armed = true;
	for (i = 0; i < links->mailbox->nqueues; i++)
		fabrex_arm(links->mailbox->queues[i]);
	fxi_entrances_arm(comm);
}

/* It stays armed if nothing has come: the next sleep needs no doorbell. */
void fxi_link_sleep(struct fabrex_comm *comm, uint64_t ns)
{
	struct links *links = comm->links;
	struct pollfd fds[COMM_PORTS * LINK_QUEUES + LINK_OTHERS];
	const struct mailbox *box = links->mailbox;
	nfds_t n = 0;
	uint32_t i;
	const struct timespec limit = {
		.tv_sec = (time_t)(ns / 1000000000u),
		.tv_nsec = (long)(ns % 1000000000u),
	};
	NO_CANCEL();

	for (i = 0; i < box->nqueues; i++)
		fds[n++] = (struct pollfd){
			.fd = fabrex_queue_fd(box->queues[i]),
			.events = POLLIN,
		};
	for (i = 0; i < box->nothers; i++)
		if (box->others[i].queue)
			fds[n++] = (struct pollfd){
				.fd = fabrex_queue_fd(box->others[i].queue),
				.events = POLLIN,
			};
	if (ppoll(fds, n, &limit, NULL))
		links->armed = false;
}

void fxi_link_stay_awake(struct fabrex_comm *comm)
{
	if (comm->links->asleep)
		announce(comm, false);
}

/*
 * From any thread and from handlers of signals: no cancellation point. If the
 * eventfd is full, it is readable anyway.
 */
void fxi_link_wake(const struct fabrex_comm *comm)
{
	const uint64_t one = 1;
	int old = errno;

	if (comm->links->bell_fd >= 0)
		syscall(SYS_write, comm->links->bell_fd, &one, sizeof(one));
	errno = old;
}
