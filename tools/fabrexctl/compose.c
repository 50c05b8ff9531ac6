// SPDX-License-Identifier: GPL-2.0-only
/*
 * "compose" and "move": from words to steps. What can be refused from the
 * model alone is, with the holder's name; the switch has the last word.
 */
#include <string.h>

#include "compose.h"
#include "names.h"
#include "select.h"

/* In what state an endpoint cannot be composed, and what to do about it. */
static int check_state(struct ctl *c, const struct object *ep)
{
	switch (ep->state) {
	case FABREX_ENDPOINT_STATE_GONE:
		return err_set(&c->err, ENODEV, ep->name, "%s has been removed from its "
			       "appliance; put it back first",
			       ep->name);
	case FABREX_ENDPOINT_STATE_BINDING:
	case FABREX_ENDPOINT_STATE_RELEASING:
		return err_set(&c->err, EALREADY, ep->name, "%s is %s; wait until that has "
			       "completed", ep->name,
			       state_name(T_ENDPOINT, ep->state));
	}
	return 0;
}

static int bound_elsewhere(struct ctl *c, const struct object *ep,
			   const struct target *t)
{
	const struct object *host = model_owner(c->model, ep);
	const char *port = model_name(c->model, ep->bound);

	return err_set(&c->err, EADDRINUSE, ep->name, "%s is bound to %s (host "
		       "%s); \"fabrexctl move %s --to %s\" takes it from there, "
		       "\"fabrexctl release %s\" frees it", ep->name,
		       port ? port : "another port", host ? host->name : "?",
		       ep->name, t->port ? t->port->name : t->host->name,
		       ep->name);
}

bool compose_in_place(const struct model *m, const struct object *ep,
		      const struct target *t)
{
	if (!ep->bound)
		return false;
	if (t->port)
		return ep->bound == t->port->id;
	return model_owner(m, ep) == t->host;
}

/* Where an earlier step takes what is behind the same uplink; NULL: none. */
static const struct object *port_of_uplink(const struct ctl *c,
					   const struct steps *s,
					   const struct target *t,
					   const struct object *ep)
{
	size_t i;

	for (i = 0; i < s->n && c->be->whole_ports && !t->port; i++) {
		const struct object *o = model_get(c->model, s->v[i].ep);

		if (s->v[i].op == STEP_BIND && o && o->link == ep->link &&
		    model_port_host(c->model, s->v[i].port) == t->host)
			return model_get(c->model, s->v[i].port);
	}
	return NULL;
}

int compose_steps(struct ctl *c, const struct ids *eps, const struct target *t,
		  bool move, struct steps *s)
{
	struct ids taken = { 0 };
	size_t i, first = s->n;
	int r = 0;

	for (i = 0; i < s->n; i++)
		if (s->v[i].op == STEP_BIND)
			ids_add(&taken, s->v[i].port);
	for (i = 0; i < eps->n && !r; i++) {
		struct object *ep = model_get(c->model, eps->v[i]);
		const struct object *port;

		if (compose_in_place(c->model, ep, t)) {
			ids_add(&s->unchanged, ep->id);
			continue;
		}
		r = check_state(c, ep);
		if (!r && ep->bound && !move)
			r = bound_elsewhere(c, ep, t);
		port = port_of_uplink(c, s, t, ep);
		if (!port)
			port = select_port(c->model, t, ep, &taken);
		if (!r && !port)
			r = err_set(&c->err, EHOSTUNREACH, t->host->name,
				    "host %s has no fabric port",
				    t->host->name);
		if (r)
			break;
		if (ep->bound)
			steps_add(s, STEP_UNBIND, ep->id, ep->bound);
		ids_add(&taken, port->id);
		steps_add(s, STEP_BIND, ep->id, port->id);
	}
	ids_free(&taken);
	if (!r)
		steps_sort(s, first);
	return r;
}

static int compose(struct ctl *c, int argc, char **argv, bool move)
{
	const char *verb = move ? "move" : "compose";
	struct steps s = { 0 };
	struct ids eps = { 0 };
	struct target t;
	int i, r;

	if (!argc)
		return err_usage(&c->err, NULL, "%s: name the endpoints; see "
				 "\"fabrexctl help %s\"", verb, verb);
	if (!IS_SET(c, TO))
		return err_usage(&c->err, NULL, "%s: no target; use --to HOST", verb);
	r = steps_options(c, &s);
	if (!r)
		r = ctl_load(c);
	if (!r)
		r = select_target(c->model, c->arg[OPT_TO], &t, &c->err);
	if (!r && move)
		r = select_names(c->model, argc, argv, &eps, &c->err);
	for (i = 0; i < argc && !r && !move; i++)
		r = select_word(c->model, argv[i], &t, &eps, &c->err);
	if (!r)
		r = compose_steps(c, &eps, &t, move, &s);
	if (!r)
		r = steps_execute(c, &s);
	ids_free(&eps);
	steps_free(&s);
	return r;
}

int cmd_compose(struct ctl *c, int argc, char **argv)
{
	return compose(c, argc, argv, false);
}

int cmd_move(struct ctl *c, int argc, char **argv)
{
	return compose(c, argc, argv, true);
}
