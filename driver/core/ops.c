// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which operations a backend must have, and what a port can do with those that
 * it has. Called by port.c; without kernel services, so that driver/tests can
 * run it in user space.
 */
#include <linux/kernel.h>

#include "ops.h"

#define NEED(ops, name)	do {						\
	if (!(ops)->name)						\
		return #name;						\
} while (0)

/**
 * fabrex_ops_missing() - look for a mandatory operation that is missing
 * @ops:     of a backend
 * @windows: the port has window slots
 *
 * Context: Any.
 * Return: its name; NULL if none is missing
 */
const char *fabrex_ops_missing(const struct fabrex_port_ops *ops, bool windows)
{
	const struct fabrex_data_ops *data = ops->data;

	if (!ops->fabric)
		NEED(ops, data);
	if (!data)
		return NULL;
	NEED(data, queue_create);
	NEED(data, queue_destroy);
	NEED(data, mr_create);
	NEED(data, mr_pages);
	NEED(data, mr_destroy);
	if (!windows)
		return NULL;
	NEED(data, window_create);
	NEED(data, window_destroy);
	return NULL;
}

/**
 * fabrex_ops_can() - get what a port can do
 * @ops: of its backend
 *
 * Context: Any.
 * Return: FABREX_CAN_*
 */
u32 fabrex_ops_can(const struct fabrex_port_ops *ops)
{
	const struct fabrex_fabric_ops *fabric = ops->fabric;
	const struct fabrex_data_ops *data = ops->data;
	u32 can = 0;

	if (fabric)
		can |= (fabric->bind ? FABREX_CAN_BIND : 0) |
		       (fabric->unbind ? FABREX_CAN_UNBIND : 0) |
		       (fabric->port_control ? FABREX_CAN_PORT_SET : 0) |
		       (fabric->release_reply ? FABREX_CAN_REPLY : 0);
	if (data)
		can |= FABREX_CAN_DATA |
		       (data->resolve ? FABREX_CAN_RESOLVE : 0) |
		       (data->mr_invalidate ? FABREX_CAN_DMABUF : 0);
	return can;
}
