// SPDX-License-Identifier: GPL-2.0-only
/*
 * Contention: the schedule of each job is the best for its ranks alone, as
 * jobs know nothing of one another; simulated together they share the links.
 */
#include <stdlib.h>
#include <string.h>

#include "certificate.h"
#include "graph.h"
#include "jobs.h"
#include "json.h"
#include "source.h"
#include "table.h"

static int take(struct ctl *c, const struct fabrex_plan_graph *g, struct jobs *jobs,
		uint64_t first, uint64_t last, struct ids *nodes)
{
	for (; first <= last; first++) {
		if (jobs->taken[first])
			return err_usage(&c->err, NULL, "--jobs: rank %u is "
					 "named twice; a GPU has one job",
					 (unsigned int)first);
		jobs->taken[first] = true;
		ids_add(nodes, fabrex_plan_rank_node(g, (uint32_t)first));
	}
	return 0;
}

/* "0-3" or "5" */
static int parse_range(struct ctl *c, const struct fabrex_plan_graph *g,
		       struct jobs *jobs, char *word, struct ids *nodes)
{
	const uint32_t top = graph_attr(g).ranks - 1;
	char *dash = strchr(word, '-');
	uint64_t first, last;

	if (dash)
		*dash = '\0';
	if (!parse_u64(word, 0, top, &first) ||
	    !parse_u64(dash ? dash + 1 : word, first, top, &last))
		return err_usage(&c->err, word, "--jobs: \"%s%s%s\" are no "
				 "ranks; ranks are 0 to %u", word,
				 dash ? "-" : "", dash ? dash + 1 : "", top);
	return take(c, g, jobs, first, last, nodes);
}

static int add_job(struct ctl *c, const char *name, const struct fabrex_plan_graph *g,
		   const struct ids *nodes, struct jobs *jobs)
{
	struct job *j;
	int r;

	jobs->v = xrealloc(jobs->v, (jobs->n + 1) * sizeof(*jobs->v));
	j = &jobs->v[jobs->n++];
	memset(j, 0, sizeof(*j));
	r = fabrex_plan_graph_copy(g, &j->graph);
	if (r)
		return source_error(c, NULL, r);
	r = fabrex_plan_graph_ranks(j->graph, nodes->v, (uint32_t)nodes->n);
	if (!r)
		r = fabrex_plan_graph_check(j->graph);
	if (!r)
		return 0;
	source_error(c, name, r);
	err_prefix(&c->err, "job %u: ", jobs->n);
	return -c->err.code;
}

static int parse_job(struct ctl *c, const char *name,
		     const struct fabrex_plan_graph *g, char *words,
		     struct jobs *jobs)
{
	struct ids nodes = { 0 };
	char *save, *word;
	int r = 0;

	for (word = strtok_r(words, ",", &save); word && !r;
	     word = strtok_r(NULL, ",", &save))
		r = parse_range(c, g, jobs, word, &nodes);
	if (!r)
		r = add_job(c, name, g, &nodes, jobs);
	ids_free(&nodes);
	return r;
}

int jobs_parse(struct ctl *c, const char *name, const struct fabrex_plan_graph *g,
	       const char *words, struct jobs *jobs)
{
	char *copy = xstrdup(words), *save, *word;
	int r = 0;

	*jobs = (struct jobs){ .taken = xcalloc(graph_attr(g).ranks,
						sizeof(bool)) };
	for (word = strtok_r(copy, ";", &save); word && !r;
	     word = strtok_r(NULL, ";", &save))
		r = parse_job(c, name, g, word, jobs);
	free(copy);
	if (!r && !jobs->n)
		r = err_usage(&c->err, words, "--jobs: name ranks of each job, "
			      "as in \"0-7;8-15\"");
	return r;
}

void jobs_free(struct jobs *jobs)
{
	uint32_t i;

	for (i = 0; i < jobs->n; i++) {
		planned_free(&jobs->v[i].planned);
		fabrex_plan_graph_free(jobs->v[i].graph);
	}
	free(jobs->v);
	free(jobs->taken);
	memset(jobs, 0, sizeof(*jobs));
}

static json_object *record(const struct job *j,
			   const struct fabrex_plan_time *t)
{
	json_object *o = json_object_new_object();

	rec_put(o, "gpus", json_ranks(j->graph));
	rec_int(o, "ranks", graph_attr(j->graph).ranks);
	rec_double(o, "alone_busbw_gbps", j->alone.busbw, 3);
	rec_double(o, "alone_seconds", j->alone.seconds, 9);
	rec_double(o, "busbw_gbps", t->busbw, 3);
	rec_double(o, "seconds", t->seconds, 9);
	rec_double(o, "slowdown", t->seconds / j->alone.seconds, 3);
	return o;
}

/* Each alone, then all at once. */
static int simulate(struct ctl *c, const char *name,
		    const struct fabrex_plan_graph *g, struct jobs *jobs,
		    uint64_t size, json_object *out)
{
	struct fabrex_plan_job *v = xcalloc(jobs->n, sizeof(*v));
	struct fabrex_plan_time *times = xcalloc(jobs->n, sizeof(*times));
	uint32_t i;
	int r = 0;

	for (i = 0; i < jobs->n && !r; i++) {
		v[i].plan = jobs->v[i].planned.optimal;
		v[i].bytes = size;
		r = fabrex_plan_simulate(jobs->v[i].graph, &v[i], sizeof(*v),
					 1, NULL, 0, &jobs->v[i].alone,
					 sizeof(*times));
	}
	if (!r)
		r = fabrex_plan_simulate(g, v, sizeof(*v), jobs->n, NULL, 0,
					 times, sizeof(*times));
	for (i = 0; i < jobs->n && !r; i++)
		json_object_array_add(out, record(&jobs->v[i], &times[i]));
	free(v);
	free(times);
	return r ? source_error(c, name, r) : 0;
}

int jobs_predict(struct ctl *c, const char *name, const struct fabrex_plan_graph *g,
		 int collective, uint64_t size,
		 const char *words, json_object **out)
{
	struct jobs jobs;
	uint32_t i;
	int r;

	*out = json_object_new_array();
	r = jobs_parse(c, name, g, words, &jobs);
	for (i = 0; i < jobs.n && !r; i++)
		r = planned_make(c, name, jobs.v[i].graph, collective, 0,
				 &jobs.v[i].planned);
	if (!r)
		r = simulate(c, name, g, &jobs, size, *out);
	jobs_free(&jobs);
	return r;
}

void jobs_print(FILE *f, json_object *jobs, bool color)
{
	static const struct column columns[] = {
		{ "GPUS", "ranks", F_NUMBER, false },
		{ "ALONE", "alone_busbw_gbps", F_NUMBER, false },
		{ "TOGETHER", "busbw_gbps", F_NUMBER, false },
		{ "SLOWDOWN", "slowdown", F_NUMBER, false },
		{ NULL, NULL, F_TEXT, false }
	};

	fputs("jobs at once, busbw in GB/s:\n", f);
	table_print(f, jobs, columns, true, color);
}
