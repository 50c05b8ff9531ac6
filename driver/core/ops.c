// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which operations a backend has to have: struct fabrex_port_ops says why.
 * Called by port.c. No kernel services, so that driver/tests runs it in user
 * space.
 */
#include <linux/kernel.h>

#include "ops.h"

#define NEED(ops, name)	do {						\
	if (!(ops)->name)						\
		return #name;						\
} while (0)

/**
 * fabrex_ops_missing() - look for an operation that a port cannot do without
 * @ops:     of a backend
 * @windows: the port has window slots
 *
 * Return: its name; NULL if none is missing
 */
const char *fabrex_ops_missing(const struct fabrex_port_ops *ops, bool windows)
{
	NEED(ops, queue_create);
	NEED(ops, queue_destroy);
	NEED(ops, mr_create);
	NEED(ops, mr_pages);
	NEED(ops, mr_invalidate);
	NEED(ops, mr_destroy);
	if (!windows)
		return NULL;
	NEED(ops, window_create);
	NEED(ops, window_destroy);
	return NULL;
}
