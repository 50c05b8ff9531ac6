// SPDX-License-Identifier: GPL-2.0-only
/*
 * Release of endpoints that are bound to this host: requests of the switch and
 * the core's replies. Called by the event work (dispatch.c), and by the core
 * through the table of operations.
 */
#include <linux/string.h>

#include "command.h"
#include "decode.h"
#include "draco.h"
#include "event.h"
#include "exec.h"
#include "hotplug.h"
#include "ops.h"
#include "release.h"
#include "request.h"

/**
 * draco_release_request() - handle a release request
 * @dd: device
 * @ev: the event
 *
 * Context: Event work.
 */
void draco_release_request(struct draco_dev *dd, const struct draco_ev *ev)
{
	u64 token = ev->arg[0];
	bool forced = ev->flags & DRACO_EVF_FORCE;
	u16 slot = ev->arg[1];
	struct draco_slot_off *off;
	const char *why;

	if (!draco_request_add(dd, ev->object, token, slot, forced))
		return;
	if (!forced) {
		fabrex_port_release_request(dd->port, ev->object, token, slot,
					    ev->arg[2]);
		return;
	}
	/* The endpoint is gone already. Power its slot off, so that pciehp
	 * removes the device now, and not only when it notices.
	 */
	off = draco_slot_off_prepare(dd, ev->object, slot, true, &why);
	if (IS_ERR(off))
		dev_warn(&dd->pdev->dev,
			 "endpoint in slot %u was taken away, but %s\n", slot, why);
	else if (off)
		draco_slot_off_queue(off);
}

/**
 * draco_release_query() - query the pending release requests
 * @dd: device
 *
 * Those that no event has reported are handled as if one had.
 *
 * Context: Event work.
 * Return: 0 or a negative errno
 */
int draco_release_query(struct draco_dev *dd)
{
	struct draco_event raw, *list;
	struct draco_buf buf;
	struct draco_cmd cmd;
	struct draco_ev ev;
	u64 n, i;
	int ret;

	ret = draco_buf_alloc(dd, &buf, DRACO_MAX_REQUESTS * sizeof(*list));
	if (ret)
		return ret;
	list = buf.va;
	draco_cmd_init(&cmd, DRACO_ADM_GET_REQUESTS, 0);
	draco_cmd_data(&cmd, &buf, DRACO_MAX_REQUESTS * sizeof(*list));
	cmd.flags = DRACO_CMD_DRIVER | DRACO_CMD_LONG;
	ret = draco_exec(dd, &cmd);
	n = ret ? 0 : le64_to_cpu(cmd.cpl.result);
	for (i = 0; i < n && i < DRACO_MAX_REQUESTS; i++) {
		raw = list[i];
		if (!draco_decode_event(&raw, dd->ident.info.max_peers, &ev) &&
		    ev.type == DRACO_EV_RELEASE_REQUEST)
			draco_release_request(dd, &ev);
	}
	draco_buf_free(dd, &buf);
	return ret;
}

static int draco_release_send(struct draco_dev *dd, u32 ep, u64 token,
			      const struct fabrex_holder *holder)
{
	struct draco_buf buf = {};
	struct draco_cmd cmd;
	int ret;

	draco_cmd_init(&cmd, DRACO_ADM_RELEASE_REPLY, ep);
	cmd.sqe.arg[0] = cpu_to_le64(token);
	cmd.sqe.arg[1] = cpu_to_le64(holder ? DRACO_RELEASE_BUSY :
					      DRACO_RELEASE_OK);
	if (holder) {
		ret = draco_buf_alloc(dd, &buf, sizeof(struct draco_holder));
		if (ret)
			goto failed;
		draco_encode_holder(holder, buf.va);
		draco_cmd_data(&cmd, &buf, sizeof(struct draco_holder));
	}
	cmd.flags = DRACO_CMD_DRIVER;
	ret = draco_exec(dd, &cmd);
	draco_buf_free(dd, &buf);
failed:
	/* Query the device after a while whether it still waits for the reply.
	 * After a stop of the controller it does not.
	 */
	if (ret && ret != -ENODEV) {
		draco_request_again(dd, token);
		draco_events_query_requests(dd);
	}
	return ret;
}

/**
 * draco_release_reply() - reply to a release request
 * @port:   port
 * @ep:     endpoint
 * @token:  of the request
 * @holder: who holds the endpoint; NULL: it may go, and its slot is powered off
 *
 * The switch gets the reply first: if it no longer waits for it, the endpoint
 * stays where it is.
 *
 * Context: Process; sleeps.
 * Return: 0; -ENOENT if there is no such request; -ETIMEDOUT if it has expired;
 * -EBUSY if the slot cannot be powered off, and the switch got a refusal
 */
int draco_release_reply(struct fabrex_port *port, u32 ep, u64 token,
			const struct fabrex_holder *holder)
{
	struct draco_dev *dd = fabrex_port_priv(port);
	struct fabrex_holder refusal = { .port = dd->ident.info.object_id };
	struct draco_slot_off *off = NULL;
	const char *why;
	int slot, ret;

	slot = draco_request_take(dd, ep, token);
	if (slot < 0)
		return slot;
	if (!holder)
		off = draco_slot_off_prepare(dd, ep, slot, false, &why);
	if (IS_ERR(off)) {
		/* The slot cannot be powered off: refuse
		 * on the host's behalf.
		 */
		strscpy(refusal.comm, "kernel", sizeof(refusal.comm));
		strscpy(refusal.reason, why, sizeof(refusal.reason));
		draco_release_send(dd, ep, token, &refusal);
		return -EBUSY;
	}
	ret = draco_release_send(dd, ep, token, holder);
	if (!off)
		return ret;
	if (ret)
		draco_slot_off_drop(off);
	else
		draco_slot_off_queue(off);
	return ret;
}
