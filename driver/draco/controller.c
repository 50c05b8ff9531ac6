// SPDX-License-Identifier: GPL-2.0-only
/*
 * The controller: enable, disable, see whether it works, request that it be
 * reset. That request is a work item that reset.c provides; whoever starts and
 * stops the controller is described there.
 */
#include <linux/delay.h>

#include "admin.h"
#include "controller.h"
#include "draco.h"
#include "request.h"
#include "table.h"

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
			"magic %#x, register version %u.%u: need version %u\n",
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
	/* For draco_slot_reset(): only newer kernels have it saved already. */
	pci_save_state(dd->pdev);
	draco_admin_set(dd, DRACO_ADMIN_SETUP);
	return 0;
}

/**
 * draco_stop() - disable the controller and release all waiters
 * @dd: device; the caller is the one who may, see the top of reset.c
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
	draco_tables_forget(dd);
	draco_requests_forget(dd);
	draco_admin_stopped(dd);
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
