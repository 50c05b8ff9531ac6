// SPDX-License-Identifier: GPL-2.0-only
/*
 * Handling of events, in order, in one work. After probe, this work alone
 * updates the core's model. Called by the workqueue only, see event.c.
 */
#include "command.h"
#include "controller.h"
#include "decode.h"
#include "dispatch.h"
#include "draco.h"
#include "event.h"
#include "release.h"
#include "topology.h"

/* If an update fails, the whole fabric is read again. */
static void draco_event_update(struct draco_dev *dd,
			       const struct fabrex_object *object)
{
	if (fabrex_model_update(dd->port, object))
		set_bit(DRACO_F_RESCAN, &dd->flags);
}

/* An object has a new state. Read the object, because more of it may have
 * changed; but report the state from the event, so that the core sees each of
 * them.
 */
static void draco_event_object(struct draco_dev *dd, const struct draco_ev *ev)
{
	struct fabrex_object object;
	int ret;

	ret = draco_topology_read(dd, ev->object, &object);
	/* A type of a later version: scans skip it too. */
	if (ret == -EOPNOTSUPP)
		return;
	if (ret) {
		set_bit(DRACO_F_RESCAN, &dd->flags);
		return;
	}
	if (ev->type == DRACO_EV_LINK && object.type == DRACO_OBJ_PORT)
		object.state = ev->state;
	draco_event_update(dd, &object);
}

static void draco_event_peer(struct draco_dev *dd, const struct draco_ev *ev)
{
	struct draco_ev host = { .type = DRACO_EV_PEER_UP };
	bool up = ev->type == DRACO_EV_PEER_UP;
	struct fabrex_object object;

	draco_event_object(dd, ev);
	/* The host behind the port may have come up or gone down with it. */
	if (!fabrex_model_get(dd->port, ev->object, &object) && object.link) {
		host.object = object.link;
		draco_event_object(dd, &host);
	}
	if (ev->object != dd->ident.info.object_id)
		fabrex_port_peer(dd->port, ev->arg[1], up, ev->arg[0]);
	else if (up)
		draco_check_generation(dd, ev->arg[0]);
}

static void draco_event_endpoint(struct draco_dev *dd,
				 const struct draco_ev *ev)
{
	struct fabrex_object object;

	if (fabrex_model_get(dd->port, ev->object, &object) ||
	    object.type != DRACO_OBJ_ENDPOINT) {
		draco_event_object(dd, ev);
		return;
	}
	object.state = ev->state;
	/* The event of an endpoint that was released names its former owner. */
	object.bound = ev->state == DRACO_EP_FREE ||
		       ev->state == DRACO_EP_GONE ? 0 : ev->port;
	object.slot = object.bound ? ev->arg[0] : 0;
	object.surprise = ev->flags & DRACO_EVF_SURPRISE;
	draco_event_update(dd, &object);
}

/* The state that was read from the fabric already contains this event: applying
 * it would undo later changes. A reset of this port is recognised by its
 * generation instead, at any time.
 */
static bool draco_event_is_old(const struct draco_dev *dd,
			       const struct draco_ev *ev)
{
	if (ev->seq > dd->events.read_seq)
		return false;
	switch (ev->type) {
	case DRACO_EV_PEER_UP:
	case DRACO_EV_PEER_DOWN:
		return ev->object != dd->ident.info.object_id;
	case DRACO_EV_LINK:
	case DRACO_EV_EP_STATE:
		return true;
	default:
		return false;
	}
}

/* The present state is known, but not that it was different for a while: a link
 * that went down and came up again leaves no other trace.
 */
static void draco_event_old(struct draco_dev *dd, const struct draco_ev *ev)
{
	if (ev->type == DRACO_EV_PEER_DOWN)
		fabrex_port_peer_was_down(dd->port, ev->arg[1], ev->arg[0]);
	else if (ev->type == DRACO_EV_LINK && ev->state != DRACO_LINK_UP &&
		 ev->object == dd->ident.info.object_id)
		fabrex_port_link_was_down(dd->port);
}

static void draco_event_dispatch(struct draco_dev *dd,
				 const struct draco_ev *ev)
{
	if (draco_event_is_old(dd, ev)) {
		draco_event_old(dd, ev);
		return;
	}
	switch (ev->type) {
	case DRACO_EV_LINK:
		draco_event_object(dd, ev);
		if (ev->object == dd->ident.info.object_id)
			fabrex_port_link(dd->port, ev->state == DRACO_LINK_UP);
		break;
	case DRACO_EV_PEER_UP:
	case DRACO_EV_PEER_DOWN:
		draco_event_peer(dd, ev);
		break;
	case DRACO_EV_EP_STATE:
		draco_event_endpoint(dd, ev);
		break;
	case DRACO_EV_RELEASE_REQUEST:
		draco_release_request(dd, ev);
		break;
	case DRACO_EV_QUEUE_ERROR:
		fabrex_port_queue_error(dd->port, ev->object, ev->arg[1],
					ev->arg[0]);
		break;
	case DRACO_EV_WINDOW_FAULT:
		fabrex_port_window_fault(dd->port, ev->object, ev->arg[1],
					 ev->arg[0]);
		break;
	case DRACO_EV_RESET:
		fabrex_port_notice(dd->port, FABREX_NOTICE_RESET, ev->object,
				   ev->arg[0]);
		set_bit(DRACO_F_RESCAN, &dd->flags);
		draco_controller_check(dd);
		break;
	case DRACO_EV_FAULT:
		fabrex_port_notice(dd->port, FABREX_NOTICE_FAULT, ev->object,
				   ev->arg[0]);
		break;
	}
}

/* Query what no event has reported, or may not have. One independently of the
 * other, as the device may be able to answer only one of them: requests first,
 * because somebody waits for the reply. Returns false if anything has to be
 * tried again.
 */
static bool draco_events_repair(struct draco_dev *dd)
{
	int ret = 0;

	if (test_and_clear_bit(DRACO_F_QUERY_REQUESTS, &dd->flags)) {
		ret = draco_release_query(dd);
		if (ret)
			set_bit(DRACO_F_QUERY_REQUESTS, &dd->flags);
	}
	if (ret != -ENODEV && test_bit(DRACO_F_RESCAN, &dd->flags))
		ret = draco_topology_scan(dd, DRACO_CMD_DRIVER | DRACO_CMD_LONG);
	/* The controller was stopped; this is repeated when it has been
	 * restarted.
	 */
	if (ret == -ENODEV)
		return true;
	if (dd->events.lost) {
		dd->events.lost = false;
		fabrex_port_notice(dd->port, FABREX_NOTICE_LOST, 0, 0);
	}
	return !test_bit(DRACO_F_QUERY_REQUESTS, &dd->flags) &&
	       !test_bit(DRACO_F_RESCAN, &dd->flags);
}

/**
 * draco_dispatch_work() - handle the events that have arrived
 * @work: draco_events.work
 *
 * Context: Workqueue.
 */
void draco_dispatch_work(struct work_struct *work)
{
	struct draco_dev *dd = container_of(to_delayed_work(work),
					    struct draco_dev, events.work);
	struct draco_ev ev;
	bool retry;
	u32 i, n;
	int ret;

	if (!test_bit(DRACO_F_EVENTS, &dd->flags))
		return;
	n = draco_events_receive(dd, &retry);
	for (i = 0; i < n && test_bit(DRACO_F_EVENTS, &dd->flags); i++) {
		ret = draco_decode_event(&dd->events.copy[i],
					 dd->ident.info.max_peers, &ev);
		if (!ret)
			draco_event_dispatch(dd, &ev);
		else if (ret != -EOPNOTSUPP)
			dev_warn_ratelimited(&dd->pdev->dev,
					     "invalid event of type %u\n", ev.type);
	}
	if (!draco_events_repair(dd))
		retry = true;
	draco_events_finish(dd, retry);
}
