/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Inside the collectives: communicators, operations under way, algorithms.
 * For files in lib/coll only. Below it is link.h (messages between two ranks),
 * above it the public header.
 *
 *   bootstrap/                            how ranks find each other
 *   comm.c                                communicators
 *   split.c                               parts of a communicator
 *   link.c mailbox.c                      messages; memory they go to
 *   buffer.c                              peers' buffers: mapped, or read
 *   failure.c shrink.c                    who has died, and going on without
 *   arguments.c                           what is wrong with them
 *   operation.c group.c blocking.c        start, test, wait
 *   pair.c                                SEND and RECV
 *   table.c                               which algorithm
 *   flat.c direct.c staged.c              one step; straight in peers' memory;
 *                                         by way of the slots
 *   schedule.c parse.c make.c             explicit schedules
 *   check.c set.c explain.c               proved right before they run
 *   program.c execute.c pass.c region.c   and executed
 *   given.c                               those of the user, and counters
 *   place.c                               buffers on GPUs
 *   reduce/ device/                       arithmetic
 */
#ifndef LIB_COLL_H
#define LIB_COLL_H

#include <stdbool.h>
#include <fabrex/coll.h>
#include "coll/comm.h"
#include "coll/failure/failure.h"
#include "coll/reduce.h"

struct algorithm;
struct rendezvous;

/* One operation, from start to the end. */
struct fabrex_coll {
	struct fabrex_comm *comm;
	struct fabrex_coll *next;	/* in the communicator's queue */
	struct fabrex_coll *group_next;	/* in the group's list */
	struct fabrex_coll **ended;	/* what points to it in comm->ended */
	struct fabrex_collective what;
	const struct algorithm *algorithm;
	const struct fabrex_schedule *schedule; /* fxi_scheduled: to follow */
	void *state;			/* the algorithm's */
	uint64_t done;			/* SEND, RECV: bytes so far */
	uint32_t sequence;		/* of the communicator's collectives */
	uint32_t waiting;		/* rank that step() waits for */
	int result;			/* 1: going on */
	bool kept;			/* the caller has a handle */
	bool begun;			/* start() was called */
	char *sentence;			/* of a failure, or NULL */

	/* place.c: 0, or FABREX_MEMORY_HIP, FABREX_MEMORY_CUDA */
	uint8_t send_kind, recv_kind;
	struct gpu *gpu;
	struct hosted *hosted;
};

/*
 * One way to perform operations. The executor calls @start once it is the
 * operation's turn, then @step until it does not return 0, then @end.
 *
 * @usable: it can do @what here; the answer is the same at every rank
 * @start:  0 or a negative errno; sets coll->state
 * @step:   as far as it goes without waiting. 1: ended; 0: waits for a message
 *          from rank coll->waiting, or for room there; negative errno
 * @end:    frees coll->state, after success and failure alike
 */
struct algorithm {
	const char *name;
	uint32_t kinds;			/* bits 1 << enum fabrex_coll_kind */
	bool (*usable)(const struct fabrex_comm *comm,
		       const struct fabrex_collective *what);
	int (*start)(struct fabrex_coll *coll);
	int (*step)(struct fabrex_coll *coll);
	void (*end)(struct fabrex_coll *coll);
};

extern const struct algorithm fxi_flat, fxi_direct, fxi_staged, fxi_scheduled;

/* ---- comm.c ------------------------------------------------------------ */

/* Used by create, split and shrink. */
int fxi_comm_make(struct fabrex_port *port, struct rendezvous *rendezvous,
		  const struct fabrex_comm_attr *attr,
		  struct fabrex_comm **out);

/* ---- operation.c ------------------------------------------------------- */

/*
 * For comm.c: what operations need, once the links are there; and its end,
 * which gives up what is under way. The table is made and freed with it.
 */
int fxi_operations_make(struct fabrex_comm *comm, const char *algorithms);
void fxi_operations_free(struct fabrex_comm *comm);
/* One round of everything that can go on. True if something did. */
bool fxi_comm_progress(struct fabrex_comm *comm);
/*
 * Tag and word for an algorithm's messages on LINK_COLL: what is performed, so
 * that ranks notice when they do not agree. @phase: 0 to 15, the algorithm's.
 */
uint32_t fxi_coll_tag(const struct fabrex_coll *coll, uint32_t phase);
uint64_t fxi_coll_word(const struct fabrex_coll *coll);
/*
 * Is it the message of @rank that the operation expects? 0, or -EPROTO, which
 * step() returns: the communicator is then of no use any more.
 */
int fxi_coll_check(struct fabrex_coll *coll, uint32_t rank, uint32_t phase,
		   const struct link_message *message);
/* Ranges of @what at this rank, in bytes. */
uint64_t fxi_send_bytes(const struct fabrex_comm *comm,
			const struct fabrex_collective *what);
uint64_t fxi_recv_bytes(const struct fabrex_comm *comm,
			const struct fabrex_collective *what);

/* ---- table.c ----------------------------------------------------------- */

int fxi_table_make(struct fabrex_comm *comm, const char *text);
void fxi_table_free(struct table *table);
/*
 * The algorithm, and if it is fxi_scheduled the schedule to follow, which
 * the table keeps. The answer depends on what is the same at every rank only.
 */
const struct algorithm *
fxi_table_choose(struct fabrex_comm *comm,
		 const struct fabrex_collective *what,
		 const struct fabrex_schedule **schedule);

/* ---- given.c ----------------------------------------------------------- */

/* With the communicator. */
void fxi_given_free(struct fabrex_comm *comm);

#endif
