// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events: numbering, the log, and delivery into the ports' queues. Called by
 * the model, by queues, windows and bindings.
 */
#include "event.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric.h"
#include "port.h"

_Static_assert(sizeof(struct draco_event) == 64, "docs/draco.md");

void event_init(struct event_log *log)
{
	pthread_mutex_init(&log->lock, NULL);
	log->next_seq = 1;
	log->start_ns = engine_now_ns();
}

void event_exit(struct event_log *log)
{
	pthread_mutex_destroy(&log->lock);
}

int event_queue_init(struct event_queue *q, unsigned int nreports)
{
	q->reports = calloc(nreports, sizeof(*q->reports));
	q->pending.next = q->pending.prev = &q->pending;
	return q->reports ? 0 : -ENOMEM;
}

void event_queue_free(struct event_queue *q)
{
	free(q->reports);
	q->reports = NULL;
}

/* lock held */
static void queue_push(struct port *p, const struct draco_event *ev)
{
	struct event_queue *q = &p->events;

	if (q->count == EVENT_QUEUE_LEN ||
	    fault_hit(&p->faults, DRACO_FAULT_LOST_EVENT, ev->type)) {
		q->lost++;
		return;
	}
	q->ring[(q->head + q->count++) % EVENT_QUEUE_LEN] = *ev;
}

void event_post(struct fabric *f, const struct draco_event *ev,
		const struct event_mask *to)
{
	struct event_log *log = &f->events;
	struct draco_event e = *ev;

	pthread_mutex_lock(&log->lock);
	e.seq = log->next_seq++;
	e.time_ns = engine_now_ns() - log->start_ns;
	log->ring[e.seq % EVENT_LOG_LEN] = e;
	for (unsigned int i = 0; i < f->nports; i++) {
		struct port *p = f->ports[i];

		if (!event_mask_has(to, i) || !p->events.on)
			continue;
		queue_push(p, &e);
		port_kick(p);
	}
	pthread_mutex_unlock(&log->lock);
}

void event_post_all(struct fabric *f, const struct draco_event *ev)
{
	struct event_mask all;

	memset(&all, 0xff, sizeof(all));
	event_post(f, ev, &all);
}

void event_post_one(struct fabric *f, const struct draco_event *ev,
		    unsigned int peer)
{
	struct event_mask one = { { 0 } };

	event_mask_set(&one, peer);
	event_post(f, ev, &one);
}

uint64_t event_last(struct event_log *log)
{
	uint64_t last;

	pthread_mutex_lock(&log->lock);
	last = log->next_seq - 1;
	pthread_mutex_unlock(&log->lock);
	return last;
}

/* ---- Errors of queues and windows ---- */

/* lock held */
static void report_unlink(struct event_report *r)
{
	if (!r->pending)
		return;
	r->prev->next = r->next;
	r->next->prev = r->prev;
	r->pending = false;
}

void event_report(struct port *p, unsigned int index,
		  const struct draco_event *ev)
{
	struct event_log *log = &p->fabric->events;
	struct event_report *r = &p->events.reports[index];
	struct event_report *head = &p->events.pending;

	pthread_mutex_lock(&log->lock);
	report_unlink(r);
	if (p->events.on) {
		r->ev = *ev;
		r->ev.time_ns = engine_now_ns() - log->start_ns;
		r->pending = true;
		r->next = head;
		r->prev = head->prev;
		head->prev->next = r;
		head->prev = r;
		port_kick(p);
	}
	pthread_mutex_unlock(&log->lock);
}

void event_unreport(struct port *p, unsigned int index)
{
	struct event_log *log = &p->fabric->events;

	pthread_mutex_lock(&log->lock);
	report_unlink(&p->events.reports[index]);
	pthread_mutex_unlock(&log->lock);
}

/* ---- Requests to let endpoints go ---- */

void event_request(struct port *p, const struct draco_event *ev)
{
	struct event_log *log = &p->fabric->events;
	uint64_t now = engine_now_ns();

	pthread_mutex_lock(&log->lock);
	for (unsigned int i = 0; i < EVENT_REQUESTS; i++) {
		struct event_request *r = &p->events.requests[i];

		if (r->ev.arg[0])
			continue;
		r->ev = *ev;
		r->ev.time_ns = now - log->start_ns;
		r->until_ns = ev->arg[2] ? now + ev->arg[2] * 1000000 : 0;
		break;
	}
	pthread_mutex_unlock(&log->lock);
	event_post_one(p->fabric, ev, p->peer);
}

void event_met(struct port *p, uint64_t token)
{
	struct event_log *log = &p->fabric->events;

	pthread_mutex_lock(&log->lock);
	for (unsigned int i = 0; token && i < EVENT_REQUESTS; i++) {
		if (p->events.requests[i].ev.arg[0] == token)
			memset(&p->events.requests[i], 0,
			       sizeof(p->events.requests[i]));
	}
	pthread_mutex_unlock(&log->lock);
}

size_t event_requests(struct port *p, struct draco_event *out, size_t max)
{
	struct event_log *log = &p->fabric->events;
	uint64_t now = engine_now_ns();
	size_t n = 0;

	pthread_mutex_lock(&log->lock);
	for (unsigned int i = 0; i < EVENT_REQUESTS && n < max; i++) {
		struct event_request *r = &p->events.requests[i];

		if (!r->ev.arg[0])
			continue;
		out[n] = r->ev;
		if (r->until_ns)
			out[n].arg[2] = r->until_ns > now ?
					(r->until_ns - now) / 1000000 : 0;
		n++;
	}
	pthread_mutex_unlock(&log->lock);
	return n;
}

/* ---- Queues and the log ---- */

void event_queue_enable(struct event_log *log, struct event_queue *q, bool on)
{
	pthread_mutex_lock(&log->lock);
	q->head = q->count = 0;
	q->lost = 0;
	q->on = on;
	while (q->pending.next != &q->pending)
		report_unlink(q->pending.next);
	pthread_mutex_unlock(&log->lock);
}

size_t event_queue_take(struct event_log *log, struct event_queue *q,
			struct draco_event *out, size_t max, uint64_t *lost)
{
	size_t n = 0;

	pthread_mutex_lock(&log->lock);
	while (n < max && q->count) {
		out[n++] = q->ring[q->head];
		q->head = (q->head + 1) % EVENT_QUEUE_LEN;
		q->count--;
	}
	while (n < max && q->pending.next != &q->pending) {
		out[n++] = q->pending.next->ev;
		report_unlink(q->pending.next);
	}
	*lost = q->lost;
	q->lost = 0;
	pthread_mutex_unlock(&log->lock);
	return n;
}

size_t event_log_read(struct event_log *log, uint64_t seq,
		      struct draco_event *out, size_t max)
{
	size_t n = 0;
	uint64_t first;

	pthread_mutex_lock(&log->lock);
	first = log->next_seq > EVENT_LOG_LEN ? log->next_seq - EVENT_LOG_LEN :
						1;
	if (seq < first)
		seq = first;
	for (; n < max && seq < log->next_seq; seq++)
		out[n++] = log->ring[seq % EVENT_LOG_LEN];
	pthread_mutex_unlock(&log->lock);
	return n;
}
