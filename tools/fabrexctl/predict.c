// SPDX-License-Identifier: GPL-2.0-only
/*
 * "topology predict": how long a step of training takes on a fabric, or a token
 * of inference, with the optimal schedules and with rings.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph.h"
#include "jobs.h"
#include "json.h"
#include "planned.h"
#include "predict.h"
#include "source.h"
#include "table.h"

/* Collectives that one work needs, at most. */
#define NEEDS 2

/* Plans of one kind, as the work needs them, and what they came to. */
struct kind {
	const char *name;
	const struct fabrex_plan *plans[NEEDS];
	uint32_t n;
	bool complete;
	struct fabrex_plan_step step;
	struct fabrex_plan_step beside;	/* with the others, if there are any */
};

struct prediction {
	const char *name;
	const struct fabrex_plan_graph *graph;
	const struct fabrex_plan_work *work;
	struct planned planned[NEEDS];
	struct kind optimal, rings;
	char no_rings[512];
};

static const struct {
	const char *word;
	uint32_t parallel;
	int needs[NEEDS];	/* or fewer, and 0 */
} parallels[] = {
	{ "data", FABREX_PLAN_DATA_PARALLEL, { FABREX_PLAN_ALL_REDUCE } },
	{ "zero1", FABREX_PLAN_ZERO_1, { FABREX_PLAN_REDUCE_SCATTER, FABREX_PLAN_ALL_GATHER } },
	{ "zero3", FABREX_PLAN_ZERO_3, { FABREX_PLAN_REDUCE_SCATTER, FABREX_PLAN_ALL_GATHER } },
	{ "tensor", FABREX_PLAN_TENSOR_DECODE, { FABREX_PLAN_ALL_REDUCE } },
	{ "prefill", FABREX_PLAN_TENSOR_PREFILL, { FABREX_PLAN_ALL_REDUCE } },
};

/* What a step is called, and what comes of it. */
struct unit {
	const char *step, *each, *many;
	uint32_t alone;		/* batch if none is given; 0: has to be */
};

static const struct unit *unit_of(uint32_t p)
{
	static const struct unit training = { "STEP", "SAMPLES/S", "samples",
					      0 };
	static const struct unit decoding = { "TOKEN", "TOKENS/S", "tokens",
					      1 };
	static const struct unit reading = { "PROMPTS", "PROMPTS/S", "prompts",
					     1 };

	return p == FABREX_PLAN_TENSOR_DECODE ? &decoding :
	       p == FABREX_PLAN_TENSOR_PREFILL ? &reading : &training;
}

/* ---- the work ------------------------------------------------------------ */

static int parse_parallel(struct ctl *c, uint32_t *out)
{
	const char *word = c->arg[OPT_PARALLEL];
	size_t i;

	*out = word ? (uint32_t)fabrex_plan_parallel_parse(word)
		    : FABREX_PLAN_DATA_PARALLEL;
	if (*out)
		return 0;
	for (i = 0; i < ARRAY_SIZE(parallels); i++)
		if (!strcmp(word, parallels[i].word)) {
			*out = parallels[i].parallel;
			return 0;
		}
	return err_usage(&c->err, word, "--parallel: \"%s\" is none of data, "
			 "zero1, zero3, tensor, prefill", word);
}

/* "6.7B", "350M", "1.8T" */
static int parse_parameters(struct ctl *c, double *out)
{
	static const struct {
		char letter;
		double times;
	} units[] = { { 'K', 1e3 }, { 'M', 1e6 }, { 'B', 1e9 },
		      { 'T', 1e12 } };
	const char *word = c->arg[OPT_MODEL];
	double times = 1;
	char *end;
	size_t i;

	if (!word)
		return err_usage(&c->err, "model", "topology predict: --model "
				 "is missing; its number of parameters, as in "
				 "6.7B");
	*out = *word >= '0' && *word <= '9' ? strtod(word, &end) : NAN;
	for (i = 0; !isnan(*out) && i < ARRAY_SIZE(units); i++)
		if (*end == units[i].letter) {
			times = units[i].times;
			end++;
			break;
		}
	*out *= times;
	if (*out >= 1 && *out <= 1e15 && !*end)
		return 0;
	return err_usage(&c->err, word, "--model: \"%s\" is no number of "
			 "parameters, as in 350M or 6.7B", word);
}

static int whole(struct ctl *c, enum opt o, uint32_t otherwise, uint32_t max,
		 uint32_t *out)
{
	const char *word = c->arg[o];
	uint64_t v = otherwise;

	if (!word && !otherwise)
		return err_usage(&c->err, option_info[o].name, "topology "
				 "predict: --%s is missing",
				 option_info[o].name);
	if (word && !parse_u64(word, 1, max, &v))
		return err_usage(&c->err, word, "--%s: \"%s\" is no number "
				 "from 1 to %u", option_info[o].name, word,
				 max);
	*out = (uint32_t)v;
	return 0;
}

static int parse_work(struct ctl *c, struct fabrex_plan_work *w)
{
	bool decoding;
	int r;

	r = parse_parallel(c, &w->parallel);
	decoding = w->parallel == FABREX_PLAN_TENSOR_DECODE;
	w->recompute = IS_SET(c, RECOMPUTE);
	if (!r)
		r = parse_parameters(c, &w->parameters);
	if (!r)
		r = whole(c, OPT_LAYERS, 0, 100000, &w->layers);
	if (!r)
		r = whole(c, OPT_HIDDEN, 0, 1u << 24, &w->hidden);
	if (!r)
		r = whole(c, OPT_KV_HIDDEN, w->hidden, w->hidden,
			  &w->kv_hidden);
	if (!r)
		r = whole(c, OPT_BATCH, unit_of(w->parallel)->alone, 1u << 24,
			  &w->batch);
	if (!r)
		r = whole(c, OPT_SEQUENCE, 2048, 1u << 24, &w->sequence);
	if (!r)
		r = source_real(c, OPT_VALUE_BYTES, 2, 0.125, 8,
				&w->bytes_per_value);
	if (!r)
		r = source_real(c, OPT_OVERLAP, 0, 0, 1, &w->overlap);
	if (!r)
		r = source_real(c, OPT_TFLOPS, 0, 1e-6, 1e9, &w->flops);
	if (!r)
		r = source_real(c, OPT_MEMORY, 0, 1e-3, 1e9, &w->memory);
	w->flops *= 1e12;
	w->memory *= 1e9;
	if (!r && !w->flops)
		r = err_usage(&c->err, "tflops", "topology predict: --tflops "
			      "is missing; what a GPU achieves");
	if (!r && decoding && !w->memory)
		r = err_usage(&c->err, "memory", "topology predict: --memory "
			      "is missing; GB/s that a GPU reads while it "
			      "decodes");
	return r;
}

/* ---- schedules ----------------------------------------------------------- */

static int add_plan(struct ctl *c, struct prediction *p, int k, int collective)
{
	struct planned *one = &p->planned[k];
	int r = planned_make(c, p->name, p->graph, collective, 0, one);

	if (r)
		return r;
	p->optimal.plans[p->optimal.n++] = one->optimal;
	if (one->rings) {
		p->rings.plans[p->rings.n++] = one->rings;
	} else {
		p->rings.complete = false;
		memcpy(p->no_rings, one->no_rings, sizeof(p->no_rings));
	}
	return 0;
}

/* A step with plans of this kind, beside @n others. */
static int predict_step(const struct fabrex_plan_graph *g,
			const struct prediction *p, const struct kind *kind,
			const struct fabrex_plan *const *others,
			const uint64_t *bytes, uint32_t n,
			struct fabrex_plan_step *out)
{
	struct fabrex_plan_work w = *p->work;

	w.plans = kind->plans;
	w.nplans = kind->n;
	w.others = others;
	w.other_bytes = bytes;
	w.nothers = n;
	return fabrex_plan_predict(g, &w, sizeof(w), NULL, 0, out,
				   sizeof(*out));
}

static int predict(struct ctl *c, struct prediction *p, struct kind *kind)
{
	int r;

	if (!kind->complete)
		return 0;
	r = predict_step(p->graph, p, kind, NULL, NULL, 0, &kind->step);
	return r ? source_error(c, p->name, r) : 0;
}

static const int *needs_of(uint32_t parallel)
{
	size_t i;

	for (i = 0; i + 1 < ARRAY_SIZE(parallels); i++)
		if (parallels[i].parallel == parallel)
			break;
	return parallels[i].needs;
}

static int make(struct ctl *c, struct prediction *p)
{
	const int *needs = needs_of(p->work->parallel);
	int k, r = 0;

	p->optimal = (struct kind){ .name = "optimal", .complete = true };
	p->rings = (struct kind){ .name = "rings", .complete = true };
	for (k = 0; k < NEEDS && needs[k] && !r; k++)
		r = add_plan(c, p, k, needs[k]);
	if (!r)
		r = predict(c, p, &p->optimal);
	return r ? r : predict(c, p, &p->rings);
}

static void free_plans(struct prediction *p)
{
	int i;

	for (i = 0; i < NEEDS; i++)
		planned_free(&p->planned[i]);
}

/* ---- several jobs -------------------------------------------------------- */

static struct kind *kind_of(struct prediction *p, bool rings)
{
	return rings ? &p->rings : &p->optimal;
}

/*
 * One job's step while the others communicate all the time, one collective
 * after the other, each of the size that theirs have.
 */
static int predict_beside(struct ctl *c, const struct fabrex_plan_graph *g,
			  struct prediction *jobs, uint32_t n, uint32_t which,
			  bool rings)
{
	const struct fabrex_plan **others = xcalloc(n, sizeof(*others));
	uint64_t *bytes = xcalloc(n, sizeof(*bytes));
	struct kind *kind = kind_of(&jobs[which], rings);
	uint32_t i, k = 0;
	int r;

	for (i = 0; i < n; i++) {
		const struct kind *other = kind_of(&jobs[i], rings);

		if (i == which)
			continue;
		others[k] = other->plans[0];
		bytes[k++] = other->step.bytes / other->step.collectives;
	}
	r = predict_step(g, &jobs[which], kind, others, bytes, k,
			 &kind->beside);
	free(others);
	free(bytes);
	return r ? source_error(c, jobs[which].name, r) : 0;
}

static int contend(struct ctl *c, const struct fabrex_plan_graph *g,
		   struct prediction *jobs, uint32_t n, bool rings)
{
	uint32_t i;
	int r = 0;

	for (i = 0; i < n; i++)
		if (!kind_of(&jobs[i], rings)->complete)
			return 0;
	for (i = 0; i < n && !r; i++)
		r = predict_beside(c, g, jobs, n, i, rings);
	return r;
}

static json_object *job_record(struct prediction *p, bool rings, uint32_t job)
{
	const struct kind *kind = kind_of(p, rings);
	json_object *o = json_object_new_object();

	rec_int(o, "job", job);
	rec_int(o, "gpus", graph_attr(p->graph).ranks);
	rec_str(o, "schedule", kind->name);
	rec_double(o, "alone_seconds", kind->step.seconds, 6);
	rec_double(o, "seconds", kind->beside.seconds, 6);
	rec_double(o, "slowdown", kind->beside.seconds / kind->step.seconds,
		   3);
	rec_double(o, "alone_communicate_seconds", kind->step.communicate, 6);
	rec_double(o, "communicate_seconds", kind->beside.communicate, 6);
	rec_double(o, "communicate_slowdown", kind->beside.communicate /
		   kind->step.communicate, 3);
	rec_double(o, "per_second", kind->beside.per_second, 3);
	return o;
}

/* Records of all jobs, with optimal schedules and with rings. */
static int predict_jobs(struct ctl *c, const char *name,
			const struct fabrex_plan_graph *g,
			const struct fabrex_plan_work *work, json_object *rows)
{
	struct prediction *p = NULL;
	struct jobs jobs;
	uint32_t i;
	int rings, r = jobs_parse(c, name, g, c->arg[OPT_JOBS], &jobs);

	p = xcalloc(jobs.n, sizeof(*p));
	for (i = 0; i < jobs.n && !r; i++) {
		p[i].name = name;
		p[i].graph = jobs.v[i].graph;
		p[i].work = work;
		r = make(c, &p[i]);
	}
	for (rings = 0; rings < 2 && !r; rings++) {
		r = contend(c, g, p, jobs.n, rings);
		for (i = 0; i < jobs.n && !r; i++)
			if (kind_of(&p[i], rings)->beside.seconds > 0)
				json_object_array_add(rows, job_record(&p[i],
						      rings, i));
	}
	for (i = 0; i < jobs.n; i++)
		free_plans(&p[i]);
	free(p);
	jobs_free(&jobs);
	return r;
}

/* ---- the result ---------------------------------------------------------- */

static json_object *record(const struct prediction *p, const struct kind *kind)
{
	json_object *o = json_object_new_object();

	rec_str(o, "schedule", kind->name);
	rec_double(o, "seconds", kind->step.seconds, 6);
	rec_double(o, "compute_seconds", kind->step.compute, 6);
	rec_double(o, "communicate_seconds", kind->step.communicate, 6);
	rec_double(o, "exposed_seconds", kind->step.exposed, 6);
	rec_double(o, "per_second", kind->step.per_second, 3);
	rec_str(o, "unit", unit_of(p->work->parallel)->many);
	rec_double(o, "tflops", kind->step.flops / 1e12, 3);
	rec_int(o, "bytes", (int64_t)kind->step.bytes);
	rec_int(o, "collectives", kind->step.collectives);
	return o;
}

static void print(struct ctl *c, const struct prediction *p, json_object *rows)
{
	const struct unit *unit = unit_of(p->work->parallel);
	const struct column columns[] = {
		{ unit->step, "schedule", F_TEXT, false },
		{ "SECONDS", "seconds", F_NUMBER, false },
		{ "COMPUTE", "compute_seconds", F_NUMBER, false },
		{ "COMMUNICATE", "communicate_seconds", F_NUMBER, false },
		{ "EXPOSED", "exposed_seconds", F_NUMBER, false },
		{ unit->each, "per_second", F_NUMBER, false },
		{ "TFLOPS", "tflops", F_NUMBER, false },
		{ "BYTES", "bytes", F_SIZE, false },
		{ NULL, NULL, F_TEXT, false }
	};

	fprintf(c->out, "%s of %s parameters on %u GPUs, %s\n\n",
		fabrex_plan_parallel_str(p->work->parallel), c->arg[OPT_MODEL],
		graph_attr(p->graph).ranks, graph_attr(p->graph).name);
	table_print(c->out, rows, columns, true, c->color);
	if (!p->rings.complete)
		fprintf(c->out, "! no rings: %s\n", p->no_rings);
}

static void print_jobs(struct ctl *c, const struct fabrex_plan_work *work,
		       json_object *rows)
{
	const struct column columns[] = {
		{ "JOB", "job", F_NUMBER, false },
		{ "GPUS", "gpus", F_NUMBER, false },
		{ "", "schedule", F_TEXT, false },
		{ "ALONE", "alone_seconds", F_NUMBER, false },
		{ "TOGETHER", "seconds", F_NUMBER, false },
		{ "SLOWDOWN", "slowdown", F_NUMBER, false },
		{ unit_of(work->parallel)->each, "per_second", F_NUMBER,
		  false },
		{ NULL, NULL, F_TEXT, false }
	};

	fputs("\njobs at once, seconds:\n", c->out);
	table_print(c->out, rows, columns, true, c->color);
}

static void report(struct ctl *c, const struct prediction *p)
{
	json_object *rows = json_object_new_array();

	json_object_array_add(rows, record(p, &p->optimal));
	if (p->rings.complete)
		json_object_array_add(rows, record(p, &p->rings));
	c->doc = json_object_new_object();
	rec_str(c->doc, "source", p->name);
	rec_str(c->doc, "fabric", graph_attr(p->graph).name);
	rec_int(c->doc, "gpus", graph_attr(p->graph).ranks);
	rec_str(c->doc, "parallel", fabrex_plan_parallel_str(p->work->parallel));
	rec_put(c->doc, "steps", rows);
	rec_str(c->doc, "no_rings", p->no_rings);
	rec_put(c->doc, "jobs", NULL);
	print(c, p, rows);
}

static int report_jobs(struct ctl *c, const struct prediction *p)
{
	json_object *rows = json_object_new_array();
	int r = predict_jobs(c, p->name, p->graph, p->work, rows);

	json_object_object_add(c->doc, "jobs", rows);
	if (!r)
		print_jobs(c, p->work, rows);
	return r;
}

int topology_predict(struct ctl *c, int argc, char **argv)
{
	struct prediction *p = xcalloc(1, sizeof(*p));
	struct fabrex_plan_graph *g = NULL;
	struct fabrex_plan_work work = { 0 };
	int r = source_name(c, argc, argv, &p->name);

	p->work = &work;
	if (!r)
		r = parse_work(c, &work);
	if (!r)
		r = source_plannable(c, p->name, &g);
	p->graph = g;
	if (!r)
		r = make(c, p);
	if (!r)
		report(c, p);
	if (!r && IS_SET(c, JOBS))
		r = report_jobs(c, p);
	free_plans(p);
	fabrex_plan_graph_free(g);
	free(p);
	return r;
}
