/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What NCCL and RCCL expect of a tuner: the tables ncclTunerPlugin_v3 (NCCL 2.22)
 * to _v6 (2.30), and what they take and give. Numbers and layouts are NCCL's; the
 * names are ours, as nothing is included from there. The library loads the newest
 * table that it knows.
 */
#ifndef PLUGINS_NCCL_TUNER_ABI_H
#define PLUGINS_NCCL_TUNER_ABI_H

#include <stddef.h>
#include <stdint.h>

enum nccl_result {
	NCCL_SUCCESS = 0,
	NCCL_UNHANDLED_CUDA_ERROR = 1,
	NCCL_SYSTEM_ERROR = 2,
	NCCL_INTERNAL_ERROR = 3,
	NCCL_INVALID_ARGUMENT = 4,
	NCCL_INVALID_USAGE = 5,
	NCCL_REMOTE_ERROR = 6,
	NCCL_IN_PROGRESS = 7,
};

/* ---- the log ------------------------------------------------------------ */

enum nccl_log_level {
	NCCL_LOG_NONE = 0,
	NCCL_LOG_VERSION = 1,
	NCCL_LOG_WARN = 2,
	NCCL_LOG_INFO = 3,
	NCCL_LOG_ABORT = 4,
	NCCL_LOG_TRACE = 5,
};

/* What a line is about: a line of nothing that NCCL_DEBUG_SUBSYS names is dropped. */
#define NCCL_ABOUT_INIT		0x1ul
#define NCCL_ABOUT_TUNING	0x40ul
#define NCCL_ABOUT_ALL		(~0ul)

/* @place: the file of a warning, the function of other lines. */
typedef void (*nccl_log_t)(enum nccl_log_level level, unsigned long about,
			   const char *place, int line, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* ---- collectives, algorithms, protocols ---------------------------------- */

/* Those with a choice. A library can pass higher numbers, for others. */
enum nccl_collective {
	NCCL_BROADCAST = 0,
	NCCL_REDUCE = 1,
	NCCL_ALL_GATHER = 2,
	NCCL_REDUCE_SCATTER = 3,
	NCCL_ALL_REDUCE = 4,
	NCCL_COLLECTIVES
};

/* Older libraries know fewer. */
enum nccl_algorithm {
	NCCL_TREE = 0,
	NCCL_RING = 1,
	NCCL_COLLNET_DIRECT = 2,
	NCCL_COLLNET_CHAIN = 3,
	NCCL_NVLS = 4,
	NCCL_NVLS_TREE = 5,
	NCCL_PAT = 6,
	NCCL_ALGORITHMS
};

enum nccl_protocol {
	NCCL_LL = 0,
	NCCL_LL128 = 1,
	NCCL_SIMPLE = 2,
	NCCL_PROTOCOLS
};

/* The cost of an algorithm and protocol that cannot be chosen. */
#define NCCL_COST_IGNORE	(-1.0f)

/* ---- the figures of NCCL's model (v5) ------------------------------------ */

/* What a step of an algorithm goes over. */
enum nccl_hardware {
	NCCL_HW_NVLINK = 0,
	NCCL_HW_PCI = 1,
	NCCL_HW_NET = 2,
	NCCL_HARDWARES
};

#define NCCL_GENERATIONS	4	/* of GPUs */
#define NCCL_SCALES		3	/* 1, 2, 4 nodes */

/* Microseconds, GB/s. */
struct tuner_constants {
	double base_latencies[NCCL_ALGORITHMS][NCCL_PROTOCOLS];
	double hw_latencies[NCCL_HARDWARES][NCCL_ALGORITHMS][NCCL_PROTOCOLS];
	double ll_max[NCCL_GENERATIONS][NCCL_SCALES];
	double ring_ll128_max[NCCL_GENERATIONS][NCCL_SCALES];
	double tree_ll128_max[NCCL_GENERATIONS][NCCL_SCALES];
	double tree_max[NCCL_GENERATIONS][NCCL_SCALES];
	double nvls_tree_max[NCCL_GENERATIONS][NCCL_SCALES];
};

struct tuner_nvl_domains {
	int domains;
	int min_ranks, max_ranks;	/* in one of them */
};

_Static_assert(sizeof(struct tuner_constants) == 1152, "constants");
_Static_assert(offsetof(struct tuner_constants, hw_latencies) == 168, "hw");
_Static_assert(offsetof(struct tuner_constants, ll_max) == 672, "ll");
_Static_assert(offsetof(struct tuner_constants, ring_ll128_max) == 768, "ring");
_Static_assert(offsetof(struct tuner_constants, tree_ll128_max) == 864, "tree");
_Static_assert(offsetof(struct tuner_constants, tree_max) == 960, "tree");
_Static_assert(offsetof(struct tuner_constants, nvls_tree_max) == 1056, "nvls");
_Static_assert(sizeof(struct tuner_nvl_domains) == 12, "domains");
_Static_assert(sizeof(enum nccl_result) == sizeof(int), "results");
_Static_assert(sizeof(enum nccl_log_level) == sizeof(int), "levels");

/* ---- the tables ---------------------------------------------------------- */

/*
 * Costs are float[algorithms][protocols] in one piece, in spite of the type. A
 * tuner that returns an error in init() ends the communicator.
 */
struct tuner_v3 {
	const char *name;
	enum nccl_result (*init)(size_t ranks, size_t nodes, nccl_log_t log,
				 void **context);
	enum nccl_result (*choose)(void *context, int collective, size_t bytes,
				   int pipe_ops, float **costs, int algorithms,
				   int protocols, int *channels);
	enum nccl_result (*finalize)(void *context);
};

/* Adds whether the buffers are registered. */
struct tuner_v4 {
	const char *name;
	enum nccl_result (*init)(size_t ranks, size_t nodes, nccl_log_t log,
				 void **context);
	enum nccl_result (*choose)(void *context, int collective, size_t bytes,
				   int pipe_ops, float **costs, int algorithms,
				   int protocols, int registered,
				   int *channels);
	enum nccl_result (*finalize)(void *context);
};

/* Adds the communicator's id, the domains and the constants. */
struct tuner_v5 {
	const char *name;
	enum nccl_result (*init)(void **context, uint64_t id, size_t ranks,
				 size_t nodes, nccl_log_t log,
				 struct tuner_nvl_domains *domains,
				 struct tuner_constants *constants);
	enum nccl_result (*choose)(void *context, int collective, size_t bytes,
				   int pipe_ops, float **costs, int algorithms,
				   int protocols, int registered,
				   int *channels);
	enum nccl_result (*finalize)(void *context);
};

/* Adds the size of a chunk; NULL: the library's own. */
struct tuner_v6 {
	const char *name;
	enum nccl_result (*init)(void **context, uint64_t id, size_t ranks,
				 size_t nodes, nccl_log_t log,
				 struct tuner_nvl_domains *domains,
				 struct tuner_constants *constants);
	enum nccl_result (*choose)(void *context, int collective, size_t bytes,
				   int pipe_ops, float **costs, int algorithms,
				   int protocols, int registered,
				   int *channels);
	enum nccl_result (*finalize)(void *context);
	enum nccl_result (*chunk)(void *context, int collective, size_t bytes,
				  int algorithm, int protocol, int channels,
				  size_t *size);
};

#define TUNER_AT(version, member) \
	offsetof(struct tuner_v##version, member) / sizeof(void *)

_Static_assert(TUNER_AT(3, init) == 1 && TUNER_AT(3, choose) == 2 &&
	       TUNER_AT(3, finalize) == 3, "v3");
_Static_assert(TUNER_AT(4, init) == 1 && TUNER_AT(4, choose) == 2 &&
	       TUNER_AT(4, finalize) == 3, "v4");
_Static_assert(TUNER_AT(5, init) == 1 && TUNER_AT(5, choose) == 2 &&
	       TUNER_AT(5, finalize) == 3, "v5");
_Static_assert(TUNER_AT(6, init) == 1 && TUNER_AT(6, choose) == 2 &&
	       TUNER_AT(6, finalize) == 3 && TUNER_AT(6, chunk) == 4, "v6");
_Static_assert(sizeof(struct tuner_v3) == 4 * sizeof(void *), "v3");
_Static_assert(sizeof(struct tuner_v4) == 4 * sizeof(void *), "v4");
_Static_assert(sizeof(struct tuner_v5) == 4 * sizeof(void *), "v5");
_Static_assert(sizeof(struct tuner_v6) == 5 * sizeof(void *), "v6");

#undef TUNER_AT

/* What the library looks up. */
extern const struct tuner_v3 ncclTunerPlugin_v3;
extern const struct tuner_v4 ncclTunerPlugin_v4;
extern const struct tuner_v5 ncclTunerPlugin_v5;
extern const struct tuner_v6 ncclTunerPlugin_v6;

#endif
