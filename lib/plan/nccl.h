/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What NCCL and RCCL read and write: topology XML, graph XML, ring strings.
 * Formats are described from what the libraries accept, see docs/nccl.md.
 */
#ifndef LIB_PLAN_NCCL_H
#define LIB_PLAN_NCCL_H

#include "optimum.h"

enum plan_dialect { PLAN_NCCL = 1, PLAN_RCCL };	/* <system version=...> */

/* <system>, version 1 or 2. Attributes that are not understood are kept. */
struct plan_graph *plan_nccl_parse(const char *text, size_t length,
				   const char *name, struct plan_error *e);
/*
 * NCCL_TOPO_FILE of one host: the PCI tree below its CPUs with the GPUs that
 * are ranks. Bus ids, classes and link speeds that no node attribute gives
 * are made up in a way that is the same each time. -EINVAL: GPUs are on several
 * hosts, or no PCI tree leads to one.
 */
int plan_nccl_write(const struct plan_graph *g, enum plan_dialect d, FILE *f,
		    struct plan_error *e);
/*
 * Would the library's own parser take it, and understand it as meant: every
 * rule that it has, with line and element of what breaks it. (The library
 * itself is lenient in the wrong places: a speed that it does not know is Gen3
 * to it.)
 */
int plan_nccl_validate(const char *text, size_t length, const char *name,
		       struct plan_error *e);

/* NCCL_GRAPH_FILE: rings as <graphs version="1"> with pattern 4. */
int plan_nccl_graph_write(const struct plan_graph *g,
			  const struct plan_rings *r, enum plan_dialect d,
			  FILE *f, struct plan_error *e);
int plan_nccl_graph_validate(const char *text, size_t length, const char *name,
			     struct plan_error *e);
/*
 * Rings of a graph XML as ranks of @g (by dev), for plan_rings_given().
 * *order is to be freed.
 */
int plan_nccl_graph_read(const struct plan_graph *g, const char *text,
			 size_t length, const char *name, uint32_t **order,
			 uint32_t *nrings, struct plan_error *e);
/* NCCL_RINGS "0 1 2 3|3 2 1 0": ranks are visible devices in their order. */
int plan_nccl_rings_write(const struct plan_rings *r, uint32_t nranks,
			  FILE *f);
int plan_nccl_rings_parse(const char *text, uint32_t nranks, uint32_t **order,
			  uint32_t *nrings, struct plan_error *e);

#endif
