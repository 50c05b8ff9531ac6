/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A fabric as SVG while it is being written: svg.c (the page), svg_links.c (lines
 * between elements), svg_boxes.c (boxes, their meshes, elements). Only these
 * include it; layout.h says where everything stands.
 */
#ifndef LIB_PLAN_OUTPUT_SVG_H
#define LIB_PLAN_OUTPUT_SVG_H

#include "plan/optimum.h"
#include "plan/output/layout.h"

#define SVG_MARGIN	24.0

/* All edges between two items, in both directions. */
struct svg_line {
	uint32_t a, b;		/* items; circles of meshes: nodes */
	uint32_t first, n;	/* in picture.order */
	double share;		/* of the direction that is loaded most, 0 to 1 */
	uint32_t ncut;
};

struct svg {
	const struct plan_graph *g;
	const struct plan_schedule *schedule;
	const struct plan_cut *cut;
	FILE *f;
	struct layout l;
	double *load;		/* MB/s of each edge; NULL without schedule */
	double rate;		/* MB/s of algbw */
	uint32_t busiest;	/* edge */
	bool *in_cut;		/* of each edge; NULL without cut */
	uint32_t *order;	/* edges by line */
	uint32_t nlines;
	struct svg_line *lines;	/* between items */
	uint32_t nmesh;
	struct svg_line *mesh;	/* between GPUs of a unit, in the same order[] */
	uint32_t *mesh_of;	/* of each unit: its first in mesh, and the end */
};

struct svg_point {
	double x, y;
};

/* ---- svg.c ---------------------------------------------------------------- */

/* "27", "1.28", "0.001": GB/s without trailing zeros. */
const char *svg_gbps(double mbps, char buf[24]);
void svg_text(const struct svg *p, double x, double y, const char *class,
	      const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Load of an edge as a part of its capacity, 0 to 1. */
double svg_share(const struct svg *p, uint32_t edge);
const char *svg_load_colour(double share, char buf[8]);
const char *svg_kind_colour(enum plan_link_kind kind);

/* ---- svg_links.c ---------------------------------------------------------- */

/* Fill in order, lines, mesh, mesh_of. -ENOMEM */
int svg_lines_make(struct svg *p);
void svg_lines(const struct svg *p);
/* Class, colour, width and edges of the element that draws this line. */
void svg_line_attributes(const struct svg *p, const struct svg_line *line,
			 double thin);
void svg_line_title(const struct svg *p, const struct svg_line *line);

/* ---- svg_boxes.c ---------------------------------------------------------- */

void svg_frame(const struct svg *p, uint32_t unit);
void svg_mesh(const struct svg *p, uint32_t unit);
/* A box whose GPUs are one item; one element. */
void svg_box(const struct svg *p, const struct layout_item *it);
void svg_node(const struct svg *p, const struct layout_item *it);

#endif
