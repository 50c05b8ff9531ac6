// SPDX-License-Identifier: LGPL-2.1-or-later
/* Fabrics of any size, as graphs. Names and capacities as in real ones. */
#include <stdarg.h>

#include "fabrics.h"

const char *fabric_pattern_name(enum fabric_pattern pattern)
{
	static const char *const names[FABRIC_PATTERNS] = {
		[FABRIC_STRIPED] = "striped",
		[FABRIC_RAIL] = "rail",
		[FABRIC_FAT_TREE] = "fat-tree",
	};

	return pattern < FABRIC_PATTERNS ? names[pattern] : "?";
}

struct fabric_shape fabric_shape(uint32_t boxes, uint32_t gpus,
				 uint32_t switches,
				 enum fabric_pattern pattern)
{
	return (struct fabric_shape){
		.boxes = boxes, .gpus = gpus, .uplinks = gpus < 4 ? gpus : 4,
		.switches = switches, .pattern = pattern,
		.mesh = 48000, .link = 27000, .isl = 27000,
	};
}

static __attribute__((format(printf, 4, 5))) uint32_t
node(struct plan_graph *g, enum plan_node_kind kind, uint32_t box,
     const char *fmt, ...)
{
	char name[PLAN_NAME];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(name, sizeof(name), fmt, ap);
	va_end(ap);
	return (uint32_t)plan_graph_add_node(g, kind, name, box, NULL);
}

static void join(struct plan_graph *g, uint32_t a, uint32_t b,
		 uint64_t capacity, enum plan_link_kind kind)
{
	if (capacity && a != b)
		plan_graph_add_link(g, a, b, capacity, plan_link_latency(kind),
				    kind, NULL);
}

/* A ring through @n switches, @step apart; two of them have one link. */
static void ring(struct plan_graph *g, uint32_t first, uint32_t n,
		 uint32_t step, uint64_t capacity)
{
	uint32_t i;

	for (i = 0; i < (n > 2 ? n : n - 1); i++)
		join(g, first + i * step, first + (i + 1) % n * step, capacity,
		     PLAN_ISL);
}

/* How many of the switches boxes are plugged into. */
static uint32_t leaves(const struct fabric_shape *s)
{
	return s->pattern == FABRIC_FAT_TREE && s->switches > 1 ?
	       s->switches / 2 : s->switches;
}

static void striped(struct plan_graph *g, const struct fabric_shape *s)
{
	uint32_t i, n = s->switches;

	ring(g, 0, n, 1, s->isl);
	for (i = 0; n > 3 && i < n / 2; i++)
		join(g, i, i + n / 2, s->isl, PLAN_ISL);
}

static void rails(struct plan_graph *g, const struct fabric_shape *s)
{
	uint32_t i, row = s->switches / s->uplinks;

	for (i = 0; i < s->uplinks; i++)
		ring(g, i * row, row, 1, s->isl);
	for (i = 0; i < row; i++)
		ring(g, i, s->uplinks, row, s->isl);
}

/* Leaves have as much to the spines as boxes have to them. */
static void fat_tree(struct plan_graph *g, const struct fabric_shape *s)
{
	uint32_t n = leaves(s), i, k, spines = s->switches - n;
	uint64_t down = s->link * ((s->boxes * s->uplinks + n - 1) / n);

	for (i = 0; i < n; i++)
		for (k = 0; k < spines; k++)
			join(g, i, n + k, (down + spines - 1) / spines,
			     PLAN_ISL);
}

/* The switch that uplink @up of @box is plugged into. */
static uint32_t place(const struct fabric_shape *s, uint32_t box, uint32_t up)
{
	uint32_t row = s->switches / s->uplinks;

	if (s->pattern == FABRIC_RAIL && row)
		return up * row + box % row;
	return (box * s->uplinks + up) % leaves(s);
}

static void box(struct plan_graph *g, const struct fabric_shape *s, uint32_t b)
{
	uint32_t i, k, first = g->nnodes, gpu;

	for (i = 0; i < s->uplinks; i++) {
		node(g, PLAN_PCI_SWITCH, b, "columba%u.up%u", b, i);
		join(g, first + i, place(s, b, i), s->link, PLAN_CABLE);
	}
	gpu = g->nnodes;
	for (i = 0; i < s->gpus; i++) {
		node(g, PLAN_GPU, b, "columba%u.gpu%u", b, i);
		join(g, gpu + i, first + i * s->uplinks / s->gpus, s->link,
		     PLAN_PCIE);
		for (k = 0; k < i; k++)
			join(g, gpu + i, gpu + k, s->mesh, PLAN_XGMI);
	}
}

struct plan_graph *fabric_columbas(const struct fabric_shape *s)
{
	struct plan_graph *g = plan_graph_new(fabric_pattern_name(s->pattern));
	uint32_t i;

	for (i = 0; g && i < s->switches; i++)
		node(g, PLAN_PCI_SWITCH, PLAN_NONE, "draco%u", i);
	if (g && s->pattern == FABRIC_STRIPED)
		striped(g, s);
	else if (g && s->pattern == FABRIC_RAIL)
		rails(g, s);
	else if (g)
		fat_tree(g, s);
	for (i = 0; g && i < s->boxes; i++)
		box(g, s, i);
	return g;
}

struct plan_graph *fabric_dgx(uint32_t boxes, uint32_t spines, uint64_t nvlink,
			      uint64_t net)
{
	struct plan_graph *g = plan_graph_new("dgx");
	uint32_t i, k, nvswitch, gpu, nic;

	for (i = 0; g && i < 8; i++)
		node(g, PLAN_NET, PLAN_NONE, "leaf%u", i);
	for (k = 0; g && k < spines; k++) {
		node(g, PLAN_NET, PLAN_NONE, "spine%u", k);
		for (i = 0; i < 8; i++)
			join(g, i, 8 + k, (net * boxes + spines - 1) / spines,
			     PLAN_OTHER);
	}
	for (k = 0; g && k < boxes; k++) {
		nvswitch = node(g, PLAN_GPU_SWITCH, k, "dgx%u.nvswitch", k);
		for (i = 0; i < 8; i++) {
			gpu = node(g, PLAN_GPU, k, "dgx%u.gpu%u", k, i);
			nic = node(g, PLAN_NIC, k, "dgx%u.nic%u", k, i);
			join(g, gpu, nvswitch, nvlink, PLAN_NVLINK);
			join(g, gpu, nic, net, PLAN_PCIE);
			join(g, nic, i, net, PLAN_OTHER);
		}
	}
	return g;
}

/* One appliance's uplink and what is below it. */
static void group(struct plan_graph *g, uint32_t partition, uint32_t b,
		  uint32_t gpus, uint64_t mesh)
{
	uint32_t up = node(g, PLAN_PCI_SWITCH, b, "group%u.up", b);
	uint32_t i, k;

	join(g, partition, up, 27000, PLAN_CABLE);
	for (i = 0; i < gpus; i++) {
		node(g, PLAN_GPU, b, "group%u.gpu%u", b, i);
		join(g, up, up + 1 + i, 27000, PLAN_PCIE);
		for (k = 0; k < i; k++)
			join(g, up + 1 + i, up + 1 + k, mesh, PLAN_XGMI);
	}
}

struct plan_graph *fabric_hosts(uint32_t hosts, uint32_t groups, uint32_t gpus,
				uint64_t mesh)
{
	struct plan_graph *g = plan_graph_new(mesh ? "hosts with meshes" :
					      "hosts");
	uint32_t i, k, first = 0, ntb = 0, partition, port;

	for (i = 0; g && i < hosts; i++) {
		partition = node(g, PLAN_PARTITION, PLAN_NONE, "h%u.part", i);
		port = node(g, PLAN_ROOT_PORT, PLAN_NONE, "h%u.port", i);
		join(g, partition, port, 27000, PLAN_CABLE);
		join(g, port, node(g, PLAN_ROOT_COMPLEX, PLAN_NONE, "h%u", i),
		     27000, PLAN_ROOT);
		k = ntb;
		ntb = node(g, PLAN_NTB, PLAN_NONE, "h%u.ntb", i);
		join(g, partition, ntb, 27000, PLAN_PCIE);
		if (i)
			join(g, k, ntb, 27000, PLAN_ISL);
		else
			first = ntb;
		for (k = 0; k < groups; k++)
			group(g, partition, i * groups + k, gpus, mesh);
	}
	if (hosts > 2)
		join(g, ntb, first, 27000, PLAN_ISL);
	return g;
}
