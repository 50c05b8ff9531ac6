// SPDX-License-Identifier: GPL-2.0-only
/*
 * Registered ports by number, whether their backend can be called, and what is
 * left of open files. For all files above.
 */
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "context.h"

/* Registered ports by index; its lock protects lookups against removal. */
static DEFINE_XARRAY(fabrex_ports);

/**
 * fabrex_port_enlist() - reserve the place of a port
 * @port: about to be registered
 *
 * Undone by fabrex_port_delist().
 *
 * Return: 0 or -ENOMEM
 */
int fabrex_port_enlist(struct fabrex_port *port)
{
	return xa_reserve(&fabrex_ports, port->index, GFP_KERNEL);
}

/**
 * fabrex_port_list() - let a port be found from now on
 * @port: of fabrex_port_enlist()
 */
void fabrex_port_list(struct fabrex_port *port)
{
	xa_store(&fabrex_ports, port->index, port, GFP_KERNEL);
}

/**
 * fabrex_port_delist() - undo fabrex_port_enlist() and fabrex_port_list()
 * @port: port; those who have found it keep their references
 */
void fabrex_port_delist(struct fabrex_port *port)
{
	xa_erase(&fabrex_ports, port->index);
}

/**
 * fabrex_port_find() - registered port by number
 * @index: N of /dev/fabrexN
 *
 * Return: the port with a reference, or NULL
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
 * fabrex_port_next() - first registered port from a number on
 * @index: in: number; out: that of the port found
 *
 * Return: the port with a reference, or NULL
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
 * fabrex_port_usable() - may operations of the backend be called?
 * @port: with registration_lock held
 *
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
 * fabrex_file_free() - free what nobody refers to any more
 * @file: file; has no objects and no mappings
 */
void fabrex_file_free(struct fabrex_file *file)
{
	xa_destroy(&file->objects);
	xa_destroy(&file->maps);
	kfree_rcu(file, rcu);
}

/**
 * fabrex_file_put() - it is closed, or an object that outlived it is gone
 * @file: file
 *
 * Until the last of them, nobody else gets its protection domain.
 */
void fabrex_file_put(struct fabrex_file *file)
{
	if (!refcount_dec_and_test(&file->ref))
		return;
	ida_free(&file->port->pds, file->pd);
	fabrex_file_free(file);
}

/**
 * fabrex_respond() - give the structure back to the caller
 * @ucmd: ioctl
 *
 * Not below registration_lock.
 *
 * Return: 0 or -EFAULT
 */
int fabrex_respond(struct fabrex_ucmd *ucmd)
{
	if (copy_to_user(ucmd->ubuf, ucmd->cmd,
			 min(ucmd->user_size, ucmd->size)))
		return -EFAULT;
	return 0;
}
