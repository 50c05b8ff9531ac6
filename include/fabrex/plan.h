/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libfabrex-plan: public API of the planner. What a fabric of GPUs can achieve at
 * best, the schedules that achieve it, rings for NCCL and RCCL, predicted times,
 * and the best wiring of given parts. It needs no fabric, no port and no
 * libfabrex. Each group has a man page; fabrex_plan(7) is the overview.
 *
 * Functions return 0, a count or an index on success and a negative errno on
 * failure; fabrex_plan_strerror_last() of the calling thread then names the
 * object, the cause and the remedy. What a function was to fill in is left as it
 * was. An object belongs to one thread at a time; different objects may be used by
 * different threads at once. Nothing is printed. Results are the same on every
 * machine and in every run.
 *
 * Structures grow at their end. The library is told the size that the caller
 * was compiled with, which is also the stride of arrays. What an older caller
 * does not have counts as 0 and is not stored; what an older library does not
 * know is stored as 0, and -E2BIG if the caller has set it.
 *
 * Units: capacities in MB/s (10^6 bytes per second) for one direction, latencies
 * in ns, times in s, other rates in the unit that the field names. Strings that
 * are returned belong to the object that was asked and are valid until that
 * object is changed or freed.
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

/* Of this header; fabrex_plan_version() tells that of the library, "1.2". */
#define FABREX_PLAN_VERSION_MAJOR	1
#define FABREX_PLAN_VERSION_MINOR	2
const char *fabrex_plan_version(void);

/*
 * About the calling thread's last failure; never NULL. Valid until the thread
 * calls libfabrex-plan again.
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
	const char *host;	/* those of this host; NULL: of all hosts */
	/*
	 * As HIP_VISIBLE_DEVICES: names, or indices among the GPUs chosen by
	 * host, with commas between them. NULL: all.
	 */
	const char *devices;
	uint64_t reserved[2];	/* 0 */
};

/*
 * A topology file (fabrex-topology(5)), a topology XML of NCCL or RCCL, or a
 * graph file, told apart by their content. select may be NULL; size is
 * sizeof(struct fabrex_plan_select). parse: messages call the text name.
 */
int fabrex_plan_graph_read(const char *path,
			   const struct fabrex_plan_select *select, size_t size,
			   struct fabrex_plan_graph **graph);
int fabrex_plan_graph_parse(const char *text, size_t length, const char *name,
			    const struct fabrex_plan_select *select,
			    size_t size, struct fabrex_plan_graph **graph);
int fabrex_plan_graph_copy(const struct fabrex_plan_graph *graph,
			   struct fabrex_plan_graph **copy);
/* NULL is allowed. Plans made from it stay valid. */
void fabrex_plan_graph_free(struct fabrex_plan_graph *graph);

/* Choose among the present ranks. */
int fabrex_plan_graph_select(struct fabrex_plan_graph *graph,
			     const struct fabrex_plan_select *select,
			     size_t size);
/* Make these n GPU nodes the ranks, in this order. */
int fabrex_plan_graph_ranks(struct fabrex_plan_graph *graph,
			    const uint32_t *nodes, uint32_t n);
/*
 * Can it be planned for: at least two ranks; each reaches each other without
 * passing through a GPU that is no rank; and what only forwards bytes has as much
 * capacity in as out. -EINVAL if not.
 */
int fabrex_plan_graph_check(const struct fabrex_plan_graph *graph);

struct fabrex_plan_graph_attr {
	const char *name;
	uint32_t nodes, edges;	/* numbered from 0 */
	uint32_t ranks;
	uint32_t boxes;		/* appliances and servers, numbered from 0 */
	uint32_t warnings;	/* assumptions that a reader had to make */
	uint32_t reserved;
};
int fabrex_plan_graph_query(const struct fabrex_plan_graph *graph,
			    struct fabrex_plan_graph_attr *attr, size_t size);

struct fabrex_plan_node {
	const char *name;	/* unique in the graph */
	uint32_t kind;		/* enum fabrex_plan_node_kind */
	uint32_t rank;		/* of a GPU, or FABREX_PLAN_NONE */
	uint32_t box;		/* that it is in, or FABREX_PLAN_NONE */
	uint32_t up;		/* node above it in the PCI tree, or NONE */
	uint32_t line;		/* of the file that it comes from, or 0 */
	uint32_t reserved;
};
/* -ENOENT: there is no such node. */
int fabrex_plan_node_query(const struct fabrex_plan_graph *graph,
			   uint32_t node, struct fabrex_plan_node *out,
			   size_t size);

/* One direction of a link. */
struct fabrex_plan_edge {
	uint64_t capacity;	/* MB/s, what collectives see of it; never 0 */
	uint32_t from, to;	/* nodes */
	uint32_t kind;		/* enum fabrex_plan_link_kind */
	uint32_t latency;	/* ns */
	uint32_t reverse;	/* edge of the other direction, or NONE */
	uint32_t line;		/* of the file that it comes from, or 0 */
};
/* -ENOENT: there is no such edge. */
int fabrex_plan_edge_query(const struct fabrex_plan_graph *graph,
			   uint32_t edge, struct fabrex_plan_edge *out,
			   size_t size);

/* Node of a rank; node of that name. FABREX_PLAN_NONE: there is none. */
uint32_t fabrex_plan_rank_node(const struct fabrex_plan_graph *graph,
			       uint32_t rank);
uint32_t fabrex_plan_node_find(const struct fabrex_plan_graph *graph,
			       const char *name);
/* Value of an attribute such as "pci.busid"; NULL: it has none. */
const char *fabrex_plan_node_get(const struct fabrex_plan_graph *graph,
				 uint32_t node, const char *key);
/* NULL: there is no warning of that index. */
const char *fabrex_plan_graph_warning(const struct fabrex_plan_graph *graph,
				      uint32_t index);

/* ---- graphs without a file: fabrex_plan_graph_create(3) ---------------- */

/* Names have 1 to 63 characters. */
int fabrex_plan_graph_create(const char *name,
			     struct fabrex_plan_graph **graph);
/*
 * Index of the new node. GPUs become ranks in the order in which they are added.
 * box: a small number, the same for all that share an enclosure. up: the node
 * above it in the PCI tree. Both may be FABREX_PLAN_NONE. -EEXIST: the name is
 * taken.
 */
int fabrex_plan_node_add(struct fabrex_plan_graph *graph, int kind,
			 const char *name, uint32_t box, uint32_t up);
/*
 * Both directions, capacity MB/s each. latency: ns, 0 for what is usual for the
 * kind. Index of the edge from a to b; the other direction follows it.
 */
int fabrex_plan_link_add(struct fabrex_plan_graph *graph, uint32_t a,
			 uint32_t b, uint64_t capacity, uint32_t latency,
			 int kind);
/* An attribute; NULL removes it. */
int fabrex_plan_node_set(struct fabrex_plan_graph *graph, uint32_t node,
			 const char *key, const char *value);
int fabrex_plan_graph_warn(struct fabrex_plan_graph *graph, const char *text);

/* ---- a fabric as found: fabrex_plan_fabric_create(3) ------------------- */

/*
 * What a topology file describes, told by calls: for programs that have read it
 * from switches, and for links that run slower than the ports could. Each add
 * returns the number of the new part, counted from 0 for its kind.
 */
struct fabrex_plan_fabric;

struct fabrex_plan_fabric_attr {
	const char *name;
	uint64_t link;		/* MB/s of a Gen4 x16 link; usual: 27000 */
	uint64_t root_complex;	/* MB/s between ports of a host; usual: 27000 */
	uint64_t reserved[2];	/* 0 */
};

/* One end of a cable: port of a switch, and how the link runs. */
struct fabrex_plan_port {
	uint32_t sw;		/* number of the switch */
	uint32_t port;		/* counted from 1 */
	uint32_t speed;		/* MT/s; 0: that of the switch */
	uint32_t width;		/* lanes; 0: that of the switch */
};

#define FABREX_PLAN_FLAT	(1u << 0) /* one PCIe switch per uplink, not two */
#define FABREX_PLAN_NO_ROOT_P2P	(1u << 0) /* ports are not joined in the host */

struct fabrex_plan_gpu {
	const char *name;
	uint32_t appliance;	/* GPUs of one are added one after the other */
	uint32_t uplink;	/* of the appliance, counted from 0 */
	uint32_t host;		/* that it is bound to, or FABREX_PLAN_NONE */
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
 * flags: FABREX_PLAN_FLAT. mesh: "xgmi", "nvlink" or "pcie" links between all GPUs
 * of one host in it, mesh_capacity MB/s each; NULL: none.
 */
int fabrex_plan_fabric_appliance(struct fabrex_plan_fabric *fabric,
				 const char *name, uint32_t flags,
				 const struct fabrex_plan_port *uplinks,
				 uint32_t n, size_t size, const char *mesh,
				 uint64_t mesh_capacity);
int fabrex_plan_fabric_gpu(struct fabrex_plan_fabric *fabric,
			   const struct fabrex_plan_gpu *gpu, size_t size);
/*
 * What its hosts see of it; boxes are the appliances, then the hosts that are
 * planned for. select may be NULL. The fabric can be freed afterwards.
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

/* "all-gather", ...; never NULL. Parsing takes "_" for "-"; 0: unknown. */
const char *fabrex_plan_collective_str(int collective);
int fabrex_plan_collective_parse(const char *word);

/* An exact number, in lowest terms; den is never 0. */
struct fabrex_plan_ratio {
	uint64_t num, den;
};

/* <0, 0, >0 as strcmp(); exact. */
int fabrex_plan_ratio_compare(struct fabrex_plan_ratio a,
			      struct fabrex_plan_ratio b);
double fabrex_plan_ratio_value(struct fabrex_plan_ratio ratio);

/*
 * The least upper bound that cuts and partitions of the graph prove, without a
 * schedule. root: rank, for broadcast and reduce. A plan keeps what it needs of
 * the graph, as it is now. -EINVAL: fabrex_plan_graph_check() fails.
 */
int fabrex_plan_bound(const struct fabrex_plan_graph *graph, int collective,
		      uint32_t root, struct fabrex_plan **plan);
/* The bound, and trees that reach it, or come as close as could be found. */
int fabrex_plan_optimal(const struct fabrex_plan_graph *graph, int collective,
			uint32_t root, struct fabrex_plan **plan);

struct fabrex_plan_ring_attr {
	uint32_t rings;		/* at most; 0: as many as help */
	uint32_t reserved;	/* 0 */
	/*
	 * Search for that long at most, s. 0: an amount of work that depends on
	 * the graph alone, so that results are the same on every machine.
	 */
	double seconds;
	uint64_t seed;
};
/*
 * The best rings through all ranks, and the bound for any rings. attr may be
 * NULL. -EINVAL: no ring exists, or with more than 20 ranks: none was found.
 */
int fabrex_plan_rings(const struct fabrex_plan_graph *graph, int collective,
		      uint32_t root, const struct fabrex_plan_ring_attr *attr,
		      size_t size, struct fabrex_plan **plan);
/* Rings from a graph XML of NCCL (GPUs by dev) or an NCCL_RINGS string. */
int fabrex_plan_rings_parse(const struct fabrex_plan_graph *graph,
			    int collective, uint32_t root, const char *text,
			    size_t length, const char *name,
			    struct fabrex_plan **plan);
/* NULL is allowed. */
void fabrex_plan_free(struct fabrex_plan *plan);

enum fabrex_plan_kind {
	FABREX_PLAN_NO_SCHEDULE = 1,	/* a bound alone */
	FABREX_PLAN_TREES,
	FABREX_PLAN_RINGS,
};

enum fabrex_plan_bound_kind {
	/* Everything that has to cross one cut, over its capacity. */
	FABREX_PLAN_BOUND_CUT = 1,
	/* all-reduce: all that parts have to receive, over their capacity. */
	FABREX_PLAN_BOUND_PARTITION,
};

/*
 * algbw: size over time, where the size of all-gather and reduce-scatter is that
 * of all shards together. busbw: algbw times nccl-tests' factor. MB/s.
 */
struct fabrex_plan_attr {
	uint32_t kind;		/* enum fabrex_plan_kind */
	uint32_t collective;	/* enum fabrex_plan_collective */
	uint32_t root;
	uint32_t ranks;
	struct fabrex_plan_ratio algbw, busbw;	/* of the schedule; else 0/1 */
	struct fabrex_plan_ratio bound_algbw, bound_busbw;
	uint32_t proved;	/* 1: the schedule reaches the bound */
	uint32_t bound_kind;	/* enum fabrex_plan_bound_kind */
	uint32_t parts;		/* of the bound: 1 for a cut */
	uint32_t rings;		/* 0 unless kind is RINGS */
	/* RINGS: 1 if NCCL_RINGS has NCCL's dev numbers, 0: ranks */
	uint32_t nccl_dev;
	uint32_t reserved;
	uint64_t trees;		/* TREES: unit trees per root; else 0 */
	uint64_t chunks, transfers;	/* of the schedule */
};
int fabrex_plan_query(const struct fabrex_plan *plan,
		      struct fabrex_plan_attr *attr, size_t size);

/* One side of the cut that bounds it, or one part of the partition. */
struct fabrex_plan_part {
	const uint32_t *nodes;	/* inside, ascending */
	const uint32_t *edges;	/* that bound it, ascending */
	uint32_t nnodes, nedges;
	uint32_t ranks;		/* inside */
	uint32_t inward;	/* 1: edges lead into it; 0: out of it */
	uint64_t capacity;	/* of these edges together, MB/s */
};
/* -ENOENT: there is no such part. */
int fabrex_plan_part_query(const struct fabrex_plan *plan, uint32_t index,
			   struct fabrex_plan_part *part, size_t size);
/* All ranks in the order of that ring, beginning with rank 0; NULL: none. */
const uint32_t *fabrex_plan_ring(const struct fabrex_plan *plan,
				 uint32_t index);

/* ---- output: fabrex_plan_write(3) -------------------------------------- */

enum fabrex_plan_format {
	FABREX_PLAN_GRAPH = 1,	/* graph: graph file, any graph at all */
	/* graph: topology XML of one host (NCCL_TOPO_FILE); RINGS: graph XML
	 * (NCCL_GRAPH_FILE) for use beside it
	 */
	FABREX_PLAN_NCCL,
	FABREX_PLAN_RCCL,
	FABREX_PLAN_NCCL_RINGS,	/* RINGS: "0 1 2|2 1 0", one line */
	FABREX_PLAN_SCHEDULE,	/* plan: text for fabrex_schedule_parse(3) */
	FABREX_PLAN_EXPLANATION, /* plan: the bound in words; not of RINGS */
	FABREX_PLAN_SVG,	/* both; plan: with loads of links and the cut */
};

/* -ENOTSUP: not a format of that object. */
int fabrex_plan_graph_write(const struct fabrex_plan_graph *graph, int format,
			    FILE *f);
int fabrex_plan_write(const struct fabrex_plan *plan, int format, FILE *f);
/*
 * Would NCCL or RCCL load this topology XML or graph XML and understand it as
 * meant? -E2BIG: it would not load it; -EINVAL: it would misunderstand something.
 */
int fabrex_plan_nccl_check(const char *text, size_t length, const char *name);

/* ---- predictions: fabrex_plan_simulate(3) ------------------------------ */

/* Part of the GPUs in the time of a collective; docs/prediction.md. */
struct fabrex_plan_timing {
	double launch;		/* s, once per collective */
	double send;		/* s, for each slice at its sender */
	double notice;		/* s, until the receiver goes on with a slice */
	double reduce;		/* B/s at which a GPU reduces; 0: no limit */
	uint64_t slice;		/* bytes of a chunk that are sent at once, at most */
	uint32_t window;	/* slices of one channel in flight */
	uint32_t reserved;	/* 0 */
};
/* The library's own figures. */
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
	uint64_t slice;		/* bytes; more than asked for if there were too
				 * many: the effect is taken back, not exactly
				 */
};

/*
 * n jobs at once, sharing the links. Their plans were made of copies of graph,
 * with any ranks. timing NULL: the library's own. Arrays have n elements. -E2BIG:
 * too many messages to simulate.
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

/* "data-parallel", ...; never NULL. Parsing takes "_" for "-"; 0: unknown. */
const char *fabrex_plan_parallel_str(int parallel);
int fabrex_plan_parallel_parse(const char *word);

/* A step of training or inference of a transformer. */
struct fabrex_plan_work {
	uint32_t parallel;	/* enum fabrex_plan_parallel */
	uint32_t layers, hidden;
	uint32_t kv_hidden;	/* width of keys and of values; 0: hidden */
	uint32_t batch;		/* samples, sequences or prompts of all GPUs */
	uint32_t sequence;	/* tokens of a sample, so far, or of a prompt */
	uint32_t recompute;	/* 1: training computes activations twice */
	uint32_t reserved;	/* 0 */
	double parameters;	/* of all layers */
	double bytes_per_value;	/* 2: fp16, bf16 */
	double flops;		/* of one GPU, achieved, FLOP/s */
	double memory;		/* of one GPU, achieved, B/s; decoding */
	double overlap;		/* share of communication that computing can
				 * hide, 0 to 1
				 */
	/* One per collective that it needs, on the same ranks, in any order. */
	const struct fabrex_plan *const *plans;
	/*
	 * Collectives of other jobs and their sizes: each is repeated as long as
	 * one of this work is running. NULL if nothers is 0.
	 */
	const struct fabrex_plan *const *others;
	const uint64_t *other_bytes;
	uint32_t nplans, nothers;
};

struct fabrex_plan_step {
	double seconds;		/* one step, token of each sequence, prompts */
	double compute, communicate, exposed;	/* s; exposed: not hidden */
	double per_second;	/* samples, tokens or prompts */
	double flops;		/* of one GPU over the whole step, FLOP/s */
	uint64_t bytes;		/* sizes of its collectives together */
	uint32_t collectives;
	uint32_t reserved;
};

/* graph and plans as with fabrex_plan_simulate(). */
int fabrex_plan_predict(const struct fabrex_plan_graph *graph,
			const struct fabrex_plan_work *work, size_t work_size,
			const struct fabrex_plan_timing *timing,
			size_t timing_size, struct fabrex_plan_step *step,
			size_t step_size);

/* ---- wirings: fabrex_plan_design(3) ------------------------------------ */

struct fabrex_plan_designs;

/* What there is to wire; switches, host ports and cables may be left over. */
struct fabrex_plan_inventory {
	uint32_t switches, switch_ports;	/* up to 6; ports of each */
	uint32_t appliances;	/* up to 16 */
	uint32_t uplinks;	/* of each appliance: 2 or 4 */
	uint32_t gpus;		/* of each appliance */
	uint32_t host_ports;	/* of the one host, up to 4 */
	uint32_t isls;		/* cables between switches, at most */
	uint32_t designs;	/* that are wanted, at most */
	uint64_t link;		/* MB/s of a link; usual: 27000 */
	uint64_t mesh;		/* MB/s between GPUs of an appliance; 0: none */
	uint64_t root_complex;	/* MB/s between host ports; 0: none */
};

struct fabrex_plan_design {
	const char *topology;	/* text of a topology file */
	const char *reason;	/* what limits it, compared with the next */
	double bound, optimal, rings;	/* busbw, GB/s; rings 0: there are none */
};

/*
 * The best wirings for a collective (rank 0 is the root), best first. -EINVAL:
 * parts are missing or out of range; -E2BIG: too many wirings to compare.
 */
int fabrex_plan_design(const struct fabrex_plan_inventory *inventory,
		       size_t size, int collective,
		       struct fabrex_plan_designs **designs);
void fabrex_plan_designs_free(struct fabrex_plan_designs *designs);
/* Their number, and of how many wirings they are the best (may be NULL). */
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
