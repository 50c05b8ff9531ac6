// SPDX-License-Identifier: GPL-2.0-only
/*
 * A backend without hardware, for tests. It has two ports: one changes a fabric
 * of four objects and moves no data; the other has queues and regions, but no
 * fabric, no windows, no services and no dma-bufs.
 */
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/platform_device.h>

#include "partial.h"

/**
 * struct partial - a port
 * @pdev: device that it is part of
 * @port: in the core
 */
struct partial {
	struct platform_device *pdev;
	struct fabrex_port *port;
};

static struct partial fabric_only, data_only;

static const struct fabrex_port_ops fabric_ops = {
	.fabric = &partial_fabric_ops,
};

static const struct fabrex_port_info fabric_info = {
	.name = "partial.fabric",
	.host = "partial",
	.fabric = "partial",
	.driver = KBUILD_MODNAME,
	.object_id = PARTIAL_PORT,
	.max_peers = 1,
	.generation = 1,
	.flags = FABREX_PORT_LINK_UP | FABREX_PORT_EMULATED,
	.manager = true,
};

static const struct fabrex_port_ops data_ops = {
	.data = &partial_data_ops,
};

static const struct fabrex_port_info data_info = {
	.name = "partial.data",
	.host = "partial",
	.fabric = "none",
	.driver = KBUILD_MODNAME,
	.max_peers = 1,
	.generation = 1,
	.flags = FABREX_PORT_LINK_UP | FABREX_PORT_EMULATED,
	.caps = FABREX_CAP_OP(FABREX_OP_NOP),
	.max_queues = PARTIAL_QUEUES,
	.max_mrs = PARTIAL_MRS,
	.max_sq = FABREX_SQ_MAX,
	.max_cq = FABREX_CQ_MAX,
	.max_rq = FABREX_RQ_MAX,
	.max_cell = FABREX_CELL_MAX,
	.max_transfer = PAGE_SIZE,
	.doorbell_memory = true,
};

static void partial_remove(struct partial *p)
{
	if (p->port) {
		fabrex_port_unregister(p->port);
		fabrex_port_put(p->port);
	}
	platform_device_unregister(p->pdev);
}

static int partial_add(struct partial *p, int id,
		       const struct fabrex_port_ops *ops,
		       const struct fabrex_port_info *template)
{
	struct fabrex_port_info info = *template;
	struct fabrex_port *port;
	int ret;

	p->pdev = platform_device_register_simple(KBUILD_MODNAME, id, NULL, 0);
	if (IS_ERR(p->pdev))
		return PTR_ERR(p->pdev);
	if (ops->data) {
		info.dma_dev = &p->pdev->dev;
		ret = dma_set_mask_and_coherent(info.dma_dev,
						DMA_BIT_MASK(64));
		if (ret)
			goto remove;
	}
	port = fabrex_port_alloc(&p->pdev->dev, ops, &info, NULL);
	if (IS_ERR(port)) {
		ret = PTR_ERR(port);
		goto remove;
	}
	ret = ops->fabric ? partial_fabric_fill(port) : 0;
	if (!ret)
		ret = fabrex_port_register(port);
	if (ret) {
		fabrex_port_put(port);
		goto remove;
	}
	p->port = port;
	return 0;

remove:
	partial_remove(p);
	return ret;
}

static int __init partial_init(void)
{
	int ret;

	ret = partial_add(&fabric_only, 0, &fabric_ops, &fabric_info);
	if (ret)
		return ret;
	ret = partial_add(&data_only, 1, &data_ops, &data_info);
	if (ret)
		partial_remove(&fabric_only);
	return ret;
}

static void __exit partial_exit(void)
{
	partial_remove(&data_only);
	partial_remove(&fabric_only);
}

module_init(partial_init);
module_exit(partial_exit);
FABREX_IMPORT_NS;
MODULE_DESCRIPTION("fabrex: a backend of parts, for tests");
MODULE_LICENSE("GPL");
