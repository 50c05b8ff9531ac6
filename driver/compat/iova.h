/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A range of bus addresses in which pages can be mapped one by one, and whether a
 * device can only raise interrupts that are its own: Linux 6.16 has both. Some kernels
 * may get them late, so the headers are asked, see driver/ntb/Kbuild. Where one is
 * missing, there is no such range. Included by the NTB backend.
 */
#ifndef _FABREX_COMPAT_IOVA_H
#define _FABREX_COMPAT_IOVA_H

#include <linux/dma-mapping.h>
#include <linux/msi.h>

#ifdef FABREX_HAVE_DMA_IOVA
#define fabrex_isolated_msi(dev)	msi_device_has_isolated_msi(dev)
#define FABREX_IOVA		IS_ENABLED(CONFIG_IOMMU_DMA)
#else
#define fabrex_isolated_msi(dev)	((void)(dev), false)
#define FABREX_IOVA		false

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
