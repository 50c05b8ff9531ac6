// SPDX-License-Identifier: GPL-2.0-only
/*
 * The model: storage, look-up by id and by name, relations, distances.
 * No input or output here; called by backends and commands.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "names.h"
#include "util.h"

#define FIRST_BUCKETS 256

/* Distances of all switches from the switch of one host port. */
struct hops {
	struct hops *next;
	uint32_t port;
	size_t n;
	struct {
		uint32_t id;
		unsigned int hops;
	} sw[];
};

struct model *model_new(void)
{
	struct model *m = xcalloc(1, sizeof(*m));

	m->buckets = FIRST_BUCKETS;
	m->by_id = xcalloc(m->buckets, sizeof(*m->by_id));
	m->by_name = xcalloc(m->buckets, sizeof(*m->by_name));
	return m;
}

static void hops_forget(struct model *m)
{
	struct hops *h;

	while ((h = m->hops)) {
		m->hops = h->next;
		free(h);
	}
}

void model_clear(struct model *m)
{
	size_t i;

	for (i = 0; i < m->n; i++)
		free(m->objects[i]);
	m->n = 0;
	memset(m->by_id, 0, m->buckets * sizeof(*m->by_id));
	memset(m->by_name, 0, m->buckets * sizeof(*m->by_name));
	hops_forget(m);
}

void model_free(struct model *m)
{
	if (!m)
		return;
	model_clear(m);
	free(m->objects);
	free(m->by_id);
	free(m->by_name);
	free(m->fports);
	free(m);
}

static size_t name_hash(const char *s)
{
	size_t h = 5381;

	while (*s)
		h = h * 33 ^ (unsigned char)*s++;
	return h;
}

static void link_object(struct model *m, struct object *o)
{
	size_t id = o->id & (m->buckets - 1);
	size_t name = name_hash(o->name) & (m->buckets - 1);

	o->next_id = m->by_id[id];
	m->by_id[id] = o;
	o->next_name = m->by_name[name];
	m->by_name[name] = o;
}

static void unlink_object(struct model *m, struct object *o)
{
	struct object **p;

	p = &m->by_id[o->id & (m->buckets - 1)];
	while (*p != o)
		p = &(*p)->next_id;
	*p = o->next_id;
	p = &m->by_name[name_hash(o->name) & (m->buckets - 1)];
	while (*p != o)
		p = &(*p)->next_name;
	*p = o->next_name;
}

static void grow_buckets(struct model *m)
{
	size_t i;

	free(m->by_id);
	free(m->by_name);
	m->buckets *= 4;
	m->by_id = xcalloc(m->buckets, sizeof(*m->by_id));
	m->by_name = xcalloc(m->buckets, sizeof(*m->by_name));
	for (i = 0; i < m->n; i++)
		link_object(m, m->objects[i]);
}

struct object *model_put(struct model *m, const struct object *new)
{
	struct object *o = model_get(m, new->id);

	hops_forget(m);
	if (o) {
		unlink_object(m, o);
	} else {
		if (m->n == m->cap) {
			m->cap = m->cap ? m->cap * 2 : 64;
			m->objects = xrealloc(m->objects,
					      m->cap * sizeof(*m->objects));
		}
		o = xcalloc(1, sizeof(*o));
		m->objects[m->n++] = o;
	}
	*o = *new;
	if (m->n > m->buckets)
		grow_buckets(m);
	else
		link_object(m, o);
	return o;
}

struct fport *model_put_fport(struct model *m, const struct fport *p)
{
	m->fports = xrealloc(m->fports, (m->nfports + 1) * sizeof(*m->fports));
	m->fports[m->nfports] = *p;
	return &m->fports[m->nfports++];
}

struct object *model_get(const struct model *m, uint32_t id)
{
	struct object *o;

	if (!id)
		return NULL;
	for (o = m->by_id[id & (m->buckets - 1)]; o; o = o->next_id)
		if (o->id == id)
			return o;
	return NULL;
}

const char *model_name(const struct model *m, uint32_t id)
{
	const struct object *o = model_get(m, id);

	return o ? o->name : NULL;
}

struct object *model_find(const struct model *m, const char *name,
			  unsigned int types)
{
	struct object *o;

	o = m->by_name[name_hash(name) & (m->buckets - 1)];
	for (; o; o = o->next_name)
		if ((types & T_BIT(o->type)) && !strcmp(o->name, name))
			return o;
	return NULL;
}

/* The name most like @name, if it is like it at all. */
static const struct object *nearest_name(const struct model *m,
					 const char *name, unsigned int types)
{
	unsigned int best = strlen(name) / 3 + 1, d;
	const struct object *o = NULL;
	size_t i;

	for (i = 0; i < m->n; i++) {
		if (!(types & T_BIT(m->objects[i]->type)))
			continue;
		d = name_distance(name, m->objects[i]->name);
		if (d <= best && (!o || d < best)) {
			best = d;
			o = m->objects[i];
		}
	}
	return o;
}

struct object *model_want(const struct model *m, const char *name,
			  unsigned int types, struct err *e)
{
	struct object *o = model_find(m, name, types);
	const struct object *other;
	char what[64];

	if (o)
		return o;
	types_text(types, what, sizeof(what));
	other = model_find(m, name, T_ANY);
	if (other) {
		err_set(e, ENOENT, name, "\"%s\" is %s %s, not %s %s", name,
			article(type_name(other->type)), type_name(other->type),
			article(what), what);
		return NULL;
	}
	other = nearest_name(m, name, types);
	if (other)
		err_set(e, ENOENT, name,
			"no %s called \"%s\"; did you mean \"%s\"?", what, name,
			other->name);
	else
		err_set(e, ENOENT, name,
			"no %s called \"%s\"; see \"fabrexctl list\"", what,
			name);
	return NULL;
}

struct object *model_port_host(const struct model *m, uint32_t port)
{
	const struct object *p = model_get(m, port);
	struct object *h;

	if (!p || p->type != T_PORT || p->kind != FABREX_PORT_KIND_HOST)
		return NULL;
	h = model_get(m, p->link);
	return h && h->type == T_HOST ? h : NULL;
}

struct object *model_owner(const struct model *m, const struct object *ep)
{
	return ep->bound ? model_port_host(m, ep->bound) : NULL;
}

const struct fport *model_local(const struct model *m, uint32_t port)
{
	size_t i;

	for (i = 0; i < m->nfports; i++)
		if (port && m->fports[i].object_id == port)
			return &m->fports[i];
	return NULL;
}

unsigned int model_bound_count(const struct model *m, uint32_t port)
{
	unsigned int n = 0;
	size_t i;

	for (i = 0; i < m->n; i++)
		if (m->objects[i]->type == T_ENDPOINT &&
		    m->objects[i]->bound == port)
			n++;
	return n;
}

static size_t hops_index(const struct hops *h, uint32_t id)
{
	size_t lo = 0, hi = h->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (h->sw[mid].id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < h->n && h->sw[lo].id == id ? lo : h->n;
}

static int by_id(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* The switch at the far end of an inter-switch link that works, or 0. */
static uint32_t isl_far_switch(const struct model *m, const struct object *o)
{
	const struct object *far;

	if (o->type != T_PORT || o->kind != FABREX_PORT_KIND_ISL ||
	    o->state != FABREX_LINK_STATE_UP)
		return 0;
	far = model_get(m, o->link);
	return far && far->type == T_PORT ? far->parent : 0;
}

/* One round for each distance: reach what is one link further away. */
static void hops_spread(const struct model *m, struct hops *h)
{
	unsigned int round;
	bool more = true;
	size_t i, from, to;

	for (round = 1; more; round++) {
		more = false;
		for (i = 0; i < m->n; i++) {
			uint32_t far = isl_far_switch(m, m->objects[i]);

			if (!far)
				continue;
			from = hops_index(h, m->objects[i]->parent);
			to = hops_index(h, far);
			if (from == h->n || to == h->n ||
			    h->sw[from].hops != round ||
			    h->sw[to].hops != NO_HOPS)
				continue;
			h->sw[to].hops = round + 1;
			more = true;
		}
	}
}

static struct hops *hops_from(struct model *m, const struct object *port)
{
	struct hops *h;
	size_t i, n = 0;

	for (h = m->hops; h; h = h->next)
		if (h->port == port->id)
			return h;
	for (i = 0; i < m->n; i++)
		n += m->objects[i]->type == T_SWITCH;
	h = xcalloc(1, sizeof(*h) + n * sizeof(h->sw[0]));
	h->port = port->id;
	for (i = 0; i < m->n; i++)
		if (m->objects[i]->type == T_SWITCH) {
			h->sw[h->n].id = m->objects[i]->id;
			h->sw[h->n++].hops = NO_HOPS;
		}
	qsort(h->sw, h->n, sizeof(h->sw[0]), by_id);
	i = hops_index(h, port->parent);
	if (i < h->n)
		h->sw[i].hops = 1;
	hops_spread(m, h);
	h->next = m->hops;
	m->hops = h;
	return h;
}

unsigned int model_hops(struct model *m, uint32_t port, const struct object *ep)
{
	const struct object *p = model_get(m, port);
	const struct object *uplink = model_get(m, ep->link);
	struct hops *h;
	size_t i;

	if (!p || p->type != T_PORT || !uplink || uplink->type != T_PORT ||
	    uplink->state != FABREX_LINK_STATE_UP)
		return NO_HOPS;
	h = hops_from(m, p);
	i = hops_index(h, uplink->parent);
	return i < h->n ? h->sw[i].hops : NO_HOPS;
}
