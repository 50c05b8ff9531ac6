/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between kernels 6.1 and 7.2 for drivers that export memory of a
 * PCI device as dma-bufs. Not for fabrex.ko, which imports them.
 */
#ifndef _FABREX_COMPAT_EXPORTER_H
#define _FABREX_COMPAT_EXPORTER_H

#include <linux/dma-buf.h>
#include <linux/pci-p2pdma.h>
#include <linux/version.h>

/* The call was renamed together with the importers' callback, see compat.h. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 1, 0)
#define fabrex_dma_buf_notify(dmabuf)	dma_buf_invalidate_mappings(dmabuf)
#else
#define fabrex_dma_buf_notify(dmabuf)	dma_buf_move_notify(dmabuf)
#endif

/* 7.x has peer-to-peer memory without struct page: a provider, and a helper
 * that maps it. There, a fence that has signalled no longer needs its module.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 2, 0)
#include <linux/dma-buf-mapping.h>
#define FABREX_HAVE_PROVIDER	IS_ENABLED(CONFIG_PCI_P2PDMA)
#define FABREX_FENCE_HOLDS_MODULE	0
#else
#define FABREX_HAVE_PROVIDER	0
#define FABREX_FENCE_HOLDS_MODULE	1
#endif

#endif
