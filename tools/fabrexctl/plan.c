// SPDX-License-Identifier: GPL-2.0-only
/*
 * "plan" and "apply": a file says what shall be bound to what; the difference
 * to what is becomes steps. Selectors keep what a host has before they take
 * something new, so applying a file twice changes nothing the second time.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compose.h"
#include "json.h"
#include "names.h"
#include "plan.h"
#include "together.h"

/* Where each endpoint shall be. */
struct goals {
	struct ids eps;
	struct target *targets;	/* in parallel */
	struct ids spare;	/* bound now, free when pruning is done */
};

static void goal_add(struct goals *g, uint32_t ep, const struct target *t)
{
	g->targets = xrealloc(g->targets, (g->eps.n + 1) * sizeof(*t));
	g->targets[g->eps.n] = *t;
	ids_add(&g->eps, ep);
}

/* Put file and line before what went wrong with a wish. */
static int wish_error(struct ctl *c, const struct wishes *w,
		      const struct wish *wish)
{
	err_prefix(&c->err, "%s:%u: ", w->file, wish->line);
	return -c->err.code;
}

static int named_goal(struct ctl *c, const struct wish *wish, struct goals *g)
{
	struct target t;
	struct object *ep;

	ep = model_want(c->model, wish->endpoint, T_BIT(T_ENDPOINT), &c->err);
	if (!ep || select_target(c->model, wish->target, &t, &c->err))
		return -c->err.code;
	if (ids_has(&g->eps, ep->id))
		return err_set(&c->err, EINVAL, ep->name, "%s is wished for "
			       "twice", ep->name);
	goal_add(g, ep->id, &t);
	return 0;
}

/* Endpoints that are there already satisfy a selector first. */
static unsigned int keep_bound(struct ctl *c, const struct wish *wish,
			       const struct target *t, uint32_t appliance,
			       struct goals *g)
{
	struct model *m = c->model;
	unsigned int kept = 0;
	size_t i;

	for (i = 0; i < m->n && kept < wish->count; i++) {
		const struct object *o = m->objects[i];

		if (o->type != T_ENDPOINT || o->kind != wish->kind ||
		    (appliance && o->parent != appliance) ||
		    !compose_in_place(m, o, t) || ids_has(&g->eps, o->id))
			continue;
		goal_add(g, o->id, t);
		kept++;
	}
	return kept;
}

static int resolve_selector(struct ctl *c, const struct wish *wish,
			    struct target *t, uint32_t *appliance)
{
	const struct object *a;

	*appliance = 0;
	if (select_target(c->model, wish->target, t, &c->err))
		return -c->err.code;
	if (!*wish->appliance)
		return 0;
	a = model_want(c->model, wish->appliance, T_BIT(T_APPLIANCE), &c->err);
	if (!a)
		return -c->err.code;
	*appliance = a->id;
	return 0;
}

static int take_free(struct ctl *c, const struct wish *wish,
		     const struct target *t, uint32_t appliance,
		     unsigned int count, struct goals *g)
{
	size_t i, before = g->eps.n;
	struct ids all = { 0 };
	int r;

	for (i = 0; i < before; i++)
		ids_add(&all, g->eps.v[i]);
	r = select_free(c->model, t, wish->kind, appliance, count, &g->spare,
			&all, &c->err);
	for (i = before; i < all.n && !r; i++)
		goal_add(g, all.v[i], t);
	ids_free(&all);
	return r;
}

/* Kept endpoints of all selectors first: none may take another's. */
static int selector_goals(struct ctl *c, const struct wishes *w,
			  bool prune, struct goals *g)
{
	unsigned int *missing = xcalloc(w->n, sizeof(*missing));
	uint32_t appliance;
	struct target t;
	size_t i;
	int r = 0;

	for (i = 0; i < w->n && !r; i++) {
		if (!w->v[i].kind)
			continue;
		r = resolve_selector(c, &w->v[i], &t, &appliance);
		if (r)
			r = wish_error(c, w, &w->v[i]);
		else
			missing[i] = w->v[i].count -
				     keep_bound(c, &w->v[i], &t, appliance, g);
	}
	for (i = 0; i < c->model->n && prune; i++) {
		const struct object *o = c->model->objects[i];

		if (o->type == T_ENDPOINT && o->bound &&
		    !ids_has(&g->eps, o->id))
			ids_add(&g->spare, o->id);
	}
	for (i = 0; i < w->n && !r; i++) {
		if (!missing[i])
			continue;
		r = resolve_selector(c, &w->v[i], &t, &appliance);
		if (!r)
			r = take_free(c, &w->v[i], &t, appliance, missing[i],
				      g);
		if (r)
			r = wish_error(c, w, &w->v[i]);
	}
	free(missing);
	return r;
}

static int make_goals(struct ctl *c, const struct wishes *w, bool prune,
		      struct goals *g)
{
	size_t i;
	int r = 0;

	for (i = 0; i < w->n && !r; i++) {
		if (w->v[i].kind)
			continue;
		r = named_goal(c, &w->v[i], g);
		if (r)
			r = wish_error(c, w, &w->v[i]);
	}
	return r ? r : selector_goals(c, w, prune, g);
}

static int goal_steps(struct ctl *c, const struct goals *g, bool prune,
		      struct steps *s)
{
	struct ids one = { .n = 1 };
	size_t i;
	int r = 0;

	for (i = 0; i < c->model->n && prune; i++) {
		const struct object *o = c->model->objects[i];

		if (o->type == T_ENDPOINT && o->bound &&
		    !ids_has(&g->eps, o->id))
			release_step(o, s);
	}
	for (i = 0; i < g->eps.n && !r; i++) {
		one.v = &g->eps.v[i];
		r = compose_steps(c, &one, &g->targets[i], true, s);
	}
	if (!r)
		steps_sort(s, 0);
	return r;
}

int plan_make(struct ctl *c, const struct wishes *w, bool prune,
	      struct steps *s)
{
	struct goals g = { 0 };
	int r;

	if (*w->fabric && strcmp(w->fabric, ctl_fport(c)->fabric))
		return err_set(&c->err, EINVAL, w->fabric, "%s is for the "
			       "fabric \"%s\", this one is \"%s\"", w->file,
			       w->fabric, ctl_fport(c)->fabric);
	r = make_goals(c, w, prune, &g);
	if (!r)
		r = goal_steps(c, &g, prune, s);
	ids_free(&g.eps);
	ids_free(&g.spare);
	free(g.targets);
	return r;
}

static int prepare(struct ctl *c, int argc, char **argv, struct steps *s)
{
	struct wishes w = { 0 };
	int r;

	if (argc != 1)
		return err_usage(&c->err, NULL, "%s: name one file; see "
				 "\"fabrexctl help %s\"", c->command->name,
				 c->command->name);
	r = wishes_read(argv[0], &w, &c->err);
	if (!r)
		r = ctl_load(c);
	if (!r)
		r = plan_make(c, &w, IS_SET(c, PRUNE), s);
	wishes_free(&w);
	return r;
}

static void warn(struct ctl *c, json_object *warnings, const char *text)
{
	fprintf(c->out, "! %s\n", text);
	json_object_array_add(warnings, json_object_new_string(text));
}

/* A binding to a host that is down waits for it: worth saying beforehand. */
static void warn_about_hosts(struct ctl *c, const struct steps *s,
			     json_object *warnings)
{
	size_t i;

	for (i = 0; i < s->n; i++) {
		const struct object *h;
		char *text;

		h = model_port_host(c->model, s->v[i].port);
		if (!h || h->state == FABREX_HOST_STATE_UP ||
		    s->v[i].op != STEP_BIND)
			continue;
		text = xasprintf("host %s is down; %s will be attached when it "
				 "comes up", h->name,
				 model_name(c->model, s->v[i].ep));
		warn(c, warnings, text);
		free(text);
	}
}

static void report_plan(struct ctl *c, const struct steps *s, bool asked)
{
	json_object *warnings;

	steps_report(c, s, true);
	json_object_object_get_ex(c->doc, "warnings", &warnings);
	warn_about_hosts(c, s, warnings);
	if (!asked)
		warn(c, warnings, "only root may ask the switch whether it "
		     "would do this; not checked");
	fprintf(c->out, "%zu to do, %zu unchanged\n", s->n, s->unchanged.n);
	if (IS_SET(c, DETAILED) && s->n)
		c->exit_code = EXIT_DIFFERS;
}

int cmd_plan(struct ctl *c, int argc, char **argv)
{
	struct steps s = { 0 };
	int r = prepare(c, argc, argv, &s);
	bool asked;

	/* A backend that needs privilege to look has it by now. */
	asked = !geteuid() || c->be->managing;
	if (!r)
		r = asked ? steps_preflight(c, &s) : together(c, &s);
	if (!r)
		report_plan(c, &s, asked);
	steps_free(&s);
	return r;
}

int cmd_apply(struct ctl *c, int argc, char **argv)
{
	struct steps s = { 0 };
	int r = steps_options(c, &s);

	if (!r)
		r = prepare(c, argc, argv, &s);
	if (!r)
		r = steps_execute(c, &s);
	steps_free(&s);
	return r;
}
