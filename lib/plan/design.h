/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which wiring is best, before a cable is pulled. */
#ifndef LIB_PLAN_DESIGN_H
#define LIB_PLAN_DESIGN_H

#include "plan.h"

struct topology;

struct plan_parts {
	uint32_t switches, switch_ports;	/* ports of each */
	uint32_t boxes, uplinks;	/* Kumas in each box, 1 to 4 */
	uint32_t gpus;			/* of each box */
	uint32_t host_ports;		/* Kumas in the server */
	uint32_t isls;			/* cables between switches, at most */
	double link_gbps, mesh_gbps, root_complex_gbps;
};

struct plan_wiring {
	char *topology;		/* text of a topology file */
	double bound, optimal, ring;	/* busbw, GB/s */
	char *why;		/* sentences: what limits it, against the next */
};

/*
 * The best @limit wirings that the parts allow, best first; those that only
 * swap alike parts are one. *out is to be freed with plan_wirings_free().
 */
int plan_design(const struct plan_parts *parts, enum plan_collective c,
		uint32_t limit, struct plan_wiring **out, uint32_t *n,
		uint64_t *considered, struct plan_error *e);
void plan_wirings_free(struct plan_wiring *w, uint32_t n);

#endif
