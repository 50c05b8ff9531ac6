// SPDX-License-Identifier: GPL-2.0-only
/*
 * Selectors: from words to endpoints and ports. Nothing is sent anywhere;
 * what is chosen depends on the model only, so it can be tested without one.
 */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "select.h"

static bool is_host_port(const struct object *o)
{
	return o->type == T_PORT && o->kind == FABREX_PORT_KIND_HOST;
}

int select_target(struct model *m, const char *word, struct target *t,
		  struct err *e)
{
	const struct object *o = model_find(m, word, T_BIT(T_HOST));

	memset(t, 0, sizeof(*t));
	if (o) {
		t->host = o;
		return 0;
	}
	o = model_want(m, word, T_BIT(T_HOST) | T_BIT(T_PORT), e);
	if (!o)
		return -e->code;
	t->port = o;
	t->host = is_host_port(o) ? model_port_host(m, o->id) : NULL;
	if (!t->host)
		return err_set(e, EINVAL, word, "port \"%s\" leads to no host; "
			       "name a host or one of its ports", word);
	return 0;
}

static unsigned int load_of(const struct model *m, uint32_t port,
			    const struct ids *taken)
{
	unsigned int n = model_bound_count(m, port);
	size_t i;

	for (i = 0; taken && i < taken->n; i++)
		n += taken->v[i] == port;
	return n;
}

static bool port_usable(const struct object *o)
{
	return o->state != FABREX_LINK_STATE_DISABLED;
}

const struct object *select_port(struct model *m, const struct target *t,
				 const struct object *ep,
				 const struct ids *taken)
{
	unsigned int hops, load, best_hops = 0, best_load = 0;
	const struct object *best = NULL;
	size_t i;

	if (t->port)
		return t->port;
	for (i = 0; i < m->n; i++) {
		const struct object *o = m->objects[i];

		if (!is_host_port(o) || o->link != t->host->id ||
		    (best && port_usable(best) && !port_usable(o)))
			continue;
		hops = model_hops(m, o->id, ep);
		load = load_of(m, o->id, taken);
		if (best && port_usable(best) == port_usable(o) &&
		    (hops > best_hops ||
		     (hops == best_hops && load >= best_load)))
			continue;
		best = o;
		best_hops = hops;
		best_load = load;
	}
	return best;
}

static unsigned int target_hops(struct model *m, const struct target *t,
				const struct object *ep)
{
	unsigned int best = NO_HOPS, hops;
	size_t i;

	if (t->port)
		return model_hops(m, t->port->id, ep);
	for (i = 0; i < m->n; i++) {
		const struct object *o = m->objects[i];

		if (!is_host_port(o) || o->link != t->host->id)
			continue;
		hops = model_hops(m, o->id, ep);
		if (hops < best)
			best = hops;
	}
	return best;
}

struct candidate {
	uint32_t id;
	uint32_t appliance;
	uint32_t group;		/* those of one are taken together */
	unsigned int hops;
};

static int nearer(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->hops != y->hops)
		return x->hops < y->hops ? -1 : 1;
	if (x->appliance != y->appliance)
		return x->appliance < y->appliance ? -1 : 1;
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

/* How many there are behind an uplink, of any kind and state. */
static size_t count_behind(const struct model *m, uint32_t uplink)
{
	size_t i, n = 0;

	for (i = 0; i < m->n; i++)
		n += m->objects[i]->type == T_ENDPOINT &&
		     m->objects[i]->link == uplink;
	return n;
}

/*
 * Nearest first, each group whole or not at all. Return: how many are missing.
 * Where ports are bound as a whole, one with other things behind it is none.
 */
static unsigned int take_groups(const struct model *m,
				const struct candidate *c, size_t n,
				unsigned int count, struct ids *out)
{
	size_t i, k, size;

	for (i = 0; i < n; i += size) {
		for (size = 1; i + size < n && c[i + size].group == c[i].group;
		     size++)
			;
		if (size > count ||
		    (m->whole_ports && size < count_behind(m, c[i].group)))
			continue;
		for (k = 0; k < size; k++)
			ids_add(out, c[i + k].id);
		count -= (unsigned int)size;
	}
	return count;
}

int select_free(struct model *m, const struct target *t, uint32_t kind,
		uint32_t appliance, unsigned int count, const struct ids *spare,
		struct ids *out, struct err *e)
{
	struct candidate *c = xcalloc(m->n, sizeof(*c));
	unsigned int left;
	size_t i, n = 0;

	for (i = 0; i < m->n; i++) {
		const struct object *o = m->objects[i];

		if (o->type != T_ENDPOINT || o->kind != kind ||
		    (appliance && o->parent != appliance) ||
		    (o->state != FABREX_ENDPOINT_STATE_FREE &&
		     !(spare && ids_has(spare, o->id))) ||
		    ids_has(out, o->id))
			continue;
		c[n].id = o->id;
		c[n].appliance = o->parent;
		c[n].group = m->whole_ports ? o->link : o->id;
		c[n].hops = target_hops(m, t, o);
		/* Nothing leads there: as good as not there. */
		n += c[n].hops != NO_HOPS;
	}
	qsort(c, n, sizeof(*c), nearer);
	left = take_groups(m, c, n, count, out);
	free(c);
	if (!left)
		return 0;
	if (n >= count)
		return err_set(e, ENOSPC, t->host->name, "%u %s wanted for "
			       "host %s: %zu are free, but this switch binds "
			       "whole ports, and no combination of free "
			       "ports was found that has exactly that many; see "
			       "\"fabrexctl list endpoints --wide\"", count,
			       kind_name(T_ENDPOINT, kind), t->host->name, n);
	return err_set(e, ENOSPC, t->host->name, "%u %s wanted for host %s%s%s, "
		       "but only %zu free and reachable; see \"fabrexctl list "
		       "endpoints --kind %s\"", count,
		       kind_name(T_ENDPOINT, kind), t->host->name,
		       appliance ? " from " : "",
		       appliance ? model_name(m, appliance) : "", n,
		       kind_name(T_ENDPOINT, kind));
}

/* "gpu", "gpu:2", "gpu:2@columba1" */
struct selector {
	uint32_t kind;
	unsigned int count;
	char appliance[CTL_NAME_LEN];
};

/* Return: false if @word does not have the form of a selector. */
static bool parse_selector(const char *word, struct selector *s)
{
	size_t len = strcspn(word, ":@");
	char kind[16], number[16] = "1";
	uint64_t count;

	memset(s, 0, sizeof(*s));
	if (len >= sizeof(kind))
		return false;
	snprintf(kind, sizeof(kind), "%.*s", (int)len, word);
	s->kind = endpoint_kind(kind);
	word += len;
	if (*word == ':') {
		len = strcspn(++word, "@");
		if (len >= sizeof(number))
			return false;
		snprintf(number, sizeof(number), "%.*s", (int)len, word);
		word += len;
	}
	if (*word == '@')
		snprintf(s->appliance, sizeof(s->appliance), "%s", word + 1);
	if (!s->kind || !parse_u64(number, 1, 65536, &count))
		return false;
	s->count = count;
	return true;
}

static int add_once(struct ids *out, const struct object *o, struct err *e)
{
	if (ids_has(out, o->id))
		return err_usage(e, o->name, "endpoint %s is named twice",
				 o->name);
	ids_add(out, o->id);
	return 0;
}

static int select_pattern(struct model *m, const char *word, struct ids *out,
			  struct err *e)
{
	size_t i, found = 0;

	for (i = 0; i < m->n; i++) {
		const struct object *o = m->objects[i];

		if (o->type != T_ENDPOINT || fnmatch(word, o->name, 0))
			continue;
		found++;
		if (!ids_has(out, o->id))
			ids_add(out, o->id);
	}
	if (found)
		return 0;
	return err_set(e, ENOENT, word, "no endpoint matches \"%s\"; see "
		       "\"fabrexctl list endpoints\"", word);
}

/* The uplink of that name, where it can be named for what is behind it. */
static const struct object *whole_uplink(const struct model *m,
					 const char *word)
{
	const struct object *o = m->whole_ports ?
				 model_find(m, word, T_BIT(T_PORT)) : NULL;

	return o && o->kind == FABREX_PORT_KIND_UPLINK ? o : NULL;
}

/* An uplink of an appliance stands for all that is behind it. */
static int select_uplink(struct model *m, const struct object *port,
			 struct ids *out, struct err *e)
{
	size_t i, found = 0;
	int r = 0;

	for (i = 0; i < m->n && !r; i++) {
		if (m->objects[i]->type != T_ENDPOINT ||
		    m->objects[i]->link != port->id)
			continue;
		found++;
		r = add_once(out, m->objects[i], e);
	}
	if (!r && !found)
		r = err_set(e, ENOENT, port->name, "no endpoint is behind port "
			    "%s; see \"fabrexctl list ports\"", port->name);
	return r;
}

static int select_name(struct model *m, const char *word, struct ids *out,
		       struct err *e)
{
	const struct object *o;

	if (strpbrk(word, "*?["))
		return select_pattern(m, word, out, e);
	o = whole_uplink(m, word);
	if (o)
		return select_uplink(m, o, out, e);
	o = model_want(m, word, T_BIT(T_ENDPOINT), e);
	return o ? add_once(out, o, e) : -e->code;
}

int select_word(struct model *m, const char *word, const struct target *t,
		struct ids *out, struct err *e)
{
	const struct object *a = NULL;
	struct selector s;

	if (model_find(m, word, T_BIT(T_ENDPOINT)) || whole_uplink(m, word))
		return select_name(m, word, out, e);
	if (!parse_selector(word, &s)) {
		if (strpbrk(word, ":@"))
			return err_usage(e, word, "\"%s\" is no selector; "
					 "write KIND[:COUNT][@APPLIANCE] with "
					 "a kind of gpu, nvme, nic, fpga, as in "
					 "gpu:2", word);
		return select_name(m, word, out, e);
	}
	if (*s.appliance) {
		a = model_want(m, s.appliance, T_BIT(T_APPLIANCE), e);
		if (!a)
			return -e->code;
	}
	return select_free(m, t, s.kind, a ? a->id : 0, s.count, NULL, out, e);
}

int select_names(struct model *m, int n, char **words, struct ids *out,
		 struct err *e)
{
	int i, r = 0;

	for (i = 0; i < n && !r; i++)
		r = select_name(m, words[i], out, e);
	return r;
}
