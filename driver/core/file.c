// SPDX-License-Identifier: GPL-2.0-only
/*
 * The character device: open, close, dispatch of ioctls, read and poll. Called
 * by the VFS only.
 */
#include <linux/cred.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>

#include "data.h"
#include "port.h"

static int fabrex_cmd_port_query(struct fabrex_ucmd *ucmd)
{
	struct fabrex_port *port = ucmd->file->port;
	const struct fabrex_port_info *info = &port->info;
	struct fabrex_port_query *cmd = ucmd->cmd;

	if (cmd->flags)
		return -EINVAL;
	*cmd = (struct fabrex_port_query) {
		.size = cmd->size,
		.out_peer = info->peer,
		.out_max_peers = info->max_peers,
		.out_generation = READ_ONCE(port->generation),
		.out_flags = info->flags & FABREX_PORT_EMULATED,
		.out_caps = port->caps,
		.out_max_queues = info->max_queues,
		.out_max_mrs = info->max_mrs,
		.out_max_windows = info->max_windows,
		.out_max_sq = min(info->max_sq, FABREX_SQ_MAX),
		.out_max_cq = min(info->max_cq, FABREX_CQ_MAX),
		.out_max_rq = min(info->max_rq, FABREX_RQ_MAX),
		.out_max_cell = min(info->max_cell, FABREX_CELL_MAX),
		.out_window_slot_size = info->window_slot_size,
		.out_max_transfer = info->max_transfer,
		.out_page_size = PAGE_SIZE,
	};
	if (READ_ONCE(port->link_up))
		cmd->out_flags |= FABREX_PORT_LINK_UP;
	memcpy(cmd->out_name, info->name, FABREX_NAME_LEN);
	memcpy(cmd->out_host, info->host, FABREX_NAME_LEN);
	memcpy(cmd->out_fabric, info->fabric, FABREX_NAME_LEN);
	memcpy(cmd->out_driver, info->driver, FABREX_NAME_LEN);
	return fabrex_respond(ucmd);
}

union fabrex_cmd_buf {
	struct fabrex_port_query port_query;
	struct fabrex_peer_query peer_query;
	struct fabrex_mr_register mr_register;
	struct fabrex_queue_create queue_create;
	struct fabrex_window_create window_create;
	struct fabrex_destroy destroy;
	struct fabrex_counters counters;
	struct fabrex_resolve resolve;
	struct fabrex_watch watch;
	struct fabrex_p2p_query p2p_query;
};

/**
 * struct fabrex_ioctl_op - ioctl
 * @size:     size of its structure
 * @min_size: size of the first version of its structure
 * @cmd:      FABREX_IOCTL_*
 * @mode:     FMODE_* that the file must have been opened with
 * @can:      FABREX_CAN_* that the port must have
 * @execute:  handler
 */
struct fabrex_ioctl_op {
	unsigned int size;
	unsigned int min_size;
	unsigned int cmd;
	fmode_t mode;
	u32 can;
	int (*execute)(struct fabrex_ucmd *ucmd);
};

#define IOCTL_OP(_ioctl, _mode, _can, _fn, _struct, _last)		\
	[_IOC_NR(_ioctl) - FABREX_CMD_BASE] = {				\
		.size = sizeof(_struct) +				\
			BUILD_BUG_ON_ZERO(sizeof(union fabrex_cmd_buf) <	\
					  sizeof(_struct)),		\
		.min_size = offsetofend(_struct, _last),		\
		.cmd = _ioctl,						\
		.mode = _mode,						\
		.can = _can,						\
		.execute = _fn,						\
	}

static const struct fabrex_ioctl_op fabrex_ioctl_ops[] = {
	IOCTL_OP(FABREX_IOCTL_PORT_QUERY, 0, 0,
		 fabrex_cmd_port_query, struct fabrex_port_query, out_driver),
	IOCTL_OP(FABREX_IOCTL_PEER_QUERY, 0, 0,
		 fabrex_cmd_peer_query, struct fabrex_peer_query, out_host),
	IOCTL_OP(FABREX_IOCTL_MR_REGISTER, FMODE_WRITE, FABREX_CAN_DATA,
		 fabrex_cmd_mr_register, struct fabrex_mr_register, __reserved),
	IOCTL_OP(FABREX_IOCTL_QUEUE_CREATE, FMODE_WRITE, FABREX_CAN_DATA,
		 fabrex_cmd_queue_create, struct fabrex_queue_create, out_rq_offset),
	IOCTL_OP(FABREX_IOCTL_WINDOW_CREATE, FMODE_WRITE, FABREX_CAN_DATA,
		 fabrex_cmd_window_create, struct fabrex_window_create, __reserved),
	IOCTL_OP(FABREX_IOCTL_DESTROY, FMODE_WRITE, FABREX_CAN_DATA,
		 fabrex_cmd_destroy, struct fabrex_destroy, id),
	IOCTL_OP(FABREX_IOCTL_COUNTERS, 0, 0,
		 fabrex_cmd_counters, struct fabrex_counters, out_interrupts),
	IOCTL_OP(FABREX_IOCTL_RESOLVE, FMODE_WRITE, FABREX_CAN_RESOLVE,
		 fabrex_cmd_resolve, struct fabrex_resolve, __reserved),
	IOCTL_OP(FABREX_IOCTL_WATCH, FMODE_WRITE, FABREX_CAN_DATA,
		 fabrex_cmd_watch, struct fabrex_watch, out_length),
	IOCTL_OP(FABREX_IOCTL_P2P_QUERY, 0, FABREX_CAN_DATA,
		 fabrex_cmd_p2p_query, struct fabrex_p2p_query, out_distance),
};

static const struct fabrex_ioctl_op *fabrex_ioctl_find(unsigned int cmd)
{
	unsigned int nr = _IOC_NR(cmd) - FABREX_CMD_BASE;

	if (nr >= ARRAY_SIZE(fabrex_ioctl_ops) ||
	    fabrex_ioctl_ops[nr].cmd != cmd)
		return NULL;
	return &fabrex_ioctl_ops[nr];
}

static long fabrex_ioctl(struct file *filp, unsigned int cmd,
			 unsigned long arg)
{
	const struct fabrex_ioctl_op *op = fabrex_ioctl_find(cmd);
	union fabrex_cmd_buf buf;
	struct fabrex_ucmd ucmd = {
		.file = filp->private_data,
		.ubuf = (void __user *)arg,
		.cmd = &buf,
	};
	int ret;

	if (!op)
		return -ENOIOCTLCMD;
	if (op->mode & ~filp->f_mode)
		return -EBADF;
	/* Only a first check: whoever calls the backend checks again. */
	if (!READ_ONCE(ucmd.file->port->ops))
		return -ENODEV;
	if (op->can & ~ucmd.file->port->can)
		return -EOPNOTSUPP;
	if (get_user(ucmd.user_size, (u32 __user *)ucmd.ubuf))
		return -EFAULT;
	if (ucmd.user_size < op->min_size)
		return -EINVAL;
	if (ucmd.user_size > PAGE_SIZE)
		return -E2BIG;
	ucmd.size = op->size;
	ret = copy_struct_from_user(ucmd.cmd, op->size, ucmd.ubuf,
				    ucmd.user_size);
	if (ret)
		return ret;
	/* It may have changed between the two copies. */
	*(u32 *)ucmd.cmd = ucmd.user_size;
	return op->execute(&ucmd);
}

static int fabrex_file_enlist(struct fabrex_file *file)
{
	struct fabrex_port *port = file->port;

	guard(rwsem_read)(&port->registration_lock);
	if (!port->ops)
		return -ENODEV;
	guard(mutex)(&port->files_lock);
	list_add_tail(&file->list, &port->files);
	atomic_inc(&port->open_files);
	return 0;
}

static void fabrex_file_init(struct fabrex_file *file, struct fabrex_port *port)
{
	refcount_set(&file->ref, 1);
	file->port = port;
	xa_init_flags(&file->objects, XA_FLAGS_ALLOC1);
	init_rwsem(&file->map_lock);
	xa_init(&file->maps);
	file->next_page = 1;
	fabrex_events_init(&file->events);
}

static int fabrex_open(struct inode *inode, struct file *filp)
{
	struct fabrex_port *port = container_of(inode->i_cdev,
						struct fabrex_port, cdev);
	struct fabrex_file *file;
	int ret;

	file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);
	if (!file)
		return -ENOMEM;
	fabrex_file_init(file, port);
	ret = ida_alloc_min(&port->pds, 1, GFP_KERNEL);
	if (ret < 0)
		goto free;
	file->pd = ret;
	file->inode = fabrex_inode_new();
	if (IS_ERR(file->inode)) {
		ret = PTR_ERR(file->inode);
		goto free_pd;
	}
	file->user = fabrex_user_get(port, filp->f_cred);
	if (!file->user) {
		ret = -ENOMEM;
		goto free_inode;
	}
	file->cgroup = fabrex_cgroup_charge(port, false);
	if (IS_ERR(file->cgroup)) {
		ret = PTR_ERR(file->cgroup);
		goto put_user;
	}
	ret = fabrex_file_enlist(file);
	if (ret)
		goto uncharge;
	get_device(&port->dev);
	filp->private_data = file;
	filp->f_mapping = file->inode->i_mapping;
	return stream_open(inode, filp);

uncharge:
	fabrex_cgroup_uncharge(port, file->cgroup);
put_user:
	fabrex_user_put(port, file->user);
free_inode:
	fabrex_inode_free(file->inode);
free_pd:
	ida_free(&port->pds, file->pd);
free:
	fabrex_file_free(file);
	return ret;
}

static struct workqueue_struct *fabrex_leave_wq;

/**
 * struct fabrex_leave - cleanup after a process that executes another program
 * @work: destroys the objects that the process has created
 * @filp: with a reference
 * @pid:  of the process, with a reference
 */
struct fabrex_leave {
	struct work_struct work;
	struct file *filp;
	struct pid *pid;
};

static void fabrex_leave_work(struct work_struct *work)
{
	struct fabrex_leave *leave = container_of(work, struct fabrex_leave,
						  work);
	struct file *filp = leave->filp;

	fabrex_res_leave(filp->private_data, leave->pid);
	put_pid(leave->pid);
	kfree(leave);
	fput(filp);
}

/* exec() closes files with exec_update_lock held. Whoever wants to inspect the
 * process takes that lock, and must not wait for a device that hangs. So
 * objects are destroyed in a work, and the new program may start before it has
 * finished.
 */
static void fabrex_leave(struct file *filp)
{
	struct fabrex_leave *leave = NULL;

	if (current->in_execve)
		leave = kmalloc(sizeof(*leave), GFP_KERNEL);
	if (leave) {
		INIT_WORK(&leave->work, fabrex_leave_work);
		leave->filp = get_file(filp);
		leave->pid = get_pid(task_tgid(current));
		queue_work(fabrex_leave_wq, &leave->work);
		return;
	}
	fabrex_res_leave(filp->private_data, task_tgid(current));
}

/* Called at each close() by each process that has the file open, and when such
 * a process exits. Only the latter matters: when all threads exit, of which one
 * may have unshared its descriptors; or when exec() closes the file. Of
 * processes that share a table of descriptors (CLONE_FILES without
 * CLONE_THREAD), only the last one gets here, and only the objects that it has
 * created itself are destroyed; those of the others stay until the file is
 * closed. So do the objects of a process that had closed the descriptor before
 * it exited.
 */
static int fabrex_flush(struct file *filp, fl_owner_t id)
{
	/* A thread that a backend has made for the process may outlive the rest
	 * for a moment.
	 */
	if (!atomic_read(&current->signal->live) || current->in_execve ||
	    (current->flags & PF_EXITING &&
	     current->signal->flags & SIGNAL_GROUP_EXIT))
		fabrex_leave(filp);
	return 0;
}

static int fabrex_release(struct inode *inode, struct file *filp)
{
	struct fabrex_file *file = filp->private_data;
	struct fabrex_port *port = file->port;
	LIST_HEAD(gone);

	down_read(&port->registration_lock);
	fabrex_res_close(file, &gone);
	mutex_lock(&port->files_lock);
	list_del(&file->list);
	mutex_unlock(&port->files_lock);
	up_read(&port->registration_lock);
	fabrex_res_free_all(&gone);
	fabrex_map_remove(file->watch);

	atomic_dec(&port->open_files);
	filp->f_mapping = inode->i_mapping;
	fabrex_inode_free(file->inode);
	fabrex_cgroup_uncharge(port, file->cgroup);
	fabrex_user_put(port, file->user);
	fabrex_file_put(file);
	put_device(&port->dev);
	return 0;
}

static ssize_t fabrex_read(struct file *filp, char __user *buf, size_t count,
			   loff_t *pos)
{
	struct fabrex_file *file = filp->private_data;

	return fabrex_events_read(&file->events, buf, count,
				  filp->f_flags & O_NONBLOCK);
}

static __poll_t fabrex_poll(struct file *filp, poll_table *wait)
{
	struct fabrex_file *file = filp->private_data;

	return fabrex_events_poll(&file->events, filp, wait);
}

const struct file_operations fabrex_fops = {
	.owner		= THIS_MODULE,
	.open		= fabrex_open,
	.flush		= fabrex_flush,
	.release	= fabrex_release,
	.unlocked_ioctl	= fabrex_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.mmap		= fabrex_mmap,
	.read		= fabrex_read,
	.poll		= fabrex_poll,
};

/**
 * fabrex_files_init() - initialise when the module is loaded
 *
 * Context: Module init.
 * Return: 0 or -ENOMEM
 */
int __init fabrex_files_init(void)
{
	fabrex_leave_wq = alloc_workqueue("fabrex-leave", WQ_UNBOUND, 0);
	return fabrex_leave_wq ? 0 : -ENOMEM;
}

/**
 * fabrex_files_exit() - clean up when the module is unloaded; no file is open
 *
 * Context: Module exit.
 */
void fabrex_files_exit(void)
{
	destroy_workqueue(fabrex_leave_wq);
}
