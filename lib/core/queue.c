// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Creation and end of queues, and the error messages about them. Public half:
 * fabrex_queue_create(3).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/internal.h"

#define DEFAULT_SQ	128u
#define DEFAULT_CELL	256u

static bool power_of_two(uint32_t n)
{
	return n && !(n & (n - 1));
}

static uint32_t round_up_pow2(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p <<= 1;
	return p;
}

/* The caller's structure may be older or newer than ours. */
static int take_attr(struct fabrex_port *port,
		     const struct fabrex_queue_attr *attr, size_t size,
		     struct fabrex_queue_attr *out)
{
	int ret;

	memset(out, 0, sizeof(*out));
	if (!attr)
		return 0;
	ret = fxi_copy_in(port, "queue", out, sizeof(*out), attr, size);
	if (ret)
		return ret;
	if (out->flags & ~FABREX_QUEUE_EVENTFD || out->reserved)
		return fxi_error(EINVAL, "port %s: queue attributes: unknown flags 0x%x or reserved not 0",
				 port->attr.name,
				 out->flags & ~FABREX_QUEUE_EVENTFD);
	return 0;
}

static int check_ring(struct fabrex_port *port, const char *what,
		      uint32_t value, uint32_t min, uint32_t max)
{
	if (power_of_two(value) && value >= min && value <= max)
		return 0;
	return fxi_error(EINVAL, "port %s: queue with %s = %u: use a power of two from %u to %u",
			 port->attr.name, what, value, min, max);
}

static int check_attr(struct fabrex_port *port, struct fabrex_queue_attr *a)
{
	const struct fabrex_port_attr *max = &port->attr;
	int ret;

	if (!a->sq_entries)
		a->sq_entries = DEFAULT_SQ < max->max_sq ? DEFAULT_SQ :
							   max->max_sq;
	if (a->rq_entries && !a->cell_size)
		a->cell_size = DEFAULT_CELL < max->max_cell ? DEFAULT_CELL :
							      max->max_cell;
	ret = check_ring(port, "sq_entries", a->sq_entries, FABREX_SQ_MIN,
			 max->max_sq);
	if (!ret && a->rq_entries)
		ret = check_ring(port, "rq_entries", a->rq_entries, 1,
				 max->max_rq);
	if (!ret && a->rq_entries)
		ret = check_ring(port, "cell_size", a->cell_size,
				 FABREX_CELL_MIN, max->max_cell);
	if (ret)
		return ret;
	if (!a->rq_entries && a->cell_size)
		return fxi_error(EINVAL, "port %s: queue with cell_size but no rq_entries; set both or neither",
				 port->attr.name);
	if (!a->cq_entries)
		a->cq_entries = round_up_pow2(a->sq_entries + a->rq_entries);
	ret = check_ring(port, "cq_entries", a->cq_entries, FABREX_SQ_MIN,
			 max->max_cq);
	if (ret)
		return ret;
	if (a->cq_entries < a->sq_entries + a->rq_entries)
		return fxi_error(EINVAL, "port %s: queue with cq_entries = %u cannot hold a completion for each of %u + %u entries; use %u or 0",
				 port->attr.name, a->cq_entries, a->sq_entries,
				 a->rq_entries,
				 round_up_pow2(a->sq_entries + a->rq_entries));
	return 0;
}

static struct fabrex_queue *queue_alloc(struct fabrex_port *port,
					uint32_t flags)
{
	size_t size = (port->ops->queue_size + 63) & ~(size_t)63;
	struct fabrex_queue *q = aligned_alloc(64, size);

	if (!q)
		return NULL;
	memset(q, 0, size);
	q->object.port = port;
	q->efd = -1;
	if (flags & FABREX_QUEUE_EVENTFD)
		q->efd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (q->efd >= 0 || !(flags & FABREX_QUEUE_EVENTFD))
		return q;
	free(q);
	return NULL;
}

static void queue_free(struct fabrex_queue *q)
{
	if (q->efd >= 0)
		close(q->efd);
	free(q);
}

static int create(struct fabrex_port *port, struct fabrex_queue *q,
		  const struct fabrex_queue_attr *a)
{
	struct birth birth;
	uint64_t id = 0;
	int ret;

	fxi_birth_begin(port, &birth);
	ret = port->ops->queue_create(port->transport, a, q, &id);
	if (!ret)
		fxi_object_add(port, &q->object, OBJECT_QUEUE, id);
	fxi_birth_end(port, &birth);
	return ret;
}

EXPORT int fabrex_queue_create(struct fabrex_port *port,
			       const struct fabrex_queue_attr *attr,
			       size_t size, struct fabrex_queue **out)
{
	NO_CANCEL();
	struct fabrex_queue_attr a;
	struct fabrex_queue *q;
	int ret;

	ret = take_attr(port, attr, size, &a);
	if (!ret)
		ret = check_attr(port, &a);
	if (ret)
		return ret;
	q = queue_alloc(port, a.flags);
	if (!q)
		return fxi_error(ENOMEM, "port %s: queue: no memory or file descriptor left; see ulimit -n",
				 port->attr.name);
	ret = create(port, q, &a);
	if (ret) {
		queue_free(q);
		return ret;
	}
	*out = q;
	return 0;
}

EXPORT int fabrex_queue_destroy(struct fabrex_queue *q)
{
	NO_CANCEL();
	struct fabrex_port *port;
	int ret;

	if (!q)
		return 0;
	port = q->object.port;
	ret = fxi_object_end(&q->object);
	if (ret < 0)
		return ret;
	port->ops->queue_free(port->transport, q, !ret);
	queue_free(q);
	return 0;
}

EXPORT uint32_t fabrex_queue_number(const struct fabrex_queue *queue)
{
	return queue->number;
}

EXPORT uint64_t fabrex_queue_key(const struct fabrex_queue *queue)
{
	return queue->key;
}

EXPORT int fabrex_queue_fd(const struct fabrex_queue *queue)
{
	if (queue->efd >= 0)
		return queue->efd;
	return fxi_error(EINVAL, "port %s: queue %u has no eventfd; create it with FABREX_QUEUE_EVENTFD",
			 queue->object.port->attr.name, queue->number);
}

EXPORT int fabrex_resolve(struct fabrex_port *port, uint32_t peer,
			  uint64_t service, uint32_t *number, uint64_t *key)
{
	return port->ops->resolve(port->transport, peer, service, number, key);
}

/* ---- errors ------------------------------------------------------------ */

int fxi_queue_invalid(const struct fabrex_queue *q, const char *why)
{
	return fxi_error(EINVAL, "port %s: queue %u: %s",
			 q->object.port->attr.name, q->number, why);
}

int fxi_queue_full(void)
{
	return fxi_error_static(EAGAIN, "queue: as many entries are outstanding as the rings hold; call fabrex_poll() first");
}

int fxi_queue_ended(const struct fabrex_queue *q, const char *cause)
{
	return fxi_error(ENETDOWN, "port %s: queue %u has ended: %s; poll what is outstanding, destroy it, create another",
			 q->object.port->attr.name, q->number, cause);
}
