// SPDX-License-Identifier: GPL-2.0-only
/* See together.h. */
#include "together.h"

static const struct object *uplink_of(const struct ctl *c,
				      const struct step *st)
{
	const struct object *ep = model_get(c->model, st->ep);

	return ep ? model_get(c->model, ep->link) : NULL;
}

/* The first step of the same change. */
static size_t find_first(const struct ctl *c, const struct steps *s, size_t i)
{
	const struct step *st = &s->v[i];
	const struct object *up = uplink_of(c, st);
	size_t k;

	for (k = 0; k < i && c->be->whole_ports && up; k++)
		if (s->v[k].op == st->op && s->v[k].port == st->port &&
		    uplink_of(c, &s->v[k]) == up)
			return k;
	return i;
}

static bool has_step(const struct steps *s, const struct step *like,
		     uint32_t ep)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		if (s->v[i].op == like->op && s->v[i].port == like->port &&
		    s->v[i].ep == ep)
			return true;
	return false;
}

/* Whose fate it would be, too, although nobody has said so. */
static int check_all(struct ctl *c, const struct steps *s,
		     const struct step *st)
{
	const struct object *up = uplink_of(c, st);
	const char *name = model_name(c->model, st->ep);
	unsigned int n = 0;
	size_t i;

	for (i = 0; i < c->model->n && up; i++) {
		const struct object *o = c->model->objects[i];

		if (o->type != T_ENDPOINT || o->link != up->id ||
		    has_step(s, st, o->id))
			continue;
		if (!n++)
			err_set(&c->err, EINVAL, name, "%s is behind port %s "
				"together with ", name, up->name);
		err_append(&c->err, "%s%s", n > 1 ? ", " : "", o->name);
	}
	if (!n)
		return 0;
	err_append(&c->err, ": this switch binds whole ports; name all of them, "
		   "or the port itself, \"%s\"", up->name);
	return -EINVAL;
}

static unsigned int count_steps(const struct steps *s, enum step_op op,
				uint32_t port)
{
	unsigned int n = 0;
	size_t i;

	for (i = 0; i < s->n; i++)
		n += s->v[i].with == i && s->v[i].op == op &&
		     s->v[i].port == port;
	return n;
}

/* Uplinks that are bound to a host's port now. */
static unsigned int count_bound(const struct ctl *c, uint32_t port)
{
	struct ids uplinks = { 0 };
	unsigned int n;
	size_t i;

	for (i = 0; i < c->model->n; i++) {
		const struct object *o = c->model->objects[i];

		if (o->type == T_ENDPOINT && o->bound == port &&
		    !ids_has(&uplinks, o->link))
			ids_add(&uplinks, o->link);
	}
	n = (unsigned int)uplinks.n;
	ids_free(&uplinks);
	return n;
}

/* Each bind may have a place, but not all of them. */
static int check_places(struct ctl *c, const struct steps *s, uint32_t port)
{
	const char *name = model_name(c->model, port);
	unsigned int most, want, have, go;

	if (!c->be->ops->places)
		return 0;
	most = c->be->ops->places(c->be, port);
	want = count_steps(s, STEP_BIND, port);
	have = count_bound(c, port);
	go = count_steps(s, STEP_UNBIND, port);
	if (have - (go < have ? go : have) + want <= most)
		return 0;
	return err_set(&c->err, ENOSPC, name, "%u ports are to be bound to %s, "
		       "which has %u logical ports, %u of them in use; release "
		       "something there first, or name fewer", want, name,
		       most, have - (go < have ? go : have));
}

int together(struct ctl *c, struct steps *s)
{
	size_t i;
	int r = 0;

	for (i = 0; i < s->n && !r; i++) {
		s->v[i].with = find_first(c, s, i);
		if (c->be->whole_ports && s->v[i].with == i)
			r = check_all(c, s, &s->v[i]);
	}
	for (i = 0; i < s->n && !r; i++)
		if (s->v[i].with == i && s->v[i].op == STEP_BIND)
			r = check_places(c, s, s->v[i].port);
	return r;
}
