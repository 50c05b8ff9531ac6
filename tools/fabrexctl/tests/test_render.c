// SPDX-License-Identifier: GPL-2.0-only
/*
 * Renderers: JSON, tables and the tree say the same; filters ask for no more
 * than they need; nothing is printed when something fails.
 */
#include <stdlib.h>

#include "columns.h"
#include "ctl.h"
#include "fake.h"
#include "json.h"
#include "run_line.h"

static json_object *parse(const char *text)
{
	json_object *o = json_tokener_parse(text);

	ok(o, "valid JSON");
	return o ? o : json_object_new_object();
}

static json_object *array(json_object *doc, const char *key)
{
	static json_object *nothing;
	json_object *v = NULL;

	if (!nothing)
		nothing = json_object_new_array();
	json_object_object_get_ex(doc, key, &v);
	return v ? v : nothing;
}

/* Every key has a column, every column a key. */
static void columns_cover(json_object *rows, const struct column *columns,
			  const char *noun)
{
	json_object *row = json_object_array_get_idx(rows, 0);
	const struct column *col;
	unsigned int keys = 0, missing = 0;

	json_object_object_foreach(row, key, value) {
		(void)value;
		keys++;
		for (col = columns; col->title; col++)
			if (!strcmp(col->key, key))
				break;
		missing += !col->title;
	}
	for (col = columns; col->title; col++)
		missing += !json_object_object_get_ex(row, col->key, NULL);
	ok(keys > 2 && !missing, "%s: %u keys, all of them columns", noun,
	   keys);
}

/* Each value of each record stands in the table, in the record's line. */
static void table_says(json_object *rows, const struct column *columns,
		       const char *table, const char *noun)
{
	char *copy = xstrdup(table), *save, *line, cell[128];
	size_t i, n = json_object_array_length(rows), missing = 0;
	const struct column *col;
	json_object *v;

	line = strtok_r(copy, "\n", &save);
	for (i = 0; i < n; i++) {
		line = strtok_r(NULL, "\n", &save);
		for (col = columns; line && col->title; col++) {
			json_object *row = json_object_array_get_idx(rows, i);

			json_object_object_get_ex(row, col->key, &v);
			format_value(cell, sizeof(cell), v, col->format);
			missing += !strstr(line, cell);
		}
		missing += !line;
	}
	ok(n && !missing && !strtok_r(NULL, "\n", &save),
	   "%s: the table has the %zu records of the JSON", noun, n);
	free(copy);
}

static void same_data(struct fake *f, const char *noun,
		      const struct column *columns)
{
	char line[64];
	struct run json, table;
	json_object *doc;

	snprintf(line, sizeof(line), "list %s --json", noun);
	json = run_line(&f->b, line);
	snprintf(line, sizeof(line), "list %s --wide", noun);
	table = run_line(&f->b, line);
	ok(!json.code && !table.code, "list %s", noun);
	doc = parse(json.out);
	columns_cover(array(doc, noun), columns, noun);
	table_says(array(doc, noun), columns, table.out, noun);
	json_object_put(doc);
	run_free(&json);
	run_free(&table);
}

static void all_nouns(void)
{
	struct fake *f = fabric_small();

	fake_bind(f, "columba1.gpu0", "a.0");
	fake_bind(f, "columba2.nvme0", "b.0");
	same_data(f, "switches", switch_columns);
	same_data(f, "ports", port_columns);
	same_data(f, "hosts", host_columns);
	same_data(f, "appliances", appliance_columns);
	same_data(f, "endpoints", endpoint_columns);
	same_data(f, "fports", fport_columns);
	fake_free(f);
}

static void tree(void)
{
	struct fake *f = fabric_small();
	struct run json, text;
	json_object *doc, *eps;
	size_t i, missing = 0;

	fake_bind(f, "columba1.gpu0", "a.0");
	text = run_line(&f->b, "list");
	json = run_line(&f->b, "list -j");
	has(text.out, "fabric test, seen through a.0");
	has(text.out, "1 a.0  up  16 GT/s x16  host a (this one)");
	has(text.out, "columba1.gpu0  gpu 64M  bound  -> a.0 slot 2");
	has(text.out, "appliance columba1, cascade");
	has(text.out, "switch link to draco2:6");
	has(text.out, "down  -  unused");
	doc = parse(json.out);
	eps = array(doc, "endpoints");
	for (i = 0; i < json_object_array_length(eps); i++)
		missing += !strstr(text.out, rec_get_str(
				json_object_array_get_idx(eps, i), "name"));
	ok(i == 14 && !missing, "the tree has all %zu endpoints", i);
	ok(json_object_array_length(array(doc, "ports")) == 11, "11 ports");
	hasnt(text.out, "\033[");
	json_object_put(doc);
	run_free(&text);
	text = run_line(&f->b, "list --color always");
	has(text.out, "\033[32mbound\033[0m");
	run_free(&text);
	run_free(&json);
	fake_free(f);
}

/* A port on a bridge says what moves its payload, and what the peer reaches. */
static void bridge(void)
{
	struct fake *f = fabric_small();
	struct fport *p = &f->m->fports[0];
	struct run text;

	snprintf(p->driver, sizeof(p->driver), "fabrex_ntb");
	snprintf(p->bridge, sizeof(p->bridge), "ntb_hw_switchtec");
	snprintf(p->mode, sizeof(p->mode), "bounced");
	snprintf(p->engine, sizeof(p->engine), "dma0chan0");
	p->protection = FABREX_PROTECTION_TRUST;
	text = run_line(&f->b, "list");
	has(text.out, "seen through a.0\n"
	    "  fabrex_ntb on ntb_hw_switchtec: bounced, payload moved by dma0chan0\n"
	    "  no IOMMU keeps root of the peer host out of memory here; it is trusted\n");
	hasnt(text.out, "IOMMU group");
	run_free(&text);
	p->protection = FABREX_PROTECTION_IOMMU;
	p->group_others = 2;
	snprintf(p->group, sizeof(p->group), "7");
	snprintf(p->group_names[0], sizeof(p->group_names[0]), "0000:01:00.0");
	snprintf(p->group_names[1], sizeof(p->group_names[1]), "0000:01:00.2");
	text = run_line(&f->b, "list");
	has(text.out, "  an IOMMU translates what comes through the bridge\n"
	    "  it shares IOMMU group 7 with 2 other devices: 0000:01:00.0,0000:01:00.2\n");
	run_free(&text);
	same_data(f, "fports", fport_columns);
	text = run_line(&f->b, "list fports --json");
	has(text.out, "\"group_devices\":[");
	has(text.out, "\"protection\":\"iommu\"");
	run_free(&text);
	fake_free(f);
}

static size_t count(const char *text, const char *part)
{
	size_t n = 0;

	while ((text = strstr(text, part))) {
		n++;
		text += strlen(part);
	}
	return n;
}

static void expect(struct fake *f, const char *line, size_t n, const char *what)
{
	struct run r = run_line(&f->b, line);

	ok(!r.code && count(r.out, "\"name\":") == n, "%s: %zu of %zu (%s)",
	   line, count(r.out, "\"name\":"), n, what);
	run_free(&r);
}

static void filters(void)
{
	struct fake *f = fabric_small();

	fake_bind(f, "columba1.gpu0", "a.0");
	fake_bind(f, "columba1.gpu1", "a.0");
	fake_bind(f, "columba2.nvme0", "b.0");
	expect(f, "list endpoints --free -j", 11, "free");
	expect(f, "list endpoints --bound -j", 3, "bound");
	expect(f, "list endpoints --kind nvme -j", 2, "kind");
	expect(f, "list endpoints --state bound -k gpu -j", 2, "both");
	expect(f, "list ports --kind isl -j", 2, "port kind");
	expect(f, "list hosts --state down -j", 1, "host state");
	expect(f, "list ports --appliance columba1 -j", 2, "uplinks");
	expect(f, "list endpoint -j", 14, "singular");
	f->whole_dumps = f->dumps = 0;
	expect(f, "list endpoints --host a -j", 2, "by host");
	ok(f->dumps == 1 && !f->whole_dumps, "in one filtered dump");
	f->dumps = 0;
	expect(f, "list endpoints --appliance columba2 -j", 6, "by appliance");
	expect(f, "list ports --switch draco2 -j", 5, "by switch");
	ok(f->dumps == 2 && !f->whole_dumps, "in filtered dumps");
	fake_free(f);
}

static void filtered_names(void)
{
	struct fake *f = fabric_small();
	struct run r;

	fake_bind(f, "columba2.gpu0", "c.0");
	r = run_line(&f->b, "list endpoints --host c -j");
	has(r.out, "\"appliance\":\"columba2\"");
	has(r.out, "\"uplink\":\"draco2:4\"");
	has(r.out, "\"switch\":\"draco2\"");
	has(r.out, "\"host\":\"c\"");
	has(r.out, "\"port\":\"c.0\"");
	run_free(&r);
	fake_free(f);
}

static void refusals(void)
{
	static const struct {
		const char *line;
		int code;
		const char *says;
	} cases[] = {
		{ "list endpoint_s", EXIT_USAGE, "did you mean \"endpoints\"" },
		{ "list xyz", EXIT_USAGE, "there are switches" },
		{ "list ports hosts", EXIT_USAGE, "one kind at a time" },
		{ "list hosts --host a", EXIT_USAGE, "--host does not apply to "
		  "hosts" },
		{ "list --free", EXIT_USAGE, "name what is to be listed" },
		{ "list endpoints --free --host a", EXIT_USAGE, "excludes" },
		{ "list endpoints --kind gpuu", EXIT_USAGE, "gpu, nvme, nic" },
		{ "list ports --state bound", EXIT_USAGE, "down, up, disabled" },
		{ "list endpoints --host d", EXIT_NOT_FOUND, "did you mean" },
		{ "list endpoints --hosst a", EXIT_USAGE, "mean --host?" },
		{ "list endpoints --host", EXIT_USAGE, "needs a value" },
		{ "list -x", EXIT_USAGE, "unknown option -x" },
		{ "list --fport b.0", EXIT_NO_DEVICE, "no fabric port \"b.0\"" },
		{ "list --color blue", EXIT_USAGE, "auto, always, never" },
		{ "lsit", EXIT_USAGE, "did you mean \"list\"?" },
		{ "''", EXIT_USAGE, "no command \"\"" },
		{ "version 2", EXIT_USAGE, "too much" },
		{ "help nothing", EXIT_USAGE, "no command \"nothing\"" },
		{ "completion zsh", EXIT_USAGE, "there is bash" },
	};
	struct fake *f = fabric_small();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct run r = run_line(&f->b, cases[i].line);
		char line[128];
		json_object *doc, *e;

		ok(r.code == cases[i].code && !*r.out, "\"%s\" exits with %d "
		   "(%d)", cases[i].line, cases[i].code, r.code);
		has(r.err, cases[i].says);
		run_free(&r);
		snprintf(line, sizeof(line), "--json %s", cases[i].line);
		r = run_line(&f->b, line);
		doc = parse(r.out);
		e = array(doc, "error");
		ok(r.code == cases[i].code && !*r.err &&
		   json_object_is_type(e, json_type_object) &&
		   rec_get_num(e, "exit_code") == r.code &&
		   rec_get_str(e, "errno") && rec_get_str(e, "message"),
		   "and as JSON");
		json_object_put(doc);
		run_free(&r);
	}
	fake_free(f);
}

static void no_module(void)
{
	struct fake *f = fabric_small();
	struct run r;

	f->no_module = 1;
	r = run_line(&f->b, "list endpoints");
	ok(r.code == EXIT_NO_DEVICE && !*r.out, "no module: %d", r.code);
	has(r.err, "not loaded; \"fabrexctl list\" shows this machine");
	run_free(&r);
	r = run_line(&f->b, "version --json");
	ok(r.code == 0, "version needs none");
	has(r.out, "\"netlink_family\":\"fabrex\"");
	run_free(&r);
	r = run_line(&f->b, "help list");
	ok(r.code == 0, "help neither");
	has(r.out, "--appliance APPLIANCE");
	run_free(&r);
	r = run_line(&f->b, "compose --help");
	has(r.out, "usage: fabrexctl compose ENDPOINT");
	run_free(&r);
	fake_free(f);
	f = fake_new();
	r = run_line(&f->b, "list endpoints");
	ok(r.code == EXIT_NO_DEVICE, "no port: %d", r.code);
	has(r.err, "no fabric port");
	run_free(&r);
	r = run_line(&f->b, "list --fport a.0");
	ok(r.code == EXIT_NO_DEVICE, "a port that was asked for: %d", r.code);
	run_free(&r);
	fake_free(f);
}

static void large(void)
{
	struct fake *f = fabric_large();
	double start = now(), seconds;
	struct run r;

	r = run_line(&f->b, "list --json");
	seconds = now() - start;
	ok(!r.code && count(r.out, "\"pci_id\":") == 1024,
	   "1,024 endpoints as JSON");
	ok(f->dumps == 1 && f->gets == 0, "in one dump");
	ok(seconds < 5, "in %.3f s", seconds);
	run_free(&r);
	r = run_line(&f->b, "list endpoints --wide");
	ok(count(r.out, "\n") == 1025, "and as a table");
	run_free(&r);
	fake_free(f);
}

static void full_disk(void)
{
	struct fake *f = fabric_small();
	FILE *full = fopen("/dev/full", "w");
	char a0[] = "fabrexctl", a1[] = "list", *argv[] = { a0, a1, NULL };
	char *text = NULL;
	size_t len;
	FILE *err = open_memstream(&text, &len);

	ok(ctl_run(&f->b, 2, argv, full, err) == EXIT_FAILED,
	   "what cannot be written is an error");
	fclose(err);
	has(text, "could not write");
	free(text);
	fclose(full);
	fake_free(f);
}

int main(void)
{
	all_nouns();
	tree();
	bridge();
	filters();
	filtered_names();
	refusals();
	no_module();
	large();
	full_disk();
	return tap_done();
}
