// SPDX-License-Identifier: GPL-2.0-only
/*
 * dma-bufs of buffers: dynamic, pinnable, peer to peer, revocable. Called by
 * file.c and by the dma-buf framework.
 */
#include <linux/fs.h>
#include <linux/slab.h>

#include "drv.h"

static int dgpu_attach_check(struct dgpu_export_buf *exp,
			     struct dma_buf_attachment *attach)
{
	struct dgpu *dg = exp->bo->dg;

	if (exp->bo->revoked)
		return -ENODEV;
	if (!attach->peer2peer) {
		dev_warn_ratelimited(&dg->dev,
				     "%s cannot import: it does not allow peer-to-peer memory\n",
				     dev_name(attach->dev));
		return -EOPNOTSUPP;
	}
	if (dgpu_without_p2pdma)
		return 0;
	if (pci_p2pdma_distance(dg->pdev, attach->dev, false) >= 0)
		return 0;
	dev_warn_ratelimited(&dg->dev, "%s cannot import: %s\n",
			     dev_name(attach->dev),
			     IS_ENABLED(CONFIG_PCI_P2PDMA) ?
			     "the kernel knows no way between the two" :
			     "kernel without PCI_P2PDMA; without_p2pdma=1 tries all the same");
	return -EOPNOTSUPP;
}

static int dgpu_dmabuf_attach(struct dma_buf *dmabuf,
			      struct dma_buf_attachment *attach)
{
	struct dgpu_export_buf *exp = dmabuf->priv;
	int ret;

	ret = dma_resv_lock_interruptible(&exp->bo->resv, NULL);
	if (ret)
		return ret;
	/* While it is not revoked, the PCI device is there to be looked at. */
	ret = dgpu_attach_check(exp, attach);
	dma_resv_unlock(&exp->bo->resv);
	return ret;
}

static int dgpu_dmabuf_pin(struct dma_buf_attachment *attach)
{
	struct dgpu_export_buf *exp = attach->dmabuf->priv;

	dma_resv_assert_held(&exp->bo->resv);
	if (exp->bo->revoked)
		return -ENODEV;
	exp->bo->pins++;
	return 0;
}

static void dgpu_dmabuf_unpin(struct dma_buf_attachment *attach)
{
	struct dgpu_export_buf *exp = attach->dmabuf->priv;

	dma_resv_assert_held(&exp->bo->resv);
	if (!WARN_ON(!exp->bo->pins))
		exp->bo->pins--;
}

static struct sg_table *dgpu_dmabuf_map(struct dma_buf_attachment *attach,
					enum dma_data_direction dir)
{
	struct dgpu_export_buf *exp = attach->dmabuf->priv;
	struct dgpu_bo *bo = exp->bo;
	struct sg_table *sgt;
	int ret;

	dma_resv_assert_held(&bo->resv);
	if (bo->revoked)
		return ERR_PTR(-ENODEV);
	ret = dgpu_bo_bring_back(bo);
	if (ret)
		return ERR_PTR(ret);
	sgt = dgpu_sgt_map(exp, attach, dir);
	if (IS_ERR(sgt))
		return sgt;
	bo->mapped++;
	bo->maps++;
	atomic_inc(&bo->dg->nmaps);
	return sgt;
}

static void dgpu_dmabuf_unmap(struct dma_buf_attachment *attach,
			      struct sg_table *sgt, enum dma_data_direction dir)
{
	struct dgpu_export_buf *exp = attach->dmabuf->priv;
	struct dgpu_bo *bo = exp->bo;

	dma_resv_assert_held(&bo->resv);
	dgpu_sgt_unmap(exp, attach, sgt, dir);
	atomic_dec(&bo->dg->nmaps);
	WRITE_ONCE(bo->mapped, bo->mapped - 1);
	if (!bo->mapped)
		wake_up_all(&bo->idle);
}

static void dgpu_dmabuf_release(struct dma_buf *dmabuf)
{
	struct dgpu_export_buf *exp = dmabuf->priv;
	struct dgpu_bo *bo = exp->bo;

	dma_resv_lock(&bo->resv, NULL);
	if (!list_empty(&exp->list)) {
		list_del(&exp->list);
		bo->nexports--;
		atomic_dec(&bo->dg->nexports);
	}
	dma_resv_unlock(&bo->resv);
	iput(exp->inode);
	kfree(exp);
	dgpu_bo_put(bo);
}

static vm_fault_t dgpu_dmabuf_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct dgpu_export_buf *exp = vma->vm_private_data;

	return dgpu_bo_fault(vmf, exp->bo, ((u64)vma->vm_pgoff << PAGE_SHIFT) +
					   exp->offset);
}

static const struct vm_operations_struct dgpu_dmabuf_vm_ops = {
	.fault = dgpu_dmabuf_fault,
};

/* The framework has compared with the size; the file keeps all alive. */
static int dgpu_dmabuf_mmap(struct dma_buf *dmabuf, struct vm_area_struct *vma)
{
	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	vm_flags_set(vma, VM_PFNMAP | VM_IO | VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_ops = &dgpu_dmabuf_vm_ops;
	vma->vm_private_data = dmabuf->priv;
	return 0;
}

/* Write-combining or cached and coherent: only fences count, and for those
 * the framework waits.
 */
static int dgpu_dmabuf_cpu(struct dma_buf *dmabuf, enum dma_data_direction dir)
{
	struct dgpu_export_buf *exp = dmabuf->priv;

	return READ_ONCE(exp->bo->revoked) ? -ENODEV : 0;
}

static const struct dma_buf_ops dgpu_dmabuf_ops = {
	.attach = dgpu_dmabuf_attach,
	.pin = dgpu_dmabuf_pin,
	.unpin = dgpu_dmabuf_unpin,
	.map_dma_buf = dgpu_dmabuf_map,
	.unmap_dma_buf = dgpu_dmabuf_unmap,
	.release = dgpu_dmabuf_release,
	.mmap = dgpu_dmabuf_mmap,
	.begin_cpu_access = dgpu_dmabuf_cpu,
	.end_cpu_access = dgpu_dmabuf_cpu,
};

static int dgpu_export_enlist(struct dgpu_export_buf *exp)
{
	struct dgpu_bo *bo = exp->bo;
	int ret = -ENODEV;

	dma_resv_lock(&bo->resv, NULL);
	if (!bo->revoked) {
		list_add_tail(&exp->list, &bo->exports);
		bo->nexports++;
		atomic_inc(&bo->dg->nexports);
		ret = 0;
	}
	dma_resv_unlock(&bo->resv);
	return ret;
}

/**
 * dgpu_export() - make a dma-buf of part of a buffer
 * @bo:     buffer
 * @offset: first byte
 * @length: bytes; both whole pages inside the buffer
 * @flags:  O_RDWR or O_RDONLY
 *
 * Return: the dma-buf, or an ERR_PTR(); -ENODEV if the buffer is revoked
 */
struct dma_buf *dgpu_export(struct dgpu_bo *bo, u64 offset, u64 length,
			    int flags)
{
	struct dgpu_export_buf *exp = kzalloc(sizeof(*exp), GFP_KERNEL_ACCOUNT);
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct dma_buf *dmabuf;
	int ret;

	if (!exp)
		return ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(&exp->list);
	exp->bo = bo;
	exp->offset = offset;
	exp->length = length;
	info.ops = &dgpu_dmabuf_ops;
	info.size = length;
	info.flags = flags;
	info.resv = &bo->resv;
	info.priv = exp;
	dmabuf = dma_buf_export(&info);
	if (IS_ERR(dmabuf)) {
		kfree(exp);
		return dmabuf;
	}
	dgpu_bo_get(bo);
	exp->dmabuf = dmabuf;
	exp->inode = file_inode(dmabuf->file);
	ihold(exp->inode);
	ret = dgpu_export_enlist(exp);
	if (ret) {
		dma_buf_put(dmabuf);
		return ERR_PTR(ret);
	}
	return dmabuf;
}
