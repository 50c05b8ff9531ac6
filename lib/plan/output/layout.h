/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where everything of a picture goes. For svg*.c only.
 *
 * GPUs stand in a row at the bottom, box by box; switches of a box above its
 * GPUs, then what is outside of boxes, layer by layer, root complexes on top.
 * A graph of nothing but GPUs goes round a circle. From more GPUs than
 * LAYOUT_SINGLE on, a box is one item.
 */
#ifndef LIB_PLAN_LAYOUT_H
#define LIB_PLAN_LAYOUT_H

#include "plan/plan.h"

#define LAYOUT_SINGLE	64	/* GPUs that are drawn one by one */
#define LAYOUT_BOW	40.0	/* how high a line bows over a row at most */
#define LAYOUT_CHORD	16	/* GPUs of a box whose mesh is drawn */

/* A node, or a box that stands for all that is in it. */
struct layout_item {
	uint32_t node;		/* PLAN_NONE: a box */
	uint32_t unit;		/* PLAN_NONE: outside of boxes */
	uint32_t layer;		/* 0: bottom; of outer items above all boxes */
	double x, y;		/* of its centre */
	double w, h;
};

/* A box with GPUs, or GPUs without a box that share a switch. */
struct layout_unit {
	uint32_t box;		/* PLAN_NONE: no frame is drawn */
	uint32_t ngpus;
	uint32_t *gpus;		/* nodes, in the order of the row */
	bool mesh;		/* GPUs of it have links among themselves */
	double x, y, w, h;	/* of the frame: left, top */
	double chord_x, chord_y, chord_r; /* the mesh as a small circle */
	double label_y;		/* of the name, and 14 below of the mesh */
};

struct layout {
	bool circle, together;	/* boxes as one item */
	uint32_t nitems, nunits, nlayers;
	struct layout_item *items;
	struct layout_unit *units;
	uint32_t *item;		/* of each node */
	uint32_t *unit;		/* of each node, PLAN_NONE: outside */
	double width, height;	/* from 0, 0 */
};

/* The label of an item: of GPUs what is left without the box's name. */
const char *layout_label(const struct plan_graph *g, const struct layout *l,
			 const struct layout_item *item, char *buf,
			 size_t size);
/* "columba1" if that is how names of the box's nodes begin, else "box 3". */
const char *layout_box_name(const struct plan_graph *g, const struct layout *l,
			    const struct layout_unit *u, char *buf,
			    size_t size);

/* -ENOMEM. @l is to be freed in any case. */
int layout_make(const struct plan_graph *g, struct layout *l);
void layout_free(struct layout *l);

#endif
