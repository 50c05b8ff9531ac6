// SPDX-License-Identifier: GPL-2.0-only
/*
 * Admin queue pair: submission, completion, time-outs, withdrawal of commands.
 * Used by all files of the driver; see admin.h for who owns a command when.
 */
#include <linux/dma-mapping.h>
#include <linux/moduleparam.h>

#include "decode.h"
#include "draco.h"

static unsigned int admin_timeout_ms = 10000;
module_param(admin_timeout_ms, uint, 0644);
MODULE_PARM_DESC(admin_timeout_ms,
		 "time that the device has for an admin command, milliseconds");

/* How often waiters look for completions whose interrupt was lost, and how
 * long the device has for an ABORT and for what it aborts.
 */
#define DRACO_POLL_MS	100
#define DRACO_ABORT_MS	5000

/**
 * draco_buf_alloc() - memory for the data of a command
 * @dd:   device
 * @buf:  result, zeroed
 * @size: in bytes; whole pages are used, so that a device that writes past its
 *        end meets nothing of others
 *
 * Return: 0 or -ENOMEM
 */
int draco_buf_alloc(struct draco_dev *dd, struct draco_buf *buf, size_t size)
{
	buf->size = PAGE_ALIGN(size);
	buf->va = dma_alloc_coherent(&dd->pdev->dev, buf->size, &buf->dma,
				     GFP_KERNEL);
	return buf->va ? 0 : -ENOMEM;
}

/**
 * draco_buf_alloc_upto() - as much contiguous memory as can be had easily
 * @dd:   device
 * @buf:  result
 * @size: what would be best; at least a page is returned
 *
 * Return: 0 or -ENOMEM
 */
int draco_buf_alloc_upto(struct draco_dev *dd, struct draco_buf *buf,
			 size_t size)
{
	for (size = PAGE_ALIGN(size); size > PAGE_SIZE;
	     size = PAGE_ALIGN(size / 2)) {
		buf->size = size;
		buf->va = dma_alloc_coherent(&dd->pdev->dev, size, &buf->dma,
					     GFP_KERNEL | __GFP_NOWARN |
					     __GFP_NORETRY);
		if (buf->va)
			return 0;
	}
	return draco_buf_alloc(dd, buf, PAGE_SIZE);
}

/**
 * draco_buf_free() - free what one of the above has allocated
 * @dd:  device
 * @buf: buffer; no command may own it any more
 */
void draco_buf_free(struct draco_dev *dd, struct draco_buf *buf)
{
	if (buf->va)
		dma_free_coherent(&dd->pdev->dev, buf->size, buf->va, buf->dma);
	buf->va = NULL;
}

/**
 * draco_admin_init() - allocate the rings
 * @dd: device; capabilities have been read
 *
 * Return: 0 or a negative errno
 */
int draco_admin_init(struct draco_dev *dd)
{
	struct draco_admin *adm = &dd->admin;
	unsigned int i;
	int ret;

	spin_lock_init(&adm->lock);
	for (i = 0; i < DRACO_PRIOS; i++)
		init_waitqueue_head(&adm->wait[i]);
	draco_cq_start(&adm->cq_pos);
	adm->entries = draco_ring_entries(DRACO_CAP_ADMIN_MAX(dd->cap));
	if (!adm->entries) {
		dev_err(&dd->pdev->dev,
			"device claims admin rings of %u entries, less than %u\n",
			DRACO_CAP_ADMIN_MAX(dd->cap), DRACO_ADMIN_MIN);
		return -EPROTO;
	}
	ret = draco_buf_alloc(dd, &adm->sq,
			      adm->entries * sizeof(struct draco_acmd));
	if (ret)
		return ret;
	ret = draco_buf_alloc(dd, &adm->cq,
			      adm->entries * sizeof(struct draco_acpl));
	if (ret)
		draco_buf_free(dd, &adm->sq);
	return ret;
}

/**
 * draco_admin_free() - free the rings
 * @dd: device; controller is stopped, interrupts are gone
 */
void draco_admin_free(struct draco_dev *dd)
{
	draco_buf_free(dd, &dd->admin.cq);
	draco_buf_free(dd, &dd->admin.sq);
}

/**
 * draco_admin_set() - accept commands
 * @dd: device
 * @to: %DRACO_ADMIN_SETUP when the controller has become ready, then
 *      %DRACO_ADMIN_LIVE
 */
void draco_admin_set(struct draco_dev *dd, enum draco_admin_state to)
{
	struct draco_admin *adm = &dd->admin;

	spin_lock_irq(&adm->lock);
	/* Whoever sees it sees what the caller has written down before. */
	smp_store_release(&adm->state, to);
	spin_unlock_irq(&adm->lock);
}

/**
 * draco_admin_fail() - accept no more commands; any context
 * @dd:    device; draco_admin_stopped() must follow
 * @epoch: READ_ONCE(dd->epoch) before the reason for it was found: one that has
 *         been stopped since is another
 *
 * Return: true if commands were accepted until now
 */
bool draco_admin_fail(struct draco_dev *dd, u32 epoch)
{
	struct draco_admin *adm = &dd->admin;
	unsigned long flags;
	bool was;

	spin_lock_irqsave(&adm->lock, flags);
	was = adm->state == DRACO_ADMIN_LIVE && READ_ONCE(dd->epoch) == epoch;
	if (was)
		adm->state = DRACO_ADMIN_FAILING;
	spin_unlock_irqrestore(&adm->lock, flags);
	return was;
}

/**
 * draco_admin_close() - as above, by the one who is going to stop the controller
 * @dd: device
 */
void draco_admin_close(struct draco_dev *dd)
{
	struct draco_admin *adm = &dd->admin;

	spin_lock_irq(&adm->lock);
	if (adm->state != DRACO_ADMIN_DOWN)
		adm->state = DRACO_ADMIN_FAILING;
	spin_unlock_irq(&adm->lock);
}

static u32 draco_admin_room(const struct draco_admin *adm, enum draco_prio prio)
{
	return draco_ring_room(adm->entries, prio, adm->inflight,
			       adm->count[prio]);
}

static void draco_admin_rooms(const struct draco_admin *adm,
			      u32 room[DRACO_PRIOS])
{
	enum draco_prio prio;

	for (prio = 0; prio < DRACO_PRIOS; prio++)
		room[prio] = draco_admin_room(adm, prio);
}

/* Commands have been completed: wake as many as there is more room for than
 * there was, so that an interrupt does not pay for all who wait. Those who abort
 * look whether what they abort is among the completed.
 */
static void draco_admin_wake(struct draco_admin *adm,
			     const u32 before[DRACO_PRIOS],
			     const u32 after[DRACO_PRIOS])
{
	enum draco_prio prio;

	wake_up_all(&adm->wait[DRACO_PRIO_RESERVE]);
	for (prio = DRACO_PRIO_RESERVE; prio-- > 0;)
		if (after[prio] > before[prio])
			wake_up_nr(&adm->wait[prio],
				   after[prio] - before[prio]);
}

static void draco_admin_wake_all(struct draco_admin *adm)
{
	enum draco_prio prio;

	for (prio = 0; prio < DRACO_PRIOS; prio++)
		wake_up_all(&adm->wait[prio]);
}

/* Take a command out of its slot and hand it back to its issuer. */
static void draco_admin_finish(struct draco_dev *dd, u32 index)
{
	struct draco_admin *adm = &dd->admin;
	struct draco_cmd *cmd = adm->slot[index];

	adm->slot[index] = NULL;
	__clear_bit(index, adm->busy);
	adm->inflight--;
	adm->count[cmd->prio]--;
	if (cmd->complete)
		cmd->complete(dd, cmd);
	else
		complete_all(&cmd->done);
}

/**
 * draco_admin_stopped() - release all waiters and rewind the rings
 * @dd: device; it can no longer access memory nor raise interrupts
 */
void draco_admin_stopped(struct draco_dev *dd)
{
	struct draco_admin *adm = &dd->admin;
	u32 i;

	spin_lock_irq(&adm->lock);
	adm->state = DRACO_ADMIN_DOWN;
	for_each_set_bit(i, adm->busy, DRACO_ADMIN_ENTRIES) {
		adm->slot[i]->error = -ENODEV;
		draco_admin_finish(dd, i);
	}
	adm->tail = 0;
	draco_cq_start(&adm->cq_pos);
	memset(adm->sq.va, 0, adm->sq.size);
	memset(adm->cq.va, 0, adm->cq.size);
	spin_unlock_irq(&adm->lock);
	draco_admin_wake_all(adm);
}

/* The device could change an entry while it is looked at: read it once. */
static void draco_acpl_copy(struct draco_acpl *to, const struct draco_acpl *from)
{
	const u64 *src = (const u64 *)from;
	u64 *dst = (u64 *)to;
	size_t i;

	BUILD_BUG_ON(sizeof(*to) % sizeof(*dst));
	for (i = 0; i < sizeof(*to) / sizeof(*dst); i++)
		dst[i] = READ_ONCE(src[i]);
}

static void draco_admin_complete(struct draco_dev *dd,
				 const struct draco_acpl *cpl)
{
	struct draco_admin *adm = &dd->admin;
	u16 cid = le16_to_cpu(cpl->cid);
	u32 index = draco_cid_index(cid);
	struct draco_cmd *cmd = adm->slot[index];

	if (!cmd || le16_to_cpu(cmd->sqe.cid) != cid) {
		adm->spurious++;
		dev_warn_ratelimited(&dd->pdev->dev,
				     "completion without a command, cid %#x\n", cid);
		return;
	}
	cmd->cpl = *cpl;
	draco_admin_finish(dd, index);
}

/**
 * draco_admin_reap() - take new completions; any context
 * @dd: device
 *
 * Return: true if there were any
 */
bool draco_admin_reap(struct draco_dev *dd)
{
	struct draco_admin *adm = &dd->admin;
	struct draco_acpl *ring = adm->cq.va, *entry, cpl;
	u32 before[DRACO_PRIOS], after[DRACO_PRIOS];
	unsigned long flags;
	u32 n = 0;

	spin_lock_irqsave(&adm->lock, flags);
	draco_admin_rooms(adm, before);
	while (n < adm->entries && adm->state != DRACO_ADMIN_DOWN) {
		entry = &ring[adm->cq_pos.head];
		if (!draco_cq_is_new(&adm->cq_pos,
				     le16_to_cpu(READ_ONCE(entry->flags))))
			break;
		dma_rmb();
		draco_acpl_copy(&cpl, entry);
		draco_cq_advance(&adm->cq_pos, adm->entries);
		draco_admin_complete(dd, &cpl);
		n++;
	}
	if (n)
		writel(adm->cq_pos.head, dd->regs + DRACO_REG_ADMIN_CQ_HEAD);
	draco_admin_rooms(adm, after);
	spin_unlock_irqrestore(&adm->lock, flags);
	if (n)
		draco_admin_wake(adm, before, after);
	return n;
}

/**
 * draco_cmd_init() - prepare a command without data
 * @cmd:    command
 * @opcode: DRACO_ADM_*
 * @id:     what it is about
 */
void draco_cmd_init(struct draco_cmd *cmd, u8 opcode, u32 id)
{
	memset(cmd, 0, sizeof(*cmd));
	init_completion(&cmd->done);
	cmd->sqe.opcode = opcode;
	cmd->sqe.id = cpu_to_le32(id);
}

/**
 * draco_cmd_data() - give a command a buffer
 * @cmd: command
 * @buf: buffer
 * @len: bytes of it that the device may use
 */
void draco_cmd_data(struct draco_cmd *cmd, const struct draco_buf *buf,
		    size_t len)
{
	cmd->sqe.data = cpu_to_le64(buf->dma);
	cmd->sqe.data_len = cpu_to_le32(len);
}

static void draco_admin_push(struct draco_dev *dd, struct draco_cmd *cmd,
			     enum draco_prio prio)
{
	struct draco_admin *adm = &dd->admin;
	struct draco_acmd *ring = adm->sq.va;
	u32 index = find_first_zero_bit(adm->busy, DRACO_ADMIN_ENTRIES);

	__set_bit(index, adm->busy);
	adm->slot[index] = cmd;
	adm->inflight++;
	adm->count[prio]++;
	cmd->prio = prio;
	cmd->error = 0;
	cmd->sqe.cid = cpu_to_le16(draco_cid(index, adm->round++));
	ring[adm->tail] = cmd->sqe;
	adm->tail = draco_ring_next(adm->tail, adm->entries);
	writel(adm->tail, dd->regs + DRACO_REG_ADMIN_SQ_TAIL);
}

/**
 * draco_admin_submit() - hand a command to the device
 * @dd:   device
 * @cmd:  command; belongs to the device if 0 is returned
 * @prio: which of the slots it may use
 *
 * Return: 0; -EAGAIN if there is no room or the controller is about to be
 * stopped: wait; -ENODEV if it is stopped
 */
int draco_admin_submit(struct draco_dev *dd, struct draco_cmd *cmd,
		       enum draco_prio prio)
{
	struct draco_admin *adm = &dd->admin;
	unsigned long flags;
	int ret = -EAGAIN;

	spin_lock_irqsave(&adm->lock, flags);
	switch (adm->state) {
	case DRACO_ADMIN_DOWN:
		ret = -ENODEV;
		break;
	case DRACO_ADMIN_SETUP:
		if (prio != DRACO_PRIO_RESERVE) {
			ret = -ENODEV;
			break;
		}
		fallthrough;
	case DRACO_ADMIN_LIVE:
		if (draco_admin_room(adm, prio)) {
			draco_admin_push(dd, cmd, prio);
			ret = 0;
		}
		break;
	case DRACO_ADMIN_FAILING:
		break;
	}
	spin_unlock_irqrestore(&adm->lock, flags);
	return ret;
}

static enum draco_prio draco_admin_prio(const struct draco_cmd *cmd)
{
	if (cmd->flags & DRACO_CMD_DRIVER)
		return DRACO_PRIO_DRIVER;
	if (cmd->flags & DRACO_CMD_CHANGE)
		return DRACO_PRIO_CHANGE;
	return cmd->flags & DRACO_CMD_QUERY ? DRACO_PRIO_QUERY :
					      DRACO_PRIO_USER;
}

static bool draco_admin_has_room(struct draco_dev *dd, enum draco_prio prio)
{
	bool room;

	spin_lock_irq(&dd->admin.lock);
	room = draco_admin_room(&dd->admin, prio);
	spin_unlock_irq(&dd->admin.lock);
	return room;
}

static bool draco_cmd_cancelled(const struct draco_cmd *cmd)
{
	return cmd->cancel && READ_ONCE(*cmd->cancel);
}

/* Submit, waiting for room: first come, first served in each priority. While
 * the controller is being stopped, this waits too: -ENODEV promises that memory
 * is no longer accessed.
 */
static int draco_admin_queue(struct draco_dev *dd, struct draco_cmd *cmd,
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

static int draco_admin_enter(struct draco_dev *dd, struct draco_cmd *cmd)
{
	enum draco_prio prio = draco_admin_prio(cmd);
	int ret;

	if (cmd->flags & DRACO_CMD_EXCLUSIVE)
		prio = DRACO_PRIO_RESERVE;
	ret = draco_admin_submit(dd, cmd, prio);
	if (ret != -EAGAIN)
		return ret;
	if (cmd->flags & DRACO_CMD_EXCLUSIVE)
		return -EIO;
	return draco_admin_queue(dd, cmd, prio);
}

/* Completions without interrupt; a device that is broken or gone. */
static void draco_admin_poll(struct draco_dev *dd, struct draco_cmd *cmd)
{
	if (draco_admin_reap(dd))
		draco_polled(dd);
	if (cmd->flags & DRACO_CMD_EXCLUSIVE) {
		if (draco_health(dd))
			draco_stop(dd);
	} else {
		draco_check(dd);
	}
}

/* Wait up to @ms. 0: done; -ETIMEDOUT, -EINTR, -ECANCELED or -ENODEV: withdraw
 * it.
 */
static int draco_admin_wait(struct draco_dev *dd, struct draco_cmd *cmd,
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
		draco_admin_poll(dd, cmd);
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
static void draco_admin_break(struct draco_dev *dd, struct draco_cmd *cmd,
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
static bool draco_admin_abort(struct draco_dev *dd, struct draco_cmd *cmd,
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
static void draco_admin_withdraw(struct draco_dev *dd, struct draco_cmd *cmd)
{
	u32 epoch = READ_ONCE(dd->epoch);
	struct draco_cmd abort;
	bool sent;

	/* From here on, nothing ends the wait but the device. */
	cmd->flags &= DRACO_CMD_EXCLUSIVE;
	cmd->cancel = NULL;
	sent = draco_admin_abort(dd, cmd, &abort);
	if (sent && !draco_admin_wait(dd, &abort, DRACO_ABORT_MS))
		draco_admin_wait(dd, cmd, DRACO_ABORT_MS);

	if (completion_done(&cmd->done) &&
	    (!sent || completion_done(&abort.done)))
		return;
	draco_admin_break(dd, cmd, epoch);
	wait_for_completion(&cmd->done);
	if (sent)
		wait_for_completion(&abort.done);
}

/* The issuer does not want @cmd any more: ask the device to leave it, and wait for
 * it as before, as it may be too late for that. 0: done; else withdraw it.
 */
static int draco_admin_cancel(struct draco_dev *dd, struct draco_cmd *cmd,
			      unsigned int ms)
{
	const bool *cancel = cmd->cancel;
	u32 epoch = READ_ONCE(dd->epoch);
	struct draco_cmd abort;
	int ret;

	cmd->cancel = NULL;
	if (draco_admin_abort(dd, cmd, &abort) &&
	    draco_admin_wait(dd, &abort, DRACO_ABORT_MS)) {
		draco_admin_break(dd, cmd, epoch);
		wait_for_completion(&abort.done);
	}
	ret = draco_admin_wait(dd, cmd, ms);
	cmd->cancel = cancel;
	return ret;
}

/**
 * draco_admin_exec() - have the device execute a command
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
int draco_admin_exec(struct draco_dev *dd, struct draco_cmd *cmd)
{
	unsigned int ms = cmd->timeout_ms ?: READ_ONCE(admin_timeout_ms);
	u16 status;
	int ret;

	ret = draco_admin_enter(dd, cmd);
	if (ret)
		return ret;
	ret = draco_admin_wait(dd, cmd, ms);
	if (ret == -ECANCELED)
		ret = draco_admin_cancel(dd, cmd, ms);
	if (ret)
		draco_admin_withdraw(dd, cmd);
	if (cmd->error)
		return cmd->error;

	status = draco_cmd_status(cmd);
	if (ret && status == DRACO_SC_ABORTED)
		return ret;
	return draco_status_errno(status);
}
