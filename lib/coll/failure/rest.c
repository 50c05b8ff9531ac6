// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * How long a wait polls before it sleeps, where something signals what is
 * waited for (link/bell.c). Called by progress.c.
 *
 * A processor of one's own is polled on for about as long as sleeping and being
 * woken would take, which costs twice the shorter of both at most. A processor
 * that others need, such as those that run other ranks, is given up at once. It
 * shows in that the time between two looks is long: another thread ran there,
 * or on the processor below that of a virtual machine.
 */
#include <time.h>

#include "base/cancel.h"
#include "coll/failure/failure.h"

#define POLL_NS		100000u
#define POLLS_SHARED	4u		/* looks, if others need it */
#define TAKEN_NS	100000u		/* between looks, if others had it */
#define SHARED_LULLS	256u		/* then for so many waits */
#define AWAKE_LULLS	64u		/* waits without a sleep: no bells */
#define LIMIT_NS	1000000u	/* of the first sleep of a wait, */
#define LIMIT_MOST_NS	16000000u	/* and of a later one */
#define NAP_NS		50000u		/* naps: at least */
#define NAP_MOST_NS	2000000u

static void begin(struct fabrex_comm *comm, uint64_t now)
{
	struct rest *r = &comm->rest;

	if (r->shared)
		r->shared--;
	if (++r->awake == AWAKE_LULLS)
		fxi_link_stay_awake(comm);
	r->began_ns = r->looked_ns = now;
	r->limit_ns = LIMIT_NS;
	r->looks = 0;
}

/* Is it worth while to look again? */
static bool poll_on(struct rest *r, uint64_t now)
{
	if (now - r->looked_ns > TAKEN_NS)
		r->shared = SHARED_LULLS;
	r->looked_ns = now;
	if (r->shared)
		return ++r->looks < POLLS_SHARED;
	return now - r->began_ns < POLL_NS;
}

bool fxi_comm_rest(struct fabrex_comm *comm, bool first, uint64_t most_ns)
{
	uint64_t now = fxi_now_ns();
	struct rest *r = &comm->rest;

	if (first)
		begin(comm, now);
	if (poll_on(r, now))
		return false;
	/* The caller looks once more between the arming and the sleep. */
	if (first || !r->ready) {
		fxi_link_arm(comm);
		r->ready = true;
		return false;
	}
	r->ready = false;
	r->awake = 0;
	fxi_link_sleep(comm, r->limit_ns < most_ns ? r->limit_ns : most_ns);
	if (r->limit_ns < LIMIT_MOST_NS)
		r->limit_ns *= 2;
	r->looked_ns = fxi_now_ns();
	return true;
}

/* Not on the queue, which may have rung before. */
static void nap(uint64_t ns)
{
	const struct timespec limit = { .tv_nsec = (long)ns };
	NO_CANCEL();

	nanosleep(&limit, NULL);
}

bool fxi_comm_nap(struct fabrex_comm *comm, bool first)
{
	uint64_t now = fxi_now_ns(), ns;
	struct rest *r = &comm->rest;

	if (first)
		begin(comm, now);
	if (poll_on(r, now))
		return false;
	ns = (now - r->began_ns) / 8;
	ns = ns < NAP_NS ? NAP_NS : ns;
	nap(ns < NAP_MOST_NS ? ns : NAP_MOST_NS);
	r->looked_ns = fxi_now_ns();
	return true;
}
