// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory that processors do not reach, as of GPUs: dma-bufs are mapped for the
 * device of the DMA channel, which copies from and to them. Called by the
 * engine through fabrex_channel_ops.
 *
 * Whether a peer-to-peer way leads from the channel to a GPU is decided by the
 * exporter, which asks the kernel (pci_p2pdma_distance()); without one, it
 * refuses, or moves the memory to where the channel reaches it.
 *
 * A channel says that it is done when its stores have left. They have arrived
 * when the last of them has been read back, which the fabric does not let
 * overtake them.
 */
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/pci.h>

#include "channel.h"

static struct fntb_port *fntb_port_with(struct fabrex_engine *engine)
{
	return container_of(engine, struct fntb_port, engine);
}

/* Says why not, once for each reason. */
static bool fntb_gpu_refused(struct fntb_port *np)
{
	const char *why = fntb_dma_refusal(np);
	bool dead = np->dma && READ_ONCE(np->dma->dead);

	if (why && why != np->refused)
		dev_warn(&np->ntb->dev, "dma-bufs are refused: %s%s\n",
			 dead ? "the DMA channel cannot be used: " : "",
			 why);
	np->refused = why;
	return why;
}

static struct device *fntb_gpu_device(struct fabrex_engine *engine)
{
	struct fntb_port *np = fntb_port_with(engine);
	struct fntb_dma *dma;

	guard(mutex)(&np->dma_lock);
	if (fntb_gpu_refused(np))
		return ERR_PTR(-EOPNOTSUPP);
	dma = np->dma;
	/* From here on the channel stays, see fntb_dma_drop(). */
	if (!dma->bounce)
		dma->bounce = dma_alloc_coherent(dma->dev, DMA_BOUNCE,
						 &dma->bounce_dma, GFP_KERNEL);
	return dma->bounce ? get_device(dma->dev) : ERR_PTR(-ENOMEM);
}

static u32 fntb_gpu_align(struct fabrex_engine *engine)
{
	return fntb_port_with(engine)->dma->align;
}

/* The lock of the channel is held. */
static bool fntb_gpu_copy(struct fntb_port *np, dma_addr_t to, dma_addr_t from,
			  u32 bytes)
{
	struct fntb_dma *dma = np->dma;
	const char *why = "it accepts no more descriptors";

	if (dma->ended)
		return false;
	fntb_batch_begin(&dma->batch, 0);
	dma->batch.far = true;
	if (fntb_dma_submit(dma, to, from, bytes))
		why = fntb_dma_wait(dma);
	if (!why)
		return true;
	dev_warn_ratelimited(&np->ntb->dev,
			     "DMA channel %s cannot access memory of another device: %s\n",
			     dma->name, why);
	fntb_dma_stop(dma);
	if (dma->stuck)
		fntb_dma_give_up(np, "it cannot be stopped");
	fntb_link_wake(np);
	return false;
}

static u8 fntb_gpu_load_part(struct fntb_port *np, dma_addr_t from, u32 at,
			     u32 bytes, engine_piece_fn fn, void *ctx)
{
	u32 align = fntb_gpu_align(&np->engine), skip = from & (align - 1);
	struct fntb_dma *dma = np->dma;
	u8 ret = ENGINE_NO_MEMORY;

	if (!fntb_dma_lock(np))
		return ret;
	/* What is beside it belongs to the same page. */
	if (fntb_gpu_copy(np, dma->bounce_dma, from - skip,
			  ALIGN(skip + bytes, align)))
		ret = fn(ctx, dma->bounce + skip, at, bytes);
	mutex_unlock(&dma->lock);
	return ret;
}

static u8 fntb_gpu_load(struct fabrex_engine *engine, dma_addr_t from, u32 at,
			u32 bytes, engine_piece_fn fn, void *ctx)
{
	struct fntb_port *np = fntb_port_with(engine);
	u8 ret = 0;
	u32 n;

	for (; bytes && !ret; from += n, at += n, bytes -= n) {
		n = min(bytes, FNTB_CHUNK_MAX);
		ret = fntb_gpu_load_part(np, from, at, n, fn, ctx);
	}
	return ret;
}

/* Both: until the last word has been read back. */
static bool fntb_gpu_deliver(struct fntb_port *np, dma_addr_t to,
			     dma_addr_t from, u32 bytes)
{
	u32 align = fntb_gpu_align(&np->engine);

	return fntb_gpu_copy(np, to, from, bytes) &&
	       fntb_gpu_copy(np, np->dma->word_dma, to + bytes - align, align);
}

/* From where it is, or else from a copy. The lock of the channel is held. */
static bool fntb_gpu_store_held(struct fntb_port *np, dma_addr_t to,
				const void *from, u32 bytes)
{
	struct fntb_dma *dma = np->dma;
	dma_addr_t addr;
	bool good;

	if (!virt_addr_valid(from) ||
	    !IS_ALIGNED((unsigned long)from, dma->align))
		goto copy;
	addr = dma_map_single(dma->dev, (void *)from, bytes, DMA_TO_DEVICE);
	if (dma_mapping_error(dma->dev, addr))
		goto copy;
	good = fntb_gpu_deliver(np, to, addr, bytes);
	dma_unmap_single(dma->dev, addr, bytes, DMA_TO_DEVICE);
	return good;

copy:
	memcpy(dma->bounce, from, bytes);
	return fntb_gpu_deliver(np, to, dma->bounce_dma, bytes);
}

static bool fntb_gpu_store_part(struct fntb_port *np, dma_addr_t to,
				const void *from, u32 bytes)
{
	bool good;

	if (!fntb_dma_lock(np))
		return false;
	good = fntb_gpu_store_held(np, to, from, bytes);
	mutex_unlock(&np->dma->lock);
	return good;
}

static bool fntb_gpu_store(struct fabrex_engine *engine, dma_addr_t to,
			   const void *from, u32 bytes)
{
	struct fntb_port *np = fntb_port_with(engine);
	u32 n;

	/* The engine does not ask for this, but a peer may. */
	if (!IS_ALIGNED(to | bytes, fntb_gpu_align(engine)))
		return false;
	for (; bytes; to += n, from += n, bytes -= n) {
		n = min(bytes, FNTB_CHUNK_MAX);
		if (!fntb_gpu_store_part(np, to, from, n))
			return false;
	}
	return true;
}

const struct fabrex_channel_ops fntb_channel_ops = {
	.device = fntb_gpu_device,
	.align = fntb_gpu_align,
	.load = fntb_gpu_load,
	.store = fntb_gpu_store,
};
