// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reception of events. A GET_EVENTS is always pending; its completion queues
 * the work in dispatch.c, which takes the events and submits the next one.
 * Called by that work, probe, removal, recovery, release.c and bind.c.
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
/* Delay before the next attempt if a scan failed or the device misbehaved. */
#define DRACO_EVENT_RETRY_MS	500
/* GET_EVENTS may stay pending for ever, so that nobody would notice a device
 * that has lost it: one of this age is withdrawn and issued again.
 */
#define DRACO_EVENT_REFRESH_MS	10000

/* GET_EVENTS has completed, or the controller was stopped. Any context. */
static void draco_events_complete(struct draco_dev *dd, struct draco_cmd *cmd)
{
	set_bit(DRACO_F_EVENTS_DONE, &dd->flags);
	if (test_bit(DRACO_F_EVENTS, &dd->flags))
		mod_delayed_work(dd->wq, &dd->events.work, 0);
}

/**
 * draco_events_arm() - submit GET_EVENTS, unless it is pending
 * @dd: device
 *
 * Context: Probe, then the event work only.
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
		draco_request_reset(dd, epoch, "GET_EVENTS does not complete");
		return;
	}
	ev->withdrawn = true;
	ev->since = jiffies;
	draco_cmd_init(&cmd, DRACO_ADM_ABORT, le16_to_cpu(ev->cmd.sqe.cid));
	cmd.flags = DRACO_CMD_DRIVER | DRACO_CMD_LONG;
	draco_exec(dd, &cmd);
}

/* Take the result of GET_EVENTS. Returns the number of events in @copy. If the
 * device violated the specification, *@broken is set, and there are none.
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
		set_bit(DRACO_F_QUERY_REQUESTS, &dd->flags);
	}
	memcpy(ev->copy, ev->buf.va, n * sizeof(*ev->copy));
	return n;
}

/**
 * draco_events_receive() - take new events and submit the next GET_EVENTS
 * @dd:    device
 * @retry: set if the device violated the specification, or GET_EVENTS could not
 *         be submitted
 *
 * Context: Event work.
 * Return: number of events in draco_events.copy
 */
u32 draco_events_receive(struct draco_dev *dd, bool *retry)
{
	u32 n;

	draco_events_refresh(dd);
	n = draco_events_take(dd, retry);
	if (!*retry)
		draco_events_arm(dd);
	/* No slot was free; one will be soon. */
	if (!dd->events.armed &&
	    READ_ONCE(dd->admin.state) == DRACO_ADMIN_LIVE)
		*retry = true;
	return n;
}

/* Let those who wait for a change of the model check again. */
static void draco_events_wake(struct draco_dev *dd)
{
	WRITE_ONCE(dd->model_passes, dd->model_passes + 1);
	wake_up_all(&dd->model_wait);
}

/**
 * draco_events_finish() - finish a pass of the event work: the model is updated
 * @dd:    device
 * @retry: run again soon, because something has failed
 *
 * Context: Event work.
 */
void draco_events_finish(struct draco_dev *dd, bool retry)
{
	draco_events_wake(dd);
	queue_delayed_work(dd->wq, &dd->events.work,
			   msecs_to_jiffies(retry ? DRACO_EVENT_RETRY_MS :
						    DRACO_EVENT_REFRESH_MS));
}

/**
 * draco_events_kick() - run the event work now
 * @dd:     device; its controller is LIVE
 * @rescan: read the whole fabric first
 *
 * Context: Process. Called after a start of the controller, and when the model
 * has failed to follow a change.
 */
void draco_events_kick(struct draco_dev *dd, bool rescan)
{
	if (rescan)
		set_bit(DRACO_F_RESCAN, &dd->flags);
	/* There may be requests from before the controller was enabled. */
	set_bit(DRACO_F_QUERY_REQUESTS, &dd->flags);
	if (test_bit(DRACO_F_EVENTS, &dd->flags))
		mod_delayed_work(dd->wq, &dd->events.work, 0);
}

/**
 * draco_events_query_requests() - have the device queried for requests, soon
 * @dd: device
 *
 * Context: Process.
 */
void draco_events_query_requests(struct draco_dev *dd)
{
	set_bit(DRACO_F_QUERY_REQUESTS, &dd->flags);
	/* If events have arrived, the work must not be delayed. */
	if (test_bit(DRACO_F_EVENTS, &dd->flags) &&
	    !test_bit(DRACO_F_EVENTS_DONE, &dd->flags))
		mod_delayed_work(dd->wq, &dd->events.work,
				 msecs_to_jiffies(DRACO_EVENT_RETRY_MS));
}

/**
 * draco_events_stop() - handle no more events
 * @dd: device
 *
 * Context: Process; waits for the event work, which no longer calls the core
 * when this returns.
 */
void draco_events_stop(struct draco_dev *dd)
{
	clear_bit(DRACO_F_EVENTS, &dd->flags);
	cancel_delayed_work_sync(&dd->events.work);
	draco_events_wake(dd);
}

/**
 * draco_events_init() - allocate buffers
 * @dd:     device
 * @handle: the event work
 *
 * Context: Probe.
 * Return: 0 or -ENOMEM
 */
int draco_events_init(struct draco_dev *dd, work_func_t handle)
{
	struct draco_events *ev = &dd->events;
	int ret;

	INIT_DELAYED_WORK(&ev->work, handle);
	init_waitqueue_head(&dd->model_wait);
	ev->copy = kcalloc(DRACO_EVENT_COUNT, sizeof(*ev->copy), GFP_KERNEL);
	if (!ev->copy)
		return -ENOMEM;
	ret = draco_buf_alloc(dd, &ev->buf, DRACO_EVENT_BYTES);
	if (ret)
		kfree(ev->copy);
	return ret;
}

/**
 * draco_events_free() - free buffers
 * @dd: device; the controller is stopped and its interrupts are freed
 *
 * Context: Process; sleeps.
 */
void draco_events_free(struct draco_dev *dd)
{
	/* GET_EVENTS has completed with the stop, and may have queued it. */
	cancel_delayed_work_sync(&dd->events.work);
	draco_buf_free(dd, &dd->events.buf);
	kfree(dd->events.copy);
}
