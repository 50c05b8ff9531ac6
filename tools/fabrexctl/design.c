// SPDX-License-Identifier: GPL-2.0-only
/* "topology design": the best wirings that given parts allow, and why. */
#include <stdlib.h>
#include <string.h>

#include "design.h"
#include "json.h"
#include "output.h"
#include "source.h"
#include "table.h"

/* What links carry unless a file says otherwise; docs/topology.md. */
#define LINK_MBPS 27000
#define MESH_MBPS 48000

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

static int parse_parts(struct ctl *c, struct fabrex_plan_inventory *p)
{
	const struct {
		enum opt o;
		uint64_t otherwise, min, max;
		uint32_t *out;
	} numbers[] = {
		{ OPT_SWITCHES, UINT64_MAX, 1, 6, &p->switches },
		{ OPT_SWITCH_PORTS, 6, 2, 64, &p->switch_ports },
		{ OPT_BOXES, UINT64_MAX, 1, 16, &p->appliances },
		{ OPT_UPLINKS, UINT64_MAX, 2, 4, &p->uplinks },
		{ OPT_GPUS, 8, 1, 256, &p->gpus },
		{ OPT_HOST_PORTS, UINT64_MAX, 1, 4, &p->host_ports },
		{ OPT_ISLS, 0, 0, 4096, &p->isls },
		{ OPT_LIMIT, 3, 1, 1000, &p->designs },
	};
	size_t i;
	int r = 0;

	*p = (struct fabrex_plan_inventory){ .link = LINK_MBPS,
					     .mesh = MESH_MBPS,
					     .root_complex = LINK_MBPS };
	for (i = 0; i < ARRAY_SIZE(numbers) && !r; i++)
		r = number(c, numbers[i].o, numbers[i].otherwise,
			   numbers[i].min, numbers[i].max, numbers[i].out);
	return r;
}

static struct fabrex_plan_design design(const struct fabrex_plan_designs *d,
					uint32_t index)
{
	struct fabrex_plan_design v = { 0 };

	fabrex_plan_design_query(d, index, &v, sizeof(v));
	return v;
}

static json_object *records(const struct fabrex_plan_designs *d)
{
	json_object *rows = json_object_new_array();
	uint32_t i, n = fabrex_plan_designs_count(d, NULL);

	for (i = 0; i < n; i++) {
		const struct fabrex_plan_design w = design(d, i);
		json_object *o = json_object_new_object();

		rec_int(o, "place", i + 1);
		rec_double(o, "bound_busbw_gbps", w.bound, 3);
		rec_double(o, "optimal_busbw_gbps", w.optimal, 3);
		if (w.rings > 0)
			rec_double(o, "ring_busbw_gbps", w.rings, 3);
		else
			rec_put(o, "ring_busbw_gbps", NULL);
		rec_str(o, "why", w.reason);
		rec_str(o, "topology", w.topology);
		json_object_array_add(rows, o);
	}
	return rows;
}

static void print(struct ctl *c, const struct fabrex_plan_designs *d)
{
	static const struct column columns[] = {
		{ "PLACE", "place", F_NUMBER, false },
		{ "BOUND", "bound_busbw_gbps", F_NUMBER, false },
		{ "OPTIMAL", "optimal_busbw_gbps", F_NUMBER, false },
		{ "RINGS", "ring_busbw_gbps", F_NUMBER, false },
		{ NULL, NULL, F_TEXT, false }
	};
	json_object *rows = NULL;
	uint64_t considered;
	uint32_t i, n = fabrex_plan_designs_count(d, &considered);

	json_object_object_get_ex(c->doc, "wirings", &rows);
	fprintf(c->out, "%s, busbw in GB/s; %llu wirings were considered\n\n",
		rec_get_str(c->doc, "collective"),
		(unsigned long long)considered);
	table_print(c->out, rows, columns, true, c->color);
	for (i = 0; i < n; i++)
		fprintf(c->out, "\n%u:\n%s", i + 1, design(d, i).reason);
	if (!IS_SET(c, OUTPUT))
		fprintf(c->out, "\n# the first one\n%s",
			design(d, 0).topology);
}

static int report(struct ctl *c, int collective,
		  const struct fabrex_plan_designs *d)
{
	struct outputs o = { 0 };
	uint64_t considered;
	const char *text;
	int r;

	fabrex_plan_designs_count(d, &considered);
	c->doc = json_object_new_object();
	rec_str(c->doc, "collective", fabrex_plan_collective_str(collective));
	rec_int(c->doc, "considered", (int64_t)considered);
	rec_str(c->doc, "output", c->arg[OPT_OUTPUT]);
	rec_put(c->doc, "wirings", records(d));
	print(c, d);
	if (!IS_SET(c, OUTPUT))
		return 0;
	text = design(d, 0).topology;
	r = outputs_add(c, &o, c->arg[OPT_OUTPUT], xstrdup(text),
			strlen(text));
	if (!r)
		r = outputs_commit(c, &o);
	outputs_free(&o);
	return r;
}

int topology_design(struct ctl *c, int argc, char **argv)
{
	struct fabrex_plan_inventory parts;
	struct fabrex_plan_designs *d;
	int collective, r;

	if (argc)
		return err_usage(&c->err, argv[0], "topology design: \"%s\" is "
				 "too much; parts are given with options",
				 argv[0]);
	r = source_collective(c, &collective);
	if (!r)
		r = parse_parts(c, &parts);
	if (r)
		return r;
	r = fabrex_plan_design(&parts, sizeof(parts), collective, &d);
	if (r)
		return source_error(c, NULL, r);
	r = report(c, collective, d);
	fabrex_plan_designs_free(d);
	return r;
}
