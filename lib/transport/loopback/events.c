// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Events of a loopback port: a ring, and an eventfd that polls readable while
 * there are some. Filled under the port's lock.
 */
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "state.h"

int fxi_loop_events_create(struct transport *t)
{
	t->state->events.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (t->state->events.fd >= 0)
		return 0;
	return fxi_error(errno, "loopback:%s: cannot create an eventfd: %s; see ulimit -n",
			 t->fabric, fxi_errno_str(errno));
}

void fxi_loop_events_destroy(struct transport *t)
{
	if (t->state->events.fd >= 0)
		close(t->state->events.fd);
}

static void ring(struct loop_events *e)
{
	uint64_t one = 1;

	if (write(e->fd, &one, sizeof(one)) < 0)
		return;		/* it polls readable already */
}

void fxi_loop_event(struct transport *t, uint32_t type, uint32_t peer,
		    uint64_t id)
{
	struct loop_events *e = &t->state->events;
	struct transport_event *event;

	if (e->count == LOOP_EVENTS) {
		e->lost = true;
		return;
	}
	event = &e->ring[(e->first + e->count++) % LOOP_EVENTS];
	*event = (struct transport_event){
		.type = type, .peer = peer, .id = id,
		.generation = t->peers[peer].generation,
		.time_ns = fxi_now_ns(),
	};
	ring(e);
}

static void quiet(struct loop_events *e)
{
	uint64_t count;

	if (read(e->fd, &count, sizeof(count)) < 0)
		return;		/* it was quiet */
}

void fxi_loop_events_clear(struct transport *t)
{
	t->state->events.count = 0;
	t->state->events.lost = false;
	quiet(&t->state->events);
}

/* Missed events are reported after those that came before. */
static bool next(struct transport *t, struct transport_event *event)
{
	struct loop_events *e = &t->state->events;

	if (e->count) {
		*event = e->ring[e->first];
		e->first = (e->first + 1) % LOOP_EVENTS;
		e->count--;
	} else if (e->lost) {
		*event = (struct transport_event){
			.type = FABREX_EV_LOST, .time_ns = fxi_now_ns(),
		};
		e->lost = false;
	} else {
		return false;
	}
	if (!e->count && !e->lost)
		quiet(e);
	return true;
}

int fxi_loop_event_fd(struct transport *t)
{
	return t->state->events.fd;
}

int fxi_loop_event_read(struct transport *t, struct transport_event *event)
{
	int old = cancel_off();
	bool got;

	pthread_mutex_lock(&t->lock);
	got = next(t, event);
	pthread_mutex_unlock(&t->lock);
	cancel_restore(old);
	return got ? 0 : fxi_error_static(EAGAIN, "no event");
}
