// SPDX-License-Identifier: GPL-2.0-only
/*
 * What libfabrex makes of a schedule. A file of its own, as its header and that
 * of the kernel's netlink family have names in common.
 */
#include <fabrex/coll.h>
#include <stdio.h>
#include <string.h>

struct backend;
#include "look.h"

const char *look_schedule(const char *path, unsigned int *ranks, char *why,
			  size_t len)
{
	static const char *const kinds[] = {
		[FABREX_ALL_REDUCE] = "all-reduce",
		[FABREX_ALL_GATHER] = "all-gather",
		[FABREX_REDUCE_SCATTER] = "reduce-scatter",
		[FABREX_BROADCAST] = "broadcast",
		[FABREX_REDUCE] = "reduce",
	};
	struct fabrex_schedule *s = NULL;
	enum fabrex_coll_kind kind;

	if (fabrex_schedule_read(path, &s)) {
		snprintf(why, len, "%s", fabrex_strerror_last());
		return NULL;
	}
	kind = fabrex_schedule_kind(s);
	*ranks = fabrex_schedule_ranks(s);
	fabrex_schedule_free(s);
	return kind < sizeof(kinds) / sizeof(kinds[0]) ? kinds[kind] : NULL;
}
