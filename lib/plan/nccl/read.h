/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A topology XML on its way to a graph. Inside lib/plan only: nccl/read.c,
 * which adds the nodes and the PCI tree, and nccl/links.c, which joins them.
 */
#ifndef LIB_PLAN_NCCL_READ_H
#define LIB_PLAN_NCCL_READ_H

#include "plan/nccl/rules.h"
#include "plan/nccl/xml.h"

/* A bus id of a host, and the node that has it. */
struct nccl_place {
	uint64_t busid;
	uint32_t host, node;
};

/* A link between GPUs, one way, as an element gives it. */
struct nccl_way {
	uint32_t from, to;
	uint64_t capacity;
	enum plan_link_kind kind;
	uint32_t line, nth;
	bool done;
};

struct nccl_import {
	struct plan_graph *g;
	const char *name;
	struct plan_error *e;
	const struct xml_element *root;
	enum plan_dialect dialect;
	uint32_t nhosts;
	const char **hosts;	/* host_hash of each */
	uint32_t host;		/* of the CPU at hand */
	uint32_t nplaces;
	struct nccl_place *places;	/* sorted once all are there */
	uint32_t nways;
	struct nccl_way *ways;
	uint32_t room;		/* elements of the document */
	uint32_t *cpus, *cpu_hosts, ncpus;
	uint32_t anonymous;	/* names made up */
};

/* "file:line: <element>: @what "@value"; @remedy". -EINVAL */
int nccl_bad(const struct nccl_import *m, const struct xml_element *x,
	     const char *what, const char *value, const char *remedy);
/* A warning: what the reader, or the library, makes of it. */
int nccl_suppose(struct nccl_import *m, const struct xml_element *x,
		 const char *what, const char *value, const char *instead);
int nccl_no_memory(const struct nccl_import *m);
/* An attribute that has to be a number if it is there. */
int nccl_get_number(const struct nccl_import *m, const struct xml_element *x,
		    const char *key, int64_t standard, int64_t *out);
int nccl_add_node(struct nccl_import *m, const struct xml_element *x,
		  enum plan_node_kind kind, const char *name, uint32_t up,
		  uint32_t *node);
int nccl_add_link(struct nccl_import *m, const struct xml_element *x,
		  uint32_t a, uint32_t b, uint64_t capacity,
		  enum plan_link_kind kind);
bool nccl_is_link(const struct xml_element *x);
uint32_t nccl_host_of(const struct nccl_import *m,
		      const struct xml_element *cpu);

/* nccl/links.c: once all nodes are there. */
int nccl_join(struct nccl_import *m);

#endif
