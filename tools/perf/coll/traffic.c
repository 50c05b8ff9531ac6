// SPDX-License-Identifier: GPL-2.0-only
/*
 * How many bytes went from endpoint to endpoint, and how many to or from the
 * memory of hosts: counted by the ports, for all of what uses them. Of the ranks
 * that share a port the first speaks for it. Called by run.c.
 */
#include <stdlib.h>
#include <string.h>

#include "coll.h"

/* What a rank tells the others about its ports. */
struct told {
	struct name {
		char port[32], fabric[32];
	} names[COLL_PORTS];
	uint8_t nports, counts;
};

/*
 * Loopback has no switch: what is copied through memory that ranks share is in
 * no counter.
 */
static bool port_counts(struct fabrex_port *port,
			const struct fabrex_port_attr *attr)
{
	struct fabrex_stats stats;

	return strcmp(attr->driver, "loopback") &&
	       !fabrex_stats(port, NULL, &stats, sizeof(stats));
}

static void tell(const struct coll_rank *rank, struct told *mine)
{
	struct fabrex_port_attr attr = { 0 };
	uint32_t i;

	memset(mine, 0, sizeof(*mine));
	mine->counts = 1;
	mine->nports = (uint8_t)rank->nports;
	for (i = 0; i < rank->nports; i++) {
		fabrex_query(rank->ports[i], &attr, sizeof(attr));
		memcpy(mine->names[i].port, attr.name, sizeof(attr.name));
		memcpy(mine->names[i].fabric, attr.fabric,
		       sizeof(attr.fabric));
		mine->counts &= port_counts(rank->ports[i], &attr);
	}
}

static bool has_port(const struct told *of, const struct name *name)
{
	uint32_t i;

	for (i = 0; i < of->nports; i++)
		if (!strcmp(of->names[i].port, name->port) &&
		    !strcmp(of->names[i].fabric, name->fabric))
			return true;
	return false;
}

static void decide(struct coll_traffic *t, const struct coll_rank *rank,
		   const struct told *all)
{
	uint32_t i, port;

	t->counted = true;
	for (i = 0; i < rank->ranks; i++)
		t->counted &= all[i].counts;
	for (port = 0; port < rank->nports; port++) {
		t->speaks[port] = true;
		for (i = 0; i < rank->rank; i++)
			t->speaks[port] &= !has_port(&all[i],
						     &all[rank->rank]
						      .names[port]);
	}
}

static int failed(const struct coll_rank *rank, const char *what)
{
	return interrupted ? EXIT_INTERRUPTED : coll_fail(rank, what);
}

int coll_traffic_open(struct coll_traffic *t, const struct coll_rank *rank)
{
	struct told mine, *all;
	int ret;

	tell(rank, &mine);
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

/* Of all ports that this rank speaks for. */
static int look(const struct coll_traffic *t, const struct coll_rank *rank,
		struct fabrex_stats now[COLL_PORTS])
{
	uint32_t i;

	for (i = 0; i < rank->nports; i++)
		if (t->speaks[i] && fabrex_stats(rank->ports[i], NULL, &now[i],
						 sizeof(now[i])))
			return failed(rank, "counters of the port");
	return 0;
}

/* Behind a barrier, as what came before is not counted; run.c has the next. */
int coll_traffic_begin(struct coll_traffic *t, const struct coll_rank *rank)
{
	if (!t->counted)
		return 0;
	if (fabrex_barrier(rank->comm))
		return failed(rank, "barrier");
	return look(t, rank, t->before);
}

int coll_traffic_end(const struct coll_traffic *t,
		     const struct coll_rank *rank, struct coll_moved *moved)
{
	uint64_t mine[2] = { 0, 0 }, sums[2];
	struct fabrex_stats now[COLL_PORTS];
	uint32_t i;
	int ret;

	if (!t->counted)
		return 0;
	ret = look(t, rank, now);
	if (ret)
		return ret;
	for (i = 0; i < rank->nports; i++) {
		if (!t->speaks[i])
			continue;
		mine[0] += now[i].p2p_bytes - t->before[i].p2p_bytes;
		mine[1] += now[i].host_bytes - t->before[i].host_bytes;
	}
	if (fabrex_all_reduce(rank->comm, mine, sums, 2, FABREX_UINT64,
			      FABREX_SUM))
		return failed(rank, "collecting counters");
	moved->counted = true;
	moved->p2p = sums[0];
	moved->host = sums[1];
	return 0;
}
