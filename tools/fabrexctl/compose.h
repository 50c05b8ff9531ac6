/* SPDX-License-Identifier: GPL-2.0-only */
/* How endpoints get to a host; called by compose.c, release.c and plan.c. */
#ifndef CTL_COMPOSE_H
#define CTL_COMPOSE_H

#include "select.h"
#include "steps.h"

/* Whether an endpoint is where @t says already. */
bool compose_in_place(const struct model *m, const struct object *ep,
		      const struct target *t);
/**
 * compose_steps() - what brings endpoints to a target
 * @move: from other hosts too; otherwise that is refused
 */
int compose_steps(struct ctl *c, const struct ids *eps, const struct target *t,
		  bool move, struct steps *s);
/* What frees an endpoint; nothing if it is free. */
void release_step(const struct object *ep, struct steps *s);

#endif
