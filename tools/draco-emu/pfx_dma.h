/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The DMA engine of a Switchtec PFX partition: a function beside the management
 * function, with channels that copy in the host's address space. What it
 * addresses there may be a window, and so another host's memory.
 *
 * Locks: pfx_dma.lock protects registers and channels, also while a piece is
 * copied: a channel that is halted accesses nothing more. Outside of pfx.lock.
 */
#ifndef EMU_PFX_DMA_H
#define EMU_PFX_DMA_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine.h"
#include "function.h"

#define PFX_DMA_CHANNELS	2u
#define PFX_DMA_WORDS		32u	/* of a channel's set-up */
#define PFX_DMA_PIECE		65536u	/* copied under the lock */

struct pfx_part;
struct pfx_dma;

/* A descriptor, as it is in the submission ring. */
struct pfx_dma_desc {
	uint8_t opcode, control;
	uint16_t tlp, reserved, id;
	uint32_t bytes;
	uint32_t src[2], dst[2];	/* low half first */
	uint16_t dst_fabric, src_fabric;
};

struct pfx_channel {
	struct work work;
	struct pfx_dma *dma;
	unsigned int number;
	uint32_t ctrl, errors;
	uint16_t cq_head, sq_tail;	/* written by the host */
	uint16_t sq_head, cq_tail;
	bool phase;
	uint32_t setup[PFX_DMA_WORDS];
	bool active;			/* desc has been fetched */
	struct pfx_dma_desc desc;
	uint32_t done;			/* bytes of it */
	uint8_t piece[PFX_DMA_PIECE];
};

struct pfx_dma {
	pthread_mutex_t lock;
	struct pfx_part *part;
	struct function *fn;		/* valid while attached */
	bool attached;
	char name[64];
	struct pfx_channel channel[PFX_DMA_CHANNELS];
};

struct pfx_dma *pfx_dma_new(struct pfx_part *p);
void pfx_dma_free(struct pfx_dma *d);
void pfx_dma_describe(struct pfx_dma *d, struct function_desc *desc);
extern const struct function_ops pfx_dma_function_ops;

#endif
