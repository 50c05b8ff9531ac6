/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a port can do with the operations of its backend. For port.c, and for
 * the tests in user space.
 */
#ifndef FABREX_OPS_H
#define FABREX_OPS_H

#include "backend.h"

/* Derived from the operations of the backend. */
#define FABREX_CAN_BIND		(1u << 0)
#define FABREX_CAN_UNBIND	(1u << 1)
#define FABREX_CAN_PORT_SET	(1u << 2)
#define FABREX_CAN_REPLY	(1u << 3) /* to release requests */
#define FABREX_CAN_DATA		(1u << 4) /* queues and memory regions */
#define FABREX_CAN_RESOLVE	(1u << 5)
#define FABREX_CAN_DMABUF	(1u << 6)
#define FABREX_CAN_CHANGE	(FABREX_CAN_BIND | FABREX_CAN_UNBIND |	\
				 FABREX_CAN_PORT_SET)

const char *fabrex_ops_missing(const struct fabrex_port_ops *ops, bool windows);
u32 fabrex_ops_can(const struct fabrex_port_ops *ops);

#endif
