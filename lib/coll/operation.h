/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the files that perform operations know of each other: arguments.c,
 * operation.c, group.c, blocking.c, pair.c, buffer.c, and the algorithms beside
 * them. Nobody else includes it.
 */
#ifndef LIB_COLL_OPERATION_H
#define LIB_COLL_OPERATION_H

#include "coll/coll.h"

#define GOING	1	/* result of an operation that has not ended */

/* ---- arguments.c ------------------------------------------------------- */

/* 0, or -EINVAL and a sentence. */
int fxi_coll_arguments(const struct fabrex_comm *comm,
		       const struct fabrex_collective *what);
const char *fxi_kind_name(uint32_t kind);

/* ---- operation.c ------------------------------------------------------- */

/* Around whatever touches the communicator: others may advance it. */
void fxi_comm_enter(struct fabrex_comm *comm);
void fxi_comm_leave(struct fabrex_comm *comm);
/* Everything under way ends with comm->error. */
void fxi_comm_give_up(struct fabrex_comm *comm);
/* Begin, or queue, an operation whose arguments were found right. */
void fxi_coll_begin(struct fabrex_coll *coll);
/* It has ended. */
void fxi_coll_ended(struct fabrex_coll *coll, int result);
/* Until it has ended, 0, or -ETIMEDOUT. */
int fxi_coll_wait(struct fabrex_coll *coll, uint64_t deadline);
/* The result of one that has ended: sets the sentence if it failed. */
int fxi_coll_result(struct fabrex_coll *coll);
/* Arguments, then all of it, without a handle. */
int fxi_coll_run(struct fabrex_comm *comm,
		 const struct fabrex_collective *what);

/* In the child of a fork: nothing is under way. */
void fxi_operations_forked(void);

/* ---- group.c ----------------------------------------------------------- */

/* Remember it until the group ends. */
void fxi_group_add(struct fabrex_coll *coll);
/* The communicator ends. */
void fxi_group_free(struct fabrex_comm *comm);

/* ---- pair.c ------------------------------------------------------------ */

int fxi_pairs_make(struct fabrex_comm *comm);
void fxi_pairs_free(struct fabrex_comm *comm);
void fxi_pair_begin(struct fabrex_coll *coll);
/* Somebody waits for it, who can do nothing else: not with oneself. */
void fxi_pair_alone(struct fabrex_coll *coll);
bool fxi_pairs_progress(struct fabrex_comm *comm);
bool fxi_pairs_busy(const struct fabrex_comm *comm);
/* A rank that one of them waits for, or UINT32_MAX. */
uint32_t fxi_pairs_waiting(const struct fabrex_comm *comm);
/* All of them end with that. */
void fxi_pairs_give_up(struct fabrex_comm *comm, int error);

/* ---- flat.c, direct.c, staged.c ---------------------------------------- */

int fxi_flat_make(struct fabrex_comm *comm);
void fxi_flat_free(struct fabrex_comm *comm);
int fxi_direct_make(struct fabrex_comm *comm);
void fxi_direct_free(struct fabrex_comm *comm);
int fxi_staged_make(struct fabrex_comm *comm);
void fxi_staged_free(struct fabrex_comm *comm);

#endif
