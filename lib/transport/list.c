// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The transports this library was built with. Apart from the rest so that a
 * test links a list of its own instead.
 */
#include "transport/transport.h"

const struct transport_ops *const fxi_transports[] = {
	&fxi_transport_kernel,
	&fxi_transport_loopback,
	NULL,
};
