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
#include "graph.h"
#include "graphview.h"
#include "json.h"
#include "live.h"
#include "output.h"
#include "planned.h"
#include "predict.h"
#include "source.h"
#include "table.h"
#include "topology/topology.h"
#include "topology/visible.h"

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
static void warn(struct ctl *c, const struct fabrex_plan_graph *g)
{
	uint32_t i, n = graph_attr(g).warnings;

	rec_put(c->doc, "warnings", json_warnings(g));
	for (i = 0; !c->json && i < n; i++)
		fprintf(c->real_err, "fabrexctl: note: %s\n",
			fabrex_plan_graph_warning(g, i));
}

/* What the planner said last, for a terminal; to be freed. */
static char *last_words(void)
{
	char *text = xstrdup(fabrex_plan_strerror_last());

	visible(text);
	return text;
}

/*
 * What a library would say of its file. Error: it would not load it at all;
 * the rest is told beside the result.
 */
static int judge_xml(struct ctl *c, const char *name, const char *format,
		     const char *text, size_t len)
{
	char *why;
	int r;

	if (strcmp(format, "nccl") && strcmp(format, "rccl"))
		return 0;
	r = fabrex_plan_nccl_check(text, len, format);
	if (!r)
		return 0;
	if (r == -E2BIG || r == -ENOMEM)
		return err_set(&c->err, -r, name, "%s: %s could not load it: "
			       "%s; choose fewer GPUs with --host or --devices",
			       name, format, fabrex_plan_strerror_last());
	why = last_words();
	fprintf(c->real_err, "fabrexctl: note: %s\n", why);
	free(why);
	return 0;
}

/* @format: enum fabrex_plan_format, and @word for it. */
static int deliver_graph(struct ctl *c, const char *name, const char *word,
			 const struct fabrex_plan_graph *g, int format)
{
	size_t len = 0;
	int r;
	char *text = graph_text(g, format, &len, &r);

	if (r)
		r = source_error(c, name, r);
	else
		r = judge_xml(c, name, word, text, len);
	if (r) {
		free(text);
		return r;
	}
	r = deliver(c, name, word, "text", text, len);
	if (!r)
		warn(c, g);
	return r;
}

/* ---- show, check --------------------------------------------------------- */

static int topology_show(struct ctl *c, int argc, char **argv)
{
	struct fabrex_plan_graph *g = NULL;
	struct fabrex_plan_graph_attr attr;
	const char *name;
	char count[64];
	int r = source_name(c, argc, argv, &name);

	if (!r)
		r = source_graph(c, name, &g);
	if (r)
		return r;
	c->doc = json_graph(g);
	if (!c->json) {
		attr = graph_attr(g);
		graph_count(g, count, sizeof(count));
		fprintf(c->out, "%s: %s, %u elements, %u directed links\n",
			attr.name, count, attr.nodes, attr.edges);
		graph_print(c->out, c->doc, IS_SET(c, WIDE), c->color);
	}
	fabrex_plan_graph_free(g);
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
	char *why;
	int r = 0;

	if (text && is_xml(text)) {
		r = fabrex_plan_nccl_check(text, len, name);
		rec_bool(c->doc, "valid", !r);
	} else {
		rec_put(c->doc, "valid", NULL);
	}
	if (r) {
		why = last_words();
		json_object_array_add(list, json_text(why));
		free(why);
	}
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
			 const struct fabrex_plan_graph *g, const char *text,
			 size_t len)
{
	char count[64];
	bool loads;

	graph_count(g, count, sizeof(count));
	c->doc = json_object_new_object();
	rec_str(c->doc, "source", name);
	rec_str(c->doc, "fabric", graph_attr(g).name);
	rec_bool(c->doc, "plannable", true);
	rec_int(c->doc, "gpus", graph_attr(g).ranks);
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
	struct fabrex_plan_graph *g = NULL;
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
	fabrex_plan_graph_free(g);
	free(text);
	return r;
}

/* ---- import, export ------------------------------------------------------ */

static int topology_import(struct ctl *c, int argc, char **argv)
{
	struct fabrex_plan_graph *g = NULL;
	const char *name;
	int r = source_name(c, argc, argv, &name);

	if (!r)
		r = source_graph(c, name, &g);
	if (!r)
		r = deliver_graph(c, name, "graph", g, FABREX_PLAN_GRAPH);
	fabrex_plan_graph_free(g);
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

static const struct format_info {
	const char *name;
	int format;		/* enum fabrex_plan_format; 0: a topology file */
} formats[] = {
	{ "rccl", FABREX_PLAN_RCCL },
	{ "nccl", FABREX_PLAN_NCCL },
	{ "graph", FABREX_PLAN_GRAPH },
	{ "topo", 0 },
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
	    format->format == FABREX_PLAN_GRAPH)
		return 0;
	r = ctl_open_any(c);
	if (r)
		return r < 0 ? r : 0;
	snprintf(host, sizeof(host), "%s", live_host(c));
	if (*host)
		c->arg[OPT_HOST] = host;
	return 0;
}

static int topology_export(struct ctl *c, int argc, char **argv)
{
	const struct format_info *format = find_format(c);
	struct fabrex_plan_graph *g = NULL;
	const char *name;
	int r;

	if (!format)
		return -EINVAL;
	r = source_name(c, argc, argv, &name);
	if (!r && !format->format)
		return export_wiring(c, name);
	if (!r)
		r = choose_host(c, name, format);
	if (!r)
		r = source_graph(c, name, &g);
	if (!r)
		r = deliver_graph(c, name, format->name, g, format->format);
	fabrex_plan_graph_free(g);
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

/* @text: what was drawn, or NULL with the failure @r. */
static int deliver_picture(struct ctl *c, const char *name, char *text,
			   size_t len, int r)
{
	return text ? deliver(c, name, "svg", "text", text, len)
		    : source_error(c, name, r);
}

static int draw_graph(struct ctl *c, const char *name,
		      const struct fabrex_plan_graph *g)
{
	size_t len = 0;
	int r;
	char *text = graph_text(g, FABREX_PLAN_SVG, &len, &r);

	return deliver_picture(c, name, text, len, r);
}

static int draw_plan(struct ctl *c, const char *name,
		     const struct fabrex_plan_graph *g, int collective,
		     enum loads loads)
{
	struct planned p = { 0 };
	size_t len = 0;
	uint32_t root;
	char *text;
	int r = source_root(c, g, collective, &root);

	if (!r)
		r = planned_make(c, name, g, collective, root, &p);
	if (!r && loads == LOADS_RINGS && !p.rings)
		r = err_set(&c->err, EINVAL, name, "%s: no rings: %s", name,
			    p.no_rings);
	if (!r) {
		text = plan_text(loads == LOADS_RINGS ? p.rings : p.optimal,
				 FABREX_PLAN_SVG, &len, &r);
		r = deliver_picture(c, name, text, len, r);
	}
	planned_free(&p);
	return r;
}

static int topology_draw(struct ctl *c, int argc, char **argv)
{
	int collective;
	struct fabrex_plan_graph *g = NULL;
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
		r = loads == LOADS_NONE ? draw_graph(c, name, g)
					: draw_plan(c, name, g, collective,
						    loads);
	fabrex_plan_graph_free(g);
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
