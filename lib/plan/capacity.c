// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Capacity and latency of links: the defaults for all fabrics, which files can
 * override for their own links. Called by everything that makes links.
 */
#include <math.h>

#include "plan/plan.h"
#include "topology/pcie.h"

/*
 * A Gen4 x16 link is 31.5 GB/s raw, collectives see 27: headers of packets,
 * flow control, read completions that do not fill the link.
 */
#define EFFICIENCY (27.0 / (16.0 * 16 / 8 * 128 / 130))

uint64_t plan_pcie_capacity(double gt_per_s, uint32_t width)
{
	return (uint64_t)llround(pcie_rate(gt_per_s, width) * EFFICIENCY);
}

uint32_t plan_link_latency(enum plan_link_kind kind)
{
	switch (kind) {
	case PLAN_PCIE:
		return 150;	/* cut-through of a Gen4 switch: 100 to 150 */
	case PLAN_CABLE:
	case PLAN_ISL:
		return 170;	/* and some metres at 5 ns */
	case PLAN_XGMI:
	case PLAN_NVLINK:
		return 300;
	case PLAN_ROOT:
		return 400;	/* through a server's data fabric */
	case PLAN_SMP:
		return 500;
	default:
		return 500;
	}
}
