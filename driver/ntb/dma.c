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
#include <linux/pci.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "ntb.h"

/* No transfer takes longer, on whatever machine. */
#define DMA_PATIENCE	(2 * HZ)
/* Descriptors that may be under way for one part: its pages, and the marker. */
#define DMA_PIECES	(FNTB_CHUNK_MAX / PAGE_SIZE + 2)

static bool use_dma = true;
module_param(use_dma, bool, 0444);
MODULE_PARM_DESC(use_dma, "move large payloads with a DMA channel, if a suitable one is found (default: Y)");

static unsigned int dma_bytes = 4096;
module_param(dma_bytes, uint, 0644);
MODULE_PARM_DESC(dma_bytes, "smallest payload that a DMA channel moves, in bytes (default: 4096)");

/**
 * struct fntb_batch - pieces of a part that are under way
 * @user:   who has it
 * @window: where it goes to
 * @n:      pieces
 * @addr:   bus addresses of the pieces
 * @page:   pages of the pieces
 * @bytes:  of the pieces
 * @left:   descriptors without an end, and 1 while more are submitted
 * @ended:  there is none left
 * @error:  one of them has ended with an error
 */
struct fntb_batch {
	const void *user;
	u32 window;
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
 * @chan:   channel
 * @dev:    its device, with a reference
 * @window: bus addresses of the windows
 * @size:   of the windows; 0: it does not reach this one
 * @lock:   held for a part: who else comes copies by processor
 * @batch:  the part
 * @word:   coherent: the marker
 * @word_dma: its bus address
 * @markers: last marker; the first is random, as those of an earlier driver may
 *          still be there
 * @dead:   not used any more
 * @stuck:  it could not be stopped: what it may still use is never freed
 */
struct fntb_dma {
	struct dma_chan *chan;
	struct device *dev;
	dma_addr_t window[2];
	resource_size_t size[2];
	struct mutex lock;
	struct fntb_batch batch;
	__le64 *word;
	dma_addr_t word_dma;
	u32 markers;
	bool dead;
	bool stuck;
};

static void fntb_dma_give_up(struct fntb_port *np, const char *why)
{
	if (!np->dma->dead)
		dev_warn(&np->ntb->dev,
			 "DMA channel %s is no longer used: %s\n",
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
		fntb_dma_give_up(np, "its writes do not arrive at the peer");
}

/**
 * fntb_dma_stuck() - may a channel that was given up still store something?
 * @np: port
 *
 * Context: The thread.
 * Return: whether it may
 */
bool fntb_dma_stuck(const struct fntb_port *np)
{
	if (!np->dma || !READ_ONCE(np->dma->stuck))
		return false;
	dev_err_ratelimited(&np->ntb->dev,
			    "DMA channel %s cannot be stopped, so the link stays down: reset the channel's device, or restart the host\n",
			    dma_chan_name(np->dma->chan));
	return true;
}

/* ---- a part ------------------------------------------------------------ */

static void fntb_batch_begin(struct fntb_batch *batch, u32 window)
{
	batch->window = window;
	batch->n = 0;
	batch->error = false;
	atomic_set(&batch->left, 1);
	reinit_completion(&batch->ended);
}

static void fntb_batch_end_one(struct fntb_batch *batch)
{
	if (atomic_dec_and_test(&batch->left))
		complete(&batch->ended);
}

static void fntb_dma_ended(void *arg, const struct dmaengine_result *result)
{
	struct fntb_batch *batch = arg;

	if (result && (result->result != DMA_TRANS_NOERROR || result->residue))
		WRITE_ONCE(batch->error, true);
	fntb_batch_end_one(batch);
}

static bool fntb_dma_submit(struct fntb_dma *dma, u64 to, dma_addr_t from,
			    u32 bytes)
{
	struct dma_async_tx_descriptor *tx;

	tx = dmaengine_prep_dma_memcpy(dma->chan,
				       dma->window[dma->batch.window] + to,
				       from, bytes,
				       DMA_PREP_INTERRUPT | DMA_CTRL_ACK);
	if (!tx)
		return false;
	tx->callback_result = fntb_dma_ended;
	tx->callback_param = &dma->batch;
	atomic_inc(&dma->batch.left);
	if (!dma_submit_error(dmaengine_submit(tx)))
		return true;
	atomic_dec(&dma->batch.left);
	return false;
}

/* NULL when all have ended well. */
static const char *fntb_dma_wait(struct fntb_dma *dma)
{
	struct fntb_batch *batch = &dma->batch;

	dma_async_issue_pending(dma->chan);
	fntb_batch_end_one(batch);
	if (!wait_for_completion_timeout(&batch->ended, DMA_PATIENCE))
		return "a transfer did not complete in time";
	return READ_ONCE(batch->error) ? "a transfer failed" : NULL;
}

/**
 * fntb_dma_begin() - have a channel for a part, if that is worth it
 * @np:     port
 * @user:   who begins
 * @window: where the payload and its marker go to: 0, or 1 for linked regions
 * @bytes:  of the payload
 *
 * Context: Process.
 * Return: true: fntb_dma_put() and fntb_dma_end() follow
 */
bool fntb_dma_begin(struct fntb_port *np, const void *user, u32 window,
		    u32 bytes)
{
	struct fntb_dma *dma = np->dma;

	if (!dma || bytes < READ_ONCE(dma_bytes) || READ_ONCE(dma->dead) ||
	    !dma->size[window] || !mutex_trylock(&dma->lock))
		return false;
	if (READ_ONCE(dma->dead)) {
		mutex_unlock(&dma->lock);
		return false;
	}
	fntb_batch_begin(&dma->batch, window);
	WRITE_ONCE(dma->batch.user, user);
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

	if (batch->n >= DMA_PIECES || !virt_addr_valid(from) ||
	    !is_dma_copy_aligned(dma->chan->device, offset_in_page(from), to,
				 bytes))
		return false;
	addr = dma_map_page(dma->dev, virt_to_page(from), offset_in_page(from),
			    bytes, DMA_TO_DEVICE);
	if (dma_mapping_error(dma->dev, addr))
		return false;
	if (!fntb_dma_submit(dma, to, addr, bytes)) {
		dma_unmap_page(dma->dev, addr, bytes, DMA_TO_DEVICE);
		return false;
	}
	batch->addr[batch->n] = addr;
	batch->page[batch->n] = virt_to_page(from);
	batch->bytes[batch->n++] = bytes;
	return true;
}

/* Nothing may be read any more once this has returned; what cannot be stopped
 * keeps its pages for good.
 */
static void fntb_dma_stop(struct fntb_dma *dma)
{
	u32 i;

	if (!dmaengine_terminate_sync(dma->chan))
		return;
	dma->stuck = true;
	for (i = 0; i < dma->batch.n; i++)
		get_page(dma->batch.page[i]);
	dma->batch.n = 0;
}

/* Stores the marker when all of the payload has left. */
static const char *fntb_dma_mark(struct fntb_dma *dma, u64 to)
{
	const char *why = fntb_dma_wait(dma);
	u32 tries = 100;

	if (why)
		return why;
	if (!++dma->markers)
		dma->markers++;
	*dma->word = cpu_to_le64(dma->markers);
	atomic_set(&dma->batch.left, 1);
	reinit_completion(&dma->batch.ended);
	while (!fntb_dma_submit(dma, to, dma->word_dma, sizeof(*dma->word))) {
		if (!--tries)
			return "it accepts no more descriptors";
		cond_resched();
	}
	return fntb_dma_wait(dma);
}

/**
 * fntb_dma_end() - wait until all pieces have left, and send the marker
 * @np: port
 * @to: where to in the window, behind the payload
 *
 * Context: Process; sleeps.
 * Return: the marker; 0: the payload is not to be relied on, and neither is the
 * place
 */
u32 fntb_dma_end(struct fntb_port *np, u64 to)
{
	struct fntb_dma *dma = np->dma;
	struct fntb_batch *batch = &dma->batch;
	const char *why = fntb_dma_mark(dma, to);
	u32 marker = why ? 0 : dma->markers, i;

	if (why) {
		fntb_dma_give_up(np, why);
		fntb_dma_stop(dma);
	}
	for (i = 0; i < batch->n; i++)
		dma_unmap_page(dma->dev, batch->addr[i], batch->bytes[i],
			       DMA_TO_DEVICE);
	WRITE_ONCE(batch->user, NULL);
	mutex_unlock(&dma->lock);
	return marker;
}

/* ---- the channel ------------------------------------------------------- */

static bool fntb_dma_map(struct fntb_dma *dma, u32 window, phys_addr_t base,
			 resource_size_t size)
{
	dma_addr_t addr = dma_map_resource(dma->dev, base, size,
					   DMA_BIDIRECTIONAL, 0);

	if (dma_mapping_error(dma->dev, addr))
		return false;
	dma->window[window] = addr;
	dma->size[window] = size;
	return true;
}

static void fntb_dma_unmap(struct fntb_dma *dma, u32 window)
{
	if (dma->size[window])
		dma_unmap_resource(dma->dev, dma->window[window],
				   dma->size[window], DMA_BIDIRECTIONAL, 0);
	dma->size[window] = 0;
}

/* Whether what it stores arrives can be seen by the processor. */
static bool fntb_dma_try(struct fntb_port *np, u32 window, void __iomem *word,
			 u64 to)
{
	unsigned long end = jiffies + HZ / 2;
	struct fntb_dma *dma = np->dma;
	u32 marker;

	if (!mutex_trylock(&dma->lock))
		return false;
	fntb_batch_begin(&dma->batch, window);
	iowrite32(0, word);
	wmb();
	/* It has arrived before the marker does. */
	ioread32(word);
	marker = fntb_dma_end(np, to);
	while (marker && ioread32(word) != marker) {
		if (time_after(jiffies, end))
			return false;
		cond_resched();
	}
	return marker;
}

static bool fntb_dma_arrives(struct fntb_port *np)
{
	u64 to = np->theirs.puts + np->theirs.chunk;

	if (!fntb_dma_try(np, 0, np->window + to, to))
		return false;
	if (np->peer_range.bytes && np->dma->size[1] &&
	    !fntb_dma_try(np, 1, np->peer_range.window, 0)) {
		dev_warn(&np->ntb->dev,
			 "writes of DMA channel %s do not arrive through the second memory window: it is not used for direct stores\n",
			 dma_chan_name(np->dma->chan));
		fntb_dma_unmap(np->dma, 1);
	}
	return !np->dma->dead;
}

/* On the bridge's node; it can be stopped, and ends in order. */
static bool fntb_dma_suits(struct dma_chan *chan, void *arg)
{
	struct dma_device *device = chan->device;

	return dev_to_node(device->dev) == dev_to_node(arg) &&
	       device->device_terminate_all &&
	       !dma_has_cap(DMA_COMPLETION_NO_ORDER, device->cap_mask);
}

static void fntb_dma_close(struct fntb_dma *dma)
{
	if (dma->stuck || dmaengine_terminate_sync(dma->chan)) {
		/* It may still be at work: all that it knows stays. */
		__module_get(THIS_MODULE);
		pr_err("DMA channel %s cannot be stopped: leaking the memory that it may still access\n",
		       dma_chan_name(dma->chan));
		return;
	}
	dma_free_coherent(dma->dev, PAGE_SIZE, dma->word, dma->word_dma);
	fntb_dma_unmap(dma, 0);
	fntb_dma_unmap(dma, 1);
	dma_release_channel(dma->chan);
	put_device(dma->dev);
	kfree(dma);
}

static int fntb_dma_open(struct fntb_port *np, struct fntb_dma *dma)
{
	resource_size_t size;
	dma_cap_mask_t mask;
	phys_addr_t base;
	int ret;

	ret = ntb_peer_mw_get_addr(np->ntb, 0, &base, &size);
	if (ret)
		return ret;
	dma_cap_zero(mask);
	dma_cap_set(DMA_MEMCPY, mask);
	dma->chan = dma_request_channel(mask, fntb_dma_suits,
					&np->ntb->pdev->dev);
	if (!dma->chan)
		return -ENODEV;
	dma->dev = get_device(dma->chan->device->dev);
	if (!fntb_dma_map(dma, 0, base, size))
		goto release;
	dma->word = dma_alloc_coherent(dma->dev, PAGE_SIZE, &dma->word_dma,
				       GFP_KERNEL);
	if (dma->word)
		return 0;
	fntb_dma_unmap(dma, 0);
release:
	dma_release_channel(dma->chan);
	put_device(dma->dev);
	return -ENOMEM;
}

static struct fntb_dma *fntb_dma_new(struct fntb_port *np)
{
	struct fntb_dma *dma = kzalloc(sizeof(*dma), GFP_KERNEL);

	if (!dma)
		return NULL;
	mutex_init(&dma->lock);
	init_completion(&dma->batch.ended);
	dma->markers = get_random_u32();
	if (!fntb_dma_open(np, dma))
		return dma;
	kfree(dma);
	return NULL;
}

static struct fntb_dma *fntb_dma_set(struct fntb_port *np, struct fntb_dma *dma)
{
	struct fntb_dma *before = np->dma;

	spin_lock(&np->dma_lock);
	np->dma = dma;
	spin_unlock(&np->dma_lock);
	return before;
}

/**
 * fntb_dma_name() - which channel moves payload?
 * @np:   port
 * @name: result, if there is one
 * @size: of @name
 *
 * Context: Process.
 * Return: false: the processor does
 */
bool fntb_dma_name(struct fntb_port *np, char *name, size_t size)
{
	bool used;

	spin_lock(&np->dma_lock);
	used = np->dma && !READ_ONCE(np->dma->dead);
	if (used)
		strscpy(name, dma_chan_name(np->dma->chan), size);
	spin_unlock(&np->dma_lock);
	return used;
}

/**
 * fntb_dma_up() - find a channel, and try it
 * @np: port, whose peer can be reached, and whose wire is down
 *
 * Context: The thread.
 */
void fntb_dma_up(struct fntb_port *np)
{
	bool found = !np->dma;

	if (!use_dma || (np->dma && np->dma->dead))
		return;
	if (!np->dma)
		fntb_dma_set(np, fntb_dma_new(np));
	if (!np->dma)
		return;
	if (np->peer_range.bytes && !np->dma->size[1])
		fntb_dma_map(np->dma, 1, np->peer_range.base,
			     np->peer_range.size);
	if (!fntb_dma_arrives(np)) {
		fntb_dma_failed(np);
		fntb_dma_exit(np);
	} else if (found) {
		dev_info(&np->ntb->dev, "payloads of %u bytes or more are moved by DMA channel %s\n",
			 dma_bytes, dma_chan_name(np->dma->chan));
	}
}

/**
 * fntb_dma_exit() - let go of the channel
 * @np: port, whose wire is down
 *
 * Context: Process; sleeps.
 */
void fntb_dma_exit(struct fntb_port *np)
{
	if (np->dma)
		fntb_dma_close(fntb_dma_set(np, NULL));
}
