// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events: numbering, the log, and delivery into the ports' queues. Called by
 * the model, by queues and by windows.
 */
#include "event.h"

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

/* lock held */
static void queue_push(struct event_queue *q, const struct draco_event *ev)
{
	if (q->count == EVENT_QUEUE_LEN) {
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
		queue_push(&p->events, &e);
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

void event_queue_enable(struct event_log *log, struct event_queue *q, bool on)
{
	pthread_mutex_lock(&log->lock);
	q->head = q->count = 0;
	q->lost = 0;
	q->on = on;
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
	*lost = n ? q->lost : 0;
	if (n)
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
