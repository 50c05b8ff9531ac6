// SPDX-License-Identifier: GPL-2.0-only
/* Ports, from registration to the last reference. Called by backends and
 * module.c.
 */
#include <linux/dma-mapping.h>
#include <linux/io.h>
#include <linux/log2.h>
#include <linux/rcupdate.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include <uapi/linux/fabrex_netlink.h>

#include "dmabuf.h"
#include "object.h"
#include "port.h"
#include "report.h"
#include "trace.h"

static dev_t fabrex_devt;
static DEFINE_IDA(fabrex_ids);

static void fabrex_port_release(struct device *dev)
{
	struct fabrex_port *port = to_fabrex_port(dev);

	WARN_ON(!list_empty(&port->files));
	fabrex_changes_destroy(&port->changes);
	fabrex_model_destroy(&port->model);
	fabrex_users_free(port);
	xa_destroy(&port->queues);
	xa_destroy(&port->windows);
	ida_destroy(&port->pds);
	bitmap_free(port->slots);
	put_device(port->info.dma_dev);
	put_device(dev->parent);
	if (!port->retired)
		ida_free(&fabrex_ids, port->index);
	kfree(port);
}

static struct class fabrex_class = {
	.name		= "fabrex",
	.dev_groups	= fabrex_port_groups,
	.dev_release	= fabrex_port_release,
};

static void fabrex_info_terminate(struct fabrex_port_info *info)
{
	info->name[FABREX_NAME_LEN - 1] = 0;
	info->host[FABREX_NAME_LEN - 1] = 0;
	info->fabric[FABREX_NAME_LEN - 1] = 0;
	info->driver[FABREX_NAME_LEN - 1] = 0;
}

/* What PORT_QUERY returns: the backend's, and what
 * follows from its operations.
 */
static u64 fabrex_port_caps(const struct fabrex_port *port)
{
	u64 caps = port->info.caps;

	if (!(port->can & FABREX_CAN_DATA))
		return caps;
	if (port->can & FABREX_CAN_RESOLVE)
		caps |= FABREX_CAP_SERVICE;
	if (port->info.max_windows)
		caps |= FABREX_CAP_WINDOW;
	if (port->can & FABREX_CAN_DMABUF &&
	    IS_ENABLED(CONFIG_DMA_SHARED_BUFFER))
		caps |= FABREX_CAP_DMABUF;
	if (IS_ENABLED(CONFIG_MMU_NOTIFIER))
		caps |= FABREX_CAP_WATCH;
	return caps;
}

static void fabrex_port_init(struct fabrex_port *port)
{
	init_rwsem(&port->registration_lock);
	mutex_init(&port->files_lock);
	INIT_LIST_HEAD(&port->files);
	xa_init(&port->queues);
	xa_init(&port->windows);
	mutex_init(&port->slots_lock);
	mutex_init(&port->users_lock);
	INIT_LIST_HEAD(&port->users);
	ida_init(&port->pds);
	INIT_LIST_HEAD(&port->zombies);
	spin_lock_init(&port->zombies_lock);
	spin_lock_init(&port->dmabufs_lock);
	INIT_LIST_HEAD(&port->dmabufs);
	init_waitqueue_head(&port->dmabufs_wait);
	fabrex_changes_init(&port->changes);
	fabrex_quota_init(port);
	fabrex_cgroup_init(port);
}

/**
 * fabrex_port_alloc() - create a port that is not visible yet
 * @parent: device that it is part of
 * @ops:    of the backend; must exist until fabrex_port_unregister()
 * @info:   copied
 * @priv:   for fabrex_port_priv()
 *
 * The model may be filled before fabrex_port_register(). If that fails, and
 * after fabrex_port_unregister(), fabrex_port_put() releases the port.
 *
 * Context: Process; sleeps.
 * Return: the port, or an ERR_PTR()
 */
struct fabrex_port *fabrex_port_alloc(struct device *parent,
				      const struct fabrex_port_ops *ops,
				      const struct fabrex_port_info *info,
				      void *priv)
{
	struct fabrex_port *port;
	int ret = -ENOMEM;

	port = kzalloc(sizeof(*port), GFP_KERNEL);
	if (!port)
		return ERR_PTR(-ENOMEM);
	port->info = *info;
	fabrex_info_terminate(&port->info);
	port->ops = ops;
	port->can = fabrex_ops_can(ops);
	port->caps = fabrex_port_caps(port);
	port->priv = priv;
	port->alive = true;
	port->generation = info->generation;
	port->link_up = info->flags & FABREX_PORT_LINK_UP;
	port->max_segment = info->dma_dev ? dma_get_max_seg_size(info->dma_dev) :
					    SZ_1G;
	fabrex_port_init(port);
	if (info->max_windows) {
		port->slots = bitmap_zalloc(info->max_windows, GFP_KERNEL);
		if (!port->slots)
			goto free;
	}
	ret = fabrex_model_init(&port->model);
	if (ret)
		goto free_slots;
	ret = ida_alloc_max(&fabrex_ids, FABREX_MAX_PORTS - 1, GFP_KERNEL);
	if (ret < 0)
		goto free_model;
	port->index = ret;
	get_device(info->dma_dev);

	device_initialize(&port->dev);
	port->dev.class = &fabrex_class;
	/* Kept beyond device_del(), because its name may be read until then. */
	port->dev.parent = get_device(parent);
	port->dev.devt = fabrex_devt + port->index;
	cdev_init(&port->cdev, &fabrex_fops);
	port->cdev.owner = THIS_MODULE;
	ret = dev_set_name(&port->dev, "fabrex%d", port->index);
	if (ret) {
		put_device(&port->dev);
		return ERR_PTR(ret);
	}
	return port;

free_model:
	fabrex_model_destroy(&port->model);
free_slots:
	bitmap_free(port->slots);
free:
	kfree(port);
	return ERR_PTR(ret);
}
FABREX_EXPORT(fabrex_port_alloc);

static int fabrex_info_check(const struct fabrex_port *port)
{
	const struct fabrex_port_info *info = &port->info;

	if (!info->max_peers || info->max_peers > FABREX_MAX_PEERS ||
	    info->peer >= info->max_peers || !info->name[0])
		return -EINVAL;
	return 0;
}

/* Validate limits and addresses for moving data. */
static int fabrex_data_check(const struct fabrex_port *port)
{
	const struct fabrex_port_info *info = &port->info;
	u64 aperture;

	if (!(port->can & FABREX_CAN_DATA))
		return info->max_queues || info->max_mrs ||
		       info->max_windows || info->caps ? -EINVAL : 0;
	if (!info->dma_dev &&
	    (!info->doorbell_memory || (port->can & FABREX_CAN_DMABUF &&
					!port->ops->data->mr_importer)))
		return -EINVAL;
	if (!info->doorbell_memory &&
	    (!is_power_of_2(info->doorbell_stride) ||
	     info->doorbell_stride < PAGE_SIZE)) {
		dev_err(port->dev.parent,
			"doorbells %u bytes apart cannot be mapped one by one with pages of %lu bytes: use a kernel with smaller pages, or set the switch to a larger distance\n",
			info->doorbell_stride, PAGE_SIZE);
		return -EOPNOTSUPP;
	}
	if (info->max_windows && info->window_slot_size < PAGE_SIZE) {
		dev_err(port->dev.parent,
			"windows of %llu bytes are smaller than pages of %lu bytes: use a kernel with smaller pages, or set the switch to larger ones\n",
			info->window_slot_size, PAGE_SIZE);
		return -EOPNOTSUPP;
	}
	if (!info->doorbell_memory && !PAGE_ALIGNED(info->doorbell_base))
		return -EINVAL;
	if (info->max_windows &&
	    (!is_power_of_2(info->window_slot_size) ||
	     !PAGE_ALIGNED(info->window_base) ||
	     check_mul_overflow((u64)info->max_windows, info->window_slot_size,
				&aperture)))
		return -EINVAL;
	return 0;
}

static int fabrex_ops_check(struct fabrex_port *port)
{
	const char *missing = fabrex_ops_missing(port->ops,
						 port->info.max_windows);

	if (!missing)
		return 0;
	dev_err(port->dev.parent, "backend \"%s\" has no %s operation\n",
		port->info.driver, missing);
	return -EINVAL;
}

static u64 fabrex_aperture(const struct fabrex_port *port)
{
	return port->info.max_windows * port->info.window_slot_size;
}

/* Without it windows work too, but not write-combining. */
static void fabrex_aperture_reserve(struct fabrex_port *port)
{
	if (port->info.max_windows &&
	    !arch_io_reserve_memtype_wc(port->info.window_base,
					fabrex_aperture(port)))
		port->wc = true;
}

static void fabrex_aperture_release(struct fabrex_port *port)
{
	if (port->wc)
		arch_io_free_memtype_wc(port->info.window_base,
					fabrex_aperture(port));
	port->wc = false;
}

static void fabrex_port_announce(struct fabrex_port *port, u32 type)
{
	struct fabrex_object object = {};
	struct fabrex_notice_msg msg = {
		.type = type,
		.object = &object,
		.generation = READ_ONCE(port->generation),
	};

	object.type = FABREX_OBJECT_TYPE_PORT;
	object.id = port->info.object_id;
	strscpy(object.name, port->info.name, sizeof(object.name));
	fabrex_notify(port, &msg);
}

/**
 * fabrex_port_register() - make a port usable
 * @port: from fabrex_port_alloc()
 *
 * Operations may be called even before this returns.
 *
 * Context: Process; sleeps.
 * Return: 0; -EINVAL if what the backend supplied is inconsistent, or a
 * mandatory operation is missing; -EOPNOTSUPP if this kernel's pages are larger
 * than a doorbell; -ENOMEM
 */
int fabrex_port_register(struct fabrex_port *port)
{
	int ret;

	ret = fabrex_info_check(port) ?: fabrex_ops_check(port) ?:
	      fabrex_data_check(port);
	if (ret)
		return ret;
	ret = fabrex_changes_open(port);
	if (ret)
		return ret;
	ret = fabrex_port_enlist(port);
	if (ret)
		goto close;
	ret = fabrex_cgroup_register(port);
	if (ret)
		goto release;
	fabrex_aperture_reserve(port);
	ret = cdev_device_add(&port->cdev, &port->dev);
	if (ret)
		goto unregister;
	fabrex_port_list(port);
	WRITE_ONCE(port->listed, true);
	fabrex_port_announce(port, FABREX_EVENT_TYPE_PORT_ADDED);
	dev_info(&port->dev, "port %s of fabric %s, peer %u\n",
		 port->info.name, port->info.fabric, port->info.peer);
	return 0;

unregister:
	fabrex_aperture_release(port);
	fabrex_cgroup_unregister(port);
release:
	fabrex_port_delist(port);
close:
	fabrex_changes_close(port);
	return ret;
}
FABREX_EXPORT(fabrex_port_register);

static void fabrex_port_each_gone(struct fabrex_port *port)
{
	struct fabrex_file *file;

	mutex_lock(&port->files_lock);
	list_for_each_entry(file, &port->files, list)
		fabrex_events_gone(&file->events);
	mutex_unlock(&port->files_lock);
}

/**
 * fabrex_port_unregister() - take a port away from its users
 * @port: registered
 *
 * Waits for operations in progress, then destroys all objects of all open
 * files. When it returns, no operation runs or will be called; DMA mappings are
 * undone, pinned memory and dma-bufs are released, and no process has anything
 * of the device mapped. Files stay open; their calls return -ENODEV. If the
 * device no longer responds, the backend's operations return -ENODEV; see
 * struct fabrex_port_ops.
 *
 * Context: Process; sleeps.
 */
void fabrex_port_unregister(struct fabrex_port *port)
{
	LIST_HEAD(zombies);

	fabrex_port_delist(port);
	cdev_device_del(&port->cdev, &port->dev);

	down_write(&port->registration_lock);
	fabrex_res_unregister(port, &zombies);
	WRITE_ONCE(port->ops, NULL);
	port->alive = false;
	up_write(&port->registration_lock);
	fabrex_changes_close(port);
	fabrex_res_free_zombies(&zombies);
	fabrex_dmabufs_unregister(port);

	fabrex_port_each_gone(port);
	fabrex_aperture_release(port);
	fabrex_port_announce(port, FABREX_EVENT_TYPE_PORT_REMOVED);
	WRITE_ONCE(port->listed, false);
	trace_fabrex_port(port, "unregister");
	fabrex_cgroup_unregister(port);
	/* Open files keep the port but not its name, which the next port may
	 * get.
	 */
	port->retired = true;
	ida_free(&fabrex_ids, port->index);
}
FABREX_EXPORT(fabrex_port_unregister);

/**
 * fabrex_port_put() - drop the backend's reference
 * @port: from fabrex_port_alloc()
 *
 * Context: Process; sleeps.
 */
void fabrex_port_put(struct fabrex_port *port)
{
	put_device(&port->dev);
}
FABREX_EXPORT(fabrex_port_put);

/**
 * fabrex_port_priv() - get what the backend passed to fabrex_port_alloc()
 * @port: port
 *
 * Context: Any.
 * Return: that pointer
 */
void *fabrex_port_priv(struct fabrex_port *port)
{
	return port->priv;
}
FABREX_EXPORT(fabrex_port_priv);

/**
 * fabrex_port_fail() - report that the device has stopped working
 * @port: port
 * @qerr: FABREX_QERR_* for the queues
 *
 * From now on every queue, region and window of every open file is dead: rings
 * show @qerr, doorbells and windows are mapped to a dummy page, and owners get
 * an event. They can still be destroyed, without calls to the backend. Until
 * fabrex_port_revive() no operation is called, and ioctls that need one return
 * -EIO.
 *
 * The backend calls this when the device can no longer access memory, after it
 * has made all operations in progress return.
 *
 * Context: Process; sleeps.
 */
void fabrex_port_fail(struct fabrex_port *port, int qerr)
{
	LIST_HEAD(zombies);

	down_write(&port->registration_lock);
	if (port->ops && port->alive) {
		port->alive = false;
		fabrex_res_fail(port, qerr, &zombies);
		fabrex_model_forget_peers(port);
	}
	up_write(&port->registration_lock);
	fabrex_res_free_zombies(&zombies);
	trace_fabrex_port(port, "fail");
}
FABREX_EXPORT(fabrex_port_fail);

/**
 * fabrex_port_revive() - report that the device works again
 * @port:       port, after fabrex_port_fail()
 * @generation: new generation of the port
 *
 * Context: Process; sleeps.
 */
void fabrex_port_revive(struct fabrex_port *port, u32 generation)
{
	down_write(&port->registration_lock);
	WRITE_ONCE(port->generation, generation);
	if (port->ops)
		port->alive = true;
	up_write(&port->registration_lock);
	trace_fabrex_port(port, "revive");
}
FABREX_EXPORT(fabrex_port_revive);

/**
 * fabrex_ports_init() - initialise when the module is loaded
 *
 * Context: Module init.
 * Return: 0 or a negative errno
 */
int __init fabrex_ports_init(void)
{
	int ret;

	ret = alloc_chrdev_region(&fabrex_devt, 0, FABREX_MAX_PORTS, "fabrex");
	if (ret)
		return ret;
	ret = class_register(&fabrex_class);
	if (ret)
		unregister_chrdev_region(fabrex_devt, FABREX_MAX_PORTS);
	return ret;
}

/**
 * fabrex_ports_exit() - clean up when the module is unloaded; no port exists
 *
 * Context: Module exit.
 */
void fabrex_ports_exit(void)
{
	class_unregister(&fabrex_class);
	unregister_chrdev_region(fabrex_devt, FABREX_MAX_PORTS);
	/* Some queues may not have been freed yet. */
	rcu_barrier();
}
