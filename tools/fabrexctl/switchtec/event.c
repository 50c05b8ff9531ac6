// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events: the driver tells of changes of this host's partition, and once in a
 * second we look anyway. What it was is found by looking at all bindings and links.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "fabric.h"
#include "util.h"

/* Links, and what is bound to others, raise no event here. */
#define LOOK_SECONDS	1

struct watch {
	int epoll, timer;
	struct object *last;	/* by id */
	uint64_t seq;
};

static int add(int epoll, int fd, uint32_t events)
{
	struct epoll_event ev = { .events = events };

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev);
}

static int open_all(struct pfx_fabric *f, struct watch *w, struct err *e)
{
	const struct itimerspec often = { { LOOK_SECONDS, 0 },
					  { LOOK_SECONDS, 0 } };
	int i, r = 0;

	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	w->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (w->epoll < 0 || w->timer < 0 ||
	    timerfd_settime(w->timer, 0, &often, NULL) ||
	    add(w->epoll, w->timer, EPOLLIN))
		return err_set(e, errno, "events", "cannot wait for events: %s",
			       strerror(errno));
	for (i = 0; i < f->ndevices && !r; i++) {
		r = device_watch(&f->devices[i], e);
		if (!r && add(w->epoll, f->devices[i].fd, EPOLLPRI))
			r = err_set(e, errno, f->devices[i].node, "cannot wait "
				    "for events of %s: %s", f->devices[i].node,
				    strerror(errno));
	}
	return r;
}

int pfx_subscribe(struct backend *b, const char *group, struct err *e)
{
	struct pfx_fabric *f = to_pfx(b);
	struct watch *w;
	uint32_t id;
	int r;

	if (strcmp(group, FABREX_MCGRP_EVENTS))
		return err_set(e, EOPNOTSUPP, group, "with a Switchtec nobody "
			       "can ask this host to let a device go: whoever "
			       "owns it runs \"fabrexctl release\"");
	if (f->watch)
		return 0;
	w = xcalloc(1, sizeof(*w));
	w->epoll = w->timer = -1;
	f->watch = w;
	r = open_all(f, w, e);
	if (!r)
		r = pfx_look(f, e);
	if (r)
		return r;
	w->last = xcalloc(f->ids, sizeof(*w->last));
	for (id = 1; id < f->ids; id++)
		pfx_object(f, id, &w->last[id]);
	return 0;
}

int pfx_event_fd(struct backend *b)
{
	return to_pfx(b)->watch->epoll;
}

void pfx_unwatch(struct pfx_fabric *f)
{
	if (!f->watch)
		return;
	if (f->watch->epoll >= 0)
		close(f->watch->epoll);
	if (f->watch->timer >= 0)
		close(f->watch->timer);
	free(f->watch->last);
	free(f->watch);
	f->watch = NULL;
}

static void describe(struct pfx_fabric *f, const struct object *o,
		     const struct object *was, struct event *ev)
{
	bool ep = o->type == T_ENDPOINT;
	struct object port;

	*ev = (struct event){
		.fport = f->b.fport,
		.type = ep ? FABREX_EVENT_TYPE_ENDPOINT
			   : FABREX_EVENT_TYPE_LINK,
		.time_ns = realtime_ns(), .seq = ++f->watch->seq,
		.object_type = o->type, .object = o->id,
		.has_state = true, .state = o->state,
		.port = o->bound ? o->bound : was->bound,
		.slot = o->bound ? o->slot : 0,
	};
	snprintf(ev->name, sizeof(ev->name), "%s", o->name);
	snprintf(ev->pci_name, sizeof(ev->pci_name), "%s", o->pci_name);
	if (ep && ev->port && pfx_object(f, ev->port, &port))
		snprintf(ev->port_name, sizeof(ev->port_name), "%s",
			 port.name);
}

static bool changed(const struct object *o, const struct object *was)
{
	return (o->type == T_ENDPOINT || o->type == T_PORT) &&
	       (o->state != was->state || o->bound != was->bound ||
		o->slot != was->slot);
}

int pfx_events(struct backend *b,
	       int (*fn)(const struct event *ev, void *arg), void *arg,
	       struct err *e)
{
	struct pfx_fabric *f = to_pfx(b);
	struct watch *w = f->watch;
	struct object o, was;
	struct event ev;
	uint64_t ticks;
	uint32_t id;
	int i, r = 0;

	if (read(w->timer, &ticks, sizeof(ticks)) < 0 && errno != EAGAIN)
		return err_set(e, errno, "events", "cannot wait for events: %s",
			       strerror(errno));
	/* Made quiet first: what happens while we look is another event. */
	for (i = 0; i < f->ndevices && !r; i++)
		r = device_watch(&f->devices[i], e);
	if (!r)
		r = pfx_look(f, e);
	for (id = 1; id < f->ids && !r; id++) {
		was = w->last[id];
		pfx_object(f, id, &o);
		w->last[id] = o;
		if (!changed(&o, &was))
			continue;
		describe(f, &o, &was, &ev);
		r = fn(&ev, arg);
	}
	return r;
}
