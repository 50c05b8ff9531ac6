// SPDX-License-Identifier: GPL-2.0-only
/*
 * Changes of the fabric: bind, unbind, port control. A refusal gets a message
 * that names the cause and the remedy. Called by the core through the table of
 * operations.
 */
#include <linux/netlink.h>

#include "admin.h"
#include "command.h"
#include "decode.h"
#include "draco.h"
#include "event.h"
#include "exec.h"
#include "ops.h"
#include "topology.h"

/* Time limits of the device: docs/draco.md, section 18. */
#define DRACO_BIND_MS		30000
#define DRACO_UNBIND_MS		10000	/* in addition to both of its limits */
#define DRACO_ANSWER_MS		5000
#define DRACO_EMPTY_MS		10000u
/* How long to wait, after a success, until the model contains the change. */
#define DRACO_MODEL_MS		1000

/* A message may have NETLINK_MAX_FMTMSG_LEN, 80 bytes. */
#define draco_msg(extack, fmt, ...) \
	NL_SET_ERR_MSG_FMT(extack, fmt, ##__VA_ARGS__)

/* Explain an error that is not the device's answer; true if it was one. */
static bool draco_explain_no_answer(const struct draco_cmd *cmd, int ret,
				    const char *name,
				    struct netlink_ext_ack *extack)
{
	if (!cmd->error && draco_cmd_status(cmd) &&
	    draco_cmd_status(cmd) != DRACO_SC_ABORTED)
		return false;
	if (ret == -ENODEV)
		draco_msg(extack, "%s: the local port was stopped; try again",
			  name);
	else if (ret == -ETIMEDOUT)
		draco_msg(extack, "%s: the switch did not answer; see its log",
			  name);
	else if (ret == -ECANCELED && cmd->cancel && READ_ONCE(*cmd->cancel))
		draco_msg(extack, "%s: cancelled, nothing was changed", name);
	else if (ret == -ECANCELED)
		draco_msg(extack, "%s: aborted by a forced unbind; try again",
			  name);
	else
		draco_msg(extack, "%s: abandoned, nothing was changed", name);
	return true;
}

/* Explain the statuses that all of these commands have in common. */
static void draco_explain(struct draco_dev *dd, u16 status, const char *name,
			  struct netlink_ext_ack *extack)
{
	switch (status) {
	case DRACO_SC_BAD_ID:
		draco_msg(extack, "%s is not in the fabric; list it again", name);
		break;
	case DRACO_SC_DENIED:
		break;	/* the core names the manager */
	case DRACO_SC_GONE:
		draco_msg(extack, "%s is not in its appliance; insert it first",
			  name);
		break;
	case DRACO_SC_IN_PROGRESS:
		draco_msg(extack, "%s is being bound or released; wait for it",
			  name);
		break;
	default:
		draco_msg(extack, "%s: the switch reports: %s", name,
			  draco_status_text(status));
	}
}

static void draco_explain_bind(struct draco_dev *dd, u16 status, u32 ep,
			       u32 host_port, struct netlink_ext_ack *extack)
{
	char name[FABREX_NAME_LEN], port[FABREX_NAME_LEN];
	struct fabrex_object object;

	draco_object_name(dd, ep, name);
	draco_object_name(dd, host_port, port);
	switch (status) {
	case DRACO_SC_BAD_ID:
		/* Either of the two: the one that is of the wrong type. */
		if (!fabrex_model_get(dd->port, ep, &object) &&
		    object.type == DRACO_OBJ_ENDPOINT)
			draco_msg(extack, "%s is not a host port; name one", port);
		else
			draco_msg(extack, "%s is not an endpoint; name one", name);
		break;
	case DRACO_SC_BOUND:
		if (!fabrex_model_get(dd->port, ep, &object) && object.bound)
			draco_object_name(dd, object.bound, port);
		draco_msg(extack, "%s is bound to %s; release it first", name,
			  port);
		break;
	case DRACO_SC_LINK_DOWN:
		draco_msg(extack, "%s: no link to %s; enable the ports between",
			  name, port);
		break;
	case DRACO_SC_NO_SLOT:
		draco_msg(extack, "%s: %s has no free slot; release one there",
			  name, port);
		break;
	case DRACO_SC_TIMEOUT:
		draco_msg(extack, "%s did not appear at %s; check that host",
			  name, port);
		break;
	default:
		draco_explain(dd, status, name, extack);
	}
}

/* A busy host may exceed either limit: to answer, or to empty the slot then. */
static void draco_explain_late(const struct draco_cmd *cmd, const char *name,
			       struct netlink_ext_ack *extack)
{
	const __le64 *arg = cmd->sqe.arg;

	if (cmd->cpl.result)
		draco_msg(extack, "%s: slot not empty after %llu ms; retry or force",
			  name, le64_to_cpu(arg[1]));
	else
		draco_msg(extack, "%s: owner kept it for %llu ms; retry or force",
			  name, le64_to_cpu(arg[0]));
}

static void draco_explain_unbind(struct draco_dev *dd,
				 const struct draco_cmd *cmd, u32 ep,
				 const struct fabrex_holder *holder,
				 struct netlink_ext_ack *extack)
{
	char name[FABREX_NAME_LEN], port[FABREX_NAME_LEN];

	draco_object_name(dd, ep, name);
	switch (draco_cmd_status(cmd)) {
	case DRACO_SC_BUSY:
		draco_object_name(dd, holder->port, port);
		if (holder->pid)
			draco_msg(extack, "%s: used by %s (%u) of %s; stop it",
				  name, holder->comm, holder->pid, port);
		else
			draco_msg(extack, "%s: %.*s", name,
				  (int)(NETLINK_MAX_FMTMSG_LEN - sizeof(": ") -
					strlen(name)), holder->reason);
		break;
	case DRACO_SC_NOT_BOUND:
		draco_msg(extack, "%s is not bound", name);
		break;
	case DRACO_SC_TIMEOUT:
		draco_explain_late(cmd, name, extack);
		break;
	default:
		draco_explain(dd, draco_cmd_status(cmd), name, extack);
	}
}

static void draco_explain_port(struct draco_dev *dd, u16 status, u32 id,
			       struct netlink_ext_ack *extack)
{
	char name[FABREX_NAME_LEN];

	draco_object_name(dd, id, name);
	switch (status) {
	case DRACO_SC_BAD_FIELD:
		draco_msg(extack, "%s is unused, so it cannot be controlled",
			  name);
		break;
	case DRACO_SC_LINK_DOWN:
		draco_msg(extack, "%s is not up; enable it instead", name);
		break;
	default:
		draco_explain(dd, status, name, extack);
	}
}

/* Whoever lists the fabric after a success should see the change: wait for its
 * event, which normally takes microseconds.
 */
static void draco_wait_for_model(struct draco_dev *dd, u32 id, u32 bound)
{
	long left = msecs_to_jiffies(DRACO_MODEL_MS);
	struct fabrex_object object;
	u32 seen;

	do {
		seen = READ_ONCE(dd->model_passes);
		if (fabrex_model_get(dd->port, id, &object) ||
		    object.type != DRACO_OBJ_ENDPOINT || object.bound == bound)
			return;
		left = wait_event_killable_timeout(dd->model_wait,
						   READ_ONCE(dd->model_passes) != seen,
						   left);
	} while (left > 0 && !draco_removing(dd) &&
		 READ_ONCE(dd->admin.state) == DRACO_ADMIN_LIVE);
	if (!left)
		draco_events_kick(dd, true);
}

/**
 * draco_bind() - bind an endpoint to a host port
 * @port:      local port to send the command through
 * @ep:        endpoint
 * @host_port: object id of the host port
 * @dry_run:   only check whether it could be done
 * @cancel:    becomes true when it is no longer wanted
 * @extack:    receives the cause of an error
 *
 * Context: Process; sleeps, up to 30 s.
 * Return: 0 when the slot shows presence, or when the host is down and will
 * find the endpoint later; -EADDRINUSE if it is bound; -ENOSPC if no slot is
 * free; -ENETDOWN; -EALREADY if a change of it is in progress; -EPERM; -ENOENT;
 * -ENODEV if it is not in its appliance or the local port was stopped;
 * -ETIMEDOUT; -ECANCELED
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
	ret = draco_exec(dd, &cmd);
	if (!ret) {
		if (!dry_run)
			draco_wait_for_model(dd, ep, host_port);
		return 0;
	}
	draco_object_name(dd, ep, name);
	if (!draco_explain_no_answer(&cmd, ret, name, extack))
		draco_explain_bind(dd, draco_cmd_status(&cmd), ep, host_port,
				   extack);
	return ret;
}

/**
 * draco_unbind() - unbind an endpoint
 * @port:       local port to send the command through
 * @ep:         endpoint
 * @force:      do not ask the owner
 * @dry_run:    only check whether it could be done
 * @timeout_ms: how long the owner may take to answer, 0 for the default; then
 *              its slot may take as long to become empty, but at least 10 s
 * @cancel:     becomes true when it is no longer wanted
 * @holder:     filled in with -EBUSY
 * @extack:     receives the cause of an error
 *
 * Context: Process; sleeps, up to 10 s more than both limits together.
 * Return: 0 when the slot is empty, or the endpoint was taken away by force;
 * -EBUSY if the owner refuses; -ETIMEDOUT if it does not answer, or if its slot
 * is not empty in time: then the endpoint is free as soon as the slot is empty,
 * and a further call waits for that; -ENOTCONN if the endpoint is not bound;
 * -EALREADY, -EPERM, -ENOENT, -ENODEV, -ECANCELED as for draco_bind()
 */
int draco_unbind(struct fabrex_port *port, u32 ep, bool force, bool dry_run,
		 u32 timeout_ms, const bool *cancel,
		 struct fabrex_holder *holder, struct netlink_ext_ack *extack)
{
	struct draco_dev *dd = fabrex_port_priv(port);
	u32 answer = timeout_ms ?: DRACO_ANSWER_MS;
	u32 empty = max(answer, DRACO_EMPTY_MS);
	char name[FABREX_NAME_LEN];
	struct draco_holder raw;
	struct draco_buf buf;
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
	ret = draco_buf_alloc(dd, &buf, sizeof(raw));
	if (!ret) {
		draco_cmd_data(&cmd, &buf, sizeof(raw));
		ret = draco_exec(dd, &cmd);
		memcpy(&raw, buf.va, sizeof(raw));
		draco_buf_free(dd, &buf);
		draco_decode_holder(&raw, holder);
	}
	if (!ret) {
		if (!dry_run)
			draco_wait_for_model(dd, ep, 0);
		return 0;
	}
	draco_object_name(dd, ep, name);
	if (!draco_explain_no_answer(&cmd, ret, name, extack))
		draco_explain_unbind(dd, &cmd, ep, holder, extack);
	return ret;
}

/**
 * draco_port_control() - enable, disable or reset a switch port
 * @port:   local port to send the command through
 * @id:     object id of the switch port
 * @action: FABREX_PORT_ACTION_*
 * @extack: receives the cause of an error
 *
 * Context: Process; sleeps.
 * Return: 0; -ENOENT if there is no such port; -EINVAL if it is unused;
 * -ENETDOWN if it is to be reset and its link is not up; -EPERM; -ENODEV;
 * another negative errno
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
	ret = draco_exec(dd, &cmd);
	if (!ret)
		return 0;
	draco_object_name(dd, id, name);
	if (!draco_explain_no_answer(&cmd, ret, name, extack))
		draco_explain_port(dd, draco_cmd_status(&cmd), id, extack);
	return ret;
}
