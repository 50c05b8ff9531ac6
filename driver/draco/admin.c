// SPDX-License-Identifier: GPL-2.0-only
/*
 * Admin queue pair: rings, slots, submission, completion. It never waits, and
 * does not know how the controller is stopped. Called by exec.c, event.c,
 * controller.c, recovery.c and the interrupt handler.
 */
#include "admin.h"
#include "command.h"
#include "draco.h"

/**
 * draco_admin_init() - allocate the rings
 * @dd: device; its capabilities have been read
 *
 * Context: Probe.
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
			"device supports admin rings of %u entries, fewer than %u\n",
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
 * @dd: device; the controller is stopped and its interrupts are freed
 *
 * Context: Process; sleeps.
 */
void draco_admin_free(struct draco_dev *dd)
{
	draco_buf_free(dd, &dd->admin.cq);
	draco_buf_free(dd, &dd->admin.sq);
}

/**
 * draco_admin_set() - accept commands
 * @dd: device
 * @to: %DRACO_ADMIN_SETUP when the controller has become ready, and then
 *      %DRACO_ADMIN_LIVE
 *
 * Context: Process. The caller owns the controller, see recovery.c.
 */
void draco_admin_set(struct draco_dev *dd, enum draco_admin_state to)
{
	struct draco_admin *adm = &dd->admin;

	spin_lock_irq(&adm->lock);
	/* Whoever sees the new state sees what the caller stored before. */
	smp_store_release(&adm->state, to);
	spin_unlock_irq(&adm->lock);
}

/**
 * draco_admin_fail() - accept no more commands: the controller has failed
 * @dd:    device; draco_admin_stopped() must follow
 * @epoch: READ_ONCE(dd->epoch) from before the failure was found; if the
 *         controller has been stopped since, nothing is done
 *
 * Context: Any.
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
 * draco_admin_close() - accept no more commands: the owner stops it
 * @dd: device; draco_admin_stopped() must follow
 *
 * Context: Process. The caller owns the controller, see recovery.c.
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

/* Commands have completed. Wake only as many waiters as slots have become free,
 * so that an interrupt does not pay for all of them. Those who abort a command
 * check whether it is among the completed.
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

/* Free the slot of a command and return it to its issuer. */
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
 * draco_admin_stopped() - release all waiters and empty the rings
 * @dd: device; it can no longer access memory nor raise interrupts
 *
 * Context: Process. The caller owns the controller, see recovery.c.
 */
void draco_admin_stopped(struct draco_dev *dd)
{
	struct draco_admin *adm = &dd->admin;
	enum draco_prio prio;
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
	for (prio = 0; prio < DRACO_PRIOS; prio++)
		wake_up_all(&adm->wait[prio]);
}

/* The device might change an entry while it is examined: read it once. */
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
 * draco_admin_reap() - take new completions
 * @dd: device
 *
 * Context: Any.
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
 * draco_admin_poll() - take completions whose interrupt has not arrived
 * @dd: device
 *
 * On a busy machine the interrupt may just be late: the watchdog checks whether
 * one has arrived since.
 *
 * Context: Any.
 */
void draco_admin_poll(struct draco_dev *dd)
{
	if (!draco_admin_reap(dd) || test_bit(DRACO_F_POLLED, &dd->flags))
		return;
	WRITE_ONCE(dd->polled_irqs, READ_ONCE(dd->irqs));
	set_bit(DRACO_F_POLLED, &dd->flags);
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
 * draco_admin_submit() - submit a command without waiting
 * @dd:   device
 * @cmd:  command; it belongs to the device if 0 is returned
 * @prio: priority, which limits the slots it may use
 *
 * Context: Any.
 * Return: 0; -EAGAIN if no slot is free or the controller is about to be
 * stopped: wait and try again; -ENODEV if it is stopped
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

/**
 * draco_admin_has_room() - check whether a slot is free
 * @dd:   device
 * @prio: priority of the command that would use it
 *
 * Context: Process.
 * Return: true if so
 */
bool draco_admin_has_room(struct draco_dev *dd, enum draco_prio prio)
{
	bool room;

	spin_lock_irq(&dd->admin.lock);
	room = draco_admin_room(&dd->admin, prio);
	spin_unlock_irq(&dd->admin.lock);
	return room;
}
