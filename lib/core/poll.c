// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Polling and sleeping, the public half: fabrex_poll(3). Where completions come
 * from is the transport's (queue_ops).
 */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "core/internal.h"

/* The caller's completions have another size than this library's. */
static __attribute__((noinline)) int
poll_other_size(struct fabrex_queue *q, void *to, int n, size_t size)
{
	struct fabrex_wc wc;
	int got, ret;

	if (size < WC_FIRST)
		return fxi_error(EINVAL, "port %s: queue %u: completions of %zu bytes: the structure has %zu at least",
				 q->object.port->attr.name, q->number, size,
				 WC_FIRST);
	for (got = 0; got < n; got++) {
		ret = q->ops->poll(q, &wc, 1);
		if (ret <= 0)
			return got ? got : ret;
		fxi_copy_out((char *)to + (size_t)got * size, size, &wc,
			     sizeof(wc));
	}
	return got;
}

EXPORT int fabrex_poll_sized(struct fabrex_queue *q, struct fabrex_wc *wc,
			     int n, size_t size)
{
	if (unlikely(size != sizeof(*wc)))
		return poll_other_size(q, wc, n, size);
	return q->ops->poll(q, wc, n);
}

EXPORT void fabrex_recv_done(struct fabrex_queue *q, unsigned int n)
{
	q->ops->recv_done(q, n);
}

EXPORT int fabrex_arm(struct fabrex_queue *q)
{
	NO_CANCEL();
	uint64_t count;

	if (q->efd < 0)
		return fabrex_queue_fd(q);
	/* Earlier signals are answered by the poll that follows. */
	while (read(q->efd, &count, sizeof(count)) > 0)
		;
	q->ops->arm(q);
	return 0;
}

/*
 * The port's own descriptor hangs up when the port goes, so that a sleeper
 * wakes even if the queue's last interrupt was lost with the device.
 */
static int sleep_on(struct fabrex_queue *q, uint64_t deadline)
{
	struct fabrex_port *port = q->object.port;
	struct pollfd pfd[2] = {
		{ .fd = q->efd, .events = POLLIN },
		{ .fd = port->ops->event_fd(port->transport), .events = 0 },
	};
	int ret = poll(pfd, 2, fxi_remaining_ms(deadline));

	if (ret > 0 && pfd[1].revents && !q->ops->pending(q))
		return fxi_error(ENODEV, "port %s: queue %u: waiting: the port is gone; close it and open it again when it is back",
				 port->attr.name, q->number);
	if (ret >= 0)
		return ret;
	return fxi_error(errno, "port %s: queue %u: waiting: %s",
			 port->attr.name, q->number, fxi_errno_str(errno));
}

EXPORT int fabrex_wait(struct fabrex_queue *q, int timeout_ms)
{
	uint64_t deadline = fxi_deadline(timeout_ms);
	int ret;

	while (!q->ops->pending(q)) {
		ret = fabrex_arm(q);
		if (ret)
			return ret;
		if (q->ops->pending(q))
			break;
		ret = sleep_on(q, deadline);
		if (ret <= 0)
			return ret;
		if (q->ops->pending(q))
			break;
		if (!fxi_remaining_ms(deadline))
			return 0;
	}
	return 1;
}
