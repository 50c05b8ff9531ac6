/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where and when figures were made: what has to stand beside them.
 */
#ifndef PERF_ENVIRONMENT_H
#define PERF_ENVIRONMENT_H

#include <stdio.h>

struct environment {
	char date[40], processor[128], kernel[128], memory[40], cpus[64];
	char compiler[64], library[40];
};

void environment_read(struct environment *e);
/* "environment": {...} */
void environment_json(const struct environment *e, FILE *f);

#endif
