/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which endpoints and ports the user means: names, patterns, "gpu:2", hosts.
 * Works on the model alone. Called by compose.c, release.c and plan.c.
 */
#ifndef CTL_SELECT_H
#define CTL_SELECT_H

#include "model.h"
#include "util.h"

/* Where to: one port of a host, or any of them. */
struct target {
	const struct object *host;
	const struct object *port;	/* NULL: any */
};

/* "host" or "host.port" (the name of a host port). */
int select_target(struct model *m, const char *word, struct target *t,
		  struct err *e);
/**
 * select_port() - the best port of a target for an endpoint
 * @taken: ports already promised to others, once for each endpoint
 *
 * Fewest switches on the way first, then fewest endpoints.
 */
const struct object *select_port(struct model *m, const struct target *t,
				 const struct object *ep,
				 const struct ids *taken);
/**
 * select_free() - free endpoints of a kind, nearest to a target first
 * @kind:      FABREX_ENDPOINT_KIND_*
 * @appliance: object id, or 0 for any
 * @count:     how many
 * @out:       gets their ids; those it has already are not chosen
 * @spare:     ids that are as good as free, or NULL
 */
int select_free(struct model *m, const struct target *t, uint32_t kind,
		uint32_t appliance, unsigned int count, const struct ids *spare,
		struct ids *out, struct err *e);
/* One word of a command line: name, pattern or "kind[:count][@appliance]". */
int select_word(struct model *m, const char *word, const struct target *t,
		struct ids *out, struct err *e);
/* Names and patterns only. */
int select_names(struct model *m, int n, char **words, struct ids *out,
		 struct err *e);

#endif
