/* SPDX-License-Identifier: GPL-2.0-only */
/* "topology compare". Called through the table of verbs in topology.c. */
#ifndef CTL_COMPARE_H
#define CTL_COMPARE_H

#include "ctl.h"

int topology_compare(struct ctl *c, int argc, char **argv);

#endif
