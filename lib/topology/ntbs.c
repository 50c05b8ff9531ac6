// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Topology files: non-transparent bridges between two host ports of a switch.
 * Called by topology.c.
 */
#include <stdlib.h>
#include <string.h>

#include "topology/elements.h"

#define LEAST_WINDOW	(4u << 20)	/* 2 MiB are translated page by page */
#define MOST_WINDOW	(1u << 30)

static const char *const ntb_known[] = { "a", "b", "window", NULL };

static const struct topo_end *end_of(const struct topology *t,
				     const struct topo_host_port *port)
{
	return &t->hosts[port->host].ports[port->port];
}

static bool same(const struct topo_host_port *a, const struct topo_host_port *b)
{
	return a->host == b->host && a->port == b->port;
}

/* Bridges before the @n-th that have this port. */
static bool taken(const struct topology *t, unsigned int n,
		  const struct topo_host_port *port)
{
	for (unsigned int i = 0; i < n; i++) {
		if (same(&t->ntbs[i].a, port) || same(&t->ntbs[i].b, port))
			return true;
	}
	return false;
}

static int read_end(struct topo_parse *p, const struct topo_at *at,
		    const char *key, unsigned int i,
		    struct topo_host_port *port)
{
	const struct topo_switch *s;
	const char *name = NULL;

	if (topo_string(p, at, key, true, &name))
		return -1;
	if (!topo_find_port(p->t, name, port))
		return topo_fail(p, at,
				 "there is no host port \"%s\"; names are <host>.<index>, counted from 0",
				 name);
	s = &p->t->switches[end_of(p->t, port)->sw];
	if (s->model == TOPO_DRACO)
		return topo_fail(p, at,
				 "port \"%s\" is on switch \"%s\" of model \"draco\", which joins all its host ports by itself; give the switch another model",
				 name, s->name);
	if (taken(p->t, i, port))
		return topo_fail(p, at,
				 "port \"%s\" has a bridge already; a port has one at most",
				 name);
	return 0;
}

static int read_ntb(struct topo_parse *p, struct topo_at *at, unsigned int i)
{
	struct topo_ntb *n = &p->t->ntbs[i];

	n->window = LEAST_WINDOW;
	if (topo_known(p, at, ntb_known) || read_end(p, at, "a", i, &n->a) ||
	    read_end(p, at, "b", i, &n->b) ||
	    topo_size(p, at, "window", LEAST_WINDOW, MOST_WINDOW, &n->window))
		return -1;
	if (n->a.host == n->b.host)
		return topo_fail(p, at,
				 "both ends are ports of host \"%s\"; a bridge joins two hosts",
				 p->t->hosts[n->a.host].name);
	if (end_of(p->t, &n->a)->sw != end_of(p->t, &n->b)->sw)
		return topo_fail(p, at,
				 "its ends are on two switches; a bridge joins ports of one");
	return 0;
}

/* There is nothing else behind such a port. */
static int check_alone(struct topo_parse *p, const struct topo_at *root)
{
	const struct topology *t = p->t;

	for (unsigned int h = 0; h < t->nhosts; h++) {
		for (unsigned int k = 0; k < t->hosts[h].nports; k++) {
			const struct topo_host_port port = { h, k };
			unsigned int sw = end_of(t, &port)->sw;

			if (t->switches[sw].model == TOPO_EPF &&
			    !taken(t, t->nntbs, &port))
				return topo_fail(p, root,
						 "port \"%s.%u\" is on switch \"%s\" of model \"epf\" and has no bridge; add one to ntbs",
						 t->hosts[h].name, k,
						 t->switches[sw].name);
		}
	}
	return 0;
}

int topo_read_ntbs(struct topo_parse *p, const struct topo_at *root)
{
	struct topology *t = p->t;
	config_setting_t *list;

	if (topo_list(p, root, "ntbs", false, &list, &t->nntbs))
		return -1;
	t->ntbs = topo_array(p, root, &t->nntbs, sizeof(*t->ntbs));
	if (!t->ntbs || topo_each(p, list, t->nntbs, "ntb", read_ntb))
		return -1;
	return check_alone(p, root);
}

const struct topo_ntb *topology_find_ntb(const struct topology *t,
					 unsigned int host, unsigned int port,
					 struct topo_host_port *other)
{
	const struct topo_host_port own = { host, port };

	for (unsigned int i = 0; i < t->nntbs; i++) {
		const struct topo_ntb *n = &t->ntbs[i];

		if (!same(&n->a, &own) && !same(&n->b, &own))
			continue;
		*other = same(&n->a, &own) ? n->b : n->a;
		return n;
	}
	return NULL;
}
