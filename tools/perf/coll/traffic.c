// SPDX-License-Identifier: GPL-2.0-only
/*
 * How many bytes went from endpoint to endpoint, and how many to or from the
 * memory of hosts: counted by the ports, for all of what uses them. Of the ranks
 * that share a port one speaks for it. Called by run.c.
 */
#include <stdlib.h>
#include <string.h>

#include "coll.h"

/* What a rank tells the others about its port. */
struct told {
	char port[32], fabric[32];
	uint8_t counts;
};

/*
 * Loopback has no switch: what is copied through memory that ranks share is in
 * no counter.
 */
static bool port_counts(const struct coll_rank *rank)
{
	struct fabrex_stats stats;

	return strcmp(rank->attr.driver, "loopback") &&
	       !fabrex_stats(rank->port, NULL, &stats, sizeof(stats));
}

static bool same_port(const struct told *a, const struct told *b)
{
	return !strcmp(a->port, b->port) && !strcmp(a->fabric, b->fabric);
}

static void decide(struct coll_traffic *t, const struct coll_rank *rank,
		   const struct told *all)
{
	uint32_t i;

	t->counted = t->speaks = true;
	for (i = 0; i < rank->ranks; i++)
		t->counted &= all[i].counts;
	for (i = 0; i < rank->rank; i++)
		t->speaks &= !same_port(&all[i], &all[rank->rank]);
}

static int failed(const struct coll_rank *rank, const char *what)
{
	return interrupted ? EXIT_INTERRUPTED : coll_fail(rank, what);
}

int coll_traffic_open(struct coll_traffic *t, const struct coll_rank *rank)
{
	struct told mine = { .counts = port_counts(rank) }, *all;
	int ret;

	memcpy(mine.port, rank->attr.name, sizeof(mine.port));
	memcpy(mine.fabric, rank->attr.fabric, sizeof(mine.fabric));
	all = calloc(rank->ranks, sizeof(*all));
	if (!all) {
		fprintf(stderr, "fabrex-perf: out of memory\n");
		return EXIT_SETUP;
	}
	ret = fabrex_all_gather(rank->comm, &mine, all, sizeof(mine),
				FABREX_UINT8);
	if (!ret)
		decide(t, rank, all);
	free(all);
	return ret ? failed(rank, "exchanging names of ports") : 0;
}

static int look(const struct coll_rank *rank, struct fabrex_stats *now)
{
	return fabrex_stats(rank->port, NULL, now, sizeof(*now)) ?
	       failed(rank, "counters of the port") : 0;
}

/* Behind a barrier, as what came before is not counted; run.c has the next. */
int coll_traffic_begin(struct coll_traffic *t, const struct coll_rank *rank)
{
	if (!t->counted)
		return 0;
	if (fabrex_barrier(rank->comm))
		return failed(rank, "barrier");
	return t->speaks ? look(rank, &t->before) : 0;
}

int coll_traffic_end(const struct coll_traffic *t,
		     const struct coll_rank *rank, struct coll_moved *moved)
{
	uint64_t mine[2] = { 0, 0 }, sums[2];
	struct fabrex_stats now;
	int ret;

	if (!t->counted)
		return 0;
	if (t->speaks) {
		ret = look(rank, &now);
		if (ret)
			return ret;
		mine[0] = now.p2p_bytes - t->before.p2p_bytes;
		mine[1] = now.host_bytes - t->before.host_bytes;
	}
	if (fabrex_all_reduce(rank->comm, mine, sums, 2, FABREX_UINT64,
			      FABREX_SUM))
		return failed(rank, "collecting counters");
	moved->counted = true;
	moved->p2p = sums[0];
	moved->host = sums[1];
	return 0;
}
