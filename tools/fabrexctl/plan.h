/* SPDX-License-Identifier: GPL-2.0-only */
/* From wishes and what is to steps. Called by plan.c and tests. */
#ifndef CTL_PLAN_H
#define CTL_PLAN_H

#include "steps.h"
#include "wish.h"

/**
 * plan_make() - the difference between what is wished for and what is
 * @prune: release what the file does not wish for
 *
 * Releases come before binds, so that slots and endpoints are free by then.
 */
int plan_make(struct ctl *c, const struct wishes *w, bool prune,
	      struct steps *s);

#endif
