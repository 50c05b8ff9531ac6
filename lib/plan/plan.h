/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Inside the planner: a fabric as a graph with capacities, and a schedule on it.
 * Every file of lib/plan includes it; programs use fabrex/plan.h instead, which
 * api/ implements. docs/planner.md is the overview.
 *
 * Units: capacities in MB/s, 10^6 bytes per second, per direction; latencies in
 * ns. An object belongs to one thread at a time; different objects are
 * independent. Functions that can fail return 0 or a negative errno and explain
 * it in a struct plan_error; what they were to fill in is left as it was.
 */
#ifndef LIB_PLAN_PLAN_H
#define LIB_PLAN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PLAN_NONE		(~0u)
#define PLAN_NAME		64	/* of an element, with the NUL */
#define PLAN_NODES		16384u	/* limits of what is read from files */
#define PLAN_EDGES		1048576u
#define PLAN_GPUS		4096u
#define PLAN_CAPACITY		(1ull << 32)	/* MB/s, of one edge */

struct plan_error {
	int code;		/* errno, positive; 0: none */
	char text[512];		/* element: cause; remedy */
};

/* Fill in @e (may be NULL). Return: -@code */
int plan_fail(struct plan_error *e, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- ratio.c: exact numbers ------------------------------------------- */

/* In lowest terms, den > 0. */
struct plan_ratio {
	uint64_t num, den;
};

uint64_t plan_gcd(uint64_t a, uint64_t b);
struct plan_ratio plan_ratio(uint64_t num, uint64_t den);
/* <0, 0, >0 as strcmp(); exact. */
int plan_ratio_compare(struct plan_ratio a, struct plan_ratio b);
/* Exact; -EOVERFLOW if the result does not fit. */
int plan_ratio_multiply(struct plan_ratio a, struct plan_ratio b,
			struct plan_ratio *out);
double plan_ratio_value(struct plan_ratio r);

/* ---- graph.c: the fabric ---------------------------------------------- */

enum plan_node_kind {
	PLAN_GPU = 1,		/* computes; all others only pass bytes on */
	PLAN_PCI_SWITCH,	/* inside an appliance or a server */
	PLAN_PARTITION,		/* one host's virtual switch in a Draco */
	PLAN_ROOT_PORT,		/* of a host: where its Kuma is plugged in */
	PLAN_ROOT_COMPLEX,	/* of a host, or one CPU of it */
	PLAN_NTB,		/* of a Draco: joins hosts */
	PLAN_GPU_SWITCH,	/* NVSwitch and the like */
	PLAN_NIC,
	PLAN_NET,		/* one port of a NIC */
	PLAN_NODE_KINDS
};

enum plan_link_kind {
	PLAN_PCIE = 1,
	PLAN_CABLE,		/* PCIe through Kuma and Draco: fabric link */
	PLAN_ISL,		/* PCIe between two Dracos */
	PLAN_XGMI,
	PLAN_NVLINK,
	PLAN_ROOT,		/* through a root complex, root port to CPU */
	PLAN_SMP,		/* between CPUs of one host */
	PLAN_OTHER,
	PLAN_LINK_KINDS
};

/* What a format wants kept: "pci.busid", "gpu.gcn", "cpu.affinity" ... */
struct plan_attribute {
	char *key, *value;
};

struct plan_node {
	char name[PLAN_NAME];	/* unique in the graph */
	enum plan_node_kind kind;
	uint32_t rank;		/* of a GPU; PLAN_NONE: not planned for */
	uint32_t box;		/* appliance or server it is in, from 0 */
	uint32_t up;		/* node above it in the PCI tree */
	uint32_t line;		/* of the file; 0: there is none */
	uint32_t nattributes;
	struct plan_attribute *attributes;
};

/*
 * One direction of a link. A GPU that is not a rank passes nothing on, and no
 * GPU passes on what it has not received whole as a rank of a schedule: routes
 * have no GPU inside.
 */
struct plan_edge {
	uint32_t from, to;
	uint64_t capacity;	/* MB/s, effective; never 0 */
	uint32_t latency;	/* ns, for this hop */
	enum plan_link_kind kind;
	uint32_t twin;		/* the other direction, PLAN_NONE if there is none */
	uint32_t line;
};

struct plan_graph {
	char name[PLAN_NAME];
	uint32_t nnodes, nedges;
	struct plan_node *nodes;
	struct plan_edge *edges;
	uint32_t nranks;
	uint32_t *gpus;		/* node of each rank */
	uint32_t nboxes;
	uint32_t nwarnings;	/* what a reader had to suppose */
	char **warnings;
	struct plan_graph_private *private;	/* of graph.c */
};

struct plan_graph *plan_graph_new(const char *name);
void plan_graph_free(struct plan_graph *g);
struct plan_graph *plan_graph_copy(const struct plan_graph *g);
/*
 * Add a node, or one edge for each direction. The index, or a negative errno:
 * -EEXIST a name that is there already, -EINVAL one that is empty, too long or
 * has characters outside [A-Za-z0-9._:-]; a link from a node to itself, a
 * capacity of 0 or over PLAN_CAPACITY; -E2BIG over the limits above.
 * GPUs become ranks in the order in which they are added.
 */
int64_t plan_graph_add_node(struct plan_graph *g, enum plan_node_kind kind,
			    const char *name, uint32_t box,
			    struct plan_error *e);
int64_t plan_graph_add_edge(struct plan_graph *g, uint32_t from, uint32_t to,
			    uint64_t capacity, uint32_t latency,
			    enum plan_link_kind kind, struct plan_error *e);
/* Both directions; the index of the first, the second follows it. */
int64_t plan_graph_add_link(struct plan_graph *g, uint32_t a, uint32_t b,
			    uint64_t capacity, uint32_t latency,
			    enum plan_link_kind kind, struct plan_error *e);
int plan_graph_warn(struct plan_graph *g, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
uint32_t plan_graph_find(const struct plan_graph *g, const char *name);
/*
 * Edges by the node they lead out of, or @in: into. Those of node n are
 * (*edges)[(*first)[n]] to before (*edges)[(*first)[n + 1]]. Both are to be
 * freed, also on -ENOMEM.
 */
int plan_graph_sort_edges(const struct plan_graph *g, bool in,
			  uint32_t **first, uint32_t **edges);
/* NULL if the node has no such attribute; set with NULL takes it away. */
const char *plan_node_get(const struct plan_graph *g, uint32_t node,
			  const char *key);
int plan_node_set(struct plan_graph *g, uint32_t node, const char *key,
		  const char *value);
/*
 * Make exactly these GPU nodes ranks, in this order (as visible devices do).
 * -EINVAL: one is no GPU, or named twice.
 */
int plan_graph_ranks(struct plan_graph *g, const uint32_t *nodes, uint32_t n,
		     struct plan_error *e);
/*
 * Can anything be planned on it: at least two ranks, each reaches each other
 * without passing through a GPU that is no rank, every node that only passes
 * on gets as many MB/s as it gives (no copies are made there), not counting
 * links of GPUs that are no ranks. -EINVAL and the element otherwise.
 */
int plan_graph_check(const struct plan_graph *g, struct plan_error *e);

const char *plan_node_kind_name(enum plan_node_kind kind);	/* "gpu" ... */
const char *plan_link_kind_name(enum plan_link_kind kind);
enum plan_node_kind plan_node_kind_parse(const char *word);	/* 0: unknown */
enum plan_link_kind plan_link_kind_parse(const char *word);

/* ---- capacity.c: what links carry ------------------------------------- */

/*
 * Effective MB/s of a PCIe link: raw rate, line code, and the share that
 * collectives see of it. 0: there is no such speed or width.
 */
uint64_t plan_pcie_capacity(double gt_per_s, uint32_t width);
/* ns of one hop of a link of this kind, switch included. */
uint32_t plan_link_latency(enum plan_link_kind kind);

/* ---- schedule.c: who sends what to whom, over which links -------------- */

enum plan_collective {
	PLAN_ALL_GATHER = 1,
	PLAN_REDUCE_SCATTER,
	PLAN_ALL_REDUCE,
	PLAN_BROADCAST,
	PLAN_REDUCE,
	PLAN_COLLECTIVES
};

/* "all-gather"; parse takes "_" for "-", too. 0: unknown. */
const char *plan_collective_name(enum plan_collective c);
enum plan_collective plan_collective_parse(const char *word);
/*
 * busbw / algbw as nccl-tests defines it: 2(n-1)/n, (n-1)/n, or 1. algbw is
 * size over time; the size of all-gather and reduce-scatter is that of all
 * shards together.
 */
struct plan_ratio plan_busbw_factor(enum plan_collective c, uint32_t nranks);

/* A path from one rank's GPU to another's: edges, one after the other. */
struct plan_route {
	uint32_t from, to;	/* ranks */
	uint32_t first, nedges;	/* in plan_schedule.route_edges */
};

struct plan_transfer {
	uint32_t route : 31;
	uint32_t reduce : 1;	/* 0: copy */
};

/*
 * A part of a shard and what happens to it, in an order that would be right
 * if it were done one by one (docs/schedule.md, "Order"). Exactly that
 * document's chunks: weight 3 of a shard of weights 3 and 4 is 3/7 of it.
 */
struct plan_chunk {
	uint32_t shard;		/* all-gather, reduce-scatter: a rank; else 0 */
	uint32_t tree;		/* for people: chunks alike belong together */
	uint64_t weight;
	uint64_t first;		/* in plan_schedule.transfers */
	uint64_t ntransfers;
};

struct plan_schedule {
	enum plan_collective collective;
	uint32_t nranks;
	uint32_t root;		/* broadcast, reduce */
	uint32_t nshards;	/* nranks or 1 */
	uint64_t shard_weight;	/* sum of the weights of any one shard */
	uint64_t nroutes, nroute_edges, nchunks, ntransfers;
	struct plan_route *routes;
	uint32_t *route_edges;
	struct plan_chunk *chunks;	/* by shard */
	struct plan_transfer *transfers;
	struct plan_schedule_private *private;	/* of schedule.c */
};

struct plan_schedule *plan_schedule_new(enum plan_collective c, uint32_t nranks,
					uint32_t root);
void plan_schedule_free(struct plan_schedule *s);
/*
 * The route over these edges, added if it is not there yet. Its index, or
 * -ENOMEM; -EINVAL: they do not lead from one rank's GPU to another's.
 */
int64_t plan_schedule_route(struct plan_schedule *s,
			    const struct plan_graph *g, const uint32_t *edges,
			    uint32_t n);
/* Begin a chunk; transfers go to the newest one. */
int plan_schedule_chunk(struct plan_schedule *s, uint32_t shard, uint32_t tree,
			uint64_t weight);
int plan_schedule_transfer(struct plan_schedule *s, uint32_t route,
			   bool reduce);
/*
 * After the last transfer: chunks come in order of their shards, the weights of
 * all shards get the same sum. -EINVAL: a shard has no chunk.
 */
int plan_schedule_finish(struct plan_schedule *s);
/*
 * Of each edge: bytes that cross it, in parts of shard_weight * nshards, for
 * each byte of the collective's size. @loads has g->nedges entries.
 * -EOVERFLOW: weights are too large.
 */
int plan_schedule_loads(const struct plan_schedule *s,
			const struct plan_graph *g, uint64_t *loads);
/*
 * What the links allow the schedule in the long run, MB/s of algbw: the least
 * capacity / load. @edge: of that, may be NULL.
 */
int plan_schedule_rate(const struct plan_schedule *s,
		       const struct plan_graph *g, struct plan_ratio *algbw,
		       uint32_t *edge);

#endif
