/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Inside the topology library: one reader for each kind of element, called in
 * this order by topology.c. Each returns 0 or -1 with the message written.
 */
#ifndef LIB_TOPOLOGY_ELEMENTS_H
#define LIB_TOPOLOGY_ELEMENTS_H

#include "topology/parse.h"

int topo_read_switches(struct topo_parse *p, const struct topo_at *root);
int topo_read_isls(struct topo_parse *p, const struct topo_at *root);
int topo_read_hosts(struct topo_parse *p, const struct topo_at *root);
int topo_read_ntbs(struct topo_parse *p, const struct topo_at *root);
int topo_read_appliances(struct topo_parse *p, const struct topo_at *root);
int topo_read_bindings(struct topo_parse *p, const struct topo_at *root);

/* Shared by the readers: take the port that @m names for @kind. */
int topo_take_port(struct topo_parse *p, const struct topo_at *at,
		   config_setting_t *m, enum topo_port_kind kind,
		   unsigned int owner, unsigned int index,
		   struct topo_end *end);

/* Find "<host>.<index>". */
bool topo_find_port(const struct topology *t, const char *s,
		    struct topo_host_port *port);

#endif
