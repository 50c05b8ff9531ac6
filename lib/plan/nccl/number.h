/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ranks, boxes and device numbers. Inside lib/plan only: nccl_*.c. */
#ifndef LIB_PLAN_NCCL_NUMBER_H
#define LIB_PLAN_NCCL_NUMBER_H

#include "plan/plan.h"

/*
 * Ranks by "gpu.rank", GPUs without one are none. If no GPU has one: by
 * "gpu.dev", if all have that; else as they come. @name: of the file.
 */
int nccl_set_ranks(struct plan_graph *g, const char *name, uint32_t nhosts,
		   struct plan_error *e);
/* As described in nccl/read.c. -ENOMEM */
int nccl_set_boxes(struct plan_graph *g);
/*
 * The "dev" of each GPU node in what is written for @g (PLAN_NONE: it is not
 * written), a table of g->nnodes: "gpu.dev", if all ranks have one, each its
 * own, whichever GPUs are ranks and in which order; so what is written for a
 * part of a topology fits the whole one. Else the rank. *as_read: ranks are
 * those that the file itself gives, and its other GPUs are in @devs, too.
 * -ENOMEM
 */
int nccl_devs(const struct plan_graph *g, uint32_t *devs, bool *as_read);

#endif
