// SPDX-License-Identifier: GPL-2.0-only
/*
 * Changes to the fabric: bind, unbind, port control, with messages that say
 * what to do about a refusal. Called by the core through the ops table.
 */
#include <linux/netlink.h>

#include "draco.h"

/* How long the device has, docs/draco.md section 18. */
#define DRACO_BIND_MS		30000
#define DRACO_UNBIND_MS		10000	/* after both of its limits */
#define DRACO_ANSWER_MS		5000
#define DRACO_EMPTY_MS		10000u
/* How long a success waits for the event that tells the model. */
#define DRACO_FOLLOW_MS		1000

/* Longest message is NETLINK_MAX_FMTMSG_LEN, 80 bytes. */
#define draco_say(extack, fmt, ...) \
	NL_SET_ERR_MSG_FMT(extack, fmt, ##__VA_ARGS__)

/* Errors that are not the device's answer; true if there was no answer. */
static bool draco_no_answer(const struct draco_cmd *cmd, int ret,
			    const char *name, struct netlink_ext_ack *extack)
{
	if (!cmd->error && draco_cmd_status(cmd) &&
	    draco_cmd_status(cmd) != DRACO_SC_ABORTED)
		return false;
	if (ret == -ENODEV)
		draco_say(extack, "%s: the local port was stopped; try again",
			  name);
	else if (ret == -ETIMEDOUT)
		draco_say(extack, "%s: the switch did not answer; see its log",
			  name);
	else if (ret == -ECANCELED && cmd->cancel && READ_ONCE(*cmd->cancel))
		draco_say(extack, "%s: cancelled, nothing was changed", name);
	else if (ret == -ECANCELED)
		draco_say(extack, "%s: aborted by a forced unbind; try again",
			  name);
	else
		draco_say(extack, "%s: given up, nothing was changed", name);
	return true;
}

/* What all of these commands may be answered with. */
static void draco_say_common(struct draco_dev *dd, u16 status, const char *name,
			     struct netlink_ext_ack *extack)
{
	switch (status) {
	case DRACO_SC_BAD_ID:
		draco_say(extack, "%s: not in the fabric; list it again", name);
		break;
	case DRACO_SC_DENIED:
		break;	/* the core knows who may */
	case DRACO_SC_GONE:
		draco_say(extack, "%s is not in its appliance; insert it first",
			  name);
		break;
	case DRACO_SC_IN_PROGRESS:
		draco_say(extack, "%s is being bound or released; wait for it",
			  name);
		break;
	default:
		draco_say(extack, "%s: the switch says: %s", name,
			  draco_status_text(status));
	}
}

static void draco_say_bind(struct draco_dev *dd, u16 status, u32 ep,
			   u32 host_port, struct netlink_ext_ack *extack)
{
	char name[FABREX_NAME_LEN], port[FABREX_NAME_LEN];
	struct fabrex_object object;

	draco_object_name(dd, ep, name);
	draco_object_name(dd, host_port, port);
	switch (status) {
	case DRACO_SC_BAD_ID:
		/* One of the two: the one that is not what it should be. */
		if (!fabrex_model_get(dd->port, ep, &object) &&
		    object.type == DRACO_OBJ_ENDPOINT)
			draco_say(extack, "%s is no host port; name one", port);
		else
			draco_say(extack, "%s is no endpoint; name one", name);
		break;
	case DRACO_SC_BOUND:
		if (!fabrex_model_get(dd->port, ep, &object) && object.bound)
			draco_object_name(dd, object.bound, port);
		draco_say(extack, "%s is bound to %s; release it first", name,
			  port);
		break;
	case DRACO_SC_LINK_DOWN:
		draco_say(extack, "%s: no link to %s; enable the ports between",
			  name, port);
		break;
	case DRACO_SC_NO_SLOT:
		draco_say(extack, "%s: %s has no free slot; release one there",
			  name, port);
		break;
	case DRACO_SC_TIMEOUT:
		draco_say(extack, "%s did not appear at %s; check that host",
			  name, port);
		break;
	default:
		draco_say_common(dd, status, name, extack);
	}
}

/* As the device's limits are: for the owner's answer, and for its slot to become
 * empty then. On a host that has little time for either both take long.
 */
static void draco_say_late(const struct draco_cmd *cmd, const char *name,
			   struct netlink_ext_ack *extack)
{
	const __le64 *arg = cmd->sqe.arg;

	if (cmd->cpl.result)
		draco_say(extack, "%s: slot not empty after %llu ms; retry or force",
			  name, le64_to_cpu(arg[1]));
	else
		draco_say(extack, "%s: owner kept it for %llu ms; retry or force",
			  name, le64_to_cpu(arg[0]));
}

static void draco_say_unbind(struct draco_dev *dd, const struct draco_cmd *cmd,
			     u32 ep, const struct fabrex_holder *holder,
			     struct netlink_ext_ack *extack)
{
	char name[FABREX_NAME_LEN], port[FABREX_NAME_LEN];

	draco_object_name(dd, ep, name);
	switch (draco_cmd_status(cmd)) {
	case DRACO_SC_BUSY:
		draco_object_name(dd, holder->port, port);
		if (holder->pid)
			draco_say(extack, "%s: used by %s (%u) of %s; stop it",
				  name, holder->comm, holder->pid, port);
		else
			draco_say(extack, "%s: %.*s", name,
				  (int)(NETLINK_MAX_FMTMSG_LEN - sizeof(": ") -
					strlen(name)), holder->reason);
		break;
	case DRACO_SC_NOT_BOUND:
		draco_say(extack, "%s is bound to no port", name);
		break;
	case DRACO_SC_TIMEOUT:
		draco_say_late(cmd, name, extack);
		break;
	default:
		draco_say_common(dd, draco_cmd_status(cmd), name, extack);
	}
}

static void draco_say_port(struct draco_dev *dd, u16 status, u32 id,
			   struct netlink_ext_ack *extack)
{
	char name[FABREX_NAME_LEN];

	draco_object_name(dd, id, name);
	switch (status) {
	case DRACO_SC_BAD_FIELD:
		draco_say(extack, "%s leads nowhere, it cannot be controlled",
			  name);
		break;
	case DRACO_SC_LINK_DOWN:
		draco_say(extack, "%s is not up; enable it instead", name);
		break;
	default:
		draco_say_common(dd, status, name, extack);
	}
}

/* Has the model followed the change that was made? */
static bool draco_followed(struct draco_dev *dd, u32 id, u32 bound)
{
	struct fabrex_object object;

	if (fabrex_model_get(dd->port, id, &object))
		return true;
	return object.type != DRACO_OBJ_ENDPOINT || object.bound == bound;
}

/* Whoever lists the fabric after a success finds it changed: wait for the
 * event. It is on its way, so that this is a matter of microseconds.
 */
static void draco_follow(struct draco_dev *dd, u32 id, u32 bound)
{
	long left = msecs_to_jiffies(DRACO_FOLLOW_MS);
	u32 seen;

	do {
		seen = READ_ONCE(dd->followed);
		if (draco_followed(dd, id, bound))
			return;
		left = wait_event_killable_timeout(dd->changed,
						   READ_ONCE(dd->followed) != seen,
						   left);
	} while (left > 0 && !draco_removing(dd) &&
		 READ_ONCE(dd->admin.state) == DRACO_ADMIN_LIVE);
	if (!left)
		draco_events_kick(dd, true);
}

/**
 * draco_bind() - attach an endpoint to a host port
 * @port:      local port through which to ask
 * @ep:        endpoint
 * @host_port: object id of the port that gets it
 * @dry_run:   only say whether it could be done
 * @cancel:    becomes true when it is no longer wanted
 * @extack:    receives the cause of an error
 *
 * Return: 0 when the slot shows presence, or the host is not up and will find
 * it; -EADDRINUSE if it is bound; -ENOSPC if there is no slot; -ENETDOWN;
 * -EALREADY if a change of it is under way; -EPERM; -ENOENT; -ENODEV if it is
 * not in its appliance or the local port was stopped; -ETIMEDOUT; -ECANCELED
 */
int draco_bind(struct fabrex_port *port, u32 ep, u32 host_port, bool dry_run,
	       const bool *cancel, struct netlink_ext_ack *extack)
{
	struct draco_dev *dd = fabrex_port_priv(port);
	char name[FABREX_NAME_LEN];
	struct draco_cmd cmd;
	int ret;

	draco_cmd_init(&cmd, DRACO_ADM_BIND, ep);
	cmd.sqe.flags = dry_run ? DRACO_BINDF_DRY_RUN : 0;
	cmd.sqe.arg[0] = cpu_to_le64(host_port);
	cmd.timeout_ms = DRACO_BIND_MS;
	cmd.cancel = cancel;
	cmd.flags = DRACO_CMD_CHANGE | DRACO_CMD_LONG;
	ret = draco_admin_exec(dd, &cmd);
	if (!ret) {
		if (!dry_run)
			draco_follow(dd, ep, host_port);
		return 0;
	}
	draco_object_name(dd, ep, name);
	if (!draco_no_answer(&cmd, ret, name, extack))
		draco_say_bind(dd, draco_cmd_status(&cmd), ep, host_port,
			       extack);
	return ret;
}

static int draco_unbind_exec(struct draco_dev *dd, struct draco_cmd *cmd,
			     struct fabrex_holder *holder)
{
	struct draco_holder raw;
	struct draco_buf buf;
	int ret;

	ret = draco_buf_alloc(dd, &buf, sizeof(raw));
	if (ret)
		return ret;
	draco_cmd_data(cmd, &buf, sizeof(raw));
	ret = draco_admin_exec(dd, cmd);
	memcpy(&raw, buf.va, sizeof(raw));
	draco_buf_free(dd, &buf);
	draco_decode_holder(&raw, holder);
	return ret;
}

/**
 * draco_unbind() - detach an endpoint
 * @port:       local port through which to ask
 * @ep:         endpoint
 * @force:      do not ask the owner
 * @dry_run:    only say whether it could be done
 * @timeout_ms: for the owner's answer, 0 for the default; then again for its
 *              slot to become empty, which gets 10 s at least
 * @cancel:     becomes true when it is no longer wanted
 * @holder:     filled with -EBUSY
 * @extack:     receives the cause of an error
 *
 * Return: 0 when the slot is empty, or the endpoint was taken away by force;
 * -EBUSY if the owner refuses; -ETIMEDOUT if it does not answer, or its slot
 * does not become empty: the endpoint is free as soon as it is, and who asks
 * again waits for that; -ENOTCONN if it is not bound; -EALREADY, -EPERM, -ENOENT,
 * -ENODEV, -ECANCELED as for bind
 */
int draco_unbind(struct fabrex_port *port, u32 ep, bool force, bool dry_run,
		 u32 timeout_ms, const bool *cancel,
		 struct fabrex_holder *holder, struct netlink_ext_ack *extack)
{
	struct draco_dev *dd = fabrex_port_priv(port);
	u32 answer = timeout_ms ?: DRACO_ANSWER_MS;
	u32 empty = max(answer, DRACO_EMPTY_MS);
	char name[FABREX_NAME_LEN];
	struct draco_cmd cmd;
	int ret;

	draco_cmd_init(&cmd, DRACO_ADM_UNBIND, ep);
	cmd.sqe.flags = (dry_run ? DRACO_BINDF_DRY_RUN : 0) |
			(force ? DRACO_BINDF_FORCE : 0);
	cmd.sqe.arg[0] = cpu_to_le64(answer);
	cmd.sqe.arg[1] = cpu_to_le64(empty);
	cmd.cancel = cancel;
	cmd.timeout_ms = min_t(u64, (u64)answer + empty + DRACO_UNBIND_MS,
			       INT_MAX);
	cmd.flags = DRACO_CMD_CHANGE | DRACO_CMD_LONG;
	ret = draco_unbind_exec(dd, &cmd, holder);
	if (!ret) {
		if (!dry_run)
			draco_follow(dd, ep, 0);
		return 0;
	}
	draco_object_name(dd, ep, name);
	if (!draco_no_answer(&cmd, ret, name, extack))
		draco_say_unbind(dd, &cmd, ep, holder, extack);
	return ret;
}

/**
 * draco_port_control() - enable, disable or reset a port
 * @port:   local port through which to ask
 * @id:     port to control
 * @action: FABREX_PORT_ACTION_*
 * @extack: receives the cause of an error
 *
 * Return: 0; -ENOENT if there is no such port; -EINVAL if it leads nowhere;
 * -ENETDOWN if it is to be reset and is not up; -EPERM; -ENODEV
 */
int draco_port_control(struct fabrex_port *port, u32 id, u32 action,
		       struct netlink_ext_ack *extack)
{
	struct draco_dev *dd = fabrex_port_priv(port);
	char name[FABREX_NAME_LEN];
	struct draco_cmd cmd;
	int ret;

	draco_cmd_init(&cmd, DRACO_ADM_PORT_CONTROL, id);
	cmd.sqe.arg[0] = cpu_to_le64(action);
	cmd.flags = DRACO_CMD_CHANGE | DRACO_CMD_LONG;
	ret = draco_admin_exec(dd, &cmd);
	if (!ret)
		return 0;
	draco_object_name(dd, id, name);
	if (!draco_no_answer(&cmd, ret, name, extack))
		draco_say_port(dd, draco_cmd_status(&cmd), id, extack);
	return ret;
}
