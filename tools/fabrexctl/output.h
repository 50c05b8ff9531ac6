/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Files that a command writes: all of them whole, or none is touched.
 * Called by topology.c, collective.c and design.c.
 */
#ifndef CTL_OUTPUT_H
#define CTL_OUTPUT_H

#include <stddef.h>

#include "ctl.h"

struct output {
	char *path;		/* as the user named it */
	char *target;		/* behind symbolic links */
	char *temporary;	/* beside it; NULL: no regular file */
	char *text;
	size_t len;
	bool changed;		/* by outputs_commit() */
};

struct outputs {
	struct output *v;
	size_t n;
};

/**
 * outputs_add() - a text that shall be in a file
 * @text: from malloc(); is freed with the outputs, whatever happens
 *
 * Nothing is written before outputs_commit().
 */
int outputs_add(struct ctl *c, struct outputs *o, const char *path, char *text,
		size_t len);
/*
 * Write temporary files, then what is no regular file, then give the files their
 * names. Two paths to one file are refused. An error leaves all files as they
 * were, but where a name cannot be given after another was; the message says
 * what has been written.
 */
int outputs_commit(struct ctl *c, struct outputs *o);
void outputs_free(struct outputs *o);

#endif
