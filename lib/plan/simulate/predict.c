// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Whole steps of training and inference: what GPUs compute, what they exchange,
 * and how much of that cannot be hidden. Called by api/predict.c. The formulas
 * stand where they are used; docs/prediction.md has them all with sources.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/simulate.h"
#include "plan/util.h"

#define PHASES		2u	/* kinds of collectives in one step */
#define OTHERS_MAX	1024u
#define LAYERS_MAX	65536u
#define MODEL_MAX	1e16	/* parameters, FLOP/s: far above any */

static const char *const names[PLAN_PARALLELS] = {
	[PLAN_DATA_PARALLEL] = "data-parallel",
	[PLAN_ZERO_1] = "zero-1",
	[PLAN_ZERO_3] = "zero-3",
	[PLAN_TENSOR_PARALLEL] = "tensor-parallel",
	[PLAN_TENSOR_PREFILL] = "tensor-prefill",
};

/* Collectives of one kind and size. */
struct phase {
	enum plan_collective collective;
	uint32_t count;
	double bytes;		/* of each */
};

const char *plan_parallel_name(enum plan_parallel p)
{
	return p > 0 && p < PLAN_PARALLELS ? names[p] : "?";
}

enum plan_parallel plan_parallel_parse(const char *word)
{
	return plan_word_parse(names, PLAN_PARALLELS, word);
}

static bool is_training(enum plan_parallel p)
{
	return p == PLAN_DATA_PARALLEL || p == PLAN_ZERO_1 || p == PLAN_ZERO_3;
}

/* ---- what is asked for -------------------------------------------------- */

static int check_model(const struct plan_model *m, bool decodes,
		       struct plan_error *e)
{
	const struct { const char *name; double value; } figures[] = {
		{ "parameters", m->parameters },
		{ "bytes_per_value", m->bytes_per_value },
		{ "flops", m->flops },
		{ "memory", decodes ? m->memory : 1 },
	};
	uint32_t i;

	for (i = 0; i < 4; i++)
		if (!(figures[i].value > 0 && figures[i].value <= MODEL_MAX))
			return plan_fail(e, EINVAL, "model: %s is %g; give more than 0 and up to %g",
					 figures[i].name, figures[i].value,
					 MODEL_MAX);
	if (!m->layers || m->layers > LAYERS_MAX || !m->hidden ||
	    m->kv_hidden > m->hidden)
		return plan_fail(e, EINVAL, "model: %u layers of width %u, keys and values of %u; give 1 to %u layers, a width, and no wider keys",
				 m->layers, m->hidden, m->kv_hidden,
				 LAYERS_MAX);
	return 0;
}

static int check_work(const struct plan_work *w, struct plan_error *e)
{
	if (w->parallel <= 0 || w->parallel >= PLAN_PARALLELS)
		return plan_fail(e, EINVAL, "work: there is no way %d to be parallel; give one of enum plan_parallel",
				 (int)w->parallel);
	if (!w->batch || !w->sequence)
		return plan_fail(e, EINVAL, "work: a batch of %u by %u tokens is nothing to do; give one or more of both",
				 w->batch, w->sequence);
	if (!(w->overlap >= 0 && w->overlap <= 1))
		return plan_fail(e, EINVAL, "work: overlap is %g; give a share from 0 to 1",
				 w->overlap);
	return check_model(&w->model, w->parallel == PLAN_TENSOR_PARALLEL, e);
}

/* ---- computing ---------------------------------------------------------- */

/*
 * FLOP of one token. Forward: 2 for each parameter, a multiplication and an
 * addition, and 4 hidden for each token that it attends to and each layer.
 * Backward twice as much (Kaplan et al. 2020, 2.1; Chowdhery et al. 2022,
 * appendix B: 6 N + 12 L H Q T), and once more forward where activations were
 * not kept.
 */
static double token_flop(const struct plan_work *w)
{
	const struct plan_model *m = &w->model;
	double forward = 2 * m->parameters +
			 4.0 * m->layers * m->hidden * w->sequence;

	if (!is_training(w->parallel))
		return forward;
	return forward * (m->recompute ? 4 : 3);
}

static double tokens(const struct plan_work *w)
{
	return w->parallel == PLAN_TENSOR_PARALLEL ? w->batch :
	       (double)w->batch * w->sequence;
}

/*
 * Decoding reads all parameters once for each step, and the keys and values of
 * all sequences so far (Pope et al., "Efficiently Scaling Transformer
 * Inference", 2022, 2.1); it takes as long as the slower of reading, computing.
 */
static double compute_time(const struct plan_work *w, uint32_t nranks)
{
	const struct plan_model *m = &w->model;
	double kv = m->kv_hidden ? m->kv_hidden : m->hidden;
	double flop = token_flop(w) * tokens(w) / m->flops, read;

	if (w->parallel != PLAN_TENSOR_PARALLEL)
		return flop / nranks;
	read = m->bytes_per_value * (m->parameters + 2.0 * m->layers * kv *
				     w->sequence * w->batch) / m->memory;
	return fmax(flop, read) / nranks;
}

/* ---- communicating ------------------------------------------------------ */

/*
 * Training, layer by layer: gradients are all-reduced, 2 psi in and out of each
 * GPU; ZeRO-1 and 2 do that as reduce-scatter and all-gather; ZeRO-3 gathers
 * parameters forward and backward, 3 psi (Rajbhandari et al., "ZeRO", 2020, 7).
 * Tensor-parallel: two all-reduces of the activations in each layer's forward
 * (Shoeybi et al., "Megatron-LM", 2019, 3).
 */
static uint32_t phases_of(const struct plan_work *w, struct phase *phases)
{
	const struct plan_model *m = &w->model;
	double layer = m->parameters * m->bytes_per_value / m->layers;

	switch (w->parallel) {
	case PLAN_DATA_PARALLEL:
		phases[0] = (struct phase){ PLAN_ALL_REDUCE, m->layers, layer };
		return 1;
	case PLAN_ZERO_1:
	case PLAN_ZERO_3:
		phases[0] = (struct phase){ PLAN_REDUCE_SCATTER, m->layers,
					    layer };
		phases[1] = (struct phase){ PLAN_ALL_GATHER, m->layers *
			(w->parallel == PLAN_ZERO_3 ? 2 : 1), layer };
		return 2;
	default:
		phases[0] = (struct phase){ PLAN_ALL_REDUCE, 2 * m->layers,
			tokens(w) * m->hidden * m->bytes_per_value };
		return 1;
	}
}

/* Time of one of them, beside the others; jobs[0] is for it. */
static int play(const struct plan_graph *g, const struct phase *p,
		const struct plan_schedule *s, struct plan_job *jobs,
		struct plan_played *played, uint32_t n,
		const struct plan_timing *timing, struct plan_error *e)
{
	if (!s || s->collective != p->collective)
		return plan_fail(e, EINVAL, "work: its schedule of %s is missing; plan it, too",
				 plan_collective_name(p->collective));
	if (p->bytes * p->count > 0x1p62)
		return plan_fail(e, EINVAL, "work: %s of %g bytes; give a smaller model or batch",
				 plan_collective_name(p->collective), p->bytes);
	jobs[0] = (struct plan_job){ s, (uint64_t)ceil(p->bytes), 0 };
	return plan_simulate_beside(g, jobs, n, timing, played, e);
}

static int communicate(const struct plan_graph *g, const struct plan_work *w,
		       const struct plan_schedule *const *schedules,
		       struct plan_job *jobs, struct plan_played *played,
		       uint32_t n, const struct plan_timing *timing,
		       struct plan_step *out, struct plan_error *e)
{
	struct phase phases[PHASES];
	uint32_t nphases = phases_of(w, phases), i;
	int err;

	for (i = 0; i < nphases; i++) {
		const struct phase *p = &phases[i];

		err = play(g, p, schedules[p->collective], jobs, played, n,
			   timing, e);
		if (!err && jobs[0].schedule->nranks !=
			    schedules[phases[0].collective]->nranks)
			err = plan_fail(e, EINVAL, "work: its schedules are of different numbers of ranks; plan them on one graph");
		if (err)
			return err;
		out->communicate += played->seconds * p->count;
		out->bytes += jobs[0].bytes * p->count;
		out->collectives += p->count;
	}
	return 0;
}

/* ---- both --------------------------------------------------------------- */

static uint32_t ranks_of(const struct plan_schedule *const *schedules,
			 const struct plan_work *w)
{
	struct phase phases[PHASES];
	const struct plan_schedule *s;

	phases_of(w, phases);
	s = schedules[phases[0].collective];
	return s ? s->nranks : 0;
}

int plan_predict(const struct plan_graph *g, const struct plan_work *work,
		 const struct plan_schedule *const *schedules,
		 const struct plan_job *others, uint32_t nothers,
		 const struct plan_timing *timing, struct plan_step *out,
		 struct plan_error *e)
{
	struct plan_step step = { 0 };
	struct plan_job *jobs;
	struct plan_played played;
	uint32_t nranks;
	int err = check_work(work, e);

	if (!err && nothers > OTHERS_MAX)
		err = plan_fail(e, E2BIG, "work: %u other jobs; give up to %u",
				nothers, OTHERS_MAX);
	if (err)
		return err;
	jobs = calloc(nothers + 1, sizeof(*jobs));
	if (!jobs) {
		err = plan_fail(e, ENOMEM, "no memory for %u jobs", nothers);
	} else {
		if (nothers)
			memcpy(jobs + 1, others, nothers * sizeof(*jobs));
		err = communicate(g, work, schedules, jobs, &played,
				  nothers + 1, timing, &step, e);
	}
	free(jobs);
	if (err)
		return err;
	nranks = ranks_of(schedules, work);
	step.compute = compute_time(work, nranks);
	step.exposed = step.communicate -
		       fmin(work->overlap * step.communicate, step.compute);
	step.seconds = step.compute + step.exposed;
	step.samples_per_second = work->batch / step.seconds;
	step.flops = token_flop(work) * tokens(work) / nranks / step.seconds;
	*out = step;
	return 0;
}
