/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The device for the DMA of an NTB. Some stable kernels got ntb_get_dma_dev() late,
 * so the header is asked, see driver/ntb/Kbuild. Included by the NTB backend.
 */
#ifndef _FABREX_COMPAT_NTB_H
#define _FABREX_COMPAT_NTB_H

#include <linux/ntb.h>

#ifdef FABREX_HAVE_NTB_GET_DMA_DEV
#define fabrex_ntb_dma_dev(ntb)	ntb_get_dma_dev(ntb)
#else
#define fabrex_ntb_dma_dev(ntb)	(&(ntb)->pdev->dev)
#endif

#endif
