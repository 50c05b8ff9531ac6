// SPDX-License-Identifier: GPL-2.0-only
/*
 * What backends report: the state of the fabric, links, peers, errors of queues
 * and windows, requests to release an endpoint. Told to open files as events
 * and over netlink. Called by backends only.
 */
#include "genl.h"
#include "fabrex_nl.h"
#include "data.h"
#include "report.h"
#include "trace.h"

/* What the last change means to those who listen. */
static void object_notify(struct fabrex_port *port,
			  const struct fabrex_object *old,
			  const struct fabrex_object *new, bool surprise)
{
	struct fabrex_notice_msg msg = {
		.object = new,
		.state = new->state,
		.has_state = true,
		.surprise = surprise,
	};

	if (new->type == FABREX_OBJECT_TYPE_PORT && old->state != new->state) {
		msg.type = FABREX_EVENT_TYPE_LINK;
		if (new->kind == FABREX_PORT_KIND_HOST)
			msg.port = new->id;
	} else if (new->type == FABREX_OBJECT_TYPE_ENDPOINT &&
		   (old->state != new->state || old->bound != new->bound)) {
		msg.type = FABREX_EVENT_TYPE_ENDPOINT;
		/* An endpoint that was let go was somebody's. */
		msg.port = new->bound ?: old->bound;
		msg.slot = new->slot ?: old->slot;
	} else {
		return;
	}
	fabrex_notify(port, &msg);
}

/**
 * fabrex_model_update() - the fabric has an element, and this is its state
 * @port:   port
 * @object: copied
 *
 * Changes of link and endpoint states are sent as netlink events once the
 * first scan has ended. Calls for one port must not overlap.
 *
 * Return: 0; -EINVAL without id or name; -ENOSPC if there are too many; -ENOMEM
 */
int fabrex_model_update(struct fabrex_port *port,
			const struct fabrex_object *object)
{
	struct fabrex_object before;
	int ret;

	ret = fabrex_model_store(port, object, &before);
	if (ret > 0)
		object_notify(port, &before, object, object->surprise);
	return min(ret, 0);
}
FABREX_EXPORT(fabrex_model_update);

static void peer_notify(struct fabrex_port *port, u32 peer, bool up,
			u32 generation)
{
	struct fabrex_object object;
	struct fabrex_notice_msg msg = {
		.type = up ? FABREX_EVENT_TYPE_PEER_UP :
			     FABREX_EVENT_TYPE_PEER_DOWN,
		.object = &object,
		.generation = generation,
	};

	if (!fabrex_model_peer(port, peer, up, generation, &object))
		return;
	msg.port = object.id;
	fabrex_notify(port, &msg);
}

static void fabrex_port_event(struct fabrex_port *port,
			      const struct fabrex_event *event)
{
	struct fabrex_file *file;

	trace_fabrex_event(port, event);
	mutex_lock(&port->files_lock);
	list_for_each_entry(file, &port->files, list)
		fabrex_events_push(&file->events, event);
	mutex_unlock(&port->files_lock);
}

/* The device has dropped events. Links and peers are again what the device says,
 * or will be, and what is different then is told.
 */
static void fabrex_port_lost(struct fabrex_port *port)
{
	struct fabrex_file *file;

	mutex_lock(&port->files_lock);
	list_for_each_entry(file, &port->files, list)
		fabrex_events_lose(&file->events);
	mutex_unlock(&port->files_lock);
}

/**
 * fabrex_port_notice() - something happened that changes no element's state
 * @port: port
 * @what: FABREX_NOTICE_*
 * @id:   object id of the switch or element
 * @code: of a fault
 */
void fabrex_port_notice(struct fabrex_port *port, enum fabrex_notice what,
			u32 id, u64 code)
{
	struct fabrex_object object = {};
	struct fabrex_notice_msg msg = {
		.type = what == FABREX_NOTICE_RESET ? FABREX_EVENT_TYPE_RESET :
			what == FABREX_NOTICE_LOST ? FABREX_EVENT_TYPE_LOST :
						     FABREX_EVENT_TYPE_FAULT,
		.state = code,
		.has_state = what == FABREX_NOTICE_FAULT,
	};

	if (!fabrex_model_get(port, id, &object))
		msg.object = &object;
	if (what == FABREX_NOTICE_LOST)
		fabrex_port_lost(port);
	fabrex_notify(port, &msg);
}
FABREX_EXPORT(fabrex_port_notice);

/**
 * fabrex_port_link() - the fabric side link of the port changed
 * @port: port
 * @up:   new state
 */
void fabrex_port_link(struct fabrex_port *port, bool up)
{
	struct fabrex_event event = {
		.type = up ? FABREX_EVENT_LINK_UP : FABREX_EVENT_LINK_DOWN,
	};

	if (READ_ONCE(port->link_up) == up)
		return;
	WRITE_ONCE(port->link_up, up);
	fabrex_port_event(port, &event);
}
FABREX_EXPORT(fabrex_port_link);

/**
 * fabrex_port_link_was_down() - and it may be up again
 * @port: port; its link has been read since
 */
void fabrex_port_link_was_down(struct fabrex_port *port)
{
	if (!READ_ONCE(port->link_up))
		return;
	fabrex_port_link(port, false);
	fabrex_port_link(port, true);
}
FABREX_EXPORT(fabrex_port_link_was_down);

/**
 * fabrex_port_peer() - a peer was enabled, or is not any more
 * @port:       port
 * @peer:       number of the peer
 * @up:         new state
 * @generation: of its port
 */
void fabrex_port_peer(struct fabrex_port *port, u32 peer, bool up,
		      u32 generation)
{
	struct fabrex_event event = {
		.type = up ? FABREX_EVENT_PEER_UP : FABREX_EVENT_PEER_DOWN,
		.peer = peer,
		.generation = generation,
	};

	if (peer >= port->info.max_peers)
		return;
	peer_notify(port, peer, up, generation);
	fabrex_port_event(port, &event);
}
FABREX_EXPORT(fabrex_port_peer);

/**
 * fabrex_port_peer_is() - this is the case, whatever was told so far
 * @port:       port
 * @peer:       number of the peer
 * @up:         it is enabled and can be reached
 * @generation: of its port
 *
 * Makes up for events that have been lost. Of a peer that was enabled anew in
 * between it is told that it went down, too.
 */
void fabrex_port_peer_is(struct fabrex_port *port, u32 peer, bool up,
			 u32 generation)
{
	struct fabrex_peer known;

	if (peer >= port->info.max_peers)
		return;
	fabrex_model_peer_known(port, peer, &known);
	if (known.up && (!up || known.generation != generation))
		fabrex_port_peer(port, peer, false, known.generation);
	else if (!known.up && !up)
		fabrex_model_peer_down(port, peer, generation);
	if (up && (!known.up || known.generation != generation))
		fabrex_port_peer(port, peer, true, generation);
}
FABREX_EXPORT(fabrex_port_peer_is);

/**
 * fabrex_port_peer_was_down() - and it may be up again
 * @port:       port; fabrex_port_peer_is() has been called since
 * @peer:       number of the peer
 * @generation: of its port then
 *
 * Of one that is up in the same generation it is told that it was down, and is
 * up: operations under way have failed on either side.
 */
void fabrex_port_peer_was_down(struct fabrex_port *port, u32 peer,
			       u32 generation)
{
	struct fabrex_peer known;

	if (peer >= port->info.max_peers)
		return;
	fabrex_model_peer_known(port, peer, &known);
	if (!known.up || known.generation != generation)
		return;
	fabrex_port_peer(port, peer, false, generation);
	fabrex_port_peer(port, peer, true, generation);
}
FABREX_EXPORT(fabrex_port_peer_was_down);

static void fabrex_res_event(struct fabrex_res *res, u32 type, u32 error)
{
	struct fabrex_event event = {
		.type = type,
		.id = res->id,
		.error = error,
	};

	trace_fabrex_event(res->port, &event);
	fabrex_events_push(&res->file->events, &event);
}

/**
 * fabrex_port_queue_error() - the device stopped a queue
 * @port:   port
 * @number: of the queue
 * @serial: that it was created with; of another one nobody is told
 * @qerr:   FABREX_QERR_*
 */
void fabrex_port_queue_error(struct fabrex_port *port, u32 number, u64 serial,
			     u32 qerr)
{
	struct fabrex_queue *queue;

	rcu_read_lock();
	queue = xa_load(&port->queues, number);
	if (queue && queue->serial == serial)
		fabrex_res_event(&queue->res, FABREX_EVENT_QUEUE_ERROR, qerr);
	rcu_read_unlock();
}
FABREX_EXPORT(fabrex_port_queue_error);

/**
 * fabrex_port_window_fault() - an access through a window failed
 * @port:   port
 * @number: of the window
 * @serial: that it was created with; of another one nobody is told
 * @wc:     FABREX_WC_*
 */
void fabrex_port_window_fault(struct fabrex_port *port, u32 number, u64 serial,
			      u32 wc)
{
	struct fabrex_window *window;

	rcu_read_lock();
	window = xa_load(&port->windows, number);
	if (window && window->serial == serial)
		fabrex_res_event(&window->res, FABREX_EVENT_WINDOW_FAULT, wc);
	rcu_read_unlock();
}
FABREX_EXPORT(fabrex_port_window_fault);

/**
 * fabrex_port_queue_irq() - a queue that was armed has a completion
 * @port:   port
 * @number: of the queue
 *
 * May be called in any context. A number that is not that of a queue (any
 * more) is ignored.
 */
void fabrex_port_queue_irq(struct fabrex_port *port, u32 number)
{
	struct fabrex_queue *queue;

	rcu_read_lock();
	queue = xa_load(&port->queues, number);
	if (queue && queue->eventfd)
		fabrex_eventfd_signal(queue->eventfd);
	rcu_read_unlock();
}
FABREX_EXPORT(fabrex_port_queue_irq);

/**
 * fabrex_port_release_request() - the switch wants an endpoint back
 * @port:       port that it is bound to
 * @ep:         endpoint
 * @token:      for the answer
 * @slot:       where it is
 * @timeout_ms: that the switch waits
 *
 * The answer comes through fabric->release_reply(), from the agent if one listens
 * to the netlink group, else from the core: the endpoint may go if no driver
 * is bound to it here.
 */
void fabrex_port_release_request(struct fabrex_port *port, u32 ep, u64 token,
				 u16 slot, u32 timeout_ms)
{
	struct fabrex_object object = {};
	struct fabrex_notice_msg msg = {
		.type = FABREX_EVENT_TYPE_RELEASE_REQUEST,
		.object = &object,
		.port = port->info.object_id,
		.slot = slot,
		.token = token,
		.timeout_ms = timeout_ms,
		.agent = true,
	};

	if (fabrex_model_get(port, ep, &object)) {
		object.type = FABREX_OBJECT_TYPE_ENDPOINT;
		object.id = ep;
		snprintf(object.name, sizeof(object.name), "#%u", ep);
	}
	object.bound = port->info.object_id;
	object.slot = slot;
	fabrex_notify(port, &msg);
	if (!genl_has_listeners(fabrex_genl, &init_net, FABREX_NLGRP_AGENT))
		fabrex_release_queue(port, ep, token, slot);
}
FABREX_EXPORT(fabrex_port_release_request);
