/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One line on the terminal for what takes longer than a second. Requests
 * block in the kernel, so a thread draws it. Called by steps.c.
 */
#ifndef CTL_PROGRESS_H
#define CTL_PROGRESS_H

#include <stdio.h>

/* Nothing is ever shown if @f is no terminal. */
void progress_start(FILE *f, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Take the line away. */
void progress_stop(void);

#endif
