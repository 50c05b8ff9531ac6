/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What NCCL and RCCL read and write: topology XML, graph XML, ring strings.
 * Formats are described from what the libraries accept, see docs/nccl.md.
 */
#ifndef LIB_PLAN_NCCL_H
#define LIB_PLAN_NCCL_H

#include "plan/optimum.h"

enum plan_dialect { PLAN_NCCL = 1, PLAN_RCCL };	/* <system version=...> */

/* <system>, version 1 or 2. Attributes that are not understood are kept. */
struct plan_graph *plan_nccl_parse(const char *text, size_t length,
				   const char *name, struct plan_error *e);
/*
 * NCCL_TOPO_FILE of one host: the PCI tree below its CPUs with the GPUs that
 * are ranks. Bus ids, classes and link speeds that no node attribute gives
 * are made up in a way that is the same each time. "dev"
 * is "gpu.dev" if all ranks have one, each its own; else the rank. Where a GPU
 * has a bus id, switches without one are left out, as an id made up could be
 * that of another device of the machine. -EINVAL: GPUs are on several hosts,
 * or no PCI tree leads to one, or only some of them have a bus id.
 */
int plan_nccl_write(const struct plan_graph *g, enum plan_dialect d, FILE *f,
		    struct plan_error *e);
/*
 * Would the library's own parser take it, and understand it as meant: every
 * rule that it has, with line and element of what breaks it. (The library
 * itself is lenient in the wrong places: a speed that it does not know is Gen3
 * to it.) -E2BIG: there is more than the library has room for (elements, bytes
 * of a value), it gives up loading it; -EINVAL: it loads, but something is not
 * understood, or not as meant.
 */
int plan_nccl_validate(const char *text, size_t length, const char *name,
		       struct plan_error *e);

/*
 * NCCL_GRAPH_FILE: rings as <graphs version="1"> with pattern 4. "dev" is that of
 * the topology that @g was read from, or that plan_nccl_write() writes for it:
 * it is for use beside that NCCL_TOPO_FILE.
 */
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
/*
 * NCCL_RINGS "0 1 2 3|3 2 1 0". Of n GPUs, RCCL takes numbers 0 to n-1 only, and
 * looks each up as "dev" of the topology that it uses. So that is what is
 * written: "gpu.dev" of a graph that has it, else the rank, which is the dev that
 * plan_nccl_write() writes then. For a part of the devices, or in an order of
 * one's own, the string is right only beside that NCCL_TOPO_FILE: without one,
 * RCCL's dev is the number among all GPUs of the machine, by bus id.
 *
 * *by_dev false (it may be NULL): devs are not 0 to n-1, as in a part of a
 * topology XML. RCCL takes no string there, and NCCL_GRAPH_FILE is the way. What
 * is written are ranks, right on a host that has no other GPUs. -ENOMEM, -EIO
 */
int plan_nccl_rings_write(const struct plan_graph *g,
			  const struct plan_rings *r, FILE *f, bool *by_dev);
/* *by_dev as there, without any rings. -ENOMEM */
int plan_nccl_rings_by_dev(const struct plan_graph *g, bool *by_dev);
/* Numbers as they are: dev, and rank as well where devs are ranks. */
int plan_nccl_rings_parse(const char *text, uint32_t nranks, uint32_t **order,
			  uint32_t *nrings, struct plan_error *e);

#endif
