/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Collectives between real processes: ranks of a loopback fabric that only
 * they know. The program is its own, as those of lib/tests run on a fake fabric.
 * TEST_NAMED() is for tests that need a real GPU: make check-cuda asks for them.
 */
#ifndef LIB_TESTS_WORLD_H
#define LIB_TESTS_WORLD_H

#include <stdlib.h>
#include <unistd.h>
#include <fabrex/coll.h>

#include "../harness.h"

#define RANKS	8u		/* that most tests go up to */
#define RANKS_MOST	66u

#define WORLD_PORTS	7u	/* of a rank, besides the first */

/* One rank. */
struct world {
	struct fabrex_port *port;
	struct fabrex_port *more[WORLD_PORTS];
	uint32_t nmore;
	struct fabrex_comm *comm;
	uint32_t rank, size;
	const void *arg;
};

/*
 * @work in @size processes at once, with a communicator of all; returns when
 * all have ended well.
 */
void world_run(uint32_t size, void (*work)(struct world *world),
	       const void *arg);
/* Everything through queues, as with the kernel transport. */
void world_run_far(uint32_t size, void (*work)(struct world *world),
		   const void *arg);
/* Each two ranks have a fabric of their own, and a port in each of theirs. */
void world_run_bridged(uint32_t size, void (*work)(struct world *world),
		       const void *arg);
/* The same, but that ranks 0 and 1 have none, and no communicator is made. */
void world_run_apart(uint32_t size, void (*work)(struct world *world),
		     const void *arg);
/* Rank 0 is killed: by itself, and everything else is as it was. */
void world_run_deadly(uint32_t size, void (*work)(struct world *world),
		      const void *arg);
/* What a communicator of all takes, so far. */
struct fabrex_comm_attr world_attr(const struct world *world);
/* Another communicator of all, which performs by that table. */
struct fabrex_comm *world_comm(struct world *world, const char *algorithms);
/* The same without the progress thread: operations stand while nobody calls. */
struct fabrex_comm *world_comm_alone(struct world *world,
				     const char *algorithms);

/*
 * Of all ranks: of the environment (FABREX_FUZZ_SEED), or another one each
 * time. Printed, before ranks are started.
 */
uint64_t world_seed(void);

/* Perform it by its own function. */
int world_call(struct fabrex_comm *comm, const struct fabrex_collective *c);

/* ---- values.c ---------------------------------------------------------- */

/* What ranks put in: small whole numbers, or any. */
struct values {
	uint32_t type, op, seed;
	bool whole;
};

/* Elements from @first on, of what @rank sends. */
void values_fill(const struct values *v, uint32_t rank, uint64_t first,
		 uint64_t count, void *to);
/* The same elements of all ranks reduced, from rank 0 on. */
void values_reduce(const struct values *v, uint32_t ranks, uint64_t first,
		   uint64_t count, void *to);

/* How many times count. */
uint64_t send_parts(const struct world *w, uint32_t kind);
uint64_t recv_parts(const struct world *w, uint32_t kind);
/* What recv has to be afterwards, where there is a result. */
void values_expect(const struct world *w, const struct fabrex_collective *what,
		   const struct values *v, char *to);

static inline bool reduces(uint32_t kind)
{
	return kind == FABREX_ALL_REDUCE || kind == FABREX_REDUCE_SCATTER ||
	       kind == FABREX_REDUCE;
}

#endif
