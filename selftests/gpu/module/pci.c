// SPDX-License-Identifier: GPL-2.0-only
/*
 * draco_gpu.ko: probe and remove of modelled GPUs, and the module itself.
 * A small driver for tests, of hardware that only draco-emu has: it allocates
 * VRAM, runs the engine and exports dma-bufs, as drivers of real GPUs do.
 * Called by the PCI core.
 */
#include <linux/idr.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/module.h>
#include <linux/slab.h>

#include <draco/regs.h>
#include "drv.h"

#define DGPU_MAX	64

bool dgpu_without_p2pdma;
module_param_named(without_p2pdma, dgpu_without_p2pdma, bool, 0444);
MODULE_PARM_DESC(without_p2pdma,
		 "map VRAM for importers without asking the kernel for a way");

static dev_t dgpu_devt;
static DEFINE_IDA(dgpu_ida);
/* Those that are there, by index. */
static DEFINE_XARRAY(dgpu_all);
static struct class dgpu_class = { .name = "dgpu" };

static void dgpu_dev_release(struct device *dev)
{
	struct dgpu *dg = container_of(dev, struct dgpu, dev);

	if (dg->pool)
		gen_pool_destroy(dg->pool);
	if (dg->index >= 0)
		ida_free(&dgpu_ida, dg->index);
	pci_dev_put(dg->pdev);
	mutex_destroy(&dg->lock);
	kfree(dg);
}

/**
 * dgpu_get_next() - the next GPU that is there
 * @index: N of the first one to look at
 *
 * Return: it, with a reference, or NULL
 */
struct dgpu *dgpu_get_next(int index)
{
	struct dgpu *dg;
	unsigned long at = index;

	xa_lock(&dgpu_all);
	dg = xa_find(&dgpu_all, &at, DGPU_MAX - 1, XA_PRESENT);
	if (dg)
		get_device(&dg->dev);
	xa_unlock(&dgpu_all);
	return dg;
}

static int dgpu_pool(struct dgpu *dg)
{
	dg->pool = gen_pool_create(PAGE_SHIFT, -1);
	if (!dg->pool)
		return -ENOMEM;
	/* The first page is the ring's: 0 is never a buffer. */
	return gen_pool_add(dg->pool, PAGE_SIZE, dg->size - PAGE_SIZE, -1);
}

static struct dgpu *dgpu_new(struct pci_dev *pdev)
{
	struct dgpu *dg = kzalloc(sizeof(*dg), GFP_KERNEL);

	if (!dg)
		return NULL;
	device_initialize(&dg->dev);
	dg->dev.release = dgpu_dev_release;
	dg->dev.class = &dgpu_class;
	dg->dev.parent = &pdev->dev;
	dg->pdev = pci_dev_get(pdev);
	mutex_init(&dg->lock);
	INIT_LIST_HEAD(&dg->buffers);
	INIT_LIST_HEAD(&dg->revoked);
	dg->index = ida_alloc_max(&dgpu_ida, DGPU_MAX - 1, GFP_KERNEL);
	if (dg->index < 0) {
		put_device(&dg->dev);
		return NULL;
	}
	dg->dev.devt = MKDEV(MAJOR(dgpu_devt), dg->index);
	return dg;
}

/* Registers have 32 bits each. */
static void dgpu_read_name(struct dgpu *dg)
{
	__le32 word;
	int i;

	for (i = 0; i < DGPU_NAME_LEN; i += sizeof(word)) {
		word = cpu_to_le32(readl(dg->engine.regs + DRACO_EPR_NAME + i));
		memcpy(dg->name + i, &word, sizeof(word));
	}
	dg->name[DGPU_NAME_LEN - 1] = 0;
}

static int dgpu_identify(struct dgpu *dg)
{
	void __iomem *regs = dg->engine.regs;
	u32 magic = readl(regs + DRACO_EPR_MAGIC);
	u64 bar = pci_resource_len(dg->pdev, DRACO_GPU_BAR_VRAM);

	if (magic != DRACO_EPR_MAGIC_VALUE)
		return dev_err_probe(&dg->pdev->dev, -ENODEV,
				     "not a modelled GPU: magic %#x\n", magic);
	dg->instance = readl(regs + DRACO_EPR_INSTANCE);
	dg->size = min(lo_hi_readq(regs + DRACO_EPR_SIZE), bar) & PAGE_MASK;
	dg->vram = pci_resource_start(dg->pdev, DRACO_GPU_BAR_VRAM);
	dg->mesh = readl(regs + DRACO_GPU_MESH_ID);
	dg->number = readl(regs + DRACO_GPU_MESH_NUMBER);
	dgpu_read_name(dg);
	if (dg->size < 2 * PAGE_SIZE)
		return dev_err_probe(&dg->pdev->dev, -ENODEV,
				     "no VRAM in BAR %u: %llu bytes of %llu\n",
				     DRACO_GPU_BAR_VRAM, bar,
				     lo_hi_readq(regs + DRACO_EPR_SIZE));
	return 0;
}

static int dgpu_map(struct dgpu *dg)
{
	struct pci_dev *pdev = dg->pdev;
	int ret;

	ret = pci_enable_device_mem(pdev);
	if (ret)
		return ret;
	ret = pci_request_mem_regions(pdev, KBUILD_MODNAME);
	if (ret)
		goto disable;
	ret = -ENOMEM;
	dg->engine.regs = pci_iomap(pdev, DRACO_GPU_BAR_REGS, 0);
	if (!dg->engine.regs)
		goto release;
	ret = dgpu_identify(dg);
	if (ret)
		goto unmap;
	/* For mappings of processes; without it they are slower. */
	devm_arch_io_reserve_memtype_wc(&pdev->dev, dg->vram, dg->size);
	return 0;

unmap:
	pci_iounmap(pdev, dg->engine.regs);
release:
	pci_release_mem_regions(pdev);
disable:
	pci_disable_device(pdev);
	return ret;
}

static void dgpu_unmap(struct dgpu *dg)
{
	pci_iounmap(dg->pdev, dg->engine.regs);
	pci_release_mem_regions(dg->pdev);
	pci_disable_device(dg->pdev);
}

static int dgpu_add(struct dgpu *dg)
{
	int ret;

	ret = dev_set_name(&dg->dev, "dgpu%d", dg->index);
	if (ret)
		return ret;
	cdev_init(&dg->cdev, &dgpu_fops);
	dg->cdev.owner = THIS_MODULE;
	return cdev_device_add(&dg->cdev, &dg->dev);
}

static int dgpu_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct dgpu *dg = dgpu_new(pdev);
	int ret;

	if (!dg)
		return -ENOMEM;
	ret = dgpu_map(dg);
	if (ret)
		goto put;
	ret = dgpu_pool(dg);
	if (ret)
		goto unmap;
	ret = dgpu_engine_init(dg);
	if (ret)
		goto unmap;
	if (dgpu_p2p_init(dg))
		dev_info(&pdev->dev, "no peer-to-peer memory to be had\n");
	ret = dgpu_add(dg);
	if (ret)
		goto stop;
	pci_set_drvdata(pdev, dg);
	/* Without, it merely is not emptied before the machine sleeps. */
	WARN_ON(xa_err(xa_store(&dgpu_all, dg->index, dg, GFP_KERNEL)));
	dev_info(&pdev->dev, "%s: %s, %llu MiB\n", dev_name(&dg->dev),
		 dg->name, dg->size >> 20);
	return 0;

stop:
	dgpu_engine_stop(dg);
unmap:
	dgpu_unmap(dg);
put:
	put_device(&dg->dev);
	return ret;
}

/* Files, mappings, dma-bufs and importers may all be there still, and the
 * device may not.
 */
static void dgpu_remove(struct pci_dev *pdev)
{
	struct dgpu *dg = pci_get_drvdata(pdev);

	xa_erase(&dgpu_all, dg->index);
	mutex_lock(&dg->lock);
	WRITE_ONCE(dg->gone, true);
	mutex_unlock(&dg->lock);
	cdev_device_del(&dg->cdev, &dg->dev);
	dgpu_engine_stop(dg);
	dgpu_revoke_all(dg);
	dgpu_unmap(dg);
	put_device(&dg->dev);
}

static const struct pci_device_id dgpu_ids[] = {
	{ PCI_DEVICE(DRACO_PCI_VENDOR, DRACO_PCI_DEVICE_GPU) },
	{ }
};
MODULE_DEVICE_TABLE(pci, dgpu_ids);

static struct pci_driver dgpu_driver = {
	.name = KBUILD_MODNAME,
	.id_table = dgpu_ids,
	.probe = dgpu_probe,
	.remove = dgpu_remove,
	.driver.pm = pm_sleep_ptr(&dgpu_pm_ops),
};

static int __init dgpu_init(void)
{
	int ret;

	ret = alloc_chrdev_region(&dgpu_devt, 0, DGPU_MAX, KBUILD_MODNAME);
	if (ret)
		return ret;
	ret = class_register(&dgpu_class);
	if (ret)
		goto region;
	ret = dgpu_sleep_init();
	if (ret)
		goto class;
	ret = pci_register_driver(&dgpu_driver);
	if (ret)
		goto sleep;
	return 0;

sleep:
	dgpu_sleep_exit();
class:
	class_unregister(&dgpu_class);
region:
	unregister_chrdev_region(dgpu_devt, DGPU_MAX);
	return ret;
}
module_init(dgpu_init);

static void __exit dgpu_exit(void)
{
	pci_unregister_driver(&dgpu_driver);
	dgpu_sleep_exit();
	class_unregister(&dgpu_class);
	unregister_chrdev_region(dgpu_devt, DGPU_MAX);
	ida_destroy(&dgpu_ida);
}
module_exit(dgpu_exit);

MODULE_DESCRIPTION("Modelled GPU of draco-emu, a dma-buf exporter for tests");
MODULE_LICENSE("GPL");
FABREX_DMA_BUF_IMPORT_NS;
