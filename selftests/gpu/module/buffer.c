// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffers: their lifetime, revocation, and mappings of processes. Called by
 * file.c, job.c, export.c, pci.c and by page faults.
 */
#include <linux/sched.h>
#include <linux/slab.h>

#include "drv.h"

#define FAULT_AROUND	512ul
#define COMPLAIN_AFTER	(10 * HZ)

static void dgpu_bo_release(struct kref *ref)
{
	struct dgpu_bo *bo = container_of(ref, struct dgpu_bo, ref);
	struct dgpu *dg = bo->dg;

	mutex_lock(&dg->lock);
	list_del(&bo->list);
	mutex_unlock(&dg->lock);
	WARN_ON(bo->mapped || bo->pins || !list_empty(&bo->exports));
	dgpu_store_free(dg, bo->store, bo->length);
	dma_resv_fini(&bo->resv);
	atomic_dec(&dg->nbuffers);
	kfree(bo);
	put_device(&dg->dev);
}

/**
 * dgpu_bo_put() - drop a reference
 * @bo: buffer; before the last one, dgpu_bo_revoke() was called
 */
void dgpu_bo_put(struct dgpu_bo *bo)
{
	kref_put(&bo->ref, dgpu_bo_release);
}

static int dgpu_bo_enlist(struct dgpu_bo *bo)
{
	struct dgpu *dg = bo->dg;
	int ret = 0;

	mutex_lock(&dg->lock);
	if (dg->gone)
		ret = -ENODEV;
	else
		list_add_tail(&bo->list, &dg->buffers);
	mutex_unlock(&dg->lock);
	return ret;
}

/**
 * dgpu_bo_new() - make a buffer in VRAM
 * @dg:     GPU
 * @length: bytes, whole pages, not 0
 * @align:  of its place, at least a page
 * @flags:  DGPU_ALLOC_*
 *
 * Return: the buffer, or an ERR_PTR()
 */
struct dgpu_bo *dgpu_bo_new(struct dgpu *dg, u64 length, u64 align, u32 flags)
{
	struct dgpu_bo *bo = kzalloc(sizeof(*bo), GFP_KERNEL_ACCOUNT);
	int ret;

	if (!bo)
		return ERR_PTR(-ENOMEM);
	kref_init(&bo->ref);
	bo->dg = dg;
	bo->users = 1;
	bo->length = length;
	bo->align = align;
	bo->flags = flags;
	INIT_LIST_HEAD(&bo->exports);
	init_waitqueue_head(&bo->idle);
	bo->store = dgpu_store_vram(dg, length, align,
				    flags & DGPU_ALLOC_SCATTER);
	if (IS_ERR(bo->store)) {
		ret = PTR_ERR(bo->store);
		kfree(bo);
		return ERR_PTR(ret);
	}
	dma_resv_init(&bo->resv);
	ret = dgpu_bo_enlist(bo);
	if (ret) {
		dgpu_store_free(dg, bo->store, length);
		dma_resv_fini(&bo->resv);
		kfree(bo);
		return ERR_PTR(ret);
	}
	get_device(&dg->dev);
	atomic_inc(&dg->nbuffers);
	return bo;
}

/**
 * dgpu_bo_zap() - take the pages out of all mappings of processes
 * @bo: buffer, its reservation held
 */
void dgpu_bo_zap(struct dgpu_bo *bo)
{
	struct dgpu_export_buf *exp;

	if (bo->inode)
		unmap_mapping_range(bo->inode->i_mapping, bo->cookie,
				    bo->length, 1);
	list_for_each_entry(exp, &bo->exports, list)
		unmap_mapping_range(exp->inode->i_mapping, 0, 0, 1);
}

/**
 * dgpu_bo_notify() - tell all importers that their mappings are void
 * @bo: buffer, its reservation held
 */
void dgpu_bo_notify(struct dgpu_bo *bo)
{
	struct dgpu_export_buf *exp;

	list_for_each_entry(exp, &bo->exports, list)
		fabrex_dma_buf_notify(exp->dmabuf);
}

/* Importers have to give mappings back by themselves once they are told. */
static void dgpu_bo_wait_unmapped(struct dgpu_bo *bo)
{
	while (!wait_event_timeout(bo->idle, !READ_ONCE(bo->mapped),
				   COMPLAIN_AFTER))
		dev_warn(&bo->dg->dev,
			 "a revoked buffer is still mapped by %u importers\n",
			 READ_ONCE(bo->mapped));
}

/**
 * dgpu_bo_revoke() - take the memory away for good
 * @bo: buffer
 *
 * On return nothing accesses the memory, and it is free for others. May be
 * called more than once, and at the same time.
 */
void dgpu_bo_revoke(struct dgpu_bo *bo)
{
	struct dgpu_store *store;

	dma_resv_lock(&bo->resv, NULL);
	if (!bo->revoked) {
		bo->revoked = true;
		dgpu_bo_zap(bo);
		dgpu_bo_notify(bo);
	}
	dma_resv_wait_timeout(&bo->resv, DMA_RESV_USAGE_BOOKKEEP, false,
			      MAX_SCHEDULE_TIMEOUT);
	dma_resv_unlock(&bo->resv);
	dgpu_bo_wait_unmapped(bo);
	dma_resv_lock(&bo->resv, NULL);
	store = bo->store;
	bo->store = NULL;
	dma_resv_unlock(&bo->resv);
	dgpu_store_free(bo->dg, store, bo->length);
}

/**
 * dgpu_bo_orphan() - the last handle goes
 * @bo: buffer, the caller has erased the handle
 */
void dgpu_bo_orphan(struct dgpu_bo *bo)
{
	dgpu_bo_revoke(bo);
	dma_resv_lock(&bo->resv, NULL);
	bo->inode = NULL;
	dma_resv_unlock(&bo->resv);
	dgpu_bo_put(bo);
}

/* The next one that has its memory, moved to the list of those without. */
static struct dgpu_bo *dgpu_next_victim(struct dgpu *dg)
{
	struct dgpu_bo *bo, *found = NULL;

	mutex_lock(&dg->lock);
	list_for_each_entry(bo, &dg->buffers, list) {
		if (!kref_get_unless_zero(&bo->ref))
			continue;
		list_move_tail(&bo->list, &dg->revoked);
		found = bo;
		break;
	}
	mutex_unlock(&dg->lock);
	return found;
}

/**
 * dgpu_revoke_all() - the GPU goes
 * @dg: GPU, with @gone set
 */
void dgpu_revoke_all(struct dgpu *dg)
{
	struct dgpu_bo *bo;

	while ((bo = dgpu_next_victim(dg))) {
		dgpu_bo_revoke(bo);
		dgpu_bo_put(bo);
	}
}

static vm_fault_t dgpu_insert(struct vm_area_struct *vma, struct dgpu_bo *bo,
			      unsigned long addr, u64 offset)
{
	pgprot_t prot = vm_get_page_prot(vma->vm_flags);
	u64 left, at = dgpu_store_at(bo->store, offset, &left);

	if (bo->store->pages)
		return vmf_insert_pfn_prot(vma, addr, PHYS_PFN(at), prot);
	return vmf_insert_pfn_prot(vma, addr, PHYS_PFN(bo->dg->vram + at),
				   pgprot_writecombine(prot));
}

/* The page that is needed, then those around it as far as they go. */
static vm_fault_t dgpu_insert_around(struct vm_fault *vmf, struct dgpu_bo *bo,
				     u64 first)
{
	struct vm_area_struct *vma = vmf->vma;
	unsigned long page = (vmf->address - vma->vm_start) >> PAGE_SHIFT;
	unsigned long i = round_down(page, FAULT_AROUND);
	unsigned long end = min(i + FAULT_AROUND, vma_pages(vma));
	vm_fault_t ret;

	ret = dgpu_insert(vma, bo, vmf->address & PAGE_MASK,
			  first + ((u64)page << PAGE_SHIFT));
	for (; i < end && ret == VM_FAULT_NOPAGE; i++) {
		u64 offset = first + ((u64)i << PAGE_SHIFT);

		if (offset >= bo->length ||
		    dgpu_insert(vma, bo, vma->vm_start + (i << PAGE_SHIFT),
				offset) != VM_FAULT_NOPAGE)
			break;
	}
	return ret;
}

/**
 * dgpu_bo_fault() - a process touches a page
 * @vmf:   fault
 * @bo:    buffer that is mapped there
 * @first: byte of the buffer at the start of the mapping
 *
 * Return: VM_FAULT_*
 */
vm_fault_t dgpu_bo_fault(struct vm_fault *vmf, struct dgpu_bo *bo, u64 first)
{
	vm_fault_t ret = VM_FAULT_SIGBUS;
	u64 offset = first + (vmf->address & PAGE_MASK) - vmf->vma->vm_start;

	if (dma_resv_lock_interruptible(&bo->resv, NULL))
		return VM_FAULT_NOPAGE;
	if (!bo->revoked && offset < bo->length)
		ret = dgpu_insert_around(vmf, bo, first);
	dma_resv_unlock(&bo->resv);
	return ret;
}

static vm_fault_t dgpu_vma_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct dgpu_bo *bo = vma->vm_private_data;

	return dgpu_bo_fault(vmf, bo, ((u64)vma->vm_pgoff << PAGE_SHIFT) -
				      bo->cookie);
}

static void dgpu_vma_open(struct vm_area_struct *vma)
{
	dgpu_bo_get(vma->vm_private_data);
}

static void dgpu_vma_close(struct vm_area_struct *vma)
{
	dgpu_bo_put(vma->vm_private_data);
}

static const struct vm_operations_struct dgpu_vm_ops = {
	.open = dgpu_vma_open,
	.close = dgpu_vma_close,
	.fault = dgpu_vma_fault,
};

/**
 * dgpu_bo_mmap() - map part of a buffer
 * @bo:  buffer; the reference is the mapping's if it succeeds
 * @vma: at an offset counted from @bo's cookie
 *
 * Return: 0; -EINVAL if it is private or beyond the end
 */
int dgpu_bo_mmap(struct dgpu_bo *bo, struct vm_area_struct *vma)
{
	u64 offset = ((u64)vma->vm_pgoff << PAGE_SHIFT) - bo->cookie;
	u64 length = vma->vm_end - vma->vm_start;

	if (!(vma->vm_flags & VM_SHARED) || offset > bo->length ||
	    length > bo->length - offset)
		return -EINVAL;
	vm_flags_set(vma, VM_PFNMAP | VM_IO | VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_ops = &dgpu_vm_ops;
	vma->vm_private_data = bo;
	return 0;
}
