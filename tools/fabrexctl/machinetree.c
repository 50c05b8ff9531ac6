// SPDX-License-Identifier: GPL-2.0-only
/*
 * This machine's PCI tree, drawn from the records of machine.c: switches, what
 * computes, stores and connects, and the bridges above. The rest is counted, and
 * drawn with --wide.
 */
#include <langinfo.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "machine.h"
#include "table.h"
#include "util.h"

struct row {
	json_object *o;
	const char *name;
	size_t up;		/* its parent's index; NONE: a root bus */
	bool shown;
	unsigned int empty;	/* ports below it that are not shown */
	unsigned int rest;	/* other functions right below it */
};

#define NONE SIZE_MAX

struct drawing {
	FILE *f;
	bool wide, color;
	struct row *v;
	size_t n;
	const char *tee, *end, *bar;
};

/* ---- what is shown ------------------------------------------------------- */

static bool is_kind(const struct row *r, const char *kind)
{
	return !strcmp(rec_get_str(r->o, "kind"), kind);
}

static bool is_interesting(const struct row *r)
{
	static const char *const kinds[] = {
		"gpu", "nvme", "nic", "fpga", "upstream-port", "ntb", "dma",
		"management", "fport", NULL
	};
	int i;

	if (rec_get_str(r->o, "physical_function"))
		return false;
	if (strcmp(rec_get_str(r->o, "state"), "ok") &&
	    strcmp(rec_get_str(r->o, "state"), "asleep"))
		return true;
	for (i = 0; kinds[i]; i++)
		if (is_kind(r, kinds[i]))
			return true;
	return false;
}

static bool is_port(const struct row *r)
{
	return is_kind(r, "root-port") || is_kind(r, "downstream-port");
}

/* Records have each function before what is below it. */
static void find_parents(struct drawing *d)
{
	json_object *index = json_object_new_object(), *at;
	const char *up;
	size_t i;

	for (i = 0; i < d->n; i++) {
		up = rec_get_str(d->v[i].o, "parent");
		d->v[i].up = up && json_object_object_get_ex(index, up, &at) ?
			     (size_t)json_object_get_int64(at) : NONE;
		json_object_object_add(index, d->v[i].name,
				       json_object_new_int64((int64_t)i));
	}
	json_object_put(index);
}

/* Return: how many are not. */
static size_t choose(struct drawing *d)
{
	size_t i, hidden = 0;

	for (i = d->n; i-- > 0;) {
		struct row *r = &d->v[i];

		if (d->wide || is_interesting(r))
			r->shown = true;
		if (r->shown && r->up != NONE)
			d->v[r->up].shown = true;
	}
	for (i = 0; i < d->n; i++) {
		struct row *r = &d->v[i];
		bool vf = rec_get_str(r->o, "physical_function");

		if (r->shown)
			continue;
		hidden++;
		if (r->up == NONE || !d->v[r->up].shown)
			continue;
		d->v[r->up].empty += is_port(r);
		d->v[r->up].rest += !is_port(r) && !vf;
	}
	return hidden;
}

/* ---- lines --------------------------------------------------------------- */

static const char *kind_text(const struct row *r)
{
	const char *kind = rec_get_str(r->o, "kind");
	static const char *const texts[][2] = {
		{ "upstream-port", "switch" }, { "root-port", "root port" },
		{ "downstream-port", "port" }, { "host-bridge", "host bridge" },
		{ "gpu", "GPU" }, { "nvme", "drive" }, { "nic", "NIC" },
		{ "fpga", "FPGA" }, { "ntb", "NTB" }, { "dma", "DMA engine" },
		{ "fport", "fabric port" }, { "other", "" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(texts); i++)
		if (!strcmp(kind, texts[i][0]))
			return texts[i][1];
	return kind;
}

static void put_link(struct drawing *d, const struct row *r)
{
	json_object *link = NULL, *most = NULL;
	char now[32], can[32];

	json_object_object_get_ex(r->o, "link", &link);
	json_object_object_get_ex(r->o, "attainable", &most);
	if (link) {
		format_value(now, sizeof(now), link, F_LINK);
		fprintf(d->f, "  %s", now);
	}
	if (most && rec_get_flag(r->o, "slow")) {
		format_value(can, sizeof(can), most, F_LINK);
		fprintf(d->f, " (both ends can do %s)", can);
	}
}

static void put_state(struct drawing *d, const struct row *r)
{
	const char *state = rec_get_str(r->o, "state");
	const char *acs = rec_get_str(r->o, "acs");
	const char *on = d->color ? "\033[31m" : "";

	if (!strcmp(state, "gone"))
		fprintf(d->f, "  %sdoes not answer%s", on, *on ? COLOR_OFF : "");
	else if (strcmp(state, "ok"))
		fprintf(d->f, "  %s", state);
	if (acs && !strcmp(acs, "redirect"))
		fprintf(d->f, "  ACS redirects (%s)",
			rec_get_str(r->o, "acs_control"));
}

static void put_device(struct drawing *d, const struct row *r)
{
	const char *driver = rec_get_str(r->o, "driver");
	int64_t vfs = rec_get_num(r->o, "virtual_functions");

	if (rec_get_str(r->o, "physical_function"))
		fprintf(d->f, "  virtual function of %s",
			rec_get_str(r->o, "physical_function"));
	if (driver && !is_port(r) && !is_kind(r, "upstream-port"))
		fprintf(d->f, "  %s", driver);
	else if (!driver && is_interesting(r) && !is_kind(r, "upstream-port"))
		fputs("  no driver", d->f);
	if (vfs)
		fprintf(d->f, "  %d virtual function%s", (int)vfs,
			vfs == 1 ? "" : "s");
	if (rec_get_str(r->o, "slot"))
		fprintf(d->f, "  slot %s", rec_get_str(r->o, "slot"));
}

static void put_row(struct drawing *d, const struct row *r)
{
	const char *model = rec_get_str(r->o, "model");
	const char *id = rec_get_str(r->o, "pci_id");
	const char *kind = kind_text(r);

	fprintf(d->f, "%s%s%s", r->name, *kind ? "  " : "", kind);
	if (!is_port(r) || d->wide)
		fprintf(d->f, "  %s", model ? model : id ? id : "?");
	if (*kind == '\0' && !model)
		fprintf(d->f, " class %s", rec_get_str(r->o, "pci_class"));
	put_link(d, r);
	put_device(d, r);
	put_state(d, r);
	fputc('\n', d->f);
}

/* ---- branches ------------------------------------------------------------ */

static void put_rest(struct drawing *d, const struct row *r, const char *indent)
{
	if (!r->empty && !r->rest)
		return;
	fprintf(d->f, "%s%s", indent, d->end);
	if (r->empty)
		fprintf(d->f, "%u port%s with nothing below%s", r->empty,
			r->empty == 1 ? "" : "s", r->rest ? ", " : "");
	if (r->rest)
		fprintf(d->f, "%u other function%s", r->rest,
			r->rest == 1 ? "" : "s");
	fputc('\n', d->f);
}

static bool is_child(const struct drawing *d, size_t i, size_t up,
		     const char *host)
{
	const char *own = rec_get_str(d->v[i].o, "host_bridge");

	return d->v[i].shown && d->v[i].up == up &&
	       (up != NONE || !strcmp(own ? own : "", host));
}

static void put_children(struct drawing *d, size_t up, const char *host,
			 const char *indent);

static void put_branch(struct drawing *d, size_t i, const char *indent,
		       bool last)
{
	char *deeper = xasprintf("%s%s", indent, last ? "   " : d->bar);

	fprintf(d->f, "%s%s", indent, last ? d->end : d->tee);
	put_row(d, &d->v[i]);
	put_children(d, i, "", deeper);
	free(deeper);
}

/* A function's place in the records is before what is below it. */
static void put_children(struct drawing *d, size_t up, const char *host,
			 const char *indent)
{
	const struct row *r = up == NONE ? NULL : &d->v[up];
	size_t i, before = NONE;

	for (i = up == NONE ? 0 : up + 1; i < d->n; i++) {
		if (!is_child(d, i, up, host))
			continue;
		if (before != NONE)
			put_branch(d, before, indent, false);
		before = i;
	}
	if (before != NONE)
		put_branch(d, before, indent, !r || (!r->empty && !r->rest));
	if (r)
		put_rest(d, r, indent);
}

static void put_host(struct drawing *d, size_t first)
{
	const char *host = rec_get_str(d->v[first].o, "host_bridge");
	json_object *node = NULL;

	json_object_object_get_ex(d->v[first].o, "numa_node", &node);
	fprintf(d->f, "%s", host ? host : "not below any host bridge");
	if (node)
		fprintf(d->f, "  NUMA node %d", json_object_get_int(node));
	fputc('\n', d->f);
	put_children(d, NONE, host ? host : "", "");
}

/* Host bridges as they come; one whose functions are all hidden is left out. */
static void put_hosts(struct drawing *d)
{
	json_object *seen = json_object_new_object();
	size_t i;

	for (i = 0; i < d->n; i++) {
		const char *host = rec_get_str(d->v[i].o, "host_bridge");

		if (!d->v[i].shown || d->v[i].up != NONE ||
		    json_object_object_get_ex(seen, host ? host : "", NULL))
			continue;
		json_object_object_add(seen, host ? host : "", NULL);
		put_host(d, i);
	}
	json_object_put(seen);
}

static void put_head(struct drawing *d, json_object *doc)
{
	const char *count = rec_get_str(doc, "machine");
	const char *reason = rec_get_str(doc, "no_fabric");

	fprintf(d->f, "this machine: %s%s%s\n", count ? count :
		"no switch, GPU, drive or NIC", reason ? "; no fabric: " : "",
		reason ? reason : "");
}

static void put_notes(struct drawing *d, json_object *doc, size_t hidden)
{
	json_object *notes = NULL;
	size_t i, n;

	json_object_object_get_ex(doc, "notes", &notes);
	n = json_object_array_length(notes);
	if (hidden)
		fprintf(d->f, "%zu function%s not shown: --wide shows all\n",
			hidden, hidden == 1 ? " is" : "s are");
	for (i = 0; i < n; i++)
		fprintf(d->f, "note: %s\n", json_object_get_string(
			json_object_array_get_idx(notes, i)));
	fputs("\"fabrexctl doctor\" says what can be done on this machine, "
	      "\"fabrexctl p2p\" which devices reach each other\n", d->f);
}

void machine_draw(FILE *f, json_object *doc, bool wide, bool color)
{
	bool utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	struct drawing d = {
		.f = f, .wide = wide, .color = color,
		.tee = utf8 ? "\u251c\u2500 " : "|- ",
		.end = utf8 ? "\u2514\u2500 " : "`- ",
		.bar = utf8 ? "\u2502  " : "|  ",
	};
	json_object *rows = NULL;
	size_t i, hidden;

	json_object_object_get_ex(doc, "devices", &rows);
	d.n = json_object_array_length(rows);
	d.v = xcalloc(d.n + 1, sizeof(*d.v));
	for (i = 0; i < d.n; i++) {
		d.v[i].o = json_object_array_get_idx(rows, i);
		d.v[i].name = rec_get_str(d.v[i].o, "pci_name");
	}
	find_parents(&d);
	hidden = choose(&d);
	put_head(&d, doc);
	put_hosts(&d);
	put_notes(&d, doc, hidden);
	free(d.v);
}
