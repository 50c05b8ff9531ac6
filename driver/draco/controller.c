// SPDX-License-Identifier: GPL-2.0-only
/*
 * The controller: enabling, disabling, health checks, and requests for a reset.
 * Above it, recovery.c provides the work that carries out such a request, and
 * explains who may start and stop the controller.
 */
#include <linux/delay.h>

#include "admin.h"
#include "controller.h"
#include "draco.h"
#include "request.h"
#include "table.h"

/**
 * draco_controller_health() - check whether the controller works
 * @dd: device; the controller is enabled
 *
 * Context: Any.
 * Return: 0; -ENODEV if the device does not respond; -EIO if the controller has
 * stopped on its own
 */
int draco_controller_health(struct draco_dev *dd)
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

/* FATAL has to be clear before the controller is enabled again: otherwise the
 * old error would be taken for the result of enabling it.
 */
static bool draco_status_reached(u32 status, bool ready)
{
	if (ready)
		return status & DRACO_STATUS_READY;
	return !(status & (DRACO_STATUS_READY | DRACO_STATUS_FATAL));
}

/* Somebody waits for the controller to be left alone: give up starting it. */
static bool draco_start_cancelled(struct draco_dev *dd)
{
	return draco_removing(dd) || test_bit(DRACO_F_HALTING, &dd->flags);
}

/* Wait for READY to become @ready. -EIO: FATAL; -ENODEV: no response. */
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
		if (draco_status_reached(status, ready))
			return 0;
		if (ready && status & DRACO_STATUS_FATAL)
			return -EIO;
		if (late)
			return -ETIMEDOUT;
		if (ready && draco_start_cancelled(dd))
			return -ENODEV;
		usleep_range(us, 2 * us);
		us = min(2 * us, 10000u);
	}
}

/* If the device cannot be disabled, turn bus mastering off, so that at least it
 * no longer accesses memory.
 */
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

/* Function-level reset, for a device that does not respond to its registers.
 * Whoever holds the lock of its configuration space is about to reset it too,
 * and waits in draco_reset_prepare() for the work that runs this: so do not
 * wait for that lock. Nor may this run under the device lock, for the same
 * reason.
 */
static int draco_flr(struct draco_dev *dd)
{
	struct pci_dev *pdev = dd->pdev;
	int ret;

	if (draco_start_cancelled(dd) || !pci_cfg_access_trylock(pdev))
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

/* Stop the controller, whatever left it running: this driver, another driver,
 * or an earlier kernel.
 */
static int draco_quiesce(struct draco_dev *dd)
{
	int ret = -ETIMEDOUT;

	/* Unless that has just been tried, and nobody has reset the device
	 * since.
	 */
	if (!dd->stuck ||
	    draco_status_reached(draco_read(dd, DRACO_REG_STATUS), false))
		ret = draco_disable(dd);
	if (ret == -ETIMEDOUT)
		ret = draco_flr(dd) ?: draco_disable(dd);
	return ret;
}

/**
 * draco_controller_start() - enable the controller
 * @dd: device; the controller is stopped and the rings are empty
 *
 * Only the caller's own commands are accepted until draco_admin_set() opens the
 * queue to everyone.
 *
 * Context: Process; sleeps. The caller owns the controller, see recovery.c.
 * Return: 0 or a negative errno; after an error the controller is stopped
 */
int draco_controller_start(struct draco_dev *dd)
{
	struct draco_admin *adm = &dd->admin;
	u32 magic, version;
	int ret;

	if (pci_channel_offline(dd->pdev))
		return -ENODEV;
	magic = draco_read(dd, DRACO_REG_MAGIC);
	version = draco_read(dd, DRACO_REG_VERSION);
	if (PCI_POSSIBLE_ERROR(magic))
		return -ENODEV;
	if (magic != DRACO_MAGIC || version >> 16 != DRACO_VERSION >> 16) {
		dev_err(&dd->pdev->dev,
			"unsupported device: magic %#x, register version %u.%u, not %u\n",
			magic, version >> 16, version & 0xffff,
			DRACO_VERSION >> 16);
		return -EPROTO;
	}
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
	/* Older kernels have not saved it yet for draco_slot_reset(). */
	pci_save_state(dd->pdev);
	draco_admin_set(dd, DRACO_ADMIN_SETUP);
	return 0;
}

/**
 * draco_controller_stop() - disable the controller and release all waiters
 * @dd: device
 *
 * When it returns, the device neither accesses memory nor raises interrupts.
 *
 * Context: Process; sleeps, but neither allocates memory nor waits for anybody
 * who does. The caller owns the controller, see recovery.c.
 */
void draco_controller_stop(struct draco_dev *dd)
{
	int ret;

	draco_admin_close(dd);
	ret = draco_disable(dd);
	if (ret == -ETIMEDOUT)
		dev_err(&dd->pdev->dev,
			"controller does not stop, bus mastering is off\n");
	draco_tables_clear(dd);
	draco_requests_close(dd);
	draco_admin_stopped(dd);
}

/**
 * draco_request_reset() - request that the controller be restarted
 * @dd:    device
 * @epoch: READ_ONCE(dd->epoch) from before the reason was found. If the
 *         controller has been stopped since, the reason no longer holds, and
 *         nothing is done
 * @why:   for the log
 *
 * Context: Any.
 */
void draco_request_reset(struct draco_dev *dd, u32 epoch, const char *why)
{
	unsigned long flags;
	bool failed;

	/* Under one lock: @stop_work acts on any FAILING that it finds. */
	spin_lock_irqsave(&dd->reset_lock, flags);
	failed = draco_admin_fail(dd, epoch);
	if (failed && dd->recovery_enabled)
		queue_work(dd->stop_wq, &dd->stop_work);
	spin_unlock_irqrestore(&dd->reset_lock, flags);
	if (failed)
		dev_err(&dd->pdev->dev, "resetting the controller: %s\n", why);
}

/**
 * draco_reset_sync() - reset an untrustworthy controller, wait for the stop
 * @dd:    device
 * @epoch: as for draco_request_reset()
 * @why:   for the log
 *
 * Context: Process; sleeps.
 * Return: -ENODEV, always: the device no longer accesses anything from before
 */
int draco_reset_sync(struct draco_dev *dd, u32 epoch, const char *why)
{
	draco_request_reset(dd, epoch, why);
	wait_event(dd->admin.wait[DRACO_PRIO_RESERVE],
		   READ_ONCE(dd->epoch) != epoch ||
		   READ_ONCE(dd->admin.state) == DRACO_ADMIN_DOWN);
	return -ENODEV;
}

/**
 * draco_check_generation() - compare the port's generation with the driver's
 * @dd:         device
 * @generation: according to the fabric. If it is newer, the port was reset, and
 *              everything made before is void: the controller is reset as well
 *
 * Context: Any.
 */
void draco_check_generation(struct draco_dev *dd, u32 generation)
{
	u32 epoch = READ_ONCE(dd->epoch);

	/* A new generation is stored before the state becomes LIVE. */
	if (smp_load_acquire(&dd->admin.state) == DRACO_ADMIN_LIVE &&
	    (s32)(generation - READ_ONCE(dd->generation)) > 0)
		draco_request_reset(dd, epoch, "the port was reset in the fabric");
}

/**
 * draco_controller_check() - request a reset if the controller does not work
 * @dd: device
 *
 * Context: Any.
 */
void draco_controller_check(struct draco_dev *dd)
{
	u32 epoch = READ_ONCE(dd->epoch);
	const char *why;
	int ret;

	if (smp_load_acquire(&dd->admin.state) != DRACO_ADMIN_LIVE)
		return;
	ret = draco_controller_health(dd);
	if (!ret)
		return;
	if (ret == -ENODEV)
		why = "the device does not respond";
	else if (draco_read(dd, DRACO_REG_ERROR) == DRACO_FATAL_RESET)
		why = "the switch was reset";
	else
		why = "fatal error";
	draco_request_reset(dd, epoch, why);
}
