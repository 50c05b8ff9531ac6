// SPDX-License-Identifier: GPL-2.0-only
/*
 * What backends report: the state of the fabric, links, peers, errors of queues
 * and windows, release requests. Passed on to open files as events, and to
 * netlink. Called by backends only.
 */
#include "genl.h"
#include "fabrex_nl.h"
#include "data.h"
#include "report.h"
#include "trace.h"

/* Send the events that the change of an object implies. */
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
		/* For a released endpoint, the former owner. */
		msg.port = new->bound ?: old->bound;
		msg.slot = new->slot ?: old->slot;
	} else {
		return;
	}
	fabrex_notify(port, &msg);
}

/**
 * fabrex_model_update() - update or add an object
 * @port:   port
 * @object: its new state, copied
 *
 * Once the first scan has ended, changes of the states of links and endpoints
 * are sent as netlink events. Calls for the same port must not overlap.
 *
 * Context: Process; sleeps.
 * Return: 0; -EINVAL if id or name is missing; -ENOSPC if there are too many
 * objects; -ENOMEM
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

/* The device has dropped events. The states of links and peers have been read
 * again, or will be, and changes are reported as usual.
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
 * fabrex_port_notice() - report an event that changes no object's state
 * @port: port
 * @what: FABREX_NOTICE_*
 * @id:   object id of the switch or object
 * @code: of a fault
 *
 * Context: Process; sleeps.
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
 * fabrex_port_link() - report the state of the port's link to the fabric
 * @port: port
 * @up:   new state
 *
 * Context: Process; sleeps.
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
 * fabrex_port_link_was_down() - report that the link was down for a while
 * @port: port; its present state has been reported already
 *
 * Context: Process; sleeps.
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
 * fabrex_port_peer() - report that a peer was enabled or disabled
 * @port:       port
 * @peer:       number of the peer
 * @up:         new state
 * @generation: of the peer's port
 *
 * Context: Process; sleeps.
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
 * fabrex_port_peer_is() - report the state of a peer after missed events
 * @port:       port
 * @peer:       number of the peer
 * @up:         it is enabled and reachable
 * @generation: of the peer's port
 *
 * Files get the events that lead from the last reported state to this one: for
 * a peer that was enabled again meanwhile, also that it went down.
 *
 * Context: Process; sleeps.
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
 * fabrex_port_peer_was_down() - report that a peer was down for a while
 * @port:       port, after fabrex_port_peer_is()
 * @peer:       number of the peer
 * @generation: of the peer's port at that time
 *
 * If the peer is up in the same generation, files are told that it was down and
 * is up again, because operations in progress have failed on either side.
 *
 * Context: Process; sleeps.
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
 * fabrex_port_queue_error() - report that the device has stopped a queue
 * @port:   port
 * @number: of the queue
 * @serial: of the queue; if another queue has this number by now, nothing
 *          happens
 * @qerr:   FABREX_QERR_*
 *
 * Context: Process.
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
 * fabrex_port_window_fault() - report that an access to a window has failed
 * @port:   port
 * @number: of the window
 * @serial: of the window; if another window has this number by now, nothing
 *          happens
 * @wc:     FABREX_WC_*
 *
 * Context: Process.
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
 * fabrex_port_queue_irq() - report a completion in a queue that was armed
 * @port:   port
 * @number: of the queue; if there is none with this number, nothing happens
 *
 * Context: Any.
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
 * fabrex_port_release_request() - report that the switch wants an endpoint back
 * @port:       port that it is bound to
 * @ep:         endpoint
 * @token:      for the reply
 * @slot:       slot of the endpoint
 * @timeout_ms: how long the switch waits
 *
 * The reply is sent with fabric->release_reply(). The agent decides if one
 * listens to the netlink group; otherwise the core does: the endpoint may go if
 * no driver is bound to it here.
 *
 * Context: Process; sleeps.
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
