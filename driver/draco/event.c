// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reception of events: one GET_EVENTS is always pending. The work that handles
 * what has arrived is in dispatch.c, which calls this file; so do those who want
 * it to run: controller start and release.c.
 */
#include <linux/slab.h>

#include "admin.h"
#include "command.h"
#include "controller.h"
#include "draco.h"
#include "event.h"
#include "exec.h"

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
	draco_exec(dd, &cmd);
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

/**
 * draco_events_receive() - take what has arrived and make GET_EVENTS pending
 * again; event work
 * @dd:    device
 * @retry: set if the device did not answer as it has to, or cannot be asked now
 *
 * Return: number of events in draco_events.copy
 */
u32 draco_events_receive(struct draco_dev *dd, bool *retry)
{
	u32 n;

	draco_events_refresh(dd);
	n = draco_events_take(dd, retry);
	if (!*retry)
		draco_events_arm(dd);
	/* There was no slot free: soon there is. */
	if (!dd->events.armed &&
	    READ_ONCE(dd->admin.state) == DRACO_ADMIN_LIVE)
		*retry = true;
	return n;
}

/* Whoever waits for the model to change looks again. */
static void draco_events_followed(struct draco_dev *dd)
{
	WRITE_ONCE(dd->followed, dd->followed + 1);
	wake_up_all(&dd->changed);
}

/**
 * draco_events_finish() - the core's model has followed the events; event work
 * @dd:    device
 * @retry: something has to be tried again: soon
 */
void draco_events_finish(struct draco_dev *dd, bool retry)
{
	draco_events_followed(dd);
	queue_delayed_work(dd->wq, &dd->events.work,
			   msecs_to_jiffies(retry ? DRACO_EVENT_RETRY_MS :
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
 * @dd:     device
 * @handle: the work that handles what has arrived
 *
 * Return: 0 or -ENOMEM
 */
int draco_events_init(struct draco_dev *dd, work_func_t handle)
{
	struct draco_events *ev = &dd->events;
	int ret;

	INIT_DELAYED_WORK(&ev->work, handle);
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
