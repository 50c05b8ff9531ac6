/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A communicator as data: what all strata of lib/coll share, and for each of
 * them a pointer to its own state. Included by all of them; calls nothing.
 */
#ifndef LIB_COLL_COMM_H
#define LIB_COLL_COMM_H

#include <stdbool.h>
#include <fabrex/coll.h>

#include "core/core.h"

#define COMM_RANKS	1024u	/* of a communicator, at most */

struct fabrex_comm {
	struct fabrex_port *port;
	pid_t pid;			/* whose it is: not a child's */
	uint32_t rank, size;
	uint64_t id;			/* the same at every rank */
	uint32_t death_ms, silence_ms;
	char *algorithms;		/* as in the attributes */
	uint32_t splits;		/* so far */
	bool coherent;			/* windows are ordinary memory */
	bool crowded;			/* fewer processors than ranks here:
					 * who waits yields at once
					 */
	struct links *links;		/* link.c */
	uint64_t moved;			/* messages sent and taken, counted by
					 * link.c: not silent
					 */

	/* failure.c */
	int error;			/* 0, or what everything returns */
	char *reason;			/* its sentence, if failure.c has none */
	uint32_t culprit;		/* rank that the sentence names */
	uint32_t why;			/* enum failure_why */
	uint64_t *failed;		/* bit for each rank */
	uint64_t looked_ns;		/* last look for the dead */
	struct watch *watch;		/* the rest of what it remembers */
	bool shrunk;			/* another has come of it */
	uint64_t attempt;		/* at that */

	/* operation.c */
	struct fabrex_coll *first, *last;	/* first is under way */
	uint32_t sequence;
	uint32_t tests;			/* in vain, in a row */
	bool grouping;
	struct fabrex_coll *group, *group_last;
	struct fabrex_coll *ended;	/* not tested yet, by next */
	struct pair *pairs;		/* pair.c: SEND and RECV, by rank */
	uint32_t npairs;		/* SENDs and RECVs under way */
	uint32_t skipping;		/* pairs with the rest of a SEND that
					 * its RECV has refused
					 */
	struct flat *flat;		/* of the operation under way: flat.c, */
	struct direct *direct;		/* direct.c, */
	struct staged *staged;		/* staged.c */
	struct reads *reads;		/* buffer.c */
	struct gpu *gpus;		/* place.c */
	struct fabrex_comm *busy_next;	/* communicators with operations */
	pthread_mutex_t lock;		/* held by who advances it if listed */
	bool listed;

	struct table *table;		/* table.c */

	/* given.c */
	struct fabrex_schedule *schedules[FABREX_RECV + 1];
	struct fabrex_traffic *traffic;	/* by rank; NULL: none so far */
};

/* ---- hash.c ------------------------------------------------------------ */

/* Spreads well; not for keeping secrets. */
uint64_t fxi_hash(const void *bytes, size_t length, uint64_t seed);

#endif
