/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The PCI tree of the one host whose GPUs a graph plans for, as the libraries
 * see it: which nodes are in it, who is below whom, with which bus id. Inside
 * lib/plan only: nccl/write.c.
 */
#ifndef LIB_PLAN_NCCL_TREE_H
#define LIB_PLAN_NCCL_TREE_H

#include "plan/nccl/rules.h"

struct nccl_tree {
	const struct plan_graph *g;
	enum plan_dialect dialect;
	uint32_t *devs;		/* of GPUs that are in it; PLAN_NONE */
	bool as_read;		/* the file it was read from, unchanged */
	bool *in;		/* is the node in the tree */
	uint32_t ncpus;
	uint32_t *first, *next;	/* children of each; of siblings; PLAN_NONE */
	uint64_t *busids;	/* of each pci element */
	uint64_t *capacity;	/* MB/s, of the link up */
};

/*
 * -EINVAL: the GPUs are on several hosts, one is in no tree, a bus id that an
 * attribute gives is none or is there twice.
 */
int nccl_tree(const struct plan_graph *g, enum plan_dialect d,
	      struct nccl_tree *t, struct plan_error *e);
void nccl_tree_free(struct nccl_tree *t);

#endif
