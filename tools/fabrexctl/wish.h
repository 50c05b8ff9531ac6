/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Wishes: the bindings of a declarative file, before anybody has looked
 * whether they can be had. Called by plan.c.
 */
#ifndef CTL_WISH_H
#define CTL_WISH_H

#include "model.h"

/* Either an endpoint by name, or a number of a kind. */
struct wish {
	char endpoint[CTL_NAME_LEN];
	uint32_t kind;
	unsigned int count;
	char appliance[CTL_NAME_LEN];
	char target[CTL_NAME_LEN];	/* host or host port */
	unsigned int line;
};

struct wishes {
	char file[256];
	char fabric[CTL_NAME_LEN];	/* "" if the file does not say */
	struct wish *v;
	size_t n;
};

/* Errors name file, line and setting. */
int wishes_read(const char *path, struct wishes *w, struct err *e);
void wishes_free(struct wishes *w);

#endif
