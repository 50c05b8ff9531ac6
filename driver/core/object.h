/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Objects of open files, of whatever type: ids, charges, destruction. For the
 * types (data.h), and for those that open and close files and unregister ports.
 */
#ifndef _FABREX_OBJECT_H
#define _FABREX_OBJECT_H

#include "context.h"

struct fabrex_res;

/**
 * struct fabrex_res_ops - what differs between the types of objects
 * @type:    FABREX_RES_*
 * @detach:  make sure that nobody can find or map the object any more
 * @destroy: have the device forget it
 * @settle:  the device has forgotten it: give back what it used
 * @fail:    the device has forgotten it by itself: tell the owner
 * @free:    free its memory, and what takes outer locks to give back; of an
 *           object that is lost, only what the device does not use. Not below
 *           registration_lock
 */
struct fabrex_res_ops {
	enum fabrex_res_type type;
	void (*detach)(struct fabrex_res *res);
	int (*destroy)(struct fabrex_res *res);
	void (*settle)(struct fabrex_res *res);
	void (*fail)(struct fabrex_res *res, u32 qerr);
	void (*free)(struct fabrex_res *res);
};

/**
 * struct fabrex_res - object of a file: queue, window or memory region
 * @list:    in port->zombies
 * @port:    port; exists as long as a file or a zombie does
 * @file:    owner
 * @user:    account that it is charged to, with a reference
 * @maker:   process that created it and with which it ends, with a reference
 * @ops:     of its type
 * @type:    FABREX_RES_*
 * @charge:  what it takes of the quota of its type
 * @bytes:   what it takes of the quota of bytes
 * @locked:  pages charged to @user for RLIMIT_MEMLOCK
 * @cgroup:  what is charged to its maker's cgroup
 * @id:      in file->objects
 * @number:  the backend's
 * @visible: user space may name it; under xa_lock of file->objects. Whoever
 *           clears it owns the object
 * @created: the device knows it
 * @dead:    the device has forgotten it
 * @stopped: the device no longer uses it; all resources have been given back
 * @lost:    the device was removed while it used the object; never freed
 * @users:   1, and one for each caller that is using it
 * @idle:    completed when @users becomes 0
 *
 * @created, @dead, @stopped and @lost are protected by registration_lock: the
 * owner writes them with the lock held for reading, anybody who holds it for
 * writing may.
 */
struct fabrex_res {
	struct list_head list;
	struct fabrex_port *port;
	struct fabrex_file *file;
	struct fabrex_user *user;
	struct pid *maker;
	const struct fabrex_res_ops *ops;
	enum fabrex_res_type type;
	u32 charge;
	u64 bytes;
	u64 locked;
	struct fabrex_cgroup_charge *cgroup;
	u32 id;
	u32 number;
	bool visible;
	bool created;
	bool dead;
	bool stopped;
	bool lost;
	refcount_t users;
	struct completion idle;
};

/* res.c */
int fabrex_res_init(struct fabrex_res *res, struct fabrex_file *file,
		    const struct fabrex_res_ops *ops, u32 charge);
int fabrex_res_charge_bytes(struct fabrex_res *res, u64 bytes);
int fabrex_res_charge_locked(struct fabrex_res *res, u64 npages);
int fabrex_res_insert(struct fabrex_res *res);
int fabrex_res_made(struct fabrex_res *res, int ret);
int fabrex_res_publish(struct fabrex_res *res, struct fabrex_ucmd *ucmd);
void fabrex_res_discard(struct fabrex_res *res);
struct fabrex_res *fabrex_res_get(struct fabrex_file *file, u32 id,
				  enum fabrex_res_type type);
void fabrex_res_put(struct fabrex_res *res);
void fabrex_res_close(struct fabrex_file *file, struct list_head *gone);
void fabrex_res_leave(struct fabrex_file *file, struct pid *pid);
void fabrex_res_free_all(struct list_head *gone);
void fabrex_res_fail(struct fabrex_port *port, u32 qerr,
		     struct list_head *zombies);
void fabrex_res_unregister(struct fabrex_port *port,
			   struct list_head *zombies);
void fabrex_res_free_zombies(struct list_head *zombies);
int fabrex_cmd_destroy(struct fabrex_ucmd *ucmd);

#endif
