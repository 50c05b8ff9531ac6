// SPDX-License-Identifier: GPL-2.0-only
/* "topology design": the best wirings that given parts allow, and why. */
#include <stdlib.h>
#include <string.h>

#include "design.h"
#include "json.h"
#include "output.h"
#include "plan/design.h"
#include "source.h"
#include "table.h"

/* What links carry unless a file says otherwise; docs/topology.md. */
#define LINK_GBPS 27.0
#define MESH_GBPS 48.0

static int number(struct ctl *c, enum opt o, uint64_t otherwise, uint64_t min,
		  uint64_t max, uint32_t *out)
{
	const char *word = c->arg[o];
	uint64_t v = otherwise;

	if (!word && otherwise == UINT64_MAX)
		return err_usage(&c->err, option_info[o].name, "topology design: --%s is "
				 "missing; set the number", option_info[o].name);
	if (word && !parse_u64(word, min, max, &v))
		return err_usage(&c->err, word, "--%s: \"%s\" is no number "
				 "from %llu to %llu", option_info[o].name, word,
				 (unsigned long long)min,
				 (unsigned long long)max);
	*out = (uint32_t)v;
	return 0;
}

static int parse_parts(struct ctl *c, struct plan_parts *p, uint32_t *limit)
{
	const struct {
		enum opt o;
		uint64_t otherwise, min, max;
		uint32_t *out;
	} numbers[] = {
		{ OPT_SWITCHES, UINT64_MAX, 1, 6, &p->switches },
		{ OPT_SWITCH_PORTS, 6, 2, 64, &p->switch_ports },
		{ OPT_BOXES, UINT64_MAX, 1, 16, &p->boxes },
		{ OPT_UPLINKS, UINT64_MAX, 2, 4, &p->uplinks },
		{ OPT_GPUS, 8, 1, 256, &p->gpus },
		{ OPT_HOST_PORTS, UINT64_MAX, 1, 4, &p->host_ports },
		{ OPT_ISLS, 0, 0, 4096, &p->isls },
		{ OPT_LIMIT, 3, 1, 1000, limit },
	};
	size_t i;
	int r = 0;

	*p = (struct plan_parts){ .link_gbps = LINK_GBPS,
				  .mesh_gbps = MESH_GBPS,
				  .root_complex_gbps = LINK_GBPS };
	for (i = 0; i < ARRAY_SIZE(numbers) && !r; i++)
		r = number(c, numbers[i].o, numbers[i].otherwise,
			   numbers[i].min, numbers[i].max, numbers[i].out);
	return r;
}

static json_object *records(const struct plan_wiring *w, uint32_t n)
{
	json_object *rows = json_object_new_array();
	uint32_t i;

	for (i = 0; i < n; i++) {
		json_object *o = json_object_new_object();

		rec_int(o, "place", i + 1);
		rec_double(o, "bound_busbw_gbps", w[i].bound, 3);
		rec_double(o, "optimal_busbw_gbps", w[i].optimal, 3);
		if (w[i].ring > 0)
			rec_double(o, "ring_busbw_gbps", w[i].ring, 3);
		else
			rec_put(o, "ring_busbw_gbps", NULL);
		rec_str(o, "why", w[i].why);
		rec_str(o, "topology", w[i].topology);
		json_object_array_add(rows, o);
	}
	return rows;
}

static void print(struct ctl *c, const struct plan_wiring *w, uint32_t n,
		  uint64_t considered)
{
	static const struct column columns[] = {
		{ "PLACE", "place", F_NUMBER, false },
		{ "BOUND", "bound_busbw_gbps", F_NUMBER, false },
		{ "OPTIMAL", "optimal_busbw_gbps", F_NUMBER, false },
		{ "RINGS", "ring_busbw_gbps", F_NUMBER, false },
		{ NULL, NULL, F_TEXT, false }
	};
	json_object *rows = NULL;
	uint32_t i;

	json_object_object_get_ex(c->doc, "wirings", &rows);
	fprintf(c->out, "%s, busbw in GB/s; %llu wirings were considered\n\n",
		rec_get_str(c->doc, "collective"),
		(unsigned long long)considered);
	table_print(c->out, rows, columns, true, c->color);
	for (i = 0; i < n; i++)
		fprintf(c->out, "\n%u:\n%s", i + 1, w[i].why);
	if (!IS_SET(c, OUTPUT))
		fprintf(c->out, "\n# the first one\n%s", w[0].topology);
}

static int report(struct ctl *c, enum plan_collective collective,
		  const struct plan_wiring *w, uint32_t n, uint64_t considered)
{
	struct outputs o = { 0 };
	int r;

	c->doc = json_object_new_object();
	rec_str(c->doc, "collective", plan_collective_name(collective));
	rec_int(c->doc, "considered", (int64_t)considered);
	rec_str(c->doc, "output", c->arg[OPT_OUTPUT]);
	rec_put(c->doc, "wirings", records(w, n));
	print(c, w, n, considered);
	if (!IS_SET(c, OUTPUT))
		return 0;
	r = outputs_add(c, &o, c->arg[OPT_OUTPUT], xstrdup(w[0].topology),
			strlen(w[0].topology));
	if (!r)
		r = outputs_commit(c, &o);
	outputs_free(&o);
	return r;
}

int topology_design(struct ctl *c, int argc, char **argv)
{
	enum plan_collective collective;
	struct plan_wiring *w = NULL;
	struct plan_error e = { 0 };
	struct plan_parts parts;
	uint64_t considered = 0;
	uint32_t n = 0, limit;
	int r;

	if (argc)
		return err_usage(&c->err, argv[0], "topology design: \"%s\" is "
				 "too much; parts are given with options",
				 argv[0]);
	r = source_collective(c, &collective);
	if (!r)
		r = parse_parts(c, &parts, &limit);
	if (r)
		return r;
	if (plan_design(&parts, collective, limit, &w, &n, &considered, &e))
		return source_error(c, NULL, &e);
	r = report(c, collective, w, n, considered);
	plan_wirings_free(w, n);
	return r;
}
