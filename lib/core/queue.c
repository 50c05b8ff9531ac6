// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Life of a queue: limits, rings, shadow array, eventfd. What is posted and
 * polled is in post.c and poll.c. Public half: fabrex_queue_create(3).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/core.h"
#include "core/ring.h"

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

static bool inside(const struct transport_queue *s, size_t offset, size_t n)
{
	return offset <= s->ring_size && n <= s->ring_size - offset;
}

/* A transport that says something impossible must not make us write there. */
static int check_shared(struct fabrex_port *port,
			const struct fabrex_queue_attr *a,
			const struct transport_queue *s)
{
	if (inside(s, s->ctrl_offset, sizeof(struct fabrex_qctrl)) &&
	    inside(s, s->sq_offset,
		   a->sq_entries * sizeof(struct fabrex_sqe)) &&
	    inside(s, s->cq_offset,
		   a->cq_entries * sizeof(struct fabrex_cqe)) &&
	    inside(s, s->rq_offset, (size_t)a->rq_entries * a->cell_size) &&
	    !(s->ctrl_offset % 64) && !(s->sq_offset % 64) &&
	    !(s->cq_offset % 64) && !(s->rq_offset % 64))
		return 0;
	return fxi_error(EPROTO, "port %s: queue %u: rings outside the %zu bytes mapped; library and %s do not match, update the older",
			 port->attr.name, s->number, s->ring_size,
			 port->ops->name);
}

static void queue_bind_rings(struct fabrex_queue *q)
{
	char *base = q->shared.ring;

	q->ctrl = (struct fabrex_qctrl *)(base + q->shared.ctrl_offset);
	q->sq = (struct fabrex_sqe *)(base + q->shared.sq_offset);
	q->cq = (const struct fabrex_cqe *)(base + q->shared.cq_offset);
	q->rq = (uint8_t *)base + q->shared.rq_offset;
	q->doorbell = q->shared.doorbell;
}

static void queue_bind(struct fabrex_queue *q,
		       const struct fabrex_queue_attr *a)
{
	if (!q->shared.direct)
		queue_bind_rings(q);
	q->sq_mask = a->sq_entries - 1;
	q->cq_entries = a->cq_entries;
	q->rq_entries = a->rq_entries;
	q->cell_size = a->cell_size;
	q->limit = a->cq_entries - a->rq_entries;
	if (q->limit > a->sq_entries)
		q->limit = a->sq_entries;
}

/* Nobody else reads them: entries are executed when they are submitted. */
static int make_entries(struct fabrex_port *port, struct fabrex_queue *q,
			const struct fabrex_queue_attr *a)
{
	q->sq = aligned_alloc(64, a->sq_entries * sizeof(*q->sq));
	if (!q->sq)
		return fxi_error(ENOMEM, "port %s: queue of %u entries: out of memory",
				 port->attr.name, a->sq_entries);
	memset(q->sq, 0, a->sq_entries * sizeof(*q->sq));
	return 0;
}

static struct fabrex_queue *queue_alloc(const struct fabrex_queue_attr *a)
{
	struct fabrex_queue *q = aligned_alloc(64, sizeof(*q));

	if (!q)
		return NULL;
	memset(q, 0, sizeof(*q));
	q->efd = -1;
	q->shadow = calloc(a->sq_entries, sizeof(*q->shadow));
	if (q->shadow && a->flags & FABREX_QUEUE_EVENTFD)
		q->efd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (q->shadow && (q->efd >= 0 || !(a->flags & FABREX_QUEUE_EVENTFD)))
		return q;
	free(q->shadow);
	free(q);
	return NULL;
}

static void queue_free(struct fabrex_queue *q)
{
	if (q->efd >= 0)
		close(q->efd);
	if (q->shared.direct)
		free(q->sq);
	free(q->shadow);
	free(q);
}

static int create(struct fabrex_port *port, struct fabrex_queue *q,
		  const struct fabrex_queue_attr *a)
{
	struct birth birth;
	int ret;

	fxi_birth_begin(port, &birth);
	ret = port->ops->queue_create(port->transport, a, q->efd, &q->shared);
	if (ret)
		goto end;
	ret = q->shared.direct ? make_entries(port, q, a) :
				 check_shared(port, a, &q->shared);
	if (!ret) {
		queue_bind(q, a);
		fxi_object_add(port, &q->object, OBJECT_QUEUE, q->shared.id);
	} else {
		port->ops->destroy(port->transport, q->shared.id);
		port->ops->queue_unmap(port->transport, &q->shared);
	}
end:
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
	q = queue_alloc(&a);
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
	if (!ret)
		port->ops->queue_unmap(port->transport, &q->shared);
	queue_free(q);
	return 0;
}

EXPORT uint32_t fabrex_queue_number(const struct fabrex_queue *queue)
{
	return queue->shared.number;
}

EXPORT uint64_t fabrex_queue_key(const struct fabrex_queue *queue)
{
	return queue->shared.key;
}

EXPORT int fabrex_queue_fd(const struct fabrex_queue *queue)
{
	if (queue->efd >= 0)
		return queue->efd;
	return fxi_error(EINVAL, "port %s: queue %u has no eventfd; create it with FABREX_QUEUE_EVENTFD",
			 queue->object.port->attr.name, queue->shared.number);
}

EXPORT int fabrex_resolve(struct fabrex_port *port, uint32_t peer,
			  uint64_t service, uint32_t *number, uint64_t *key)
{
	return port->ops->resolve(port->transport, peer, service, number, key);
}
