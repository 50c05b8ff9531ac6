// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory on both sides of the bridge: this host's inbox, to which the peer's memory
 * window is translated, and the memory window into the peer's inbox. Called by link.c and client.c.
 *
 * What the peer has said cannot make this host free memory that it may still write:
 * the inbox is allocated once, and freed when the driver is removed.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/log2.h>
#include <linux/sizes.h>

#include "ntb.h"

#define INBOX_SIZE	SZ_2M
#define ALIGN_MAX	SZ_64M

static void fntb_memory_free(struct fntb_port *np)
{
	dma_free_coherent(np->dma_dev, np->memory_size, np->memory,
			  np->memory_dma);
	np->memory = NULL;
	np->inbox = NULL;
}

/* Memory of @size in which @size bytes are aligned. */
static int fntb_memory_alloc(struct fntb_port *np, size_t all, u32 size,
			     resource_size_t align)
{
	size_t skip;

	np->memory = dma_alloc_coherent(np->dma_dev, all, &np->memory_dma,
					GFP_KERNEL | __GFP_NOWARN);
	if (!np->memory)
		return -ENOMEM;
	np->memory_size = all;
	skip = ALIGN(np->memory_dma, align) - np->memory_dma;
	if (skip > all - size) {
		fntb_memory_free(np);
		return -EAGAIN;
	}
	np->inbox = np->memory + skip;
	np->inbox_dma = np->memory_dma + skip;
	np->inbox_size = size;
	return 0;
}

/* Usually what is allocated is aligned to its size, which some bridges need
 * although they report less. Otherwise there has to be more.
 */
static int fntb_inbox_alloc(struct fntb_port *np, resource_size_t align,
			    resource_size_t most)
{
	u32 size = rounddown_pow_of_two(min_t(resource_size_t, most,
					      INBOX_SIZE));
	int ret = -EINVAL;

	for (; size >= FNTB_INBOX_MIN; size /= 2) {
		align = max_t(resource_size_t, align, size);
		ret = fntb_memory_alloc(np, size, size, align);
		if (ret == -EAGAIN)
			ret = fntb_memory_alloc(np, size + align, size, align);
		if (ret != -ENOMEM)
			break;
	}
	return ret;
}

/**
 * fntb_inbox_aim() - let the peer reach the inbox
 * @np: port, whose NTB has a link: some know the size of a window only then
 *
 * Context: Process; sleeps.
 * Return: 0 or a negative errno; to be tried again after a while
 */
int fntb_inbox_aim(struct fntb_port *np)
{
	resource_size_t align, multiple, most;
	int ret;

	ret = ntb_mw_get_align(np->ntb, NTB_DEF_PEER_IDX, 0, &align, &multiple,
			       &most);
	if (ret)
		return ret;
	if (most < FNTB_INBOX_MIN || align > ALIGN_MAX ||
	    (np->inbox && np->inbox_size > most)) {
		dev_err_ratelimited(&np->ntb->dev,
				    "cannot use a memory window of %pa bytes with alignment %pa: it is smaller than %u bytes or than before, or the alignment is too large\n",
				    &most, &align, FNTB_INBOX_MIN);
		return -EINVAL;
	}
	if (!np->inbox) {
		ret = fntb_inbox_alloc(np, align, most);
		if (ret) {
			dev_err_ratelimited(&np->ntb->dev,
					    "cannot allocate an inbox for a memory window of at most %pa bytes with alignment %pa: %pe\n",
					    &most, &align, ERR_PTR(ret));
			return ret;
		}
	}
	return ntb_mw_set_trans(np->ntb, NTB_DEF_PEER_IDX, 0, np->inbox_dma,
				np->inbox_size);
}

/**
 * fntb_inbox_free() - take the inbox away from the peer
 * @np: port; nobody uses inbox or window any more
 *
 * Context: Process; sleeps.
 */
void fntb_inbox_free(struct fntb_port *np)
{
	if (np->window)
		iounmap(np->window);
	np->window = NULL;
	if (!np->memory)
		return;
	if (ntb_mw_clear_trans(np->ntb, NTB_DEF_PEER_IDX, 0)) {
		/* Better lost than written to by another host. */
		dev_err(&np->ntb->dev,
			"cannot clear the translation of the memory window: leaking %zu bytes that the peer may still write\n",
			np->memory_size);
		return;
	}
	/* For what is on its way, and for what an IOMMU still remembers. */
	msleep(300);
	fntb_memory_free(np);
}

/**
 * fntb_window_map() - reach the peer's inbox
 * @np: port
 *
 * Context: Process; sleeps.
 * Return: 0 or a negative errno
 */
int fntb_window_map(struct fntb_port *np)
{
	phys_addr_t base;
	int ret;

	if (np->window)
		return 0;
	ret = ntb_peer_mw_get_addr(np->ntb, 0, &base, &np->window_size);
	if (ret)
		return ret;
	if (np->window_size < FNTB_INBOX_MIN)
		return -EINVAL;
	np->window = ioremap_wc(base, np->window_size);
	return np->window ? 0 : -ENOMEM;
}
