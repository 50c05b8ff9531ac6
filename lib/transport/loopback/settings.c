// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Settings of the loopback transport in the environment. Called once by port.c
 * for each port; listed in fabrex_loopback(7).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/size.h"
#include "state.h"

#define GIB		(1ull << 30)
#define SIZE_MIN	(16ull << 20)
#define SIZE_MAX_	(1ull << 44)
#define SIZE_DEFAULT	(256 * GIB)	/* at most */

static int take(const char *name, uint64_t min, uint64_t max, uint64_t *value)
{
	const char *text = getenv(name), *end;
	uint64_t v;

	if (!text || !*text)
		return 0;
	if (!size_parse(text, "kmgtKMGT", &v, &end) || *end || v < min ||
	    v > max)
		return fxi_error(EINVAL, "%s=%s: give a number from %llu to %llu, or unset it",
				 name, text, (unsigned long long)min,
				 (unsigned long long)max);
	*value = v;
	return 0;
}

/* Address space, not memory: as much as the machine has memory. */
static uint64_t size_default(void)
{
	uint64_t size = (uint64_t)sysconf(_SC_PHYS_PAGES) *
			(uint64_t)sysconf(_SC_PAGESIZE);

	size = (size + GIB - 1) / GIB * GIB;
	return size < SIZE_DEFAULT ? size : SIZE_DEFAULT;
}

/* A file above RLIMIT_FSIZE would end the process with a signal. */
static int check_file_limit(struct loop_settings *s, bool chosen)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) ||
	    limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= s->size)
		return 0;
	if (!chosen && limit.rlim_cur >= SIZE_MIN) {
		s->size = limit.rlim_cur / LOOP_HUGE * LOOP_HUGE;
		return 0;
	}
	return fxi_error(EFBIG, "loopback: a segment of %llu bytes exceeds the limit for files of %llu; raise it (ulimit -f) or set FABREX_LOOPBACK_SIZE",
			 (unsigned long long)s->size,
			 (unsigned long long)limit.rlim_cur);
}

int fxi_loop_settings(struct loop_settings *s)
{
	uint64_t size = 0, join = 2000, quiesce = 5000, cma = 1,
		 huge = 1;
	int ret;

	ret = take("FABREX_LOOPBACK_SIZE", SIZE_MIN, SIZE_MAX_, &size);
	if (!ret)
		ret = take("FABREX_LOOPBACK_JOIN_MS", 0, 600000, &join);
	if (!ret)
		ret = take("FABREX_LOOPBACK_QUIESCE_MS", 0, 600000, &quiesce);
	if (!ret)
		ret = take("FABREX_LOOPBACK_CMA", 0, 1, &cma);
	if (!ret)
		ret = take("FABREX_LOOPBACK_HUGE", 0, 1, &huge);
	if (ret)
		return ret;
	s->size = size ? size : size_default();
	s->size = (s->size + LOOP_HUGE - 1) / LOOP_HUGE * LOOP_HUGE;
	s->join_ms = (uint32_t)join;
	s->quiesce_ms = (uint32_t)quiesce;
	s->cma = cma;
	s->huge = huge;
	return check_file_limit(s, size);
}
