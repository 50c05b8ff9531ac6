// SPDX-License-Identifier: GPL-2.0-only
/*
 * Recovery: detect that the controller is dead, stop it, start it again. Called by
 * pci.c; by others through draco_reset(). Exactly
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
#include <linux/sched/mm.h>

#include "admin.h"
#include "controller.h"
#include "draco.h"
#include "event.h"
#include "identify.h"
#include "request.h"
#include "reset.h"

#define DRACO_WATCHDOG_MS	1000
#define DRACO_BACKOFF_MIN_MS	100u
#define DRACO_BACKOFF_MAX_MS	30000u

static void draco_reset_queue(struct draco_dev *dd, unsigned int ms)
{
	unsigned long flags;

	spin_lock_irqsave(&dd->reset_lock, flags);
	if (dd->reset_allowed)
		mod_delayed_work(dd->wq, &dd->reset_work, msecs_to_jiffies(ms));
	spin_unlock_irqrestore(&dd->reset_lock, flags);
}

static void draco_watchdog(struct work_struct *work)
{
	struct draco_dev *dd = container_of(to_delayed_work(work),
					    struct draco_dev, watchdog);

	/* Polling found a completion, and its interrupt has not come since. */
	if (test_and_clear_bit(DRACO_F_POLLED, &dd->flags) &&
	    READ_ONCE(dd->irqs) == READ_ONCE(dd->polled_irqs) &&
	    atomic_inc_return(&dd->lost_irqs) == 1)
		dev_warn(&dd->pdev->dev,
			 "admin interrupt lost, recovered by polling\n");
	draco_admin_poll(dd);
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
		/* Tried again for ever, as the right one may come back. */
		if (!dd->foreign)
			dev_err(&dd->pdev->dev,
				"this was port %s of fabric %s and is now %s of %s: unbind the driver and bind it again\n",
				dd->ident.info.name, dd->ident.info.fabric,
				ident.info.name, ident.info.fabric);
		dd->foreign = true;
		ret = -EPROTO;
		goto stop;
	}
	dd->foreign = false;
	WRITE_ONCE(dd->generation, ident.info.generation);
	dd->failed = false;
	draco_admin_set(dd, DRACO_ADMIN_LIVE);
	fabrex_port_revive(dd->port, ident.info.generation);
	draco_requests_repeat(dd);
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
	queue_work(dd->stop_wq, &dd->stop_work);
	spin_unlock_irq(&dd->reset_lock);
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
