/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The exact solver inside plan_bound() and plan_optimum(): networks, their
 * least cut, the removal of switches, the packing of spanning trees. For
 * files of lib/plan only; programs call optimum.h.
 *
 * The steps are ForestColl's (Zhao et al., 2024), and for the theory behind
 * them: Edmonds, "Edge-disjoint branchings", 1973; Bang-Jensen, Frank,
 * Jackson, "Preserving and increasing local edge-connectivity in mixed
 * graphs", 1995; Berczi, Frank, "Packing arborescences", 2009; Dinkelbach, "On
 * nonlinear fractional programming", 1967.
 *
 *	struct plan_net *net = plan_net_new(nnodes);
 *	... plan_net_terminal(), plan_net_arc() ...
 *	plan_net_cut(net, &x, inside, e);	exact optimum, and its proof
 *	plan_net_scale(net, x, &k, e);		integers from here on
 *	plan_net_split(net, k, &links, e);	no switches any more
 *	plan_net_pack(net, links, k, &forest, e);	trees, each hop one path
 *
 * plan_net_forest() does all of it. Everything is deterministic. Errors:
 * -ENOMEM; -EOVERFLOW if a number does not fit into 64 bits; -EINVAL for a
 * network that breaks the rules below. *out is as it was on failure.
 */
#ifndef LIB_PLAN_SOLVE_H
#define LIB_PLAN_SOLVE_H

#include "plan/plan.h"

struct plan_arc {
	uint32_t from, to;
	uint64_t capacity;	/* 0: as if it was not there */
};

/*
 * A directed network. Terminals take, make copies and send on; all other
 * nodes are switches, whose arcs in and out have the same sum of capacities. A
 * terminal has @weight units of its own to tell to all others (it is a root if
 * that is not 0): all-gather has 1 everywhere, broadcast 1 at the root, a box
 * that was made one node the number of its GPUs.
 */
struct plan_net {
	uint32_t nnodes, narcs;
	struct plan_arc *arcs;	/* parallel ones are fine; none from x to x */
	bool *terminal;		/* of each node */
	uint64_t *weight;	/* of each node; 0 at switches */
	uint32_t arc_room;
	uint64_t *patience;	/* of packing: steps that are left; NULL: all */
};

struct plan_net *plan_net_new(uint32_t nnodes);
void plan_net_free(struct plan_net *net);
struct plan_net *plan_net_copy(const struct plan_net *net);
/* Index of the arc, or -ENOMEM; -EINVAL: no such node, or @from is @to. */
int64_t plan_net_arc(struct plan_net *net, uint32_t from, uint32_t to,
		     uint64_t capacity);
void plan_net_terminal(struct plan_net *net, uint32_t node, uint64_t weight);
/*
 * Nodes and edges of @g, which is checked, with the same indices; @root PLAN_NONE: all ranks
 * have weight 1, otherwise that rank alone. @reversed: every arc the other way
 * round. Edges of GPUs that are no ranks get capacity 0. -ENOMEM is all that
 * can fail.
 */
int plan_net_from_graph(const struct plan_graph *g, uint32_t root,
			bool reversed, struct plan_net **out,
			struct plan_error *e);

/*
 * The greatest x such that every terminal can receive x * weight from all
 * roots at once, which is the least capacity(S) / weight(S) over all sets S
 * with a root inside and a terminal outside, capacity being that of arcs
 * leaving S. @inside: of each node, such a set (the least one by inclusion
 * that the last flow gives); may be NULL. One pass of Newton's method over
 * the terminals: which has passed at some x passes at all smaller ones.
 * x is 0 if some terminal is not reached.
 */
int plan_net_cut(const struct plan_net *net, struct plan_ratio *x,
		 bool *inside, struct plan_error *e);
/*
 * For each terminal, in order, that such a set leaves outside: call @take with
 * the terminal and the greatest of those sets by inclusion, so that its
 * complement is the least bottleneck around that terminal. @x is that of
 * plan_net_cut(); -EINVAL if it is greater.
 */
int plan_net_tight(const struct plan_net *net, struct plan_ratio x,
		   void (*take)(void *arg, uint32_t out, const bool *inside),
		   void *arg, struct plan_error *e);

/*
 * Multiply capacities by the least U that makes them and k = x U integers: k
 * trees for each unit of weight, each of rate x / k.
 */
int plan_net_scale(struct plan_net *net, struct plan_ratio x, uint64_t *k,
		   struct plan_error *e);

/* A path between two terminals with switches between, and its capacity. */
struct plan_path {
	uint32_t from, to;
	uint64_t weight;
	uint32_t first, narcs;	/* in plan_links.path_arcs; arcs of the network */
};

/* A network without switches: link i consists of paths[first_path...]. */
struct plan_links {
	uint32_t nlinks, npaths, npath_arcs;
	struct plan_link {
		uint32_t from, to;
		uint64_t capacity;	/* sum of its paths' weights */
		uint32_t first_path, npaths;
	} *links;			/* by from, then to */
	struct plan_path *paths;
	uint32_t *path_arcs;
};

void plan_links_free(struct plan_links *l);
/*
 * Remove switches by splitting off pairs of arcs, such that still all sets S
 * with a terminal outside have capacity(S) >= k * weight(S). No path visits a
 * node twice. -EINVAL: that is not so before, or a switch is not balanced.
 */
int plan_net_split(const struct plan_net *net, uint64_t k,
		   struct plan_links **out, struct plan_error *e);

/* detour.c: of each node, is it a switch that no shortest path passes? */
int plan_net_detours(const struct plan_net *net, bool *detour);

/*
 * A tree that spans all terminals: nhops = terminals - 1 hops, parents before
 * children, hops[first...] are indices of plan_links.paths.
 */
struct plan_tree {
	uint32_t root;
	uint32_t group;		/* trees with the same links have the same */
	uint64_t weight;
	uint64_t first;
};

struct plan_forest {
	uint32_t nhops;		/* of each tree */
	uint64_t ntrees;	/* by root, then group */
	struct plan_tree *trees;
	uint32_t *hops;
};

void plan_forest_free(struct plan_forest *f);
/*
 * Trees for each root, weights of k * weight in all, that together use no
 * path more than its weight allows. -EINVAL: the cut condition is broken;
 * -ETIME: the network's patience has come to an end.
 */
int plan_net_pack(const struct plan_net *net, const struct plan_links *l,
		  uint64_t k, struct plan_forest **out, struct plan_error *e);

/* All of the above; @net is scaled. k trees for each unit of weight. */
struct plan_solution {
	struct plan_ratio x;
	uint64_t k;
	struct plan_links *links;
	struct plan_forest *forest;
};

void plan_solution_clear(struct plan_solution *s);
int plan_net_forest(struct plan_net *net, struct plan_solution *s,
		    struct plan_error *e);

/* ---- orient.c ---------------------------------------------------------- */

/*
 * A network for an all-reduce on a graph whose links are alike both ways: nodes
 * and arcs as plan_net_from_graph(), one root, and of each link's capacity a
 * part for either direction. Its trees, up over the twins of their edges and
 * down again, are together an all-reduce as fast as the best partition allows.
 * -EAGAIN: a link has no twin, or not the same capacity.
 */
int plan_net_orient(const struct plan_graph *g, struct plan_net **out,
		    struct plan_error *e);

/* ---- boxes.c ----------------------------------------------------------- */

/*
 * Trees of a network that consists of boxes, found box by box: @box of each
 * node, PLAN_NONE for what is between them. As plan_net_forest(), whose hops'
 * paths are over arcs of @net. -EAGAIN: boxes do not help here (no optimum is
 * found that way); the general way has to be gone.
 */
int plan_boxes(struct plan_net *net, const uint32_t *box,
	       struct plan_solution *s, struct plan_error *e);
/* After -EAGAIN: the best rate below the optimum at which boxes do help. */
int plan_boxes_near(struct plan_net *net, const uint32_t *box,
		    struct plan_solution *s, struct plan_error *e);

#endif
