/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libfabrex-plan: public API of the planner. It computes how fast a collective
 * can be on a fabric of GPUs, schedules that are that fast, rings for NCCL and
 * RCCL, predicted times, and the best wiring of given parts. It needs neither a
 * fabric nor libfabrex. Each group of functions has a man page; fabrex_plan(7)
 * is the overview.
 *
 * Functions return 0, a count or an index on success and a negative errno on
 * failure. After a failure, fabrex_plan_strerror_last() returns a message that
 * names the object, the cause and the remedy, and output arguments are
 * unchanged.
 *
 * Threads: an object must be used by one thread at a time; different threads
 * may use different objects. Nothing is printed. Results are the same on every
 * machine and in every run, unless a search is given a time limit.
 *
 * Structures grow at their end. The library is told the size that the caller
 * was compiled with, which is also the stride of arrays. Members that an older
 * caller lacks are taken as 0 and not stored. Members that an older library
 * does not know are set to 0; if the caller has set one, the call fails with
 * -E2BIG.
 *
 * Units: capacities are MB/s (10^6 bytes per second) in one direction,
 * latencies ns, times s; other rates have the unit given at the member. Strings
 * and arrays that are returned belong to the object that was queried, and are
 * valid until it is changed or freed.
 */
#ifndef FABREX_PLAN_H
#define FABREX_PLAN_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fabrex_plan_graph;	/* a fabric: nodes, links, ranks */
struct fabrex_plan;		/* bound and schedule of one collective on it */

/* Version of this header; fabrex_plan_version(): of the library, "1.2". */
#define FABREX_PLAN_VERSION_MAJOR	1
#define FABREX_PLAN_VERSION_MINOR	2
const char *fabrex_plan_version(void);

/*
 * Error message of the calling thread's last failure; never NULL. Valid until
 * the thread calls libfabrex-plan again.
 */
const char *fabrex_plan_strerror_last(void);

#define FABREX_PLAN_NONE	UINT32_MAX	/* no node, rank, box or edge */

/* ---- graphs: fabrex_plan_graph_read(3) --------------------------------- */

enum fabrex_plan_node_kind {
	FABREX_PLAN_GPU = 1,	/* computes; all others only forward bytes */
	FABREX_PLAN_PCI_SWITCH,	/* inside an appliance or a server */
	FABREX_PLAN_PARTITION,	/* virtual switch of one host in a Draco */
	FABREX_PLAN_ROOT_PORT,	/* of a host */
	FABREX_PLAN_ROOT_COMPLEX, /* of a host, or of one of its CPUs */
	FABREX_PLAN_NTB,	/* of a Draco: joins hosts */
	FABREX_PLAN_GPU_SWITCH,	/* NVSwitch and the like */
	FABREX_PLAN_NIC,
	FABREX_PLAN_NET,	/* one port of a NIC */
};

enum fabrex_plan_link_kind {
	FABREX_PLAN_PCIE = 1,
	FABREX_PLAN_CABLE,	/* PCIe through Kuma and Draco */
	FABREX_PLAN_ISL,	/* PCIe between two Dracos */
	FABREX_PLAN_XGMI,
	FABREX_PLAN_NVLINK,
	FABREX_PLAN_ROOT,	/* through a root complex, root port to CPU */
	FABREX_PLAN_SMP,	/* between CPUs of one host */
	FABREX_PLAN_OTHER,
};

/* "gpu", "pcie", ...; never NULL. */
const char *fabrex_plan_node_kind_str(int kind);
const char *fabrex_plan_link_kind_str(int kind);

/* Which GPUs are ranks, and in which order. */
struct fabrex_plan_select {
	const char *host;	/* GPUs of this host; NULL: of all hosts */
	/*
	 * Like HIP_VISIBLE_DEVICES: names, or indices of the GPUs chosen by
	 * host, separated by commas. NULL: all.
	 */
	const char *devices;
	uint64_t reserved[2];	/* 0 */
};

/*
 * Reads a topology file (fabrex-topology(5)), a topology XML of NCCL or RCCL,
 * or a graph file; the format is detected from the content. select may be NULL;
 * size is sizeof(struct fabrex_plan_select). parse: error messages refer to the
 * text as name.
 */
int fabrex_plan_graph_read(const char *path,
			   const struct fabrex_plan_select *select, size_t size,
			   struct fabrex_plan_graph **graph);
int fabrex_plan_graph_parse(const char *text, size_t length, const char *name,
			    const struct fabrex_plan_select *select,
			    size_t size, struct fabrex_plan_graph **graph);
int fabrex_plan_graph_copy(const struct fabrex_plan_graph *graph,
			   struct fabrex_plan_graph **copy);
/* graph may be NULL. Plans that were made from it stay valid. */
void fabrex_plan_graph_free(struct fabrex_plan_graph *graph);

/* Restricts the ranks to those selected among the current ones. */
int fabrex_plan_graph_select(struct fabrex_plan_graph *graph,
			     const struct fabrex_plan_select *select,
			     size_t size);
/* Makes these n GPU nodes the ranks, in this order. */
int fabrex_plan_graph_ranks(struct fabrex_plan_graph *graph,
			    const uint32_t *nodes, uint32_t n);
/*
 * Checks whether the graph can be planned for: there are at least two ranks,
 * each can reach every other without passing through a GPU that is not a rank,
 * and a node that only forwards has as much capacity in as out. -EINVAL if not.
 */
int fabrex_plan_graph_check(const struct fabrex_plan_graph *graph);

struct fabrex_plan_graph_attr {
	const char *name;
	uint32_t nodes, edges;	/* numbered from 0 */
	uint32_t ranks;
	uint32_t boxes;		/* appliances and servers, numbered from 0 */
	uint32_t warnings;	/* assumptions made when it was read */
	uint32_t reserved;
};
int fabrex_plan_graph_query(const struct fabrex_plan_graph *graph,
			    struct fabrex_plan_graph_attr *attr, size_t size);

struct fabrex_plan_node {
	const char *name;	/* unique in the graph */
	uint32_t kind;		/* enum fabrex_plan_node_kind */
	uint32_t rank;		/* of a GPU, or FABREX_PLAN_NONE */
	uint32_t box;		/* its box, or FABREX_PLAN_NONE */
	uint32_t up;		/* its parent in the PCI tree, or NONE */
	uint32_t line;		/* where it is in the file, or 0 */
	uint32_t reserved;
};
/* -ENOENT: there is no such node. */
int fabrex_plan_node_query(const struct fabrex_plan_graph *graph,
			   uint32_t node, struct fabrex_plan_node *out,
			   size_t size);

/* One direction of a link. */
struct fabrex_plan_edge {
	uint64_t capacity;	/* MB/s, usable by collectives; never 0 */
	uint32_t from, to;	/* nodes */
	uint32_t kind;		/* enum fabrex_plan_link_kind */
	uint32_t latency;	/* ns */
	uint32_t reverse;	/* edge in the opposite direction, or NONE */
	uint32_t line;		/* where it is in the file, or 0 */
};
/* -ENOENT: there is no such edge. */
int fabrex_plan_edge_query(const struct fabrex_plan_graph *graph,
			   uint32_t edge, struct fabrex_plan_edge *out,
			   size_t size);

/* The node of a rank; the node with a name. FABREX_PLAN_NONE: there is none. */
uint32_t fabrex_plan_rank_node(const struct fabrex_plan_graph *graph,
			       uint32_t rank);
uint32_t fabrex_plan_node_find(const struct fabrex_plan_graph *graph,
			       const char *name);
/* Value of an attribute such as "pci.busid"; NULL: not set. */
const char *fabrex_plan_node_get(const struct fabrex_plan_graph *graph,
				 uint32_t node, const char *key);
/* NULL: there is no warning with that index. */
const char *fabrex_plan_graph_warning(const struct fabrex_plan_graph *graph,
				      uint32_t index);

/* ---- graphs without a file: fabrex_plan_graph_create(3) ---------------- */

/* Names have 1 to 63 characters. */
int fabrex_plan_graph_create(const char *name,
			     struct fabrex_plan_graph **graph);
/*
 * Returns the index of the new node. GPUs become ranks in the order in which
 * they are added. box: a number below 16384, the same for all nodes of one box.
 * up: the parent in the PCI tree. Both may be FABREX_PLAN_NONE. -EEXIST: the
 * name is taken.
 */
int fabrex_plan_node_add(struct fabrex_plan_graph *graph, int kind,
			 const char *name, uint32_t box, uint32_t up);
/*
 * Adds both directions, with capacity MB/s each. latency: ns; 0: the default of
 * the kind. Returns the index of the edge from a to b; the edge from b to a is
 * the next one.
 */
int fabrex_plan_link_add(struct fabrex_plan_graph *graph, uint32_t a,
			 uint32_t b, uint64_t capacity, uint32_t latency,
			 int kind);
/* Sets an attribute; a value of NULL removes it. */
int fabrex_plan_node_set(struct fabrex_plan_graph *graph, uint32_t node,
			 const char *key, const char *value);
int fabrex_plan_graph_warn(struct fabrex_plan_graph *graph, const char *text);

/* ---- discovered fabrics: fabrex_plan_fabric_create(3) ------------------ */

/*
 * The contents of a topology file, supplied by calls: for programs that have
 * discovered a fabric by querying its switches, and for links that run below
 * the speed or width of their ports. Functions that add an element return its
 * number, counted from 0 for each kind.
 */
struct fabrex_plan_fabric;

struct fabrex_plan_fabric_attr {
	const char *name;
	uint64_t link;		/* MB/s of a Gen4 x16 link, usually 27000 */
	uint64_t root_complex;	/* MB/s between host ports, usually 27000 */
	uint64_t reserved[2];	/* 0 */
};

/* One end of a cable: a switch port, and the link's actual speed and width. */
struct fabrex_plan_port {
	uint32_t sw;		/* number of the switch */
	uint32_t port;		/* counted from 1 */
	uint32_t speed;		/* MT/s; 0: that of the switch */
	uint32_t width;		/* lanes; 0: that of the switch */
};

#define FABREX_PLAN_FLAT	(1u << 0) /* 1 PCIe switch per uplink, not 2 */
#define FABREX_PLAN_NO_ROOT_P2P	(1u << 0) /* host does not forward P2P */

struct fabrex_plan_gpu {
	const char *name;
	uint32_t appliance;	/* add all GPUs of one before the next */
	uint32_t uplink;	/* of the appliance, counted from 0 */
	uint32_t host;		/* it is bound to, or FABREX_PLAN_NONE */
	uint32_t host_port;	/* of that host, counted from 0 */
	uint64_t reserved[2];	/* 0 */
};

int fabrex_plan_fabric_create(const struct fabrex_plan_fabric_attr *attr,
			      size_t size, struct fabrex_plan_fabric **fabric);
void fabrex_plan_fabric_free(struct fabrex_plan_fabric *fabric);
/* speed in GT/s, 16 for Gen4; width in lanes. */
int fabrex_plan_fabric_switch(struct fabrex_plan_fabric *fabric,
			      const char *name, uint32_t ports,
			      uint32_t speed, uint32_t width);
/* size: of one struct fabrex_plan_port, here and below. */
int fabrex_plan_fabric_isl(struct fabrex_plan_fabric *fabric,
			   const struct fabrex_plan_port ends[2], size_t size);
/* flags: FABREX_PLAN_NO_ROOT_P2P */
int fabrex_plan_fabric_host(struct fabrex_plan_fabric *fabric,
			    const char *name, uint32_t flags,
			    const struct fabrex_plan_port *ports, uint32_t n,
			    size_t size);
/*
 * flags: FABREX_PLAN_FLAT. mesh: kind of the links between the appliance's GPUs
 * that belong to the same host, "xgmi", "nvlink" or "pcie", with mesh_capacity
 * MB/s each; NULL: none.
 */
int fabrex_plan_fabric_appliance(struct fabrex_plan_fabric *fabric,
				 const char *name, uint32_t flags,
				 const struct fabrex_plan_port *uplinks,
				 uint32_t n, size_t size, const char *mesh,
				 uint64_t mesh_capacity);
int fabrex_plan_fabric_gpu(struct fabrex_plan_fabric *fabric,
			   const struct fabrex_plan_gpu *gpu, size_t size);
/*
 * The fabric as its hosts see it. Boxes are the appliances, followed by the
 * hosts that are planned for. select may be NULL. The fabric can be freed
 * afterwards.
 */
int fabrex_plan_fabric_graph(const struct fabrex_plan_fabric *fabric,
			     const struct fabrex_plan_select *select,
			     size_t size, struct fabrex_plan_graph **graph);

/* ---- plans: fabrex_plan_optimal(3) ------------------------------------- */

enum fabrex_plan_collective {
	FABREX_PLAN_ALL_GATHER = 1,
	FABREX_PLAN_REDUCE_SCATTER,
	FABREX_PLAN_ALL_REDUCE,
	FABREX_PLAN_BROADCAST,
	FABREX_PLAN_REDUCE,
};

/* "all-gather", ...; never NULL. Parsing accepts "_" for "-"; 0: unknown. */
const char *fabrex_plan_collective_str(int collective);
int fabrex_plan_collective_parse(const char *word);

/* An exact fraction in lowest terms; den is never 0. */
struct fabrex_plan_ratio {
	uint64_t num, den;
};

/* Returns < 0, 0 or > 0 like strcmp(); exact. */
int fabrex_plan_ratio_compare(struct fabrex_plan_ratio a,
			      struct fabrex_plan_ratio b);
double fabrex_plan_ratio_value(struct fabrex_plan_ratio ratio);

/*
 * The lowest upper bound that cuts and partitions of the graph prove, without a
 * schedule. root: rank, for broadcast and reduce. A plan keeps a copy of the
 * graph. -EINVAL: fabrex_plan_graph_check() fails.
 */
int fabrex_plan_bound(const struct fabrex_plan_graph *graph, int collective,
		      uint32_t root, struct fabrex_plan **plan);
/* The bound, and the trees found that reach it or come closest to it. */
int fabrex_plan_optimal(const struct fabrex_plan_graph *graph, int collective,
			uint32_t root, struct fabrex_plan **plan);

struct fabrex_plan_ring_attr {
	uint32_t rings;		/* at most; 0: as many as help */
	uint32_t reserved;	/* 0 */
	/*
	 * Time limit of the search, s. 0: the amount of work depends only on
	 * the graph, so that results are the same on every machine.
	 */
	double seconds;
	uint64_t seed;
};
/*
 * The best rings found through all ranks, and the bound for any rings. attr may
 * be NULL. -EINVAL: no ring exists or, with more than 20 ranks, none was found.
 */
int fabrex_plan_rings(const struct fabrex_plan_graph *graph, int collective,
		      uint32_t root, const struct fabrex_plan_ring_attr *attr,
		      size_t size, struct fabrex_plan **plan);
/* Rings from an NCCL graph XML (GPUs by dev) or an NCCL_RINGS string. */
int fabrex_plan_rings_parse(const struct fabrex_plan_graph *graph,
			    int collective, uint32_t root, const char *text,
			    size_t length, const char *name,
			    struct fabrex_plan **plan);
/* plan may be NULL. */
void fabrex_plan_free(struct fabrex_plan *plan);

enum fabrex_plan_kind {
	FABREX_PLAN_NO_SCHEDULE = 1,	/* only a bound */
	FABREX_PLAN_TREES,
	FABREX_PLAN_RINGS,
};

enum fabrex_plan_bound_kind {
	/* Data that has to cross one cut, divided by the cut's capacity. */
	FABREX_PLAN_BOUND_CUT = 1,
	/* all-reduce: data that the parts have to receive, divided by the
	 * capacity into them.
	 */
	FABREX_PLAN_BOUND_PARTITION,
};

/*
 * algbw: size divided by time, MB/s; the size of an all-gather or
 * reduce-scatter is that of all shards together. busbw: algbw times the factor
 * of nccl-tests.
 */
struct fabrex_plan_attr {
	uint32_t kind;		/* enum fabrex_plan_kind */
	uint32_t collective;	/* enum fabrex_plan_collective */
	uint32_t root;
	uint32_t ranks;
	struct fabrex_plan_ratio algbw, busbw;	/* of the schedule, or 0/1 */
	struct fabrex_plan_ratio bound_algbw, bound_busbw;
	uint32_t proved;	/* 1: the schedule reaches the bound */
	uint32_t bound_kind;	/* enum fabrex_plan_bound_kind */
	uint32_t parts;		/* of the bound: 1 for a cut */
	uint32_t rings;		/* 0 unless kind is RINGS */
	/* RINGS: numbers in NCCL_RINGS: 1: NCCL's dev, 0: ranks */
	uint32_t nccl_dev;
	uint32_t reserved;
	uint64_t trees;		/* TREES: unit trees per root; else 0 */
	uint64_t chunks, transfers;	/* of the schedule */
};
int fabrex_plan_query(const struct fabrex_plan *plan,
		      struct fabrex_plan_attr *attr, size_t size);

/* One side of the cut, or one part of the partition, that proves the bound. */
struct fabrex_plan_part {
	const uint32_t *nodes;	/* inside, ascending */
	const uint32_t *edges;	/* across its boundary, ascending */
	uint32_t nnodes, nedges;
	uint32_t ranks;		/* number of ranks inside */
	uint32_t inward;	/* 1: edges lead into it; 0: out of it */
	uint64_t capacity;	/* total of these edges, MB/s */
};
/* -ENOENT: there is no such part. */
int fabrex_plan_part_query(const struct fabrex_plan *plan, uint32_t index,
			   struct fabrex_plan_part *part, size_t size);
/* All ranks in ring order, starting with rank 0; NULL: no such ring. */
const uint32_t *fabrex_plan_ring(const struct fabrex_plan *plan,
				 uint32_t index);

/* ---- output: fabrex_plan_write(3) -------------------------------------- */

enum fabrex_plan_format {
	FABREX_PLAN_GRAPH = 1,	/* graph: graph file; for any graph */
	/* graph: topology XML of one host (NCCL_TOPO_FILE); RINGS: graph XML
	 * (NCCL_GRAPH_FILE) to be used with it
	 */
	FABREX_PLAN_NCCL,
	FABREX_PLAN_RCCL,
	FABREX_PLAN_NCCL_RINGS,	/* RINGS: "0 1 2|2 1 0", one line */
	FABREX_PLAN_SCHEDULE,	/* plan: text for fabrex_schedule_parse(3) */
	FABREX_PLAN_EXPLANATION, /* plan: the bound in words; not of RINGS */
	FABREX_PLAN_SVG,	/* both; plan: with link loads and the cut */
};

/* -ENOTSUP: the object cannot be written in this format. */
int fabrex_plan_graph_write(const struct fabrex_plan_graph *graph, int format,
			    FILE *f);
int fabrex_plan_write(const struct fabrex_plan *plan, int format, FILE *f);
/*
 * Checks whether NCCL or RCCL would load this topology XML or graph XML, and
 * read it as intended. -E2BIG: it would not load it; -EINVAL: it would misread
 * it.
 */
int fabrex_plan_nccl_check(const char *text, size_t length, const char *name);

/* ---- predictions: fabrex_plan_simulate(3) ------------------------------ */

/* The GPUs' share of the time of a collective; docs/prediction.md. */
struct fabrex_plan_timing {
	double launch;		/* s, once per collective */
	double send;		/* s, at the sender, for each slice */
	double notice;		/* s, until the receiver continues with it */
	double reduce;		/* B/s at which a GPU reduces; 0: no limit */
	uint64_t slice;		/* bytes: maximum size of a slice of a chunk */
	uint32_t window;	/* slices of one channel in flight */
	uint32_t reserved;	/* 0 */
};
/* The default values. */
void fabrex_plan_timing(struct fabrex_plan_timing *timing, size_t size);

/* One collective. */
struct fabrex_plan_job {
	const struct fabrex_plan *plan;	/* with a schedule */
	uint64_t bytes;		/* size, as for algbw */
	double start;		/* s */
};

struct fabrex_plan_time {
	double seconds;		/* from its start to its end */
	double algbw, busbw;	/* GB/s */
	uint64_t slice;		/* bytes; more than requested if there were too
				 * many slices: the result is then approximate
				 */
};

/*
 * Simulates n jobs that share the links. Their plans must have been made from
 * graph or copies of it, with any ranks. timing NULL: the default. Arrays have
 * n elements. -E2BIG: too many messages to simulate.
 */
int fabrex_plan_simulate(const struct fabrex_plan_graph *graph,
			 const struct fabrex_plan_job *jobs, size_t job_size,
			 uint32_t n, const struct fabrex_plan_timing *timing,
			 size_t timing_size, struct fabrex_plan_time *times,
			 size_t time_size);

enum fabrex_plan_parallel {
	FABREX_PLAN_DATA_PARALLEL = 1,	/* gradients: all-reduce */
	FABREX_PLAN_ZERO_1,	/* reduce-scatter, all-gather */
	FABREX_PLAN_ZERO_3,	/* 2 all-gathers, reduce-scatter */
	FABREX_PLAN_TENSOR_DECODE,	/* 2 all-reduces per layer and token */
	FABREX_PLAN_TENSOR_PREFILL,	/* the same for whole prompts */
};

/* "data-parallel", ...; never NULL. Parsing accepts "_" for "-"; 0: unknown. */
const char *fabrex_plan_parallel_str(int parallel);
int fabrex_plan_parallel_parse(const char *word);

/* A step of training or inference of a transformer. */
struct fabrex_plan_work {
	uint32_t parallel;	/* enum fabrex_plan_parallel */
	uint32_t layers, hidden;
	uint32_t kv_hidden;	/* width of keys and of values; 0: hidden */
	uint32_t batch;		/* samples, sequences or prompts on all GPUs */
	uint32_t sequence;	/* tokens in each (decoding: so far) */
	uint32_t recompute;	/* 1: training recomputes activations */
	uint32_t reserved;	/* 0 */
	double parameters;	/* of all layers */
	double bytes_per_value;	/* 2: fp16, bf16 */
	double flops;		/* of one GPU, achieved, FLOP/s */
	double memory;		/* of one GPU, achieved, B/s; decoding */
	double overlap;		/* share of communication that can overlap
				 * computation, 0 to 1
				 */
	/* One per collective it needs, for the same ranks, in any order. */
	const struct fabrex_plan *const *plans;
	/*
	 * Collectives of other jobs and their sizes: each is repeated while a
	 * collective of this work is running. NULL if nothers is 0.
	 */
	const struct fabrex_plan *const *others;
	const uint64_t *other_bytes;
	uint32_t nplans, nothers;
};

struct fabrex_plan_step {
	double seconds;		/* per step, per token, or for all prompts */
	double compute, communicate, exposed;	/* s; exposed: not overlapped */
	double per_second;	/* samples, tokens or prompts */
	double flops;		/* of one GPU over the whole step, FLOP/s */
	uint64_t bytes;		/* total size of its collectives */
	uint32_t collectives;
	uint32_t reserved;
};

/* graph and plans as for fabrex_plan_simulate(). */
int fabrex_plan_predict(const struct fabrex_plan_graph *graph,
			const struct fabrex_plan_work *work, size_t work_size,
			const struct fabrex_plan_timing *timing,
			size_t timing_size, struct fabrex_plan_step *step,
			size_t step_size);

/* ---- wirings: fabrex_plan_design(3) ------------------------------------ */

struct fabrex_plan_designs;

/* The parts to wire; switches, host ports and cables may remain unused. */
struct fabrex_plan_inventory {
	uint32_t switches, switch_ports;	/* up to 6; ports of each */
	uint32_t appliances;	/* up to 16 */
	uint32_t uplinks;	/* of each appliance: 2 or 4 */
	uint32_t gpus;		/* of each appliance */
	uint32_t host_ports;	/* of the one host, up to 4 */
	uint32_t isls;		/* maximum number of cables between switches */
	uint32_t designs;	/* maximum number of results */
	uint64_t link;		/* MB/s of a link, usually 27000 */
	uint64_t mesh;		/* MB/s between GPUs of an appliance; 0: none */
	uint64_t root_complex;	/* MB/s between host ports; 0: none */
};

struct fabrex_plan_design {
	const char *topology;	/* text of a topology file */
	const char *reason;	/* what limits it, compared to the next best */
	double bound, optimal, rings;	/* busbw, GB/s; rings 0: no rings */
};

/*
 * The best wirings for a collective (rank 0 is the root), best first. -EINVAL:
 * too few parts, or a number out of range; -E2BIG: too many wirings to compare.
 */
int fabrex_plan_design(const struct fabrex_plan_inventory *inventory,
		       size_t size, int collective,
		       struct fabrex_plan_designs **designs);
void fabrex_plan_designs_free(struct fabrex_plan_designs *designs);
/* Number of designs. *considered: number of wirings compared; may be NULL. */
uint32_t fabrex_plan_designs_count(const struct fabrex_plan_designs *designs,
				   uint64_t *considered);
/* -ENOENT: there is no such design. */
int fabrex_plan_design_query(const struct fabrex_plan_designs *designs,
			     uint32_t index, struct fabrex_plan_design *design,
			     size_t size);

#ifdef __cplusplus
}
#endif

#endif
