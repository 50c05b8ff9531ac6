/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What ranks tell each other of failures, on the boards of their mailboxes.
 * For the files that own communicators: comm.c, failure.c, shrink.c, link.c,
 * mailbox.c.
 */
#ifndef LIB_COLL_FAILURE_H
#define LIB_COLL_FAILURE_H

#include "coll/coll.h"

#define FAILED_WORDS	(COMM_RANKS / 64)

enum failure_why {
	WHY_DEAD = 1,		/* does not answer the fabric any more */
	WHY_SILENT,		/* lives, but took no part for too long */
	WHY_LEFT,		/* destroyed its communicator too early */
	WHY_ABORTED,		/* fabrex_comm_abort() */
	WHY_BROKEN,		/* has an error of its own */
	WHY_PORT,		/* its own port or link is gone */
	WHY_SHRINKS,		/* has not failed, but called shrink */
	WHY_DISAGREES,		/* nor this one: ranks do not call the same */
};

/*
 * The first part of a board, counts if @check fits the rest. @failed only
 * grows; it is what the rank proposes while BOARD_SHRINK, and final once
 * BOARD_DECIDED.
 */
#define BOARD_SHRINK	1u
#define BOARD_DECIDED	2u

struct board {
	uint64_t check;
	uint64_t failed[FAILED_WORDS];
	int32_t error;
	uint32_t culprit;
	uint32_t why;
	uint32_t state;
};

/* Words beside it, each whole by itself; and a card, in shrink.c's format. */
#define BOARD_BEAT	160u	/* count << 32 | rank that is waited for */
#define BOARD_LEFT	168u	/* 1: nothing more comes from this rank */
#define BOARD_CARD	192u

_Static_assert(sizeof(struct board) <= BOARD_BEAT, "boards");
_Static_assert(BOARD_CARD + 24 + sizeof(struct link_card) <= LINK_BOARD_PAIR,
	       "boards");

static inline bool fxi_failed(const struct fabrex_comm *comm, uint32_t rank)
{
	return comm->failed[rank / 64] >> rank % 64 & 1;
}

static inline bool fxi_has_left(struct fabrex_comm *comm, uint32_t rank)
{
	char *board = fxi_link_board(comm, rank);

	return __atomic_load_n((uint64_t *)(void *)(board + BOARD_LEFT),
			       __ATOMIC_ACQUIRE);
}

int fxi_watch_make(struct fabrex_comm *comm);
void fxi_watch_free(struct fabrex_comm *comm);
/* Mark @rank and tell everybody. Returns comm->error, that of the first. */
int fxi_comm_blame(struct fabrex_comm *comm, uint32_t rank,
		   enum failure_why why, int error);
/* Tell everybody what this rank knows, with the state given so far. */
void fxi_board_publish(struct fabrex_comm *comm);
/* BOARD_*; once decided, @failed is final. */
void fxi_board_state(struct fabrex_comm *comm, uint32_t state,
		     const uint64_t *failed);
/* Has this rank decided, and on whom? */
bool fxi_board_decided(const struct fabrex_comm *comm, uint64_t *failed);
/* A copy of what @rank has told us. False: nothing, or it is being written. */
bool fxi_board_read(struct fabrex_comm *comm, uint32_t rank,
		    struct board *board);
/* Take over what it says has failed. True if that was news. */
bool fxi_board_merge(struct fabrex_comm *comm, uint32_t rank,
		     const struct board *board);
/*
 * Ask the fabric about all, if the last time was long enough ago. @waiting:
 * may not have left; UINT32_MAX: nobody.
 */
void fxi_look_for_dead(struct fabrex_comm *comm, uint32_t waiting);
/* Once more around, in a wait that took @patience rounds so far. */
void fxi_relax(const struct fabrex_comm *comm, uint32_t patience);
/*
 * After an error: until all that live have noticed it too, for death_ms at
 * most.
 */
void fxi_comm_settle(struct fabrex_comm *comm);
/* Nothing more comes from this rank; returns when the others were told. */
void fxi_farewell(struct fabrex_comm *comm);

#endif
