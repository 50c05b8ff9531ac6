/* SPDX-License-Identifier: GPL-2.0-only */
/* Runs fabrexctl in this process. For the tests here. */
#ifndef TESTS_RUN_LINE_H
#define TESTS_RUN_LINE_H

#include "tests/tap.h"

struct backend;

/* Outcome of one run. */
struct run {
	int code;
	char *out, *err;
};

/* "list endpoints --json"; words are parted by one space. */
struct run run_line(struct backend *be, const char *line);
void run_free(struct run *r);

#endif
