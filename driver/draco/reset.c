// SPDX-License-Identifier: GPL-2.0-only
/*
 * Controller life: enable, disable, detect that it is dead, recover. Exactly
 * one party at a time starts and stops it: stop_work and then reset_work, or
 * whoever disallowed them.
 *
 * A driver that exports a dma-buf may be freeing memory when it waits, through
 * ->mr_invalidate() and draco_kill(), for a controller that does not answer to be
 * stopped. So stop_work has a queue with a rescuer, of its own, and neither it
 * nor the command before allocates, or waits for anybody who does; the waiter
 * polls for its completion itself. Everything else, telling the core and starting
 * again, allocates and is reset_work, for which nobody waits who frees memory:
 * the controller is stopped then, which ends commands at once.
 */
#include <linux/delay.h>
#include <linux/sched/mm.h>

#include "draco.h"

#define DRACO_WATCHDOG_MS	1000
#define DRACO_BACKOFF_MIN_MS	100u
#define DRACO_BACKOFF_MAX_MS	30000u

/**
 * draco_health() - does the device work
 * @dd: device; controller is enabled
 *
 * Return: 0; -ENODEV if it does not answer; -EIO if it has stopped by itself
 */
int draco_health(struct draco_dev *dd)
{
	u32 status;

	if (pci_channel_offline(dd->pdev))
		return -ENODEV;
	status = draco_read(dd, DRACO_REG_STATUS);
	if (PCI_POSSIBLE_ERROR(status))
		return -ENODEV;
	if (status & DRACO_STATUS_FATAL || !(status & DRACO_STATUS_READY))
		return -EIO;
	return 0;
}

/* Is it where it was told to go? What FATAL said must be gone before the
 * controller is enabled again, as it would be taken for the outcome of that.
 */
static bool draco_settled(u32 status, bool ready)
{
	if (ready)
		return status & DRACO_STATUS_READY;
	return !(status & (DRACO_STATUS_READY | DRACO_STATUS_FATAL));
}

/* Somebody waits for whoever starts the controller to give it up. */
static bool draco_unwanted(struct draco_dev *dd)
{
	return draco_removing(dd) || test_bit(DRACO_F_HALTING, &dd->flags);
}

/* Wait for READY to become @ready. -EIO: FATAL; -ENODEV: no answer. */
static int draco_wait_ready(struct draco_dev *dd, bool ready)
{
	unsigned long end = jiffies + msecs_to_jiffies(dd->ready_ms);
	unsigned int us = 50;
	u32 status;

	for (;;) {
		bool late = time_after(jiffies, end);

		if (pci_channel_offline(dd->pdev))
			return -ENODEV;
		status = draco_read(dd, DRACO_REG_STATUS);
		if (PCI_POSSIBLE_ERROR(status))
			return -ENODEV;
		if (draco_settled(status, ready))
			return 0;
		if (ready && status & DRACO_STATUS_FATAL)
			return -EIO;
		if (late)
			return -ETIMEDOUT;
		if (ready && draco_unwanted(dd))
			return -ENODEV;
		usleep_range(us, 2 * us);
		us = min(2 * us, 10000u);
	}
}

/* A device that cannot be talked out of accessing memory is kept from it. */
static int draco_disable(struct draco_dev *dd)
{
	int ret = -ENODEV;

	if (!pci_channel_offline(dd->pdev)) {
		writel(0, dd->regs + DRACO_REG_CTRL);
		ret = draco_wait_ready(dd, false);
	}
	dd->stuck = ret == -ETIMEDOUT;
	if (ret)
		pci_clear_master(dd->pdev);
	return ret;
}

/*
 * Function level reset, for a device that does not react to its registers.
 * Whoever has locked its configuration space is about to reset it as well, and
 * waits in draco_reset_prepare() for the work that we are part of: so this must
 * not wait for him. Not below the device lock, for the same reason.
 */
static int draco_flr(struct draco_dev *dd)
{
	struct pci_dev *pdev = dd->pdev;
	int ret;

	if (draco_unwanted(dd) || !pci_cfg_access_trylock(pdev))
		return -EBUSY;
	dev_warn(&pdev->dev, "controller does not stop, resetting the function\n");
	pci_save_state(pdev);
	ret = pcie_reset_flr(pdev, PCI_RESET_DO_RESET);
	if (ret)
		dev_err(&pdev->dev, "function level reset failed: %d\n", ret);
	pci_restore_state(pdev);
	pci_cfg_access_unlock(pdev);
	return ret;
}

/* Stop it, whoever has left it as it is: us, another driver, another kernel. */
static int draco_quiesce(struct draco_dev *dd)
{
	int ret = -ETIMEDOUT;

	/* Unless it has been tried just now, and nobody has reset it since. */
	if (!dd->stuck || draco_settled(draco_read(dd, DRACO_REG_STATUS), false))
		ret = draco_disable(dd);
	if (ret == -ETIMEDOUT)
		ret = draco_flr(dd) ?: draco_disable(dd);
	return ret;
}

static int draco_check_device(struct draco_dev *dd)
{
	u32 magic = draco_read(dd, DRACO_REG_MAGIC);
	u32 version = draco_read(dd, DRACO_REG_VERSION);

	if (PCI_POSSIBLE_ERROR(magic))
		return -ENODEV;
	if (magic != DRACO_MAGIC || version >> 16 != DRACO_VERSION >> 16) {
		dev_err(&dd->pdev->dev,
			"magic %#x, register version %u.%u: need version %u\n",
			magic, version >> 16, version & 0xffff,
			DRACO_VERSION >> 16);
		return -EPROTO;
	}
	return 0;
}

/**
 * draco_start() - enable the controller
 * @dd: device; stopped, rings rewound
 *
 * It then takes commands of the caller; draco_admin_set() opens it to everyone.
 *
 * Return: 0 or a negative errno, the controller is stopped then
 */
int draco_start(struct draco_dev *dd)
{
	struct draco_admin *adm = &dd->admin;
	int ret;

	if (pci_channel_offline(dd->pdev))
		return -ENODEV;
	ret = draco_check_device(dd);
	if (ret)
		return ret;
	ret = draco_quiesce(dd);
	if (ret)
		return ret;

	pci_set_master(dd->pdev);
	writel(adm->entries, dd->regs + DRACO_REG_ADMIN_SIZE);
	lo_hi_writeq(adm->sq.dma, dd->regs + DRACO_REG_ADMIN_SQ);
	lo_hi_writeq(adm->cq.dma, dd->regs + DRACO_REG_ADMIN_CQ);
	writel(DRACO_CTRL_ENABLE, dd->regs + DRACO_REG_CTRL);
	ret = draco_wait_ready(dd, true);
	if (ret) {
		dev_err(&dd->pdev->dev,
			"controller does not become ready: %d, error %u\n",
			ret, draco_read(dd, DRACO_REG_ERROR));
		draco_disable(dd);
		return ret;
	}
	/* For draco_slot_reset(): only newer kernels have it saved already. */
	pci_save_state(dd->pdev);
	draco_admin_set(dd, DRACO_ADMIN_SETUP);
	return 0;
}

/**
 * draco_stop() - disable the controller and release all waiters
 * @dd: device; the caller is the one who may, see the top of this file
 *
 * When it returns the device neither accesses memory nor interrupts.
 */
void draco_stop(struct draco_dev *dd)
{
	int ret;

	draco_admin_close(dd);
	ret = draco_disable(dd);
	if (ret == -ETIMEDOUT)
		dev_err(&dd->pdev->dev,
			"controller does not stop, bus mastering is off\n");
	draco_queues_forget(dd);
	draco_numbers_forget(dd);
	draco_release_forget(dd);
	draco_admin_stopped(dd);
}

static void draco_reset_queue(struct draco_dev *dd, unsigned int ms)
{
	unsigned long flags;

	spin_lock_irqsave(&dd->reset_lock, flags);
	if (dd->reset_allowed)
		mod_delayed_work(dd->wq, &dd->reset_work, msecs_to_jiffies(ms));
	spin_unlock_irqrestore(&dd->reset_lock, flags);
}

static void draco_stop_queue(struct draco_dev *dd)
{
	unsigned long flags;

	spin_lock_irqsave(&dd->reset_lock, flags);
	if (dd->reset_allowed)
		queue_work(dd->stop_wq, &dd->stop_work);
	spin_unlock_irqrestore(&dd->reset_lock, flags);
}

/**
 * draco_reset() - have the controller stopped and started again; any context
 * @dd:    device
 * @epoch: READ_ONCE(dd->epoch) before the reason was found. If somebody else has
 *         stopped the controller since, it is well, and left alone
 * @why:   for the log
 */
void draco_reset(struct draco_dev *dd, u32 epoch, const char *why)
{
	unsigned long flags;
	bool failed;

	/* In one step: @stop_work takes any FAILING for its own. */
	spin_lock_irqsave(&dd->reset_lock, flags);
	failed = draco_admin_fail(dd, epoch);
	if (failed && dd->reset_allowed)
		queue_work(dd->stop_wq, &dd->stop_work);
	spin_unlock_irqrestore(&dd->reset_lock, flags);
	if (failed)
		dev_err(&dd->pdev->dev, "resetting the controller: %s\n", why);
}

/**
 * draco_enabled_anew() - the fabric says which generation the port has
 * @dd:         device
 * @generation: a newer one than the driver has seen: what was made before is void
 */
void draco_enabled_anew(struct draco_dev *dd, u32 generation)
{
	u32 epoch = READ_ONCE(dd->epoch);

	/* Whoever starts it writes down its generation before it is LIVE. */
	if (smp_load_acquire(&dd->admin.state) == DRACO_ADMIN_LIVE &&
	    (s32)(generation - READ_ONCE(dd->generation)) > 0)
		draco_reset(dd, epoch, "the port was reset in the fabric");
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
	ret = draco_admin_exec(dd, &cmd);
	if (!ret || ret == -ENOENT)
		return 0;
	/* Not DRACO_SC_GONE, which promises nothing. */
	if (ret == -ENODEV && !draco_cmd_status(&cmd))
		return ret;
	dev_err(&dd->pdev->dev, "command %#x for %u: %s\n", opcode, id,
		draco_status_text(draco_cmd_status(&cmd)));
	return draco_kill(dd, epoch, "it does not let go of memory");
}

/**
 * draco_check() - reset the controller if it is not well; any context
 * @dd: device
 */
void draco_check(struct draco_dev *dd)
{
	u32 epoch = READ_ONCE(dd->epoch);
	int ret;

	if (smp_load_acquire(&dd->admin.state) != DRACO_ADMIN_LIVE)
		return;
	ret = draco_health(dd);
	if (ret == -ENODEV)
		draco_reset(dd, epoch, "the device does not answer");
	else if (ret)
		draco_reset(dd, epoch, draco_read(dd, DRACO_REG_ERROR) ==
			    DRACO_FATAL_RESET ?
			    "the switch was reset" : "fatal error");
}

/**
 * draco_polled() - a completion was found without being told
 * @dd: device
 *
 * Its interrupt may be late only, on a machine that is busy. The watchdog looks
 * whether there has been one since.
 */
void draco_polled(struct draco_dev *dd)
{
	if (!test_bit(DRACO_F_POLLED, &dd->flags)) {
		WRITE_ONCE(dd->polled_irqs, READ_ONCE(dd->irqs));
		set_bit(DRACO_F_POLLED, &dd->flags);
	}
}

static void draco_lost_interrupt(struct draco_dev *dd)
{
	if (!test_and_clear_bit(DRACO_F_POLLED, &dd->flags) ||
	    READ_ONCE(dd->irqs) != READ_ONCE(dd->polled_irqs))
		return;
	if (atomic_inc_return(&dd->lost_irqs) == 1)
		dev_warn(&dd->pdev->dev,
			 "admin interrupt lost, recovered by polling\n");
}

static void draco_watchdog(struct work_struct *work)
{
	struct draco_dev *dd = container_of(to_delayed_work(work),
					    struct draco_dev, watchdog);

	draco_lost_interrupt(dd);
	if (draco_admin_reap(dd))
		draco_polled(dd);
	draco_check(dd);
	spin_lock_irq(&dd->reset_lock);
	if (dd->reset_allowed)
		queue_delayed_work(dd->wq, &dd->watchdog,
				   msecs_to_jiffies(DRACO_WATCHDOG_MS));
	spin_unlock_irq(&dd->reset_lock);
}

/* Tell the core once; its objects are gone with the stop of the controller. */
static void draco_fail(struct draco_dev *dd)
{
	if (!dd->failed && dd->port && !draco_removing(dd))
		fabrex_port_fail(dd->port, FABREX_QERR_RESET);
	dd->failed = true;
}

/* Tried again for ever, as the right one may come back; told once. */
static void draco_say_foreign(struct draco_dev *dd,
			      const struct draco_ident *ident)
{
	if (!dd->foreign)
		dev_err(&dd->pdev->dev,
			"this was port %s of fabric %s and is now %s of %s: unbind the driver and bind it again\n",
			dd->ident.info.name, dd->ident.info.fabric,
			ident->info.name, ident->info.fabric);
	dd->foreign = true;
}

static int draco_recover(struct draco_dev *dd)
{
	struct draco_ident ident;
	int ret;

	ret = draco_start(dd);
	if (ret)
		return ret;
	ret = draco_identify(dd, &ident);
	if (ret)
		goto stop;
	if (!draco_same_port(&dd->ident, &ident)) {
		draco_say_foreign(dd, &ident);
		ret = -EPROTO;
		goto stop;
	}
	dd->foreign = false;
	WRITE_ONCE(dd->generation, ident.info.generation);
	dd->failed = false;
	draco_admin_set(dd, DRACO_ADMIN_LIVE);
	fabrex_port_revive(dd->port, ident.info.generation);
	draco_release_repeat(dd);
	/* Link and peers too: by the event work, as events may be on their way. */
	draco_events_kick(dd, true);
	dev_info(&dd->pdev->dev, "controller works again, generation %u\n",
		 ident.info.generation);
	return 0;

stop:
	draco_stop(dd);
	return ret;
}

static void draco_stop_work(struct work_struct *work)
{
	struct draco_dev *dd = container_of(work, struct draco_dev, stop_work);

	/* Not one that somebody else has stopped, and perhaps started again. */
	if (READ_ONCE(dd->admin.state) == DRACO_ADMIN_FAILING) {
		/* Have lockdep complain of whatever allocates in there. */
		fs_reclaim_acquire(GFP_KERNEL);
		draco_stop(dd);
		fs_reclaim_release(GFP_KERNEL);
	}
	draco_reset_queue(dd, 0);
}

/* If the controller is about to be stopped, that queues it once more. */
static void draco_reset_work(struct work_struct *work)
{
	struct draco_dev *dd = container_of(to_delayed_work(work),
					    struct draco_dev, reset_work);

	if (READ_ONCE(dd->admin.state) != DRACO_ADMIN_DOWN)
		return;
	draco_fail(dd);
	if (draco_removing(dd) || pci_channel_offline(dd->pdev))
		return;
	if (!draco_recover(dd)) {
		dd->backoff_ms = DRACO_BACKOFF_MIN_MS;
		return;
	}
	dd->backoff_ms = min(dd->backoff_ms * 2, DRACO_BACKOFF_MAX_MS);
	draco_reset_queue(dd, dd->backoff_ms);
}

/**
 * draco_reset_init() - prepare the works; they are not allowed yet
 * @dd: device
 */
void draco_reset_init(struct draco_dev *dd)
{
	spin_lock_init(&dd->reset_lock);
	INIT_WORK(&dd->stop_work, draco_stop_work);
	INIT_DELAYED_WORK(&dd->reset_work, draco_reset_work);
	INIT_DELAYED_WORK(&dd->watchdog, draco_watchdog);
	dd->backoff_ms = DRACO_BACKOFF_MIN_MS;
}

/**
 * draco_reset_allow() - from now on the driver looks after the controller
 * @dd: device; if the controller is stopped, or about to be, it is started
 */
void draco_reset_allow(struct draco_dev *dd)
{
	clear_bit(DRACO_F_HALTING, &dd->flags);
	spin_lock_irq(&dd->reset_lock);
	dd->reset_allowed = true;
	queue_delayed_work(dd->wq, &dd->watchdog,
			   msecs_to_jiffies(DRACO_WATCHDOG_MS));
	spin_unlock_irq(&dd->reset_lock);
	draco_stop_queue(dd);
}

/**
 * draco_reset_disallow() - from now on the caller looks after it
 * @dd: device; draco_stop() has to follow soon, as commands that time out wait
 *      for it
 *
 * Waits for the works. The PCI core calls this with the device locked (removal,
 * AER, sleep, shutdown), before a reset of the function with its configuration
 * space locked as well: the works may wait for neither.
 */
void draco_reset_disallow(struct draco_dev *dd)
{
	spin_lock_irq(&dd->reset_lock);
	dd->reset_allowed = false;
	spin_unlock_irq(&dd->reset_lock);
	set_bit(DRACO_F_HALTING, &dd->flags);
	cancel_delayed_work_sync(&dd->watchdog);
	cancel_work_sync(&dd->stop_work);
	cancel_delayed_work_sync(&dd->reset_work);
}

/**
 * draco_halt() - stop until draco_reset_allow(), e.g. around a function reset
 * @dd: device
 */
void draco_halt(struct draco_dev *dd)
{
	draco_reset_disallow(dd);
	draco_stop(dd);
	draco_fail(dd);
}
