/* SPDX-License-Identifier: GPL-2.0-only */
/* A DMA channel. For dma.c and gpu.c. */
#ifndef FABREX_NTB_CHANNEL_H
#define FABREX_NTB_CHANNEL_H

#include <linux/dmaengine.h>

#include "ntb.h"

/* Descriptors that may be under way for one part: its pages, and the marker. */
#define DMA_PIECES	(FNTB_CHUNK_MAX / PAGE_SIZE + 2)
/* A part, from wherever in a word of the channel. */
#define DMA_BOUNCE	(FNTB_CHUNK_MAX + PAGE_SIZE)

/**
 * struct fntb_batch - pieces of a part that are under way
 * @user:   who has it
 * @window: where it goes to
 * @far:    memory of another device is involved
 * @n:      pieces that are mapped
 * @addr:   bus addresses of the pieces
 * @page:   pages of the pieces
 * @bytes:  of the pieces
 * @left:   descriptors without an end, and 1 while more are submitted
 * @ended:  there is none left, or one has ended with an error
 * @error:  one of them has
 */
struct fntb_batch {
	const void *user;
	u32 window;
	bool far;
	u32 n;
	dma_addr_t addr[DMA_PIECES];
	struct page *page[DMA_PIECES];
	u32 bytes[DMA_PIECES];
	atomic_t left;
	struct completion ended;
	bool error;
};

/**
 * struct fntb_dma - a channel
 * @chan:   channel; NULL if it is @ended and could not be had again
 * @name:   of the channel, or the last one
 * @align:  what it copies is a multiple of this
 * @dev:    its device, with a reference
 * @window: bus addresses of the windows
 * @size:   of the windows; 0: it does not reach this one
 * @lock:   held for a part: who else comes copies by processor, or waits if it
 *          cannot
 * @batch:  the part
 * @word:   coherent: the marker; where what was stored last is read back to
 * @word_dma: its bus address
 * @markers: last marker; the first is random, as those of an earlier driver may
 *          still be there
 * @bounce: coherent, %DMA_BOUNCE bytes: between memory of another device and
 *          the processor; NULL: there are no dma-bufs
 * @bounce_dma: its bus address
 * @dead:   not used any more, for what goes to the peer
 * @why:    because of this
 * @ended:  it was stopped, and nobody uses it before the thread has had it anew
 * @renew_at: when to try that again, in jiffies
 * @stuck:  it could not be stopped: what it may still use is never freed
 */
struct fntb_dma {
	struct dma_chan *chan;
	char name[32];
	u32 align;
	struct device *dev;
	dma_addr_t window[2];
	resource_size_t size[2];
	struct mutex lock;
	struct fntb_batch batch;
	__le64 *word;
	dma_addr_t word_dma;
	u32 markers;
	void *bounce;
	dma_addr_t bounce_dma;
	bool dead;
	const char *why;
	bool ended;
	unsigned long renew_at;
	bool stuck;
};

/* dma.c */
void fntb_dma_give_up(struct fntb_port *np, const char *why);
bool fntb_dma_lock(struct fntb_port *np);
void fntb_batch_begin(struct fntb_batch *batch, u32 window);
bool fntb_dma_submit(struct fntb_dma *dma, dma_addr_t to, dma_addr_t from,
		     u32 bytes);
const char *fntb_dma_wait(struct fntb_dma *dma);
void fntb_dma_stop(struct fntb_dma *dma);
const char *fntb_dma_refusal(struct fntb_port *np);

#endif
