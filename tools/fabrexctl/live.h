/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fabric as it is composed now, as the planner's graph and as a topology:
 * what the switches say of wiring, links and bindings, and what this host's
 * kernel says of the devices it has. Called by source.c and topology.c.
 */
#ifndef CTL_LIVE_H
#define CTL_LIVE_H

#include <fabrex/plan.h>

#include "ctl.h"

struct topology;

/* Name of the host that we are on; "" if the fabric has none for it. */
const char *live_host(struct ctl *c);

/*
 * Wiring, kinds, bindings. The switches do not know about links inside of
 * appliances, nor what links are worth: @file, a topology file (NULL: none), has
 * that for appliances and hosts of the same names; else docs/topology.md's
 * defaults hold. *t is to be freed with topology_free(). Negative errno, said
 * in c->err.
 */
int live_topology(struct ctl *c, const char *file, struct topology **t);

/*
 * Of the GPUs that are bound, and can be reached: ports and links that are
 * down are left out with a warning, and so is what this host's kernel does not
 * show yet. GPUs of this host have their real PCI addresses, links, identities,
 * drivers' indices, in the order in which HIP and CUDA count them, see
 * hardware.h; root complexes their CPU. Indices in @select count in that order. ENODEV: nothing is
 * composed. FABREX_ROOT is read instead of / if it is set. Without a fabric it is
 * this machine's own GPUs, see pcigraph.h.
 */
int live_graph(struct ctl *c, const struct fabrex_plan_select *select,
	       const char *file, struct fabrex_plan_graph **g);

#endif
