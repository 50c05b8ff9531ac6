/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records of plans: every number that is claimed with what it follows from, so
 * that a reader can check it by hand. Called by collective.c and compare.c.
 */
#ifndef CTL_CERTIFICATE_H
#define CTL_CERTIFICATE_H

#include <json-c/json.h>

#include "planned.h"

/* "216000" or "1512000/7", MB/s */
void rec_exact(json_object *o, const char *key, struct fabrex_plan_ratio r);
/* algbw and busbw in GB/s, kind, cut, and the cut in words. */
json_object *json_bound(const struct planned *p);
json_object *json_optimal(const struct planned *p);
/* Numbers are null where there are no rings. */
json_object *json_ring(const struct planned *p);
/*
 * What would be measured: RCCL and NCCL run rings. Numbers are null if nothing
 * was predicted, or there are no rings.
 */
json_object *json_predicted(const struct planned *p);
json_object *json_ranks(const struct fabrex_plan_graph *g);
json_object *json_warnings(const struct fabrex_plan_graph *g);
/* What is inside, which edges bound it, and the sum of their capacities. */
json_object *json_cut(const struct fabrex_plan_graph *g,
		      const struct fabrex_plan_part *cut);

/*
 * What limits it, in one line: "8 of 16 GPUs, 4 x 27 GB/s cable out: 108 GB/s".
 * To be freed.
 */
char *certificate_limit(const struct planned *p);

#endif
