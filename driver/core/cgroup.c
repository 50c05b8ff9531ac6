// SPDX-License-Identifier: GPL-2.0-only
/*
 * Limits of cgroups. Each port is a device of the rdma controller, which limits
 * open files (hca_handle) and objects (hca_object), and a region of the dmem
 * controller, which limits bytes. Called by file.c, res.c and port.c.
 *
 * A charge stays with the cgroup that its creator was in, and may have to be
 * released after the port was unregistered. By then another port may have its
 * name, by which both controllers find it. So all charges are in a list of the
 * port. Each is released once, by its owner or when the port is unregistered:
 * by whoever holds the lock and finds it in the list.
 */
#include <linux/err.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/slab.h>

#include "context.h"

/**
 * struct fabrex_cgroup_charge - charge of an open file or an object
 * @list:   in port->cgroup.charges, or empty; the rest is valid only in the
 *          list
 * @object: it belongs to an object
 * @rdma:   cgroup of the rdma controller
 * @dmem:   cgroup of the dmem controller, or NULL
 * @bytes:  charged to @dmem
 */
struct fabrex_cgroup_charge {
	struct list_head list;
	bool object;
#if IS_ENABLED(CONFIG_CGROUP_RDMA)
	struct rdma_cgroup *rdma;
#endif
#if IS_ENABLED(CONFIG_CGROUP_DMEM)
	struct dmem_cgroup_pool_state *dmem;
	u64 bytes;
#endif
};

#if IS_ENABLED(CONFIG_CGROUP_RDMA)
static void fabrex_rdmacg_register(struct fabrex_port *port)
{
	/* Only compared and printed. */
	port->cgroup.rdma.name = (char *)dev_name(&port->dev);
	rdmacg_register_device(&port->cgroup.rdma);
}

static void fabrex_rdmacg_unregister(struct fabrex_port *port)
{
	rdmacg_unregister_device(&port->cgroup.rdma);
}

static enum rdmacg_resource_type fabrex_rdmacg_type(bool object)
{
	return object ? RDMACG_RESOURCE_HCA_OBJECT : RDMACG_RESOURCE_HCA_HANDLE;
}

static int fabrex_rdmacg_charge(struct fabrex_port *port,
				struct fabrex_cgroup_charge *charge)
{
	return rdmacg_try_charge(&charge->rdma, &port->cgroup.rdma,
				 fabrex_rdmacg_type(charge->object));
}

static void fabrex_rdmacg_uncharge(struct fabrex_port *port,
				   struct fabrex_cgroup_charge *charge)
{
	rdmacg_uncharge(charge->rdma, &port->cgroup.rdma,
			fabrex_rdmacg_type(charge->object));
}
#else
static void fabrex_rdmacg_register(struct fabrex_port *port)
{
}

static void fabrex_rdmacg_unregister(struct fabrex_port *port)
{
}

static int fabrex_rdmacg_charge(struct fabrex_port *port,
				struct fabrex_cgroup_charge *charge)
{
	return 0;
}

static void fabrex_rdmacg_uncharge(struct fabrex_port *port,
				   struct fabrex_cgroup_charge *charge)
{
}
#endif

#if IS_ENABLED(CONFIG_CGROUP_DMEM)
static int fabrex_dmem_register(struct fabrex_port *port)
{
	struct dmem_cgroup_region *region;

	/* A port has no size; this is only displayed. */
	region = dmem_cgroup_register_region(fabrex_quota_bytes_default(), "%s",
					     dev_name(&port->dev));
	if (IS_ERR(region))
		return PTR_ERR(region);
	port->cgroup.dmem = region;
	return 0;
}

static void fabrex_dmem_unregister(struct fabrex_port *port)
{
	dmem_cgroup_unregister_region(port->cgroup.dmem);
}

static int fabrex_dmem_charge(struct fabrex_port *port,
			      struct fabrex_cgroup_charge *charge, u64 bytes)
{
	int ret;

	ret = dmem_cgroup_try_charge(port->cgroup.dmem, bytes, &charge->dmem,
				     NULL);
	if (!ret)
		charge->bytes = bytes;
	return ret;
}

static void fabrex_dmem_uncharge(struct fabrex_cgroup_charge *charge)
{
	dmem_cgroup_uncharge(charge->dmem, charge->bytes);
	charge->dmem = NULL;
}
#else
static int fabrex_dmem_register(struct fabrex_port *port)
{
	return 0;
}

static void fabrex_dmem_unregister(struct fabrex_port *port)
{
}

static int fabrex_dmem_charge(struct fabrex_port *port,
			      struct fabrex_cgroup_charge *charge, u64 bytes)
{
	return 0;
}

static void fabrex_dmem_uncharge(struct fabrex_cgroup_charge *charge)
{
}
#endif

/* At a limit, controllers return EAGAIN, which here means "try again shortly".
 * A cgroup's limit is a quota like any other, with the same remedy.
 */
static int fabrex_cgroup_errno(int ret)
{
	return ret == -EAGAIN ? -EDQUOT : ret;
}

static int fabrex_cgroup_try(struct fabrex_port *port,
			     struct fabrex_cgroup_charge *charge)
{
	int ret;

	guard(mutex)(&port->cgroup.lock);
	if (!port->cgroup.registered)
		return -ENODEV;
	ret = fabrex_rdmacg_charge(port, charge);
	if (!ret)
		list_add(&charge->list, &port->cgroup.charges);
	return fabrex_cgroup_errno(ret);
}

/**
 * fabrex_cgroup_charge() - charge a file or an object to the caller's cgroup
 * @port:   port
 * @object: it is an object
 *
 * Context: Process; sleeps. Not with registration_lock held.
 * Return: the charge, for fabrex_cgroup_uncharge(); or an ERR_PTR(): -EDQUOT if
 * the cgroup or one of its ancestors is at its limit, -ENODEV if the port is
 * gone, -ENOMEM
 */
struct fabrex_cgroup_charge *fabrex_cgroup_charge(struct fabrex_port *port,
						  bool object)
{
	struct fabrex_cgroup_charge *charge;
	int ret;

	if (!IS_ENABLED(CONFIG_CGROUP_RDMA) && !IS_ENABLED(CONFIG_CGROUP_DMEM))
		return NULL;
	charge = kzalloc(sizeof(*charge), GFP_KERNEL_ACCOUNT);
	if (!charge)
		return ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(&charge->list);
	charge->object = object;
	ret = fabrex_cgroup_try(port, charge);
	if (!ret)
		return charge;
	kfree(charge);
	return ERR_PTR(ret);
}

/**
 * fabrex_cgroup_charge_bytes() - charge memory that an object gives access to
 * @port:   port
 * @charge: charge of the object; once for each
 * @bytes:  number of bytes
 *
 * Context: Process; sleeps.
 * Return: 0, or an error of fabrex_cgroup_charge()
 */
int fabrex_cgroup_charge_bytes(struct fabrex_port *port,
			       struct fabrex_cgroup_charge *charge, u64 bytes)
{
	guard(mutex)(&port->cgroup.lock);
	if (!port->cgroup.registered)
		return -ENODEV;
	return fabrex_cgroup_errno(fabrex_dmem_charge(port, charge, bytes));
}

static void fabrex_cgroup_give_back(struct fabrex_port *port,
				    struct fabrex_cgroup_charge *charge)
{
	lockdep_assert_held(&port->cgroup.lock);
	list_del_init(&charge->list);
	fabrex_dmem_uncharge(charge);
	fabrex_rdmacg_uncharge(port, charge);
}

/**
 * fabrex_cgroup_uncharge() - release a charge
 * @port:   port
 * @charge: from fabrex_cgroup_charge(), or NULL
 *
 * Context: Process; sleeps.
 */
void fabrex_cgroup_uncharge(struct fabrex_port *port,
			    struct fabrex_cgroup_charge *charge)
{
	if (!charge)
		return;
	mutex_lock(&port->cgroup.lock);
	if (!list_empty(&charge->list))
		fabrex_cgroup_give_back(port, charge);
	mutex_unlock(&port->cgroup.lock);
	kfree(charge);
}

/**
 * fabrex_cgroup_init() - initialise the limits of a port
 * @port: zeroed
 *
 * Context: Process.
 */
void fabrex_cgroup_init(struct fabrex_port *port)
{
	mutex_init(&port->cgroup.lock);
	INIT_LIST_HEAD(&port->cgroup.charges);
}

/**
 * fabrex_cgroup_register() - register a port with the controllers
 * @port: nobody has opened it yet
 *
 * Context: Process; sleeps.
 * Return: 0 or -ENOMEM
 */
int fabrex_cgroup_register(struct fabrex_port *port)
{
	int ret;

	ret = fabrex_dmem_register(port);
	if (ret)
		return ret;
	fabrex_rdmacg_register(port);
	guard(mutex)(&port->cgroup.lock);
	port->cgroup.registered = true;
	return 0;
}

/**
 * fabrex_cgroup_unregister() - release all charges of a port and unregister it
 * @port: after fabrex_cgroup_register(); nobody else has its name yet
 *
 * Context: Process; sleeps.
 */
void fabrex_cgroup_unregister(struct fabrex_port *port)
{
	struct fabrex_cgroup_charge *charge, *next;

	mutex_lock(&port->cgroup.lock);
	port->cgroup.registered = false;
	list_for_each_entry_safe(charge, next, &port->cgroup.charges, list)
		fabrex_cgroup_give_back(port, charge);
	mutex_unlock(&port->cgroup.lock);
	fabrex_rdmacg_unregister(port);
	fabrex_dmem_unregister(port);
}
