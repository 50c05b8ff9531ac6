/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What NCCL and RCCL shall choose at which size, as rules for
 * NCCL_TUNER_CONFIG_FILE. Called by collective.c.
 */
#ifndef CTL_TUNER_H
#define CTL_TUNER_H

#include <fabrex/plan.h>

#include "ctl.h"

/*
 * Of all collectives on these rings of @graph, whichever one they were planned
 * for: a graph file has one set of rings. @name: of the fabric, for messages.
 * To be freed; NULL after an error.
 */
char *tuner_rules(struct ctl *c, const char *name,
		  const struct fabrex_plan_graph *graph,
		  const struct fabrex_plan *rings, size_t *len);

#endif
