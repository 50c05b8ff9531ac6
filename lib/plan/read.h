/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Graphs from files and to files, whatever the format. Errors name file, line
 * and element ("dgx.graph:14: link gpu0 - switch1: ...; ..."). Nothing is
 * printed; texts of any size and content are safe to give.
 */
#ifndef LIB_PLAN_READ_H
#define LIB_PLAN_READ_H

#include "plan/plan.h"

struct topology;

/* Which GPUs are ranks, and whose PCI tree it is. */
struct plan_select {
	const char *host;	/* NULL: all hosts that have GPUs */
	/*
	 * Visible devices as HIP_VISIBLE_DEVICES: "0,2,5" (indices among the
	 * GPUs chosen so far) or names; ranks are numbered in that order. NULL: all.
	 */
	const char *devices;
};

/*
 * Topology file (docs/topology.md), NCCL topology XML, or graph file
 * (docs/graph-files.md), told apart by their content. plan_graph_parse() calls
 * the text @name in messages.
 */
struct plan_graph *plan_graph_read(const char *path,
				   const struct plan_select *select,
				   struct plan_error *e);
struct plan_graph *plan_graph_parse(const char *text, size_t length,
				    const char *name,
				    const struct plan_select *select,
				    struct plan_error *e);
int plan_graph_select(struct plan_graph *g, const struct plan_select *select,
		      struct plan_error *e);

/* wiring.c: what a fabric's wiring and bindings make for its hosts. */
struct plan_graph *plan_graph_from_topology(const struct topology *t,
					    const struct plan_select *select,
					    struct plan_error *e);
/* graphfile.c: libconfig text with nodes and links, any graph at all. */
struct plan_graph *plan_graphfile_parse(const char *text, const char *name,
					struct plan_error *e);
int plan_graphfile_write(const struct plan_graph *g, FILE *f,
			 struct plan_error *e);

#endif
