/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * This machine's GPUs and the switches and root ports above them as the
 * planner's graph: what "live" is without a fabric. Called by live_graph.c.
 */
#ifndef CTL_PCIGRAPH_H
#define CTL_PCIGRAPH_H

#include <fabrex/plan.h>

#include "ctl.h"

/* What links are worth, GB/s, as in topology files. */
struct pci_capacity {
	double link;		/* of Gen4 x16 */
	double root_complex;	/* of each root port */
};

/*
 * Nodes: each GPU and each switch by its address, a root port by its address, a
 * root complex "cpu0" for each NUMA node. The rest is as in hardware.h. There may
 * be no GPU, then there is nothing to plan for.
 */
int pci_graph(struct ctl *c, const struct pci_capacity *capacity,
	      struct fabrex_plan_graph **g);

#endif
