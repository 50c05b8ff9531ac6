// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tree: fabric, switches, ports, what they lead to, endpoints. Records
 * are grouped by parent name once, so it takes time in proportion to them.
 */
#include <langinfo.h>
#include <string.h>

#include "json.h"
#include "table.h"
#include "tree.h"

struct tree {
	FILE *f;
	bool color;
	json_object *ports;	/* arrays of records, by switch */
	json_object *endpoints;	/* by uplink */
	json_object *hosts;	/* record, by name */
	json_object *appliances;
	const char *tee, *end, *bar;
};

/* Array of @all that have @by in common, as a member of the result. */
static json_object *group(json_object *all, const char *by)
{
	json_object *groups = json_object_new_object(), *list;
	size_t i, n = json_object_array_length(all);

	for (i = 0; i < n; i++) {
		json_object *row = json_object_array_get_idx(all, i);
		const char *name = rec_get_str(row, by);

		if (!name)
			continue;
		if (!json_object_object_get_ex(groups, name, &list)) {
			list = json_object_new_array();
			rec_put(groups, name, list);
		}
		json_object_array_add(list, json_object_get(row));
	}
	return groups;
}

static json_object *index_by_name(json_object *all)
{
	json_object *index = json_object_new_object();
	size_t i, n = json_object_array_length(all);

	for (i = 0; i < n; i++) {
		json_object *row = json_object_array_get_idx(all, i);

		json_object_object_add(index, rec_get_str(row, "name"),
				       json_object_get(row));
	}
	return index;
}

static json_object *member(json_object *o, const char *key)
{
	json_object *v = NULL;

	if (key)
		json_object_object_get_ex(o, key, &v);
	return v;
}

static size_t length(json_object *array)
{
	return array ? json_object_array_length(array) : 0;
}

static void print_state(struct tree *t, const char *state)
{
	const char *on = t->color ? state_color(state) : "";

	fprintf(t->f, "%s%s%s", on, state, *on ? COLOR_OFF : "");
}

static void print_branch(struct tree *t, const char *indent, bool last)
{
	fprintf(t->f, "%s%s", indent, last ? t->end : t->tee);
}

static void print_endpoint(struct tree *t, json_object *ep)
{
	const char *pci = rec_get_str(ep, "pci_name");
	const char *driver = rec_get_str(ep, "driver");
	char size[32];

	format_value(size, sizeof(size), member(ep, "size"), F_SIZE);
	fprintf(t->f, "%s  %s %s  ", rec_get_str(ep, "name"),
		rec_get_str(ep, "kind"), size);
	print_state(t, rec_get_str(ep, "state"));
	if (rec_get_str(ep, "port"))
		fprintf(t->f, "  -> %s slot %d", rec_get_str(ep, "port"),
			(int)rec_get_num(ep, "slot"));
	if (pci)
		fprintf(t->f, "  %s  %s", pci,
			driver ? driver : "no driver");
	fputc('\n', t->f);
}

/* What a port leads to, in words. */
static void print_neighbour(struct tree *t, json_object *port)
{
	const char *kind = rec_get_str(port, "kind");
	const char *to = rec_get_str(port, "leads_to");
	json_object *o;

	if (!strcmp(kind, "host")) {
		o = member(t->hosts, to);
		fprintf(t->f, "host %s", to ? to : "?");
		if (o && rec_get_flag(o, "local"))
			fputs(" (this one)", t->f);
	} else if (!strcmp(kind, "uplink")) {
		o = member(t->appliances, to);
		fprintf(t->f, "appliance %s%s%s", to ? to : "?",
			o ? ", " : "", o ? rec_get_str(o, "kind") : "");
	} else if (!strcmp(kind, "isl")) {
		fprintf(t->f, "switch link to %s", to ? to : "?");
	} else {
		fputs("unused", t->f);
	}
}

static void print_port(struct tree *t, json_object *port, const char *indent)
{
	json_object *eps = member(t->endpoints, rec_get_str(port, "name"));
	size_t i, n = length(eps);
	char link[64];

	format_value(link, sizeof(link), member(port, "link"), F_LINK);
	fprintf(t->f, "%d %s  ", (int)rec_get_num(port, "number"),
		rec_get_str(port, "name"));
	print_state(t, rec_get_str(port, "state"));
	fprintf(t->f, "  %s  ", link);
	print_neighbour(t, port);
	fputc('\n', t->f);
	for (i = 0; i < n; i++) {
		print_branch(t, indent, i + 1 == n);
		print_endpoint(t, json_object_array_get_idx(eps, i));
	}
}

static void print_switch(struct tree *t, json_object *sw, bool last)
{
	json_object *ports = member(t->ports, rec_get_str(sw, "name"));
	size_t i, n = length(ports);
	const char *indent = last ? "   " : t->bar;
	char deeper[32];

	print_branch(t, "", last);
	fprintf(t->f, "switch %s\n", rec_get_str(sw, "name"));
	for (i = 0; i < n; i++) {
		bool end = i + 1 == n;

		print_branch(t, indent, end);
		snprintf(deeper, sizeof(deeper), "%s%s", indent,
			 end ? "   " : t->bar);
		print_port(t, json_object_array_get_idx(ports, i), deeper);
	}
}

static json_object *find_fport(json_object *doc)
{
	json_object *rows = member(doc, "fports");
	const char *name = rec_get_str(doc, "fport");
	size_t i, n = length(rows);

	for (i = 0; i < n; i++) {
		json_object *row = json_object_array_get_idx(rows, i);

		if (name && rec_get_str(row, "name") &&
		    !strcmp(rec_get_str(row, "name"), name))
			return row;
	}
	return NULL;
}

/* What else the peer host's root reaches. */
static void print_group(struct tree *t, json_object *p)
{
	char names[256];

	if (!rec_get_num(p, "group_others"))
		return;
	format_value(names, sizeof(names), member(p, "group_devices"), F_LIST);
	fprintf(t->f, "  it shares IOMMU group %s with %d other device%s: %s\n",
		rec_get_str(p, "iommu_group"),
		(int)rec_get_num(p, "group_others"),
		rec_get_num(p, "group_others") == 1 ? "" : "s", names);
}

/* Of a port on a bridge: how it moves payload, and what keeps the peer out. */
static void print_path(struct tree *t, json_object *p)
{
	const char *protection = p ? rec_get_str(p, "protection") : NULL;
	const char *engine = p ? rec_get_str(p, "engine") : NULL;
	const char *mode = p ? rec_get_str(p, "mode") : NULL;

	if (!p || !rec_get_str(p, "bridge_driver"))
		return;
	fprintf(t->f, "  %s on %s: %s, payload moved by %s\n",
		rec_get_str(p, "driver"), rec_get_str(p, "bridge_driver"),
		mode ? mode : "-", engine ? engine : "-");
	if (protection && !strcmp(protection, "trust"))
		fputs("  no IOMMU keeps root of the peer host out of memory here; "
		      "it is trusted\n", t->f);
	else if (protection && !strcmp(protection, "iommu"))
		fputs("  an IOMMU translates what comes through the bridge\n",
		      t->f);
	print_group(t, p);
}

void tree_print(FILE *f, json_object *doc, bool color)
{
	bool utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	struct tree t = {
		.f = f, .color = color,
		.ports = group(member(doc, "ports"), "switch"),
		.endpoints = group(member(doc, "endpoints"), "uplink"),
		.hosts = index_by_name(member(doc, "hosts")),
		.appliances = index_by_name(member(doc, "appliances")),
		.tee = utf8 ? "\u251c\u2500 " : "|- ",
		.end = utf8 ? "\u2514\u2500 " : "`- ",
		.bar = utf8 ? "\u2502  " : "|  ",
	};
	json_object *switches = member(doc, "switches");
	size_t i, n = length(switches);

	fprintf(f, "fabric %s, seen through %s\n", rec_get_str(doc, "fabric"),
		rec_get_str(doc, "fport"));
	print_path(&t, find_fport(doc));
	for (i = 0; i < n; i++)
		print_switch(&t, json_object_array_get_idx(switches, i),
			     i + 1 == n);
	json_object_put(t.ports);
	json_object_put(t.endpoints);
	json_object_put(t.hosts);
	json_object_put(t.appliances);
}
