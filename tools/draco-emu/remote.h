/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory that a client has mapped without giving us memory: behind an IOMMU
 * that is how it names BARs of its other devices. For copy.c; not with a
 * dma_hold, and not in the thread of a function (so not for windows).
 */
#ifndef EMU_REMOTE_H
#define EMU_REMOTE_H

#include "copy.h"
#include "vfio_user.h"

#define REMOTE_MAX	VU_MAX_DMA

/*
 * Bytes @done .. of a side, within our reach or not, at most REMOTE_MAX.
 * FABREX_WC_*.
 */
unsigned int remote_load(struct side *s, uint64_t done, void *buf, uint64_t n);
unsigned int remote_store(struct side *s, uint64_t done, void *buf,
			  uint64_t n);

#endif
