// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What the exchanges over the fabric and over TCP share: the report of ranks
 * that have not come, and text of others made printable. Called by fabric.c,
 * tcp.c.
 */
#include <errno.h>
#include <stdio.h>

#include "coll/bootstrap/methods.h"

int fxi_rendezvous_missing(const struct bootstrap *b, const bool *came)
{
	char list[120] = "";
	uint32_t rank, n = 0;
	size_t used = 0;

	for (rank = 0; rank < b->rendezvous.size; rank++) {
		if (came[rank])
			continue;
		if (used < sizeof(list) - 20)
			used += (size_t)snprintf(list + used,
						 sizeof(list) - used, "%s%u",
						 n ? ", " : "", rank);
		else if (list[used - 1] != '.')
			used += (size_t)snprintf(list + used,
						 sizeof(list) - used, ", ...");
		n++;
	}
	return fxi_error(ETIMEDOUT, "port %s: communicator: %u of %u ranks have not come to %s within the time given: %s; start them, or give more timeout_ms",
			 b->port->attr.name, n, b->rendezvous.size, b->address,
			 list);
}

void fxi_printable(char *to, const char *from, size_t n)
{
	size_t i;

	for (i = 0; i < n - 1 && from[i]; i++)
		to[i] = from[i] >= ' ' && from[i] <= '~' ? from[i] : '?';
	to[i] = 0;
}
