/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Predicted times: schedules simulated on a graph, message by message, and steps
 * of training and inference. An alpha-beta model: a slice ("piece") of a chunk
 * takes alpha, for the ranks' part in it and for each hop, and its bytes take
 * their share of the links' rates (max-min fair). docs/prediction.md has the
 * formulas, the sources of the figures, and the limits.
 */
#ifndef LIB_PLAN_SIMULATE_H
#define LIB_PLAN_SIMULATE_H

#include "plan/plan.h"

/* The ranks' part; plan_timing_default() says where its figures are from. */
struct plan_timing {
	double start;		/* s, once for each collective: launch */
	double piece;		/* s, for each piece at its sender, which does
				 * nothing else on that channel meanwhile
				 */
	double notice;		/* s, until the receiver of a piece goes on
				 * with it; the next one is sent meanwhile
				 */
	double reduce;		/* B/s at which a GPU reduces; 0: no limit */
	uint64_t piece_bytes;	/* largest piece of a chunk */
	uint32_t window;	/* pieces of one channel on their way */
};

struct plan_timing plan_timing_default(void);
/* Size at which figures are compared that do not say at which they are. */
#define PLAN_SIZE_DEFAULT	(1ull << 30)

/* One collective of one job. Jobs share the links. */
struct plan_job {
	const struct plan_schedule *schedule;
	uint64_t bytes;		/* size, as for algbw */
	double begin;		/* s */
};

struct plan_played {
	double seconds;		/* from its begin */
	double algbw, busbw;	/* GB/s */
	uint64_t piece_bytes;	/* limit to pieces; more than was asked for where
				 * there would have been too many: what that
				 * does has been taken back, but not exactly
				 */
};

/*
 * Simulate @n jobs at once. @out has @n entries; @busy, if not NULL, g->nedges:
 * the share of the time up to the last job's end that each edge was in use
 * (bytes over capacity). Deterministic.
 *
 * Routes are edges of @g: schedules for subsets of its GPUs, planned on copies
 * of it (plan_graph_copy(), plan_graph_ranks()), can be simulated together.
 *
 * -EINVAL: a timing, schedule or route that makes no sense; -E2BIG: more than
 * can be simulated in reasonable time; -ENOMEM.
 */
int plan_simulate(const struct plan_graph *g, const struct plan_job *jobs,
		  uint32_t n, const struct plan_timing *timing,
		  struct plan_played *out, double *busy,
		  struct plan_error *e);

/*
 * The first of @n jobs, beside the others, which go on for as long as it does:
 * each of them begins again when it has ended. @out is of the first job. So
 * what comes out does not depend on how long one collective of another job
 * is, but for its size. A job that takes no time does not begin again. Else as
 * plan_simulate().
 */
int plan_simulate_beside(const struct plan_graph *g,
			 const struct plan_job *jobs, uint32_t n,
			 const struct plan_timing *timing,
			 struct plan_played *out, struct plan_error *e);

/* ---- predict.c: whole steps ------------------------------------------- */

/* A transformer. What counts is what is achieved, not what data sheets say. */
struct plan_model {
	double parameters;	/* of all layers */
	uint32_t layers, hidden;
	uint32_t kv_hidden;	/* width of keys, and of values: less than hidden
				 * with grouped queries; 0: the same
				 */
	double bytes_per_value;	/* 2: fp16, bf16 */
	double flops;		/* of one GPU, achieved, FLOP/s */
	double memory;		/* of one GPU, achieved, B/s: decoding */
	bool recompute;		/* activations are computed twice: training */
};

enum plan_parallel {
	PLAN_DATA_PARALLEL = 1,	/* gradients all-reduced */
	PLAN_ZERO_1,		/* reduce-scatter gradients, all-gather parameters */
	PLAN_ZERO_3,		/* 2 all-gathers of parameters, reduce-scatter */
	PLAN_TENSOR_PARALLEL,	/* decoding: 2 all-reduces a layer and token */
	PLAN_TENSOR_PREFILL,	/* reading prompts: the same of all their tokens */
	PLAN_PARALLELS
};

/* "data-parallel", "zero-1", ...; parse takes "_" for "-", too. 0: unknown. */
const char *plan_parallel_name(enum plan_parallel p);
enum plan_parallel plan_parallel_parse(const char *word);

struct plan_step {
	double seconds;		/* of a step: training; one token of each
				 * sequence; all prompts (time to first token)
				 */
	double compute, communicate, exposed;	/* s: exposed is not hidden */
	double samples_per_second;	/* samples, tokens, prompts */
	double flops;		/* of one GPU, over the whole step: FLOP/s */
	uint64_t bytes;		/* that each collective has, added up */
	uint32_t collectives;	/* how many */
};

struct plan_work {
	enum plan_parallel parallel;
	struct plan_model model;
	uint32_t batch;		/* samples, sequences, prompts of all GPUs */
	uint32_t sequence;	/* tokens of a sample; so far; of a prompt */
	double overlap;		/* 0 to 1: share of communication that can be
				 * hidden behind computing
				 */
};

/*
 * @schedules: those that @work needs, at [enum plan_collective]; others may be
 * NULL. Data-parallel and tensor-parallel: all-reduce; ZeRO: reduce-scatter and
 * all-gather. As many GPUs work as they have ranks.
 *
 * @others, @nothers of them: collectives of other jobs, which are under way
 * all the time that one of this work is, one after the other: as in
 * plan_simulate_beside().
 *
 * -EINVAL: a figure that makes no sense, or a schedule that is missing; else as
 * plan_simulate().
 */
int plan_predict(const struct plan_graph *g, const struct plan_work *work,
		 const struct plan_schedule *const *schedules,
		 const struct plan_job *others, uint32_t nothers,
		 const struct plan_timing *timing, struct plan_step *out,
		 struct plan_error *e);

#endif
