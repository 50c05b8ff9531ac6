// SPDX-License-Identifier: GPL-2.0-only
/*
 * "plan-collective": bound, optimum and rings of one collective on one fabric,
 * as records, as text, and as files for the libraries that run them.
 */
#include <stdlib.h>
#include <string.h>

#include "certificate.h"
#include "graphview.h"
#include "jobs.h"
#include "json.h"
#include "output.h"
#include "plan/draw.h"
#include "plan/nccl.h"
#include "source.h"
#include "table.h"

/* Longer rings are shown with --rings and in JSON only. */
#define SHOWN_RANKS 32

static void make_document(struct ctl *c, const char *name,
			  const struct planned *p)
{
	bool rooted = p->collective == PLAN_BROADCAST ||
		      p->collective == PLAN_REDUCE;
	json_object *doc = json_object_new_object();

	c->doc = doc;
	rec_str(doc, "source", name);
	rec_str(doc, "fabric", p->graph->name);
	rec_str(doc, "collective", plan_collective_name(p->collective));
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
				 (unsigned long long)p->optimum.k);
	return xasprintf("not proved: %.1f %% of the bound, k = %llu", 100 *
			 plan_ratio_value(p->optimum.algbw) /
			 plan_ratio_value(p->optimum.bound.algbw),
			 (unsigned long long)p->optimum.k);
}

static char *ring_note(const struct planned *p)
{
	if (!p->has_rings)
		return xstrdup("there are none");
	return xasprintf("%u ring%s, %s", p->rings.nrings,
			 p->rings.nrings == 1 ? "" : "s",
			 p->rings.proved ? "no rings are faster" :
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
static void print_ranks(FILE *f, const struct plan_graph *g)
{
	uint32_t i, k;

	for (i = 0; i < g->nranks; i = k + 1) {
		const char *first = g->nodes[g->gpus[i]].name;

		for (k = i; k + 1 < g->nranks &&
		     follows(g->nodes[g->gpus[k]].name,
			     g->nodes[g->gpus[k + 1]].name); k++)
			;
		if (k == i)
			fprintf(f, "  %-9u %s\n", i, first);
		else
			fprintf(f, "  %u-%-*u %s to %s\n", i,
				(int)(8 - snprintf(NULL, 0, "%u", i)), k,
				first, g->nodes[g->gpus[k]].name);
	}
}

static void print_rings(FILE *f, const struct planned *p)
{
	char *rings = planned_nccl_rings(p, NULL);

	if (!rings)
		fprintf(f, "\nno rings: %s\n", p->no_rings);
	else if (p->graph->nranks <= SHOWN_RANKS)
		fprintf(f, "\nNCCL_RINGS=\"%s\"\n", rings);
	else
		fputs("\nNCCL_RINGS is long; --rings prints it\n", f);
	free(rings);
}

static void print_text(struct ctl *c, const struct planned *p)
{
	char *words = planned_words(p), count[64];
	uint32_t i;

	graph_count(p->graph, count, sizeof(count));
	fprintf(c->out, "%s of %s, %s", plan_collective_name(p->collective),
		count, p->graph->name);
	if (p->collective == PLAN_BROADCAST || p->collective == PLAN_REDUCE)
		fprintf(c->out, ", root %u", p->root);
	fputs("\n\n", c->out);
	print_table(c, p);
	fprintf(c->out, "\n%s%s", words, *words &&
		words[strlen(words) - 1] == '\n' ? "" : "\n");
	free(words);
	print_rings(c->out, p);
	fputs("ranks:\n", c->out);
	print_ranks(c->out, p->graph);
	for (i = 0; i < p->graph->nwarnings; i++)
		fprintf(c->out, "! %s\n", p->graph->warnings[i]);
	if (!p->played && !IS_SET(c, NO_PREDICTION))
		fprintf(c->out, "! no prediction: %s\n", p->not_played);
}

/* ---- files --------------------------------------------------------------- */

static int add_schedule(struct ctl *c, const char *name,
			const struct planned *p, const struct plan_schedule *s,
			const char *path, struct outputs *o)
{
	struct plan_error e = { 0 };
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	int r = plan_schedule_write(p->graph, s, f, &e);

	fclose(f);
	if (!r)
		return outputs_add(c, o, path, text, len);
	free(text);
	return source_error(c, name, &e);
}

static int add_graph_xml(struct ctl *c, const char *name,
			 const struct planned *p, enum plan_dialect dialect,
			 struct outputs *o)
{
	struct plan_error e = { 0 };
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	int r = plan_nccl_graph_write(p->graph, &p->rings, dialect, f, &e);

	fclose(f);
	if (!r)
		return outputs_add(c, o, c->arg[OPT_RINGS_FILE], text, len);
	free(text);
	return source_error(c, name, &e);
}

static int parse_dialect(struct ctl *c, enum plan_dialect *out)
{
	const char *word = c->arg[OPT_FORMAT];

	*out = word && !strcmp(word, "nccl") ? PLAN_NCCL : PLAN_RCCL;
	if (word && !IS_SET(c, RINGS_FILE))
		return err_usage(&c->err, word, "--format is that of "
				 "--rings-file, which is not given");
	if (!word || !strcmp(word, "nccl") || !strcmp(word, "rccl"))
		return 0;
	return err_usage(&c->err, word, "--format: \"%s\" is none of rccl, "
			 "nccl", word);
}

static int write_files(struct ctl *c, const char *name,
		       const struct planned *p, enum plan_dialect dialect)
{
	struct outputs o = { 0 };
	int r = 0;

	if (!p->has_rings && (IS_SET(c, RING_SCHEDULE) ||
			      IS_SET(c, RINGS_FILE) || IS_SET(c, RINGS)))
		return err_set(&c->err, EINVAL, name, "%s: no rings: %s", name,
			       p->no_rings);
	if (IS_SET(c, SCHEDULE))
		r = add_schedule(c, name, p, p->optimum.schedule,
				 c->arg[OPT_SCHEDULE], &o);
	if (!r && IS_SET(c, RING_SCHEDULE))
		r = add_schedule(c, name, p, p->rings.schedule,
				 c->arg[OPT_RING_SCHEDULE], &o);
	if (!r && IS_SET(c, RINGS_FILE))
		r = add_graph_xml(c, name, p, dialect, &o);
	if (!r)
		r = outputs_commit(c, &o);
	outputs_free(&o);
	return r;
}

/* ---- the command --------------------------------------------------------- */

/* RCCL looks GPUs up by dev, and takes no number that is not below n. */
static void check_nccl_rings(struct ctl *c, struct plan_graph *g,
			     const struct planned *p)
{
	bool by_dev = true;

	free(planned_nccl_rings(p, &by_dev));
	if (by_dev)
		return;
	plan_graph_warn(g, "the dev of these GPUs is not 0 to %u, and RCCL takes no others in NCCL_RINGS; the string has ranks, for a host that has only these GPUs. Beside this topology use --rings-file with NCCL_GRAPH_FILE",
			g->nranks - 1);
	if (IS_SET(c, RINGS) && g->nwarnings)
		fprintf(c->real_err, "fabrexctl: note: %s\n",
			g->warnings[g->nwarnings - 1]);
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
		char *rings = planned_nccl_rings(p, NULL);

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
	snprintf(p->not_played, sizeof(p->not_played), "it was not asked for");
	return 0;
}

static int plan_graph_of(struct ctl *c, const char *name,
			 struct plan_graph *g,
			 enum plan_collective collective, uint64_t size,
			 enum plan_dialect dialect)
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
		r = write_files(c, name, &p, dialect);
	planned_free(&p);
	return r;
}

int cmd_plan_collective(struct ctl *c, int argc, char **argv)
{
	enum plan_collective collective;
	struct plan_graph *g = NULL;
	enum plan_dialect dialect;
	const char *name;
	uint64_t size;
	int r = source_name(c, argc, argv, &name);

	if (!r)
		r = source_collective(c, &collective);
	if (!r)
		r = source_size(c, &size);
	if (!r)
		r = parse_dialect(c, &dialect);
	if (!r)
		r = source_plannable(c, name, &g);
	if (!r)
		r = plan_graph_of(c, name, g, collective, size, dialect);
	plan_graph_free(g);
	return r;
}
