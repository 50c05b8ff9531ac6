// SPDX-License-Identifier: GPL-2.0-only
/*
 * Execution of admin commands: waiting, time-outs, withdrawal; and what follows
 * when the device does not let go. Called by every file that issues commands; see
 * command.h for who owns a command when.
 */
#include <linux/moduleparam.h>

#include "admin.h"
#include "command.h"
#include "controller.h"
#include "decode.h"
#include "draco.h"
#include "exec.h"

static unsigned int admin_timeout_ms = 10000;
module_param(admin_timeout_ms, uint, 0644);
MODULE_PARM_DESC(admin_timeout_ms,
		 "time that the device has for an admin command, milliseconds");

/* How often waiters look for completions whose interrupt was lost, and how
 * long the device has for an ABORT and for what it aborts.
 */
#define DRACO_POLL_MS	100
#define DRACO_ABORT_MS	5000

static bool draco_cmd_cancelled(const struct draco_cmd *cmd)
{
	return cmd->cancel && READ_ONCE(*cmd->cancel);
}

/* Submit, waiting for room: first come, first served in each priority. While
 * the controller is being stopped, this waits too: -ENODEV promises that memory
 * is no longer accessed.
 */
static int draco_exec_queue(struct draco_dev *dd, struct draco_cmd *cmd,
			     enum draco_prio prio)
{
	wait_queue_head_t *queue = &dd->admin.wait[prio];
	long slice = cmd->cancel ? msecs_to_jiffies(DRACO_POLL_MS) :
				   MAX_SCHEDULE_TIMEOUT;
	int state = cmd->flags & DRACO_CMD_KILLABLE ? TASK_KILLABLE :
						      TASK_UNINTERRUPTIBLE;
	struct wait_queue_entry wait;
	int ret, killed;

	init_wait_entry(&wait, WQ_FLAG_EXCLUSIVE);
	for (;;) {
		killed = prepare_to_wait_event(queue, &wait, state);
		ret = draco_admin_submit(dd, cmd, prio);
		if (ret != -EAGAIN)
			break;
		if (killed || draco_cmd_cancelled(cmd)) {
			ret = killed ? -EINTR : -ECANCELED;
			break;
		}
		schedule_timeout(slice);
	}
	finish_wait(queue, &wait);
	/* This one may have been woken for a slot that it did not take. */
	if (draco_admin_has_room(dd, prio))
		wake_up(queue);
	return ret;
}

/* Submit, in the priority that the flags give it. */
static int draco_exec_enter(struct draco_dev *dd, struct draco_cmd *cmd)
{
	enum draco_prio prio = DRACO_PRIO_USER;
	int ret;

	if (cmd->flags & DRACO_CMD_EXCLUSIVE)
		prio = DRACO_PRIO_RESERVE;
	else if (cmd->flags & DRACO_CMD_DRIVER)
		prio = DRACO_PRIO_DRIVER;
	else if (cmd->flags & DRACO_CMD_CHANGE)
		prio = DRACO_PRIO_CHANGE;
	else if (cmd->flags & DRACO_CMD_QUERY)
		prio = DRACO_PRIO_QUERY;
	ret = draco_admin_submit(dd, cmd, prio);
	if (ret != -EAGAIN)
		return ret;
	if (cmd->flags & DRACO_CMD_EXCLUSIVE)
		return -EIO;
	return draco_exec_queue(dd, cmd, prio);
}

/* Wait up to @ms. 0: done; -ETIMEDOUT, -EINTR, -ECANCELED or -ENODEV: withdraw
 * it.
 */
static int draco_exec_wait(struct draco_dev *dd, struct draco_cmd *cmd,
			    unsigned int ms)
{
	unsigned long slice = msecs_to_jiffies(DRACO_POLL_MS);
	unsigned long end = jiffies + msecs_to_jiffies(ms);
	long left;

	for (;;) {
		if (cmd->flags & DRACO_CMD_KILLABLE)
			left = wait_for_completion_killable_timeout(&cmd->done,
								    slice);
		else
			left = wait_for_completion_timeout(&cmd->done, slice);
		if (left > 0)
			return 0;
		if (left < 0)
			return -EINTR;
		/* The interrupt may be lost, the device broken or gone. */
		draco_admin_poll(dd);
		if (!(cmd->flags & DRACO_CMD_EXCLUSIVE))
			draco_check(dd);
		else if (draco_health(dd))
			draco_stop(dd);
		if (try_wait_for_completion(&cmd->done))
			return 0;
		if (cmd->flags & DRACO_CMD_LONG && draco_removing(dd))
			return -ENODEV;
		if (draco_cmd_cancelled(cmd))
			return -ECANCELED;
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
	}
}

/* A command that does not even react to ABORT: stop the controller, unless that
 * has been done since @epoch.
 */
static void draco_exec_break(struct draco_dev *dd, struct draco_cmd *cmd,
			      u32 epoch)
{
	char why[48];

	scnprintf(why, sizeof(why), "admin command %#x hangs", cmd->sqe.opcode);
	if (cmd->flags & DRACO_CMD_EXCLUSIVE)
		draco_stop(dd);
	else
		draco_reset(dd, epoch, why);
}

/* Submit the ABORT of @cmd, unless @cmd ends by itself. When many are killed at
 * once there are not slots enough: that is not the device's fault, so wait.
 */
static bool draco_exec_abort(struct draco_dev *dd, struct draco_cmd *cmd,
			      struct draco_cmd *abort)
{
	int ret = -EAGAIN;

	draco_cmd_init(abort, DRACO_ADM_ABORT, le16_to_cpu(cmd->sqe.cid));
	abort->flags = cmd->flags & DRACO_CMD_EXCLUSIVE;
	wait_event_timeout(dd->admin.wait[DRACO_PRIO_RESERVE],
			   completion_done(&cmd->done) ||
			   (ret = draco_admin_submit(dd, abort, DRACO_PRIO_RESERVE)) != -EAGAIN,
			   msecs_to_jiffies(DRACO_ABORT_MS));
	return !ret;
}

/* Make the device let go of @cmd: it is done when this returns. */
static void draco_exec_withdraw(struct draco_dev *dd, struct draco_cmd *cmd)
{
	u32 epoch = READ_ONCE(dd->epoch);
	struct draco_cmd abort;
	bool sent;

	/* From here on, nothing ends the wait but the device. */
	cmd->flags &= DRACO_CMD_EXCLUSIVE;
	cmd->cancel = NULL;
	sent = draco_exec_abort(dd, cmd, &abort);
	if (sent && !draco_exec_wait(dd, &abort, DRACO_ABORT_MS))
		draco_exec_wait(dd, cmd, DRACO_ABORT_MS);

	if (completion_done(&cmd->done) &&
	    (!sent || completion_done(&abort.done)))
		return;
	draco_exec_break(dd, cmd, epoch);
	wait_for_completion(&cmd->done);
	if (sent)
		wait_for_completion(&abort.done);
}

/* The issuer does not want @cmd any more: ask the device to leave it, and wait for
 * it as before, as it may be too late for that. 0: done; else withdraw it.
 */
static int draco_exec_cancel(struct draco_dev *dd, struct draco_cmd *cmd,
			      unsigned int ms)
{
	const bool *cancel = cmd->cancel;
	u32 epoch = READ_ONCE(dd->epoch);
	struct draco_cmd abort;
	int ret;

	cmd->cancel = NULL;
	if (draco_exec_abort(dd, cmd, &abort) &&
	    draco_exec_wait(dd, &abort, DRACO_ABORT_MS)) {
		draco_exec_break(dd, cmd, epoch);
		wait_for_completion(&abort.done);
	}
	ret = draco_exec_wait(dd, cmd, ms);
	cmd->cancel = cancel;
	return ret;
}

/**
 * draco_exec() - have the device execute a command
 * @dd:  device
 * @cmd: command
 *
 * Sleeps. When it returns, the device has finished with the command and its
 * buffer, or has been stopped. A killed process can therefore still find that
 * the command took effect; it then gets 0 and has to clean up as usual.
 *
 * Return: 0; errno of the status; -ETIMEDOUT, -EINTR (killed) or -ECANCELED if
 * the command was withdrawn, it has had no effect then; -ENODEV if the controller was
 * stopped, and accesses no memory
 */
int draco_exec(struct draco_dev *dd, struct draco_cmd *cmd)
{
	unsigned int ms = cmd->timeout_ms ?: READ_ONCE(admin_timeout_ms);
	u16 status;
	int ret;

	ret = draco_exec_enter(dd, cmd);
	if (ret)
		return ret;
	ret = draco_exec_wait(dd, cmd, ms);
	if (ret == -ECANCELED)
		ret = draco_exec_cancel(dd, cmd, ms);
	if (ret)
		draco_exec_withdraw(dd, cmd);
	if (cmd->error)
		return cmd->error;

	status = draco_cmd_status(cmd);
	if (ret && status == DRACO_SC_ABORTED)
		return ret;
	return draco_status_errno(status);
}

/**
 * draco_kill() - stop a controller that cannot be trusted, and wait for it
 * @dd:    device
 * @epoch: as for draco_reset()
 * @why:   for the log
 *
 * Return: -ENODEV: the device accesses nothing that existed before
 */
int draco_kill(struct draco_dev *dd, u32 epoch, const char *why)
{
	draco_reset(dd, epoch, why);
	wait_event(dd->admin.wait[DRACO_PRIO_RESERVE],
		   READ_ONCE(dd->epoch) != epoch ||
		   READ_ONCE(dd->admin.state) == DRACO_ADMIN_DOWN);
	return -ENODEV;
}

/**
 * draco_exec_destroy() - have the device forget something
 * @dd:     device
 * @opcode: DRACO_ADM_*
 * @id:     of a queue, region or window
 *
 * There is no third way between having forgotten it and having been stopped:
 * memory is freed afterwards. Not killable, as it runs for killed processes.
 *
 * Return: 0 or -ENODEV
 */
int draco_exec_destroy(struct draco_dev *dd, u8 opcode, u32 id)
{
	u32 epoch = READ_ONCE(dd->epoch);
	struct draco_cmd cmd;
	int ret;

	draco_cmd_init(&cmd, opcode, id);
	cmd.flags = DRACO_CMD_DRIVER;
	ret = draco_exec(dd, &cmd);
	if (!ret || ret == -ENOENT)
		return 0;
	/* Not DRACO_SC_GONE, which promises nothing. */
	if (ret == -ENODEV && !draco_cmd_status(&cmd))
		return ret;
	dev_err(&dd->pdev->dev, "command %#x for %u: %s\n", opcode, id,
		draco_status_text(draco_cmd_status(&cmd)));
	return draco_kill(dd, epoch, "it does not let go of memory");
}
