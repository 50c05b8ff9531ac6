// SPDX-License-Identifier: GPL-2.0-only
/*
 * Objects of open files: ids, quotas, destruction in every way that there is.
 * Called by mr.c, queue.c and window.c, which make them, by file.c and port.c.
 *
 * An object goes through these steps, all but the last one under
 * registration_lock:
 *
 *   create   the backend made it; it is in the table, so that fail and
 *            unregister find it, but invisible
 *   publish  the caller has been told; its id can be used
 *   claim    invisible again: exactly one destroys it
 *   stop     detached from interrupts and mappings, the device has forgotten
 *            it, then what the device used is given back
 *   free     also gives back what takes locks that are outside of ours
 *
 * If the device does not let go of an object, its memory must not be given
 * back: the object stays with its file, or with the port as a zombie, until the
 * device has been reset.
 */
#include <linux/slab.h>

#include "object.h"
#include "trace.h"

/**
 * fabrex_res_init() - begin an object, charge it
 * @res:    zeroed, in its type's structure
 * @file:   owner
 * @ops:    of its type
 * @charge: to the quota
 *
 * Undone by fabrex_res_discard(). Not below registration_lock.
 *
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
 * fabrex_res_charge_bytes() - charge the memory that it gives access to
 * @res:   after fabrex_res_init(), once
 * @bytes: number
 *
 * Not below registration_lock. Until the object is freed.
 *
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
 * fabrex_res_charge_locked() - charge the memory that it keeps in place
 * @res:    after fabrex_res_init(), once
 * @npages: number
 *
 * Until the object is freed.
 *
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
 * fabrex_res_insert() - the backend has made it
 * @res: not visible yet
 *
 * Below registration_lock, which is held since before the backend was called.
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
	/* It has been set even so, and may be another object's by now. */
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

	/* May wait for an exporter; it counts until then. */
	res->ops->free(res);
	fabrex_cgroup_uncharge(port, cgroup);
	fabrex_uncharge_locked(user, locked);
	fabrex_uncharge_bytes(port, user, bytes);
	fabrex_uncharge(port, user, type, charge);
	fabrex_user_put(port, user);
	put_pid(maker);
}

/* The device has forgotten it, or never knew it. */
static void fabrex_res_settle(struct fabrex_res *res)
{
	res->ops->settle(res);
	res->stopped = true;
}

/* Returns an error if the device may go on using it. */
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
				    "object %u of type %d is not let go by the device: %d; its memory stays until the device is reset\n",
				    res->number, res->type, ret);
		return ret;
	}
	fabrex_res_settle(res);
	return 0;
}

/**
 * fabrex_res_made() - end of the making of an object
 * @res: perhaps not in the table
 * @ret: error, or 0
 *
 * What is not in the table is not found by fail and unregister: after an error
 * it is stopped before they can come, that is, below registration_lock as held
 * since before the device was asked. fabrex_res_discard() has to follow.
 *
 * Return: @ret
 */
int fabrex_res_made(struct fabrex_res *res, int ret)
{
	if (ret)
		fabrex_res_stop(res);
	return ret;
}

/* Its file is closed, and the device does not let go. */
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
 * fabrex_res_publish() - tell the caller, then let the object be used
 * @res:  in the table
 * @ucmd: its structure is complete
 *
 * Not below registration_lock. If the caller cannot be told the object is
 * destroyed.
 *
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
 * fabrex_res_discard() - give up an object that is not visible
 * @res: after fabrex_res_init(), whatever else has been done with it
 *
 * Not below registration_lock.
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
 * fabrex_res_get() - find an object by its id
 * @file: of the caller
 * @id:   given by user space
 * @type: that it must have
 *
 * Below registration_lock. Until fabrex_res_put() the object is not destroyed.
 *
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
 * fabrex_res_put() - it may be destroyed again
 * @res: of fabrex_res_get()
 */
void fabrex_res_put(struct fabrex_res *res)
{
	if (refcount_dec_and_test(&res->users))
		complete(&res->idle);
}

/* Make the caller the only one who can destroy it. */
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
 * Return: 0; -ENOENT; an error of the backend, and the object still exists
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
 * fabrex_res_close() - destroy all that a file has: it is being closed
 * @file: nobody else uses it any more
 * @gone: list; fabrex_res_free_all() has to follow
 *
 * Below registration_lock.
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

/* Claim the next of that type, from @id on, that the process has made. */
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
 * fabrex_res_leave() - a process ends, others may go on with the file
 * @file: that it had open
 * @pid:  of the process
 *
 * Destroys what the process has made. A child that has inherited the descriptor
 * cannot use it (rings, memory and mappings were the parent's), but would keep
 * it alive: pinned memory, and keys that peers believe in.
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
 * fabrex_res_free_all() - free what has been stopped
 * @gone: of fabrex_res_close()
 *
 * Not below registration_lock.
 */
void fabrex_res_free_all(struct list_head *gone)
{
	struct fabrex_res *res, *next;

	list_for_each_entry_safe(res, next, gone, list) {
		list_del_init(&res->list);
		fabrex_res_free(res);
	}
}

/* Memory is lost rather than given to somebody else. */
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
 * fabrex_res_free_zombies() - free them, and what is left of their files
 * @zombies: of fabrex_res_fail() or fabrex_res_unregister()
 *
 * Not below registration_lock.
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
 * fabrex_res_fail() - the device has forgotten everything
 * @port:    below registration_lock, for writing
 * @qerr:    for the queues
 * @zombies: list; fabrex_res_free_zombies() has to follow
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
 * fabrex_res_unregister() - stop everything of everybody
 * @port:    below registration_lock, for writing
 * @zombies: list; fabrex_res_free_zombies() has to follow
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
