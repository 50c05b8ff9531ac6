// SPDX-License-Identifier: GPL-2.0-only
/*
 * "topology": fabrics shown, checked, converted and drawn. Its other verbs are
 * in compare.c, design.c and predict.c. Called by run.c.
 */
#include <stdlib.h>
#include <string.h>

#include "certificate.h"
#include "compare.h"
#include "design.h"
#include "graphview.h"
#include "json.h"
#include "live.h"
#include "output.h"
#include "plan/draw.h"
#include "plan/nccl.h"
#include "plan/read.h"
#include "planned.h"
#include "predict.h"
#include "source.h"
#include "table.h"
#include "topology.h"
#include "visible.h"

/* Writes a graph in some form. */
typedef int (*writer)(const struct plan_graph *g, FILE *f,
		      struct plan_error *e);

/*
 * A text that is the result: into the file of --output, else to the standard
 * output; with --json as a string. Takes @text.
 */
static int deliver(struct ctl *c, const char *name, const char *format,
		   const char *key, char *text, size_t len)
{
	struct outputs o = { 0 };
	const char *path = c->arg[OPT_OUTPUT];
	int r;

	c->doc = json_object_new_object();
	rec_str(c->doc, "source", name);
	rec_str(c->doc, "format", format);
	rec_str(c->doc, "output", path);
	rec_put(c->doc, key, path ? NULL :
		json_text(text));
	if (!path) {
		fwrite(text, 1, len, c->out);
		free(text);
		return 0;
	}
	r = outputs_add(c, &o, path, text, len);
	if (!r)
		r = outputs_commit(c, &o);
	outputs_free(&o);
	return r;
}

/* What had to be supposed; beside the result, which programs read. */
static void warn(struct ctl *c, const struct plan_graph *g)
{
	uint32_t i;

	rec_put(c->doc, "warnings", json_warnings(g));
	for (i = 0; !c->json && i < g->nwarnings; i++)
		fprintf(c->real_err, "fabrexctl: note: %s\n", g->warnings[i]);
}

/*
 * What a library would say of its file. Error: it would not load it at all;
 * the rest is told beside the result.
 */
static int judge_xml(struct ctl *c, const char *name, const char *format,
		     const char *text, size_t len)
{
	struct plan_error e = { 0 };
	int r;

	if (strcmp(format, "nccl") && strcmp(format, "rccl"))
		return 0;
	r = plan_nccl_validate(text, len, format, &e);
	if (r == -E2BIG || r == -ENOMEM)
		return err_set(&c->err, -r, name, "%s: %s could not load it: "
			       "%s; choose fewer GPUs with --host or --devices",
			       name, format, e.text);
	visible(e.text);
	if (r)
		fprintf(c->real_err, "fabrexctl: note: %s\n", e.text);
	return 0;
}

static int deliver_graph(struct ctl *c, const char *name, const char *format,
			 const struct plan_graph *g, writer write)
{
	struct plan_error e = { 0 };
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	int r = write(g, f, &e);

	if (fclose(f) && !r)
		r = plan_fail(&e, ENOMEM, "out of memory");
	if (r)
		r = source_error(c, name, &e);
	else
		r = judge_xml(c, name, format, text, len);
	if (r) {
		free(text);
		return r;
	}
	r = deliver(c, name, format, "text", text, len);
	if (!r)
		warn(c, g);
	return r;
}

/* ---- show, check --------------------------------------------------------- */

static int topology_show(struct ctl *c, int argc, char **argv)
{
	struct plan_graph *g = NULL;
	const char *name;
	char count[64];
	int r = source_name(c, argc, argv, &name);

	if (!r)
		r = source_graph(c, name, &g);
	if (r)
		return r;
	c->doc = json_graph(g);
	if (!c->json) {
		graph_count(g, count, sizeof(count));
		fprintf(c->out, "%s: %s, %u elements, %u directed links\n",
			g->name, count, g->nnodes, g->nedges);
		graph_print(c->out, c->doc, IS_SET(c, WIDE), c->color);
	}
	plan_graph_free(g);
	return 0;
}

static bool is_xml(const char *text)
{
	if (!strncmp(text, "\xef\xbb\xbf", 3))	/* byte order mark */
		text += 3;
	return text[strspn(text, " \t\r\n\f\v")] == '<';
}

/*
 * An XML file has a second reader, which complains of less than it should.
 * Records "valid" (null of what is no XML) and "violations". Return: whether the
 * library loads it.
 */
static bool check_xml(struct ctl *c, const char *name, const char *text,
		      size_t len)
{
	json_object *list = json_object_new_array();
	struct plan_error e = { 0 };
	int r = 0;

	if (text && is_xml(text)) {
		r = plan_nccl_validate(text, len, name, &e);
		rec_bool(c->doc, "valid", !r);
	} else {
		rec_put(c->doc, "valid", NULL);
	}
	visible(e.text);
	if (r)
		json_object_array_add(list, json_text(e.text));
	rec_put(c->doc, "violations", list);
	return r != -E2BIG;
}

static void print_list(struct ctl *c, const char *key)
{
	json_object *list = NULL;
	size_t i, n;

	json_object_object_get_ex(c->doc, key, &list);
	n = json_object_array_length(list);
	for (i = 0; i < n; i++)
		fprintf(c->out, "! %s\n", json_object_get_string(
			json_object_array_get_idx(list, i)));
}

static void report_check(struct ctl *c, const char *name,
			 const struct plan_graph *g, const char *text,
			 size_t len)
{
	char count[64];
	bool loads;

	graph_count(g, count, sizeof(count));
	c->doc = json_object_new_object();
	rec_str(c->doc, "source", name);
	rec_str(c->doc, "fabric", g->name);
	rec_bool(c->doc, "plannable", true);
	rec_int(c->doc, "gpus", g->nranks);
	rec_put(c->doc, "warnings", json_warnings(g));
	loads = check_xml(c, name, text, len);
	fprintf(c->out, "%s: %s; can be planned for%s\n", name, count,
		loads ? "" : ", but the library does not load this file");
	print_list(c, "warnings");
	print_list(c, "violations");
	if (!loads)
		c->exit_code = EXIT_FAILED;
}

static int topology_check(struct ctl *c, int argc, char **argv)
{
	struct plan_graph *g = NULL;
	char *text = NULL;
	const char *name;
	size_t len = 0;
	int r = source_name(c, argc, argv, &name);

	if (!r)
		r = source_graph_text(c, name, &g, &text, &len);
	if (!r)
		r = source_check(c, name, &g);
	if (!r)
		report_check(c, name, g, text, len);
	plan_graph_free(g);
	free(text);
	return r;
}

/* ---- import, export ------------------------------------------------------ */

static int topology_import(struct ctl *c, int argc, char **argv)
{
	struct plan_graph *g = NULL;
	const char *name;
	int r = source_name(c, argc, argv, &name);

	if (!r)
		r = source_graph(c, name, &g);
	if (!r)
		r = deliver_graph(c, name, "graph", g, plan_graphfile_write);
	plan_graph_free(g);
	return r;
}

/* The wiring itself, which a graph does not tell any more. */
static int wiring_of(struct ctl *c, const char *name, struct topology **t)
{
	if (!strcmp(name, "live"))
		return live_topology(c, c->arg[OPT_TOPOLOGY], t);
	return source_topology(c, name, t);
}

/* Normal form of a topology file, or the live fabric as one. */
static int export_wiring(struct ctl *c, const char *name)
{
	struct topology *t = NULL;
	char *text = NULL, err[512];
	size_t len = 0;
	FILE *f;
	int r;

	if (IS_SET(c, DEVICES) || IS_SET(c, HOST))
		return err_usage(&c->err, "topo", "--format topo is the whole "
				 "fabric; leave out --host and --devices");
	r = wiring_of(c, name, &t);
	if (r)
		return r;
	f = open_memstream(&text, &len);
	r = topology_write(t, f, err, sizeof(err));
	fclose(f);
	topology_free(t);
	if (!r)
		return deliver(c, name, "topo", "text", text, len);
	free(text);
	return err_set(&c->err, -r, name, "%s", err);
}

static int write_rccl(const struct plan_graph *g, FILE *f, struct plan_error *e)
{
	return plan_nccl_write(g, PLAN_RCCL, f, e);
}

static int write_nccl(const struct plan_graph *g, FILE *f, struct plan_error *e)
{
	return plan_nccl_write(g, PLAN_NCCL, f, e);
}

static const struct format_info {
	const char *name;
	writer write;
} formats[] = {
	{ "rccl", write_rccl },
	{ "nccl", write_nccl },
	{ "graph", plan_graphfile_write },
	{ "topo", NULL },
};

static const struct format_info *find_format(struct ctl *c)
{
	const char *word = c->arg[OPT_FORMAT];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(formats); i++)
		if (!word || !strcmp(word, formats[i].name))
			return &formats[i];
	err_usage(&c->err, word, "--format: \"%s\" is none of rccl, nccl, "
		  "graph, topo", word);
	return NULL;
}

/* An XML is of one host: of the live fabric this one, if none is named. */
static int choose_host(struct ctl *c, const char *name,
		       const struct format_info *format)
{
	static char host[CTL_NAME_LEN];
	int r;

	if (strcmp(name, "live") || IS_SET(c, HOST) ||
	    format->write == plan_graphfile_write)
		return 0;
	r = ctl_open(c);
	if (r)
		return r;
	snprintf(host, sizeof(host), "%s", live_host(c));
	if (*host)
		c->arg[OPT_HOST] = host;
	return 0;
}

static int topology_export(struct ctl *c, int argc, char **argv)
{
	const struct format_info *format = find_format(c);
	struct plan_graph *g = NULL;
	const char *name;
	int r;

	if (!format)
		return -EINVAL;
	r = source_name(c, argc, argv, &name);
	if (!r && !format->write)
		return export_wiring(c, name);
	if (!r)
		r = choose_host(c, name, format);
	if (!r)
		r = source_graph(c, name, &g);
	if (!r)
		r = deliver_graph(c, name, format->name, g, format->write);
	plan_graph_free(g);
	return r;
}

/* ---- draw ---------------------------------------------------------------- */

enum loads { LOADS_OPTIMAL, LOADS_RINGS, LOADS_NONE };

static int parse_loads(struct ctl *c, enum loads *out)
{
	static const char *const words[] = { "optimal", "rings", "none" };
	const char *word = c->arg[OPT_LOADS];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(words); i++)
		if (!word || !strcmp(word, words[i])) {
			*out = i;
			return 0;
		}
	return err_usage(&c->err, word, "--schedule: \"%s\" is none of rings, "
			 "optimal, none", word);
}

static int draw(struct ctl *c, const char *name, const struct plan_graph *g,
		const struct plan_schedule *s, const struct plan_cut *cut)
{
	struct plan_error e = { 0 };
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	int r = plan_draw(g, s, cut, f, &e);

	if (fclose(f) && !r)
		r = plan_fail(&e, ENOMEM, "out of memory");
	if (!r)
		return deliver(c, name, "svg", "text", text, len);
	free(text);
	return source_error(c, name, &e);
}

static int draw_planned(struct ctl *c, const char *name,
			const struct planned *p, enum loads loads)
{
	const struct plan_bound *b = &p->optimum.bound;

	if (loads == LOADS_OPTIMAL)
		return draw(c, name, p->graph, p->optimum.schedule,
			    b->kind == PLAN_BOUND_CUT ? &b->cut : b->parts);
	if (!p->has_rings)
		return err_set(&c->err, EINVAL, name, "%s: no rings: %s", name,
			       p->no_rings);
	return draw(c, name, p->graph, p->rings.schedule, &p->rings.cut);
}

static int draw_graph(struct ctl *c, const char *name,
		      const struct plan_graph *g,
		      enum plan_collective collective, enum loads loads)
{
	struct planned p = { 0 };
	uint32_t root;
	int r = source_root(c, g, collective, &root);

	if (!r)
		r = planned_make(c, name, g, collective, root, &p);
	if (!r)
		r = draw_planned(c, name, &p, loads);
	planned_free(&p);
	return r;
}

static int topology_draw(struct ctl *c, int argc, char **argv)
{
	enum plan_collective collective;
	struct plan_graph *g = NULL;
	enum loads loads = LOADS_OPTIMAL;
	const char *name;
	int r = source_name(c, argc, argv, &name);

	if (!r)
		r = source_collective(c, &collective);
	if (!r)
		r = parse_loads(c, &loads);
	if (!r)
		r = loads == LOADS_NONE ? source_graph(c, name, &g)
					: source_plannable(c, name, &g);
	if (!r)
		r = loads == LOADS_NONE ? draw(c, name, g, NULL, NULL)
					: draw_graph(c, name, g, collective,
						     loads);
	plan_graph_free(g);
	return r;
}

/* ---- the verbs ----------------------------------------------------------- */

#define CHOOSE (OPT(LIVE) | OPT(TOPOLOGY) | OPT(HOST) | OPT(DEVICES))

const struct command topology_verbs[] = {
	{ "show", "FILE|live", "boxes, elements, links, ranks",
	  CHOOSE | OPT(WIDE), WORDS_GRAPH, topology_show, NULL },
	{ "check", "FILE|live", "check whether it can be planned for", CHOOSE,
	  WORDS_GRAPH, topology_check, NULL },
	{ "import", "FILE", "convert into a graph file",
	  OPT(HOST) | OPT(DEVICES) | OPT(OUTPUT), WORDS_FILE, topology_import,
	  NULL },
	{ "export", "FILE|live", "convert for RCCL, NCCL or the planner",
	  CHOOSE | OPT(FORMAT) | OPT(OUTPUT), WORDS_GRAPH, topology_export,
	  NULL },
	{ "draw", "FILE|live", "an SVG picture, with the load of links",
	  CHOOSE | OPT(COLLECTIVE) | OPT(ROOT) | OPT(LOADS) | OPT(OUTPUT),
	  WORDS_GRAPH, topology_draw, NULL },
	{ "compare", "FILE...", "rank wirings by bandwidth",
	  CHOOSE | OPT(COLLECTIVE) | OPT(ROOT) | OPT(SIZE), WORDS_GRAPH,
	  topology_compare, NULL },
	{ "design", "--switches N ...", "find the best wiring of given parts",
	  OPT(SWITCHES) | OPT(SWITCH_PORTS) | OPT(BOXES) | OPT(UPLINKS) |
	  OPT(GPUS) | OPT(HOST_PORTS) | OPT(ISLS) | OPT(COLLECTIVE) |
	  OPT(LIMIT) | OPT(OUTPUT), WORDS_NONE, topology_design, NULL },
	{ "predict", "FILE|live", "predict the time of steps of a model",
	  CHOOSE | OPT(MODEL) | OPT(LAYERS) | OPT(HIDDEN) | OPT(BATCH) |
	  OPT(SEQUENCE) | OPT(PARALLEL) | OPT(TFLOPS) | OPT(MEMORY) |
	  OPT(VALUE_BYTES) | OPT(OVERLAP) | OPT(RECOMPUTE) | OPT(KV_HIDDEN) |
	  OPT(JOBS), WORDS_GRAPH, topology_predict, NULL },
	{ NULL, NULL, NULL, 0, WORDS_NONE, NULL, NULL }
};
