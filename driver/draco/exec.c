// SPDX-License-Identifier: GPL-2.0-only
/*
 * Execution of admin commands: waiting, timeouts, withdrawal. Called by every
 * file that issues commands; command.h says who owns a command when.
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
		 "time limit for an admin command, in milliseconds");

/* How often waiters look for completions whose interrupt was lost, and how long
 * the device has for an ABORT and for the command that it aborts.
 */
#define DRACO_POLL_MS	100
#define DRACO_ABORT_MS	5000

static bool draco_cmd_cancelled(const struct draco_cmd *cmd)
{
	return cmd->cancel && READ_ONCE(*cmd->cancel);
}

/* Submit, waiting for a free slot: first come, first served within a priority.
 * This also waits while the controller is being stopped, because -ENODEV
 * promises that the device no longer accesses memory.
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
	/* This task may have been woken for a slot that it did not take. */
	if (draco_admin_has_room(dd, prio))
		wake_up(queue);
	return ret;
}

/* Submit, with the priority that follows from the flags. */
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

/* Wait up to @ms. 0: done; -ETIMEDOUT, -EINTR, -ECANCELED or -ENODEV: the
 * command has to be withdrawn.
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
		/* An interrupt may have been lost; the device may be broken or
		 * gone.
		 */
		draco_admin_poll(dd);
		if (!(cmd->flags & DRACO_CMD_EXCLUSIVE))
			draco_controller_check(dd);
		else if (draco_controller_health(dd))
			draco_controller_stop(dd);
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

/* The command does not react to ABORT either: stop the controller, unless it
 * has been stopped since @epoch.
 */
static void draco_exec_give_up(struct draco_dev *dd, struct draco_cmd *cmd,
			       u32 epoch)
{
	char why[48];

	scnprintf(why, sizeof(why), "admin command %#x does not complete",
		  cmd->sqe.opcode);
	if (cmd->flags & DRACO_CMD_EXCLUSIVE)
		draco_controller_stop(dd);
	else
		draco_request_reset(dd, epoch, why);
}

/* Submit an ABORT of @cmd, unless @cmd completes first. When many processes are
 * killed at once there are not enough slots. That is not the device's fault, so
 * wait for one.
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

/* Take @cmd back from the device: it has completed when this returns. */
static void draco_exec_withdraw(struct draco_dev *dd, struct draco_cmd *cmd)
{
	u32 epoch = READ_ONCE(dd->epoch);
	struct draco_cmd abort;
	bool sent;

	/* From here on only the device ends the wait. */
	cmd->flags &= DRACO_CMD_EXCLUSIVE;
	cmd->cancel = NULL;
	sent = draco_exec_abort(dd, cmd, &abort);
	if (sent && !draco_exec_wait(dd, &abort, DRACO_ABORT_MS))
		draco_exec_wait(dd, cmd, DRACO_ABORT_MS);

	if (completion_done(&cmd->done) &&
	    (!sent || completion_done(&abort.done)))
		return;
	draco_exec_give_up(dd, cmd, epoch);
	wait_for_completion(&cmd->done);
	if (sent)
		wait_for_completion(&abort.done);
}

/* The issuer has lost interest in @cmd: ask the device to abort it, and
 * continue to wait, as it may complete all the same. 0: done; otherwise
 * withdraw it.
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
		draco_exec_give_up(dd, cmd, epoch);
		wait_for_completion(&abort.done);
	}
	ret = draco_exec_wait(dd, cmd, ms);
	cmd->cancel = cancel;
	return ret;
}

/**
 * draco_exec() - execute a command
 * @dd:  device
 * @cmd: command
 *
 * When it returns, the device has finished with the command and its buffer, or
 * the controller has been stopped. The command of a killed process may
 * therefore still succeed; the process then gets 0 and cleans up as usual.
 *
 * Context: Process; sleeps. A command with %DRACO_CMD_EXCLUSIVE only by the
 * owner of the controller, see recovery.c.
 * Return: 0; the errno of the status; -ETIMEDOUT, -EINTR (killed) or -ECANCELED
 * if the command was withdrawn, and had no effect; -ENODEV if the controller
 * was stopped, and the device no longer accesses memory
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
 * draco_exec_destroy() - destroy an object of the device
 * @dd:     device
 * @opcode: DRACO_ADM_*
 * @id:     of the queue, region or window
 *
 * The caller frees memory that the device used. So either the device has
 * dropped the object when this returns, or the controller has been stopped;
 * there is no third outcome. Not killable, because it runs on behalf of killed
 * processes.
 *
 * Context: Process; sleeps, but neither allocates memory nor waits for anybody
 * who does.
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
	/* But not for DRACO_SC_GONE, which promises nothing. */
	if (ret == -ENODEV && !draco_cmd_status(&cmd))
		return ret;
	dev_err(&dd->pdev->dev, "admin command %#x for number %u failed: %s\n", opcode,
		id, draco_status_text(draco_cmd_status(&cmd)));
	return draco_reset_sync(dd, epoch, "it did not release memory");
}
