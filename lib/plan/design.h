/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which wiring is best, before a cable is pulled. Called by fabrexctl; the text
 * of a wiring is a topology file, for plan_graph_parse().
 */
#ifndef LIB_PLAN_DESIGN_H
#define LIB_PLAN_DESIGN_H

#include "plan/plan.h"

struct topology;

/* What there is; switches, host ports and cables may be left over. */
struct plan_parts {
	uint32_t switches, switch_ports;	/* up to 6; ports of each */
	uint32_t boxes, uplinks;	/* up to 16; Kumas in each: 2 or 4 */
	uint32_t gpus;			/* of each box */
	uint32_t host_ports;		/* Kumas in the server, up to 4 */
	uint32_t isls;			/* cables between switches, at most */
	/* GB/s; no mesh, or nothing through the root complex: 0 */
	double link_gbps, mesh_gbps, root_complex_gbps;
};

struct plan_wiring {
	char *topology;		/* text of a topology file */
	/* busbw, GB/s; ring is 0 if no ring goes through all GPUs */
	double bound, optimal, ring;
	char *why;		/* sentences: what limits it, against the next */
};

/*
 * The best @limit wirings that the parts allow, best first; those that only
 * swap alike parts are one. Broadcast and reduce have rank 0 as root. All are
 * compared by their cuts, the best of them get schedules. If there are too
 * many, only the regular ones are looked at, and .why says which these are.
 * @considered (may be NULL): how many were compared. -EINVAL: parts are short,
 * and of what; or out of range. -E2BIG: even the regular ones are too many.
 * *out is to be freed with plan_wirings_free().
 */
int plan_design(const struct plan_parts *parts, enum plan_collective c,
		uint32_t limit, struct plan_wiring **out, uint32_t *n,
		uint64_t *considered, struct plan_error *e);
void plan_wirings_free(struct plan_wiring *w, uint32_t n);

#endif
