// SPDX-License-Identifier: GPL-2.0-only
/*
 * PCI driver of Draco host ports: probe, remove, interrupts, resets, suspend;
 * and the table of operations. Called by the PCI core.
 */
#include <linux/dma-mapping.h>
#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "admin.h"
#include "command.h"
#include "controller.h"
#include "dispatch.h"
#include "draco.h"
#include "event.h"
#include "hotplug.h"
#include "identify.h"
#include "ops.h"
#include "recovery.h"
#include "table.h"
#include "topology.h"

static const struct fabrex_fabric_ops draco_fabric_ops = {
	.bind = draco_bind,
	.unbind = draco_unbind,
	.port_control = draco_port_control,
	.counters = draco_counters,
	.links = draco_links,
	.release_reply = draco_release_reply,
	.endpoint_pdev = draco_endpoint_pdev,
};

static const struct fabrex_data_ops draco_data_ops = {
	.queue_create = draco_queue_create,
	.queue_destroy = draco_queue_destroy,
	.queue_counters = draco_queue_counters,
	.resolve = draco_resolve,
	.mr_create = draco_mr_create,
	.mr_pages = draco_mr_pages,
	.mr_invalidate = draco_mr_invalidate,
	.mr_destroy = draco_mr_destroy,
	.window_create = draco_window_create,
	.window_destroy = draco_window_destroy,
};

static int draco_data_path(struct fabrex_port *port,
			   struct fabrex_data_path *path)
{
	strscpy(path->engine, "switch", sizeof(path->engine));
	return 0;
}

static const struct fabrex_port_ops draco_ops = {
	.fabric = &draco_fabric_ops,
	.data = &draco_data_ops,
	.data_path = draco_data_path,
};

static irqreturn_t draco_irq(int irq, void *data)
{
	struct draco_vector *vector = data;
	struct draco_dev *dd = vector->dd;

	if (vector == dd->vectors) {
		WRITE_ONCE(dd->irqs, dd->irqs + 1);
		/* An interrupt without a completion: the
		 * controller has failed.
		 */
		if (!draco_admin_reap(dd))
			draco_controller_check(dd);
	}
	draco_queues_irq(vector);
	return IRQ_HANDLED;
}

static void draco_irq_free(struct draco_dev *dd)
{
	while (dd->nvec) {
		dd->nvec--;
		pci_free_irq(dd->pdev, dd->nvec, &dd->vectors[dd->nvec]);
	}
	pci_free_irq_vectors(dd->pdev);
}

static int draco_irq_request(struct draco_dev *dd)
{
	struct draco_vector *vector;
	int n, ret;

	n = pci_alloc_irq_vectors(dd->pdev, 1, DRACO_MAX_VECTORS, PCI_IRQ_MSIX);
	if (n < 0)
		return dev_err_probe(&dd->pdev->dev, n,
				     "no MSI-X vector available\n");
	while (dd->nvec < n) {
		vector = &dd->vectors[dd->nvec];
		vector->dd = dd;
		INIT_LIST_HEAD(&vector->queues);
		ret = pci_request_irq(dd->pdev, dd->nvec, draco_irq, NULL,
				      vector, "fabrex-%s-%u",
				      pci_name(dd->pdev), dd->nvec);
		if (ret) {
			draco_irq_free(dd);
			return ret;
		}
		dd->nvec++;
	}
	return 0;
}

static int draco_map(struct draco_dev *dd)
{
	struct pci_dev *pdev = dd->pdev;
	int ret;

	ret = pci_enable_device_mem(pdev);
	if (ret)
		return ret;
	ret = pci_request_mem_regions(pdev, KBUILD_MODNAME);
	if (ret)
		goto disable;
	ret = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (ret)
		goto release;
	/* The device takes lists of pages: the length of a segment does not
	 * matter.
	 */
	dma_set_max_seg_size(&pdev->dev, UINT_MAX);
	ret = -ENODEV;
	if (pci_resource_len(pdev, DRACO_BAR_REGS) < DRACO_BAR_REGS_SIZE)
		goto release;
	ret = -ENOMEM;
	dd->regs = pci_iomap(pdev, DRACO_BAR_REGS, DRACO_BAR_REGS_SIZE);
	if (!dd->regs)
		goto release;
	return 0;

release:
	pci_release_mem_regions(pdev);
disable:
	pci_disable_device(pdev);
	return ret;
}

static void draco_unmap(struct draco_dev *dd)
{
	pci_iounmap(dd->pdev, dd->regs);
	pci_release_mem_regions(dd->pdev);
	pci_disable_device(dd->pdev);
}

static struct draco_dev *draco_alloc(struct pci_dev *pdev)
{
	struct draco_dev *dd = kzalloc(sizeof(*dd), GFP_KERNEL);

	if (!dd)
		return NULL;
	dd->wq = alloc_workqueue("fabrex_draco", WQ_UNBOUND, 0);
	if (!dd->wq)
		goto free;
	dd->stop_wq = alloc_workqueue("fabrex_stop-%s",
				      WQ_UNBOUND | WQ_MEM_RECLAIM, 1,
				      pci_name(pdev));
	if (!dd->stop_wq)
		goto destroy;
	dd->pdev = pdev;
	dd->upstream = draco_upstream_port(pdev);
	spin_lock_init(&dd->queue_lock);
	xa_init(&dd->mrs);
	xa_init(&dd->windows);
	spin_lock_init(&dd->request_lock);
	draco_recovery_init(dd);
	return dd;

destroy:
	destroy_workqueue(dd->wq);
free:
	kfree(dd);
	return NULL;
}

static void draco_free(struct draco_dev *dd)
{
	destroy_workqueue(dd->stop_wq);
	destroy_workqueue(dd->wq);
	pci_dev_put(dd->upstream);
	kfree(dd);
}

/* Allocate buffers and interrupts; the controller remains disabled. */
static int draco_prepare(struct draco_dev *dd)
{
	u32 magic = draco_read(dd, DRACO_REG_MAGIC);
	int ret;

	if (magic != DRACO_MAGIC)
		return dev_err_probe(&dd->pdev->dev, -ENODEV,
				     "not a Draco host port: magic %#x\n",
				     magic);
	dd->cap = lo_hi_readq(dd->regs + DRACO_REG_CAP);
	dd->ready_ms = DRACO_CAP_TIMEOUT(dd->cap) * 100 + 1000;
	ret = draco_admin_init(dd);
	if (ret)
		return ret;
	ret = draco_events_init(dd, draco_dispatch_work);
	if (ret)
		goto admin;
	ret = draco_irq_request(dd);
	if (ret)
		goto events;
	return 0;

events:
	draco_events_free(dd);
admin:
	draco_admin_free(dd);
	return ret;
}

static void draco_unprepare(struct draco_dev *dd)
{
	draco_irq_free(dd);
	draco_events_free(dd);
	draco_admin_free(dd);
}

/* Enable the controller, create the core's port, fill the model. */
static int draco_bring_up(struct draco_dev *dd)
{
	int ret;

	ret = draco_controller_start(dd);
	if (ret)
		return ret;
	ret = draco_identify(dd, &dd->ident);
	if (ret)
		goto stop;
	dd->generation = dd->ident.info.generation;
	ret = draco_queues_init(dd);
	if (ret)
		goto stop;
	dd->port = fabrex_port_alloc(&dd->pdev->dev, &draco_ops,
				     &dd->ident.info, dd);
	if (IS_ERR(dd->port)) {
		ret = PTR_ERR(dd->port);
		goto queues;
	}
	/* Events first, so that none is missed after the scan. */
	draco_events_arm(dd);
	ret = draco_topology_scan(dd, DRACO_CMD_EXCLUSIVE);
	if (ret)
		goto put;
	draco_admin_set(dd, DRACO_ADMIN_LIVE);
	ret = fabrex_port_register(dd->port);
	if (ret)
		goto put;
	return 0;

put:
	draco_controller_stop(dd);
	fabrex_port_put(dd->port);
queues:
	draco_queues_free(dd);
	dd->queues = NULL;
stop:
	draco_controller_stop(dd);
	return ret;
}

static int draco_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct draco_dev *dd;
	int ret;

	dd = draco_alloc(pdev);
	if (!dd)
		return -ENOMEM;
	pci_set_drvdata(pdev, dd);
	ret = draco_map(dd);
	if (ret)
		goto free;
	ret = draco_prepare(dd);
	if (ret)
		goto unmap;
	ret = draco_bring_up(dd);
	if (ret)
		goto unprepare;
	dev_info(&pdev->dev, "port %s, peer %u of fabric %s, firmware %s\n",
		 dd->ident.info.name, dd->ident.info.peer,
		 dd->ident.info.fabric, dd->ident.firmware);
	if (!dd->upstream)
		dev_warn(&pdev->dev,
			 "not below a switch: endpoints bound to this host cannot be found\n");
	set_bit(DRACO_F_EVENTS, &dd->flags);
	draco_events_kick(dd, false);
	draco_recovery_enable(dd);
	return 0;

unprepare:
	draco_unprepare(dd);
unmap:
	draco_unmap(dd);
free:
	draco_free(dd);
	return ret;
}

/* Long commands end, and events are no longer handled. Then the core destroys
 * everything: while the controller still works, or immediately if it does not.
 */
static void draco_remove(struct pci_dev *pdev)
{
	struct draco_dev *dd = pci_get_drvdata(pdev);

	set_bit(DRACO_F_REMOVING, &dd->flags);
	draco_controller_check(dd);
	draco_events_stop(dd);
	flush_work(&dd->stop_work);
	flush_delayed_work(&dd->reset_work);
	fabrex_port_unregister(dd->port);
	draco_recovery_disable(dd);
	draco_controller_stop(dd);
	draco_unprepare(dd);
	draco_queues_free(dd);
	fabrex_port_put(dd->port);
	draco_unmap(dd);
	draco_free(dd);
}

/* The device must not write to the memory of the next kernel. */
static void draco_shutdown(struct pci_dev *pdev)
{
	struct draco_dev *dd = pci_get_drvdata(pdev);

	set_bit(DRACO_F_REMOVING, &dd->flags);
	draco_events_stop(dd);
	draco_halt(dd);
}

static void draco_reset_prepare(struct pci_dev *pdev)
{
	draco_halt(pci_get_drvdata(pdev));
}

static void draco_reset_done(struct pci_dev *pdev)
{
	draco_recovery_enable(pci_get_drvdata(pdev));
}

static pci_ers_result_t draco_error_detected(struct pci_dev *pdev,
					     pci_channel_state_t state)
{
	draco_halt(pci_get_drvdata(pdev));
	switch (state) {
	case pci_channel_io_normal:
		return PCI_ERS_RESULT_CAN_RECOVER;
	case pci_channel_io_frozen:
		return PCI_ERS_RESULT_NEED_RESET;
	default:
		return PCI_ERS_RESULT_DISCONNECT;
	}
}

static pci_ers_result_t draco_slot_reset(struct pci_dev *pdev)
{
	pci_restore_state(pdev);
	/* Older kernels restore the state only once, and the next error may
	 * come before draco_controller_start() has saved it again.
	 */
	pci_save_state(pdev);
	return PCI_ERS_RESULT_RECOVERED;
}

static void draco_error_resume(struct pci_dev *pdev)
{
	draco_recovery_enable(pci_get_drvdata(pdev));
}

static const struct pci_error_handlers draco_error_handlers = {
	.error_detected = draco_error_detected,
	.slot_reset = draco_slot_reset,
	.resume = draco_error_resume,
	.reset_prepare = draco_reset_prepare,
	.reset_done = draco_reset_done,
};

/* To its peers a suspended host is down; after
 * resume, its generation is new.
 */
static int draco_suspend(struct device *dev)
{
	draco_halt(dev_get_drvdata(dev));
	return 0;
}

static int draco_resume(struct device *dev)
{
	draco_recovery_enable(dev_get_drvdata(dev));
	return 0;
}

static DEFINE_SIMPLE_DEV_PM_OPS(draco_pm_ops, draco_suspend, draco_resume);

static const struct pci_device_id draco_ids[] = {
	{ PCI_DEVICE(DRACO_PCI_VENDOR, DRACO_PCI_DEVICE_PORT) },
	{ }
};
MODULE_DEVICE_TABLE(pci, draco_ids);

static struct pci_driver draco_driver = {
	.name = KBUILD_MODNAME,
	.id_table = draco_ids,
	.probe = draco_probe,
	.remove = draco_remove,
	.shutdown = draco_shutdown,
	.err_handler = &draco_error_handlers,
	.dev_groups = draco_groups,
	.driver.pm = pm_sleep_ptr(&draco_pm_ops),
};

static int __init draco_init(void)
{
	int ret;

	ret = draco_hotplug_init();
	if (ret)
		return ret;
	ret = pci_register_driver(&draco_driver);
	if (ret)
		draco_hotplug_exit();
	return ret;
}
module_init(draco_init);

static void __exit draco_exit(void)
{
	pci_unregister_driver(&draco_driver);
	draco_hotplug_exit();
}
module_exit(draco_exit);

FABREX_IMPORT_NS;
MODULE_DESCRIPTION("fabrex backend for Draco fabric host ports");
MODULE_AUTHOR("fabrex developers");
MODULE_LICENSE("GPL");
