// SPDX-License-Identifier: GPL-2.0-only
/*
 * Payload by a DMA engine, where one reaches the window. Called by wire.c for large
 * parts and for memory of other devices, by link.c and by gpu.c.
 *
 * When a channel says that it is done, its stores have left, and maybe they have not
 * arrived: not yet, or not at all, if the bridge does not let this requester through.
 * So the last thing that it stores, behind the payload, is a marker, a number that
 * was never there, and whoever needs the payload looks for it. A channel whose stores
 * do not arrive is found when the link comes up, or by the marker, and is not used
 * any more.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/mm.h>
#include <linux/pci.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "channel.h"

/* No transfer takes longer, on whatever machine. */
#define DMA_PATIENCE	(2 * HZ)
static const char DO_NOT_ARRIVE[] = "its writes do not arrive at the peer";
static const char NO_OTHER[] = "its device has no other for this driver";

static bool use_dma = true;
module_param(use_dma, bool, 0444);
MODULE_PARM_DESC(use_dma, "move large payloads with a DMA channel, if a suitable one is found (default: Y)");

static unsigned int dma_bytes = 4096;
module_param(dma_bytes, uint, 0644);
MODULE_PARM_DESC(dma_bytes, "smallest payload that a DMA channel moves, in bytes (default: 4096)");

/**
 * fntb_dma_give_up() - no longer use the channel for what goes to the peer
 * @np:  port, with a channel
 * @why: reason, a constant
 *
 * Context: Process.
 */
void fntb_dma_give_up(struct fntb_port *np, const char *why)
{
	if (np->dma->why != why)
		dev_warn(&np->ntb->dev,
			 "DMA channel %s is no longer used: %s\n",
			 np->dma->name, why);
	WRITE_ONCE(np->dma->why, why);
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
		fntb_dma_give_up(np, DO_NOT_ARRIVE);
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
			    np->dma->name);
	return true;
}

/* ---- a part ------------------------------------------------------------ */

/**
 * fntb_batch_begin() - begin with a part
 * @batch:  of a channel, whose lock is held
 * @window: where it goes to, if it goes to the peer
 *
 * Context: Process.
 */
void fntb_batch_begin(struct fntb_batch *batch, u32 window)
{
	batch->window = window;
	batch->n = 0;
	batch->far = false;
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

	if (result &&
	    (result->result != DMA_TRANS_NOERROR || result->residue)) {
		WRITE_ONCE(batch->error, true);
		/* Others may have stopped with it. */
		complete(&batch->ended);
	}
	fntb_batch_end_one(batch);
}

/**
 * fntb_dma_submit() - have a piece moved
 * @dma:   channel, after fntb_batch_begin()
 * @to:    bus address
 * @from:  bus address
 * @bytes: of it
 *
 * Context: Process.
 * Return: false if the channel does not accept it
 */
bool fntb_dma_submit(struct fntb_dma *dma, dma_addr_t to, dma_addr_t from,
		     u32 bytes)
{
	struct dma_async_tx_descriptor *tx;

	tx = dmaengine_prep_dma_memcpy(dma->chan, to, from, bytes,
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

/**
 * fntb_dma_wait() - wait for all pieces
 * @dma: channel
 *
 * Context: Process; sleeps.
 * Return: NULL when all have ended well; otherwise why not, and fntb_dma_stop()
 * follows
 */
const char *fntb_dma_wait(struct fntb_dma *dma)
{
	struct fntb_batch *batch = &dma->batch;

	dma_async_issue_pending(dma->chan);
	fntb_batch_end_one(batch);
	if (!wait_for_completion_timeout(&batch->ended, DMA_PATIENCE))
		return "a transfer did not complete in time";
	return READ_ONCE(batch->error) ? "a transfer failed" : NULL;
}

/**
 * fntb_dma_lock() - have the channel
 * @np: port, with a channel
 *
 * Processes have it while they have a part moved. The thread does not wait for one
 * that does not get on: the peer would miss its heartbeat.
 *
 * Context: Process; sleeps.
 * Return: true: &fntb_dma.lock is held
 */
bool fntb_dma_lock(struct fntb_port *np)
{
	unsigned long end = jiffies + HZ / 4;

	if (current != np->thread) {
		mutex_lock(&np->dma->lock);
		return true;
	}
	while (!mutex_trylock(&np->dma->lock)) {
		if (time_after(jiffies, end))
			return false;
		usleep_range(20, 50);
	}
	return true;
}

/**
 * fntb_dma_begin() - have a channel for a part, if that is worth it
 * @np:    port
 * @user:  who begins
 * @window: where the payload and its marker go to: 0, or 1 for linked regions
 * @bytes: of the payload
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
	if (READ_ONCE(dma->dead) || dma->ended) {
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
	if (!fntb_dma_submit(dma, dma->window[batch->window] + to, addr,
			     bytes)) {
		dma_unmap_page(dma->dev, addr, bytes, DMA_TO_DEVICE);
		return false;
	}
	batch->addr[batch->n] = addr;
	batch->page[batch->n] = virt_to_page(from);
	batch->bytes[batch->n++] = bytes;
	return true;
}

/**
 * fntb_dma_begin_far() - have the channel for a part of another device's memory
 * @np:     port
 * @user:   who begins
 * @window: that it goes to
 * @from:   bus address of the part's beginning, or'ed with its place in the
 *          window: both have to be aligned
 * @bytes:  of the payload
 *
 * Context: Process; sleeps.
 * Return: true: fntb_dma_put_far() and fntb_dma_end() follow. false: the
 * channel cannot move this to the peer
 */
bool fntb_dma_begin_far(struct fntb_port *np, const void *user, u32 window,
			dma_addr_t from, u32 bytes)
{
	struct fntb_dma *dma = np->dma;

	if (!dma || READ_ONCE(dma->dead) || !dma->size[window] ||
	    !IS_ALIGNED(from | bytes, dma->align))
		return false;
	if (!fntb_dma_lock(np))
		return false;
	if (READ_ONCE(dma->dead) || dma->ended) {
		mutex_unlock(&dma->lock);
		return false;
	}
	fntb_batch_begin(&dma->batch, window);
	dma->batch.far = true;
	WRITE_ONCE(dma->batch.user, user);
	return true;
}

/**
 * fntb_dma_put_far() - have a piece moved
 * @np:    port
 * @to:    where to in the window
 * @from:  bus address
 * @bytes: of it
 *
 * Context: Process.
 * If it cannot be, fntb_dma_end() says so.
 */
void fntb_dma_put_far(struct fntb_port *np, u64 to, dma_addr_t from, u32 bytes)
{
	struct fntb_dma *dma = np->dma;

	if (!fntb_dma_submit(dma, dma->window[dma->batch.window] + to, from,
			     bytes))
		WRITE_ONCE(dma->batch.error, true);
}

/* Memory of another device cannot be kept for good, as pages can. */
static void fntb_dma_cut_off(struct fntb_dma *dma)
{
	if (!dma->batch.far || !dev_is_pci(dma->dev))
		return;
	pci_clear_master(to_pci_dev(dma->dev));
	dev_err(dma->dev, "DMA channel %s cannot be stopped, and may still access memory of another device: bus mastering is turned off for all channels; reload their driver\n",
		dma->name);
}

/**
 * fntb_dma_stop() - end what has not ended
 * @dma: channel
 *
 * Nothing is accessed any more once this has returned; what cannot be stopped
 * keeps its pages for good.
 *
 * Context: Process; sleeps.
 */
void fntb_dma_stop(struct fntb_dma *dma)
{
	u32 i;

	WRITE_ONCE(dma->ended, true);
	if (!dmaengine_terminate_sync(dma->chan))
		return;
	dma->stuck = true;
	fntb_dma_cut_off(dma);
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
	while (!fntb_dma_submit(dma, dma->window[dma->batch.window] + to,
				dma->word_dma, sizeof(*dma->word))) {
		if (!--tries)
			return "it accepts no more descriptors";
		cond_resched();
	}
	return fntb_dma_wait(dma);
}

/* Does what it stores arrive? The processor sees it at @word. */
static const char *fntb_dma_prove(struct fntb_port *np, u32 window,
				  void __iomem *word, u64 to)
{
	unsigned long end = jiffies + HZ / 2;
	struct fntb_dma *dma = np->dma;
	const char *why;

	fntb_batch_begin(&dma->batch, window);
	iowrite32(0, word);
	wmb();
	/* It has arrived before the marker does. */
	ioread32(word);
	why = fntb_dma_mark(dma, to);
	if (why) {
		fntb_dma_stop(dma);
		return why;
	}
	while (ioread32(word) != dma->markers) {
		if (time_after(jiffies, end))
			return DO_NOT_ARRIVE;
		cond_resched();
	}
	return NULL;
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

/* NULL if what it stores arrives. */
static const char *fntb_dma_try(struct fntb_port *np, u32 window,
				void __iomem *word, u64 to)
{
	struct fntb_dma *dma = np->dma;
	const char *why;

	mutex_lock(&dma->lock);
	if (dma->ended)
		why = dma->why ?: "it was stopped";
	else
		why = fntb_dma_prove(np, window, word, to);
	mutex_unlock(&dma->lock);
	return why;
}

static const char *fntb_dma_arrives(struct fntb_port *np)
{
	u64 to = np->theirs.puts + np->theirs.chunk;
	const char *why = fntb_dma_try(np, 0, np->window + to, to);

	if (why || !np->peer_range.bytes || !np->dma->size[1] ||
	    !fntb_dma_try(np, 1, np->peer_range.window, 0))
		return why;
	dev_warn(&np->ntb->dev,
		 "writes of DMA channel %s do not arrive through the second memory window: it is not used for direct stores\n",
		 np->dma->name);
	fntb_dma_unmap(np->dma, 1);
	return np->dma->ended ? "it was stopped" : NULL;
}

/* Drivers of which it is known that they say when a copy has failed, and that nothing
 * is accessed any more when they have stopped a channel. Linux's ptdma, for one,
 * reports every copy as good; ioatdma cannot be stopped.
 */
static const char * const fntb_dma_drivers[] = { "switchtec_dma", "idxd" };

/* On the bridge's node; it can be stopped, and ends in order. */
static bool fntb_dma_suits(struct dma_chan *chan, void *arg)
{
	struct dma_device *device = chan->device;

	return dev_to_node(device->dev) == dev_to_node(arg) &&
	       match_string(fntb_dma_drivers, ARRAY_SIZE(fntb_dma_drivers),
			    dev_driver_string(device->dev)) >= 0 &&
	       device->device_terminate_all &&
	       !dma_has_cap(DMA_COMPLETION_NO_ORDER, device->cap_mask);
}

static void fntb_dma_close(struct fntb_dma *dma)
{
	if (dma->stuck ||
	    (dma->chan && dmaengine_terminate_sync(dma->chan))) {
		/* It may still be at work: all that it knows stays. */
		__module_get(THIS_MODULE);
		pr_err("DMA channel %s cannot be stopped: leaking the memory that it may still access\n",
		       dma->name);
		return;
	}
	if (dma->bounce)
		dma_free_coherent(dma->dev, DMA_BOUNCE, dma->bounce,
				  dma->bounce_dma);
	dma_free_coherent(dma->dev, PAGE_SIZE, dma->word, dma->word_dma);
	fntb_dma_unmap(dma, 0);
	fntb_dma_unmap(dma, 1);
	if (dma->chan)
		dma_release_channel(dma->chan);
	put_device(dma->dev);
	kfree(dma);
}

static void fntb_dma_has_channel(struct fntb_dma *dma)
{
	dma->align = 1u << dma->chan->device->copy_align;
	strscpy(dma->name, dma_chan_name(dma->chan), sizeof(dma->name));
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
	fntb_dma_has_channel(dma);
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

/**
 * fntb_dma_name() - which channel moves payload?
 * @np:   port
 * @name: result, if there is one
 * @size: of @name
 *
 * Context: Process; sleeps.
 * Return: false: the processor does
 */
bool fntb_dma_name(struct fntb_port *np, char *name, size_t size)
{
	bool used;

	mutex_lock(&np->dma_lock);
	used = np->dma && !READ_ONCE(np->dma->dead);
	if (used)
		strscpy(name, np->dma->name, size);
	mutex_unlock(&np->dma_lock);
	return used;
}

/* What dma-bufs are mapped for stays. */
static void fntb_dma_drop(struct fntb_port *np)
{
	mutex_lock(&np->dma_lock);
	if (!np->dma->bounce) {
		fntb_dma_close(np->dma);
		np->dma = NULL;
	}
	mutex_unlock(&np->dma_lock);
}

static bool fntb_dma_of_device(struct dma_chan *chan, void *arg)
{
	return chan->device->dev == arg;
}

/**
 * fntb_dma_renew() - have a channel anew that was stopped
 * @np: port
 *
 * One that dma-bufs are mapped for, which have no other. It is not enough to go
 * on with it: Linux's driver for Switchtec takes completions of before for new
 * ones then, and stops the kernel.
 *
 * Context: The thread.
 */
void fntb_dma_renew(struct fntb_port *np)
{
	struct fntb_dma *dma = np->dma;
	dma_cap_mask_t mask;

	if (!dma || !dma->bounce || !READ_ONCE(dma->ended) || dma->stuck ||
	    time_before(jiffies, dma->renew_at))
		return;
	dma->renew_at = jiffies + FNTB_TICK;
	/* Until it is no longer ended, nobody else uses it. */
	mutex_lock(&dma->lock);
	mutex_unlock(&dma->lock);
	if (dma->chan)
		dma_release_channel(dma->chan);
	dma_cap_zero(mask);
	dma_cap_set(DMA_MEMCPY, mask);
	dma->chan = dma_request_channel(mask, fntb_dma_of_device, dma->dev);
	if (!dma->chan) {
		fntb_dma_give_up(np, NO_OTHER);
		return;
	}
	fntb_dma_has_channel(dma);
	mutex_lock(&dma->lock);
	if (dma->why == NO_OTHER) {
		WRITE_ONCE(dma->why, NULL);
		WRITE_ONCE(dma->dead, false);
	}
	WRITE_ONCE(dma->ended, false);
	mutex_unlock(&dma->lock);
}

/* Nobody else uses it before it has been tried. Before its driver goes, the port
 * does.
 */
static void fntb_dma_find(struct fntb_port *np)
{
	struct fntb_dma *dma = fntb_dma_new(np);

	if (!dma)
		return;
	dma->why = "it is being tried";
	dma->dead = true;
	if (!device_link_add(&np->ntb->dev, dma->dev,
			     DL_FLAG_AUTOREMOVE_CONSUMER))
		dev_warn(&np->ntb->dev, "cannot link to %s: do not unbind its driver before this one\n",
			 dev_name(dma->dev));
	mutex_lock(&np->dma_lock);
	np->dma = dma;
	mutex_unlock(&np->dma_lock);
}

static void fntb_dma_found(struct fntb_port *np)
{
	dev_info(&np->ntb->dev, "payloads of %u bytes or more are moved by DMA channel %s\n",
		 dma_bytes, np->dma->name);
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
	const char *why;

	if (!use_dma || (np->dma && np->dma->dead && !np->dma->bounce))
		return;
	if (found)
		fntb_dma_find(np);
	if (!np->dma)
		return;
	if (np->peer_range.bytes && !np->dma->size[1])
		fntb_dma_map(np->dma, 1, np->peer_range.base,
			     np->peer_range.size);
	fntb_dma_renew(np);
	why = fntb_dma_arrives(np);
	if (why) {
		fntb_dma_give_up(np, why);
		fntb_dma_drop(np);
		return;
	}
	WRITE_ONCE(np->dma->why, NULL);
	WRITE_ONCE(np->dma->dead, false);
	if (found)
		fntb_dma_found(np);
}

/**
 * fntb_dma_refusal() - is there no channel for memory of other devices?
 * @np: port
 *
 * Context: Process. With &fntb_port.dma_lock held.
 * Return: NULL if there is one; otherwise why not
 */
const char *fntb_dma_refusal(struct fntb_port *np)
{
	if (!use_dma)
		return "use_dma=0 was given, and processors do not reach such memory: load fabrex_ntb without it";
	if (!np->dma && !READ_ONCE(np->wire.epoch))
		return "the peer has not been seen yet; when it is, a DMA channel is looked for";
	if (!np->dma)
		return "no DMA channel reaches the memory window, and processors do not reach such memory: load the driver of the bridge's DMA engine, such as switchtec_dma, and then fabrex_ntb";
	if (READ_ONCE(np->dma->dead))
		return READ_ONCE(np->dma->why);
	if (!dev_is_pci(np->dma->dev))
		return "the DMA channel is not that of a PCI device";
	return NULL;
}

/**
 * fntb_dma_exit() - let go of the channel
 * @np: port, whose wire is down, and which has no dma-bufs
 *
 * Context: Process; sleeps.
 */
void fntb_dma_exit(struct fntb_port *np)
{
	if (np->dma)
		fntb_dma_close(np->dma);
	np->dma = NULL;
}
