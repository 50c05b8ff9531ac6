// SPDX-License-Identifier: GPL-2.0-only
/*
 * Recovery: the watchdog detects that the controller has died, stop_work stops
 * it, reset_work starts it again. Called by pci.c; others request a reset with
 * draco_request_reset().
 *
 * The controller has exactly one owner at a time, who alone may start and stop
 * it: the two works, or whoever has disabled recovery.
 *
 * The driver that exports a dma-buf may be freeing memory when it waits,
 * through ->mr_invalidate() and draco_reset_sync(), until an unresponsive
 * controller has been stopped. Therefore stop_work has a workqueue of its own
 * with a rescuer, and neither it nor the command that preceded it allocates
 * memory, or waits for anybody who does; the waiter polls for its completion
 * itself. What may allocate, reporting to the core and starting again, is done
 * by reset_work. Nobody who frees memory waits for that: by then the controller
 * is stopped, and commands fail at once.
 */
#include <linux/sched/mm.h>

#include "admin.h"
#include "controller.h"
#include "draco.h"
#include "event.h"
#include "identify.h"
#include "request.h"
#include "recovery.h"

#define DRACO_WATCHDOG_MS	1000
#define DRACO_BACKOFF_MIN_MS	100u
#define DRACO_BACKOFF_MAX_MS	30000u

static void draco_reset_queue(struct draco_dev *dd, unsigned int ms)
{
	unsigned long flags;

	spin_lock_irqsave(&dd->reset_lock, flags);
	if (dd->recovery_enabled)
		mod_delayed_work(dd->wq, &dd->reset_work, msecs_to_jiffies(ms));
	spin_unlock_irqrestore(&dd->reset_lock, flags);
}

static void draco_watchdog(struct work_struct *work)
{
	struct draco_dev *dd = container_of(to_delayed_work(work),
					    struct draco_dev, watchdog);

	/* Polling found a completion, and there has been no interrupt since. */
	if (test_and_clear_bit(DRACO_F_POLLED, &dd->flags) &&
	    READ_ONCE(dd->irqs) == READ_ONCE(dd->polled_irqs) &&
	    atomic_inc_return(&dd->lost_irqs) == 1)
		dev_warn(&dd->pdev->dev,
			 "admin interrupt lost, recovered by polling\n");
	draco_admin_poll(dd);
	draco_controller_check(dd);
	spin_lock_irq(&dd->reset_lock);
	if (dd->recovery_enabled)
		queue_delayed_work(dd->wq, &dd->watchdog,
				   msecs_to_jiffies(DRACO_WATCHDOG_MS));
	spin_unlock_irq(&dd->reset_lock);
}

/* Report once to the core; the stop has destroyed its objects. */
static void draco_fail_port(struct draco_dev *dd)
{
	if (!dd->failed && dd->port && !draco_removing(dd))
		fabrex_port_fail(dd->port, FABREX_QERR_RESET);
	dd->failed = true;
}

static int draco_recover(struct draco_dev *dd)
{
	struct draco_ident ident;
	int ret;

	ret = draco_controller_start(dd);
	if (ret)
		return ret;
	ret = draco_identify(dd, &ident);
	if (ret)
		goto stop;
	if (!draco_same_port(&dd->ident, &ident)) {
		/* Retried for ever, because the right port may come back. */
		if (!dd->other_port)
			dev_err(&dd->pdev->dev,
				"port %s of fabric %s has become port %s of fabric %s: unbind the driver and bind it again\n",
				dd->ident.info.name, dd->ident.info.fabric,
				ident.info.name, ident.info.fabric);
		dd->other_port = true;
		ret = -EPROTO;
		goto stop;
	}
	dd->other_port = false;
	WRITE_ONCE(dd->generation, ident.info.generation);
	dd->failed = false;
	draco_admin_set(dd, DRACO_ADMIN_LIVE);
	fabrex_port_revive(dd->port, ident.info.generation);
	draco_requests_repeat(dd);
	/* Link and peers too: by the event work, as events may be pending. */
	draco_events_kick(dd, true);
	dev_info(&dd->pdev->dev, "controller works again, generation %u\n",
		 ident.info.generation);
	return 0;

stop:
	draco_controller_stop(dd);
	return ret;
}

static void draco_stop_work(struct work_struct *work)
{
	struct draco_dev *dd = container_of(work, struct draco_dev, stop_work);

	/* Another owner may have stopped it, and perhaps started it again. */
	if (READ_ONCE(dd->admin.state) == DRACO_ADMIN_FAILING) {
		/* Let lockdep complain about any allocation in there. */
		fs_reclaim_acquire(GFP_KERNEL);
		draco_controller_stop(dd);
		fs_reclaim_release(GFP_KERNEL);
	}
	draco_reset_queue(dd, 0);
}

/* If the controller is about to be stopped, stop_work queues this once more. */
static void draco_reset_work(struct work_struct *work)
{
	struct draco_dev *dd = container_of(to_delayed_work(work),
					    struct draco_dev, reset_work);

	if (READ_ONCE(dd->admin.state) != DRACO_ADMIN_DOWN)
		return;
	draco_fail_port(dd);
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
 * draco_recovery_init() - initialise the works; recovery is still disabled
 * @dd: device
 *
 * Context: Probe.
 */
void draco_recovery_init(struct draco_dev *dd)
{
	spin_lock_init(&dd->reset_lock);
	INIT_WORK(&dd->stop_work, draco_stop_work);
	INIT_DELAYED_WORK(&dd->reset_work, draco_reset_work);
	INIT_DELAYED_WORK(&dd->watchdog, draco_watchdog);
	dd->backoff_ms = DRACO_BACKOFF_MIN_MS;
}

/**
 * draco_recovery_enable() - hand the controller over to recovery
 * @dd: device; the controller is started if it is stopped or about to be
 *
 * Context: Process.
 */
void draco_recovery_enable(struct draco_dev *dd)
{
	clear_bit(DRACO_F_HALTING, &dd->flags);
	spin_lock_irq(&dd->reset_lock);
	dd->recovery_enabled = true;
	queue_delayed_work(dd->wq, &dd->watchdog,
			   msecs_to_jiffies(DRACO_WATCHDOG_MS));
	queue_work(dd->stop_wq, &dd->stop_work);
	spin_unlock_irq(&dd->reset_lock);
}

/**
 * draco_recovery_disable() - take the controller over from recovery
 * @dd: device; draco_controller_stop() has to follow soon, because commands
 *      that time out wait for it
 *
 * Context: Process; sleeps, and waits for the works. The PCI core holds the
 * device lock (removal, AER, suspend, shutdown), and before a function reset
 * the lock of the configuration space too: so the works may wait for neither.
 */
void draco_recovery_disable(struct draco_dev *dd)
{
	spin_lock_irq(&dd->reset_lock);
	dd->recovery_enabled = false;
	spin_unlock_irq(&dd->reset_lock);
	set_bit(DRACO_F_HALTING, &dd->flags);
	cancel_delayed_work_sync(&dd->watchdog);
	cancel_work_sync(&dd->stop_work);
	cancel_delayed_work_sync(&dd->reset_work);
}

/**
 * draco_halt() - stop the controller until draco_recovery_enable()
 * @dd: device
 *
 * For instance during a function reset or while the machine is suspended.
 *
 * Context: As draco_recovery_disable().
 */
void draco_halt(struct draco_dev *dd)
{
	draco_recovery_disable(dd);
	draco_controller_stop(dd);
	draco_fail_port(dd);
}
