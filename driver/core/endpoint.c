// SPDX-License-Identifier: GPL-2.0-only
/*
 * Endpoints that are bound to this host: their PCI device, its driver, and
 * whether they can be released. Called by report.c and the netlink files.
 */
#include <linux/delay.h>
#include <linux/pci.h>
#include <linux/slab.h>

#include <uapi/linux/fabrex_netlink.h>

#include "report.h"
#include "trace.h"

/* The lock is held briefly by readers, longer while a driver is bound or
 * unbound.
 */
#define HOLDER_TRIES	20
#define HOLDER_MS	50

static struct workqueue_struct *fabrex_release_wq;

/**
 * fabrex_endpoint_pdev() - find the local PCI device of an endpoint
 * @port:   port
 * @object: endpoint
 *
 * Context: Process. Does not wait for a port that is being registered or
 * unregistered.
 * Return: the device, with a reference; NULL if the endpoint is not bound to
 * this port or nothing is known
 */
struct pci_dev *fabrex_endpoint_pdev(struct fabrex_port *port,
				     const struct fabrex_object *object)
{
	struct pci_dev *pdev = NULL;

	if (object->type != FABREX_OBJECT_TYPE_ENDPOINT ||
	    object->bound != port->info.object_id || !object->slot)
		return NULL;
	if (!down_read_trylock(&port->registration_lock))
		return NULL;
	if (port->ops && port->ops->fabric && port->ops->fabric->endpoint_pdev)
		pdev = port->ops->fabric->endpoint_pdev(port, object->id,
							object->slot);
	up_read(&port->registration_lock);
	return pdev;
}

/**
 * fabrex_pdev_driver() - get the name of the driver of a PCI device
 * @pdev: device
 * @name: result; "?" while a driver is being bound or unbound
 * @size: size of @name
 *
 * Context: Process.
 * Return: true if there is one
 */
bool fabrex_pdev_driver(struct pci_dev *pdev, char *name, size_t size)
{
	bool found = true;

	if (!device_trylock(&pdev->dev)) {
		strscpy(name, "?", size);
		return true;
	}
	if (pdev->dev.driver)
		strscpy(name, pdev->dev.driver->name, size);
	else
		found = false;
	device_unlock(&pdev->dev);
	return found;
}

/**
 * struct fabrex_release - release request that the core decides
 * @work:  decides it
 * @port:  with a reference
 * @ep:    endpoint
 * @token: of the request
 * @slot:  slot of the endpoint
 */
struct fabrex_release {
	struct work_struct work;
	struct fabrex_port *port;
	u32 ep;
	u64 token;
	u16 slot;
};

/* Bridges below the slot always have a driver, which
 * does not use the endpoint.
 */
static int fabrex_release_match(struct pci_dev *pdev, void *data)
{
	char *driver = data;

	return !pci_is_bridge(pdev) &&
	       fabrex_pdev_driver(pdev, driver, FABREX_NAME_LEN);
}

/* The driver of any function in the slot; "?" if none could be read within a
 * second.
 */
static bool fabrex_release_driver(struct pci_bus *bus, char *driver)
{
	int i;

	for (i = 0; i < HOLDER_TRIES; i++) {
		driver[0] = 0;
		pci_walk_bus(bus, fabrex_release_match, driver);
		if (strcmp(driver, "?"))
			break;
		msleep(HOLDER_MS);
	}
	return driver[0];
}

/* Find who uses the endpoint on this host. False: nobody. */
static bool fabrex_release_holder(struct fabrex_release *release,
				  const struct fabrex_fabric_ops *fabric,
				  struct fabrex_holder *holder)
{
	struct fabrex_port *port = release->port;
	struct pci_dev *pdev = NULL;
	char driver[FABREX_NAME_LEN];
	bool held;

	if (fabric->endpoint_pdev)
		pdev = fabric->endpoint_pdev(port, release->ep, release->slot);
	if (!pdev)
		return false;
	held = fabrex_release_driver(pdev->bus, driver);
	pci_dev_put(pdev);
	if (!held)
		return false;
	holder->port = port->info.object_id;
	strscpy(holder->comm, "kernel", sizeof(holder->comm));
	snprintf(holder->reason, sizeof(holder->reason),
		 "driver %s is bound; unbind it, run fabrexctl agent, or use --force",
		 driver);
	return true;
}

static void fabrex_release_decide(struct fabrex_release *release)
{
	struct fabrex_port *port = release->port;
	const struct fabrex_fabric_ops *fabric;
	struct fabrex_holder holder = {};
	bool held;
	int ret;

	guard(rwsem_read)(&port->registration_lock);
	if (fabrex_port_usable(port) || !(port->can & FABREX_CAN_REPLY))
		return;
	fabric = port->ops->fabric;
	held = fabrex_release_holder(release, fabric, &holder);
	ret = fabric->release_reply(port, release->ep, release->token,
				    held ? &holder : NULL);
	trace_fabrex_release(port, release->ep, held, ret);
}

static void fabrex_release_work(struct work_struct *work)
{
	struct fabrex_release *release = container_of(work,
						      struct fabrex_release,
						      work);

	fabrex_release_decide(release);
	put_device(&release->port->dev);
	kfree(release);
}

/**
 * fabrex_release_queue() - have the core decide a release request
 * @port:  port that the endpoint is bound to
 * @ep:    endpoint
 * @token: of the request
 * @slot:  slot of the endpoint
 *
 * The core grants it if no driver is bound to the endpoint here.
 *
 * Context: Process; sleeps.
 */
void fabrex_release_queue(struct fabrex_port *port, u32 ep, u64 token,
			  u16 slot)
{
	struct fabrex_release *release;

	release = kzalloc(sizeof(*release), GFP_KERNEL);
	if (!release)
		return;	/* the switch waits until its timeout */
	INIT_WORK(&release->work, fabrex_release_work);
	get_device(&port->dev);
	release->port = port;
	release->ep = ep;
	release->token = token;
	release->slot = slot;
	queue_work(fabrex_release_wq, &release->work);
}

/**
 * fabrex_release_init() - initialise when the module is loaded
 *
 * Context: Module init.
 * Return: 0 or -ENOMEM
 */
int __init fabrex_release_init(void)
{
	fabrex_release_wq = alloc_workqueue("fabrex-release", WQ_UNBOUND, 0);
	return fabrex_release_wq ? 0 : -ENOMEM;
}

/**
 * fabrex_release_exit() - clean up when the module is unloaded
 *
 * Context: Module exit.
 */
void fabrex_release_exit(void)
{
	destroy_workqueue(fabrex_release_wq);
}
