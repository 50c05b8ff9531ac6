// SPDX-License-Identifier: GPL-2.0-only
/*
 * "plan-collective": values on wirings whose optima are known, certificates
 * that add up, files that their readers accept, refusals. Runs in the directory
 * with topologies/.
 */
#include <fabrex/plan.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "ctl.h"
#include "fake.h"
#include "look.h"
#include "run_line.h"

#define FLAT "topologies/2s-2rp-split-flat.topo"

static struct fake *f;

/* ---- values -------------------------------------------------------------- */

/* busbw, GB/s */
static const struct {
	const char *file, *collective;
	double optimum, rings;
} known[] = {
	{ FLAT, "all_gather", 202.5, 108 },
	{ FLAT, "reduce_scatter", 202.5, 108 },
	{ "topologies/1s-2rp-split-cascade.topo", "all_gather", 101.25, 54 },
	{ "topologies/1s-1rp-std-cascade.topo", "all_gather", 101.25, 54 },
	{ "topologies/1s-2rp-std-cascade.topo", "all_gather", 50.625, 27 },
	{ "topologies/2s-2rp-std-flat.topo", "all_gather", 50.625, 27 },
	{ FLAT, "broadcast", 108, 108 },
	{ "topologies/2s-2rp-std-flat.topo", "broadcast", 27, 27 },
	{ FLAT, "reduce", 108, 108 },
	{ "topologies/graphs/hypercube-8.graph", "all_gather", 30, NAN },
	{ "topologies/graphs/ring-8.graph", "all_gather", 50, NAN },
	{ "topologies/graphs/dgx-a100.graph", "all_gather", 300, NAN },
};

/* Near what the links allow, and that of the rings is what is measured. */
static void predictions(json_object *doc, double optimum)
{
	double best = look_number(doc, "optimal.predicted_busbw_gbps");
	double rings = look_number(doc, "ring.predicted_busbw_gbps");

	ok(best < optimum * 1.0001 && best > optimum * 0.7,
	   "the optimum predicted: %g", best);
	ok(rings < look_number(doc, "ring.busbw_gbps") * 1.0001 &&
	   rings > look_number(doc, "ring.busbw_gbps") * 0.7,
	   "rings predicted: %g", rings);
	look_is(doc, "predicted.busbw_gbps", rings);
	look_is(doc, "predicted.size", 1 << 30);
	ok(!strcmp(look_text(doc, "predicted.schedule"), "rings"),
	   "as they are run today");
}

static void values(void)
{
	json_object *doc;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(known); i++) {
		doc = look_json(&f->b, look_line("plan-collective %s "
				"--collective %s", known[i].file,
				known[i].collective));
		look_is(doc, "bound.busbw_gbps", known[i].optimum);
		look_is(doc, "optimal.busbw_gbps", known[i].optimum);
		ok(!strcmp(look_text(doc, "bound.busbw_exact"),
			   look_text(doc, "optimal.busbw_exact")) &&
		   !strcmp(look_text(doc, "optimal.proved"), "true"),
		   "exactly: %s", look_text(doc, "bound.busbw_exact"));
		if (!isnan(known[i].rings)) {
			look_is(doc, "ring.busbw_gbps", known[i].rings);
			look_is(doc, "ring.bound_gbps", known[i].rings);
			ok(!strcmp(look_text(doc, "ring.proved"), "true"),
			   "no rings are faster");
		}
		predictions(doc, known[i].optimum);
		json_object_put(doc);
	}
}

static void all_keys(void)
{
	static const char *const keys[] = {
		"source", "fabric", "collective", "ranks", "bound.busbw_gbps",
		"bound.algbw_gbps", "bound.busbw_exact", "bound.algbw_exact",
		"bound.cut.kind", "bound.cut.direction",
		"bound.cut.parts.0.ranks", "bound.cut.parts.0.inside",
		"bound.cut.parts.0.edges.0.from",
		"bound.cut.parts.0.edges.0.to",
		"bound.cut.parts.0.edges.0.kind",
		"bound.cut.parts.0.edges.0.gbps",
		"bound.cut.parts.0.capacity_gbps", "bound.cut.capacity_gbps",
		"bound.cut.arithmetic", "bound.words", "ring.rings",
		"ring.proved", "ring.busbw_gbps", "ring.busbw_exact",
		"ring.algbw_gbps", "ring.bound_gbps", "ring.bound_exact",
		"ring.cut.edges", "ring.orders.0.15", "ring.nccl_rings",
		"ring.predicted_busbw_gbps", "ring.predicted_seconds",
		"optimal.busbw_gbps", "optimal.algbw_gbps",
		"optimal.busbw_exact", "optimal.algbw_exact", "optimal.k",
		"optimal.proved", "optimal.chunks", "optimal.transfers",
		"optimal.predicted_busbw_gbps", "optimal.predicted_seconds",
		"predicted.size", "predicted.schedule", "predicted.busbw_gbps",
		"predicted.algbw_gbps", "predicted.seconds", "warnings",
		"planning_ms", "rings_ms", "predicting_ms", NULL
	};
	static const char *const collectives[] = {
		"all-reduce", "all-gather", "reduce-scatter", "broadcast",
		"reduce"
	};
	json_object *doc;
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(collectives); i++) {
		doc = look_json(&f->b, look_line("plan-collective " FLAT
				" --collective %s", collectives[i]));
		for (k = 0; keys[k]; k++)
			if (!look_at(doc, keys[k]))
				ok(false, "%s has %s", collectives[i],
				   keys[k]);
		ok(!strcmp(look_text(doc, "collective"), collectives[i]),
		   "%s: all keys are there", collectives[i]);
		json_object_put(doc);
	}
}

/* ---- certificates -------------------------------------------------------- */

static bool inside(json_object *part, const char *name)
{
	json_object *names = look_at(part, "inside");
	size_t i, n = json_object_array_length(names);

	for (i = 0; i < n; i++)
		if (!strcmp(json_object_get_string(
			    json_object_array_get_idx(names, i)), name))
			return true;
	return false;
}

/* Edges cross, in the direction that is told; their sum is the capacity. */
static double check_part(json_object *part, bool out)
{
	json_object *edges = look_at(part, "edges");
	size_t i, n = json_object_array_length(edges), wrong = 0;
	double sum = 0;

	for (i = 0; i < n; i++) {
		json_object *e = json_object_array_get_idx(edges, i);
		bool from = inside(part, look_text(e, "from"));
		bool to = inside(part, look_text(e, "to"));

		wrong += from != out || to == out;
		sum += look_number(e, "gbps");
	}
	ok(n > 0 && !wrong, "%zu edges cross", n);
	look_is(part, "capacity_gbps", sum);
	return sum;
}

/* As a reader would check it, from nothing but the document. */
static void certificate(const char *file, const char *collective)
{
	json_object *doc = look_json(&f->b, look_line("plan-collective %s "
				     "--collective %s", file, collective));
	bool out = !strcmp(look_text(doc, "bound.cut.direction"), "out");
	long i, n = look_length(doc, "bound.cut.parts");
	double sum = 0, ranks = (double)look_length(doc, "ranks"), algbw;

	for (i = 0; i < n; i++)
		sum += check_part(look_at(doc, look_line("bound.cut.parts.%ld",
							 i)), out);
	look_is(doc, "bound.cut.capacity_gbps", sum);
	if (!strcmp(look_text(doc, "bound.cut.kind"), "partition"))
		algbw = sum / (2 * (double)(n - 1));
	else if (!strcmp(collective, "all-gather") ||
		 !strcmp(collective, "reduce-scatter"))
		algbw = sum * ranks / (double)look_length(doc,
						"bound.cut.parts.0.ranks");
	else
		algbw = sum;
	look_is(doc, "bound.algbw_gbps", algbw);
	check_part(look_at(doc, "ring.cut"), true);
	json_object_put(doc);
}

static void certificates(void)
{
	static const char *const collectives[] = {
		"all-reduce", "all-gather", "reduce-scatter", "broadcast",
		"reduce"
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(collectives); i++) {
		certificate(FLAT, collectives[i]);
		certificate("topologies/graphs/dgx-a100.graph",
			    collectives[i]);
	}
}

/* ---- text ---------------------------------------------------------------- */

static void text(void)
{
	struct run r = run_line(&f->b, "plan-collective " FLAT " --collective "
				"all_gather --size 64M");
	char *rings;

	ok(!r.code, "text: %s", r.err);
	has(r.out, "all-gather of 16 GPUs in 2 boxes, 2s-2rp-split-flat");
	has(r.out, "bound    202.500  216.000");
	has(r.out, "optimal  202.500  216.000");
	has(r.out, "rings    108.000  115.200");
	has(r.out, "PREDICTED AT 64M");
	has(r.out, "columba");
	has(r.out, "NCCL_RINGS=\"0 ");
	has(r.out, "  0-7       columba1.gpu0 to columba1.gpu7\n");
	run_free(&r);
	r = run_line(&f->b, "plan-collective " FLAT " --no-prediction");
	ok(!r.code, "without a prediction: %s", r.err);
	hasnt(r.out, "!");
	run_free(&r);
	r = run_line(&f->b, "plan-collective " FLAT " --rings");
	rings = r.out;
	ok(!r.code && strspn(rings, "0123456789 |") + 1 == strlen(rings) &&
	   strchr(rings, '|'), "nothing but rings: %s", rings);
	run_free(&r);
	r = run_line(&f->b, "plan-collective " FLAT " --devices 12,3,7 "
		     "--collective broadcast --root columba1.gpu3");
	ok(!r.code, "a root by name: %s", r.err);
	has(r.out, "root 1");
	has(r.out, "  0         columba2.gpu4\n");
	run_free(&r);
}

/* ---- files --------------------------------------------------------------- */

static void read_schedule(const char *path, const char *kind)
{
	char why[512] = "";
	unsigned int ranks = 0;
	const char *is = look_schedule(path, &ranks, why, sizeof(why));

	ok(is && !strcmp(is, kind) && ranks == 16,
	   "libfabrex takes the %s of 16 ranks: %s", kind, why);
}

static void written(void)
{
	static const char *const kinds[] = {
		"all-gather", "reduce-scatter", "all-reduce", "broadcast",
		"reduce"
	};
	const char *best = look_path("best"), *ring = look_path("ring");
	const char *xml = look_path("rings.xml");
	struct run r;
	char *got;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		r = run_line(&f->b, look_line("plan-collective " FLAT
			     " --collective %s --schedule %s --ring-schedule "
			     "%s --rings-file %s --format nccl", kinds[i],
			     best, ring, xml));
		ok(!r.code, "three files: %s", r.err);
		run_free(&r);
		read_schedule(best, kinds[i]);
		read_schedule(ring, kinds[i]);
		got = look_read(xml);
		ok(got && !fabrex_plan_nccl_check(got, strlen(got), xml),
		   "NCCL takes the graph: %s", fabrex_plan_strerror_last());
		free(got);
		unlink(best);
		unlink(ring);
		unlink(xml);
	}
	look_refused(&f->b, look_line("plan-collective " FLAT " --schedule %s "
		     "--ring-schedule %s/no/x", best, look_dir()),
		     EXIT_NOT_FOUND, "cannot write");
	look_refused(&f->b, look_line("plan-collective " FLAT " --schedule %s "
		     "--ring-schedule %s", best, best), EXIT_USAGE, "twice");
	ok(!look_count(), "all files or none: %d", look_count());
}

/* Each collective has a rule for each size, and only one. */
static void rules_of_all_sizes(const char *text)
{
	static const char *const names[] = {
		"broadcast", "reduce", "allgather", "reducescatter", "allreduce"
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		unsigned long long first, last = -1ull, next = 0;
		char start[32], protocol[8];
		unsigned int n = 0, ranks;
		const char *line = text;

		snprintf(start, sizeof(start), "\n%s,", names[i]);
		for (; (line = strstr(line, start)); n++) {
			line += strlen(start);
			if (sscanf(line, "%llu,%llu,ring,%7[a-z],-1,1,%u\n",
				   &first, &last, protocol, &ranks) != 4 ||
			    first != next || last < first || ranks != 16 ||
			    strcmp(protocol, first ? "simple" : "ll"))
				break;
			next = last + 1;
		}
		ok(!line && n == 2 && last == -1ull,
		   "%s: ll, then simple, to the last size", names[i]);
	}
}

/* The planned collective does not matter; the rings do. */
static void tuner_file(void)
{
	const char *path = look_path("rules.csv");
	struct run r;
	char *got;

	r = run_line(&f->b, look_line("plan-collective " FLAT " --collective "
		     "all-gather --tuner-file %s", path));
	ok(!r.code, "a tuner's file: %s", r.err);
	run_free(&r);
	got = look_read(path);
	has(got ? got : "", "# For NCCL_TUNER_CONFIG_FILE: 16 GPUs of ");
	has(got ? got : "", "# allreduce of 1024 bytes: ll ");
	rules_of_all_sizes(got ? got : "");
	free(got);
	unlink(path);
	look_refused(&f->b, look_line("plan-collective topologies/graphs/"
		     "two-dgx.graph --no-prediction --tuner-file %s", path),
		     EXIT_FAILED, "--tuner-file is for the GPUs of one host: ");
	ok(!look_count(), "nothing is written: %d", look_count());
}

/* A part of a topology XML: RCCL has no numbers for it, a graph file does. */
static void part_of_xml(void)
{
	const char *xml = look_path("part.xml");
	struct run r;
	char *got;

	r = run_line(&f->b, look_line("plan-collective lib/plan/tests/data/nccl/two-switch.xml --devices 15,3 --rings "
				      "--rings-file %s", xml));
	ok(!r.code && !strncmp(r.out, "0 1", 3), "ranks: %s", r.out);
	has(r.err, "the dev of these GPUs is not 0 to 1");
	has(r.err, "use --rings-file");
	got = look_read(xml);
	has(got ? got : "", "dev=\"0xf\"");
	free(got);
	unlink(xml);
	run_free(&r);
	r = run_line(&f->b, "plan-collective " FLAT " --devices 15,3 --rings");
	ok(!strncmp(r.out, "0 1", 3) && !strstr(r.err, "note"),
	   "no note where dev is the rank: %s", r.err);
	run_free(&r);
}

/* ---- jobs ---------------------------------------------------------------- */

static void jobs(void)
{
	json_object *doc = look_json(&f->b, "plan-collective " FLAT
				     " --jobs 0-7;8-15");
	struct run r;

	ok(look_length(doc, "jobs") == 2 &&
	   look_number(doc, "jobs.1.ranks") == 8, "two jobs");
	look_is(doc, "jobs.0.slowdown", 1);
	json_object_put(doc);
	doc = look_json(&f->b, "plan-collective " FLAT
			" --jobs 0,2,4,6,8,10,12,14;"
			"1,3,5,7,9,11,13,15");
	ok(look_number(doc, "jobs.0.slowdown") > 1.2 &&
	   look_number(doc, "jobs.0.busbw_gbps") <
	   look_number(doc, "jobs.0.alone_busbw_gbps"),
	   "both across the same uplinks: %g times",
	   look_number(doc, "jobs.0.slowdown"));
	json_object_put(doc);
	r = run_line(&f->b, "plan-collective " FLAT " --jobs 0-7;8-15");
	has(r.out, "SLOWDOWN");
	run_free(&r);
}

/* ---- refusals ------------------------------------------------------------ */

static void refusals(void)
{
	static const struct {
		const char *line;
		int code;
		const char *says;
	} cases[] = {
		{ "", EXIT_USAGE, "name a file, or \"live\"" },
		{ "a b", EXIT_USAGE, "\"b\" is too much" },
		{ "/nonexistent", EXIT_NOT_FOUND, "/nonexistent" },
		{ "/tmp", EXIT_FAILED, "directory" },
		{ "/dev/null", EXIT_FAILED, "empty" },
		{ FLAT " --collective all_to_all", EXIT_USAGE,
		  "none of all-gather" },
		{ FLAT " --collective ''", EXIT_USAGE, "none of" },
		{ FLAT " --root 1", EXIT_USAGE, "all-reduce has no root" },
		{ FLAT " --collective broadcast --root 16", EXIT_USAGE,
		  "ranks are 0 to 15" },
		{ FLAT " --collective broadcast --root -1", EXIT_USAGE,
		  "no rank" },
		{ FLAT " --collective broadcast --root draco1:1", EXIT_USAGE,
		  "no rank" },
		{ FLAT " --size 0", EXIT_USAGE, "no size" },
		{ FLAT " --size 5T", EXIT_USAGE, "no size" },
		{ FLAT " --size 99999999999999999999", EXIT_USAGE, "no size" },
		{ FLAT " --size 1.5G", EXIT_USAGE, "no size" },
		{ FLAT " --size G", EXIT_USAGE, "no size" },
		{ FLAT " --size ''", EXIT_USAGE, "no size" },
		{ FLAT " --devices 0", EXIT_FAILED, "2 or more" },
		{ FLAT " --devices ''", EXIT_FAILED, "devices" },
		{ FLAT " --devices 0,99", EXIT_FAILED, "99" },
		{ FLAT " --host nobody", EXIT_FAILED, "nobody" },
		{ FLAT " --format nccl", EXIT_USAGE, "--rings-file" },
		{ FLAT " --rings-file x --format topo", EXIT_USAGE,
		  "none of rccl, nccl" },
		{ FLAT " --jobs ;", EXIT_USAGE, "name ranks" },
		{ FLAT " --jobs 0-16", EXIT_USAGE, "ranks are 0 to 15" },
		{ FLAT " --jobs 5-3", EXIT_USAGE, "no ranks" },
		{ FLAT " --jobs 0-3;3-5", EXIT_USAGE, "rank 3 is named twice" },
		{ FLAT " --jobs 0;1-5", EXIT_FAILED, "job 1: " },
		{ FLAT " --output x", EXIT_USAGE, "unknown option --output" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		look_refused(&f->b, look_line("plan-collective%s%s",
			     *cases[i].line ? " " : "", cases[i].line),
			     cases[i].code, cases[i].says);
}

int main(void)
{
	f = fabric_small();
	values();
	all_keys();
	certificates();
	text();
	written();
	tuner_file();
	part_of_xml();
	jobs();
	refusals();
	fake_free(f);
	look_clean();
	return tap_done();
}
