/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A communicator as data: what all strata of lib/coll share, and for each of
 * them a pointer to its own state. Included by all of them; calls nothing.
 */
#ifndef LIB_COLL_COMM_H
#define LIB_COLL_COMM_H

#include <sched.h>
#include <stdbool.h>
#include <fabrex/coll.h>
#include <fabrex/p2p.h>

#include "base/barrier.h"
#include "core/core.h"

#define COMM_RANKS	1024u	/* of a communicator, at most */
#define COMM_PORTS	8u	/* of a rank, at most */
#define FAILED_WORDS	(COMM_RANKS / 64)

/* How this rank waits: failure/rest.c. */
struct rest {
	uint64_t began_ns, looked_ns;	/* this wait; the last look in it */
	uint64_t limit_ns;		/* of its next sleep */
	uint32_t looks;
	uint32_t shared;		/* waits in which others are expected
					 * to need the processor
					 */
	uint32_t awake;			/* waits without a sleep, in a row */
	bool ready;			/* the queue was armed for a sleep */
};

struct fabrex_comm {
	struct fabrex_port *port;	/* the first of its ports */
	struct fabrex_port *ports[COMM_PORTS];
	uint32_t nports;
	pid_t pid;			/* whose it is: not a child's */
	uint32_t rank, size;
	uint64_t id;			/* the same at every rank */
	uint32_t death_ms, silence_ms;
	char *algorithms;		/* as in the attributes */
	uint32_t splits;		/* so far */
	bool coherent;			/* windows are ordinary memory */
	bool crowded;			/* fewer processors than ranks here: a
					 * wait yields at once
					 */
	struct links *links;		/* link/ */
	uint64_t moved;			/* messages sent and taken, counted by
					 * link/: not silent
					 */

	/* failure/ */
	int error;			/* 0, or what everything returns */
	int aborted;			/* atomic: fabrex_comm_abort() was
					 * called; see fxi_comm_over()
					 */
	uint32_t aborting;		/* atomic: calls of it under way */
	char *reason;			/* its message, if failure/ has none */
	uint32_t culprit;		/* rank that the message names */
	uint32_t why;			/* enum failure_why */
	uint64_t *failed;		/* bit for each rank */
	struct rank_status *status;	/* as told to the others */
	struct detector *detector;	/* the rest of what it remembers */
	struct rest rest;

	/* shrink.c */
	bool shrunk;			/* another has come of it */
	uint64_t attempt;		/* at that */

	/* progress.c, start.c */
	struct fabrex_coll *first, *last;	/* first is under way */
	uint32_t sequence;
	uint32_t tests;			/* in vain, in a row */
	uint32_t unwaited;		/* likewise, by the progress thread */
	bool grouping;
	struct fabrex_coll *group, *group_last;
	struct fabrex_coll *ended;	/* not tested yet, by next */

	/* algorithm/ */
	struct sendrecv *sendrecv;	/* by rank */
	uint32_t nsendrecv;		/* SENDs and RECVs under way */
	uint32_t skipping;		/* ranks with the rest of a SEND that
					 * its RECV has refused
					 */
	struct flat *flat;		/* of the collective under way */
	struct flatv *flatv;
	struct bruck *bruck;
	struct zero_copy *zero_copy;
	struct staged *staged;

	/* operation/ */
	struct peer_buffers *peer_buffers;
	struct gpu *gpus;
	struct gpu *slots_gpu;		/* has slots on offer, or NULL */
	struct peer_copies *peer_copies;
	struct said *said;

	/* busy.c */
	struct fabrex_comm *busy_next;
	pthread_mutex_t lock;		/* held while it is advanced, if busy */
	bool busy;			/* others may advance it */
	bool no_thread;			/* the progress thread may not */
	uint32_t wanted;		/* atomic: threads that want the lock */
	uint32_t round;			/* of the progress thread, the last */

	struct table *table;		/* table.c */

	/* user_schedule.c */
	struct fabrex_schedule *schedules[FABREX_ALL_TO_ALLV + 1];
	struct fabrex_traffic *traffic;	/* by rank; NULL: none so far */
};

/* ---- hash.c ------------------------------------------------------------ */

/* Spreads well; not for keeping secrets. */
uint64_t fxi_hash(const void *bytes, size_t length, uint64_t seed);

/* ---- ports.c ----------------------------------------------------------- */

/* How others recognize a port. */
struct port_id {
	uint64_t name;			/* hash of it and of its fabric's */
	uint32_t peer, generation;
};

/* What is at a number that a port has for its peers: */
enum port_sight {
	SIGHT_NONE,			/* nothing */
	SIGHT_OTHER,			/* another port */
	SIGHT_DOWN,			/* one of the name, which is down */
	SIGHT_NAME,			/* one of the name */
	SIGHT_SAME,			/* the one that is meant */
};

void fxi_port_identify(const struct fabrex_port *port, struct port_id *id);
/* @near: the port that is meant is one of this host. */
enum port_sight fxi_port_sight(const struct fabrex_port *port,
			       const struct port_id *id, bool near);
/* Has it no peer that is up: is its link down? */
bool fxi_port_is_alone(const struct fabrex_port *port);
/*
 * Opens up to @n other ports of this host, in the same fabric, that neither @port
 * sees nor one that was opened before; returns how many. The caller closes them.
 */
uint32_t fxi_unseen_open(const struct fabrex_port *port,
			 struct fabrex_port **opened, uint32_t n);

/* ---- waiting ----------------------------------------------------------- */

/* Rounds of a wait before each of them pauses, and gives the processor away. */
#define BACKOFF_BUSY	128u
#define BACKOFF_SPINS	4096u

/*
 * One round of a wait that took @patience rounds so far. Inline, as all in a
 * round is: what a round takes is added to the latency of a short message.
 */
static inline void fxi_backoff(const struct fabrex_comm *comm,
			       uint32_t patience)
{
	if (unlikely(comm->crowded || patience >= BACKOFF_SPINS))
		sched_yield();
	else if (patience >= BACKOFF_BUSY)
		cpu_relax();
}

static inline bool fxi_failed(const struct fabrex_comm *comm, uint32_t rank)
{
	return comm->failed[rank / 64] >> rank % 64 & 1;
}

#endif
