/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The live fabric, told to the planner part by part: a topology file has no
 * words for all that switches report. Called by live.c.
 */
#ifndef CTL_FABRIC_H
#define CTL_FABRIC_H

#include <fabrex/plan.h>

#include "topology/topology.h"

/*
 * What the host sees of it, or with NULL all hosts. Negative errno:
 * fabrex_plan_strerror_last() says why.
 */
int fabric_graph(const struct topology *t, const char *host,
		 struct fabrex_plan_graph **g);

#endif
