/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a graph can do at best, and what does it: cut bounds, packings of
 * spanning trees (ForestColl: Zhao et al., "ForestColl: Throughput-Optimal
 * Collective Communications on Heterogeneous Network Fabrics", 2024), rings.
 * Graphs have passed plan_graph_check().
 */
#ifndef LIB_PLAN_OPTIMUM_H
#define LIB_PLAN_OPTIMUM_H

#include "plan/plan.h"

/*
 * A set of nodes. What its ranks have to tell the others leaves over the edges
 * from inside to outside; nobody can be faster than those.
 */
struct plan_cut {
	bool *inside;		/* of each node */
	uint32_t ninside;	/* ranks inside */
	uint64_t capacity;	/* MB/s, out of it or, if said, into it */
	uint32_t nedges;
	uint32_t *edges;	/* that lead out, or in; ascending */
};

void plan_cut_free(struct plan_cut *c);

enum plan_bound_kind {
	PLAN_BOUND_CUT = 1,	/* one cut */
	PLAN_BOUND_PARTITION,	/* parts that all exchange: all-reduce */
};

/*
 * Nothing is faster than algbw. Certificate, to be checked by hand:
 *
 * CUT: all-gather: the shards of the k ranks inside, k/N of the size, leave
 * over capacity C, so algbw <= C N/k; reduce-scatter: the sums for the k ranks
 * inside come in over capacity C, the same; broadcast: all leaves a set with
 * the root inside; reduce: all comes into one; all-reduce: all leaves any set:
 * algbw <= C. Edges of GPUs that are no ranks do not count.
 * PARTITION: r disjoint parts that hold all ranks. An all-reduce of m bytes
 * brings at least 2(r-1)m bytes into them (Patarasuk, Yuan, "Bandwidth optimal
 * all-reduce algorithms for clusters of workstations", 2009, for contracted
 * parts), over capacity C in all: algbw <= C / 2(r-1).
 */
struct plan_bound {
	enum plan_bound_kind kind;
	struct plan_ratio algbw;	/* MB/s */
	struct plan_ratio busbw;
	struct plan_cut cut;		/* CUT */
	uint32_t nparts;		/* PARTITION */
	struct plan_cut *parts;		/* capacity, edges: INTO the part */
};

void plan_bound_free(struct plan_bound *b);

/*
 * The least upper bound that these certificates give. Deterministic. With
 * all_gather, reduce_scatter, broadcast, reduce it is exact.
 */
int plan_bound(const struct plan_graph *g, enum plan_collective c,
	       uint32_t root, struct plan_bound *b, struct plan_error *e);

/* Throughput-optimal packing of spanning trees. */
struct plan_optimum {
	struct plan_bound bound;
	struct plan_schedule *schedule;
	struct plan_ratio algbw, busbw;	/* of the schedule, from its flows */
	/*
	 * all-gather, reduce-scatter: trees of unit rate for each root; the
	 * unit is algbw / (N k). all-reduce: of each of its two halves, or if
	 * all trees have one root, its trees. Broadcast, reduce: trees of the
	 * root.
	 */
	uint64_t k;
	bool proved;		/* algbw is bound.algbw */
};

void plan_optimum_free(struct plan_optimum *o);
int plan_optimum(const struct plan_graph *g, enum plan_collective c,
		 uint32_t root, struct plan_optimum *o, struct plan_error *e);

/* ---- rings.c ----------------------------------------------------------- */

/*
 * Rings through all ranks, each with the same share of the bytes, as many
 * of them as is best. A ring crosses every cut, so all of them together
 * are no faster than the least cut between any two ranks (bound); broadcast
 * and reduce use them as chains, which cross those cuts only that have the root
 * on one side. Hops take the widest of the shortest routes.
 *
 * As few rings as reach the best rate that was found; but where they all share
 * a link behind the uplinks of boxes, as many as the box with fewest uplinks
 * has, each over its own. Chunks of ring i have i as their tree.
 */
struct plan_rings {
	uint32_t nrings;
	uint32_t *order;	/* nrings times nranks ranks, each from rank 0 */
	struct plan_ratio busbw;	/* MB/s, from the loads of the links */
	struct plan_ratio bound;
	struct plan_cut cut;	/* of the bound */
	bool proved;		/* busbw is the bound */
	struct plan_schedule *schedule;	/* of the collective asked for */
};

struct plan_ring_options {
	uint32_t rings;		/* at most so many; 0: as many as help */
	/*
	 * Look for so long, at most. 0: for an amount of work that depends on
	 * the graph alone, so that results are the same on any machine.
	 */
	double seconds;
	uint64_t seed;
};

void plan_rings_free(struct plan_rings *r);
/*
 * @options may be NULL. -EINVAL: no ring exists (a rank with one way only), or
 * with more than 20 ranks: none was found.
 */
int plan_rings(const struct plan_graph *g, enum plan_collective c,
	       uint32_t root, const struct plan_ring_options *options,
	       struct plan_rings *r, struct plan_error *e);
/* Rings given by somebody else (an NCCL graph), judged alike. */
int plan_rings_given(const struct plan_graph *g, enum plan_collective c,
		     uint32_t root, const uint32_t *order, uint32_t nrings,
		     struct plan_rings *r, struct plan_error *e);

#endif
