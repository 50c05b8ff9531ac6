// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ports of a rank: one, those that are named, or all that this host has.
 * Called by ranks.c.
 */
#include <string.h>
#include <fabrex/p2p.h>

#include "coll.h"

#define LISTED	64u	/* ports of this host that are looked at */
#define NAME	64u	/* as long as a port's may be, and more */

static int open_one(struct coll_rank *rank, const char *name)
{
	if (rank->nports == COLL_PORTS) {
		fprintf(stderr, "fabrex-perf: --device: more than %u ports; name those that are to be used\n",
			COLL_PORTS);
		return EXIT_USAGE;
	}
	if (fabrex_open(name, &rank->ports[rank->nports]))
		return coll_fail(rank, "cannot open the port");
	rank->nports++;
	return 0;
}

/* Those that are being reset, or that only others may open, do not count. */
static int open_all(struct coll_rank *rank)
{
	struct fabrex_local_port list[LISTED];
	int i, n = fabrex_port_list(NULL, list, LISTED, sizeof(*list));
	int ret = 0;

	if (n < 0)
		return coll_fail(rank, "--device all");
	for (i = 0; i < n && i < (int)LISTED && !ret; i++)
		if (list[i].alive && list[i].may_open)
			ret = open_one(rank, list[i].device);
	if (ret || rank->nports)
		return ret;
	fprintf(stderr, "fabrex-perf: --device all: none of the %d ports of this host can be opened; see fabrex-perf ports\n",
		n);
	return EXIT_SETUP;
}

static int open_listed(struct coll_rank *rank, const char *names)
{
	char name[NAME];
	size_t length;
	int ret = 0;

	while (!ret) {
		length = strcspn(names, ",");
		if (!length || length >= sizeof(name)) {
			fprintf(stderr, "fabrex-perf: --device: a name has 1 to %u characters, and there is one comma between two\n",
				NAME - 1);
			return EXIT_USAGE;
		}
		memcpy(name, names, length);
		name[length] = 0;
		ret = open_one(rank, name);
		if (!names[length])
			break;
		names += length + 1;
	}
	return ret;
}

int coll_ports_open(struct coll_rank *rank, const char *names)
{
	int ret;

	if (names && !strcmp(names, "all"))
		ret = open_all(rank);
	else
		ret = names ? open_listed(rank, names) : open_one(rank, NULL);
	if (ret)
		return ret;
	rank->port = rank->ports[0];
	fabrex_query(rank->port, &rank->attr, sizeof(rank->attr));
	return 0;
}

void coll_ports_close(struct coll_rank *rank)
{
	while (rank->nports)
		fabrex_close(rank->ports[--rank->nports]);
}
