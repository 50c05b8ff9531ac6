// SPDX-License-Identifier: GPL-2.0-only
/*
 * Payload by a DMA engine, where one reaches the window. Called by wire.c for large
 * parts, and by link.c.
 *
 * When a channel says that it is done, its stores have left, and maybe they have not
 * arrived: not yet, or not at all, if the bridge does not let this requester through.
 * So the last thing that it stores, behind the payload, is a marker, a number that
 * was never there, and whoever needs the payload looks for it. A channel whose stores
 * do not arrive is found when the link comes up, or by the marker, and is not used
 * any more.
 */
#include <linux/dma-mapping.h>
#include <linux/dmaengine.h>
#include <linux/module.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "ntb.h"

/* No transfer takes longer, on whatever machine. */
#define DMA_PATIENCE	(2 * HZ)
/* Descriptors that may be under way for one part: its pages, and the marker. */
#define DMA_PIECES	(FNTB_CHUNK_MAX / PAGE_SIZE + 2)

static bool use_dma = true;
module_param(use_dma, bool, 0444);
MODULE_PARM_DESC(use_dma, "have a DMA engine move large payload, if there is one");

static unsigned int dma_bytes = 4096;
module_param(dma_bytes, uint, 0644);
MODULE_PARM_DESC(dma_bytes, "least bytes of a payload that a DMA engine moves");

/**
 * struct fntb_batch - pieces of a part that are under way
 * @user:   who has it
 * @n:      pieces
 * @cookie: of the last
 * @addr:   bus addresses of the pieces
 * @bytes:  of the pieces
 * @failed: a piece was refused
 */
struct fntb_batch {
	const void *user;
	u32 n;
	dma_cookie_t cookie;
	dma_addr_t addr[DMA_PIECES];
	u32 bytes[DMA_PIECES];
	bool failed;
};

/**
 * struct fntb_dma - a channel
 * @chan:   channel
 * @window: bus address of the window
 * @lock:   held for a part: who else comes copies by processor
 * @batch:  the part
 * @words:  coherent; the marker
 * @words_dma: its bus address
 * @markers: last marker
 * @dead:   not used any more
 */
struct fntb_dma {
	struct dma_chan *chan;
	dma_addr_t window;
	struct mutex lock;
	struct fntb_batch batch;
	__le32 *words;
	dma_addr_t words_dma;
	u32 markers;
	bool dead;
};

static struct device *fntb_dma_device(const struct fntb_dma *dma)
{
	return dma->chan->device->dev;
}

static void fntb_dma_give_up(struct fntb_port *np, const char *why)
{
	if (!np->dma->dead)
		dev_warn(&np->ntb->dev,
			 "DMA channel %s is not used any more: %s\n",
			 dma_chan_name(np->dma->chan), why);
	WRITE_ONCE(np->dma->dead, true);
}

/**
 * fntb_dma_failed() - the peer has not received what a channel said it had sent
 * @np: port
 *
 * Context: Process.
 */
void fntb_dma_failed(struct fntb_port *np)
{
	if (np->dma)
		fntb_dma_give_up(np, "what it stores does not arrive at the peer");
}

static bool fntb_dma_submit(struct fntb_dma *dma, u64 to, dma_addr_t from,
			    u32 bytes)
{
	struct dma_async_tx_descriptor *tx;

	tx = dmaengine_prep_dma_memcpy(dma->chan, dma->window + to, from, bytes,
				       DMA_PREP_INTERRUPT | DMA_CTRL_ACK);
	if (!tx)
		return false;
	dma->batch.cookie = dmaengine_submit(tx);
	return !dma_submit_error(dma->batch.cookie);
}

static enum dma_status fntb_dma_wait(struct fntb_dma *dma)
{
	unsigned long end = jiffies + DMA_PATIENCE;
	enum dma_status status;

	dma_async_issue_pending(dma->chan);
	while ((status = dma_async_is_tx_complete(dma->chan, dma->batch.cookie,
						  NULL, NULL)) ==
	       DMA_IN_PROGRESS && time_before(jiffies, end))
		cond_resched();
	return status;
}

/**
 * fntb_dma_begin() - have a channel for a part, if that is worth it
 * @np:    port
 * @user:  who begins
 * @bytes: of the payload
 *
 * Context: Process.
 * Return: true: fntb_dma_put() and fntb_dma_end() follow
 */
bool fntb_dma_begin(struct fntb_port *np, const void *user, u32 bytes)
{
	struct fntb_dma *dma = np->dma;

	if (!dma || bytes < READ_ONCE(dma_bytes) || READ_ONCE(dma->dead) ||
	    !mutex_trylock(&dma->lock))
		return false;
	dma->batch.user = user;
	dma->batch.n = 0;
	dma->batch.failed = false;
	return true;
}

/**
 * fntb_dma_has() - is a channel moving this part?
 * @np:   port
 * @user: who may have begun it
 *
 * Context: Process.
 * Return: whether it is
 */
bool fntb_dma_has(struct fntb_port *np, const void *user)
{
	return np->dma && READ_ONCE(np->dma->batch.user) == user;
}

/**
 * fntb_dma_put() - have a piece moved
 * @np:    port
 * @to:    where to in the window
 * @from:  memory that remains until fntb_dma_end() has returned
 * @bytes: of it; within a page
 *
 * Context: Process.
 * Return: false: it has to be copied
 */
bool fntb_dma_put(struct fntb_port *np, u64 to, const void *from, u32 bytes)
{
	struct fntb_dma *dma = np->dma;
	struct fntb_batch *batch = &dma->batch;
	dma_addr_t addr;

	if (batch->failed || batch->n >= DMA_PIECES || !virt_addr_valid(from))
		return false;
	addr = dma_map_page(fntb_dma_device(dma), virt_to_page(from),
			    offset_in_page(from), bytes, DMA_TO_DEVICE);
	if (dma_mapping_error(fntb_dma_device(dma), addr))
		return false;
	batch->addr[batch->n] = addr;
	batch->bytes[batch->n++] = bytes;
	if (fntb_dma_submit(dma, to, addr, bytes))
		return true;
	batch->failed = true;
	return false;
}

/**
 * fntb_dma_end() - wait until all pieces have left, and send the marker
 * @np: port
 * @to: where to in the window, behind the payload
 *
 * Context: Process; sleeps.
 * Return: the marker; 0: the payload is not to be relied on
 */
u32 fntb_dma_end(struct fntb_port *np, u64 to)
{
	struct fntb_dma *dma = np->dma;
	struct fntb_batch *batch = &dma->batch;
	enum dma_status status = DMA_ERROR;
	u32 marker, i;

	if (!++dma->markers)
		dma->markers++;
	marker = dma->markers;
	dma->words[0] = cpu_to_le32(marker);
	if (fntb_dma_submit(dma, to, dma->words_dma, sizeof(*dma->words)))
		status = fntb_dma_wait(dma);
	if (status != DMA_COMPLETE) {
		/* Nothing may be read any more once this has returned. */
		dmaengine_terminate_sync(dma->chan);
		fntb_dma_give_up(np, status == DMA_ERROR ? "it reports an error" :
							   "it does not end");
		marker = 0;
	}
	for (i = 0; i < batch->n; i++)
		dma_unmap_page(fntb_dma_device(dma), batch->addr[i],
			       batch->bytes[i], DMA_TO_DEVICE);
	WRITE_ONCE(batch->user, NULL);
	mutex_unlock(&dma->lock);
	return marker;
}

/* ---- the channel ------------------------------------------------------- */

/* Whether what it stores arrives can be seen by the processor. */
static bool fntb_dma_try(struct fntb_port *np)
{
	u64 to = np->theirs.puts + np->theirs.chunk;
	unsigned long end = jiffies + HZ / 2;
	struct fntb_dma *dma = np->dma;
	u32 marker;

	if (!mutex_trylock(&dma->lock))
		return false;
	dma->batch.n = 0;
	iowrite32(0, np->window + to);
	marker = fntb_dma_end(np, to);
	while (marker && ioread32(np->window + to) != marker) {
		if (time_after(jiffies, end))
			return false;
		cond_resched();
	}
	return marker;
}

static int fntb_dma_open(struct fntb_port *np, struct fntb_dma *dma)
{
	phys_addr_t base;
	resource_size_t size;
	dma_cap_mask_t mask;
	int ret;

	ret = ntb_peer_mw_get_addr(np->ntb, 0, &base, &size);
	if (ret)
		return ret;
	dma_cap_zero(mask);
	dma_cap_set(DMA_MEMCPY, mask);
	dma->chan = dma_request_channel(mask, NULL, NULL);
	if (!dma->chan)
		return -ENODEV;
	dma->window = dma_map_resource(fntb_dma_device(dma), base, size,
				       DMA_BIDIRECTIONAL, 0);
	if (dma_mapping_error(fntb_dma_device(dma), dma->window)) {
		dma_release_channel(dma->chan);
		return -EIO;
	}
	dma->words = dma_alloc_coherent(fntb_dma_device(dma), PAGE_SIZE,
					&dma->words_dma, GFP_KERNEL);
	if (dma->words)
		return 0;
	dma_unmap_resource(fntb_dma_device(dma), dma->window, np->window_size,
			   DMA_BIDIRECTIONAL, 0);
	dma_release_channel(dma->chan);
	return -ENOMEM;
}

/**
 * fntb_dma_up() - find a channel, and try it
 * @np: port, whose peer can be reached
 *
 * Context: The thread.
 */
void fntb_dma_up(struct fntb_port *np)
{
	struct fntb_dma *dma;

	if (!use_dma || np->dma)
		return;
	dma = kzalloc(sizeof(*dma), GFP_KERNEL);
	if (!dma)
		return;
	mutex_init(&dma->lock);
	if (fntb_dma_open(np, dma)) {
		kfree(dma);
		return;
	}
	np->dma = dma;
	if (fntb_dma_try(np))
		dev_info(&np->ntb->dev, "payload of %u bytes and more by %s\n",
			 dma_bytes, dma_chan_name(dma->chan));
	else
		fntb_dma_give_up(np, "what it stores does not arrive at the peer");
}

/**
 * fntb_dma_exit() - let go of the channel
 * @np: port, which nobody uses any more
 *
 * Context: Process; sleeps.
 */
void fntb_dma_exit(struct fntb_port *np)
{
	struct fntb_dma *dma = np->dma;

	if (!dma)
		return;
	np->dma = NULL;
	dmaengine_terminate_sync(dma->chan);
	dma_free_coherent(fntb_dma_device(dma), PAGE_SIZE, dma->words,
			  dma->words_dma);
	dma_unmap_resource(fntb_dma_device(dma), dma->window, np->window_size,
			   DMA_BIDIRECTIONAL, 0);
	dma_release_channel(dma->chan);
	kfree(dma);
}
