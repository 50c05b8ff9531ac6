/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A range of bus addresses in which pages can be mapped one by one, since 6.16; and
 * whether a device can only raise interrupts that are its own, since 6.3. Where the
 * kernel has neither, there is no such range. Included by the NTB backend.
 */
#ifndef _FABREX_COMPAT_IOVA_H
#define _FABREX_COMPAT_IOVA_H

#include <linux/dma-mapping.h>
#include <linux/msi.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
#define fabrex_isolated_msi(dev)	msi_device_has_isolated_msi(dev)
#define FABREX_HAVE_IOVA		IS_ENABLED(CONFIG_IOMMU_DMA)
#else
#define fabrex_isolated_msi(dev)	((void)(dev), false)
#define FABREX_HAVE_IOVA		false

struct dma_iova_state {
	dma_addr_t addr;
	u64 __size;
};

static inline bool dma_iova_try_alloc(struct device *dev,
				      struct dma_iova_state *state,
				      phys_addr_t phys, size_t size)
{
	return false;
}

static inline void dma_iova_free(struct device *dev,
				 struct dma_iova_state *state)
{
}

static inline int dma_iova_link(struct device *dev,
				struct dma_iova_state *state, phys_addr_t phys,
				size_t offset, size_t size,
				enum dma_data_direction dir,
				unsigned long attrs)
{
	return -EOPNOTSUPP;
}

static inline int dma_iova_sync(struct device *dev,
				struct dma_iova_state *state, size_t offset,
				size_t size)
{
	return -EOPNOTSUPP;
}

static inline void dma_iova_unlink(struct device *dev,
				   struct dma_iova_state *state, size_t offset,
				   size_t size, enum dma_data_direction dir,
				   unsigned long attrs)
{
}
#endif

#endif
