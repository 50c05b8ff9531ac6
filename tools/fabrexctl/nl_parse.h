/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From netlink attributes to structures; missing or short ones are 0 or "".
 * Called by nl.c.
 */
#ifndef CTL_NL_PARSE_H
#define CTL_NL_PARSE_H

#include <netlink/attr.h>

#include "backend.h"

uint32_t attr_u32(const struct nlattr *a);
uint64_t attr_u64(const struct nlattr *a);
void attr_text(char *buf, size_t len, const struct nlattr *a);
void parse_fport(struct nlattr **tb, struct fport *p);
void parse_object(struct nlattr **tb, struct object *o);
void parse_counters(struct nlattr **tb, struct counters *c);
void parse_link(struct nlattr **tb, struct link_bytes *l);
void parse_event(struct nlattr **tb, struct event *ev);

#endif
