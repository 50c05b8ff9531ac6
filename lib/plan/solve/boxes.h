/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Between boxes.c, which takes a network apart into boxes and what joins
 * them, and compose.c, which makes whole trees of the trees of both. For these
 * two files and coarse.c, which makes boxes larger.
 */
#ifndef LIB_PLAN_BOXES_H
#define LIB_PLAN_BOXES_H

#include "plan/solve/solve.h"

/*
 * One box as a network of its own: its nodes in their order, and one more
 * terminal for all that is outside ("the world"), with the weight of all
 * terminals outside. Cuts of it are cuts of the whole network.
 */
struct plan_box {
	uint32_t nnodes, nterminals;
	uint32_t world;		/* nnodes: the node after the last */
	uint32_t *nodes;	/* of the whole network, ascending */
	struct plan_net *net;
	uint32_t *arcs;		/* of net's arcs: those of the whole network */
	uint32_t alike;		/* the first box with the same network */
	uint32_t twin;		/* the first with the same trees, too */
	struct plan_links *links;	/* switches removed; of the box alike */
	uint64_t *share;	/* of each path from or to the world: in use */
	uint64_t *inflow, *outflow;	/* of each node: by those paths */
	struct plan_forest *forest;	/* NULL if there is one terminal; twin's */
};

/* A network as boxes and the network between them ("the trunk"). */
struct plan_boxed {
	const struct plan_net *net;
	uint32_t nboxes;
	struct plan_box *boxes;
	uint32_t *box_of;	/* of each node; PLAN_NONE: between boxes */
	uint32_t *local;	/* of each node: where it is in its box */
	struct plan_net *trunk;	/* box b is terminal b */
	uint32_t *trunk_node;	/* of each node */
	uint32_t *trunk_arcs;	/* of the trunk's arcs: those of the network */
	uint64_t k;
	uint64_t *patience;	/* of all that is packed */
	struct plan_links *links;	/* of the trunk */
	struct plan_forest *forest;	/* of the trunk */
	uint64_t *used;		/* of each arc that bounds a box: by trees */
};

/*
 * Parts of a network, of coarse.c: what hangs together of one of the caller's
 * boxes and has a terminal is a part; without links inside, an appliance is
 * several, one behind each uplink. @part of each node, PLAN_NONE for what is
 * between them. Return: how many parts, or -ENOMEM.
 */
int plan_parts(const struct plan_net *net, const uint32_t *box,
	       uint32_t *part);
/*
 * Trees of rate @x with these boxes, of boxes.c; @net is scaled then. -EAGAIN:
 * they do not lead to any; -ETIME: not within @patience, steps that are left.
 */
int plan_boxes_at(struct plan_net *net, const uint32_t *box,
		  struct plan_ratio x, uint64_t *patience,
		  struct plan_solution *s, struct plan_error *e);
/*
 * Share out what enters and leaves boxes by each arc among the GPUs that the
 * box's links lead it to, evenly: fills in share and inflow of all boxes.
 */
int plan_boxed_share(struct plan_boxed *b);
/* All trees made whole. */
int plan_boxed_compose(struct plan_boxed *b, struct plan_links **links,
		       struct plan_forest **forest);

#endif
