// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Topology files: switches, their ports, and inter-switch links. Called by
 * topology.c.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topology/elements.h"

static const char *const switch_known[] = {
	"name", "model", "ports", "speed", "width", NULL
};
static const char *const isl_known[] = { "a", "b", NULL };

static int check_speed(struct topo_parse *p, const struct topo_at *at,
		       const struct topo_switch *s)
{
	if (s->speed != 5 && s->speed != 8 && s->speed != 16 &&
	    s->speed != 32 && s->speed != 64)
		return topo_fail(p, at,
				 "\"speed\" is %u GT/s; choose 5, 8, 16, 32 or 64",
				 s->speed);
	if (s->width & (s->width - 1))
		return topo_fail(p, at,
				 "\"width\" is %u lanes; choose 1, 2, 4, 8 or 16",
				 s->width);
	return 0;
}

static int read_model(struct topo_parse *p, const struct topo_at *at,
		      struct topo_switch *s)
{
	const char *name = topology_model_name(TOPO_DRACO);

	if (topo_string(p, at, "model", false, &name))
		return -1;
	for (s->model = TOPO_DRACO; s->model <= TOPO_EPF; s->model++) {
		if (!strcmp(name, topology_model_name(s->model)))
			return 0;
	}
	return topo_fail(p, at,
			 "model \"%s\" is not known; choose \"draco\", \"pfx\" or \"epf\"",
			 name);
}

static int read_switch(struct topo_parse *p, struct topo_at *at, unsigned int i)
{
	struct topo_switch *s = &p->t->switches[i];
	char last[TOPO_NAME_LEN + 8];

	s->nports = 6;
	s->speed = 16;
	s->width = 16;
	if (topo_known(p, at, switch_known) || topo_name(p, at, s->name) ||
	    read_model(p, at, s) ||
	    topo_int(p, at, "ports", 2, TOPO_MAX_SWITCH_PORTS, &s->nports) ||
	    topo_int(p, at, "speed", 1, 64, &s->speed) ||
	    topo_int(p, at, "width", 1, 16, &s->width) ||
	    check_speed(p, at, s))
		return -1;
	if (snprintf(last, sizeof(last), "%s:%u", s->name, s->nports) >=
	    TOPO_NAME_LEN)
		return topo_fail(p, at,
				 "its port would be called \"%s\", more than %u characters; shorten the name",
				 last, TOPO_NAME_LEN - 1);
	s->ports = calloc(s->nports, sizeof(*s->ports));
	return s->ports ? 0 : topo_fail(p, at, "out of memory; free some");
}

int topo_read_switches(struct topo_parse *p, const struct topo_at *root)
{
	struct topology *t = p->t;
	config_setting_t *list;
	unsigned int n;

	if (topo_list(p, root, "switches", true, &list, &n))
		return -1;
	if (n > TOPO_MAX_SWITCHES)
		return topo_fail(p, root, "%u switches; a fabric has at most %u",
				 n, TOPO_MAX_SWITCHES);
	t->nswitches = n;
	t->switches = topo_array(p, root, &t->nswitches, sizeof(*t->switches));
	return t->switches ? topo_each(p, list, n, "switch", read_switch) : -1;
}

/* What "switch:port" is used for, for messages. */
static void user_of(const struct topology *t, const struct topo_port *port,
		    char *buf, size_t len)
{
	const struct topo_isl *isl;

	switch (port->kind) {
	case TOPO_PORT_HOST:
		snprintf(buf, len, "host \"%s\"", t->hosts[port->owner].name);
		break;
	case TOPO_PORT_UPLINK:
		snprintf(buf, len, "appliance \"%s\"",
			 t->appliances[port->owner].name);
		break;
	case TOPO_PORT_ISL:
		isl = &t->isls[port->owner];
		snprintf(buf, len, "the link %s:%u - %s:%u",
			 t->switches[isl->a.sw].name, isl->a.port,
			 t->switches[isl->b.sw].name, isl->b.port);
		break;
	default:
		snprintf(buf, len, "nobody");
	}
}

static const char *kind_word(enum topo_port_kind kind)
{
	return kind == TOPO_PORT_UPLINK ? "uplink" :
	       kind == TOPO_PORT_ISL ? "end" : "port";
}

static int split_end(struct topo_parse *p, const struct topo_at *at,
		     const char *s, const char *word, struct topo_end *end)
{
	const char *colon = strrchr(s, ':');
	struct topology *t = p->t;
	unsigned int i;
	char *rest;

	if (!colon || !isdigit((unsigned char)colon[1]) || strlen(colon) > 5)
		return topo_fail(p, at,
				 "%s \"%s\" is not of the form \"switch:port\"; write for example \"%s:1\"",
				 word, s, t->switches[0].name);
	for (i = 0; i < t->nswitches; i++) {
		if (strlen(t->switches[i].name) == (size_t)(colon - s) &&
		    !strncmp(t->switches[i].name, s, colon - s))
			break;
	}
	if (i == t->nswitches)
		return topo_fail(p, at,
				 "%s \"%s\" is on a switch that does not exist; add it to switches or correct the name",
				 word, s);
	end->sw = i;
	end->port = strtoul(colon + 1, &rest, 10);
	if (*rest || !end->port || end->port > t->switches[i].nports)
		return topo_fail(p, at,
				 "%s \"%s\": switch \"%s\" has ports 1 to %u; choose one of them",
				 word, s, t->switches[i].name,
				 t->switches[i].nports);
	return 0;
}

int topo_take_port(struct topo_parse *p, const struct topo_at *at,
		   config_setting_t *m, enum topo_port_kind kind,
		   unsigned int owner, unsigned int index,
		   struct topo_end *end)
{
	const char *word = kind_word(kind);
	struct topo_at place = *at;
	struct topo_port *port;
	const char *s;
	char who[96];

	if (m)
		place.set = m;
	s = m ? config_setting_get_string(m) : NULL;
	if (!s)
		return topo_fail(p, &place,
				 "%s is not a string; write \"switch:port\"",
				 word);
	if (split_end(p, &place, s, word, end))
		return -1;
	port = &p->t->switches[end->sw].ports[end->port - 1];
	if (port->kind != TOPO_PORT_UNUSED) {
		user_of(p->t, port, who, sizeof(who));
		return topo_fail(p, &place,
				 "%s \"%s\" is already used by %s; give it another port",
				 word, s, who);
	}
	port->kind = kind;
	port->owner = owner;
	port->index = index;
	return 0;
}

/* Partitions of the other models end at their switch. */
static int check_cascade(struct topo_parse *p, const struct topo_at *at,
			 unsigned int sw)
{
	const struct topo_switch *s = &p->t->switches[sw];

	if (s->model == TOPO_DRACO)
		return 0;
	return topo_fail(p, at,
			 "switch \"%s\" is of model \"%s\"; only those of model \"draco\" can be linked",
			 s->name, topology_model_name(s->model));
}

static int read_isl(struct topo_parse *p, struct topo_at *at, unsigned int i)
{
	struct topo_isl *isl = &p->t->isls[i];

	if (topo_known(p, at, isl_known) ||
	    topo_take_port(p, at, config_setting_get_member(at->set, "a"),
			   TOPO_PORT_ISL, i, 0, &isl->a))
		return -1;
	/* Until b is known, messages about a's port show the link to itself. */
	isl->b = isl->a;
	if (topo_take_port(p, at, config_setting_get_member(at->set, "b"),
			   TOPO_PORT_ISL, i, 1, &isl->b))
		return -1;
	if (isl->a.sw == isl->b.sw)
		return topo_fail(p, at,
				 "both ends are on switch \"%s\"; a link joins two switches",
				 p->t->switches[isl->a.sw].name);
	if (check_cascade(p, at, isl->a.sw) || check_cascade(p, at, isl->b.sw))
		return -1;
	return 0;
}

int topo_read_isls(struct topo_parse *p, const struct topo_at *root)
{
	struct topology *t = p->t;
	config_setting_t *list;

	if (topo_list(p, root, "isls", false, &list, &t->nisls))
		return -1;
	t->isls = topo_array(p, root, &t->nisls, sizeof(*t->isls));
	return t->isls ? topo_each(p, list, t->nisls, "isl", read_isl) : -1;
}
