/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * "topology design". Called through the table of verbs in topology.c. The search
 * itself is fabrex_plan_design(3).
 */
#ifndef CTL_DESIGN_H
#define CTL_DESIGN_H

#include "ctl.h"

int topology_design(struct ctl *c, int argc, char **argv);

#endif
