// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Events of a port, with ids turned into the caller's handles:
 * fabrex_event(3). Objects that were destroyed meanwhile have no events.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "core/internal.h"

EXPORT int fabrex_event_fd(struct fabrex_port *port)
{
	return port->ops->event_fd(port->transport);
}

/* Waits for one that is being created: there may be no second event of it. */
static struct object *find(struct fabrex_port *port, uint64_t id)
{
	struct object *object = fxi_object_find(port, id);

	if (object || !port->births)
		return object;
	fxi_births_wait(port);
	return fxi_object_find(port, id);
}

/* False: it is about something the application has destroyed. */
static bool translate(struct fabrex_port *port,
		      const struct transport_event *from,
		      struct fabrex_port_event *to)
{
	struct object *object;

	memset(to, 0, sizeof(*to));
	to->type = from->type;
	to->peer = from->peer;
	to->generation = from->generation;
	to->error = from->error;
	to->time_ns = from->time_ns;
	if (!from->id)
		return true;
	pthread_mutex_lock(&port->lock);
	object = find(port, from->id);
	if (object && object->type == OBJECT_QUEUE)
		to->queue = container_of(object, struct fabrex_queue, object);
	else if (object && object->type == OBJECT_WINDOW)
		to->window = container_of(object, struct fabrex_window,
					  object);
	else if (object)
		to->mr = container_of(object, struct fabrex_mr, object);
	pthread_mutex_unlock(&port->lock);
	return object;
}

static int event_wait(struct fabrex_port *port, uint64_t deadline)
{
	struct pollfd pfd = {
		.fd = port->ops->event_fd(port->transport), .events = POLLIN,
	};
	int ret = poll(&pfd, 1, fxi_remaining_ms(deadline));

	if (ret > 0)
		return 0;
	if (!ret)
		return fxi_error_static(EAGAIN, "no event before the timeout");
	return fxi_error(errno, "port %s: waiting for an event: %s",
			 port->attr.name, fxi_errno_str(errno));
}

EXPORT int fabrex_event_read_sized(struct fabrex_port *port,
				   struct fabrex_port_event *ev,
				   int timeout_ms, size_t size)
{
	uint64_t deadline = fxi_deadline(timeout_ms);
	struct fabrex_port_event now;
	struct transport_event raw;
	int ret;

	for (;;) {
		ret = port->ops->event_read(port->transport, &raw);
		if (!ret && translate(port, &raw, &now)) {
			fxi_copy_out(ev, size, &now, sizeof(now));
			return 0;
		}
		if (ret && ret != -EAGAIN)
			return ret;
		if (!ret)
			continue;
		ret = event_wait(port, deadline);
		if (ret)
			return ret;
	}
}
