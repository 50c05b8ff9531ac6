// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events: one GET_EVENTS is always pending; its result is handled in a work,
 * in order. The work is also the only feeder of the core's model after probe.
 */
#include <linux/slab.h>

#include "draco.h"

#define DRACO_EVENT_BYTES	4096u
#define DRACO_EVENT_COUNT	(DRACO_EVENT_BYTES / sizeof(struct draco_event))
/* Until the next try when a scan failed or the device misbehaves. */
#define DRACO_EVENT_RETRY_MS	500
/* A GET_EVENTS that got stuck would go unnoticed, as it may take for ever: one
 * that is as old as this is withdrawn and issued again.
 */
#define DRACO_EVENT_REFRESH_MS	10000

/* GET_EVENTS has completed, or the controller was stopped; any context. */
static void draco_events_complete(struct draco_dev *dd, struct draco_cmd *cmd)
{
	set_bit(DRACO_F_EVENTS_DONE, &dd->flags);
	if (test_bit(DRACO_F_EVENTS, &dd->flags))
		mod_delayed_work(dd->wq, &dd->events.work, 0);
}

/**
 * draco_events_arm() - make GET_EVENTS pending; by probe, then the work only
 * @dd: device
 */
void draco_events_arm(struct draco_dev *dd)
{
	struct draco_events *ev = &dd->events;

	if (ev->armed)
		return;
	draco_cmd_init(&ev->cmd, DRACO_ADM_GET_EVENTS, 0);
	draco_cmd_data(&ev->cmd, &ev->buf,
		       DRACO_EVENT_COUNT * sizeof(struct draco_event));
	ev->cmd.complete = draco_events_complete;
	ev->withdrawn = false;
	ev->since = jiffies;
	ev->armed = !draco_admin_submit(dd, &ev->cmd, DRACO_PRIO_RESERVE);
}

static void draco_events_refresh(struct draco_dev *dd)
{
	struct draco_events *ev = &dd->events;
	u32 epoch = READ_ONCE(dd->epoch);
	struct draco_cmd cmd;

	if (!ev->armed || test_bit(DRACO_F_EVENTS_DONE, &dd->flags) ||
	    time_before(jiffies, ev->since +
			msecs_to_jiffies(DRACO_EVENT_REFRESH_MS)))
		return;
	if (ev->withdrawn) {
		draco_reset(dd, epoch, "GET_EVENTS hangs");
		return;
	}
	ev->withdrawn = true;
	ev->since = jiffies;
	draco_cmd_init(&cmd, DRACO_ADM_ABORT, le16_to_cpu(ev->cmd.sqe.cid));
	cmd.flags = DRACO_CMD_DRIVER | DRACO_CMD_LONG;
	draco_admin_exec(dd, &cmd);
}

/* What cannot be done now is made good by reading all of the fabric. */
static void draco_event_update(struct draco_dev *dd,
			       const struct fabrex_object *object)
{
	if (fabrex_model_update(dd->port, object))
		set_bit(DRACO_F_RESCAN, &dd->flags);
}

/* An element of the fabric has a new state: read it, as more may have changed
 * with it, but tell the core the state of the event, so that it sees each.
 */
static void draco_event_object(struct draco_dev *dd, const struct draco_ev *ev)
{
	struct fabrex_object object;
	int ret;

	ret = draco_topology_read(dd, ev->object, &object);
	/* Of a later version's type, which scans leave out as well. */
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

static void draco_event_link(struct draco_dev *dd, const struct draco_ev *ev)
{
	draco_event_object(dd, ev);
	if (ev->object == dd->ident.info.object_id)
		fabrex_port_link(dd->port, ev->state == DRACO_LINK_UP);
}

/* The host of the port may have come up or gone down with it. */
static void draco_event_host(struct draco_dev *dd, u32 port)
{
	struct draco_ev host = { .type = DRACO_EV_PEER_UP };
	struct fabrex_object object;

	if (fabrex_model_get(dd->port, port, &object) || !object.link)
		return;
	host.object = object.link;
	draco_event_object(dd, &host);
}

static void draco_event_peer(struct draco_dev *dd, const struct draco_ev *ev)
{
	bool up = ev->type == DRACO_EV_PEER_UP;

	draco_event_object(dd, ev);
	draco_event_host(dd, ev->object);
	if (ev->object != dd->ident.info.object_id)
		fabrex_port_peer(dd->port, ev->arg[1], up, ev->arg[0]);
	else if (up)
		draco_enabled_anew(dd, ev->arg[0]);
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
	/* Of one that has been let go, the event names the former owner. */
	object.bound = ev->state == DRACO_EP_FREE ||
		       ev->state == DRACO_EP_GONE ? 0 : ev->port;
	object.slot = object.bound ? ev->arg[0] : 0;
	object.surprise = ev->flags & DRACO_EVF_SURPRISE;
	draco_event_update(dd, &object);
}

/* Older than what was read of the fabric, which contains it: it would put back
 * what has changed since. A reset of the own port is told by its generation,
 * whenever.
 */
static bool draco_event_history(const struct draco_dev *dd,
				const struct draco_ev *ev)
{
	if (ev->seq > dd->events.horizon)
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

/* What is the case is known by now. That it was not, meanwhile, is not: a link
 * that was down and is up again leaves no other trace.
 */
static void draco_event_past(struct draco_dev *dd, const struct draco_ev *ev)
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
	if (draco_event_history(dd, ev)) {
		draco_event_past(dd, ev);
		return;
	}
	switch (ev->type) {
	case DRACO_EV_LINK:
		draco_event_link(dd, ev);
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
		draco_check(dd);
		break;
	case DRACO_EV_FAULT:
		fabrex_port_notice(dd->port, FABREX_NOTICE_FAULT, ev->object,
				   ev->arg[0]);
		break;
	}
}

/* Whoever waits for the model to change looks again. */
static void draco_events_followed(struct draco_dev *dd)
{
	WRITE_ONCE(dd->followed, dd->followed + 1);
	wake_up_all(&dd->changed);
}

/* Take the result of GET_EVENTS. Returns the number of events in @copy; 0 also
 * if the device did not answer as it has to: *@broken.
 */
static u32 draco_events_take(struct draco_dev *dd, bool *broken)
{
	struct draco_events *ev = &dd->events;
	u64 n;

	*broken = false;
	if (!test_and_clear_bit(DRACO_F_EVENTS_DONE, &dd->flags))
		return 0;
	ev->armed = false;
	if (ev->cmd.error)
		return 0;
	if (draco_cmd_status(&ev->cmd) == DRACO_SC_ABORTED && ev->withdrawn)
		return 0;
	n = le64_to_cpu(ev->cmd.cpl.result);
	if (draco_cmd_status(&ev->cmd) || n > DRACO_EVENT_COUNT ||
	    (!n && !ev->cmd.cpl.result2)) {
		dev_warn_ratelimited(&dd->pdev->dev,
				     "GET_EVENTS: status %u, %llu events\n",
				     draco_cmd_status(&ev->cmd), n);
		*broken = true;
		return 0;
	}
	if (ev->cmd.cpl.result2) {
		ev->lost = true;
		set_bit(DRACO_F_RESCAN, &dd->flags);
		set_bit(DRACO_F_REQUESTS, &dd->flags);
	}
	memcpy(ev->copy, ev->buf.va, n * sizeof(*ev->copy));
	return n;
}

/* Ask for what events have not told, or nobody knows whether they have. Each for
 * itself, as the device may be able to answer one and not the other: requests
 * first, since somebody waits for their answers. Returns false if something has
 * to be tried again.
 */
static bool draco_events_repair(struct draco_dev *dd)
{
	int ret = 0;

	if (test_and_clear_bit(DRACO_F_REQUESTS, &dd->flags)) {
		ret = draco_release_ask(dd);
		if (ret)
			set_bit(DRACO_F_REQUESTS, &dd->flags);
	}
	if (ret != -ENODEV && test_bit(DRACO_F_RESCAN, &dd->flags))
		ret = draco_topology_scan(dd, DRACO_CMD_DRIVER | DRACO_CMD_LONG);
	/* Stopped meanwhile: done when it has been started again. */
	if (ret == -ENODEV)
		return true;
	if (dd->events.lost) {
		dd->events.lost = false;
		fabrex_port_notice(dd->port, FABREX_NOTICE_LOST, 0, 0);
	}
	return !test_bit(DRACO_F_REQUESTS, &dd->flags) &&
	       !test_bit(DRACO_F_RESCAN, &dd->flags);
}

static void draco_events_work(struct work_struct *work)
{
	struct draco_dev *dd = container_of(to_delayed_work(work),
					    struct draco_dev, events.work);
	struct draco_ev ev;
	bool broken;
	u32 i, n;
	int ret;

	if (!test_bit(DRACO_F_EVENTS, &dd->flags))
		return;
	draco_events_refresh(dd);
	n = draco_events_take(dd, &broken);
	if (!broken)
		draco_events_arm(dd);
	/* There was no slot free: soon there is. */
	if (!dd->events.armed &&
	    READ_ONCE(dd->admin.state) == DRACO_ADMIN_LIVE)
		broken = true;
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
		broken = true;
	draco_events_followed(dd);
	queue_delayed_work(dd->wq, &dd->events.work,
			   msecs_to_jiffies(broken ? DRACO_EVENT_RETRY_MS :
						     DRACO_EVENT_REFRESH_MS));
}

/**
 * draco_events_kick() - handle events from now on; probe and recovery
 * @dd:     device; its controller is LIVE
 * @rescan: read the whole fabric first
 */
void draco_events_kick(struct draco_dev *dd, bool rescan)
{
	if (rescan)
		set_bit(DRACO_F_RESCAN, &dd->flags);
	/* Some may be from before the controller was enabled. */
	set_bit(DRACO_F_REQUESTS, &dd->flags);
	if (test_bit(DRACO_F_EVENTS, &dd->flags))
		mod_delayed_work(dd->wq, &dd->events.work, 0);
}

/**
 * draco_events_requests() - ask for release requests, but not at once
 * @dd: device
 */
void draco_events_requests(struct draco_dev *dd)
{
	set_bit(DRACO_F_REQUESTS, &dd->flags);
	/* If events are there, the work is due at once. */
	if (test_bit(DRACO_F_EVENTS, &dd->flags) &&
	    !test_bit(DRACO_F_EVENTS_DONE, &dd->flags))
		mod_delayed_work(dd->wq, &dd->events.work,
				 msecs_to_jiffies(DRACO_EVENT_RETRY_MS));
}

/**
 * draco_events_stop() - handle no more events
 * @dd: device; the core is not called by the work when this has returned
 */
void draco_events_stop(struct draco_dev *dd)
{
	clear_bit(DRACO_F_EVENTS, &dd->flags);
	cancel_delayed_work_sync(&dd->events.work);
	draco_events_followed(dd);
}

/**
 * draco_events_init() - allocate
 * @dd: device
 *
 * Return: 0 or -ENOMEM
 */
int draco_events_init(struct draco_dev *dd)
{
	struct draco_events *ev = &dd->events;
	int ret;

	INIT_DELAYED_WORK(&ev->work, draco_events_work);
	init_waitqueue_head(&dd->changed);
	ev->copy = kcalloc(DRACO_EVENT_COUNT, sizeof(*ev->copy), GFP_KERNEL);
	if (!ev->copy)
		return -ENOMEM;
	ret = draco_buf_alloc(dd, &ev->buf, DRACO_EVENT_BYTES);
	if (ret)
		kfree(ev->copy);
	return ret;
}

/**
 * draco_events_free() - free
 * @dd: device; controller is stopped, interrupts are gone
 */
void draco_events_free(struct draco_dev *dd)
{
	/* The stop of the controller completed GET_EVENTS: it may be queued. */
	cancel_delayed_work_sync(&dd->events.work);
	draco_buf_free(dd, &dd->events.buf);
	kfree(dd->events.copy);
}
