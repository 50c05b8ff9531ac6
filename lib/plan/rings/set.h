/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The search for rings: paths.c (routes of each hop), set.c (a set of rings,
 * the load it puts on links, changes to it), hamilton.c (does any ring exist),
 * search.c (the search itself). Only these and rings.c include it.
 */
#ifndef LIB_PLAN_RINGS_SET_H
#define LIB_PLAN_RINGS_SET_H

#include "plan/plan.h"

/* ---- paths.c ------------------------------------------------------------ */

/* For each pair of ranks: the widest of the shortest routes between them. */
struct plan_ring_paths {
	const struct plan_graph *g;
	uint32_t *out_first, *out_edges;	/* of each node */
	uint32_t *in_first, *in_edges;
	uint32_t *index;	/* of each pair: 1 + place in pool; 0: unknown */
	uint32_t *pool;		/* count, length, edges of each */
	uint64_t npool, room, most;	/* most: see PLAN_PATHS_POOL */
	uint32_t turnovers;	/* times that the pool was begun anew */
	uint32_t source;	/* rank whose distances these are */
	uint32_t *dist, *queue;
	uint64_t *width;
	bool symmetric;		/* each edge has a twin as wide */
	bool failed;		/* out of memory; what it said is not so */
	/* Ranks that have a route from it, if not all have: see sparse. */
	bool sparse;
	uint32_t *peer_first, *peers;
};

#define PLAN_WAYS 8u		/* of one pair, at most */
/*
 * Numbers in the pool at most, 256 MiB. When it is full, all is forgotten and
 * found again when it is asked for; the paths of a pair are always the same.
 */
#define PLAN_PATHS_POOL (64ull << 20)

/* With a symmetric graph, path i of (v, u) is path i of (u, v) walked back. */
struct plan_ring_path {
	uint32_t count, length;	/* count 0: no route */
	const uint32_t *edges;	/* count times length; until the next call */
};

int plan_ring_paths_init(struct plan_ring_paths *w, const struct plan_graph *g);
void plan_ring_paths_free(struct plan_ring_paths *w);
struct plan_ring_path plan_ring_paths_of(struct plan_ring_paths *w, uint32_t u,
					 uint32_t v);
/* Fill in sparse, peer_first and peers. */
int plan_ring_paths_peers(struct plan_ring_paths *w);

/* ---- set.c --------------------------------------------------------- */

/*
 * @nrings rings at equal rates. A link has slots: so many hops may cross it if
 * the aim is to be met. Excess is how many hops are over, in all.
 *
 * Mirrored: each ring stands for itself and its reverse, on a symmetric graph.
 * Both directions of a link are one then, and changes cost the same whichever
 * path they turn a segment.
 */
struct plan_ringset {
	struct plan_ring_paths *paths;
	uint32_t n, nrings;
	uint32_t skip_from, skip_to;	/* hops out of, into: chains have none */
	uint32_t *order;		/* nrings times n */
	uint32_t *path;			/* of the hop that begins there */
	uint32_t *place;		/* of each ring and rank, in order */
	bool mirrored;
	uint32_t *link;			/* of each edge: that which is counted */
	uint32_t *load, *slot;		/* of each of these: hops */
	uint64_t excess;
	uint64_t missing;		/* hops without a route */
	uint64_t work;			/* edges touched: the search's clock */
	uint64_t random;
	uint32_t *old;			/* of the change that is tried */
	struct plan_hop *fresh;
	uint32_t nold, nfresh;
};

/* A hop that is not there yet, and where in its ring. */
struct plan_hop {
	uint32_t from, to, at, path;
};

/*
 * Excess of a hop that has no route: not much more than that of one over a full
 * link, as the path from one set of rings to a better one leads over such.
 */
#define PLAN_MISSING 2u

int plan_ringset_init(struct plan_ringset *s, struct plan_ring_paths *paths,
		      uint32_t nrings, enum plan_collective c, uint32_t root);
void plan_ringset_free(struct plan_ringset *s);
/* Count both directions as one. Before any hop is there. */
void plan_ringset_mirror(struct plan_ringset *s);
/* The rings of a mirrored @s, and their reverses. */
int plan_ringset_unfold(struct plan_ringset *s, enum plan_collective c,
			uint32_t root);
void plan_ringset_copy(struct plan_ringset *to,
		       const struct plan_ringset *from);
/* Slots for @rate MB/s of each ring; before any hop is there. */
void plan_ringset_aim(struct plan_ringset *s, struct plan_ratio rate);
uint32_t plan_ringset_random(struct plan_ringset *s, uint32_t below);
/* Cost of a hop with the loads as they are; *path is the best for it. */
uint64_t plan_ringset_cost(struct plan_ringset *s, uint32_t from, uint32_t to,
			   uint32_t *path);
/* All hops of ring @r, whose order is there: choose paths, add loads. */
void plan_ringset_enter(struct plan_ringset *s, uint32_t r);
/* One hop of a ring that is being made. */
void plan_ringset_add(struct plan_ringset *s, uint32_t from, uint32_t to,
		      uint32_t path);
/* Is hop @at of ring @r over a link that has excess, or without a route? */
bool plan_ringset_over(struct plan_ringset *s, uint32_t r, uint32_t at);

enum plan_change_kind {
	PLAN_REROUTE = 1,	/* hop a goes another path */
	PLAN_SWAP,		/* ranks at a and b change places */
	PLAN_EXCHANGE,		/* segments a+1..b and b+1..c change places */
	PLAN_REVERSE,		/* segment a+1..b is walked backwards */
};

struct plan_change {
	enum plan_change_kind kind;
	uint32_t a, b, c;	/* a < b < c */
};

/* What it does to the excess. The rings stay as they are. */
int64_t plan_ringset_try(struct plan_ringset *s, uint32_t r,
			 struct plan_change change);
void plan_ringset_apply(struct plan_ringset *s, uint32_t r,
			struct plan_change change);
/* MB/s of all rings together; 0: a hop has no route. Edges as loaded. */
struct plan_ratio plan_ringset_rate(const struct plan_ringset *s);
/* Is there a route, or is none needed? */
bool plan_ringset_hop(struct plan_ringset *s, uint32_t from, uint32_t to);
/* A hop of the rings that there is no route for. */
bool plan_ringset_missing(struct plan_ringset *s, uint32_t *from, uint32_t *to);

/* ---- hamilton.c -------------------------------------------------------- */

#define PLAN_HAMILTON 20u	/* ranks, at most */

/*
 * Any ring, on hops that @s has routes for. -ENOENT: there is none, which
 * is proved; -E2BIG: too many ranks for that.
 */
int plan_hamilton(struct plan_ringset *s, uint32_t *order);

/* ---- search.c ------------------------------------------------------ */

/*
 * Boxes in which ranks are next to one another; without a box each rank is
 * alone.
 */
struct plan_crowds {
	uint32_t n;
	uint32_t *first;	/* n + 1 */
	uint32_t *ranks;	/* box by box */
	uint32_t *of;		/* of each rank: its box */
};

int plan_crowds_init(struct plan_crowds *c, const struct plan_graph *g);
void plan_crowds_free(struct plan_crowds *c);
/*
 * Rings with no excess, if @limit of work finds them: @s is then it, or the
 * least that was found. Returns -ENOMEM or 0.
 */
int plan_ringsearch(struct plan_ringset *s, const struct plan_crowds *c,
		    uint64_t limit, bool (*enough)(void *), void *arg);

#endif
