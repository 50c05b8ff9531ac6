// SPDX-License-Identifier: GPL-2.0-only
/*
 * What contenders that are a group of processes have in common.
 */
#include <stdlib.h>
#include <string.h>

#include "compare.h"

uint64_t cmp_largest(const struct comparison *c, uint32_t ranks)
{
	uint64_t most = 4096;
	uint32_t i;

	for (i = 0; i < c->nrows; i++)
		if (c->rows[i].ranks == ranks && c->rows[i].bytes > most)
			most = c->rows[i].bytes;
	return most;
}

struct group *cmp_fork(const struct comparison *c,
		       const struct worker_kind *kind, const void *arg,
		       uint32_t ranks, char *version, char *why, size_t n)
{
	struct group *g = malloc(sizeof(*g));

	if (!g) {
		snprintf(why, n, "out of memory");
		return NULL;
	}
	if (!group_fork(g, kind, arg, ranks, c->o.pin ? &c->cpus : NULL)) {
		snprintf(version, n, "%s", g->text);
		return g;
	}
	snprintf(why, n, "%s", g->text);
	free(g);
	return NULL;
}

int cmp_ask(struct group *g, const char *what, uint64_t bytes,
	    uint64_t warmup, uint64_t iterations, double *seconds, char *why,
	    size_t n)
{
	struct peer_request q = {
		.bytes = bytes, .warmup = warmup, .iterations = iterations,
	};
	int ret;

	snprintf(q.what, sizeof(q.what), "%s", what);
	ret = group_measure(g, &q, seconds);
	if (ret)
		snprintf(why, n, "%s", g->text);
	return ret;
}

int cmp_group_measure(void *state, const struct row *row, uint64_t warmup,
		      uint64_t iterations, double *seconds, char *why,
		      size_t n)
{
	int ret = cmp_ask(state, row->what, row->bytes, warmup, iterations,
			  seconds, why, n);

	if (strstr(row->what, "_lat"))
		*seconds /= 2;
	return ret;
}

void cmp_group_close(void *state)
{
	group_end(state);
	free(state);
}
