/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fabric that is running, while a topology or a graph is made of it. For
 * live.c and live_graph.c only.
 */
#ifndef CTL_LIVE_FABRIC_H
#define CTL_LIVE_FABRIC_H

#include "ctl.h"
#include "topology/topology.h"

/* Objects of one type, by id: the index is that in struct topology. */
struct list {
	const struct object **v;
	unsigned int n;
};

/* What is said of the fabric once there is a graph to say it of. */
struct notes {
	char **v;
	size_t n;
};

struct live {
	struct ctl *c;
	struct list switches, hosts, appliances, endpoints, ports;
	struct topology *t;
	struct notes notes;
	unsigned int *part;	/* of each switch: those with one are joined */
};

/* All of it as v->t, with what @file adds (NULL: none). Negative errno: said in
 * v->c->err.
 */
int live_load(struct live *v, const char *file);
/* In any case. */
void live_forget(struct live *v);
void live_note(struct notes *n, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Index in @l; TOPO_NONE: it is not there. */
unsigned int live_find(const struct list *l, uint32_t id);
struct topo_end live_end(const struct live *v, const struct object *port);

#endif
