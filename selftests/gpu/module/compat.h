/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between kernels 6.1 and 7.2 that draco_gpu.ko meets. No other
 * file of it tests a version.
 */
#ifndef DGPU_COMPAT_H
#define DGPU_COMPAT_H

#include <linux/dma-buf.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/version.h>

/* Namespaces of symbols are strings since 6.13. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
#define DGPU_IMPORT_NS	MODULE_IMPORT_NS("DMA_BUF")
#else
#define DGPU_IMPORT_NS	MODULE_IMPORT_NS(DMA_BUF)
#endif

/* vm_flags may be written directly before 6.3, by functions only since. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_set(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags |= flags;
}
#endif

/*
 * 7.x knows peer-to-peer memory without struct page: a provider, and a helper
 * that maps it. It renamed the call to importers at the same time, and a fence
 * there no longer needs its module once it has signalled.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 2, 0)
#include <linux/dma-buf-mapping.h>
#include <linux/pci-p2pdma.h>
#define DGPU_HAVE_PROVIDER	IS_ENABLED(CONFIG_PCI_P2PDMA)
#define DGPU_FENCE_HOLDS_MODULE	0
#define dgpu_notify(dmabuf)	dma_buf_invalidate_mappings(dmabuf)
#else
#include <linux/pci-p2pdma.h>
#define DGPU_HAVE_PROVIDER	0
#define DGPU_FENCE_HOLDS_MODULE	1
#define dgpu_notify(dmabuf)	dma_buf_move_notify(dmabuf)
#endif

#endif
