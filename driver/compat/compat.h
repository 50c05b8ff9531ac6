/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between kernels 6.1 and 7.2. No other file tests a version.
 * Included before every source file of the modules, see their Kbuild files.
 */
#ifndef _FABREX_COMPAT_H
#define _FABREX_COMPAT_H

#include <linux/eventfd.h>
#include <linux/export.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/netlink.h>
#include <linux/version.h>

/* Symbol namespaces are strings since 6.13. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
#define FABREX_EXPORT(sym)	EXPORT_SYMBOL_NS_GPL(sym, "FABREX")
#define FABREX_IMPORT_NS	MODULE_IMPORT_NS("FABREX")
#define FABREX_DMA_BUF_IMPORT_NS	MODULE_IMPORT_NS("DMA_BUF")
#else
#define FABREX_EXPORT(sym)	EXPORT_SYMBOL_NS_GPL(sym, FABREX)
#define FABREX_IMPORT_NS	MODULE_IMPORT_NS(FABREX)
#define FABREX_DMA_BUF_IMPORT_NS	MODULE_IMPORT_NS(DMA_BUF)
#endif

/* eventfd_signal() has no count any more since 6.8. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0)
#define fabrex_eventfd_signal(ctx)	eventfd_signal(ctx)
#else
#define fabrex_eventfd_signal(ctx)	((void)eventfd_signal(ctx, 1))
#endif

/* 7.1 renamed the importer's callback, without other changes. Before 6.14, a
 * kernel without CONFIG_DMABUF_MOVE_NOTIFY pins what is mapped; and if an
 * exporter has no ->pin(), the buffer is mapped from attaching to detaching.
 * Mapping it again returns the same mapping, see fabrex_attach_cached().
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 1, 0)
#define fabrex_invalidate_mappings	invalidate_mappings
#else
#define fabrex_invalidate_mappings	move_notify
#endif

/* Whatever the importer does, only detaching ends the mapping of @attach. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 14, 0)
#define fabrex_attach_cached(attach)	((void)(attach), false)
#else
#define fabrex_attach_cached(attach)	((attach)->sgt != NULL)
#endif

/* Before 6.3 vm_flags is written directly, since then by functions only. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_set(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags |= flags;
}

static inline void vm_flags_clear(struct vm_area_struct *vma,
				  unsigned long flags)
{
	vma->vm_flags &= ~flags;
}
#endif

/* Since 6.2 a long-term pin for reading breaks copy-on-write. Before, only a
 * pin for writing does, which needs force in read-only mappings.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
#define FABREX_FOLL_READ	0
#else
#define FABREX_FOLL_READ	(FOLL_WRITE | FOLL_FORCE)
#endif

/* Behind an IOMMU, dma_need_sync() is true for any mapping: before 6.10 because
 * there are functions to call, and later on kernels that check the use of the
 * DMA API, and once anything has been bounced for the device. Whole pages are
 * not bounced there, so only coherence matters.
 */
#include <linux/dma-map-ops.h>
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
#include <linux/iommu-dma.h>
#define fabrex_dma_by_iommu(dev)	use_dma_iommu(dev)
#else
#define fabrex_dma_by_iommu(dev) \
	(device_iommu_mapped(dev) && get_dma_ops(dev))
#endif
static inline bool fabrex_dma_need_sync(struct device *dev, dma_addr_t addr)
{
	if (fabrex_dma_by_iommu(dev))
		return !dev_is_dma_coherent(dev);
	return dma_need_sync(dev, addr);
}

/* __assign_str() knows the source since 6.10. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#define fabrex_assign_str(dst, src)	__assign_str(dst)
#else
#define fabrex_assign_str(dst, src)	__assign_str(dst, src)
#endif

/* Messages with arguments in extended acks came with 6.2. The text is copied
 * right after the operation has returned; until then it is in one of a few
 * buffers, which are used in turn.
 */
#ifndef NL_SET_ERR_MSG_FMT
#define NETLINK_MAX_FMTMSG_LEN	80
char *fabrex_compat_extack_buf(void);
#define NL_SET_ERR_MSG_FMT(extack, fmt, args...) do {			\
	struct netlink_ext_ack *__extack = (extack);			\
	char *__text;							\
									\
	if (!__extack)							\
		break;							\
	__text = fabrex_compat_extack_buf();				\
	scnprintf(__text, NETLINK_MAX_FMTMSG_LEN, fmt, ##args);		\
	__extack->_msg = __text;					\
} while (0)
#endif

#endif
