/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fabrics of any size, as graphs. Called by tests, benchmarks, gen-fabric. */
#ifndef PLAN_TESTS_FABRICS_H
#define PLAN_TESTS_FABRICS_H

#include "plan/plan.h"

enum fabric_pattern {
	/* Uplinks of a box on neighbours among the switches, which are a ring
	 * with chords.
	 */
	FABRIC_STRIPED,
	/* Uplink j of each box on a switch of rail j; switches of a rail are a
	 * ring, equal places of all rails another.
	 */
	FABRIC_RAIL,
	/* Half of the switches are leaves, the others spines, each joined to
	 * each leaf; spines have as much below them as leaves.
	 */
	FABRIC_FAT_TREE,
	FABRIC_PATTERNS
};

/*
 * Boxes of GPUs in a full mesh, each GPU behind one of the box's PCIe
 * switches, each of which has one uplink to a Draco. Any capacity, MB/s, may
 * be 0: no mesh, no inter-switch links.
 */
struct fabric_shape {
	uint32_t boxes, gpus, uplinks;	/* uplinks and GPUs of a box */
	uint32_t switches;
	enum fabric_pattern pattern;
	uint64_t mesh, link, isl;
};

/* The largest that plans have to be fast for: 64 boxes, 32 switches. */
struct fabric_shape fabric_shape(uint32_t boxes, uint32_t gpus,
				 uint32_t switches,
				 enum fabric_pattern pattern);
struct plan_graph *fabric_columbas(const struct fabric_shape *shape);
/*
 * @boxes servers of eight GPUs on an NVSwitch, @nvlink each, and a NIC for
 * each GPU, @net, to a leaf switch for each place in a box; leaves to @spines.
 */
struct plan_graph *fabric_dgx(uint32_t boxes, uint32_t spines, uint64_t nvlink,
			      uint64_t net);
/*
 * Boxes of GPUs that are split between hosts: each host's partition has
 * @groups PCIe switches of @gpus below it, in a mesh if @mesh is not 0, a root
 * port above it, and an NTB in a ring of them. Nodes and edges are those of a
 * topology file.
 */
struct plan_graph *fabric_hosts(uint32_t hosts, uint32_t groups, uint32_t gpus,
				uint64_t mesh);
const char *fabric_pattern_name(enum fabric_pattern pattern);

#endif
