/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A file for the tests of the tuner, which each write what they need into it. */
#ifndef PLUGINS_NCCL_TESTS_SCRATCH_H
#define PLUGINS_NCCL_TESTS_SCRATCH_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness.h"

static char scratch_path[128];

static inline void scratch_remove(void)
{
	unlink(scratch_path);
}

/* Return: its path. */
static inline const char *scratch_write(const void *bytes, size_t n)
{
	const char *dir = getenv("TMPDIR");
	FILE *file;

	if (!*scratch_path) {
		int fd;

		snprintf(scratch_path, sizeof(scratch_path), "%.90s/rules-XXXXXX",
			 dir && *dir ? dir : "/tmp");
		fd = mkstemp(scratch_path);
		CHECK(fd >= 0);
		close(fd);
		atexit(scratch_remove);
	}
	file = fopen(scratch_path, "w");
	CHECK(file);
	CHECK_EQ(fwrite(bytes, 1, n, file), n);
	CHECK_EQ(fclose(file), 0);
	return scratch_path;
}

static inline const char *scratch_text(const char *text)
{
	return scratch_write(text, strlen(text));
}

#endif
