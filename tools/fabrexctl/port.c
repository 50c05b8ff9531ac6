// SPDX-License-Identifier: GPL-2.0-only
/*
 * "port": show one, or enable, disable, reset it. Refuses what would cut off
 * this host, or endpoints that somebody uses, unless --force is given.
 */
#include <string.h>

#include "columns.h"
#include "ctl.h"
#include "json.h"
#include "names.h"

static int parse_action(struct ctl *c, const char *word, uint32_t *action)
{
	const char *near;

	*action = port_action(word);
	if (*action)
		return 0;
	near = nearest_word(action_words(), word);
	if (near)
		return err_usage(&c->err, word, "port: no action \"%s\"; did "
				 "you mean \"%s\"?", word, near);
	return err_usage(&c->err, word, "port: no action \"%s\"; there are "
			 "enable, disable, reset", word);
}

static int check_own_port(struct ctl *c, const struct object *p, uint32_t action)
{
	if (!model_local(c->model, p->id))
		return 0;
	return err_set(&c->err, EBUSY, p->name, "%s is this host's own port: "
		       "\"%s\" would cut it off from the fabric; do it from "
		       "another host, or with --force", p->name,
		       action_name(action));
}

/* Endpoints behind an uplink that hosts use. */
static int check_uplink(struct ctl *c, const struct object *p, uint32_t action)
{
	const struct object *first = NULL, *host;
	unsigned int n = 0;
	size_t i;

	for (i = 0; i < c->model->n; i++) {
		const struct object *o = c->model->objects[i];

		if (o->type != T_ENDPOINT || o->link != p->id || !o->bound)
			continue;
		if (!n++)
			first = o;
	}
	if (!n)
		return 0;
	host = model_owner(c->model, first);
	return err_set(&c->err, EBUSY, p->name, "%u endpoint%s behind %s %s in "
		       "use (%s by host %s%s), \"%s\" would cut %s off; "
		       "release %s, or use --force", n, n > 1 ? "s" : "",
		       p->name, n > 1 ? "are" : "is", first->name,
		       host ? host->name : "?", n > 1 ? ", ..." : "",
		       action_name(action), n > 1 ? "them" : "it",
		       n > 1 ? "them" : "it");
}

static int check_harm(struct ctl *c, const struct object *p, uint32_t action)
{
	int r = 0;

	if (IS_SET(c, FORCE) || action == FABREX_PORT_ACTION_ENABLE)
		return 0;
	if (p->kind == FABREX_PORT_KIND_HOST)
		r = check_own_port(c, p, action);
	if (p->kind == FABREX_PORT_KIND_UPLINK)
		r = check_uplink(c, p, action);
	return r;
}

static int show_port(struct ctl *c, const struct object *p)
{
	json_object *rows = json_object_new_array();

	json_object_array_add(rows, json_port(c->model, p));
	c->doc = json_object_new_object();
	rec_put(c->doc, "ports", rows);
	if (!c->json)
		table_print(c->out, rows, port_columns, true, c->color);
	return 0;
}

static int control(struct ctl *c, const struct object *p, uint32_t action)
{
	bool dry = IS_SET(c, DRY_RUN);
	double start = now();
	struct object after = *p;
	int r = 0;

	if (!dry)
		r = c->be->ops->port_set(c->be, p->id, action, &c->err);
	if (!r && !dry)
		r = c->be->ops->object(c->be, 0, p->id, NULL, &after, &c->err);
	if (r) {
		err_about(&c->err, p->name);
		return r;
	}
	c->doc = json_object_new_object();
	rec_str(c->doc, "port", p->name);
	rec_str(c->doc, "action", action_name(action));
	rec_str(c->doc, "state", state_name(T_PORT, after.state));
	rec_bool(c->doc, "dry_run", dry);
	if (dry)
		rec_put(c->doc, "seconds", NULL);
	else
		rec_double(c->doc, "seconds", now() - start, 3);
	if (dry)
		fprintf(c->out, "would %s %s, which is %s\n",
			action_name(action), p->name,
			state_name(T_PORT, p->state));
	else
		fprintf(c->out, "%s: %s done, now %s\n", p->name,
			action_name(action), state_name(T_PORT, after.state));
	return 0;
}

int cmd_port(struct ctl *c, int argc, char **argv)
{
	const struct object *p;
	uint32_t action = 0;
	int r = 0;

	if (argc < 1 || argc > 2)
		return err_usage(&c->err, NULL, "port: name one port, and what "
				 "to do with it; see \"fabrexctl help port\"");
	if (argc == 2)
		r = parse_action(c, argv[1], &action);
	if (!r)
		r = ctl_load(c);
	if (r)
		return r;
	p = model_want(c->model, argv[0], T_BIT(T_PORT), &c->err);
	if (!p)
		return -c->err.code;
	if (!action)
		return show_port(c, p);
	r = check_harm(c, p, action);
	return r ? r : control(c, p, action);
}
