// SPDX-License-Identifier: GPL-2.0-only
/*
 * Objects of open files: ids, quotas, and all the ways in which objects are
 * destroyed. Called by mr.c, queue.c and window.c, which create them, by file.c
 * and by port.c.
 *
 * An object goes through these steps, all but the last under registration_lock:
 *
 *  create the backend has created it; it is in the table, so that fail and
 * unregister find it, but not visible yet publish the caller has been told its
 * id, which can be used from now on claim invisible again: there is exactly one
 * who destroys it stop it is detached from interrupts and mappings; the device
 * has forgotten it; the memory that the device used is released free also
 * releases what takes locks outside of registration_lock
 *
 * If the device fails to destroy an object, the memory must not be released:
 * the object stays with its file, or with the port as a zombie, until the
 * device has been reset.
 */
#include <linux/slab.h>

#include "object.h"
#include "trace.h"

/**
 * fabrex_res_init() - initialise an object and charge it to the quota
 * @res:    zeroed, part of the structure of its type
 * @file:   owner
 * @ops:    of its type
 * @charge: what to charge
 *
 * fabrex_res_discard() undoes this.
 *
 * Context: Process; sleeps. Not with registration_lock held.
 * Return: 0; -EDQUOT; -ENODEV if the port is gone; -ENOMEM
 */
int fabrex_res_init(struct fabrex_res *res, struct fabrex_file *file,
		    const struct fabrex_res_ops *ops, u32 charge)
{
	enum fabrex_res_type type = ops->type;
	struct fabrex_cgroup_charge *cgroup;
	int ret;

	ret = fabrex_charge(file->port, file->user, type, charge);
	if (ret)
		return ret;
	cgroup = fabrex_cgroup_charge(file->port, true);
	if (IS_ERR(cgroup)) {
		fabrex_uncharge(file->port, file->user, type, charge);
		return PTR_ERR(cgroup);
	}
	res->cgroup = cgroup;
	res->port = file->port;
	res->file = file;
	res->user = file->user;
	refcount_inc(&res->user->ref);
	res->maker = get_pid(task_tgid(current));
	res->ops = ops;
	res->type = type;
	res->charge = charge;
	refcount_set(&res->users, 1);
	init_completion(&res->idle);
	INIT_LIST_HEAD(&res->list);
	return 0;
}

/**
 * fabrex_res_charge_bytes() - charge the memory that an object gives access to
 * @res:   after fabrex_res_init(); once for each object
 * @bytes: number of bytes, until the object is freed
 *
 * Context: Process; sleeps. Not with registration_lock held.
 * Return: 0; -EDQUOT; -ENODEV if the port is gone; -ENOMEM
 */
int fabrex_res_charge_bytes(struct fabrex_res *res, u64 bytes)
{
	int ret;

	ret = fabrex_charge_bytes(res->port, res->user, bytes);
	if (ret)
		return ret;
	res->bytes = bytes;
	return fabrex_cgroup_charge_bytes(res->port, res->cgroup, bytes);
}

/**
 * fabrex_res_charge_locked() - charge the memory that an object pins
 * @res:    after fabrex_res_init(); once for each object
 * @npages: number of pages, until the object is freed
 *
 * Context: Process; sleeps.
 * Return: 0 or -ENOMEM
 */
int fabrex_res_charge_locked(struct fabrex_res *res, u64 npages)
{
	int ret;

	ret = fabrex_charge_locked(res->user, &npages);
	if (!ret)
		res->locked = npages;
	return ret;
}

/**
 * fabrex_res_insert() - enter an object into the table
 * @res: created by the backend, not visible yet
 *
 * Context: Process; sleeps. With registration_lock held since before the
 * backend was called.
 * Return: 0 or -ENOMEM
 */
int fabrex_res_insert(struct fabrex_res *res)
{
	struct fabrex_file *file = res->file;
	int ret;

	lockdep_assert_held(&res->port->registration_lock);
	ret = xa_alloc_cyclic(&file->objects, &res->id, res,
			      XA_LIMIT(1, INT_MAX), &file->next_id,
			      GFP_KERNEL_ACCOUNT);
	if (ret >= 0)
		return 0;
	/* It was set all the same, and may belong to another object by now. */
	res->id = 0;
	return ret;
}

static void fabrex_res_free(struct fabrex_res *res)
{
	enum fabrex_res_type type = res->type;
	struct fabrex_port *port = res->port;
	struct fabrex_user *user = res->user;
	struct fabrex_cgroup_charge *cgroup = res->cgroup;
	struct pid *maker = res->maker;
	u32 charge = res->charge;
	u64 locked = res->locked;
	u64 bytes = res->bytes;

	/* May wait for an exporter; the object is charged until then. */
	res->ops->free(res);
	fabrex_cgroup_uncharge(port, cgroup);
	fabrex_uncharge_locked(user, locked);
	fabrex_uncharge_bytes(port, user, bytes);
	fabrex_uncharge(port, user, type, charge);
	fabrex_user_put(port, user);
	put_pid(maker);
}

/* The device has destroyed it, or never created it. */
static void fabrex_res_settle(struct fabrex_res *res)
{
	res->ops->settle(res);
	res->stopped = true;
}

/* Returns an error if the device may continue to use it. */
static int fabrex_res_stop(struct fabrex_res *res)
{
	int ret = 0;

	lockdep_assert_held(&res->port->registration_lock);
	if (res->stopped)
		return 0;
	res->ops->detach(res);
	if (res->created && !res->dead && res->port->ops)
		ret = res->ops->destroy(res);
	trace_fabrex_destroy(res, ret);
	if (ret && ret != -ENODEV) {
		dev_err_ratelimited(&res->port->dev,
				    "the device failed to destroy object %u of type %d: %d; its memory is kept until the device is reset\n",
				    res->number, res->type, ret);
		return ret;
	}
	fabrex_res_settle(res);
	return 0;
}

/**
 * fabrex_res_made() - finish the creation of an object
 * @res: may not be in the table
 * @ret: error, or 0
 *
 * Fail and unregister do not find an object that is not in the table. So after
 * an error the object is stopped before they can run. fabrex_res_discard() has
 * to follow.
 *
 * Context: Process; sleeps. With registration_lock held since before the
 * backend was called.
 * Return: @ret
 */
int fabrex_res_made(struct fabrex_res *res, int ret)
{
	if (ret)
		fabrex_res_stop(res);
	return ret;
}

/* Its file is being closed, but the device has failed to destroy it. */
static void fabrex_res_zombie(struct fabrex_res *res)
{
	struct fabrex_port *port = res->port;

	refcount_inc(&res->file->ref);
	spin_lock(&port->zombies_lock);
	list_add_tail(&res->list, &port->zombies);
	spin_unlock(&port->zombies_lock);
}

static bool fabrex_res_set_visible(struct fabrex_res *res, bool visible)
{
	struct fabrex_file *file = res->file;
	bool was;

	xa_lock(&file->objects);
	was = res->visible;
	res->visible = visible;
	xa_unlock(&file->objects);
	return was;
}

/**
 * fabrex_res_publish() - return an object to the caller and make it visible
 * @res:  in the table
 * @ucmd: its structure is complete
 *
 * If the caller cannot be told, the object is destroyed.
 *
 * Context: Process; sleeps. Not with registration_lock held.
 * Return: 0 or -EFAULT
 */
int fabrex_res_publish(struct fabrex_res *res, struct fabrex_ucmd *ucmd)
{
	int ret;

	ret = fabrex_respond(ucmd);
	if (ret)
		fabrex_res_discard(res);
	else
		fabrex_res_set_visible(res, true);
	return ret;
}

/**
 * fabrex_res_discard() - destroy an object that is not visible
 * @res: after fabrex_res_init(), in whatever state
 *
 * Context: Process; sleeps. Not with registration_lock held.
 */
void fabrex_res_discard(struct fabrex_res *res)
{
	struct fabrex_port *port = res->port;
	int ret;

	down_read(&port->registration_lock);
	ret = fabrex_res_stop(res);
	if (res->id)
		xa_erase(&res->file->objects, res->id);
	if (ret)
		fabrex_res_zombie(res);
	up_read(&port->registration_lock);
	if (!ret)
		fabrex_res_free(res);
}

/**
 * fabrex_res_get() - look up an object by its id
 * @file: of the caller
 * @id:   from user space
 * @type: that it must have
 *
 * The object is not destroyed before fabrex_res_put().
 *
 * Context: Process. With registration_lock held.
 * Return: the object, or NULL
 */
struct fabrex_res *fabrex_res_get(struct fabrex_file *file, u32 id,
				  enum fabrex_res_type type)
{
	struct fabrex_res *res;

	lockdep_assert_held(&file->port->registration_lock);
	xa_lock(&file->objects);
	res = xa_load(&file->objects, id);
	if (res && res->visible && res->type == type)
		refcount_inc(&res->users);
	else
		res = NULL;
	xa_unlock(&file->objects);
	return res;
}

/**
 * fabrex_res_put() - allow an object to be destroyed again
 * @res: from fabrex_res_get()
 *
 * Context: Process.
 */
void fabrex_res_put(struct fabrex_res *res)
{
	if (refcount_dec_and_test(&res->users))
		complete(&res->idle);
}

/* From here on nobody but the caller can destroy it. */
static struct fabrex_res *fabrex_res_claim(struct fabrex_file *file, u32 id)
{
	struct fabrex_res *res;

	xa_lock(&file->objects);
	res = xa_load(&file->objects, id);
	if (res && res->visible)
		res->visible = false;
	else
		res = NULL;
	xa_unlock(&file->objects);
	if (!res)
		return NULL;
	fabrex_res_put(res);
	wait_for_completion(&res->idle);
	return res;
}

static void fabrex_res_unclaim(struct fabrex_res *res)
{
	reinit_completion(&res->idle);
	refcount_set(&res->users, 1);
	fabrex_res_set_visible(res, true);
}

static int fabrex_destroy_id(struct fabrex_file *file, u32 id)
{
	struct fabrex_port *port = file->port;
	struct fabrex_res *res;
	int ret = -ENOENT;

	down_read(&port->registration_lock);
	res = fabrex_res_claim(file, id);
	if (res)
		ret = fabrex_res_stop(res);
	if (res && ret)
		fabrex_res_unclaim(res);
	else if (res)
		xa_erase(&file->objects, id);
	up_read(&port->registration_lock);
	if (!ret)
		fabrex_res_free(res);
	return ret;
}

/**
 * fabrex_cmd_destroy() - FABREX_IOCTL_DESTROY
 * @ucmd: ioctl
 *
 * Context: Process; sleeps.
 * Return: 0; -ENOENT; or an error of the backend: then the object still exists
 */
int fabrex_cmd_destroy(struct fabrex_ucmd *ucmd)
{
	struct fabrex_destroy *cmd = ucmd->cmd;

	return fabrex_destroy_id(ucmd->file, cmd->id);
}

static void fabrex_res_close_one(struct fabrex_res *res,
				 struct list_head *gone)
{
	int ret = fabrex_res_stop(res);

	xa_erase(&res->file->objects, res->id);
	if (ret)
		fabrex_res_zombie(res);
	else
		list_add_tail(&res->list, gone);
}

/**
 * fabrex_res_close() - stop all objects of a file that is being closed
 * @file: no longer in use
 * @gone: receives them, for fabrex_res_free_all()
 *
 * Context: Process; sleeps. With registration_lock held.
 */
void fabrex_res_close(struct fabrex_file *file, struct list_head *gone)
{
	enum fabrex_res_type type;
	struct fabrex_res *res;
	unsigned long id;

	lockdep_assert_held(&file->port->registration_lock);
	for (type = 0; type < FABREX_RES_TYPES; type++)
		xa_for_each(&file->objects, id, res)
			if (res->type == type)
				fabrex_res_close_one(res, gone);
}

/* Claim the next object of that type, from @id on, that the process has
 * created.
 */
static struct fabrex_res *fabrex_res_claim_made(struct fabrex_file *file,
						enum fabrex_res_type type,
						struct pid *maker,
						unsigned long *id)
{
	struct fabrex_res *res;

	xa_lock(&file->objects);
	for (res = xa_find(&file->objects, id, ULONG_MAX, XA_PRESENT); res;
	     res = xa_find_after(&file->objects, id, ULONG_MAX, XA_PRESENT))
		if (res->visible && res->type == type && res->maker == maker)
			break;
	if (res)
		res->visible = false;
	xa_unlock(&file->objects);
	if (!res)
		return NULL;
	fabrex_res_put(res);
	wait_for_completion(&res->idle);
	return res;
}

/**
 * fabrex_res_leave() - destroy the objects of a process that exits
 * @file: that it had open; others may go on using it
 * @pid:  of the process
 *
 * A child that has inherited the descriptor cannot use these objects, because
 * rings, memory and mappings were its parent's. But it would keep them alive:
 * pinned memory, and keys that peers take for valid.
 *
 * Context: Process; sleeps.
 */
void fabrex_res_leave(struct fabrex_file *file, struct pid *pid)
{
	struct fabrex_port *port = file->port;
	enum fabrex_res_type type;
	struct fabrex_res *res;
	LIST_HEAD(gone);
	unsigned long id;

	down_read(&port->registration_lock);
	for (type = 0; type < FABREX_RES_TYPES; type++) {
		id = 0;
		while ((res = fabrex_res_claim_made(file, type, pid, &id)))
			fabrex_res_close_one(res, &gone);
	}
	up_read(&port->registration_lock);
	fabrex_res_free_all(&gone);
}

/**
 * fabrex_res_free_all() - free objects that have been stopped
 * @gone: from fabrex_res_close()
 *
 * Context: Process; sleeps. Not with registration_lock held.
 */
void fabrex_res_free_all(struct list_head *gone)
{
	struct fabrex_res *res, *next;

	list_for_each_entry_safe(res, next, gone, list) {
		list_del_init(&res->list);
		fabrex_res_free(res);
	}
}

/* Leak the memory rather than give it to somebody else. */
static void fabrex_res_lose(struct fabrex_res *res)
{
	dev_err(&res->port->dev,
		"the device was removed while it used object %u of type %d: its memory is leaked\n",
		res->number, res->type);
	res->ops->fail(res, FABREX_QERR_RESET);
	res->lost = true;
	res->stopped = true;
}

static void fabrex_zombies_stop(struct fabrex_port *port, bool settle,
				struct list_head *zombies)
{
	struct fabrex_res *res;

	spin_lock(&port->zombies_lock);
	list_splice_init(&port->zombies, zombies);
	spin_unlock(&port->zombies_lock);
	list_for_each_entry(res, zombies, list) {
		if (settle)
			fabrex_res_settle(res);
		else
			fabrex_res_lose(res);
	}
}

/**
 * fabrex_res_free_zombies() - free zombies, and what is left of their files
 * @zombies: from fabrex_res_fail() or fabrex_res_unregister()
 *
 * Context: Process; sleeps. Not with registration_lock held.
 */
void fabrex_res_free_zombies(struct list_head *zombies)
{
	struct fabrex_res *res, *next;
	struct fabrex_file *file;

	list_for_each_entry_safe(res, next, zombies, list) {
		list_del_init(&res->list);
		file = res->file;
		fabrex_res_free(res);
		fabrex_file_put(file);
	}
}

static void fabrex_res_fail_file(struct fabrex_file *file, u32 qerr)
{
	struct fabrex_res *res;
	unsigned long id;

	xa_for_each(&file->objects, id, res) {
		if (res->stopped || res->dead)
			continue;
		res->dead = true;
		res->ops->detach(res);
		res->ops->fail(res, qerr);
	}
}

/**
 * fabrex_res_fail() - mark all objects as dead: the device has lost them
 * @port:    port
 * @qerr:    error for the queues
 * @zombies: receives zombies, for fabrex_res_free_zombies()
 *
 * Context: Process; sleeps. With registration_lock held for writing.
 */
void fabrex_res_fail(struct fabrex_port *port, u32 qerr,
		     struct list_head *zombies)
{
	struct fabrex_file *file;

	lockdep_assert_held_write(&port->registration_lock);
	mutex_lock(&port->files_lock);
	list_for_each_entry(file, &port->files, list)
		fabrex_res_fail_file(file, qerr);
	mutex_unlock(&port->files_lock);
	fabrex_zombies_stop(port, true, zombies);
}

static void fabrex_res_unregister_file(struct fabrex_file *file)
{
	enum fabrex_res_type type;
	struct fabrex_res *res;
	unsigned long id;

	for (type = 0; type < FABREX_RES_TYPES; type++)
		xa_for_each(&file->objects, id, res)
			if (res->type == type && fabrex_res_stop(res))
				fabrex_res_lose(res);
}

/**
 * fabrex_res_unregister() - stop all objects of a port
 * @port:    port
 * @zombies: receives zombies, for fabrex_res_free_zombies()
 *
 * Context: Process; sleeps. With registration_lock held for writing.
 */
void fabrex_res_unregister(struct fabrex_port *port,
			   struct list_head *zombies)
{
	struct fabrex_file *file;

	lockdep_assert_held_write(&port->registration_lock);
	mutex_lock(&port->files_lock);
	list_for_each_entry(file, &port->files, list)
		fabrex_res_unregister_file(file);
	mutex_unlock(&port->files_lock);
	fabrex_zombies_stop(port, false, zombies);
}
