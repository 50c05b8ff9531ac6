/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What "stats" shows, once or again and again: counters of elements (stats.c),
 * or of links (links.c).
 */
#ifndef CTL_STATS_H
#define CTL_STATS_H

#include "ctl.h"

/**
 * struct meter - something to read and to show
 * @take: read it now, and keep what was read before
 * @show: into c->doc, and as a table; @rates: of the time since it was read
 *        before
 * @arg:  for both
 */
struct meter {
	int (*take)(struct ctl *c, void *arg);
	void (*show)(struct ctl *c, void *arg, bool rates);
	void *arg;
};

/* @interval 0: once, without rates; @count 0: until the user stops it. */
int meter_run(struct ctl *c, const struct meter *m, double interval,
	      uint64_t count);
/*
 * From @before to @value in @seconds. A restart of the switch sets counters
 * back.
 */
double meter_rate(uint64_t value, uint64_t before, double seconds);
/* A document with the time of day, and @rows under @key. */
void meter_doc(struct ctl *c, const char *key, json_object *rows);

/* stats --links; @argv: only links of these elements, if any. */
int stats_links(struct ctl *c, int argc, char **argv, double interval,
		uint64_t count);

#endif
