/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A first look at libconfig text from anybody, before libconfig sees it: what
 * kind of file it is, and nothing in it that would make the parser read other
 * files, recurse without end, or take time that grows with the square of the
 * size. Called by read.c, graphfile.c, and by programs that read topology files
 * themselves.
 */
#ifndef LIB_PLAN_SCAN_H
#define LIB_PLAN_SCAN_H

#include "plan.h"

struct plan_scan {
	bool fabric, graph;	/* is set at the top */
};

/*
 * -EINVAL, and @e says why: a NUL byte, @include, brackets 32 deep, more than
 * 1024 settings in one group (libconfig looks each up in a list).
 */
int plan_scan(const char *text, size_t length, const char *name,
	      struct plan_scan *out, struct plan_error *e);

#endif
