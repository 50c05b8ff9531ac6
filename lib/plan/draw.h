/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pictures, schedules and explanations as text. Called by api/write.c. */
#ifndef LIB_PLAN_DRAW_H
#define LIB_PLAN_DRAW_H

#include "plan/optimum.h"

/*
 * SVG of the fabric, boxes, switches, links with their capacity. With
 * @schedule: the load of each link when it runs as fast as it can; with @cut:
 * what is inside, and the edges that bound it. Both may be NULL.
 */
int plan_draw(const struct plan_graph *g, const struct plan_schedule *schedule,
	      const struct plan_cut *cut, FILE *f, struct plan_error *e);

/*
 * docs/schedule.md's text, for fabrex_schedule_parse(). -E2BIG: more chunks,
 * transfers or weight than that format has.
 */
int plan_schedule_write(const struct plan_graph *g,
			const struct plan_schedule *s, FILE *f,
			struct plan_error *e);
/* "box columba1 (8 of 16 GPUs): 4 links of 27 GB/s leave it, ..." */
int plan_bound_explain(const struct plan_graph *g, enum plan_collective c,
		       const struct plan_bound *b, FILE *f);

#endif
