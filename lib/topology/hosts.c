// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Topology files: hosts and their ports, and the initial bindings. Called by
 * topology.c; ports are looked up by ntbs.c, too.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topology/elements.h"

static const char *const host_known[] = {
	"name", "ports", "manager", "slots", "p2p_root", NULL
};
static const char *const binding_known[] = { "endpoint", "port", NULL };

static int read_host_port(struct topo_parse *p, const struct topo_at *at,
			  config_setting_t *list, unsigned int i,
			  unsigned int k)
{
	struct topo_host *h = &p->t->hosts[i];
	char name[TOPO_NAME_LEN + 12];
	struct topo_at port = { at->set, "port", name };

	if (snprintf(name, sizeof(name), "%s.%u", h->name, k) >= TOPO_NAME_LEN)
		return topo_fail(p, at,
				 "its port would be called \"%s\", more than %u characters; shorten the name",
				 name, TOPO_NAME_LEN - 1);
	if (topo_claim(p, &port, name))
		return -1;
	return topo_take_port(p, at, config_setting_get_elem(list, k),
			      TOPO_PORT_HOST, i, k, &h->ports[k]);
}

static int read_host(struct topo_parse *p, struct topo_at *at, unsigned int i)
{
	struct topo_host *h = &p->t->hosts[i];
	config_setting_t *list;
	unsigned int n;

	h->p2p_root = true;
	h->slots = 16;
	if (topo_known(p, at, host_known) || topo_name(p, at, h->name) ||
	    topo_bool(p, at, "manager", &h->manager) ||
	    topo_bool(p, at, "p2p_root", &h->p2p_root) ||
	    topo_int(p, at, "slots", 1, TOPO_MAX_SLOTS, &h->slots) ||
	    topo_list(p, at, "ports", true, &list, &n))
		return -1;
	h->ports = calloc(n, sizeof(*h->ports));
	if (!h->ports)
		return topo_fail(p, at, "out of memory; free some");
	h->nports = n;
	for (unsigned int k = 0; k < n; k++) {
		if (read_host_port(p, at, list, i, k))
			return -1;
	}
	if (topology_host_ports(p->t) > TOPO_MAX_HOST_PORTS)
		return topo_fail(p, at,
				 "more than %u host ports in the fabric; remove some",
				 TOPO_MAX_HOST_PORTS);
	return 0;
}

int topo_read_hosts(struct topo_parse *p, const struct topo_at *root)
{
	struct topology *t = p->t;
	config_setting_t *list;

	if (topo_list(p, root, "hosts", true, &list, &t->nhosts))
		return -1;
	t->hosts = topo_array(p, root, &t->nhosts, sizeof(*t->hosts));
	return t->hosts ? topo_each(p, list, t->nhosts, "host", read_host) : -1;
}

bool topo_find_port(const struct topology *t, const char *s,
		    struct topo_host_port *port)
{
	const char *dot = strrchr(s, '.');
	char name[TOPO_NAME_LEN];
	char *end;

	if (!dot || !isdigit((unsigned char)dot[1]) || strlen(dot) > 5 ||
	    dot - s >= TOPO_NAME_LEN)
		return false;
	memcpy(name, s, dot - s);
	name[dot - s] = 0;
	port->host = topology_find_host(t, name);
	port->port = strtoul(dot + 1, &end, 10);
	return port->host != TOPO_NONE && !*end &&
	       port->port < t->hosts[port->host].nports;
}

/* Which switches can be reached from @sw: marks them in @seen. */
static void flood(const struct topology *t, unsigned int sw, bool *seen)
{
	bool grown = true;

	seen[sw] = true;
	while (grown) {
		grown = false;
		for (unsigned int i = 0; i < t->nisls; i++) {
			unsigned int a = t->isls[i].a.sw, b = t->isls[i].b.sw;

			if (seen[a] != seen[b]) {
				seen[a] = seen[b] = true;
				grown = true;
			}
		}
	}
}

static bool connected(const struct topology *t, const struct topo_binding *b)
{
	const struct topo_endpoint *ep = &t->endpoints[b->endpoint];
	const struct topo_appliance *apl = &t->appliances[ep->appliance];
	bool seen[TOPO_MAX_SWITCHES] = { false };

	flood(t, apl->uplinks[ep->uplink].sw, seen);
	return seen[t->hosts[b->host].ports[b->port].sw];
}

/* What a PFX has behind one of its ports goes to a host as a whole. */
static bool together(const struct topology *t, const struct topo_binding *a,
		     const struct topo_binding *b)
{
	const struct topo_endpoint *x = &t->endpoints[a->endpoint];
	const struct topo_endpoint *y = &t->endpoints[b->endpoint];
	const struct topo_appliance *apl = &t->appliances[x->appliance];

	return x->appliance == y->appliance && x->uplink == y->uplink &&
	       t->switches[apl->uplinks[x->uplink].sw].model == TOPO_PFX;
}

static bool same_port(const struct topo_binding *a,
		      const struct topo_binding *b)
{
	return a->host == b->host && a->port == b->port;
}

/* That the first @n bindings take of the port of the next. */
static unsigned int used_slots(const struct topology *t, unsigned int n)
{
	const struct topo_binding *b = t->bindings;
	unsigned int used = 0;

	for (unsigned int i = 0; i < n; i++) {
		bool counted = together(t, &b[i], &b[n]);

		for (unsigned int k = 0; k < i && !counted; k++)
			counted = together(t, &b[i], &b[k]);
		used += !counted && same_port(&b[i], &b[n]);
	}
	return used;
}

static int check_binding(struct topo_parse *p, const struct topo_at *at,
			 unsigned int i)
{
	const struct topo_binding *b = &p->t->bindings[i];
	const struct topo_host *h = &p->t->hosts[b->host];

	for (unsigned int k = 0; k < i; k++) {
		const struct topo_binding *o = &p->t->bindings[k];

		if (o->endpoint == b->endpoint)
			return topo_fail(p, at,
					 "it is already bound to \"%s.%u\"; remove one of the two",
					 p->t->hosts[o->host].name, o->port);
		if (together(p->t, o, b) && !same_port(o, b))
			return topo_fail(p, at,
					 "\"%s\", behind the same switch port, is bound to \"%s.%u\"; bind both to one, a PFX binds ports as a whole",
					 p->t->endpoints[o->endpoint].name,
					 p->t->hosts[o->host].name, o->port);
	}
	if (used_slots(p->t, i) >= h->slots)
		return topo_fail(p, at,
				 "port \"%s.%u\" has only %u slots; raise slots of host \"%s\" or bind to another port",
				 h->name, b->port, h->slots, h->name);
	if (!connected(p->t, b))
		return topo_fail(p, at,
				 "no path from its uplink to port \"%s.%u\"; add an inter-switch link or bind to another port",
				 h->name, b->port);
	return 0;
}

static int read_binding(struct topo_parse *p, struct topo_at *at,
			unsigned int i)
{
	struct topo_binding *b = &p->t->bindings[i];
	const char *ep = NULL, *port = NULL;
	struct topo_host_port to;

	if (topo_known(p, at, binding_known) ||
	    topo_string(p, at, "endpoint", true, &ep) ||
	    topo_string(p, at, "port", true, &port))
		return -1;
	at->name = ep;
	b->endpoint = topology_find_endpoint(p->t, ep);
	if (b->endpoint == TOPO_NONE)
		return topo_fail(p, at,
				 "there is no such endpoint; names are <appliance>.<class><index>");
	if (!topo_find_port(p->t, port, &to))
		return topo_fail(p, at,
				 "there is no host port \"%s\"; names are <host>.<index>, counted from 0",
				 port);
	b->host = to.host;
	b->port = to.port;
	return check_binding(p, at, i);
}

int topo_read_bindings(struct topo_parse *p, const struct topo_at *root)
{
	struct topology *t = p->t;
	config_setting_t *list;

	if (topo_list(p, root, "bindings", false, &list, &t->nbindings))
		return -1;
	t->bindings = topo_array(p, root, &t->nbindings, sizeof(*t->bindings));
	return t->bindings ? topo_each(p, list, t->nbindings, "binding",
				       read_binding) : -1;
}
