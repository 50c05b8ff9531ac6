// SPDX-License-Identifier: GPL-2.0-only
/* /dev/dgpu<N>: open, close, ioctls, mmap. Called by the VFS only. */
#include <linux/fcntl.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "drv.h"

#define MAX_ALIGN	((u64)1 << 30)

static int dgpu_cmd_info(struct dgpu_file *file, void *arg)
{
	struct dgpu *dg = file->dg;
	struct dgpu_info *cmd = arg;

	if (cmd->flags)
		return -EINVAL;
	*cmd = (struct dgpu_info) {
		.size = cmd->size,
		.out_domain = pci_domain_nr(dg->pdev->bus),
		.out_devfn = pci_dev_id(dg->pdev),
		.out_vram = dg->size,
		.out_free = gen_pool_avail(dg->pool),
		.out_instance = dg->instance,
		.out_buffers = atomic_read(&dg->nbuffers),
		.out_exports = atomic_read(&dg->nexports),
		.out_mappings = atomic_read(&dg->nmaps),
		.out_index = dg->index,
		.out_mesh = dg->mesh,
		.out_mesh_number = dg->number,
	};
	if (dg->engine.present)
		cmd->out_flags |= DGPU_INFO_ENGINE;
	if (IS_ENABLED(CONFIG_PCI_P2PDMA))
		cmd->out_flags |= DGPU_INFO_P2PDMA;
	if (dgpu_without_p2pdma)
		cmd->out_flags |= DGPU_INFO_FORCED;
	memcpy(cmd->out_name, dg->name, DGPU_NAME_LEN);
	return 0;
}

static int dgpu_alloc_check(struct dgpu *dg, struct dgpu_alloc *cmd)
{
	if (cmd->flags & ~(DGPU_ALLOC_CLEAR | DGPU_ALLOC_SCATTER) ||
	    cmd->__reserved || !cmd->length)
		return -EINVAL;
	if (cmd->align && (!is_power_of_2(cmd->align) ||
			   cmd->align > MAX_ALIGN))
		return -EINVAL;
	return cmd->length > dg->size ? -ENOSPC : 0;
}

/* Until it has a cookie nobody finds it. */
static int dgpu_publish(struct dgpu_file *file, struct dgpu_bo *bo,
			struct dgpu_alloc *cmd)
{
	int ret;

	bo->inode = file->inode;
	ret = xa_alloc(&file->handles, &cmd->out_handle, bo,
		       XA_LIMIT(1, DGPU_MAX_HANDLE), GFP_KERNEL_ACCOUNT);
	if (ret)
		return ret;
	cmd->out_mmap = (u64)cmd->out_handle << DGPU_COOKIE_SHIFT;
	xa_lock(&file->handles);
	bo->cookie = cmd->out_mmap;
	xa_unlock(&file->handles);
	return 0;
}

static int dgpu_cmd_alloc(struct dgpu_file *file, void *arg)
{
	struct dgpu_alloc *cmd = arg;
	struct dgpu_bo *bo;
	int ret;

	ret = dgpu_alloc_check(file->dg, cmd);
	if (ret)
		return ret;
	bo = dgpu_bo_new(file->dg, PAGE_ALIGN(cmd->length),
			 max_t(u64, cmd->align, PAGE_SIZE), cmd->flags);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	if (cmd->flags & DGPU_ALLOC_CLEAR)
		ret = dgpu_bo_clear(bo);
	if (!ret)
		ret = dgpu_publish(file, bo, cmd);
	if (ret)
		dgpu_bo_orphan(bo);
	return ret;
}

static int dgpu_cmd_free(struct dgpu_file *file, void *arg)
{
	struct dgpu_handle *cmd = arg;
	struct dgpu_bo *bo;

	xa_lock(&file->handles);
	bo = xa_load(&file->handles, cmd->handle);
	if (bo && bo->cookie)
		__xa_erase(&file->handles, cmd->handle);
	else
		bo = NULL;
	xa_unlock(&file->handles);
	if (!bo)
		return -ENOENT;
	dgpu_bo_leave(bo);
	return 0;
}

static int dgpu_cmd_revoke(struct dgpu_file *file, void *arg)
{
	struct dgpu_handle *cmd = arg;
	struct dgpu_bo *bo = dgpu_bo_find(file, cmd->handle);

	if (!bo)
		return -ENOENT;
	dgpu_bo_revoke(bo);
	dgpu_bo_put(bo);
	return 0;
}

/* The descriptor becomes visible last: see dgpu_ioctl(). */
static int dgpu_export_fd(struct dgpu_bo *bo, struct dgpu_export *cmd,
			  void __user *ubuf)
{
	bool read_only = cmd->flags & DGPU_EXPORT_READ_ONLY;
	struct dma_buf *dmabuf;
	int fd;

	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		return fd;
	dmabuf = dgpu_export(bo, cmd->offset, cmd->length,
			     read_only ? O_RDONLY : O_RDWR);
	if (IS_ERR(dmabuf)) {
		put_unused_fd(fd);
		return PTR_ERR(dmabuf);
	}
	cmd->out_fd = fd;
	if (copy_to_user(ubuf, cmd, sizeof(*cmd))) {
		dma_buf_put(dmabuf);
		put_unused_fd(fd);
		return -EFAULT;
	}
	fd_install(fd, dmabuf->file);
	return 0;
}

static int dgpu_cmd_export(struct dgpu_file *file, struct dgpu_export *cmd,
			   void __user *ubuf)
{
	struct dgpu_bo *bo;
	int ret = -EINVAL;

	if (cmd->flags & ~DGPU_EXPORT_READ_ONLY ||
	    !PAGE_ALIGNED(cmd->offset) || !PAGE_ALIGNED(cmd->length))
		return -EINVAL;
	bo = dgpu_bo_find(file, cmd->handle);
	if (!bo)
		return -ENOENT;
	if (cmd->offset < bo->length) {
		if (!cmd->length)
			cmd->length = bo->length - cmd->offset;
		if (cmd->length <= bo->length - cmd->offset)
			ret = dgpu_export_fd(bo, cmd, ubuf);
	}
	dgpu_bo_put(bo);
	return ret;
}

static int dgpu_cmd_submit(struct dgpu_file *file, void *arg)
{
	struct dgpu_submit *cmd = arg;

	if (cmd->flags & ~DGPU_SUBMIT_ASYNC)
		return -EINVAL;
	return dgpu_submit(file, cmd);
}

static int dgpu_cmd_wait(struct dgpu_file *file, void *arg)
{
	struct dgpu_wait *cmd = arg;

	return dgpu_engine_wait(file->dg, cmd->seq, cmd->timeout_ms);
}

static int dgpu_cmd_move(struct dgpu_file *file, void *arg)
{
	struct dgpu_move *cmd = arg;
	struct dgpu_bo *bo;
	int ret;

	if (cmd->__reserved || (cmd->place != DGPU_PLACE_VRAM &&
				cmd->place != DGPU_PLACE_SYSTEM))
		return -EINVAL;
	bo = dgpu_bo_find(file, cmd->handle);
	if (!bo)
		return -ENOENT;
	ret = dgpu_bo_move(bo, cmd->place);
	dgpu_bo_put(bo);
	return ret;
}

static int dgpu_cmd_buffer(struct dgpu_file *file, void *arg)
{
	struct dgpu_buffer *cmd = arg;
	struct dgpu_bo *bo = dgpu_bo_find(file, cmd->handle);

	if (!bo)
		return -ENOENT;
	dma_resv_lock(&bo->resv, NULL);
	*cmd = (struct dgpu_buffer) {
		.size = cmd->size,
		.handle = cmd->handle,
		.out_length = bo->length,
		.out_place = bo->revoked ? DGPU_PLACE_NONE : bo->store->place,
		.out_pins = bo->pins,
		.out_exports = bo->nexports,
		.out_mappings = bo->mapped,
		.out_maps = bo->maps,
		.out_moves = bo->moves,
	};
	if (cmd->out_place == DGPU_PLACE_VRAM)
		cmd->out_offset = bo->store->start[0];
	dma_resv_unlock(&bo->resv);
	dgpu_bo_put(bo);
	return 0;
}

static int dgpu_cmd_peer(struct dgpu_file *file, void *arg)
{
	struct dgpu_peer *cmd = arg;
	struct file *filp;
	int ret = -EINVAL;

	if (cmd->flags & ~(DGPU_PEER_WRITE | DGPU_PEER_UNORDERED) ||
	    cmd->__reserved || !cmd->length)
		return -EINVAL;
	filp = fget(cmd->fd);
	if (!filp)
		return -EBADF;
	if (filp->f_op == &dgpu_fops)
		ret = dgpu_peer_copy(file, filp->private_data, cmd);
	fput(filp);
	return ret;
}

static int dgpu_cmd_share(struct dgpu_file *file, void *arg)
{
	struct dgpu_share *cmd = arg;
	struct dgpu_bo *bo;

	if (cmd->__reserved)
		return -EINVAL;
	bo = dgpu_bo_find(file, cmd->handle);
	if (!bo)
		return -ENOENT;
	cmd->out_name = dgpu_bo_name(bo, &cmd->out_users);
	dgpu_bo_put(bo);
	return 0;
}

static int dgpu_cmd_open(struct dgpu_file *file, void *arg)
{
	struct dgpu_open *cmd = arg;
	struct dgpu_bo *bo;
	int ret;

	if (cmd->flags || cmd->__reserved)
		return -EINVAL;
	bo = dgpu_bo_open(file->dg, cmd->name);
	if (!bo)
		return -ENOENT;
	cmd->out_length = bo->length;
	/* All mappings are zapped by one inode. */
	ret = bo->inode != file->inode ? -EXDEV :
	      xa_alloc(&file->handles, &cmd->out_handle, bo,
		       XA_LIMIT(1, DGPU_MAX_HANDLE), GFP_KERNEL_ACCOUNT);
	if (ret)
		dgpu_bo_leave(bo);
	cmd->out_mmap = (u64)cmd->out_handle << DGPU_COOKIE_SHIFT;
	return ret;
}

union dgpu_cmd_buf {
	u32 size;
	struct dgpu_info info;
	struct dgpu_alloc alloc;
	struct dgpu_handle handle;
	struct dgpu_export export;
	struct dgpu_submit submit;
	struct dgpu_wait wait;
	struct dgpu_move move;
	struct dgpu_buffer buffer;
	struct dgpu_peer peer;
	struct dgpu_share share;
	struct dgpu_open open;
};

struct dgpu_ioctl_op {
	unsigned int cmd;
	unsigned int size;
	int (*execute)(struct dgpu_file *file, void *arg);
};

#define IOCTL_OP(_ioctl, _fn, _struct)					\
	[_IOC_NR(_ioctl)] = { .cmd = _ioctl, .size = sizeof(_struct),	\
			      .execute = _fn }

static const struct dgpu_ioctl_op dgpu_ioctl_ops[] = {
	IOCTL_OP(DGPU_IOCTL_INFO, dgpu_cmd_info, struct dgpu_info),
	IOCTL_OP(DGPU_IOCTL_ALLOC, dgpu_cmd_alloc, struct dgpu_alloc),
	IOCTL_OP(DGPU_IOCTL_FREE, dgpu_cmd_free, struct dgpu_handle),
	IOCTL_OP(DGPU_IOCTL_EXPORT, NULL, struct dgpu_export),
	IOCTL_OP(DGPU_IOCTL_SUBMIT, dgpu_cmd_submit, struct dgpu_submit),
	IOCTL_OP(DGPU_IOCTL_WAIT, dgpu_cmd_wait, struct dgpu_wait),
	IOCTL_OP(DGPU_IOCTL_MOVE, dgpu_cmd_move, struct dgpu_move),
	IOCTL_OP(DGPU_IOCTL_REVOKE, dgpu_cmd_revoke, struct dgpu_handle),
	IOCTL_OP(DGPU_IOCTL_BUFFER, dgpu_cmd_buffer, struct dgpu_buffer),
	IOCTL_OP(DGPU_IOCTL_PEER, dgpu_cmd_peer, struct dgpu_peer),
	IOCTL_OP(DGPU_IOCTL_SHARE, dgpu_cmd_share, struct dgpu_share),
	IOCTL_OP(DGPU_IOCTL_OPEN, dgpu_cmd_open, struct dgpu_open),
};

static long dgpu_execute(struct dgpu_file *file, const struct dgpu_ioctl_op *op,
			 union dgpu_cmd_buf *buf, void __user *ubuf)
{
	struct dgpu_handle undo = { .handle = buf->alloc.out_handle };
	int ret;

	if (!op->execute)
		return dgpu_cmd_export(file, &buf->export, ubuf);
	ret = op->execute(file, buf);
	/* Results of a job that failed are results, too. */
	if (ret && ret != -EIO)
		return ret;
	if (!copy_to_user(ubuf, buf, op->size))
		return ret;
	undo.handle = op->cmd == DGPU_IOCTL_OPEN ? buf->open.out_handle :
						   buf->alloc.out_handle;
	if (op->cmd == DGPU_IOCTL_ALLOC || op->cmd == DGPU_IOCTL_OPEN)
		dgpu_cmd_free(file, &undo);
	return -EFAULT;
}

static long dgpu_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	struct dgpu_file *file = filp->private_data;
	void __user *ubuf = (void __user *)arg;
	const struct dgpu_ioctl_op *op;
	union dgpu_cmd_buf buf;
	u32 size;
	int ret;

	if (_IOC_NR(cmd) >= ARRAY_SIZE(dgpu_ioctl_ops) ||
	    dgpu_ioctl_ops[_IOC_NR(cmd)].cmd != cmd)
		return -ENOTTY;
	op = &dgpu_ioctl_ops[_IOC_NR(cmd)];
	if (READ_ONCE(file->dg->gone))
		return -ENODEV;
	if (get_user(size, (u32 __user *)ubuf))
		return -EFAULT;
	/* There has been one version only. */
	if (size < op->size)
		return -EINVAL;
	if (size > PAGE_SIZE)
		return -E2BIG;
	memset(&buf, 0, sizeof(buf));
	ret = copy_struct_from_user(&buf, op->size, ubuf, size);
	if (ret)
		return ret;
	/* It may have been changed between the two copies. */
	buf.size = size;
	return dgpu_execute(file, op, &buf, ubuf);
}

static int dgpu_mmap(struct file *filp, struct vm_area_struct *vma)
{
	struct dgpu_file *file = filp->private_data;
	unsigned long handle = vma->vm_pgoff >>
			       (DGPU_COOKIE_SHIFT - PAGE_SHIFT);
	struct dgpu_bo *bo;
	int ret;

	if (handle > DGPU_MAX_HANDLE)
		return -EINVAL;
	bo = dgpu_bo_find(file, handle);
	if (!bo)
		return -EINVAL;
	/* Where zapping looks for it, whichever handle it is mapped by. */
	vma->vm_pgoff += (bo->cookie >> PAGE_SHIFT) -
			 (handle << (DGPU_COOKIE_SHIFT - PAGE_SHIFT));
	ret = dgpu_bo_mmap(bo, vma);
	if (ret)
		dgpu_bo_put(bo);
	return ret;
}

static int dgpu_open(struct inode *inode, struct file *filp)
{
	struct dgpu *dg = container_of(inode->i_cdev, struct dgpu, cdev);
	struct dgpu_file *file;

	if (READ_ONCE(dg->gone))
		return -ENODEV;
	file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);
	if (!file)
		return -ENOMEM;
	get_device(&dg->dev);
	file->dg = dg;
	file->inode = inode;
	xa_init_flags(&file->handles, XA_FLAGS_ALLOC1);
	filp->private_data = file;
	return 0;
}

static int dgpu_release(struct inode *inode, struct file *filp)
{
	struct dgpu_file *file = filp->private_data;
	struct dgpu_bo *bo;
	unsigned long handle;

	xa_for_each(&file->handles, handle, bo) {
		xa_erase(&file->handles, handle);
		dgpu_bo_leave(bo);
	}
	xa_destroy(&file->handles);
	put_device(&file->dg->dev);
	kfree(file);
	return 0;
}

const struct file_operations dgpu_fops = {
	.owner		= THIS_MODULE,
	.open		= dgpu_open,
	.release	= dgpu_release,
	.unlocked_ioctl	= dgpu_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.mmap		= dgpu_mmap,
};
