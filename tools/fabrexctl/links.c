// SPDX-License-Identifier: GPL-2.0-only
/*
 * "stats --links": what each link of the fabric has carried in each direction,
 * next to what it could carry. Called by stats.c.
 *
 * Capacities are those that the planner has, so that its loads can be compared.
 */
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "names.h"
#include "source.h"
#include "stats.h"
#include "table.h"
#include "topology/pcie.h"
#include "topology/topology.h"

static const struct column columns[] = {
	{ "FROM", "from", F_TEXT, false },
	{ "TO", "to", F_TEXT, false },
	{ "LINK", "link", F_TEXT, false },
	{ "CAPACITY", "capacity", F_RATE, false },
	{ "BYTES", "bytes", F_SIZE, false },
	{ NULL, NULL, F_TEXT, false }
};

static const struct column rate_columns[] = {
	{ "FROM", "from", F_TEXT, false },
	{ "TO", "to", F_TEXT, false },
	{ "LINK", "link", F_TEXT, true },
	{ "CAPACITY", "capacity", F_RATE, false },
	{ "BYTES", "bytes", F_SIZE, true },
	{ "BYTES/s", "bytes_per_second", F_RATE, false },
	{ NULL, NULL, F_TEXT, false }
};

struct links {
	struct link_list now, before;
	double t, t_before;
	double gbps;		/* of Gen4 x16 */
	struct topology *file;	/* NULL: none was given */
	const struct object **only;
	size_t nonly;
};

/* ---- Reading ---- */

struct link_bytes *link_list_add(struct link_list *l)
{
	if (l->n == l->cap) {
		l->cap = l->cap ? l->cap * 2 : 64;
		l->v = xrealloc(l->v, l->cap * sizeof(*l->v));
	}
	return &l->v[l->n++];
}

static int take_links(struct ctl *c, void *arg)
{
	struct links *l = arg;
	struct link_list old = l->before;

	l->before = l->now;
	l->t_before = l->t;
	l->now = old;
	l->now.n = 0;
	l->t = now();
	return c->be->ops->links(c->be, &l->now, &c->err);
}

static bool same_link(const struct link_bytes *x, const struct link_bytes *y)
{
	return x->a == y->a && x->b == y->b;
}

/* Both are in the same order, and *k is where to look first. NULL: it is new. */
static const struct link_bytes *earlier(const struct links *l, size_t i,
					size_t *k)
{
	size_t at;

	for (at = *k; at < l->before.n; at++)
		if (same_link(&l->before.v[at], &l->now.v[i]))
			break;
	if (at == l->before.n)
		return NULL;
	*k = at + 1;
	return &l->before.v[at];
}

/* ---- Showing ---- */

/* Bytes per second in one direction; 0: it is down. */
static double port_capacity(const struct links *l, const struct object *port)
{
	if (port->state != FABREX_LINK_STATE_UP)
		return 0;
	return l->gbps * 1e9 * pcie_rate(port->speed / 1000.0, port->width) /
	       pcie_rate(16, 16);
}

static bool is_mesh(const struct object *a, const struct object *b)
{
	return a->type == T_ENDPOINT && b && b->type == T_ENDPOINT;
}

/* Of the appliance that the file calls so; negative: nobody knows. */
static double mesh_capacity(const struct links *l, const char *appliance)
{
	unsigned int i;

	for (i = 0; l->file && i < l->file->nappliances; i++)
		if (!strcmp(l->file->appliances[i].name, appliance) &&
		    *l->file->appliances[i].mesh_kind)
			return l->file->appliances[i].mesh_gbps * 1e9;
	return -1;
}

static double capacity(const struct ctl *c, const struct links *l,
		       const struct object *a, const struct object *b)
{
	double there, back;

	if (is_mesh(a, b))
		return mesh_capacity(l, model_name(c->model, a->parent));
	/* Inside of an appliance other links are Gen4 x16. */
	if (a->type != T_PORT)
		return l->gbps * 1e9;
	there = port_capacity(l, a);
	if (!b || b->type != T_PORT)
		return there;
	back = port_capacity(l, b);
	return there < back ? there : back;
}

static const char *link_word(const struct object *a, const struct object *b)
{
	if (is_mesh(a, b))
		return "mesh";
	return a->type == T_PORT ? kind_name(T_PORT, a->kind) :
				   type_name(a->type);
}

static bool is_wanted(const struct links *l, const struct link_bytes *link)
{
	size_t i;

	for (i = 0; i < l->nonly; i++)
		if (l->only[i]->id == link->a || l->only[i]->id == link->b)
			return true;
	return !l->nonly;
}

struct direction {
	const char *from, *to;
	const uint64_t *now, *before;	/* before may be NULL */
};

static void add_direction(json_object *rows, const struct links *l,
			  const struct direction *d, const char *word,
			  double most, bool rates)
{
	json_object *o = json_object_new_object();

	rec_str(o, "from", d->from);
	rec_str(o, "to", d->to);
	rec_str(o, "link", word);
	if (most < 0)
		rec_put(o, "capacity", NULL);
	else
		rec_double(o, "capacity", most, 0);
	rec_put(o, "bytes", json_object_new_uint64(*d->now));
	if (rates)
		rec_double(o, "bytes_per_second",
			   meter_rate(*d->now, d->before ? *d->before : 0,
				      l->t - l->t_before), 1);
	json_object_array_add(rows, o);
}

static void add_link(struct ctl *c, json_object *rows, const struct links *l,
		     const struct link_bytes *link,
		     const struct link_bytes *before, bool rates)
{
	const struct object *a = model_get(c->model, link->a);
	const struct object *b = model_get(c->model, link->b);
	const struct direction there = {
		a ? a->name : NULL, b ? b->name : NULL, &link->a_to_b,
		before ? &before->a_to_b : NULL,
	};
	const struct direction back = {
		there.to, there.from, &link->b_to_a,
		before ? &before->b_to_a : NULL,
	};

	/* The fabric has grown since its elements were read. */
	if (!a || !b || !is_wanted(l, link))
		return;
	add_direction(rows, l, &there, link_word(a, b), capacity(c, l, a, b),
		      rates);
	add_direction(rows, l, &back, link_word(a, b), capacity(c, l, a, b),
		      rates);
}

static void show_links(struct ctl *c, void *arg, bool rates)
{
	json_object *rows = json_object_new_array();
	const struct links *l = arg;
	size_t i, k = 0;

	for (i = 0; i < l->now.n; i++)
		add_link(c, rows, l, &l->now.v[i],
			 rates ? earlier(l, i, &k) : NULL, rates);
	meter_doc(c, "links", rows);
	if (!c->json)
		table_print(c->out, rows, rates ? rate_columns : columns,
			    IS_SET(c, WIDE), c->color);
}

/* ---- The command ---- */

static int read_gbps(struct ctl *c, struct links *l)
{
	struct topology *t;
	int r = 0;

	if (IS_SET(c, TOPOLOGY)) {
		r = source_topology(c, c->arg[OPT_TOPOLOGY], &t);
	} else {
		t = topology_new("defaults");
		if (!t)
			r = err_set(&c->err, ENOMEM, NULL, "out of memory");
	}
	if (r)
		return r;
	l->gbps = t->link_gbps;
	if (IS_SET(c, TOPOLOGY))
		l->file = t;
	else
		topology_free(t);
	return 0;
}

static int choose_links(struct ctl *c, int argc, char **argv, struct links *l)
{
	unsigned int types = T_BIT(T_PORT) | T_BIT(T_HOST) |
			     T_BIT(T_APPLIANCE) | T_BIT(T_ENDPOINT);

	for (; l->nonly < (size_t)argc; l->nonly++) {
		l->only[l->nonly] = model_want(c->model, argv[l->nonly], types,
					       &c->err);
		if (!l->only[l->nonly])
			return -c->err.code;
	}
	return 0;
}

int stats_links(struct ctl *c, int argc, char **argv, double interval,
		uint64_t count)
{
	struct links l = { .gbps = 0 };
	const struct meter m = { take_links, show_links, &l };
	int r;

	l.only = xcalloc(argc + 1, sizeof(*l.only));
	r = choose_links(c, argc, argv, &l);
	if (!r)
		r = read_gbps(c, &l);
	if (!r)
		r = meter_run(c, &m, interval, count);
	free(l.now.v);
	free(l.before.v);
	free(l.only);
	topology_free(l.file);
	return r;
}
