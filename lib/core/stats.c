// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Counters of ports and queues: fabrex_counters(3).
 */
#include <errno.h>
#include <string.h>

#include "core/internal.h"

EXPORT int fabrex_stats(struct fabrex_port *port, struct fabrex_queue *queue,
			struct fabrex_stats *stats, size_t size)
{
	struct fabrex_stats now;
	int ret;

	if (queue && queue->object.port != port)
		return fxi_error(EINVAL, "port %s: queue %u belongs to port %s; ask that one",
				 port->attr.name, queue->number,
				 queue->object.port->attr.name);
	memset(&now, 0, sizeof(now));
	ret = port->ops->counters(port->transport,
				  queue ? queue->object.id : 0, &now);
	if (ret)
		return ret;
	fxi_copy_out(stats, size, &now, sizeof(now));
	return 0;
}
