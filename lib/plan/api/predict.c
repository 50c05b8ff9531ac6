// SPDX-License-Identifier: LGPL-2.1-or-later
/* Predicted times of the public API: collectives, and steps of a model. */
#include <errno.h>
#include <stdlib.h>

#include "plan/api/api.h"
#include "plan/simulate.h"

_Static_assert((int)FABREX_PLAN_TENSOR_PREFILL == (int)PLAN_PARALLELS - 1 &&
	       (int)FABREX_PLAN_TENSOR_DECODE == (int)PLAN_TENSOR_PARALLEL,
	       "numbers are the same");

EXPORT const char *fabrex_plan_parallel_str(int parallel)
{
	return parallel > 0 && parallel < PLAN_PARALLELS ?
	       plan_parallel_name(parallel) : "unknown";
}

EXPORT int fabrex_plan_parallel_parse(const char *word)
{
	return plan_parallel_parse(word);
}

EXPORT void fabrex_plan_timing(struct fabrex_plan_timing *timing, size_t size)
{
	const struct plan_timing t = plan_timing_default();
	const struct fabrex_plan_timing v = {
		.launch = t.start, .send = t.piece, .notice = t.notice,
		.reduce = t.reduce, .slice = t.piece_bytes, .window = t.window,
	};

	api_copy_out(timing, size, &v, sizeof(v));
}

static int timing_of(const struct fabrex_plan_timing *timing, size_t size,
		     struct plan_timing *out)
{
	struct fabrex_plan_timing t;
	int err;

	*out = plan_timing_default();
	if (!timing)
		return 0;
	err = api_copy_in("timing", &t, sizeof(t), timing, size);
	if (!err && t.reserved)
		err = api_fail(EINVAL, "timing: a reserved field is not 0; start from fabrex_plan_timing()");
	if (!err)
		*out = (struct plan_timing){
			.start = t.launch, .piece = t.send, .notice = t.notice,
			.reduce = t.reduce, .piece_bytes = t.slice,
			.window = t.window,
		};
	return err;
}

/* @n jobs of the caller's as ours, to be freed. */
static int jobs_of(const struct fabrex_plan_job *jobs, size_t size, uint32_t n,
		   struct plan_job **out)
{
	struct plan_job *v = calloc((size_t)n + 1, sizeof(*v));
	struct fabrex_plan_job j;
	uint32_t i;
	int err = v ? 0 : api_fail(ENOMEM, "out of memory");

	for (i = 0; !err && i < n; i++) {
		err = api_copy_in("job", &j, sizeof(j),
				  (const char *)jobs + i * size, size);
		if (!err && (!j.plan || !api_schedule(j.plan)))
			err = api_fail(EINVAL, "job %u has no schedule; use fabrex_plan_optimal() or fabrex_plan_rings()",
				       i);
		if (!err)
			v[i] = (struct plan_job){ api_schedule(j.plan),
						  j.bytes, j.start };
	}
	if (err)
		free(v);
	else
		*out = v;
	return err;
}

static void times_out(const struct plan_played *from, uint32_t n,
		      struct fabrex_plan_time *to, size_t size)
{
	struct fabrex_plan_time t;
	uint32_t i;

	for (i = 0; i < n; i++) {
		t = (struct fabrex_plan_time){
			.seconds = from[i].seconds, .algbw = from[i].algbw,
			.busbw = from[i].busbw, .slice = from[i].piece_bytes,
		};
		api_copy_out((char *)to + i * size, size, &t, sizeof(t));
	}
}

EXPORT int fabrex_plan_simulate(const struct fabrex_plan_graph *graph,
				const struct fabrex_plan_job *jobs,
				size_t job_size, uint32_t n,
				const struct fabrex_plan_timing *timing,
				size_t timing_size,
				struct fabrex_plan_time *times,
				size_t time_size)
{
	struct plan_error e = { 0 };
	struct plan_played *played;
	struct plan_timing t;
	struct plan_job *v;
	int err = timing_of(timing, timing_size, &t);

	if (!err)
		err = jobs_of(jobs, job_size, n, &v);
	if (err)
		return err;
	played = calloc((size_t)n + 1, sizeof(*played));
	err = played ? plan_simulate(graph->graph, v, n, &t, played, NULL, &e)
		     : -ENOMEM;
	if (err)
		api_error(err, &e);
	else
		times_out(played, n, times, time_size);
	free(played);
	free(v);
	return err;
}

/* ---- steps of a model ----------------------------------------------------- */

static void model_of(const struct fabrex_plan_work *w, struct plan_work *out)
{
	*out = (struct plan_work){
		.parallel = w->parallel, .batch = w->batch,
		.sequence = w->sequence, .overlap = w->overlap,
		.model = {
			.parameters = w->parameters, .layers = w->layers,
			.hidden = w->hidden, .kv_hidden = w->kv_hidden,
			.bytes_per_value = w->bytes_per_value,
			.flops = w->flops, .memory = w->memory,
			.recompute = w->recompute,
		},
	};
}

static int schedules_of(const struct fabrex_plan_work *w,
			const struct plan_schedule **out)
{
	uint32_t i;

	for (i = 0; i < w->nplans; i++) {
		const struct fabrex_plan *p = w->plans[i];

		if (!api_schedule(p))
			return api_fail(EINVAL, "work: plan %u has no schedule; use fabrex_plan_optimal() or fabrex_plan_rings()",
					i);
		if (out[p->collective])
			return api_fail(EINVAL, "work: there are two plans of %s; give one",
					plan_collective_name(p->collective));
		out[p->collective] = api_schedule(p);
	}
	return 0;
}

/* Jobs of others, to be freed. */
static int others_of(const struct fabrex_plan_work *w, struct plan_job **out)
{
	struct plan_job *v = calloc((size_t)w->nothers + 1, sizeof(*v));
	uint32_t i;

	if (!v)
		return api_fail(ENOMEM, "out of memory");
	for (i = 0; i < w->nothers; i++) {
		v[i] = (struct plan_job){ api_schedule(w->others[i]),
					  w->other_bytes[i], 0 };
		if (!v[i].schedule) {
			free(v);
			return api_fail(EINVAL, "work: other plan %u has no schedule; use fabrex_plan_optimal() or fabrex_plan_rings()",
					i);
		}
	}
	*out = v;
	return 0;
}

static void step_out(const struct plan_step *s, struct fabrex_plan_step *step,
		     size_t size)
{
	const struct fabrex_plan_step v = {
		.seconds = s->seconds, .compute = s->compute,
		.communicate = s->communicate, .exposed = s->exposed,
		.per_second = s->samples_per_second, .flops = s->flops,
		.bytes = s->bytes, .collectives = s->collectives,
	};

	api_copy_out(step, size, &v, sizeof(v));
}

EXPORT int fabrex_plan_predict(const struct fabrex_plan_graph *graph,
			       const struct fabrex_plan_work *work,
			       size_t work_size,
			       const struct fabrex_plan_timing *timing,
			       size_t timing_size,
			       struct fabrex_plan_step *step, size_t step_size)
{
	const struct plan_schedule *schedules[PLAN_COLLECTIVES] = { NULL };
	struct fabrex_plan_work v;
	struct plan_error e = { 0 };
	struct plan_job *others = NULL;
	struct plan_timing t;
	struct plan_step s;
	struct plan_work w;
	int err = api_copy_in("work", &v, sizeof(v), work, work_size);

	if (!err && (v.reserved || v.recompute > 1))
		err = api_fail(EINVAL, "work: reserved is %u, recompute %u; the first is 0, the second 0 or 1",
			       v.reserved, v.recompute);
	if (!err)
		err = timing_of(timing, timing_size, &t);
	if (!err)
		err = schedules_of(&v, schedules);
	if (!err)
		err = others_of(&v, &others);
	if (err)
		return err;
	model_of(&v, &w);
	err = plan_predict(graph->graph, &w, schedules, others, v.nothers, &t,
			   &s, &e);
	free(others);
	if (err)
		return api_error(err, &e);
	step_out(&s, step, step_size);
	return 0;
}
