// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Whole steps against formulas worked out by hand, and against what is claimed
 * for GPT-NeoX 6.7B on 16 MI300X.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "plan/optimum.h"
#include "plan/read.h"
#include "plan/simulate.h"
#include "tests/tap.h"

static bool near(double a, double b, double within)
{
	return fabs(a - b) <= within * fabs(b);
}

/* EleutherAI's 6.7B configuration; half of its figures do not matter here. */
static const struct plan_model neox = {
	.parameters = 6.7e9, .layers = 32, .hidden = 4096,
	.bytes_per_value = 2, .flops = 400e12, .memory = 4e12,
	.recompute = true,
};

static const struct plan_model llama8b = {
	.parameters = 8.03e9, .layers = 32, .hidden = 4096, .kv_hidden = 1024,
	.bytes_per_value = 2, .flops = 400e12, .memory = 4e12,
};

static struct plan_graph *graph;
static struct plan_rings rings[PLAN_COLLECTIVES];
static const struct plan_schedule *schedules[PLAN_COLLECTIVES];

static bool plan(void)
{
	struct plan_error e = { 0 };
	uint32_t c;

	graph = plan_graph_read("topologies/2s-2rp-split-flat.topo", NULL, &e);
	for (c = 1; graph && c < PLAN_COLLECTIVES; c++) {
		if (plan_rings(graph, c, 0, NULL, &rings[c], &e))
			break;
		schedules[c] = rings[c].schedule;
	}
	if (!graph || c < PLAN_COLLECTIVES)
		printf("# %s\n", e.text);
	return graph && c == PLAN_COLLECTIVES;
}

static struct plan_step predict(enum plan_parallel p,
				const struct plan_model *m, uint32_t batch,
				uint32_t sequence, double overlap)
{
	struct plan_work w = { p, *m, batch, sequence, overlap };
	struct plan_timing t = plan_timing_default();
	struct plan_step step = { .seconds = NAN };
	struct plan_error e = { 0 };

	if (plan_predict(graph, &w, schedules, NULL, 0, &t, &step, &e))
		printf("# %s\n", e.text);
	return step;
}

static double alone(enum plan_collective c, uint64_t bytes)
{
	struct plan_timing t = plan_timing_default();
	struct plan_job job = { schedules[c], bytes, 0 };
	struct plan_played played;

	return plan_simulate(graph, &job, 1, &t, &played, NULL, NULL) ? NAN :
	       played.seconds;
}

static void training(void)
{
	struct plan_step dp = predict(PLAN_DATA_PARALLEL, &neox, 16, 2048, 0);
	struct plan_step z1 = predict(PLAN_ZERO_1, &neox, 16, 2048, 0);
	struct plan_step z3 = predict(PLAN_ZERO_3, &neox, 16, 2048, 0);
	struct plan_step hidden = predict(PLAN_ZERO_3, &neox, 16, 2048, 1);
	double psi = 2 * neox.parameters;

	ok(near(dp.compute, 4.0 / 3 * (6 * 6.7e9 + 12.0 * 32 * 4096 * 2048) *
		2048 / 400e12, 1e-9),
	   "4/3 of (6 N + 12 L h s) FLOP a token, with recomputation");
	ok(near(dp.communicate, 32 * alone(PLAN_ALL_REDUCE,
					   (uint64_t)(psi / 32)), 1e-3) &&
	   dp.collectives == 32, "data-parallel: an all-reduce a layer");
	ok(near((double)dp.bytes, psi, 1e-6) &&
	   near((double)z1.bytes, 2 * psi, 1e-6) &&
	   near((double)z3.bytes, 3 * psi, 1e-6),
	   "what is reduced, scattered, gathered: 1, 2, 3 times the model");
	ok(near(z1.communicate, dp.communicate, 0.02),
	   "ZeRO-1 takes as long as data-parallel");
	ok(near(z3.communicate, 1.5 * z1.communicate, 0.02),
	   "ZeRO-3 half as long again");
	ok(dp.communicate > 15.0 / 8 * psi / 108e9 &&
	   dp.communicate < 1.1 * 15.0 / 8 * psi / 108e9,
	   "near 2 (n - 1) / n times the model over 108 GB/s");
	ok(z3.exposed == z3.communicate &&
	   near(z3.seconds, z3.compute + z3.communicate, 1e-9) &&
	   near(z3.samples_per_second, 16 / z3.seconds, 1e-9),
	   "nothing hidden: one after the other");
	ok(near(hidden.seconds, fmax(z3.compute, z3.communicate), 1e-9),
	   "all hidden: the longer of both");
}

/*
 * Claimed: 5.44 samples/s and ~40 TFLOPS a GPU; 3.94 and ~29 with RoCE. With a
 * sequence of 2,048 and recomputation, which is how GPT-NeoX counts, our FLOP
 * of a sample gives the same TFLOPS. The rate at which these GPUs compute is
 * not given; a step of 2.9 s is mostly neither computing at the usual rate nor
 * communicating, so that our prediction is above it.
 */
static void claims(void)
{
	struct plan_step dp = predict(PLAN_DATA_PARALLEL, &neox, 16, 2048, 0);
	struct plan_step z3 = predict(PLAN_ZERO_3, &neox, 16, 2048, 0);
	double flop = dp.flops / dp.samples_per_second;	/* of a GPU, a sample */

	ok(near(flop * 5.44, 40e12, 0.05), "5.44 samples/s are %.1f TFLOPS",
	   flop * 5.44 / 1e12);
	ok(near(flop * 3.94, 29e12, 0.05), "3.94 samples/s are %.1f TFLOPS",
	   flop * 3.94 / 1e12);
	printf("# GPT-NeoX 6.7B, 16 GPUs that compute 400 TFLOPS: data-parallel %.2f samples/s, ZeRO-3 %.2f; communication %.2f s and %.2f s of a step\n",
	       dp.samples_per_second, z3.samples_per_second, dp.communicate,
	       z3.communicate);
	ok(dp.samples_per_second > 5.44 && z3.samples_per_second > 5.44,
	   "what is claimed is possible");
	ok(z3.communicate < 16 / 5.44,
	   "and communication fits into its step: %.0f %% of it",
	   100 * z3.communicate / (16 / 5.44));
}

static void inference(void)
{
	struct plan_step one = predict(PLAN_TENSOR_PARALLEL, &llama8b, 1, 1024,
				       0);
	struct plan_step many = predict(PLAN_TENSOR_PARALLEL, &llama8b, 4096,
					1024, 0);
	struct plan_step prompt = predict(PLAN_TENSOR_PREFILL, &llama8b, 1,
					  4096, 0);
	double kv = 2.0 * 32 * 1024 * 1024;

	ok(near(one.compute, 2 * (8.03e9 + kv) / 4e12 / 16, 1e-9),
	   "decoding reads the model, keys and values for each token");
	ok(near(many.compute, fmax(4096 * (2 * 8.03e9 + 4.0 * 32 * 4096 * 1024)
				   / 400e12 / 16,
				   2 * (8.03e9 + 4096 * kv) / 4e12 / 16), 1e-9),
	   "or computes, whichever takes longer");
	ok(one.collectives == 64 && one.bytes == 64 * 8192,
	   "two all-reduces of the activations in each layer");
	ok(near(one.communicate, 64 * alone(PLAN_ALL_REDUCE, 8192), 1e-9) &&
	   one.communicate > 64 * 30 * 3e-6,
	   "which are all latency: %.0f us each on rings",
	   one.communicate / 64 * 1e6);
	ok(many.samples_per_second > 20 * one.samples_per_second,
	   "a batch costs little more");
	ok(near(prompt.compute, 4096 * (2 * 8.03e9 + 4.0 * 32 * 4096 * 4096) /
		400e12 / 16, 1e-9) && prompt.bytes == 64ull * 4096 * 8192,
	   "a prompt is computed at once");
}

/* Two halves of the GPUs, each with a ring of its own. */
static void contention(void)
{
	struct plan_timing t = plan_timing_default();
	struct plan_work w = { PLAN_DATA_PARALLEL, neox, 8, 2048, 0 };
	struct plan_graph *half[2];
	struct plan_rings r[2];
	const struct plan_schedule *own[PLAN_COLLECTIVES] = { NULL };
	struct plan_step alone_step, beside;
	struct plan_job other;
	uint32_t gpus[2][8], i, k;
	struct plan_error e = { 0 };
	bool good = true;

	for (i = 0; i < 2; i++) {
		half[i] = plan_graph_copy(graph);
		/* Four of each box: both jobs need the links between them. */
		for (k = 0; k < 8; k++)
			gpus[i][k] = graph->gpus[k < 4 ? 2 * k + i :
						 8 + 2 * (k - 4) + i];
		good &= !plan_graph_ranks(half[i], gpus[i], 8, &e) &&
			!plan_rings(half[i], PLAN_ALL_REDUCE, 0, NULL, &r[i],
				    &e);
	}
	ok(good, "rings for every other GPU %s", e.text);
	if (!good)
		return;
	own[PLAN_ALL_REDUCE] = r[0].schedule;
	other = (struct plan_job){ r[1].schedule, 4ull << 30, 0 };
	ok(!plan_predict(graph, &w, own, NULL, 0, &t, &alone_step, &e) &&
	   !plan_predict(graph, &w, own, &other, 1, &t, &beside, &e),
	   "a step beside another job %s", e.text);
	printf("# communication %.3f s alone, %.3f s beside another job\n",
	       alone_step.communicate, beside.communicate);
	ok(beside.communicate > 1.5 * alone_step.communicate &&
	   beside.communicate < 2.1 * alone_step.communicate,
	   "which takes about half of the links");
	ok(beside.compute == alone_step.compute, "and nothing of the GPUs");
	/* A third of the step's own: it is over soon, and begins again. */
	other.bytes = 128ull << 20;
	ok(!plan_predict(graph, &w, own, &other, 1, &t, &beside, &e) &&
	   beside.communicate > 1.7 * alone_step.communicate &&
	   beside.communicate < 2.1 * alone_step.communicate,
	   "whatever the size of one of its collectives: %.3f s",
	   beside.communicate);
	for (i = 0; i < 2; i++) {
		plan_rings_free(&r[i]);
		plan_graph_free(half[i]);
	}
}

static int refused(struct plan_work w, const char *says)
{
	struct plan_timing t = plan_timing_default();
	struct plan_step step = { .seconds = 7 };
	struct plan_error e = { 0 };
	int err = plan_predict(graph, &w, schedules, NULL, 0, &t, &step,
			       &e);

	has(e.text, says);
	return step.seconds == 7 ? err : 0;
}

static void refusals(void)
{
	const struct plan_work good = { PLAN_DATA_PARALLEL, neox, 16, 2048, 0 };
	struct plan_work w = good;
	const struct plan_schedule *kept = schedules[PLAN_ALL_REDUCE];

	w.parallel = PLAN_PARALLELS;
	ok(refused(w, "no way") == -EINVAL, "a way that is none");
	w = good;
	w.overlap = 1.5;
	ok(refused(w, "overlap is 1.5") == -EINVAL, "too much overlap");
	w = good;
	w.model.parameters = NAN;
	ok(refused(w, "parameters is nan") == -EINVAL, "no number");
	w = good;
	w.model.layers = 0;
	ok(refused(w, "0 layers") == -EINVAL, "no layers");
	w = good;
	w.batch = 0;
	ok(refused(w, "batch of 0") == -EINVAL, "no samples");
	w = good;
	w.model.parameters = 1e16;
	w.model.bytes_per_value = 1e16;
	ok(refused(w, "smaller model") == -EINVAL, "an absurd model");
	schedules[PLAN_ALL_REDUCE] = NULL;
	ok(refused(good, "all-reduce is missing") == -EINVAL, "no schedule");
	schedules[PLAN_ALL_REDUCE] = kept;
	ok(plan_parallel_parse("zero_3") == PLAN_ZERO_3 &&
	   plan_parallel_parse("tensor-prefill") == PLAN_TENSOR_PREFILL &&
	   !plan_parallel_parse("zero"), "names are parsed");
}

int main(void)
{
	uint32_t c;

	if (plan()) {
		training();
		claims();
		inference();
		contention();
		refusals();
	} else {
		ok(false, "rings are planned");
	}
	for (c = 1; c < PLAN_COLLECTIVES; c++)
		plan_rings_free(&rings[c]);
	plan_graph_free(graph);
	return tap_done();
}
