/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who holds a PCI device of this host: processes with its device nodes or
 * sysfs files open or mapped, mounts, swap, network interfaces. Called by
 * agent.c and the command "holders".
 */
#ifndef CTL_HOLDERS_H
#define CTL_HOLDERS_H

#include "backend.h"

/* Where to look; tests put trees of their own here. */
struct holder_roots {
	const char *proc;	/* "/proc" */
	const char *sys;	/* "/sys" */
};

extern const struct holder_roots system_roots;

struct holders {
	struct holder *v;
	size_t n, cap;
};

/**
 * holders_find() - look for whatever uses a device
 * @bdf: "0000:05:00.0"
 *
 * Return: 0, also if there is nobody; -ENODEV if there is no such device
 */
int holders_find(const struct holder_roots *roots, const char *bdf,
		 struct holders *h, struct err *e);
void holders_free(struct holders *h);

#endif
