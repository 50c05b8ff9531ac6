// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of processes: pinned, and mapped for DMA. Called by mr.c.
 *
 * Pinned pages are charged to mm->pinned_vm and limited by RLIMIT_MEMLOCK, as
 * in RDMA: both count towards that limit. The sum of a user's processes is
 * limited too, see fabrex_charge_locked().
 */
#include <linux/capability.h>
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "memory.h"

#define PIN_BATCH	(PAGE_SIZE / sizeof(struct page *))

static int fabrex_pin_charge(struct fabrex_pin *pin, struct fabrex_port *port)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	struct mm_struct *mm = current->mm;
	u64 pinned;

	pinned = atomic64_add_return(pin->npages, &mm->pinned_vm);
	if (pinned > limit && !capable(CAP_IPC_LOCK)) {
		atomic64_sub(pin->npages, &mm->pinned_vm);
		return -ENOMEM;
	}
	mmgrab(mm);
	pin->mm = mm;
	pin->port = port;
	atomic64_add((u64)pin->npages << PAGE_SHIFT, &port->pinned);
	return 0;
}

static void fabrex_pin_uncharge(struct fabrex_pin *pin)
{
	atomic64_sub((u64)pin->npages << PAGE_SHIFT, &pin->port->pinned);
	atomic64_sub(pin->npages, &pin->mm->pinned_vm);
	mmdrop(pin->mm);
	pin->mm = NULL;
}

/* Pin one batch and append it to the table. */
static int fabrex_pin_some(struct fabrex_pin *pin, unsigned long addr,
			   unsigned long left, struct page **pages)
{
	unsigned int flags = FOLL_LONGTERM |
			     (pin->writable ? FOLL_WRITE : FABREX_FOLL_READ);
	int n, ret;

	if (fatal_signal_pending(current))
		return -EINTR;
	cond_resched();
	n = pin_user_pages_fast(addr, min_t(unsigned long, left, PIN_BATCH),
				flags, pages);
	if (n <= 0)
		return n ?: -EFAULT;
	ret = sg_alloc_append_table_from_pages(&pin->sgt, pages, n, 0,
					       (unsigned long)n << PAGE_SHIFT,
					       pin->port->max_segment, left - n,
					       GFP_KERNEL_ACCOUNT);
	if (ret) {
		unpin_user_pages(pages, n);
		return ret;
	}
	return n;
}

static int fabrex_pin_all(struct fabrex_pin *pin, unsigned long addr)
{
	unsigned long left = pin->npages;
	struct page **pages;
	int ret = 0;

	pages = (struct page **)__get_free_page(GFP_KERNEL_ACCOUNT);
	if (!pages)
		return -ENOMEM;
	while (left) {
		ret = fabrex_pin_some(pin, addr, left, pages);
		if (ret < 0)
			break;
		left -= ret;
		addr += (unsigned long)ret << PAGE_SHIFT;
	}
	free_page((unsigned long)pages);
	return min(ret, 0);
}

static void fabrex_pin_release(struct fabrex_pin *pin)
{
	struct scatterlist *sg;
	int i;

	for_each_sgtable_sg(&pin->sgt.sgt, sg, i) {
		unpin_user_page_range_dirty_lock(sg_page(sg),
						 sg->length >> PAGE_SHIFT,
						 pin->writable);
		cond_resched();
	}
	sg_free_append_table(&pin->sgt);
}

/**
 * fabrex_pin_size() - get the number of pages of a range of user memory
 * @addr:   user address
 * @length: in bytes, not 0
 * @npages: result
 *
 * Context: Process.
 * Return: 0; -EINVAL if the numbers overflow; -EFAULT if the range is beyond
 * user memory
 */
int fabrex_pin_size(u64 addr, u64 length, u64 *npages)
{
	unsigned long start;
	u64 end;

	if (check_add_overflow(addr, length, &end) || end > ULONG_MAX ||
	    PAGE_ALIGN(end) < end)
		return -EINVAL;
	if (!access_ok(u64_to_user_ptr(addr), length))
		return -EFAULT;
	start = untagged_addr((unsigned long)addr);
	*npages = PAGE_ALIGN(offset_in_page(start) + length) >> PAGE_SHIFT;
	return *npages > INT_MAX ? -EINVAL : 0;
}

/**
 * fabrex_pin() - pin memory of the calling process
 * @pin:      zeroed; fabrex_unpin() undoes this
 * @port:     that will access it
 * @addr:     user address
 * @length:   in bytes, not 0
 * @writable: for the device
 *
 * Context: Process; sleeps. Accesses user memory: not with registration_lock
 * held.
 * Return: 0; -EFAULT if it is not mapped, or not writable although it has to
 * be; -ENOMEM if there is no memory or RLIMIT_MEMLOCK is exceeded; -EINVAL if
 * the numbers overflow; -EINTR if the caller is being killed
 */
int fabrex_pin(struct fabrex_pin *pin, struct fabrex_port *port, u64 addr,
	       u64 length, bool writable)
{
	unsigned long start;
	u64 npages;
	int ret;

	ret = fabrex_pin_size(addr, length, &npages);
	if (ret)
		return ret;
	start = untagged_addr((unsigned long)addr);
	pin->offset = offset_in_page(start);
	pin->length = length;
	pin->writable = writable;
	pin->npages = npages;
	ret = fabrex_pin_charge(pin, port);
	if (ret)
		return ret;
	ret = fabrex_pin_all(pin, start & PAGE_MASK);
	if (ret) {
		fabrex_pin_release(pin);
		fabrex_pin_uncharge(pin);
	}
	return ret;
}

static enum dma_data_direction fabrex_pin_dir(const struct fabrex_pin *pin)
{
	return pin->writable ? DMA_BIDIRECTIONAL : DMA_TO_DEVICE;
}

/**
 * fabrex_pin_map() - map pinned memory for the device
 * @pin: pinned; fabrex_unpin() undoes this
 *
 * Context: Process; sleeps. With registration_lock held.
 * Return: 0, also if the port has no device that does DMA; -EOPNOTSUPP if DMA is
 * bounced or not coherent; an error of the DMA API
 */
int fabrex_pin_map(struct fabrex_pin *pin)
{
	struct device *dev = pin->port->info.dma_dev;
	int ret;

	if (!dev)
		return 0;
	ret = dma_map_sgtable(dev, &pin->sgt.sgt, fabrex_pin_dir(pin), 0);
	if (ret)
		return ret;
	pin->mapped = true;
	if (fabrex_coherent(dev, &pin->sgt.sgt))
		return 0;
	dev_err_ratelimited(&pin->port->dev,
			    "the device cannot address this memory, and DMA would be bounced; use an IOMMU or other memory\n");
	return -EOPNOTSUPP;
}

/**
 * fabrex_pin_memory() - get the memory of a region
 * @pin:    mapped for the device
 * @memory: result
 *
 * Context: Any.
 */
void fabrex_pin_memory(const struct fabrex_pin *pin,
		       struct fabrex_mr_memory *memory)
{
	*memory = (struct fabrex_mr_memory) {
		.dev = pin->port->info.dma_dev,
		.sgt = &pin->sgt.sgt,
		.to = (u64)pin->npages << PAGE_SHIFT,
		.offset = pin->offset,
	};
}

/**
 * fabrex_unpin() - undo fabrex_pin() and fabrex_pin_map()
 * @pin: pinned or not; the device no longer accesses it
 *
 * Context: Process; sleeps. With registration_lock held if it is mapped.
 */
void fabrex_unpin(struct fabrex_pin *pin)
{
	if (!pin->mm)
		return;
	if (pin->mapped)
		dma_unmap_sgtable(pin->port->info.dma_dev, &pin->sgt.sgt,
				  fabrex_pin_dir(pin), 0);
	pin->mapped = false;
	fabrex_pin_release(pin);
	fabrex_pin_uncharge(pin);
}
