// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finds the local PCI device of a slot of the partition, and powers slots off.
 * Called by release.c, and by the core through the table of operations.
 *
 * Slots belong to the hot-plug driver of the PCI core, pciehp. Rules here:
 *
 * - A device is looked up among the children of the virtual switch's upstream
 *   port, which needs no lock. Nothing that remove() waits for may take
 *   pci_lock_rescan_remove(), because the removal of a whole switch holds that
 *   lock while it waits for remove().
 * - To power a slot off, call pciehp's disable_slot(), as its sysfs attribute
 *   does. It sleeps until the device is gone and for a second more, and takes
 *   the rescan/remove lock itself. So it runs in a work that belongs to no
 *   port: remove() does not wait for it, only the exit of the module does,
 *   without locks.
 * - pciehp must not be unbound from the slot meanwhile; its sysfs attribute
 *   ensures that for its own callers. Unbinding takes the lock of pciehp's
 *   service device, so the work holds that lock.
 *
 * If the whole switch is removed after pciehp was called and before it has
 * taken the rescan/remove lock, its thread and the remover wait for each other.
 * That is so in pciehp whoever calls it. All that can be done here is not to
 * call it while a removal is in progress or known to follow.
 */
#include <linux/bitfield.h>
#include <linux/delay.h>
#include <linux/pci.h>
#include <linux/pci_hotplug.h>
#include <linux/slab.h>

#include "draco.h"
#include "hotplug.h"
#include "ops.h"

static struct workqueue_struct *draco_slot_off_wq;

/* While pciehp powers a slot up or down it refuses requests: the delay between
 * attempts, and their number.
 */
#define DRACO_OFF_RETRY_MS	50
#define DRACO_OFF_TRIES		60

/**
 * struct draco_slot_off - slot to be powered off
 * @work:     powers it off
 * @upstream: upstream port of the slot's switch, with a reference
 * @pdev:     the device to be removed, with a reference: if another one is in
 *            the slot by then, that one stays. NULL: not enumerated yet
 * @vendor:   PCI vendor id of the endpoint
 * @device:   PCI device id of the endpoint
 * @slot:     physical slot number
 */
struct draco_slot_off {
	struct work_struct work;
	struct pci_dev *upstream;
	struct pci_dev *pdev;
	u16 vendor;
	u16 device;
	u16 slot;
};

/**
 * draco_upstream_port() - find the top of the virtual switch above a function
 * @pdev: host port function
 *
 * Context: Probe.
 * Return: the upstream port, with a reference; NULL if there is none
 */
struct pci_dev *draco_upstream_port(struct pci_dev *pdev)
{
	struct pci_dev *bridge = pci_upstream_bridge(pdev);

	while (bridge && pci_pcie_type(bridge) != PCI_EXP_TYPE_UPSTREAM)
		bridge = pci_upstream_bridge(bridge);
	return pci_dev_get(bridge);
}

struct draco_port_match {
	struct pci_dev *port;
	u16 slot;
};

static int draco_match_port(struct device *dev, void *data)
{
	struct draco_port_match *match = data;
	struct pci_dev *pdev;
	u32 cap;

	if (!dev_is_pci(dev))
		return 0;
	pdev = to_pci_dev(dev);
	if (!pci_is_pcie(pdev) || !pci_is_bridge(pdev) ||
	    pcie_capability_read_dword(pdev, PCI_EXP_SLTCAP, &cap) ||
	    PCI_POSSIBLE_ERROR(cap))
		return 0;
	if (!(cap & PCI_EXP_SLTCAP_HPC) ||
	    FIELD_GET(PCI_EXP_SLTCAP_PSN, cap) != match->slot)
		return 0;
	match->port = pci_dev_get(pdev);
	return 1;
}

/* Downstream port of a slot, with a reference, or NULL. */
static struct pci_dev *draco_slot_port(struct pci_dev *upstream, u16 slot)
{
	struct draco_port_match match = { .slot = slot };

	if (upstream)
		device_for_each_child(&upstream->dev, &match, draco_match_port);
	return match.port;
}

static int draco_match_device(struct device *dev, void *data)
{
	struct pci_dev **found = data;

	if (!dev_is_pci(dev) || PCI_FUNC(to_pci_dev(dev)->devfn))
		return 0;
	*found = pci_dev_get(to_pci_dev(dev));
	return 1;
}

/* First function below a downstream port, with a reference, or NULL. */
static struct pci_dev *draco_port_device(struct pci_dev *port)
{
	struct pci_dev *pdev = NULL;

	device_for_each_child(&port->dev, &pdev, draco_match_device);
	return pdev;
}

static int draco_match_pciehp(struct device *dev, void *data)
{
	struct device_driver *driver = READ_ONCE(dev->driver);
	struct device **found = data;

	if (dev_is_pci(dev) || !driver || strcmp(driver->name, "pciehp"))
		return 0;
	*found = get_device(dev);
	return 1;
}

/* The device that pciehp is bound to, with a reference, or NULL. */
static struct device *draco_port_pciehp(struct pci_dev *port)
{
	struct device *service = NULL;

	device_for_each_child(&port->dev, &service, draco_match_pciehp);
	return service;
}

/**
 * draco_endpoint_pdev() - find the local PCI device of an endpoint
 * @port: port that it is bound to
 * @ep:   endpoint; not used, as the slot identifies it
 * @slot: physical slot number
 *
 * Context: Process.
 * Return: the device, with a reference; NULL if the slot is empty, not
 * enumerated yet, or does not exist
 */
struct pci_dev *draco_endpoint_pdev(struct fabrex_port *port, u32 ep, u16 slot)
{
	struct draco_dev *dd = fabrex_port_priv(port);
	struct pci_dev *down = draco_slot_port(dd->upstream, slot);
	struct pci_dev *pdev = NULL;

	if (down)
		pdev = draco_port_device(down);
	pci_dev_put(down);
	return pdev;
}

static bool draco_port_present(struct pci_dev *port)
{
	u16 status;

	return !pcie_capability_read_word(port, PCI_EXP_SLTSTA, &status) &&
	       !PCI_POSSIBLE_ERROR(status) && status & PCI_EXP_SLTSTA_PDS;
}

/* Called with pciehp's service device locked. -EAGAIN: the slot is being
 * powered up or down.
 */
static int draco_slot_off_now(struct pci_dev *port, struct draco_slot_off *off)
{
	struct hotplug_slot *hotplug = NULL;
	struct pci_dev *pdev;
	bool same;
	int ret;

	if (pci_channel_offline(port))
		return -ENODEV;
	pdev = draco_port_device(port);
	if (!pdev)
		return draco_port_present(port) ? -EAGAIN : 0;
	if (!off->pdev && pdev->vendor == off->vendor &&
	    pdev->device == off->device)
		off->pdev = pci_dev_get(pdev);
	same = pdev == off->pdev;
	if (same && pdev->slot)
		hotplug = pdev->slot->hotplug;
	pci_dev_put(pdev);
	if (!same)
		return 0;	/* the device has gone in the meantime */
	if (!hotplug || !hotplug->ops->disable_slot)
		return -EOPNOTSUPP;
	ret = hotplug->ops->disable_slot(hotplug);
	return ret == -ENODEV ? -EAGAIN : ret;
}

static int draco_slot_off_try(struct draco_slot_off *off)
{
	struct device *service = NULL;
	struct pci_dev *port;
	int ret = -ENODEV;

	/* Let a removal in progress finish, then see what is left. */
	pci_lock_rescan_remove();
	port = draco_slot_port(off->upstream, off->slot);
	if (port)
		service = draco_port_pciehp(port);
	pci_unlock_rescan_remove();
	if (service) {
		device_lock(service);
		if (service->driver)
			ret = draco_slot_off_now(port, off);
		device_unlock(service);
		put_device(service);
	}
	pci_dev_put(port);
	return ret;
}

static void draco_slot_off_work(struct work_struct *work)
{
	struct draco_slot_off *off = container_of(work, struct draco_slot_off,
						  work);
	unsigned int tries = DRACO_OFF_TRIES;
	int ret;

	while ((ret = draco_slot_off_try(off)) == -EAGAIN && --tries)
		msleep(DRACO_OFF_RETRY_MS);
	if (ret && ret != -ENODEV)
		pci_warn(off->upstream, "cannot power off slot %u: %d\n",
			 off->slot, ret);
	draco_slot_off_drop(off);
}

static int draco_slot_off_check(struct pci_dev *port, struct pci_dev *pdev,
				bool forced, const char **why)
{
	struct device *service;

	if (!pdev && !draco_port_present(port))
		return -ENOENT;
	if (!pdev && !forced) {
		*why = "its slot is still being brought up";
		return -EAGAIN;
	}
	service = draco_port_pciehp(port);
	*why = "its slot has no native hot-plug driver (pciehp)";
	if (!service)
		return -EOPNOTSUPP;
	put_device(service);
	return 0;
}

/* Note the identity of the device to be removed. A switch that confuses its
 * slots must not make this host remove somebody else's card: the device in the
 * slot has to be of the kind that the fabric reports for the endpoint.
 */
static int draco_slot_off_identify(struct draco_dev *dd, u32 ep,
				   struct draco_slot_off *off)
{
	struct fabrex_object object;

	if (fabrex_model_get(dd->port, ep, &object) ||
	    object.type != DRACO_OBJ_ENDPOINT)
		return -EXDEV;
	off->vendor = object.pci_vendor;
	off->device = object.pci_device;
	if (off->pdev && (off->pdev->vendor != off->vendor ||
			  off->pdev->device != off->device))
		return -EXDEV;
	return 0;
}

/**
 * draco_slot_off_prepare() - prepare to power a slot off
 * @dd:     device
 * @ep:     endpoint in the slot
 * @slot:   physical slot number
 * @forced: the endpoint is already dead: do it even if it is not enumerated yet
 * @why:    on error, the reason in words
 *
 * Context: Process; sleeps.
 * Return: an object for draco_slot_off_queue() or draco_slot_off_drop(); NULL
 * if the slot is empty; an error pointer if this host cannot power it off
 */
struct draco_slot_off *draco_slot_off_prepare(struct draco_dev *dd, u32 ep,
					      u16 slot, bool forced,
					      const char **why)
{
	struct draco_slot_off *off;
	struct pci_dev *port;
	int ret;

	*why = "its slot is not below this host's fabric port";
	port = draco_slot_port(dd->upstream, slot);
	if (!port)
		return ERR_PTR(-ENXIO);
	off = kzalloc(sizeof(*off), GFP_KERNEL);
	if (!off) {
		*why = "the host is out of memory";
		ret = -ENOMEM;
		goto put;
	}
	INIT_WORK(&off->work, draco_slot_off_work);
	off->upstream = pci_dev_get(dd->upstream);
	off->slot = slot;
	off->pdev = draco_port_device(port);
	ret = draco_slot_off_check(port, off->pdev, forced, why);
	if (!ret && draco_slot_off_identify(dd, ep, off)) {
		*why = "its slot holds another device";
		ret = -EXDEV;
	}
	if (ret)
		draco_slot_off_drop(off);
put:
	pci_dev_put(port);
	if (ret == -ENOENT)
		return NULL;
	return ret ? ERR_PTR(ret) : off;
}

/**
 * draco_slot_off_queue() - power the slot off
 * @off: from draco_slot_off_prepare(); no longer valid afterwards
 *
 * Context: Any.
 */
void draco_slot_off_queue(struct draco_slot_off *off)
{
	queue_work(draco_slot_off_wq, &off->work);
}

/**
 * draco_slot_off_drop() - leave the slot alone
 * @off: from draco_slot_off_prepare(); no longer valid afterwards
 *
 * Context: Process.
 */
void draco_slot_off_drop(struct draco_slot_off *off)
{
	pci_dev_put(off->pdev);
	pci_dev_put(off->upstream);
	kfree(off);
}

/**
 * draco_hotplug_init() - initialise when the module is loaded
 *
 * Context: Module init.
 * Return: 0 or -ENOMEM
 */
int draco_hotplug_init(void)
{
	/* No device is removed while the PM core suspends devices. */
	draco_slot_off_wq = alloc_workqueue("fabrex_slot_off",
					    WQ_UNBOUND | WQ_FREEZABLE, 0);
	return draco_slot_off_wq ? 0 : -ENOMEM;
}

/**
 * draco_hotplug_exit() - wait for slots that are being powered off
 *
 * Context: Module exit.
 */
void draco_hotplug_exit(void)
{
	destroy_workqueue(draco_slot_off_wq);
}
