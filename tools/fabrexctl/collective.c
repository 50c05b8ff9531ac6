// SPDX-License-Identifier: GPL-2.0-only
/*
 * "plan-collective": bound, optimum and rings of one collective on one fabric,
 * as records, as text, and as files for the libraries that run them.
 */
#include <stdlib.h>
#include <string.h>

#include "certificate.h"
#include "graph.h"
#include "graphview.h"
#include "jobs.h"
#include "json.h"
#include "output.h"
#include "source.h"
#include "table.h"
#include "tuner.h"

/* Longer rings are shown with --rings and in JSON only. */
#define SHOWN_RANKS 32

static void make_document(struct ctl *c, const char *name,
			  const struct planned *p)
{
	bool rooted = p->collective == FABREX_PLAN_BROADCAST ||
		      p->collective == FABREX_PLAN_REDUCE;
	json_object *doc = json_object_new_object();

	c->doc = doc;
	rec_str(doc, "source", name);
	rec_str(doc, "fabric", graph_attr(p->graph).name);
	rec_str(doc, "collective", fabrex_plan_collective_str(p->collective));
	rec_put(doc, "root", rooted ? json_object_new_int64(p->root) : NULL);
	rec_put(doc, "ranks", json_ranks(p->graph));
	rec_put(doc, "bound", json_bound(p));
	rec_put(doc, "ring", json_ring(p));
	rec_put(doc, "optimal", json_optimal(p));
	rec_put(doc, "predicted", json_predicted(p));
	rec_put(doc, "jobs", NULL);
	rec_put(doc, "warnings", json_warnings(p->graph));
	rec_double(doc, "planning_ms", p->planning_ms, 3);
	rec_double(doc, "rings_ms", p->rings_ms, 3);
	rec_double(doc, "predicting_ms", p->predicting_ms, 3);
}

/* ---- text ---------------------------------------------------------------- */

static void add_row(json_object *rows, const char *what, json_object *from,
		    const char *note)
{
	json_object *row = json_object_new_object(), *v = NULL;

	rec_str(row, "what", what);
	json_object_object_get_ex(from, "busbw_gbps", &v);
	rec_put(row, "busbw", json_object_get(v));
	json_object_object_get_ex(from, "algbw_gbps", &v);
	rec_put(row, "algbw", json_object_get(v));
	v = NULL;
	json_object_object_get_ex(from, "predicted_busbw_gbps", &v);
	rec_put(row, "predicted", json_object_get(v));
	rec_str(row, "note", note);
	json_object_array_add(rows, row);
}

static char *optimal_note(const struct planned *p)
{
	if (p->optimum.proved)
		return xasprintf("meets the bound, k = %llu",
				 (unsigned long long)p->optimum.trees);
	return xasprintf("not proved: %.1f %% of the bound, k = %llu", 100 *
			 fabrex_plan_ratio_value(p->optimum.algbw) /
			 fabrex_plan_ratio_value(p->optimum.bound_algbw),
			 (unsigned long long)p->optimum.trees);
}

static char *ring_note(const struct planned *p)
{
	if (!p->rings)
		return xstrdup("there are none");
	return xasprintf("%u ring%s, %s", p->ring.rings,
			 p->ring.rings == 1 ? "" : "s",
			 p->ring.proved ? "no rings are faster" :
			 "not proved the fastest");
}

static void print_table(struct ctl *c, const struct planned *p)
{
	char size[32], title[48];
	const struct column columns[] = {
		{ "GB/S", "what", F_TEXT, false },
		{ "BUSBW", "busbw", F_NUMBER, false },
		{ "ALGBW", "algbw", F_NUMBER, false },
		{ title, "predicted", F_NUMBER, false },
		{ "", "note", F_TEXT, false },
		{ NULL, NULL, F_TEXT, false }
	};
	json_object *rows = json_object_new_array();
	json_object *bound, *optimal, *ring;
	char *note;

	json_object_object_get_ex(c->doc, "bound", &bound);
	json_object_object_get_ex(c->doc, "optimal", &optimal);
	json_object_object_get_ex(c->doc, "ring", &ring);
	add_row(rows, "bound", bound, "nothing is faster");
	note = optimal_note(p);
	add_row(rows, "optimal", optimal, note);
	free(note);
	note = ring_note(p);
	add_row(rows, "rings", ring, note);
	free(note);
	format_size(size, sizeof(size), (double)p->size);
	snprintf(title, sizeof(title), "PREDICTED AT %s", size);
	table_print(c->out, rows, columns, true, c->color);
	json_object_put(rows);
}

/* Length of the number at the end of a name. */
static size_t digits_behind(const char *name)
{
	size_t n = strlen(name), k = 0;

	while (k < n && k < 9 && name[n - k - 1] >= '0' &&
	       name[n - k - 1] <= '9')
		k++;
	return k;
}

/* Whether @b is what comes after @a: gpu3 after gpu2. */
static bool follows(const char *a, const char *b)
{
	size_t na = strlen(a) - digits_behind(a);
	size_t nb = strlen(b) - digits_behind(b);

	return na == nb && !strncmp(a, b, na) && a[na] && b[nb] &&
	       strtoul(b + nb, NULL, 10) == strtoul(a + na, NULL, 10) + 1;
}

/* "ranks 0-7 are columba1.gpu0 to gpu7": runs of names in one line each. */
static void print_ranks(FILE *f, const struct fabrex_plan_graph *g)
{
	uint32_t i, k, n = graph_attr(g).ranks;

	for (i = 0; i < n; i = k + 1) {
		const char *first = graph_rank(g, i).name;

		for (k = i; k + 1 < n && follows(graph_rank(g, k).name,
						 graph_rank(g, k + 1).name);
		     k++)
			;
		if (k == i)
			fprintf(f, "  %-9u %s\n", i, first);
		else
			fprintf(f, "  %u-%-*u %s to %s\n", i,
				(int)(8 - snprintf(NULL, 0, "%u", i)), k,
				first, graph_rank(g, k).name);
	}
}

static void print_rings(FILE *f, const struct planned *p)
{
	char *rings = planned_nccl_rings(p);

	if (!rings)
		fprintf(f, "\nno rings: %s\n", p->no_rings);
	else if (p->ring.ranks <= SHOWN_RANKS)
		fprintf(f, "\nNCCL_RINGS=\"%s\"\n", rings);
	else
		fputs("\nNCCL_RINGS is long; --rings prints it\n", f);
	free(rings);
}

static void print_text(struct ctl *c, const struct planned *p)
{
	char *words = planned_words(p), count[64];
	const struct fabrex_plan_graph *g = p->graph;
	uint32_t i;

	graph_count(p->graph, count, sizeof(count));
	fprintf(c->out, "%s of %s, %s", fabrex_plan_collective_str(p->collective),
		count, graph_attr(p->graph).name);
	if (p->collective == FABREX_PLAN_BROADCAST ||
	    p->collective == FABREX_PLAN_REDUCE)
		fprintf(c->out, ", root %u", p->root);
	fputs("\n\n", c->out);
	print_table(c, p);
	fprintf(c->out, "\n%s%s", words, *words &&
		words[strlen(words) - 1] == '\n' ? "" : "\n");
	free(words);
	print_rings(c->out, p);
	fputs("ranks:\n", c->out);
	print_ranks(c->out, p->graph);
	for (i = 0; i < graph_attr(g).warnings; i++)
		fprintf(c->out, "! %s\n", fabrex_plan_graph_warning(g, i));
	if (!p->predicted && !IS_SET(c, NO_PREDICTION))
		fprintf(c->out, "! no prediction: %s\n", p->not_predicted);
}

/* ---- files --------------------------------------------------------------- */

/* The plan in a format, as a file of that path. */
static int add_plan(struct ctl *c, const char *name,
		    const struct fabrex_plan *plan, int format,
		    const char *path, struct outputs *o)
{
	size_t len;
	int r;
	char *text = plan_text(plan, format, &len, &r);

	return text ? outputs_add(c, o, path, text, len)
		    : source_error(c, name, r);
}

static int add_rules(struct ctl *c, const char *name, const struct planned *p,
		     struct outputs *o)
{
	size_t len;
	char *text = tuner_rules(c, name, p->graph, p->rings, &len);

	return text ? outputs_add(c, o, c->arg[OPT_TUNER_FILE], text, len)
		    : -c->err.code;
}

/* Of --rings-file. */
static int parse_format(struct ctl *c, int *out)
{
	const char *word = c->arg[OPT_FORMAT];

	*out = word && !strcmp(word, "nccl") ? FABREX_PLAN_NCCL : FABREX_PLAN_RCCL;
	if (word && !IS_SET(c, RINGS_FILE))
		return err_usage(&c->err, word, "--format is that of "
				 "--rings-file, which is not given");
	if (!word || !strcmp(word, "nccl") || !strcmp(word, "rccl"))
		return 0;
	return err_usage(&c->err, word, "--format: \"%s\" is none of rccl, "
			 "nccl", word);
}

static int write_files(struct ctl *c, const char *name,
		       const struct planned *p, int format)
{
	struct outputs o = { 0 };
	int r = 0;

	if (!p->rings && (IS_SET(c, RING_SCHEDULE) ||
			      IS_SET(c, RINGS_FILE) ||
			      IS_SET(c, TUNER_FILE) || IS_SET(c, RINGS)))
		return err_set(&c->err, EINVAL, name, "%s: no rings: %s", name,
			       p->no_rings);
	if (IS_SET(c, SCHEDULE))
		r = add_plan(c, name, p->optimal, FABREX_PLAN_SCHEDULE,
			     c->arg[OPT_SCHEDULE], &o);
	if (!r && IS_SET(c, RING_SCHEDULE))
		r = add_plan(c, name, p->rings, FABREX_PLAN_SCHEDULE,
			     c->arg[OPT_RING_SCHEDULE], &o);
	if (!r && IS_SET(c, RINGS_FILE))
		r = add_plan(c, name, p->rings, format,
			     c->arg[OPT_RINGS_FILE], &o);
	if (!r && IS_SET(c, TUNER_FILE))
		r = add_rules(c, name, p, &o);
	if (!r)
		r = outputs_commit(c, &o);
	outputs_free(&o);
	return r;
}

/* ---- the command --------------------------------------------------------- */

/* RCCL looks GPUs up by dev, and takes no number that is not below n. */
static void check_nccl_rings(struct ctl *c, struct fabrex_plan_graph *g,
			     const struct planned *p)
{
	uint32_t n;

	if (!p->rings || p->ring.nccl_dev)
		return;
	graph_warn(g, "the dev of these GPUs is not 0 to %u, and RCCL takes no others in NCCL_RINGS; the string has ranks, for a host that has only these GPUs. Beside this topology use --rings-file with NCCL_GRAPH_FILE",
		   p->ring.ranks - 1);
	n = graph_attr(g).warnings;
	if (IS_SET(c, RINGS) && n)
		fprintf(c->real_err, "fabrexctl: note: %s\n",
			fabrex_plan_graph_warning(g, n - 1));
}

static int report(struct ctl *c, const char *name, const struct planned *p)
{
	json_object *jobs = NULL;
	int r = 0;

	if (IS_SET(c, JOBS))
		r = jobs_predict(c, name, p->graph, p->collective, p->size,
				 c->arg[OPT_JOBS], &jobs);
	if (r) {
		json_object_put(jobs);
		return r;
	}
	make_document(c, name, p);
	if (jobs)
		json_object_object_add(c->doc, "jobs", jobs);
	if (IS_SET(c, RINGS)) {
		char *rings = planned_nccl_rings(p);

		fprintf(c->out, "%s\n", rings ? rings : "");
		free(rings);
		return 0;
	}
	print_text(c, p);
	if (jobs) {
		fputc('\n', c->out);
		jobs_print(c->out, jobs, c->color);
	}
	return 0;
}

static int predict(struct ctl *c, const char *name, uint64_t size,
		   struct planned *p)
{
	if (!IS_SET(c, NO_PREDICTION))
		return planned_predict(c, name, size, p);
	p->size = size;
	snprintf(p->not_predicted, sizeof(p->not_predicted), "it was not asked for");
	return 0;
}

static int plan_for(struct ctl *c, const char *name,
			 struct fabrex_plan_graph *g,
			 int collective, uint64_t size,
			 int format)
{
	struct planned p = { 0 };
	uint32_t root;
	int r = source_root(c, g, collective, &root);

	if (!r)
		r = planned_make(c, name, g, collective, root, &p);
	if (!r)
		check_nccl_rings(c, g, &p);
	if (!r)
		r = predict(c, name, size, &p);
	if (!r)
		r = report(c, name, &p);
	if (!r)
		r = write_files(c, name, &p, format);
	planned_free(&p);
	return r;
}

int cmd_plan_collective(struct ctl *c, int argc, char **argv)
{
	int collective;
	struct fabrex_plan_graph *g = NULL;
	int format;
	const char *name;
	uint64_t size;
	int r = source_name(c, argc, argv, &name);

	if (!r)
		r = source_collective(c, &collective);
	if (!r)
		r = source_size(c, &size);
	if (!r)
		r = parse_format(c, &format);
	if (!r)
		r = source_plannable(c, name, &g);
	if (!r)
		r = plan_for(c, name, g, collective, size, format);
	fabrex_plan_graph_free(g);
	return r;
}
