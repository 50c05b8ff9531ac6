// SPDX-License-Identifier: GPL-2.0-only
/*
 * Registered ports by number, whether their backend can be called, and the last
 * reference to open files. Called by all files above.
 */
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "context.h"

/* Registered ports, by index. Its lock protects lookups against removal. */
static DEFINE_XARRAY(fabrex_ports);

/**
 * fabrex_port_enlist() - reserve the number of a port
 * @port: about to be registered
 *
 * fabrex_port_delist() undoes this.
 *
 * Context: Process; sleeps.
 * Return: 0 or -ENOMEM
 */
int fabrex_port_enlist(struct fabrex_port *port)
{
	return xa_reserve(&fabrex_ports, port->index, GFP_KERNEL);
}

/**
 * fabrex_port_list() - make a port visible to lookups
 * @port: after fabrex_port_enlist()
 *
 * Context: Process.
 */
void fabrex_port_list(struct fabrex_port *port)
{
	xa_store(&fabrex_ports, port->index, port, GFP_KERNEL);
}

/**
 * fabrex_port_delist() - undo fabrex_port_enlist() and fabrex_port_list()
 * @port: port; those who have found it keep their references
 *
 * Context: Process.
 */
void fabrex_port_delist(struct fabrex_port *port)
{
	xa_erase(&fabrex_ports, port->index);
}

/**
 * fabrex_port_find() - find a registered port by number
 * @index: N of /dev/fabrexN
 *
 * Context: Process.
 * Return: the port, with a reference, or NULL
 */
struct fabrex_port *fabrex_port_find(unsigned long index)
{
	struct fabrex_port *port;

	xa_lock(&fabrex_ports);
	port = xa_load(&fabrex_ports, index);
	if (port)
		get_device(&port->dev);
	xa_unlock(&fabrex_ports);
	return port;
}

/**
 * fabrex_port_next() - find the next registered port
 * @index: in: lowest number to consider; out: number of the port
 *
 * Context: Process.
 * Return: the port, with a reference, or NULL
 */
struct fabrex_port *fabrex_port_next(unsigned long *index)
{
	struct fabrex_port *port;

	xa_lock(&fabrex_ports);
	port = xa_find(&fabrex_ports, index, ULONG_MAX, XA_PRESENT);
	if (port)
		get_device(&port->dev);
	xa_unlock(&fabrex_ports);
	return port;
}

/**
 * fabrex_port_usable() - check that operations of the backend may be called
 * @port: port
 *
 * Context: With registration_lock held.
 * Return: 0; -ENODEV after unregister; -EIO while the device does not work
 */
int fabrex_port_usable(struct fabrex_port *port)
{
	lockdep_assert_held(&port->registration_lock);
	if (!port->ops)
		return -ENODEV;
	return port->alive ? 0 : -EIO;
}

/**
 * fabrex_port_importer() - get the device that dma-bufs are mapped for
 * @port: registered, and able to import dma-bufs
 *
 * Context: Process; sleeps. With registration_lock held.
 * Return: the device, with a reference; an ERR_PTR() if there is none
 */
struct device *fabrex_port_importer(struct fabrex_port *port)
{
	const struct fabrex_data_ops *data = port->ops->data;

	if (data && data->mr_importer)
		return data->mr_importer(port);
	if (!port->info.dma_dev)
		return ERR_PTR(-EOPNOTSUPP);
	return get_device(port->info.dma_dev);
}

/**
 * fabrex_file_free() - free a file that has no references any more
 * @file: without objects and mappings
 *
 * Context: Process; sleeps.
 */
void fabrex_file_free(struct fabrex_file *file)
{
	xa_destroy(&file->objects);
	xa_destroy(&file->maps);
	kfree_rcu(file, rcu);
}

/**
 * fabrex_file_put() - drop a reference to a file
 * @file: file; references are held while it is open, and by objects that
 *        outlive it
 *
 * The protection domain is not assigned to another file before the last
 * reference is gone.
 *
 * Context: Process; sleeps.
 */
void fabrex_file_put(struct fabrex_file *file)
{
	if (!refcount_dec_and_test(&file->ref))
		return;
	ida_free(&file->port->pds, file->pd);
	fabrex_file_free(file);
}

/**
 * fabrex_respond() - copy the structure of an ioctl back to the caller
 * @ucmd: ioctl
 *
 * Context: Process; sleeps. Not with registration_lock held.
 * Return: 0 or -EFAULT
 */
int fabrex_respond(struct fabrex_ucmd *ucmd)
{
	if (copy_to_user(ucmd->ubuf, ucmd->cmd,
			 min(ucmd->user_size, ucmd->size)))
		return -EFAULT;
	return 0;
}
